//! Objects that a program uses wrongly: no case ends the JVM.

use crate::java::{JARS, Program, ours};
use ashlar_testkit::report::figure;

/// Cases that must throw, by the beginnings of their lines: an answer would be a wrong one.
const MUST_THROW: [&str; 7] = [
    "get after close",
    "put after close",
    "batch after close",
    "write closed batch",
    "family of another database",
    "null key",
    "a comparator throws in a get",
];

/// Lines that each run must print.
const EXACT: [&str; 29] = [
    "undeclared lock timeout: throws UnsupportedOperationException",
    "undeclared WAL filter: throws UnsupportedOperationException",
    "operations in the batch of the commit: throws RocksDBException",
    "an iterator of a reader without a file: throws IllegalArgumentException",
    "an iterator of a closed reader: answers a",
    "a closed reader: throws RocksDBException",
    "memory of a closed database: throws IllegalStateException",
    "a closed table filter throws: answers a",
    "a closed notifier throws: answers true",
    "undeclared clear of the batch of a transaction: throws UnsupportedOperationException",
    "undeclared empty delimiter: throws IllegalArgumentException",
    "undeclared number of a closed transaction: throws IllegalStateException",
    "a comparator throws in a put of a batch: throws RocksDBException",
    "the batch afterwards: answers 2",
    "a put afterwards: answers 3",
    "entries afterwards: answers abd",
    "a scan over the batch afterwards: answers a b base d ",
    "a comparator throws in a rollback of a batch: throws RocksDBException",
    "a read after the rollback: answers true",
    "a clear afterwards: answers 0",
    "a comparator that calls its batch: answers IllegalArgumentException",
    "an iterator that a comparator puts under its batch: answers IllegalArgumentException",
    "that iterator afterwards: answers true",
    "searches of two threads that missed: answers 0",
    "prepared transactions of two threads: answers 300",
    "marks of a prepared transaction: throws UnsupportedOperationException",
    "an entity in a handler: throws RocksDBException",
    "updates of prepared transactions: answers put commit value, ",
    "open objects are the same: answers yes",
];

/// The number of cases.
const CASES: usize = 89;

#[test]
fn no_wrong_use_ends_the_jvm() {
    let test = "no_wrong_use_ends_the_jvm";
    let (program, jar) = match Program::with_jar("Misuse", JARS[0]) {
        Ok(found) => found,
        Err(skip) => return skip.announce(test),
    };
    for words in [&[][..], &["-Xcheck:jni"]] {
        let said = program.run(&jar, Some(&ours()), words);
        assert!(said.ends_with("end\n"), "{said}");
        let bad: Vec<&str> =
            said.lines().filter(|line| line.contains("WARNING") || line.contains("FATAL")).collect();
        assert!(bad.is_empty(), "{bad:?}");
        for case in MUST_THROW {
            let line = said.lines().find(|line| line.starts_with(case));
            assert!(line.is_some_and(|line| line.contains(": throws ")), "{case}: {line:?}");
        }
        let lines: Vec<&str> = said.lines().collect();
        let missing: Vec<&&str> = EXACT.iter().filter(|line| !lines.contains(*line)).collect();
        assert!(missing.is_empty(), "{missing:?} in {said}");
        let cases = said.lines().find_map(|line| line.strip_prefix("cases ")).unwrap();
        assert_eq!(cases.parse::<usize>().unwrap(), CASES, "{said}");
        figure(&format!("Misuse.java: {cases} cases of wrong use, no JVM ended ({words:?})"));
    }
}
