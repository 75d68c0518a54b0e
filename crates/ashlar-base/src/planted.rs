//! Mistakes that storage engines have made, built in on purpose, to prove that the test suites find them.
//!
//! They exist only in builds with the feature `planted`. There, one mistake at a time is active, the one chosen with
//! `choose`. In every other build [`planted`] is the constant `false`, and the compiler removes the planted code.
//! `rel bugs` runs all of them; its table names the engine that made each mistake, and the suite that finds it.

macro_rules! bugs {
    ($($(#[doc = $what:literal])+ $name:ident,)+) => {
        /// A mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $what])+ $name,)+
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[(Bug, &str)] = &[$((Bug::$name, concat!($($what),+)),)+];
        }
    };
}

bugs! {
    /// `CURRENT` is renamed, its directory not synced.
    CurrentDirUnsynced,
    /// `CURRENT` is renamed before its content is synced.
    CurrentUnsynced,
    /// An edit of the MANIFEST is not synced.
    ManifestUnsynced,
    /// A MANIFEST is appended to after it failed.
    ManifestGoesOn,
    /// A table is not synced.
    TableUnsynced,
    /// The directory of a table is not synced.
    TableDirUnsynced,
    /// A directory of tables beside the database directory is not synced.
    PlaceUnsynced,
    /// A blob file is not synced.
    BlobUnsynced,
    /// A synced write returns without a sync.
    WriteUnsynced,
    /// The directory of a log is not synced with its first sync.
    LogDirUnsynced,
    /// A store into a mapped log puts the header before the payload.
    HeaderBeforePayload,
    /// A store into a mapped log is believed although a page of the file was missing.
    GuardUnread,
    /// A failed sync is done again, and believed.
    SyncRetried,
    /// A sync of a file system whose journal failed meanwhile is believed.
    SyncUnconfirmed,
    /// Older logs are not synced when a newer one is.
    OlderLogUnsynced,
    /// A flush of one family is durable before earlier writes of the others.
    FlushBeforeLogs,
    /// A flush releases WAL files that later immutable memtables still need.
    LogNumberTooHigh,
    /// A log is removed while memtables need it.
    LogRemovedEarly,
    /// Replay goes on in a later log that does not continue where it stopped.
    ReplayPastAHole,
    /// A log that cannot be read ends there.
    LogReadErrorIsEnd,
    /// Records of logs are not compared with their checksums.
    LogChecksumIgnored,
    /// Half a batch is replayed.
    HalfBatchReplayed,
    /// A write whose log failed is acknowledged.
    FailedLogAcknowledged,
    /// A table that cannot be read holds nothing.
    ReadErrorIsAbsence,
    /// A table that cannot be opened is passed over by scans.
    ReadErrorSkipsTable,
    /// Damaged range deletions delete nothing.
    RangeDeletionsIgnored,
    /// Blocks are not compared with their checksums.
    BlockChecksumIgnored,
    /// A table is taken for another one.
    OtherTableTaken,
    /// A filter says no to keys that are there.
    FilterSaysNo,
    /// Reads see one write that is newer than their snapshot.
    SnapshotSeesNewer,
    /// Compactions forget the snapshots.
    SnapshotsForgotten,
    /// Tombstones go while older versions lie beneath.
    TombstoneDroppedEarly,
    /// Range tombstones go while older versions lie beneath.
    RangeTombstoneDroppedEarly,
    /// A single delete goes without the put it is meant for.
    SingleDeleteAlone,
    /// A merge operand is applied twice.
    MergedTwice,
    /// A key in sixty-four is lost in a rewrite.
    KeyLostInRewrite,
    /// Values get sequence number 0 while older versions lie beneath.
    SequenceZeroedEarly,
    /// A compaction filter is asked about values that snapshots see.
    FilterOverSnapshot,
    /// A snapshot taken during a compaction reads what its filter left.
    ViewNotKept,
    /// A value that a compaction filter removed leaves no tombstone while older versions lie beneath.
    FilteredWithoutTombstone,
    /// Garbage of blob files is counted twice.
    GarbageCountedTwice,
    /// The two ends of a scan pass each other.
    ScanEndsCross,
    /// A failed flush is tried again without a pause, for ever.
    NoPauseAfterFailure,
    /// Ingested tables are not newer than what was there: all have sequence number 0.
    IngestedWithoutSequence,
    /// Ingested tables go below older entries in memtables.
    IngestedBelowMemtables,
    /// Ingested tables go below older entries of upper levels.
    IngestedTooDeep,
    /// Writes after an import take sequence numbers that the imported tables have.
    ImportedAboveWrites,
    /// Ingested tables are durable before earlier writes.
    IngestedBeforeLogs,
    /// The directory is not synced before ingested tables are named.
    IngestedDirUnsynced,
    /// A group of writes is made visible before all of it is in the memtables.
    VisibleBeforeInserted,
    /// A snapshot takes its sequence before compactions can know of it.
    SnapshotTakenLate,
    /// A writer looks whether it is its turn, and then begins to listen.
    WakeUpLost,
    /// A leader leaves the lead open and wakes no writer for it.
    OpenLeadUntold,
    /// A close does not wait for the jobs under way.
    CloseWaitsForNobody,
    /// Files that are being written are obsolete.
    PendingRemoved,
    /// A commit does not compare its keys with the newest writes.
    ConflictsIgnored,
    /// A commit compares its keys before other writers wait.
    CheckedBeforeTheLead,
    /// The newest write to a key is looked for in memtables only.
    NewestWriteInMemoryOnly,
    /// A range deletion is no write to the keys in the range.
    RangeDeletionIsNoWrite,
    /// A transaction keeps no snapshot for its check.
    NoSnapshotForTheCheck,
    /// A transaction with a snapshot checks what was written after its locks.
    SnapshotOfTheCheckTooNew,
    /// A shared lock becomes exclusive beside others.
    UpgradeBesideOthers,
    /// A shared lock is given beside an exclusive one.
    SharedBesideExclusive,
    /// A range is locked although others hold keys of it.
    RangeOverPoints,
    /// A key is locked although another transaction holds a range with it.
    PointsInRanges,
    /// A rollback to a savepoint keeps its locks.
    SavepointKeepsLocks,
    /// A rollback to a savepoint takes the operations back, and not what reads see.
    SavepointKeepsReads,
    /// A merge after a deletion applies to the value below.
    MergeBelowADeletion,
    /// A scan that turns around shows a changed key twice.
    TurnShowsAKeyTwice,
    /// A new WAL file begins without the undecided transactions.
    PreparedForgotten,
    /// The commit of a prepared transaction writes its mark, and not its data.
    CommitWithoutData,
    /// A transaction that is rolled back leaves a lock.
    RollbackLeavesALock,
    /// A transaction releases its locks when it is prepared.
    LockReleasedEarly,
    /// A new WAL file begins with copies of the undecided transactions that are not synced.
    PreparedCopyUnsynced,
    /// An open takes no locks for undecided transactions.
    PreparedUnlocked,
    /// A checkpoint and a backup lack the last WAL file.
    CopyWithoutLastLog,
    /// A backup gets its name before its files have theirs.
    BackupDirUnsynced,
    /// Compactions forget that tables may come in behind all others.
    BehindForgotten,
    /// A FIFO tree deletes tables that are within its limit.
    FifoDropsLive,
    /// A read-only open looks only once for WAL files, which its writer may have deleted meanwhile.
    LogsLookedAtOnce,
    /// A read-only open shows the first operation of each batch in the WAL.
    HalfBatchInAView,
    /// A read-only open does not keep its tables open.
    ViewLetsTablesGo,
    /// A merge revives the value that was over.
    MergeRevives,
    /// A value that a merge renewed keeps its own time.
    RenewalForgotten,
    /// A compaction removes values half a minute before they are over.
    ExpiredEarly,
    /// A put with a time to live of its own gets that of its family.
    OwnTtlForgotten,
}

#[cfg(feature = "planted")]
mod chosen {
    use super::Bug;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static CHOSEN: AtomicUsize = AtomicUsize::new(usize::MAX);

    /// Makes the mistake from now on, and no other.
    pub fn choose(bug: Bug) {
        CHOSEN.store(bug as usize, Ordering::Relaxed);
    }

    /// Whether that mistake is to be made.
    #[inline]
    pub fn planted(bug: Bug) -> bool {
        CHOSEN.load(Ordering::Relaxed) == bug as usize
    }
}

#[cfg(feature = "planted")]
pub use chosen::{choose, planted};

/// Whether that mistake is to be made: never, in this build.
#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn planted(_: Bug) -> bool {
    false
}
