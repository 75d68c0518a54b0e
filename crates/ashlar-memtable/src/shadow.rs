//! Makes entries and the links of the skiplist visible to loom. They are plain memory, which loom cannot observe.
//!
//! Each entry gets one loom atomic per link, and one loom cell that is read and written with the body. If a thread reads
//! a body that was not published, loom reports a race.

use ashlar_sync::atomic::AtomicU64;
use ashlar_sync::loom::cell::UnsafeCell;
use ashlar_sync::loom::lazy_static;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

struct Witness(UnsafeCell<()>);

// SAFETY: it holds nothing; whether its reads and writes race is what loom finds out. Checked by: loom `models`.
unsafe impl Sync for Witness {}
// SAFETY: as above.
unsafe impl Send for Witness {}

#[derive(Clone)]
struct Shadow {
    links: Arc<[Arc<AtomicU64>]>,
    body: Arc<Witness>,
}

lazy_static! {
    /// By the node's address, in this one execution of a model.
    static ref SHADOWS: Mutex<BTreeMap<usize, Shadow>> = Mutex::new(BTreeMap::new());
}

fn of(node: NonNull<u64>) -> Shadow {
    let shadows = SHADOWS.lock().unwrap_or_else(PoisonError::into_inner);
    match shadows.get(&node.addr().get()) {
        Some(shadow) => shadow.clone(),
        None => unreachable!("every node begins with its shadow"),
    }
}

/// A node of this height begins.
pub(crate) fn begins(node: NonNull<u64>, height: usize) {
    let links = (0..height).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let shadow = Shadow { links, body: Arc::new(Witness(UnsafeCell::new(()))) };
    SHADOWS.lock().unwrap_or_else(PoisonError::into_inner).insert(node.addr().get(), shadow);
}

/// A link of the node.
pub(crate) fn link(node: NonNull<u64>, level: usize) -> Arc<AtomicU64> {
    match of(node).links.get(level) {
        Some(link) => Arc::clone(link),
        None => unreachable!("a level below the node's height"),
    }
}

/// The body is read.
pub(crate) fn reads(node: NonNull<u64>) {
    of(node).body.0.with(|_| ());
}

/// The body is written.
pub(crate) fn writes(node: NonNull<u64>) {
    of(node).body.0.with_mut(|_| ());
}
