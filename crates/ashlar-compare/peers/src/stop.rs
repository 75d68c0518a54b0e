//! Handles Ctrl-C and SIGTERM: ends the running process, then keeps and shows the records so far.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit status of an interrupted program, as in shells.
pub const STATUS: u8 = 130;

/// Whether the user interrupted the run.
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
        // The flag protects no other data.
        self.0.load(Ordering::Relaxed)
    }
}
