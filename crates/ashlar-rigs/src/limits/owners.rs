//! One owner per directory, in every process and under every name of the directory.

use super::store::{Known, open};
use super::{Case, expect};
use ashlar_base::ErrorKind;
use ashlar_base::error::BusyKind;
use ashlar_testkit::Rng;
use ashlar_testkit::children::{Ended, Running, answer};
use ashlar_testkit::harm::HANG;
use std::path::Path;
use std::time::{Duration, Instant};

const LOCKED: ErrorKind = ErrorKind::Busy(BusyKind::Locked);

/// What another process says about opening a directory: "opened", or "refused: …".
fn elsewhere(case: &Case<'_>, dir: &Path) -> Result<String, String> {
    answer(case.budget, &["limits", "open", &dir.to_string_lossy()])
}

fn refused(said: &str, pid: &str) -> Result<(), String> {
    let names = said.starts_with("refused: Resource busy") && said.contains(pid) && said.contains("LOCK");
    expect(names, || format!("expected a refusal that names {pid}: {said}"))
}

/// A second open is refused here and in other processes, under every name, and gives nothing up.
pub(super) fn one_owner(case: &mut Case<'_>) -> Result<(), String> {
    let (real, alias) = (case.folder.join("db"), case.folder.join("alias"));
    let db = open(&real).map_err(|e| e.to_string())?;
    std::os::unix::fs::symlink(&real, &alias).map_err(|e| e.to_string())?;
    let mut known = Known::default();
    known.put(&db, "before".to_owned(), &mut Rng::new(case.seed)).map_err(|e| e.to_string())?;
    let pid = std::process::id().to_string();
    for path in [&real, &alias, &real.join("../alias/.")] {
        match open(path) {
            Ok(_) => return Err(format!("opened twice, the second time as {}", path.display())),
            Err(e) => {
                expect(e.kind() == LOCKED, || e.to_string())?;
                refused(&format!("refused: {e}"), &pid)?;
            }
        }
    }
    for path in [&real, &alias] {
        refused(&elsewhere(case, path)?, &pid)?;
    }
    known.put(&db, "after".to_owned(), &mut Rng::new(case.seed)).map_err(|e| e.to_string())?;
    db.close().map_err(|e| e.to_string())?;
    for path in [&real, &alias] {
        let said = elsewhere(case, path)?;
        expect(said.starts_with("opened"), || format!("closed, and yet: {said}"))?;
    }
    known.check(&open(&alias).map_err(|e| e.to_string())?)
}

/// A LOCK that was removed, or removed and made again, lets nothing in as long as the database is open.
pub(super) fn lock_removed(case: &mut Case<'_>) -> Result<(), String> {
    let dir = case.folder.join("db");
    let db = open(&dir).map_err(|e| e.to_string())?;
    let mut known = Known::default();
    let mut rng = Rng::new(case.seed);
    for made_again in [false, true] {
        std::fs::remove_file(dir.join("LOCK")).map_err(|e| e.to_string())?;
        if made_again {
            std::fs::write(dir.join("LOCK"), "").map_err(|e| e.to_string())?;
        }
        match open(&dir) {
            Ok(_) => return Err("opened twice, without LOCK".to_owned()),
            Err(e) => expect(e.kind() == LOCKED, || e.to_string())?,
        }
        let said = elsewhere(case, &dir)?;
        expect(said.starts_with("refused: Resource busy"), || format!("without LOCK: {said}"))?;
        if !made_again {
            std::fs::write(dir.join("LOCK"), "").map_err(|e| e.to_string())?;
        }
        known.fill(&db, &format!("{made_again}"), 1000, &mut rng).map_err(|e| e.to_string())?;
    }
    db.close().map_err(|e| e.to_string())?;
    known.check(&open(&dir).map_err(|e| e.to_string())?)
}

/// A process that has it open keeps us out as long as it lives, and no longer.
pub(super) fn living_and_killed(case: &mut Case<'_>) -> Result<(), String> {
    let dir = case.folder.join("db");
    let mut owner = Running::start(case.budget, &["limits", "hold", &dir.to_string_lossy()])?;
    let began = Instant::now();
    // Before the first MANIFEST is there an open of ours could come first.
    while !dir.join("CURRENT").exists() {
        expect(began.elapsed() < Duration::from_secs(60), || format!("{HANG}the owner does not open"))?;
        expect(owner.wait(Duration::from_millis(5))? == Ended::NotYet, || "the owner died".to_owned())?;
    }
    match open(&dir) {
        Ok(_) => return Err("opened beside a living process".to_owned()),
        Err(e) => refused(&format!("refused: {e}"), &owner.id().to_string())?,
    }
    owner.kill()?;
    open(&dir).map(drop).map_err(|e| format!("the owner was killed, and yet: {e}"))
}

/// A process that is started while a database is open inherits none of its files, and does not keep it locked after the close.
pub(super) fn started_meanwhile(case: &mut Case<'_>) -> Result<(), String> {
    let dir = case.folder.join("db");
    let db = open(&dir).map_err(|e| e.to_string())?;
    let mut known = Known::default();
    let filled = known.fill(&db, "key", 1000, &mut Rng::new(case.seed));
    filled.map_err(|e| e.to_string())?;
    let mut child = Running::start(case.budget, &["limits", "rest"])?;
    child.wait(Duration::from_millis(100))?;
    let inherited = std::fs::read_dir(format!("/proc/{}/fd", child.id())).map_err(|e| e.to_string())?;
    for fd in inherited {
        let target = fd.and_then(|fd| std::fs::read_link(fd.path())).unwrap_or_default();
        expect(!target.starts_with(case.folder), || format!("inherited: {}", target.display()))?;
    }
    db.close().map_err(|e| e.to_string())?;
    drop(db);
    let said = elsewhere(case, &dir)?;
    expect(said.starts_with("opened"), || format!("a child lives on, and so does the lock: {said}"))?;
    known.check(&open(&dir).map_err(|e| e.to_string())?)?;
    child.kill()
}

/// A close gives descriptors and threads back.
pub(super) fn closed(case: &mut Case<'_>) -> Result<(), String> {
    let said = answer(case.budget, &["limits", "churn", &case.folder.to_string_lossy()])?;
    let numbers: Vec<&str> =
        said.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty()).collect();
    let (before, after) = numbers.split_at(numbers.len() / 2);
    expect(before == after && before.len() == 2, || format!("descriptors and threads before, after: {said}"))
}
