//! The program under the name `ldb`: the commands of RocksDB's tool, held against the tool itself.

use super::{Ran, program};
use ashlar_testkit::Tools;
use ashlar_testkit::golden::golden;
use std::path::{Path, PathBuf};

/// A directory, and our program in it under the name `ldb`.
pub(crate) fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let ldb = dir.path().join("ldb");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ashlar"), &ldb).unwrap();
    (dir, ldb)
}

/// Runs `ldb` with the words of `line` on the database `db`.
pub(crate) fn run(ldb: &Path, db: &Path, line: &str) -> Ran {
    let db = format!("--db={}", db.display());
    let words: Vec<&str> = std::iter::once(db.as_str()).chain(line.split_whitespace()).collect();
    program(ldb, &words, b"")
}

/// The WAL file of the database with the largest number.
fn newest_wal(db: &Path) -> PathBuf {
    let files = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|end| end == "log")).max().unwrap()
}

#[test]
fn entries_and_rows_are_written_and_read() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    let good = |line: &str| {
        let ran = run(&ldb, &db, line);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}: {ran:?}");
        ran.out
    };
    assert_eq!(good("batchput x.1 a x.2 bc y 3 --create_if_missing"), "OK\n");
    assert_eq!(good("multi_get x.2 none y"), "x.2 ==> bc\nKey not found: none\ny ==> 3\n");
    assert_eq!(good("multi_get --hex 0x79 0x7A"), "0x79 ==> 0x33\nKey not found: 0x7A\n");
    assert_eq!(good("dump --count_delim"), "x => count:2\tsize:9\ny => count:1\tsize:2\n");
    assert_eq!(
        good("dump --count_delim=1 --from=x.1"),
        "x. => count:1\tsize:4\nx.2 => count:1\tsize:5\ny => count:1\tsize:2\n"
    );
    assert_eq!(good("dump --count_delim --from=z"), "");
    assert_eq!(good("put_entity row :v name:Ada born:1815"), "OK\n");
    assert_eq!(good("get_entity row"), ":v born:1815 name:Ada\n");
    assert_eq!(good("get_entity y"), ":3\n");
    assert_eq!(good("get row"), "v\n");
    assert_eq!(good("put_entity --hex 0x72 0x61:0x3A :0x00"), "OK\n");
    assert_eq!(good("scan --hex --from=0x72 --to=0x73 --max_keys=1"), "0x72 ==> :0x00 0x61:0x3A\n");
    assert_eq!(good("scan --prefix=row"), "row ==> :v born:1815 name:Ada\n");
    assert_eq!(good("singledelete y"), "OK\n");
    assert_eq!(good("deleterange r s"), "OK\n");
    assert_eq!(good("dump"), "x.1 ==> a\nx.2 ==> bc\nKeys in range: 2\n");
    assert_eq!(good("checkconsistency"), "OK\n");
    let wal = format!("dump_wal --walfile={} --print_value", newest_wal(&db).display());
    assert_eq!(good(&wal), "7,1,17,0,DELETE_RANGE(0) : 0x72 0x73 \n");
    assert!(good("approxsize --from=a --to=z").trim().parse::<u64>().unwrap() > 0);
    assert_eq!(good("approxsize --from=z --to=zz"), "0\n");
    let missing = Ran { status: 1, out: "Key not found\n".into(), err: String::new() };
    assert_eq!(run(&ldb, &db, "get none"), missing);
    assert_eq!(run(&ldb, &db, "get_entity none"), missing);
    for (line, said) in [
        ("batchput k v k2", "has no value"),
        ("batchput k", "values"),
        ("put_entity k v", "is no column"),
        ("dump --count_delim=ab", "one character"),
        ("check --write_buffer_size=1", "a setting of the open has no effect"),
        ("dump --path=x.log --column_family=f", "--column_family has no effect"),
        ("manifest_dump --key_hex", "--hex has no effect"),
        ("put k v --ttl --use_txn", "cannot be used with"),
    ] {
        let ran = run(&ldb, &db, line);
        assert!(ran.status == 2 && ran.err.contains(said), "{line}: {ran:?}");
    }
}

#[test]
fn settings_hold_for_the_open() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    assert_eq!(run(&ldb, &db, "put --create_if_missing k value").out, "OK\n");
    // The open replays the WAL into a table.
    assert_eq!(run(&ldb, &db, "put k2 value --enable_blob_files --compression_type=no").out, "OK\n");
    let ends = |end: &str| {
        std::fs::read_dir(&db)
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == end))
            .count()
    };
    assert_eq!(ends("blob"), 1);
    assert_eq!(run(&ldb, &db, "scan --try_load_options").out, "k ==> value\nk2 ==> value\n");
    let listed = run(&ldb, &db, "list_live_files_metadata --sort_by_filename").out;
    assert_eq!(listed.lines().count(), 2 + ends("sst") + ends("blob"), "{listed}");
    let bad = run(&ldb, &db, "scan --bloom_bits=x");
    assert_eq!(bad.status, 2, "{bad:?}");
    // Values with times: RocksDB's DBWithTTL.
    let timed = dir.path().join("timed");
    assert_eq!(run(&ldb, &timed, "put --create_if_missing --ttl k v").out, "OK\n");
    assert_eq!(run(&ldb, &timed, "scan --ttl").out, "k ==> v\n");
    assert!(run(&ldb, &timed, "put k w").err.contains("ttl"));
}

/// The same commands by both programs, each on a database of its own: the same lines and statuses. Then each reads what the
/// other one has written.
#[test]
fn lines_and_databases_are_those_of_rocksdbs_ldb() {
    if let Err(skip) = Tools::available() {
        return skip.announce("lines_and_databases_are_those_of_rocksdbs_ldb");
    }
    let (dir, ours) = place();
    let theirs = Path::new("ldb");
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    for line in [
        "put k1 v1 --create_if_missing",
        "batchput k2 v2 k3 v3 n.1 1 n.2 2 m 5 --compression_type=no",
        "singledelete k1",
        "deleterange k2 k3",
        "get k3",
        "get --hex 0x6B33",
        "dump",
        "dump --count_delim",
        "dump --count_delim=1",
        "scan --no_value",
        "checkconsistency",
        "create_column_family two",
        "put --column_family=two a b",
        "get --column_family=two a",
        "get --column_family=three a",
        "batchput k",
        "list_live_files_metadata --nothing",
        "get_property rocksdb.estimate-num-keys --column_family=two",
        "batchput w1 1 w2 2",
    ] {
        let (one, other) = (run(&ours, &a, line), run(theirs, &b, line));
        // RocksDB's statuses are 0 and 1.
        assert_eq!((one.status.min(1), &one.out), (other.status, &other.out), "{line}: {one:?} {other:?}");
    }
    // The WAL of each by both programs. A WAL of ours is mapped, and RocksDB's tool reads on into its zeros.
    let wal = format!("dump_wal --walfile={} --header", newest_wal(&b).display());
    for line in [wal.clone(), format!("{wal} --print_value"), format!("{wal} --write_committed=false")] {
        let (one, other) = (run(&ours, &a, &line), run(theirs, &b, &line));
        assert_eq!((one.status, &one.out), (0, &other.out), "{line}");
        assert!(one.out.lines().count() > 1, "{one:?}");
    }
    assert_eq!(run(&ours, &a, "rewrite --level=rocksdb-7.8").status, 0);
    for (ldb, db) in [(&*ours, &b), (theirs, &a)] {
        let dump = run(ldb, db, "dump").out;
        assert_eq!(
            dump,
            "k3 ==> v3\nm ==> 5\nn.1 ==> 1\nn.2 ==> 2\nw1 ==> 1\nw2 ==> 2\nKeys in range: 6\n",
            "{}",
            db.display()
        );
        assert_eq!(run(ldb, db, "dump --column_family=two").out, "a ==> b\nKeys in range: 1\n");
    }
}

/// Both programs take the torn tail of a WAL file, and refuse a table that is short or missing.
#[test]
fn a_directory_is_as_consistent_as_for_rocksdbs_ldb() {
    if let Err(skip) = Tools::available() {
        return skip.announce("a_directory_is_as_consistent_as_for_rocksdbs_ldb");
    }
    let (dir, ours) = place();
    for (ldb, name) in [(&*ours, "a"), (Path::new("ldb"), "b")] {
        let db = dir.path().join(name);
        for line in ["put --create_if_missing k v", "put l w", "compact", "put m x"] {
            assert_eq!(run(ldb, &db, line).status, 0, "{line}");
        }
        let status = || {
            let ran = run(ldb, &db, "checkconsistency");
            assert_eq!(ran.out, if ran.status == 0 { "OK\n" } else { "" }, "{ran:?}");
            ran.status
        };
        let wal = newest_wal(&db);
        let bytes = std::fs::read(&wal).unwrap();
        std::fs::write(&wal, &bytes[..bytes.len() - 3]).unwrap();
        assert_eq!(status(), 0, "{name}: a torn tail");
        let files = std::fs::read_dir(&db).unwrap().map(|entry| entry.unwrap().path());
        let table = files.filter(|file| file.extension().is_some_and(|end| end == "sst")).max().unwrap();
        let bytes = std::fs::read(&table).unwrap();
        std::fs::write(&table, &bytes[..500]).unwrap();
        assert_eq!(status(), 1, "{name}: a short table");
        std::fs::remove_file(&table).unwrap();
        assert_eq!(status(), 1, "{name}: no table");
    }
}

/// Tables, WAL files and MANIFESTs that RocksDB wrote, shown by both programs.
#[test]
fn files_are_shown_as_rocksdbs_ldb_shows_them() {
    if let Err(skip) = Tools::available() {
        return skip.announce("files_are_shown_as_rocksdbs_ldb_shows_them");
    }
    let (_dir, ours) = place();
    let mut shown = 0;
    for name in [
        "range_del",
        "column_families",
        "compressions",
        "manifest_tags",
        "atomic_flush",
        "wal_recycle",
        "wal_zstd",
    ] {
        let copy = golden(&format!("rocksdb-7.8.3/{name}")).unwrap_or_else(|skip| panic!("{skip}"));
        let db = copy.path();
        let mut lines = vec![format!("manifest_dump --db={}", db.display())];
        for entry in std::fs::read_dir(db).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "sst" || end == "log") {
                lines.push(format!("dump --path={}", path.display()));
            }
        }
        for line in lines {
            let words: Vec<&str> = line.split(' ').collect();
            let (one, other) = (program(&ours, &words, b""), program(Path::new("ldb"), &words, b""));
            assert_eq!((one.status, one.out), (other.status, other.out), "{line}");
            shown += 1;
        }
    }
    assert!(shown > 20, "{shown}");
}
