//! Tables that a calling thread works on, as a job would: no compaction takes them, and a close waits until it is over.

use super::core::{Core, State};
use crate::version::FileMeta;
use ashlar_base::Result;
use std::sync::Arc;

/// The right to replace some tables; it ends when this is dropped.
pub(super) struct Claim {
    core: Arc<Core>,
    files: Vec<Arc<FileMeta>>,
}

impl Claim {
    /// Claims `files`, which nobody works on. `state` has been locked since that was seen: a close that counts the jobs
    /// counts this one, or it does not begin.
    ///
    /// # Errors
    /// `Shutdown`.
    pub(super) fn new(core: &Arc<Core>, state: &mut State, files: Vec<Arc<FileMeta>>) -> Result<Claim> {
        core.check_open()?;
        files.iter().for_each(|file| file.set_compacting(true));
        state.jobs += 1;
        Ok(Claim { core: Arc::clone(core), files })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        {
            let mut state = self.core.state();
            self.files.iter().for_each(|file| file.set_compacting(false));
            // The old files, or new ones that came to nothing.
            state.purge_wanted = true;
            state.job_ended();
        }
        self.core.after_job();
    }
}
