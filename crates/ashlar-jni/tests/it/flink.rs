//! Flink's compaction filter, and Flink itself, over both native halves.

use crate::engine::{Engine, local_jar};
use crate::java::{Program, ours};
use crate::walks::assert_same;
use ashlar_testkit::judge::Skip;
use ashlar_testkit::report::figure;
use std::path::PathBuf;

fn filter() -> Result<(Program, PathBuf), Skip> {
    let jar = local_jar("com.ververica", "frocksdbjni", "8.10.0-ververica-1.0")?;
    Ok((Program::compile_under("Flink", &jar)?, jar))
}

#[test]
fn flinks_filter_removes_the_same_over_both_halves() {
    let (program, jar) = match filter() {
        Ok(found) => found,
        Err(skip) => return skip.announce("flinks_filter_removes_the_same_over_both_halves"),
    };
    let here = program.run(&jar, Some(&ours()), &[]);
    assert_same("frocksdbjni", &program.run(&jar, None, &[]), &here);
    assert!(here.ends_with("end\n"), "{here}");
    figure(&format!("Flink.java: {} lines, the same over both native halves", here.lines().count()));
}

/// Callbacks that throw, and answers that cannot be.
#[test]
fn flinks_filter_keeps_what_a_callback_fails_at() {
    let (program, jar) = match filter() {
        Ok(found) => found,
        Err(skip) => return skip.announce("flinks_filter_keeps_what_a_callback_fails_at"),
    };
    let said = program.run(&jar, Some(&ours()), &["-Dours=true", "-Xcheck:jni"]);
    let line = |start: &str| said.lines().find(|line| line.starts_with(start)).unwrap_or(start).to_owned();
    assert!(line("clock throws at 1200").contains("{a=0000000000000001"), "{said}");
    let kept = line("filter fault 5 at 1200");
    for fault in 0..5 {
        assert_eq!(
            line(&format!("filter fault {fault} at 1200")).replace(&format!("fault {fault}"), "fault 5"),
            kept
        );
    }
    assert!(kept.contains("all expired=000000000000000a"), "{kept}");
    assert_eq!(said.lines().filter(|line| line.starts_with("refused: ")).count(), 2, "{said}");
    let complaints: Vec<&str> = said.lines().filter(|line| line.contains("WARNING")).collect();
    assert!(complaints.is_empty() && said.ends_with("end\n"), "{complaints:?}\n{said}");
}

/// Keyed state, checkpoints, savepoints, timers and expiring state in a cluster of Flink.
#[test]
fn flink_says_the_same_over_both_halves() {
    match Engine::build("flink") {
        Ok(flink) => flink.both_say_the_same(&["5000"]),
        Err(skip) => skip.announce("flink_says_the_same_over_both_halves"),
    }
}
