//! `ashlar db explain`.

use super::good;

/// What is said, without the times, and with a hash for each run of digits behind "table " and "reads of ".
fn explained(db: &str, words: &[&str]) -> String {
    let said = good(&[&["db", db, "explain"], words].concat(), b"");
    let mut out = String::new();
    for line in said.lines().filter(|line| !line.starts_with("time: ")) {
        let mut line = line.to_owned();
        for mark in [" table ", " reads of "] {
            let Some(at) = line.find(mark).map(|at| at + mark.len()) else { continue };
            let digits = line[at..].bytes().take_while(u8::is_ascii_digit).count();
            if digits > 0 {
                line.replace_range(at..at + digits, "#");
            }
        }
        out += line.split_whitespace().collect::<Vec<_>>().join(" ").as_str();
        out.push('\n');
    }
    out
}

#[test]
fn a_read_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let db = format!("--db={}", dir.path().join("db").display());
    let lines: String = (0..2000).map(|n| format!("key{n:04}\tvalue {n}\n")).collect();
    good(&["db", &db, "load", "--tsv", "--create_if_missing", "--compact"], lines.as_bytes());
    good(&["db", &db, "put", "key0001", "newer"], b"");
    good(&["db", &db, "delete", "key0002"], b"");
    // The opens in between have flushed the put; the delete is in the log still.
    assert_eq!(
        explained(&db, &["key1000"]),
        "get 'key1000' at sequence 2002\n\
         memtable no entry\n\
         level 6 table # filter: it may be there; blocks: 0 from the cache, 1 read; value of 10 bytes at sequence 0\n\
         level 0 1 table not asked: the key is outside of their bounds\n\
         found: a value of 10 bytes\n\
         cost: 1 blocks touched, 0 from the cache; 1 reads of # bytes; filters: 0 no, 1 maybe\n"
    );
    assert_eq!(
        explained(&db, &["key0001"]),
        "get 'key0001' at sequence 2002\n\
         memtable no entry\n\
         level 0 table # filter: it may be there; blocks: 0 from the cache, 1 read; value of 5 bytes at sequence 2001\n\
         found: a value of 5 bytes\n\
         cost: 1 blocks touched, 0 from the cache; 1 reads of # bytes; filters: 0 no, 1 maybe\n"
    );
    assert!(explained(&db, &["key0002"]).contains("memtable tombstone at sequence 2002\n"));
    let absent = explained(&db, &["key0500x"]);
    assert!(absent.contains("filter: it is not there\n") && absent.contains("\nnot found\n"), "{absent}");
    assert!(
        explained(&db, &["zzz"]).contains("level 6 1 table not asked: the key is outside of their bounds\n")
    );
    let scan = explained(&db, &["key0000..key0010"]);
    let told = [
        "scan 'key0000'..'key0010' at sequence 2002\n",
        "memtables 1 with entries\n",
        "level 6 1 of 1 table within the bounds\n",
        "shown: 9 keys, ",
        " bytes, to the end of the range\n",
        "passed: 1 older versions, 2 deleted, 0 newer than the read; 0 operands folded; 0 jumps over deleted ranges\n",
    ];
    for part in told {
        assert!(scan.contains(part), "{part:?} in {scan}");
    }
    assert!(explained(&db, &["..", "--max_keys=5"]).contains("shown: 5 keys, "));
    assert!(explained(&db, &["a..b", "--key"]).contains("get 'a..b'"));
}
