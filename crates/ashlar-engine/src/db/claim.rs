//! Marks a calling thread's changes of the directory like a job: a close waits until they end, and no compaction takes
//! the claimed tables.

use super::core::{Core, State};
use ashlar_base::Result;
use ashlar_env::Inside;
use ashlar_tree::version::FileMeta;
use std::sync::Arc;

/// Permission to write to the directory and to replace some tables. Dropping the claim ends it.
pub(super) struct Claim {
    core: Arc<Core>,
    files: Vec<Arc<FileMeta>>,
    _inside: Inside,
}

impl Claim {
    /// Claims `files`, which no compaction has claimed. The caller has held the `state` lock since it checked that. A
    /// close that counts the jobs therefore either counts this claim or has not started.
    ///
    /// # Errors
    /// `Shutdown`.
    pub(super) fn new(core: &Arc<Core>, state: &mut State, files: Vec<Arc<FileMeta>>) -> Result<Claim> {
        core.check_open()?;
        files.iter().for_each(|file| file.set_compacting(true));
        state.jobs += 1;
        Ok(Claim { core: Arc::clone(core), files, _inside: core.database.enter() })
    }
}

impl Core {
    /// Claims no tables: only keeps the database from closing while the calling thread writes to the directory.
    ///
    /// # Errors
    /// `Shutdown`.
    pub(super) fn claim(self: &Arc<Self>) -> Result<Claim> {
        self.database.check_process()?;
        Claim::new(self, &mut self.state(), Vec::new())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        {
            let mut state = self.core.state();
            self.files.iter().for_each(|file| file.set_compacting(false));
            // The replaced files, or new files that were not installed, may be obsolete.
            state.purge_wanted = true;
            state.job_ended();
        }
        self.core.after_job();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Db;
    use ashlar_env::{Clock, Env, OsClock};
    use ashlar_options::{DbOptions, FamilyOptions};
    use std::path::Path;
    use std::time::Duration;

    /// Regression: the OPTIONS file was written after a close, when another process may own the directory. `rel shuttle
    /// --replay=47` found it for a created family.
    #[test]
    fn a_close_waits_for_a_change_of_settings() {
        let (db_options, options) = (DbOptions::default(), FamilyOptions::default());
        let db = Db::open(Env::mem(), Path::new("/db"), db_options, Vec::new(), options).unwrap();
        let core = db.core();
        let soon = || OsClock::new().sleep(Duration::from_millis(50));
        std::thread::scope(|scope| {
            let changing = core.changing.lock();
            let change = scope.spawn(|| db.set_db_options(&[("max_open_files", "7")]));
            soon();
            let closing = scope.spawn(|| db.close());
            soon();
            let too_early = closing.is_finished();
            drop(changing);
            change.join().unwrap().unwrap();
            closing.join().unwrap().unwrap();
            assert!(!too_early, "closed before the settings were written");
        });
    }
}
