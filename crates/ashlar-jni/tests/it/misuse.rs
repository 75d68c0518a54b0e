//! Objects that a program uses wrongly: no case ends the JVM.

use crate::java::{JARS, Program, ours};
use ashlar_testkit::judge::place;
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

#[test]
fn no_wrong_use_ends_the_jvm() {
    let test = "no_wrong_use_ends_the_jvm";
    let (program, jar) = match Program::compile("Misuse").and_then(|program| Ok((program, place(JARS[0])?))) {
        Ok(found) => found,
        Err(skip) => return skip.announce(test),
    };
    for words in [&[][..], &["-Xcheck:jni"]] {
        let said = program.run(&jar, Some(&ours()), words);
        assert!(said.ends_with("end\n"), "{said}");
        let bad: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("WARNING in native") || line.contains("FATAL"))
            .collect();
        assert!(bad.is_empty(), "{bad:?}");
        for case in MUST_THROW {
            let line = said.lines().find(|line| line.starts_with(case));
            assert!(line.is_some_and(|line| line.contains(": throws ")), "{case}: {line:?}");
        }
        let cases = said.lines().find_map(|line| line.strip_prefix("cases ")).unwrap_or("0");
        figure(&format!("Misuse.java: {cases} cases of wrong use, no JVM ended ({words:?})"));
    }
}
