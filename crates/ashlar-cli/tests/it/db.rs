//! `ashlar db`.

use super::{Ran, ashlar, good};
use ashlardb::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// A directory for databases, and `--db=` for one in it.
fn place() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let flag = format!("--db={}", dir.path().join("db").display());
    (dir, flag)
}

/// Lines as `find . -type f -printf '%p\t%s\n'` prints them, of this checkout's own sources.
fn listing() -> String {
    fn walk(dir: &Path, lines: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, lines);
            } else {
                lines.push(format!("{}\t{}\n", path.display(), path.metadata().unwrap().len()));
            }
        }
    }
    let mut lines = Vec::new();
    walk(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), &mut lines);
    (0..3000).for_each(|i| lines.push(format!("./padding/{}\t{i}\n", i * 7919 % 3000)));
    lines.sort();
    lines.concat()
}

#[test]
fn a_listing_comes_back_equal() {
    let (_dir, db) = place();
    let listing = listing();
    let count = listing.lines().count();
    let said = good(&["db", &db, "load", "--tsv", "--create_if_missing"], listing.as_bytes());
    assert_eq!(
        said,
        format!("{count} entries loaded, {} bytes of keys and values\n", listing.len() - 2 * count)
    );
    assert_eq!(good(&["db", &db, "scan", "--tsv"], b""), listing);
    // Without --tsv the first line tells.
    let (_other, copy) = place();
    good(&["db", &copy, "load", "--create_if_missing", "--disable_wal", "--compact"], listing.as_bytes());
    assert_eq!(good(&["db", &copy, "scan", "--tsv"], b""), listing);
    let dump = good(&["db", &db, "dump"], b"");
    assert_eq!(dump, format!("{}Keys in range: {count}\n", listing.replace('\t', " ==> ")));
    // What dump prints, load reads.
    let (_third, third) = place();
    good(&["db", &third, "load", "--create_if_missing"], dump.as_bytes());
    assert_eq!(good(&["db", &third, "dump"], b""), dump);
}

#[test]
fn put_get_delete() {
    let (_dir, db) = place();
    assert_eq!(good(&["db", &db, "--create_if_missing", "put", "key", "a value"], b""), "OK\n");
    assert_eq!(good(&["db", &db, "get", "key"], b""), "a value\n");
    assert_eq!(good(&["db", &db, "put", "--", "-x", "--y"], b""), "OK\n");
    assert_eq!(good(&["db", &db, "scan"], b""), "-x ==> --y\nkey ==> a value\n");
    assert_eq!(good(&["db", &db, "scan", "--no_value", "--from=k"], b""), "key\n");
    assert_eq!(good(&["db", &db, "scan", "--to=k", "--max_keys=5"], b""), "-x ==> --y\n");
    assert_eq!(good(&["db", &db, "dump", "--count_only"], b""), "Keys in range: 2\n");
    assert_eq!(good(&["db", &db, "delete", "key"], b""), "OK\n");
    let missing = ashlar(&["db", &db, "get", "key"], b"");
    assert_eq!(missing, Ran { status: 1, out: "Key not found\n".into(), err: String::new() });
    assert_eq!(good(&["db", &db, "scan", "--max_keys=0"], b""), "");
}

#[test]
fn hexadecimal_in_and_out() {
    let (_dir, db) = place();
    good(&["db", &db, "--create_if_missing", "--hex", "put", "0x00ff0A", "0x"], b"");
    assert_eq!(good(&["db", &db, "--hex", "scan"], b""), "0x00FF0A ==> 0x\n");
    assert_eq!(good(&["db", &db, "--value_hex", "put", "k", "0x76"], b""), "OK\n");
    assert_eq!(good(&["db", &db, "--key_hex", "get", "0x6B"], b""), "v\n");
    assert_eq!(good(&["db", &db, "--hex", "scan", "--from=0x01"], b""), "0x6B ==> 0x76\n");
    let wrong = ashlar(&["db", &db, "--hex", "get", "6B"], b"");
    assert_eq!((wrong.status, wrong.err.as_str()), (2, "Invalid hex input 6B: it must start with 0x\n"));
    let loaded = ashlar(&["db", &db, "--hex", "load"], b"0x61 ==> 0x62\n61 ==> 62\n0x63 ==> 0x6\n");
    assert_eq!(loaded.status, 1);
    assert_eq!(loaded.out, "1 entries loaded, 2 bytes of keys and values\n");
    let said =
        "2 lines left out, which are no entries; the first is line 2. Correct them and load them again.\n";
    assert_eq!(loaded.err, said);
    assert_eq!(good(&["db", &db, "get", "a"], b""), "b\n");
}

#[test]
fn an_entry_that_the_database_refuses_is_named_by_its_line_and_what_came_before_is_loaded() {
    let long = "k".repeat(9 << 20);
    let lines = format!("a ==> 1\nno entry\nb ==> 2\n{long} ==> 3\nc ==> 4\n");
    for flags in [&[][..], &["--disable_wal"]] {
        let (_dir, db) = place();
        let load = [&["db", &db, "--create_if_missing", "load"][..], flags].concat();
        let loaded = ashlar(&load, lines.as_bytes());
        assert_eq!((loaded.status, loaded.out.as_str()), (1, ""));
        assert!(loaded.err.starts_with("line 4: "), "{}", loaded.err);
        assert!(loaded.err.contains("2 entries of the lines before it are loaded"), "{}", loaded.err);
        assert_eq!(good(&["db", &db, "scan"], b""), "a ==> 1\nb ==> 2\n");
    }
}

#[test]
fn a_dump_loads_back_as_the_same_entries_whatever_their_bytes_are() {
    let (_dir, db) = place();
    good(&["db", &db, "--create_if_missing", "put", "a ==> b", "c ==> d"], b"");
    good(&["db", &db, "put", "plain", "value"], b"");
    good(&["db", &db, "put", "tab\tand", "arrow ==> both"], b"");
    good(&["db", &db, "--hex", "put", "0x610A62", "0x76310A7632"], b"");
    let entries = good(&["db", &db, "--hex", "scan"], b"");
    for flags in [&[][..], &["--tsv"], &["--key_hex"], &["--value_hex"], &["--hex"]] {
        let tsv = flags.contains(&"--tsv");
        let (common, dump) = if tsv { (&[][..], flags) } else { (flags, &[][..]) };
        let lines = good(&[&["db", &db][..], common, &["dump"], dump].concat(), b"");
        let (_copy, copy) = place();
        let load = [&["db", &copy, "--create_if_missing"][..], common, &["load"], dump].concat();
        good(&load, lines.as_bytes());
        assert_eq!(good(&["db", &copy, "--hex", "scan"], b""), entries, "{flags:?}\n{lines}");
    }
    let dump = good(&["db", &db, "dump"], b"");
    assert!(dump.contains("\nplain ==> value\n"), "what is clear stays plain: {dump}");
}

#[test]
fn families_come_and_go() {
    let (dir, db) = place();
    good(&["db", &db, "--create_if_missing", "put", "k", "default's"], b"");
    assert_eq!(good(&["db", &db, "create_family", "other"], b""), "OK\n");
    good(&["db", &db, "--column_family=other", "put", "k", "other's"], b"");
    let path = dir.path().join("db").display().to_string();
    let listed = good(&["db", &db, "list_column_families"], b"");
    assert_eq!(listed, format!("Column families in {path}: \n{{default, other}}\n"));
    assert_eq!(good(&["db", &path, "get", "k", "--column_family", "other"], b""), "other's\n");
    assert_eq!(good(&["db", &db, "get", "k"], b""), "default's\n");
    let wrong = ashlar(&["db", &db, "--column_family=nn", "get", "k"], b"");
    assert_eq!(wrong.status, 1);
    assert!(wrong.err.contains("\"nn\"") && wrong.err.contains("default, other"), "{wrong:?}");
    assert_eq!(good(&["db", &db, "drop_column_family", "other"], b""), "OK\n");
    assert_eq!(ashlar(&["db", &db, "drop_family", "other"], b"").status, 1);
    assert!(good(&["db", &db, "families"], b"").ends_with("{default}\n"));
}

#[test]
fn reading_works_beside_a_writer_and_leaves_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let db = ashlardb::Db::open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    let names = || {
        let mut all: Vec<_> =
            std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        all.sort();
        all
    };
    let (before, word) = (names(), format!("--db={}", dir.path().display()));
    assert_eq!(good(&["db", &word, "get", "a"], b""), "1\n");
    assert_eq!(good(&["db", &word, "scan"], b""), "a ==> 1\n");
    assert!(good(&["db", &word, "info"], b"").contains("read-only: as asked\n"));
    assert_eq!(names(), before);
    let put = ashlar(&["db", &word, "put", "a", "2"], b"");
    assert!(put.status == 1 && put.err.contains("LOCK"), "{put:?}");
    db.put("a", "2").unwrap();
    assert_eq!(good(&["db", &word, "get", "a"], b""), "2\n");
}

#[test]
fn info_tells_the_state() {
    let (_dir, db) = place();
    good(&["db", &db, "--create_if_missing", "load", "--disable_wal"], b"a\t1\nb\t2\n");
    let info = good(&["db", &db, "info"], b"");
    for part in ["clean: MANIFEST-", "Family \"default\": 1 tables, ", "Health: Healthy. "] {
        assert!(info.contains(part), "{part}: {info}");
    }
}

#[test]
fn what_is_no_database_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let missing = format!("--db={}", dir.path().join("missing").display());
    for command in [
        &["get", "k"][..],
        &["scan"],
        &["dump"],
        &["info"],
        &["families"],
        &["put", "k", "v"],
        &["drop_family", "x"],
    ] {
        let ran = ashlar(&[&["db", missing.as_str()], command].concat(), b"");
        assert_eq!(
            (ran.status, ran.out.as_str(), ran.err.lines().count()),
            (1, "", 1),
            "{command:?}: {ran:?}"
        );
        assert!(ran.err.contains("no database"), "{command:?}: {ran:?}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let file = dir.path().join("file");
    std::fs::write(&file, "text").unwrap();
    let ran = ashlar(&["db", &format!("--db={}", file.display()), "scan"], b"");
    assert_eq!(ran.status, 1, "{ran:?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"text");
}

#[test]
fn wrong_command_lines() {
    let usage = |words: &[&str]| {
        let ran = ashlar(words, b"");
        assert_eq!(ran.status, 2, "{ran:?}");
        ran.err
    };
    assert!(usage(&["db", "--db=D", "scann"]).contains("unknown command \"scann\""));
    assert!(usage(&["db", "scan"]).contains("which database?"));
    for (words, command, advice) in [
        (&["db", "D", "get", "key", "x"][..], "ashlar db get", "Quote an argument"),
        (&["db", "D", "777"], "ashlar db", "The commands are put, get"),
        (&["sst", "FILE", "x"], "ashlar sst", "Quote an argument"),
        (&["manifest", "FILE", "x"], "ashlar manifest", "Quote an argument"),
        (&["wal", "FILE", "x"], "ashlar wal", "Quote an argument"),
        (&["options", "explain", "name", "x"], "ashlar options explain", "Quote an argument"),
    ] {
        let said = usage(words);
        let extra = format!("unexpected argument {:?}\nUsage: {command}", words.last().unwrap());
        assert!(said.starts_with(&extra) && said.contains(advice), "{words:?}: {said}");
        assert!(said.ends_with("--help` lists what the command takes\n"), "{words:?}: {said}");
    }
    assert!(usage(&["sst", "FILE", "--commend=scan"]).contains("A similar argument is \"--command\"."));
    assert!(usage(&["db", "--db=D", "get"]).contains("<KEY>"));
    assert!(usage(&["db", "--db=D", "scan", "--max_kays=3"]).contains("--max_keys"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let (_dir, db) = place();
    let many: String = (0..50_000).map(|i| format!("key{i:06}\tvalue\n")).collect();
    good(&["db", &db, "load", "--create_if_missing"], many.as_bytes());
    let mut child = Command::new(env!("CARGO_BIN_EXE_ashlar"))
        .args(["db", &db, "scan"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 20];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"key000000 ==> value\n");
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

/// Writers and readers take the settings of the directory, and none of them changes what is stored.
#[test]
fn commands_keep_the_settings_of_the_directory() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let db = ashlardb::Db::builder(&dir)
        .options("num_levels=12;write_buffer_size=1M;compression=kZSTD")
        .open()
        .unwrap();
    db.put("k", "v").unwrap();
    db.close().unwrap();
    let at = format!("--db={}", dir.display());
    let newest = || {
        let files = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
        let last = files.filter(|p| p.display().to_string().contains("OPTIONS-")).max().unwrap();
        std::fs::read_to_string(last).unwrap()
    };
    let before = newest();
    assert_eq!(good(&["db", &at, "put", "l", "w"], b""), "OK\n");
    assert_eq!(good(&["db", &at, "get", "k"], b""), "v\n");
    assert!(good(&["db", &at, "scan"], b"").contains("l ==> w"));
    assert_eq!(newest(), before);
}

#[test]
fn control_characters_in_the_name_of_a_family_are_escaped() {
    let (_dir, db) = place();
    good(&["db", &db, "--create_if_missing", "create_family", "a\u{1b}[2Jb"], b"");
    assert!(good(&["db", &db, "families"], b"").ends_with("{default, a\\u{1b}[2Jb}\n"));
}

#[test]
fn a_relative_db_path_is_that_of_the_command_that_gave_it() {
    let home = tempfile::tempdir().unwrap();
    let run = |from: &str, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ashlar"));
        let ran = command.current_dir(home.path().join(from)).arg("db").args(words).output().unwrap();
        let text = [ran.stdout, ran.stderr].concat();
        assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&text));
        String::from_utf8(text).unwrap()
    };
    for name in ["c1", "c2"] {
        std::fs::create_dir(home.path().join(name)).unwrap();
        run(name, &["--db=db", "--db_path=t:1000000000", "--create_if_missing", "put", "key", name]);
    }
    // Each of these opens makes a table of the log before it.
    (0..3).for_each(|_| drop(run("c2", &["--db=db", "put", "more", "text"])));
    let first = format!("--db={}", home.path().join("c1/db").display());
    run("c2", &[&first, "put", "two", "2"]);
    run("c2", &[&first, "put", "three", "3"]);
    assert_eq!(run("c1", &["--db=db", "get", "key"]), "c1\n");
    assert_eq!(run("c1", &["--db=db", "get", "two"]), "2\n");
    assert_eq!(run("c2", &["--db=db", "get", "key"]), "c2\n");
}

#[test]
fn a_repair_of_what_is_no_database_says_so() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("thesis.txt"), "mine").unwrap();
    let ran = ashlar(&["db", home.path().to_str().unwrap(), "repair"], b"");
    assert!(ran.status == 1 && ran.err.contains("there is no database"), "{ran:?}");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn a_prefix_stands_for_a_range_of_scan_and_compact() {
    let (dir, db) = place();
    let lines = "user:1\ta\nuser:2\tb\nuser;\tc\nuser\td\n\u{ff}x\te\n";
    good(&["db", &db, "load", "--tsv", "--create_if_missing"], lines.as_bytes());
    assert_eq!(good(&["db", &db, "scan", "--prefix=user:", "--tsv"], b""), "user:1\ta\nuser:2\tb\n");
    assert_eq!(good(&["db", &db, "--hex", "scan", "--prefix=0xC3", "--no_value"], b"").lines().count(), 1);
    assert!(good(&["db", &db, "dump", "--prefix=user", "--count_only"], b"").contains("Keys in range: 4"));
    assert_eq!(ashlar(&["db", &db, "scan", "--prefix=a", "--from=b"], b"").status, 2);

    assert_eq!(good(&["db", &db, "compact", "--prefix=user:"], b""), "OK\n");
    assert_eq!(good(&["db", &db, "compact"], b""), "OK\n");
    let level = |n: u32| good(&["db", &db, "property", &format!("rocksdb.num-files-at-level{n}")], b"");
    assert_eq!(level(0), "rocksdb.num-files-at-level0: 0\n");
    assert_eq!(level(6), "rocksdb.num-files-at-level6: 1\n");
    assert_eq!(good(&["db", &db, "scan", "--tsv"], b"").lines().count(), 5);
    let unknown = ashlar(&["db", &db, "property", "rocksdb.nothing"], b"");
    assert!(
        unknown.status == 2 && unknown.err.contains("no property \"rocksdb.nothing\""),
        "{}",
        unknown.err
    );
    assert_eq!(ashlar(&["db", dir.path().join("none").to_str().unwrap(), "compact"], b"").status, 1);
}

#[test]
fn a_word_that_is_no_command_is_answered_with_the_commands() {
    let (_dir, db) = place();
    good(&["db", &db, "put", "--create_if_missing", "k", "v"], b"");
    let directory = db.strip_prefix("--db=").unwrap();
    for words in [&["db", directory, "bogus"][..], &["db", &db, "bogus"]] {
        let ran = ashlar(words, b"");
        assert!(
            ran.status == 2 && ran.err.contains("\"bogus\"") && ran.err.contains("property"),
            "{}",
            ran.err
        );
    }
    let idle = ashlar(&["db", &db, "check", "--column_family=nope"], b"");
    assert!(idle.status == 2 && idle.err.contains("--column_family has no effect"), "{}", idle.err);
}

#[test]
fn a_line_that_can_be_no_entry_is_left_out_however_long_it_is() {
    let (_dir, db) = place();
    let mut lines = vec![0; 64 << 20];
    lines.extend_from_slice(b"\nkey\tvalue\n");
    let loaded = ashlar(&["db", &db, "--create_if_missing", "load"], &lines);
    let said =
        "1 line left out, which are no entries; the first is line 1. Correct them and load them again.\n";
    assert_eq!((loaded.status, loaded.err.as_str()), (1, said));
    assert_eq!(good(&["db", &db, "scan"], b""), "key ==> value\n");
}

#[test]
fn a_range_that_begins_behind_its_end_is_answered_with_its_flags() {
    let (_dir, db) = place();
    good(&["db", &db, "put", "m", "1", "--create_if_missing"], b"");
    for command in ["scan", "dump", "compact"] {
        let ran = ashlar(&["db", &db, command, "--from=z", "--to=a"], b"");
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{command}: {ran:?}");
        assert!(ran.err.contains("--from is above --to"), "{command}: {ran:?}");
    }
    assert_eq!(good(&["db", &db, "scan", "--from=m", "--to=m"], b""), "");
    // Above and below are those of the family's order.
    let (dir, back) = place();
    let builder = ashlardb::Db::builder(dir.path().join("db")).create(true);
    let made = builder.options("comparator=rocksdb.ReverseBytewiseComparator").open().unwrap();
    made.put("m", "1").unwrap();
    made.close().unwrap();
    assert_eq!(good(&["db", &back, "scan", "--from=z", "--to=a"], b""), "m ==> 1\n");
    assert_eq!(good(&["db", &back, "compact", "--from=z", "--to=a"], b""), "OK\n");
    assert_eq!(ashlar(&["db", &back, "scan", "--from=a", "--to=z"], b"").status, 2);
}

#[test]
fn a_checkpoint_is_a_second_database() {
    let (dir, db) = place();
    good(&["db", &db, "put", "--create_if_missing", "k", "v"], b"");
    for flag in [false, true] {
        let copy = dir.path().join(if flag { "one" } else { "two" }).display().to_string();
        let word = if flag { format!("--checkpoint_dir={copy}") } else { copy.clone() };
        let said = good(&["db", &db, "checkpoint", &word], b"");
        assert!(said.starts_with(&format!("OK: {copy} has the writes up to 1; ")), "{said}");
        assert_eq!(good(&["db", &copy, "scan"], b""), "k ==> v\n");
        let again = ashlar(&["db", &db, "checkpoint", &word], b"");
        assert!(again.status == 1 && again.err.contains("something in the place"), "{again:?}");
    }
}

#[test]
fn a_family_is_exported_and_imported() {
    let (dir, db) = place();
    let at = |name: &str| dir.path().join(name).display().to_string();
    good(&["db", &db, "create_family", "--create_if_missing", "events"], b"");
    good(&["db", &db, "put", "--column_family=events", "k", "v"], b"");
    let out = at("out");
    let said = good(&["db", &db, "export_family", "--column_family=events", &out], b"");
    assert!(said.starts_with(&format!("OK: {out} has family \"events\": 1 table, ")), "{said}");
    assert_eq!(good(&["db", &out, "scan", "--column_family=events"], b""), "k ==> v\n");
    let again = ashlar(&["db", &db, "export_family", "--column_family=events", &out], b"");
    assert!(again.status == 1 && again.err.contains("something in the place"), "{again:?}");
    let other = at("other");
    assert_eq!(good(&["db", &other, "import_family", "--create_if_missing", "one", &out], b""), "OK\n");
    assert_eq!(good(&["db", &db, "import_family", "two", &out, "--move_files"], b""), "OK\n");
    assert!(!dir.path().join("out").exists());
    for (db, family) in [(&other, "one"), (&db, "two")] {
        assert_eq!(good(&["db", db, "scan", &format!("--column_family={family}")], b""), "k ==> v\n");
    }
    assert_eq!(ashlar(&["db", &db, "import_family", "three", &out], b"").status, 1);
}

#[test]
fn backups_are_made_listed_and_restored() {
    let (dir, db) = place();
    let backups = dir.path().join("backups").display().to_string();
    good(&["db", &db, "put", "--create_if_missing", "k", "1"], b"");
    let said =
        good(&["db", &db, "backup", &backups, "--flush", "--num_threads=2", "--metadata=first\u{1b}"], b"");
    assert!(said.starts_with(&format!("OK: backup 1 in {backups} has the writes up to 1; ")), "{said}");
    good(&["db", &db, "put", "k", "2"], b"");
    let said = good(&["db", &db, "backup", &format!("--backup_dir={backups}")], b"");
    assert!(said.contains("backup 2") && said.contains("1 file shared"), "{said}");
    let listed = good(&["db", &backups, "backups", "--verify"], b"");
    assert!(listed.starts_with("1  20") && listed.contains("first\\u{1b}\n2  20"), "{listed}");
    assert_eq!(listed.matches("  verified").count(), 2);
    for (id, value) in [("--id=1", "1\n"), ("--id=2", "2\n")] {
        let said = good(&["db", &db, "restore", &backups, id], b"");
        assert!(said.starts_with("OK: ") && said.contains("has backup "), "{said}");
        assert_eq!(good(&["db", &db, "get", "k"], b""), value);
    }
    let copy = dir.path().join("copy").display().to_string();
    good(&["db", &copy, "restore", &backups, "--num_threads=2"], b"");
    assert_eq!(good(&["db", &copy, "get", "k"], b""), "2\n");
    let said = good(&["db", &db, "backup", &backups, "--keep=2"], b"");
    assert!(said.ends_with("1 old backup deleted\n"), "{said}");
    std::fs::remove_file(dir.path().join("backups/private/3/CURRENT")).unwrap();
    let ran = ashlar(&["db", &backups, "backups"], b"");
    assert!(ran.status == 1 && ran.out.contains("3  damaged: ") && ran.out.contains("CURRENT"), "{ran:?}");
    let ran = ashlar(&["db", &copy, "restore", &backups, "--id=3"], b"");
    assert!(ran.status == 1 && ran.err.contains("CURRENT"), "{ran:?}");
    let ran = ashlar(&["db", &db, "restore"], b"");
    assert_eq!(ran.status, 2, "{ran:?}");
}

#[test]
fn a_file_is_written_and_ingested_under_ldbs_names_too() {
    let (dir, db) = place();
    let file = dir.path().join("file.sst");
    let path = file.to_string_lossy().into_owned();
    good(&["db", &db, "put", "--create_if_missing", "b", "old"], b"");
    let said = good(&["db", &db, "write_sst", &path], b"a ==> 1\nb ==> 2\n");
    assert!(said.starts_with("OK: ") && said.contains("2 entries"), "{said}");
    let said = good(&["db", &db, "ingest_extern_sst", "--move_files", &path], b"");
    assert!(said.contains("in L") && said.ends_with("OK: 1 file ingested\n"), "{said}");
    assert!(!file.exists());
    assert_eq!(good(&["db", &db, "scan"], b""), "a ==> 1\nb ==> 2\n");
    for (input, why) in
        [(&b"b ==> 1\na ==> 2\n"[..], "comes after key b"), (b"a ==> 1\nnonsense\n", "line 2")]
    {
        let ran = ashlar(&["db", &db, "write_extern_sst", &path], input);
        assert!(ran.status == 1 && ran.err.contains(why), "{}", ran.err);
        assert!(!file.exists());
    }
    good(&["db", &db, "write_sst", &path], b"c ==> 3\n");
    let ran = ashlar(&["db", &db, "ingest", "--ingest_behind", &path], b"");
    assert!(ran.status == 1 && ran.err.contains("keeps no level"), "{}", ran.err);
    std::fs::write(&file, b"no table").unwrap();
    let ran = ashlar(&["db", &db, "ingest", &path], b"");
    assert!(ran.status == 1 && ran.err.contains("file.sst"), "{}", ran.err);
}
