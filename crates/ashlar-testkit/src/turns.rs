//! Serialises runs that must be reproducible: epochs are global to the process, so a reader of another run changes when
//! memory is freed.

use std::sync::{PoisonError, RwLock};

/// Locked shared by runs that read databases, and exclusively while two runs are compared.
static READERS: RwLock<()> = RwLock::new(());

/// Returns a guard for a run that reads databases beside others.
pub fn beside_others() -> impl Drop {
    READERS.read().unwrap_or_else(PoisonError::into_inner)
}

/// To be held while a run must equal another one.
pub fn alone() -> impl Drop {
    READERS.write().unwrap_or_else(PoisonError::into_inner)
}
