//! The order in which a thread may take locks.
//!
//! Each thread keeps one bit per rank it holds. In debug builds, taking a lock whose rank is not above every held one
//! panics, at the first wrong order, long before two threads deadlock. Release builds keep and check nothing.

/// The rank of a lock. A thread takes locks in this order only, and never two of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rank {
    /// Open and close of the database.
    Lifecycle,
    /// Option changes.
    Options,
    /// The queue of MANIFEST commits.
    Manifest,
    /// The state of the database: families, versions, running jobs.
    State,
    /// The queue of writers, and the rounds of syncs.
    Writers,
    /// The unwritten tail of a log file, or its sync. Held over the write itself.
    Log,
    /// The list of snapshots. Held while a super version is published, which may free older ones with their caches and arenas.
    Snapshots,
    /// A part of the keys that transactions have locked.
    Keys,
    /// One structure that is used under the locks above: a shard of the block cache, an arena, a gap.
    Inner,
    /// A value that is read or replaced in one step: counters, a batch, a published version. Only locks of the environment are
    /// taken under such a lock.
    Leaf,
    /// The internals of the environment: simulated disk, job queues. A leaf: code under such a lock calls nothing
    /// outside.
    Env,
}

/// Whether this thread holds no lock above [`Rank::Lifecycle`], which a close holds over everything that it waits for.
/// Callers of user code check this. Always true in release builds, which do not track ranks.
pub fn holds_no_lock() -> bool {
    #[cfg(debug_assertions)]
    return held::nothing_above(Rank::Lifecycle);
    #[cfg(not(debug_assertions))]
    return true;
}

#[cfg(debug_assertions)]
mod held {
    use super::Rank;
    use crate::primitive::thread_local;
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    pub(super) fn nothing_above(rank: Rank) -> bool {
        HELD.try_with(|held| held.get() >> (rank as u32 + 1) == 0).unwrap_or(true)
    }

    /// A held rank; dropping it releases the rank.
    #[derive(Debug)]
    pub(crate) struct Held(Rank);

    impl Held {
        #[track_caller]
        pub(crate) fn take(rank: Rank) -> Held {
            HELD.with(|held| {
                let above = held.get() >> (rank as u32);
                assert!(
                    above == 0,
                    "lock order: {rank:?} taken while a lock of the same or a later rank is held (mask {:#b})",
                    held.get()
                );
                held.set(held.get() | 1 << (rank as u32));
            });
            Held(rank)
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            // A guard may be dropped by another thread-local's destructor, after HELD is gone.
            let _ = HELD.try_with(|held| held.set(held.get() & !(1 << (self.0 as u32))));
        }
    }
}

#[cfg(debug_assertions)]
pub(crate) use held::Held;

/// Release builds track nothing.
#[cfg(not(debug_assertions))]
#[derive(Debug)]
pub(crate) struct Held;

#[cfg(not(debug_assertions))]
impl Held {
    #[inline(always)]
    pub(crate) fn take(_: Rank) -> Held {
        Held
    }
}
