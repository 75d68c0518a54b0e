//! Ctrl-C, or a request to terminate: the process that runs is ended, what was measured until then is kept and shown.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Status of a program that was interrupted, as shells have it.
pub const STATUS: u8 = 130;

/// Whether the run was asked to stop.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Listens from now on. A second request ends the program at once.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen(&self) -> Result<(), String> {
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, STATUS.into(), Arc::clone(&self.0))
                .and_then(|_| flag::register(signal, Arc::clone(&self.0)))
                .map_err(|e| format!("signals: {e}"))?;
        }
        Ok(())
    }

    /// True from the first request on.
    pub fn asked(&self) -> bool {
        // Nothing else is handed over with it.
        self.0.load(Ordering::Relaxed)
    }
}
