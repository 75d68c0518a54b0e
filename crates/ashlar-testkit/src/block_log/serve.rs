//! The server process of the device: serves its file, records the calls, and fails those that a command selects.
//!
//! The process is separate from the database. If they were one process, a kill would hang for ever: a thread that waits for the
//! device keeps `/dev/fuse` open, and no thread is left to answer it. So this process answers as long as the device is open;
//! when it ends, all calls of the other processes fail.
//!
//! ```text
//! fail WRITES FLUSHES FROM SEED    of a hundred each, how many; writes from that offset on
//! ```
//! Standard input has the commands; each is answered with a line. At its end the parent process is dead: no call fails any
//! more, so that everything can be unmounted.

use super::fuse::{Answer, Connection, Request};
use super::image::tear;
use super::log::Recorder;
use super::places;
use crate::Rng;
use std::fs::File;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which calls fail.
struct Faults {
    writes_percent: usize,
    flushes_percent: usize,
    from: u64,
    rng: Rng,
}

impl Faults {
    fn none() -> Faults {
        Faults { writes_percent: 0, flushes_percent: 0, from: 0, rng: Rng::new(0) }
    }

    fn parse(words: &str) -> Option<Faults> {
        let mut numbers = words.split(' ').map(|word| word.parse::<u64>().ok());
        let mut next = || numbers.next().flatten();
        let percent = |n: u64| usize::try_from(n).ok();
        let (writes_percent, flushes_percent) = (percent(next()?)?, percent(next()?)?);
        Some(Faults { writes_percent, flushes_percent, from: next()?, rng: Rng::new(next()?) })
    }
}

type Shared = Arc<Mutex<Faults>>;

fn locked(faults: &Shared) -> MutexGuard<'_, Faults> {
    faults.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves the device in `folder` until its file is unmounted.
///
/// # Errors
/// The kernel's, in words.
pub fn serve(folder: &Path) -> Result<(), String> {
    let said = |e: io::Error| format!("the device over FUSE: {e}");
    let mut device = std::fs::read(folder.join(places::BASE)).map_err(said)?;
    let mut recorder = Recorder::new(File::create(folder.join(places::LOG)).map_err(said)?);
    let faults = Arc::new(Mutex::new(Faults::none()));
    let connection = Connection::mount(&folder.join(places::FUSE), device.len() as u64).map_err(said)?;
    let obeyed = Arc::clone(&faults);
    std::thread::spawn(move || obey(&obeyed));
    let served = connection.run(|request, answer| match request {
        Request::Read { offset, len } => {
            let rest = usize::try_from(offset).ok().and_then(|offset| device.get(offset..));
            let rest = rest.unwrap_or_default();
            answer(Answer::Bytes(rest.get(..len).unwrap_or(rest)))
        }
        Request::Write { offset, data } => {
            let done = write(&mut device, &mut recorder, &faults, offset, data)?;
            answer(done)
        }
        Request::Sync => {
            let mut faults = locked(&faults);
            let percent = faults.flushes_percent;
            if faults.rng.percent(percent) {
                recorder.failed_flush()?;
                return answer(Answer::Failed);
            }
            recorder.flush()?;
            answer(Answer::Done)
        }
    });
    served.map_err(said)
}

fn write(
    device: &mut [u8],
    recorder: &mut Recorder,
    faults: &Shared,
    offset: u64,
    data: &[u8],
) -> io::Result<Answer<'static>> {
    let start = usize::try_from(offset).map_err(io::Error::other)?;
    let end = start.saturating_add(data.len());
    if end > device.len() {
        return Ok(Answer::Failed);
    }
    let mut faults = locked(faults);
    let percent = if offset < faults.from { 0 } else { faults.writes_percent };
    if !faults.rng.percent(percent) {
        recorder.write(offset, data)?;
        device[start..end].copy_from_slice(data);
        return Ok(Answer::Written(data.len()));
    }
    // The device has taken nothing of it, or some.
    if faults.rng.percent(50) {
        tear(device, offset, data, &mut faults.rng);
        recorder.write(offset, &device[start..end])?;
    }
    recorder.failed_write(offset)?;
    Ok(Answer::Failed)
}

/// Does what standard input says.
fn obey(faults: &Shared) {
    println!("ready");
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if let Some(wanted) = line.strip_prefix("fail ").and_then(Faults::parse) {
            *locked(faults) = wanted;
        }
        println!("done");
    }
    *locked(faults) = Faults::none();
}
