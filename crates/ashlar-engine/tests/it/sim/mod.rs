//! The engine on the simulated machine: crashes at any call, calls that fail, and what must hold afterwards.
//!
//! One seed decides everything. `ASHLAR_SIM_SEED=n` replays one seed, `ASHLAR_SIM_SEEDS=n` runs that many,
//! `ASHLAR_SIM_MINUTES=n` as many as n minutes hold:
//!
//! ```text
//! ASHLAR_SIM_MINUTES=30 cargo test --profile heavy -p ashlar-engine --test it sim::crashes
//! ```
//!
//! What must hold after a crash: the store is the model cut behind some write M; M is not below the last write that was
//! acknowledged as durable for that kind of crash; batches are whole, over all families; the families are those that
//! were created and not dropped; the store takes writes again; a further crash loses nothing of what was found.

mod check;
mod crashes;
mod faults;
mod judged;
mod limits;
mod plan;
mod resume;
mod store;
mod tally;
