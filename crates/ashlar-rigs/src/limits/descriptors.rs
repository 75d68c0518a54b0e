//! No descriptor is left: calls that need one fail and say so, and other calls work. When descriptors are free again,
//! writes resume in the same handle.

use super::store::{Known, flush, open};
use super::{Case, expect};
use ashlar_base::ErrorKind;
use ashlar_engine::health::{Health, Severity};
use ashlar_testkit::Rng;
use ashlar_testkit::children::answer;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::path::Path;

/// In a separate process, because the limit is one of the process.
pub(super) fn exhausted(case: &mut Case<'_>) -> Result<(), String> {
    let (dir, seed) = (case.folder.join("db"), case.seed.to_string());
    let said = answer(case.budget, &["limits", "descriptors", &dir.to_string_lossy(), &seed])?;
    let writes: u64 = said.trim().parse().map_err(|_| said)?;
    case.report.count("writes acknowledged around a lack of descriptors", writes);
    Ok(())
}

fn limit(most: Option<u64>) -> Result<(), String> {
    let now = getrlimit(Resource::Nofile);
    let current = most.or(now.maximum);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current, ..now }).map_err(|e| e.to_string())
}

/// Descriptors in use.
fn used() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64
}

/// The case. Prints how many writes were acknowledged.
///
/// # Errors
/// What does not hold.
pub(super) fn child(dir: &Path, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut known = Known::default();
    let db = open(dir).map_err(|e| e.to_string())?;
    known.fill(&db, "first", 2000, &mut rng).map_err(|e| e.to_string())?;
    for round in 0..3 {
        limit(Some(used() + round))?;
        // With no descriptor to have, sooner or later a log or a table cannot be made.
        let refused =
            (0..3000).find_map(|number| known.put(&db, format!("short {round} {number:06}"), &mut rng).err());
        let flushed = flush(&db);
        if let Some(e) = refused {
            let told = matches!(e.kind(), ErrorKind::Io(_) | ErrorKind::Indeterminate | ErrorKind::Busy(_));
            expect(told, || format!("refused for another reason: {e}"))?;
        }
        known.check(&db).or_else(|e| if e.starts_with("a read: ") { Ok(()) } else { Err(e) })?;
        limit(None)?;
        drop(flushed);
        known.until_taken(&db, &format!("again {round}"), &mut rng)?;
        db.resume().map_err(|e| format!("with descriptors: {e}"))?;
        flush(&db).map_err(|e| format!("with descriptors: {e}"))?;
        known.check(&db)?;
    }
    db.wait_for_background().map_err(|e| e.to_string())?;
    let Health { severity, cause, .. } = db.health();
    expect(severity == Severity::Healthy, || format!("stays {severity:?}: {cause:?}"))?;
    db.close().map_err(|e| e.to_string())?;
    drop(db);
    known.check(&open(dir).map_err(|e| format!("opened again: {e}"))?)?;
    // An open with too few descriptors fails, and changes nothing.
    let free = used() - 1;
    for few in 0..8 {
        limit(Some(free + few))?;
        let refused = open(dir).err().map(|e| e.kind());
        limit(None)?;
        let lawful = matches!(refused, None | Some(ErrorKind::Io(_))) && (few > 0 || refused.is_some());
        expect(lawful, || format!("an open with {few} descriptors: {refused:?}"))?;
        known.check(&open(dir).map_err(|e| format!("opened behind that: {e}"))?)?;
    }
    println!("{}", known.there.len());
    Ok(())
}
