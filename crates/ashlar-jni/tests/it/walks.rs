//! A walk through the interface, under each generation of jars.

use crate::java::{JARS, Program, ours};
use ashlar_testkit::judge::place;
use ashlar_testkit::report::figure;

fn assert_same(jar: &str, theirs: &str, here: &str) {
    let wrong: Vec<String> = theirs
        .lines()
        .zip(here.lines())
        .filter(|(their, our)| their != our)
        .map(|(their, our)| format!("{jar}: over RocksDB '{their}', here '{our}'"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(theirs.lines().count(), here.lines().count(), "{jar}");
}

#[test]
fn both_native_halves_say_the_same_under_each_jar() {
    let test = "both_native_halves_say_the_same_under_each_jar";
    let program = match Program::compile("Walk") {
        Ok(program) => program,
        Err(skip) => return skip.announce(test),
    };
    let mut lines = 0;
    for name in JARS {
        let jar = match place(name) {
            Ok(jar) => jar,
            Err(skip) => return skip.announce(test),
        };
        let here = program.run(&jar, Some(&ours()), &[]);
        assert_same(name, &program.run(&jar, None, &[]), &here);
        lines = here.lines().count();
    }
    figure(&format!(
        "Walk.java: {lines} lines, the same over RocksDB's native half and ours under {} jars",
        JARS.len()
    ));
}

#[test]
fn the_jvm_checks_each_call() {
    let program = match Program::compile("Walk").and_then(|program| Ok((program, place(JARS[4])?))) {
        Ok(found) => found,
        Err(skip) => return skip.announce("the_jvm_checks_each_call"),
    };
    let (program, jar) = program;
    let said = program.run(&jar, Some(&ours()), &["-Xcheck:jni"]);
    let complaints: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("WARNING") || line.contains("Warning") || line.contains("FATAL"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(said.ends_with("end\n"), "{said}");
}
