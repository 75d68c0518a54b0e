//! Copies of the database: checkpoints and backups. Each is opened again and compared with what was written.

use super::Done;
use crate::job::{Job, Step, Workload};
use crate::meter::{Kind, Meter};
use crate::oracle::Oracle;
use ashlar_peers::peer::{Peer, Result};
use std::path::{Path, PathBuf};

/// The directory `name` beside the database.
fn beside(job: &Job, name: &str) -> PathBuf {
    Path::new(&job.dir).with_file_name(name)
}

fn checkpoint(job: &Job, number: u64) -> PathBuf {
    beside(job, &format!("checkpoint-{number}"))
}

/// Makes `step.ops` checkpoints.
pub fn checkpoints<P: Peer>(peer: &P, job: &Job, step: &Step, meter: &mut Meter) -> Result<Done> {
    let mut done = Done::default();
    meter.begin();
    while done.ops < step.ops {
        peer.checkpoint(&checkpoint(job, done.ops))?;
        meter.ended(Kind::Write, 1);
        done.asks(done.ops);
        done.ops += 1;
    }
    Ok(done)
}

/// Makes a backup. Opening the directory of the backups is part of it.
pub fn backup<P: Peer>(peer: &P, job: &Job, _: &Step, meter: &mut Meter) -> Result<Done> {
    meter.begin();
    peer.backup(&beside(job, "backups"))?;
    meter.ended(Kind::Write, 1);
    Ok(Done { ops: 1, asked: 1, ..Done::default() })
}

/// Opens the copies that `step` made and compares their content with `oracle`. Checkpoints are removed afterwards.
///
/// # Errors
/// The first copy that has other entries than were written.
pub fn verify<P: Peer>(peer: &P, job: &Job, step: &Step, oracle: &Oracle) -> Result<()> {
    match step.workload {
        Workload::Checkpoint => (0..step.ops).map(|number| checkpoint(job, number)).try_for_each(|copy| {
            // One is read: they are equal.
            if copy == checkpoint(job, 0) {
                compare::<P>(job, &copy, oracle)?
            }
            removed(&copy)
        }),
        Workload::Backup | Workload::Backupagain => {
            let copy = beside(job, "restored");
            peer.restore(&beside(job, "backups"), &copy)?;
            compare::<P>(job, &copy, oracle)?;
            removed(&copy)
        }
        _ => Ok(()),
    }
}

fn compare<P: Peer>(job: &Job, copy: &Path, oracle: &Oracle) -> Result<()> {
    let peer = P::open(job.engine, copy, &job.settings, job.shared_object.as_deref())?;
    oracle.check(&peer).map_err(|why| format!("{}: {why}", copy.display()))?;
    peer.close()
}

fn removed(copy: &Path) -> Result<()> {
    std::fs::remove_dir_all(copy).map_err(|e| format!("{}: {e}", copy.display()))
}
