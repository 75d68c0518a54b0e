//! The roles of child processes in a case.

use super::store::{Known, open};
use super::{descriptors, folders};
use ashlar_testkit::Rng;
use std::path::Path;
use std::time::{Duration, Instant};

/// `hold DIR` opens and waits to be killed; `rest` only waits; `open DIR` says how the open went; `churn DIR` opens, fills
/// and closes again and again, and says how many descriptors and threads it had before and after; `descriptors DIR SEED` is
/// a case of its own, and so is `chdir DIR SEED`.
///
/// # Errors
/// What failed.
pub fn play(words: &[&str]) -> Result<(), String> {
    match words {
        ["hold", dir] => {
            let _db = open(Path::new(dir)).map_err(|e| e.to_string())?;
            rest()
        }
        ["rest"] => rest(),
        ["open", dir] => {
            match open(Path::new(dir)) {
                Ok(_) => println!("opened"),
                Err(e) => println!("refused: {e}"),
            }
            Ok(())
        }
        ["chdir", dir, seed] => folders::change_directories(Path::new(dir), seed.parse().unwrap_or(0)),
        ["churn", dir] => churn(Path::new(dir)),
        ["descriptors", dir, seed] => descriptors::child(Path::new(dir), seed.parse().unwrap_or(0)),
        _ => Err(format!("no such role: {words:?}")),
    }
}

fn rest() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn churn(dir: &Path) -> Result<(), String> {
    let count = |what: &str| std::fs::read_dir(format!("/proc/self/{what}")).map_or(0, Iterator::count);
    let before = (count("fd"), count("task"));
    let mut rng = Rng::new(1);
    for round in 0..10 {
        let db = open(dir).map_err(|e| e.to_string())?;
        let filled = Known::default().fill(&db, &format!("round {round}"), 1500, &mut rng);
        filled.map_err(|e| e.to_string())?;
        let kept = (db.clone(), db.family("default"), db.snapshot());
        db.close().map_err(|e| e.to_string())?;
        drop(kept);
    }
    // The thread of the last job ends a moment after the close that waited for the job.
    let began = Instant::now();
    while (count("fd"), count("task")) != before && began.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    println!("{before:?} {:?}", (count("fd"), count("task")));
    Ok(())
}
