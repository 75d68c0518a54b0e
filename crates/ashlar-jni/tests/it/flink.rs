//! Flink's compaction filter, and Flink itself, over both native halves.

use crate::engine::Engine;
use crate::java::{FLINKS_JAR, Program, ours};
use crate::walks::assert_same;
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::figure;
use std::path::PathBuf;

fn filter() -> Result<(Program, PathBuf), Skip> {
    Ok((Program::compile_with("Flink", FLINKS_JAR)?, place(FLINKS_JAR)?))
}

/// The keys in a line `START{KEY=VALUE, ...}`.
fn keys<'a>(said: &'a str, start: &str) -> Vec<&'a str> {
    let line = said.lines().find_map(|line| line.strip_prefix(start)).unwrap_or_default();
    let entries = line.trim_matches(['{', '}']).split(", ");
    entries.map(|entry| entry.split('=').next().unwrap_or_default()).collect()
}

/// The sorted keys that `Flink.java` writes with times, of which a time to live of 100 keeps these. Too short values stay.
fn unexpired(now: i64) -> Vec<String> {
    let written = [i64::MIN, -1, 0, 899, 900, 901, 1099, 1100, 1101, i64::MAX];
    let live = written.into_iter().filter(|at| at.saturating_add(100) > now);
    let mut keys: Vec<String> = live.map(|at| format!("at{at}")).collect();
    keys.extend(["empty".to_owned(), "short".to_owned()]);
    keys.sort();
    keys
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
    for (name, now) in
        [("value", 1000), ("value", 1200), ("map", 1000), ("map", 1200), ("logged before", 1000)]
    {
        assert_eq!(keys(&here, &format!("{name} at {now}: ")), unexpired(now), "{name} at {now}");
    }
    assert_eq!(keys(&here, "whole list at 1000: "), ["none expired", "one", "short"]);
    assert_eq!(keys(&here, "whole list at 1200: "), ["none expired", "short"]);
    for (every, asked) in [(0, 200), (1, 200), (7, 29), (100, 2), (i64::MAX, 1)] {
        let line = format!("every {every}: asked {asked}, left {{}}\n");
        assert!(here.contains(&line), "{line}{here}");
    }
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

/// 1,000 keys with old state, of which 500 get new state and the others expire; a map has an old, a new and a common entry.
const TTL: [&str; 12] = [
    "ttl: value has 1000 entries of 14890 bytes",
    "ttl: fixed has 1000 entries of 50000 bytes",
    "ttl: texts has 1000 entries of 62000 bytes",
    "ttl: map has 2000 entries of 34000 bytes",
    "ttl: entries 5000",
    "ttl: value has after the compaction 500 entries of 8000 bytes",
    "ttl: fixed has after the compaction 500 entries of 25000 bytes",
    "ttl: texts has after the compaction 500 entries of 31000 bytes",
    "ttl: map has after the compaction 1000 entries of 17000 bytes",
    "ttl: entries after compactions 2500",
    "ttl: key 500 reads null, [], null",
    "end",
];

/// Keyed state, checkpoints, savepoints, timers and expiring state in a cluster of Flink.
#[test]
fn flink_says_the_same_over_both_halves() {
    match Engine::build("flink") {
        Ok(flink) => {
            let said = flink.both_say_the_same(&["5000"]);
            let lines: Vec<&str> = said.lines().collect();
            let plain = lines[0].strip_prefix("plain: ").unwrap();
            assert!(plain.starts_with("rows 250, digest "), "{plain}");
            let jobs = [
                "plain",
                "failure: restored 1, incremental true",
                "savepoint CANONICAL 2 to 2: imports 0",
                "savepoint NATIVE 2 to 2: imports 0",
                "savepoint NATIVE 2 to 3: imports 0",
                "savepoint NATIVE 2 to 3: imports 2",
                "savepoint NATIVE 2 to 1: imports 2",
                "retained checkpoint 2 to 4",
            ];
            for (line, job) in lines.iter().zip(jobs) {
                assert!(line.starts_with(job) && line.ends_with(plain), "{line} is not {job} with {plain}");
            }
            assert_eq!(lines[jobs.len()..], TTL, "{said}");
        }
        Err(skip) => skip.announce("flink_says_the_same_over_both_halves"),
    }
}
