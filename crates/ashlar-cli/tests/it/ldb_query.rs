//! ldb's query, which takes commands from standard input, and multi_get_entity.

use super::ldb::{place, run};
use super::program;
use ashlar_testkit::Tools;
use std::path::Path;

const COMMANDS: &str = "\
help
put a 1
put b 2
get a
get none
put a b c
delete a
delete none
get a

foo bar
count
count --from=b --to=c
count --to=b
count x
get
quit
put after quit
";

const ANSWERS: &str = "\
get <key>
put <key> <value>
delete <key>
count [--from=<key>] [--to=<key>]
quit
put a => 1 succeeded
put b => 2 succeeded
a ==> 1
get none status: NotFound: 
put gets invalid arguments
delete a succeeded
delete none succeeded
get a status: NotFound: 
Bad command
Unknown command foo bar
1
1
0
count gets invalid arguments
get gets invalid arguments
";

#[test]
fn lines_are_commands() {
    let (dir, ldb) = place();
    let flag = format!("--db={}", dir.path().join("db").display());
    let asked = program(&ldb, &[&flag, "query"], COMMANDS.as_bytes());
    assert!(
        asked.status == 1 && asked.out.is_empty() && asked.err.contains("create_if_missing"),
        "{asked:?}"
    );
    let asked = program(&ldb, &[&flag, "query", "--create_if_missing"], COMMANDS.as_bytes());
    assert_eq!((asked.status, asked.out.as_str(), asked.err.as_str()), (0, ANSWERS, ""));
    // A last line without its end counts, and a damaged line ends nothing.
    let asked = program(&ldb, &[&flag, "query", "--hex"], b"get 62\nput 0x62 33\nput 0x00 0xFF\nget 0x62");
    let said = "get gets invalid argument: Invalid hex input 62: it must start with 0x\n\
                put gets invalid argument: Invalid hex input 33: it must start with 0x\n\
                put 0x00 => 0xFF succeeded\n0x62 ==> 0x32\n";
    assert_eq!((asked.status, asked.out.as_str()), (0, said), "{asked:?}");
    let asked = program(&ldb, &[&flag, "scan", "--hex"], b"");
    assert_eq!(asked.out, "0x00 ==> 0xFF\n0x62 ==> 0x32\n");
    assert_eq!(program(&ldb, &[&flag, "query", "--column_family=none"], b"").status, 1);
}

/// Both programs run the same lines. The answers of RocksDB 11 have other words than those of 7.8.3; the databases are equal.
#[test]
fn databases_are_those_of_rocksdbs_query() {
    if let Err(skip) = Tools::available() {
        return skip.announce("databases_are_those_of_rocksdbs_query");
    }
    let (dir, ours) = place();
    let (a, b) = (dir.path().join("a"), dir.path().join("b"));
    for (ldb, db) in [(&*ours, &a), (Path::new("ldb"), &b)] {
        assert_eq!(run(ldb, db, "put first 0 --create_if_missing").status, 0);
        let flag = format!("--db={}", db.display());
        let ran = program(ldb, &[&flag, "query"], b"put a 1\nput b 2\nget a\ndelete b\nput c 3\nget c\n");
        let gets: Vec<&str> = ran.out.lines().filter(|line| line.contains("==>")).collect();
        assert_eq!((ran.status, gets), (0, vec!["a ==> 1", "c ==> 3"]), "{ran:?}");
    }
    assert_eq!(run(&ours, &a, "rewrite --level=rocksdb-7.8").status, 0);
    for (ldb, db) in [(Path::new("ldb"), &a), (&*ours, &b)] {
        assert_eq!(run(ldb, db, "dump").out, "a ==> 1\nc ==> 3\nfirst ==> 0\nKeys in range: 3\n");
    }
}

#[test]
fn rows_of_several_keys() {
    let (dir, ldb) = place();
    let db = dir.path().join("db");
    for line in ["put_entity row :v name:Ada --create_if_missing", "put plain 1"] {
        assert_eq!(run(&ldb, &db, line).status, 0, "{line}");
    }
    let rows = run(&ldb, &db, "multi_get_entity row none plain");
    let said = "row ==> :v name:Ada\nKey not found: none\nplain ==> :1\n";
    assert_eq!((rows.status, rows.out.as_str()), (0, said), "{rows:?}");
    let rows = run(&ldb, &db, "multi_get_entity --hex 0x706C61696E 0x00");
    assert_eq!(rows.out, "0x706C61696E ==> :0x31\nKey not found: 0x00\n");
    assert_eq!(run(&ldb, &db, "multi_get_entity").status, 2);
    assert_eq!(run(&ldb, &db, "multi_get_entity --hex 61").status, 2);
}
