//! A walk through the interface, under each generation of jars.

use crate::java::{JARS, Program, ours};
use ashlar_testkit::judge::place;
use ashlar_testkit::report::figure;

/// Asserts that both halves said the same lines.
pub fn assert_same(jar: &str, theirs: &str, here: &str) {
    let wrong: Vec<String> = theirs
        .lines()
        .zip(here.lines())
        .filter(|(their, our)| their != our)
        .map(|(their, our)| format!("{jar}: over RocksDB '{their}', here '{our}'"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(theirs.lines().count(), here.lines().count(), "{jar}");
}

/// Runs a program over both native halves under each of the jars that are there.
pub fn both_say_the_same(test: &str, name: &'static str, jars: &[&str]) {
    let program = match Program::compile_with(name, jars[0]) {
        Ok(program) => program,
        Err(skip) => return skip.announce(test),
    };
    let (mut lines, mut compared) = (0, 0);
    for jar_name in jars {
        let jar = match place(jar_name) {
            Ok(jar) => jar,
            // The other jars are compared all the same.
            Err(skip) => {
                skip.announce(test);
                continue;
            }
        };
        let here = program.run(&jar, Some(&ours()), &[]);
        assert_same(jar_name, &program.run(&jar, None, &[]), &here);
        assert!(here.ends_with("end\n"), "{here}");
        (lines, compared) = (here.lines().count(), compared + 1);
    }
    figure(&format!(
        "{name}.java: {lines} lines, the same over RocksDB's native half and ours under {compared} jars"
    ));
}

#[test]
fn both_native_halves_say_the_same_under_each_jar() {
    both_say_the_same("both_native_halves_say_the_same_under_each_jar", "Walk", &JARS);
}

#[test]
fn both_native_halves_share_and_lend_alike() {
    both_say_the_same("both_native_halves_share_and_lend_alike", "Shared", &JARS);
}

/// Jars have a perf context since 8.8.
#[test]
fn both_native_halves_count_for_a_thread_alike() {
    both_say_the_same("both_native_halves_count_for_a_thread_alike", "Perf", &JARS[2..4]);
}

#[test]
fn both_native_halves_read_tables_alike() {
    both_say_the_same("both_native_halves_read_tables_alike", "Tables", &JARS);
}

/// Jars before 9.8 lack some of the methods.
#[test]
fn both_native_halves_tell_a_program_the_same() {
    both_say_the_same("both_native_halves_tell_a_program_the_same", "Says", &JARS[2..]);
}

/// What a callback on a thread of the engine makes in Java ends with the callback.
#[test]
fn callbacks_leave_nothing_behind_on_threads_of_the_engine() {
    let (program, jar) = match Program::with_jar("Frames", JARS[2]) {
        Ok(found) => found,
        Err(skip) => return skip.announce("callbacks_leave_nothing_behind_on_threads_of_the_engine"),
    };
    let said = program.run(&jar, Some(&ours()), &["-Xcheck:jni", "-XX:MaxDirectMemorySize=1m"]);
    let complaints: Vec<&str> =
        said.lines().filter(|line| line.contains("WARNING") || line.contains("JNI local refs")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(said.ends_with("keys 1500\nkeys 1500\nheard true\nend\n"), "{said}");
}

#[test]
fn the_jvm_checks_each_call() {
    let (program, jar) = match Program::with_jar("Walk", JARS[4]) {
        Ok(found) => found,
        Err(skip) => return skip.announce("the_jvm_checks_each_call"),
    };
    let said = program.run(&jar, Some(&ours()), &["-Xcheck:jni"]);
    let complaints: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("WARNING") || line.contains("Warning") || line.contains("FATAL"))
        .collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    assert!(said.ends_with("end\n"), "{said}");
}
