//! Which runs may run at the same time: the moment at which memory is freed depends on every reader in the process, so a run
//! that must equal another one is alone.

use std::sync::{PoisonError, RwLock};

/// Held by runs that read databases, and by none while two runs are compared.
static READERS: RwLock<()> = RwLock::new(());

/// To be held while a run reads databases beside others.
pub fn beside_others() -> impl Drop {
    READERS.read().unwrap_or_else(PoisonError::into_inner)
}

/// To be held while a run must equal another one.
pub fn alone() -> impl Drop {
    READERS.write().unwrap_or_else(PoisonError::into_inner)
}
