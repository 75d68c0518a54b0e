//! Live snapshots: the sequence numbers that reads may still use.
//!
//! 1. A snapshot is a sequence number; several snapshots may have the same one.
//! 2. The sequence is read and registered under the list's lock. A thread that asks the list what is still needed
//!    either finds the snapshot, or the snapshot's sequence is at least as new as everything visible at that moment.
//! 3. Under the lock only two kinds of code are called: the closure that reads the visible sequence, and the publication of
//!    a super version in `SnapshotList::keep_views`.
//! 4. A compaction filter removes nothing that the snapshots of the compaction's begin see. A snapshot that is taken later
//!    sees everything that the compaction reads; if the filter removed some of that, the snapshot keeps the super version
//!    from before the installation, and reads it.

use crate::super_version::SuperVersion;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{FamilyId, SeqNum};
use ashlar_env::{Clock, Process};
use ashlar_sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use ashlar_sync::{Mutex, Rank};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The live snapshots of a database.
pub struct SnapshotList {
    /// The number of snapshots at each sequence, and when the first of them was taken.
    live: Mutex<BTreeMap<SeqNum, LiveSnapshots>>,
    /// The number of kept views; see [`SnapshotList::keep_views`]. Changed under the lock.
    views: AtomicUsize,
    clock: Option<Arc<dyn Clock>>,
    /// Compactions wait until no snapshot is below this sequence; `u64::MAX`: none waits. Written under no lock: a
    /// stale value only delays the wake-up until the next snapshot is released or the next compaction is scheduled.
    awaited: AtomicU64,
    /// Wakes up the waiting compactions.
    released: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// A forked child leaves the list as it is: a thread of the parent may have held the lock at the fork.
    process: Process,
}

struct LiveSnapshots {
    count: usize,
    unix_secs: u64,
    /// What the snapshots read of these families in place of the current super version.
    views: Vec<(FamilyId, Arc<SuperVersion>)>,
}

impl SnapshotList {
    /// An empty list.
    pub fn new() -> Arc<SnapshotList> {
        SnapshotList::make(None)
    }

    /// An empty list that records when its snapshots are taken.
    pub fn with_clock(clock: Arc<dyn Clock>) -> Arc<SnapshotList> {
        SnapshotList::make(Some(clock))
    }

    fn make(clock: Option<Arc<dyn Clock>>) -> Arc<SnapshotList> {
        Arc::new(SnapshotList {
            live: Mutex::new(Rank::Snapshots, BTreeMap::new()),
            views: AtomicUsize::new(0),
            clock,
            awaited: AtomicU64::new(u64::MAX),
            released: OnceLock::new(),
            process: Process::current(),
        })
    }

    /// Sets the function that is called once the last snapshot below the awaited sequence was released. It runs with no
    /// lock held, on the thread that drops the snapshot. Set once.
    pub fn on_release(&self, tell: Box<dyn Fn() + Send + Sync>) {
        self.released.get_or_init(|| tell);
    }

    /// Requests that call for when no snapshot is below `seq`; `None`: cancels the request.
    pub fn await_past(&self, seq: Option<SeqNum>) {
        self.awaited.store(seq.map_or(u64::MAX, SeqNum::get), Ordering::Relaxed);
    }

    fn release(&self, seq: SeqNum) {
        if !self.process.is_current() {
            return;
        }
        let (gone, oldest) = {
            let mut live = self.live.lock();
            let Some(taken) = live.get_mut(&seq) else { return };
            taken.count -= 1;
            if taken.count > 0 {
                return;
            }
            let gone = live.remove(&seq).map(|taken| taken.views).unwrap_or_default();
            self.views.fetch_sub(gone.len(), Ordering::Relaxed);
            (gone, live.keys().next().map_or(u64::MAX - 1, |oldest| oldest.get()))
        };
        // Outside the lock: the views may be the last references to memtables and tables.
        drop(gone);
        let awaited = self.awaited.load(Ordering::Relaxed);
        if seq.get() < awaited
            && awaited <= oldest
            && let Some(tell) = self.released.get()
        {
            tell();
        }
    }

    /// Pins `seq`, which must be pinned already or known to be needed still; otherwise use [`SnapshotList::take_with`].
    pub fn take(self: &Arc<Self>, seq: SeqNum) -> Snapshot {
        self.take_with(|| seq)
    }

    /// Pins the sequence that `visible` returns. The list calls `visible` under its lock; `visible` must take no lock.
    pub fn take_with(self: &Arc<Self>, visible: impl Fn() -> SeqNum) -> Snapshot {
        let unix_secs = self.clock.as_ref().map_or(0, |clock| clock.unix_micros() / 1_000_000);
        let early = planted(Bug::SnapshotTakenLate).then(&visible);
        let mut live = self.live.lock();
        let seq = early.unwrap_or_else(visible);
        live.entry(seq).or_insert(LiveSnapshots { count: 0, unix_secs, views: Vec::new() }).count += 1;
        drop(live);
        Snapshot { seq, list: Arc::clone(self) }
    }

    /// Keeps `view` of a family for the snapshots above `seen`, then runs `publish`, which shows all other readers the next
    /// super version. For a compaction whose filter removed entries that these snapshots see: they were taken after it
    /// began. The lock is held over both, so a later snapshot reads the next super version from its first read on.
    pub fn keep_views(
        &self,
        family: FamilyId,
        view: &Arc<SuperVersion>,
        seen: Option<SeqNum>,
        publish: impl FnOnce(),
    ) {
        let mut live = self.live.lock();
        let loses = |seq: SeqNum| seen.is_none_or(|seen| seq > seen) && !planted(Bug::ViewNotKept);
        for (_, taken) in live.iter_mut().filter(|(seq, _)| loses(**seq)) {
            // An older view has all that the snapshot sees; a newer one may lack something.
            if taken.views.iter().all(|(kept, _)| *kept != family) {
                taken.views.push((family, Arc::clone(view)));
                self.views.fetch_add(1, Ordering::Relaxed);
            }
        }
        publish();
    }

    /// The view that reads of the family at `seq` use in place of the super version that they have loaded; `None`: they use
    /// that one.
    #[inline]
    pub fn view(&self, family: FamilyId, seq: SeqNum) -> Option<Arc<SuperVersion>> {
        // Relaxed: a reader that loaded the next super version sees the count from before its publication.
        if self.views.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let live = self.live.lock();
        let (_, view) = live.get(&seq)?.views.iter().find(|(kept, _)| *kept == family)?;
        Some(Arc::clone(view))
    }

    /// Drops all kept views, when the database closes.
    pub fn forget_views(&self) {
        let gone: Vec<_> = {
            let mut live = self.live.lock();
            self.views.store(0, Ordering::Relaxed);
            live.values_mut().map(|taken| std::mem::take(&mut taken.views)).collect()
        };
        drop(gone);
    }

    /// The oldest pinned sequence; `None` without snapshots.
    pub fn oldest(&self) -> Option<SeqNum> {
        self.live.lock().keys().next().copied()
    }

    /// When the first snapshot at `seq` was taken, in seconds since 1970; `None` without one.
    pub fn taken_at(&self, seq: SeqNum) -> Option<u64> {
        self.live.lock().get(&seq).map(|taken| taken.unix_secs)
    }

    /// When the oldest snapshot was taken, in seconds since 1970; `None` without snapshots.
    pub fn oldest_time(&self) -> Option<u64> {
        self.live.lock().values().next().map(|taken| taken.unix_secs)
    }

    /// All pinned sequences, ascending, each once.
    pub fn all(&self) -> Vec<SeqNum> {
        self.live.lock().keys().copied().collect()
    }

    /// The number of live snapshots.
    pub fn count(&self) -> usize {
        self.live.lock().values().map(|taken| taken.count).sum()
    }
}

impl fmt::Debug for SnapshotList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

/// A pinned sequence: the data visible at it stays readable until the snapshot is dropped. A clone pins the same
/// sequence again.
pub struct Snapshot {
    seq: SeqNum,
    list: Arc<SnapshotList>,
}

impl Snapshot {
    /// The sequence of the snapshot.
    pub fn seq(&self) -> SeqNum {
        self.seq
    }

    /// Whether the snapshot was taken from `list`.
    pub fn is_of(&self, list: &Arc<SnapshotList>) -> bool {
        Arc::ptr_eq(&self.list, list)
    }
}

impl Clone for Snapshot {
    fn clone(&self) -> Self {
        if !self.list.process.is_current() {
            return Snapshot { seq: self.seq, list: Arc::clone(&self.list) };
        }
        self.list.take(self.seq)
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.list.release(self.seq);
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({})", self.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_is_needed_as_long_as_one_of_its_snapshots_lives() {
        let at = |n| SeqNum::new(n).unwrap();
        let list = SnapshotList::new();
        assert_eq!((list.oldest(), list.all()), (None, vec![]));
        let (a, b, c) = (list.take(at(9)), list.take_with(|| at(4)), list.take(at(9)));
        assert_eq!((list.oldest(), list.all(), list.count()), (Some(at(4)), vec![at(4), at(9)], 3));
        let again = b.clone();
        drop(b);
        assert_eq!(list.oldest(), Some(at(4)));
        drop(again);
        drop(a);
        assert_eq!(list.all(), vec![at(9)]);
        assert!(c.seq() == at(9) && c.is_of(&list) && !c.is_of(&SnapshotList::new()));
        drop(c);
        assert_eq!(list.count(), 0);
    }

    /// [`SnapshotList::keep_views`] publishes under the lock. That may free older super versions, whose tables give their
    /// places in the cache back under a lock of [`Rank::Inner`].
    #[test]
    fn a_publication_under_the_list_may_take_the_locks_of_what_it_frees() {
        let (list, cache) = (SnapshotList::new(), Mutex::new(Rank::Inner, 1));
        let live = list.live.lock();
        *cache.lock() += 1;
        drop(live);
        assert_eq!(*cache.lock(), 2);
    }
}
