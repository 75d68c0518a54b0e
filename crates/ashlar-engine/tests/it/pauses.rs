//! A clock whose pauses run a function: what other threads do while the engine sleeps.

use ashlar_env::{Clock, Env};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

struct Pauses<F> {
    clock: Arc<dyn Clock>,
    meanwhile: F,
}

/// `env`, with `meanwhile` in place of each pause of the engine.
pub(crate) fn in_pauses(env: &Env, meanwhile: impl Fn() + Send + Sync + 'static) -> Env {
    let clock = Arc::new(Pauses { clock: Arc::clone(&env.clock), meanwhile });
    Env { clock, ..env.clone() }
}

impl<F: Fn() + Send + Sync> Clock for Pauses<F> {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn unix_micros(&self) -> u64 {
        self.clock.unix_micros()
    }

    fn sleep(&self, _: Duration) {
        (self.meanwhile)();
    }
}

impl<F> fmt::Debug for Pauses<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pauses")
    }
}
