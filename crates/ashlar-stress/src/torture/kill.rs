//! Starts the processes of a case, and kills them.

use super::child::ANYWHERE;
use super::points::Point;
use ashlar_testkit::Rng;
use ashlar_testkit::children::{Ended, Running};
use ashlar_testkit::harm::HANG;
use ashlar_testkit::suite::Budget;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How a process ends.
#[derive(Clone, Debug)]
pub(super) enum Kill {
    /// So long after it has begun.
    After(Duration),
    /// By itself, at a call; by the clock when the call does not come.
    At(Point, Duration),
}

impl Kill {
    /// One in three at a named call.
    pub(super) fn draw(rng: &mut Rng, millis: (usize, usize)) -> Kill {
        let time = Duration::from_millis(rng.between(millis.0, millis.1) as u64);
        if rng.percent(33) { Kill::At(Point::draw(rng), time * 3) } else { Kill::After(time) }
    }

    fn word(&self) -> String {
        match self {
            Kill::After(_) => ANYWHERE.to_owned(),
            Kill::At(point, _) => point.to_string(),
        }
    }

    /// The time after the first acknowledged operation.
    pub(super) fn time(&self) -> Duration {
        match self {
            Kill::After(time) | Kill::At(_, time) => *time,
        }
    }

    /// Lets a process go on until it has its end. The place of the call at which it killed itself.
    fn execute(&self, running: &mut Running) -> Result<Option<String>, String> {
        match (running.wait(self.time())?, self) {
            (Ended::Killed, Kill::At(point, _)) => Ok(Some(point.place())),
            (Ended::Killed, Kill::After(_)) => Err("another process killed a child".to_owned()),
            (Ended::NotYet, _) => running.kill().map(|()| None),
        }
    }
}

/// The facts about a killed process.
pub(super) struct Killed {
    /// Operations acknowledged, by writer.
    pub(super) floors: Vec<u64>,
    /// The named call, if it was at one.
    pub(super) at: Option<String>,
}

/// Writes in a process of its own until it is killed. The time runs from the first acknowledged operation.
pub(super) fn writers(
    budget: &Budget,
    dir: &Path,
    (seed, round): (u64, u64),
    writers: usize,
    kill: &Kill,
) -> Result<Killed, String> {
    let progress = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    let (path, file) = (dir.to_string_lossy(), progress.path().to_string_lossy());
    let role = ["torture-write", &path, &seed.to_string(), &round.to_string(), &file, &kill.word()];
    let mut running = Running::start(budget, &role)?;
    watched(&mut running, progress.as_file(), writers, |running| kill.execute(running))
}

/// Waits for the first acknowledged operation in `progress`, then lets `end` kill the process. A process that dies before
/// killed itself at a named call.
pub(super) fn watched(
    running: &mut Running,
    progress: &File,
    writers: usize,
    end: impl Fn(&mut Running) -> Result<Option<String>, String>,
) -> Result<Killed, String> {
    let floors = || -> Vec<u64> {
        let mut bytes = vec![0; writers * 8];
        // A file that is shorter has no number of the last writers yet.
        let _ = progress.read_at(&mut bytes, 0);
        bytes.as_chunks().0.iter().map(|count| u64::from_le_bytes(*count)).collect()
    };
    let began = Instant::now();
    let mut is_alive = true;
    while is_alive && floors().iter().all(|count| *count == 0) {
        is_alive = running.wait(Duration::ZERO)? == Ended::NotYet;
        if began.elapsed() > Duration::from_secs(120) {
            return Err(format!("{HANG}a child does not write"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let at = end(running)?;
    Ok(Killed { floors: floors(), at })
}

/// Recovers in a process of its own that is killed, in the recovery or right after it.
pub(super) fn recovery(
    budget: &Budget,
    dir: &Path,
    (seed, round): (u64, u64),
    kill: &Kill,
) -> Result<Option<String>, String> {
    let path = dir.to_string_lossy();
    let role = ["torture-recover", &path, &seed.to_string(), &round.to_string(), &kill.word()];
    kill.execute(&mut Running::start(budget, &role)?)
}
