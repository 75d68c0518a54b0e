//! The commands of ldb on the files of a database, held against RocksDB's tool.

use super::ldb::{place, run};
use super::{Ran, program};
use ashlar_testkit::Tools;
use ashlar_testkit::golden::golden;
use ashlardb::Comparator;
use ashlardb::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Databases that RocksDB wrote.
const GOLDEN: [&str; 15] = [
    "atomic_flush",
    "blobs",
    "column_families",
    "compressions",
    "manifest_history",
    "manifest_tags",
    "merge_flushed",
    "range_del",
    "ttl",
    "txn_2pc",
    "wal_frag",
    "wal_ops",
    "wal_recycle",
    "wal_trailer",
    "wal_zstd",
];

/// The lines of an answer, in any order if `line` is a command without one.
fn lines(line: &str, ran: &Ran) -> Vec<String> {
    let mut lines: Vec<String> = ran.out.lines().map(str::to_owned).collect();
    if line.starts_with("file_checksum_dump") {
        lines.sort();
    }
    lines
}

/// The versions, range deletions, checksums and files of databases that RocksDB wrote, shown by both programs.
#[test]
fn internals_are_shown_as_rocksdbs_ldb_shows_them() {
    if let Err(skip) = Tools::available() {
        return skip.announce("internals_are_shown_as_rocksdbs_ldb_shows_them");
    }
    let (_dir, ours) = place();
    let mut shown = 0;
    for name in GOLDEN {
        let copy = golden(&format!("rocksdb-7.8.3/{name}")).unwrap_or_else(|skip| panic!("{skip}"));
        let db = copy.path();
        for line in [
            "idump --hex",
            "idump --hex --decode_blob_index",
            "idump --count_only",
            "idump --hex --max_keys=3",
            "list_file_range_deletes",
            "list_file_range_deletes --max_keys=1",
            "list_live_files_metadata",
            "list_live_files_metadata --sort_by_filename",
            "dump_live_files --decode_blob_index",
            "file_checksum_dump --hex",
        ] {
            // Values with bytes that are no text: RocksDB's ldb ends a value at the first zero byte. A record behind the zeros
            // at the end of a block: RocksDB's ldb gives the offset of the zeros.
            if line.starts_with("dump_live_files") && ["merge_flushed", "ttl", "wal_trailer"].contains(&name)
            {
                continue;
            }
            let (one, other) = (run(&ours, db, line), run(Path::new("ldb"), db, line));
            assert_eq!(one.status, other.status, "{name} {line}: {} {}", one.err, other.err);
            assert_eq!(lines(line, &one), lines(line, &other), "{name} {line}");
            shown += one.out.lines().count();
        }
    }
    assert!(shown > 1000, "{shown}");
}

/// Keys with timestamps in the WAL are not read, so a dump without them is refused.
#[test]
fn versions_with_timestamps_are_not_dumped_by_half() {
    let (_dir, ldb) = place();
    let copy = golden("rocksdb-7.8.3/udt").unwrap_or_else(|skip| panic!("{skip}"));
    let ran = run(&ldb, copy.path(), "idump");
    assert!(ran.status == 1 && ran.out.is_empty() && ran.err.contains("keys with timestamps"), "{ran:?}");
    assert!(
        run(&ldb, copy.path(), "dump_live_files --decode_blob_index").out.contains("Write Ahead Log Files")
    );
}

/// What the versions of keys are, without RocksDB's tool beside it.
#[test]
fn every_version_is_dumped() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    let good = |line: &str| {
        let ran = run(&ldb, &db, line);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}: {ran:?}");
        ran.out
    };
    for line in [
        "put k old --create_if_missing",
        "put k new",
        "delete k",
        "put row.1 v",
        "put_entity row.2 :v name:Ada",
        "deleterange row row.2",
        "put last w",
    ] {
        // Every open writes a table, and a compaction would drop versions.
        good(&format!("{line} --auto_compaction=false"));
    }
    let versions = "'k' seq:3, type:0 => \n'k' seq:2, type:1 => new\n'k' seq:1, type:1 => old\n\
                    'last' seq:7, type:1 => w\n'row.2' seq:5, type:22 => :v name:Ada\n";
    assert_eq!(good("idump"), format!("{versions}Internal keys in range: 5\n"));
    assert_eq!(good("idump --count_only --from=k --to=l"), "Internal keys in range: 3\n");
    assert_eq!(good("idump --count_only --input_key_hex --from=0x6C"), "Internal keys in range: 2\n");
    assert_eq!(good("idump --max_keys=0"), "Internal keys in range: 0\n");
    let counted = "k => count:3\tsize:9\nlast => count:1\tsize:5\nrow => count:1\tsize:19\n";
    assert_eq!(good("idump --count_delim"), counted);
    assert!(
        good("idump --hex --from=row.2")
            .starts_with("'726F772E32' seq:5, type:22 => :0x76 0x6E616D65:0x416461\n")
    );
    assert!(good("idump --stats").ends_with(&format!("{versions}Internal keys in range: 5\n")));
    assert!(good("dump --stats").contains("Compaction Stats"), "the statistics of the family");
    let deletes = good("list_file_range_deletes");
    assert!(deletes.contains("start: 726F77 end: 726F772E32 seq: 6\n"), "{deletes}");
    assert!(!good("list_file_range_deletes --max_keys=0").contains("start"));
    for (line, status, said) in [
        ("idump --column_family=none", 1, "no column family \"none\""),
        ("idump --from=61 --input_key_hex", 2, "must start with 0x"),
        ("idump --count_delim=ab", 2, "one character"),
        ("idump --count_delim --count_only", 2, "cannot be used with"),
        ("list_file_range_deletes --hex", 2, "--hex has no effect"),
        ("dump_live_files --column_family=f", 2, "--column_family has no effect"),
        ("dump --dump_uncompressed_blobs", 2, "--path"),
    ] {
        let ran = run(&ldb, &db, line);
        assert!(ran.status == status && ran.err.contains(said), "{line}: {ran:?}");
    }
    for line in ["idump", "dump_live_files", "list_file_range_deletes", "file_checksum_dump"] {
        let ran = run(&ldb, &dir.path().join("none"), line);
        assert!(ran.status == 1 && ran.out.is_empty() && !ran.err.is_empty(), "{line}: {ran:?}");
    }
}

/// The blob file of a database.
fn blob_file(db: &Path) -> PathBuf {
    let files = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|file| file.extension().is_some_and(|end| end == "blob")).unwrap()
}

#[test]
fn a_blob_file_is_shown_as_rocksdbs_ldb_shows_it() {
    let (dir, ours) = place();
    let db = dir.path().join("db");
    let value = "v".repeat(300);
    for line in [
        format!("batchput --create_if_missing a {value} b {value}"),
        "put c 3 --enable_blob_files --blob_compression_type=lz4".to_owned(),
    ] {
        assert_eq!(run(&ours, &db, &line).status, 0, "{line}");
    }
    let path = blob_file(&db);
    let dump = format!("dump --path={}", path.display());
    let words: Vec<&str> = dump.split(' ').collect();
    let shown = program(&ours, &[&words[..], &["--dump_uncompressed_blobs"]].concat(), b"");
    assert_eq!(shown.status, 0, "{shown:?}");
    let record = |offset: &str, key: &str| {
        format!(
            "Read record with offset {offset}:\n  key size   : 1\n  value size : 15\n  expiration : 0\n  key        : {key}\n  raw blob   : {value}\n"
        )
    };
    let text = format!(
        "Blob log header:\n  Version          : 1\n  Column Family ID : 0\n  Compression      : kLZ4Compression\n  \
         Expiration range : nil\nBlob log footer:\n  Blob count       : 2\n  Expiration Range : nil\n{}{}Summary:\n  \
         total records: 2\n  total key size: 2\n  total blob size: 30\n  total raw blob size: 600\n",
        record("0x1e (30)", "a"),
        record("0x4e (78)", "b")
    );
    assert_eq!(shown.out, text);
    if let Err(skip) = Tools::available() {
        skip.announce("a_blob_file_is_shown_as_rocksdbs_ldb_shows_it");
    } else {
        for flags in ["--dump_uncompressed_blobs", "--hex", "--hex --dump_uncompressed_blobs", "--value_hex"]
        {
            let words: Vec<&str> = dump.split(' ').chain(flags.split(' ')).collect();
            let (one, other) = (program(&ours, &words, b""), program(Path::new("ldb"), &words, b""));
            assert_eq!((one.status, one.out), (other.status, other.out), "{flags}");
        }
    }
    // A torn file: the records before the tear are shown, and the tear is an error.
    let torn = dir.path().join("000099.blob");
    std::fs::write(&torn, &std::fs::read(&path).unwrap()[..80]).unwrap();
    let ran = program(&ours, &["dump", &format!("--path={}", torn.display()), "--hex"], b"");
    assert!(ran.status == 1 && ran.err.contains("000099.blob"), "{ran:?}");
    assert!(ran.out.contains("No blob log footer.\n") && ran.out.contains("  total records: 1\n"), "{ran:?}");
    std::fs::write(&torn, b"short").unwrap();
    let ran = program(&ours, &["dump", &format!("--path={}", torn.display())], b"");
    assert!(ran.status == 1 && ran.out.is_empty(), "{ran:?}");
}

/// Checksums of files are those that the MANIFEST has, of the database or of a MANIFEST by its path.
#[test]
fn checksums_are_those_of_the_manifest() {
    let (_dir, ldb) = place();
    let copy = golden("rocksdb-7.8.3/manifest_tags").unwrap_or_else(|skip| panic!("{skip}"));
    let db = copy.path();
    let text = "9, FileChecksumCrc32c, 0xBAAA8F0E\n12, FileChecksumCrc32c, 0x7A39FF62\n\
                15, FileChecksumCrc32c, 0xC9CB01B2\n19, FileChecksumCrc32c, 0xFE803644\n";
    let all = run(&ldb, db, "file_checksum_dump --hex");
    assert_eq!(all.out, format!("{text}Print SST file checksum information finished \n"));
    let files = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    let manifest = files.into_iter().find(|file| file.to_string_lossy().contains("MANIFEST")).unwrap();
    let path = format!("--path={}", manifest.display());
    assert_eq!(program(&ldb, &["file_checksum_dump", "--hex", &path], b"").out, all.out);
}

/// The commands take no lock: each answers while the program writes, flushes and compacts.
#[test]
fn files_are_read_beside_the_writer() {
    let (dir, ldb) = place();
    let path = dir.path().join("db");
    let db = Db::builder(&path).options("write_buffer_size=65536").open().unwrap();
    db.put("first", "v").unwrap();
    let done = AtomicBool::new(false);
    /// Ends the writer also when an assertion fails.
    struct Ends<'a>(&'a AtomicBool);
    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut round = 0_u32;
            while !done.load(Ordering::Relaxed) {
                for key in 0..100 {
                    db.put(format!("k{key}"), format!("{round} {}", "v".repeat(300))).unwrap();
                }
                if round.is_multiple_of(10) {
                    db.compact().unwrap();
                }
                round += 1;
            }
            round
        });
        let ends = Ends(&done);
        for line in [
            "idump --count_only",
            "list_live_files_metadata",
            "list_file_range_deletes",
            "file_checksum_dump",
        ] {
            for _ in 0..10 {
                let ran = run(&ldb, &path, line);
                assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}: {ran:?}");
            }
        }
        drop(ends);
        assert!(writer.join().unwrap() > 10);
    });
}

/// An order of the user's own.
#[derive(Debug)]
struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "ByLength"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

/// A family in an order that the program does not know is named, and not left out unseen.
#[test]
fn a_family_of_an_unknown_order_is_named() {
    let (dir, ldb) = place();
    let path = dir.path().join("db");
    let db = Db::builder(&path).family("odd", |family| family.comparator(Arc::new(ByLength))).open().unwrap();
    db.put("k", "v").unwrap();
    db.family("odd").unwrap().put("k", "v").unwrap();
    db.close().unwrap();
    for (line, said) in [
        ("list_live_files_metadata", "the comparator of family \"odd\" is not built in"),
        ("dump_live_files", "the comparator of family \"odd\" is not built in"),
        ("idump --column_family=odd", "no column family \"odd\" with a built-in comparator"),
        (
            "list_file_range_deletes --column_family=odd",
            "no column family \"odd\" with a built-in comparator",
        ),
    ] {
        let ran = run(&ldb, &path, line);
        assert!(ran.status == 1 && ran.out.is_empty() && ran.err.contains(said), "{line}: {ran:?}");
    }
    assert_eq!(run(&ldb, &path, "idump").out, "'k' seq:1, type:1 => v\nInternal keys in range: 1\n");
}
