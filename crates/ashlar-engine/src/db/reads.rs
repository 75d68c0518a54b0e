//! Reading: chooses the memtables, the tables and the sequence of a read.

use super::Db;
use super::core::Core;
use crate::column_family::Family;
use ashlar_base::{Error, LookupKey, Result, SeqNum};
use ashlar_options::{ReadOptions, ReadTier};
use ashlar_read::iter::{DbIter, Follow, KeyBounds, State, TailingIter};
use ashlar_read::point::{self, GetExplained, MayExist, ScanExplained, View};
use ashlar_read::snapshot::Snapshot;
use ashlar_read::super_version::SuperVersion;
use ashlar_tree::columns::Columns;
use std::sync::Arc;

impl Db {
    /// The value of `key`. `None`: the key does not exist.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be read. An unreadable table never makes a key look absent.
    /// `InvalidArgument`: the family belongs to another database. A dropped family is read as it was when it was
    /// dropped.
    pub fn get(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<Option<View>> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        point::get(&version, &LookupKey::new(key, seq), &core.settled(options))
    }

    /// The columns of `key`, `None` when there is no such key. A plain value is returned as a row with only the default
    /// column.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn get_entity(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<Option<Columns>> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        point::get_entity(&version, &LookupKey::new(key, seq), &core.settled(options))
    }

    /// The values of `keys`, in the order of `keys`, all as of one moment.
    ///
    /// # Errors
    /// `Shutdown` for all; per key as [`Db::get`].
    /// # Cost
    /// Less than separate gets, the more so for neighbouring keys: each block is looked up or read once.
    pub fn multi_get(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: ReadOptions,
    ) -> Result<Vec<Result<Option<View>>>> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        point::multi_get(&version, seq, keys, &core.settled(options))
    }

    /// Whether `key` can have a value, without reading data blocks.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be opened. `Shutdown`.
    pub fn key_may_exist(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<MayExist> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        point::may_exist(&version, &LookupKey::new(key, seq), &core.settled(options))
    }

    /// An iterator over the keys of a family within `range`, not positioned.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn iter(&self, family: &Family, range: KeyBounds, options: ReadOptions) -> Result<DbIter> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        DbIter::new(version, seq, range, core.settled(options))
    }

    /// A tailing iterator over the keys of a family within `range`, not positioned. The sequence number in `options` is ignored.
    ///
    /// # Errors
    /// As [`Db::iter`].
    pub fn tailing_iter(
        &self,
        family: &Arc<Family>,
        range: KeyBounds,
        options: ReadOptions,
    ) -> Result<TailingIter> {
        let options = ReadOptions { at: None, ..options };
        let follow = Followed { core: Arc::clone(self.core()), family: Arc::clone(family), options };
        Ok(TailingIter::new(self.iter(family, range, options)?, Box::new(follow)))
    }

    /// The sequence number of the newest write to `key` after `since`, in memtables or tables; `None`: there is no such write.
    /// The caller keeps a snapshot at or before `since`. A deletion after `since` may be gone when a compaction has removed
    /// it; then `key` has no value.
    ///
    /// # Errors
    /// As [`Db::get`].
    /// # Cost
    /// Reads no table as long as no memtable was flushed since `since`.
    pub fn newest_sequence(&self, family: &Family, key: &[u8], since: SeqNum) -> Result<Option<SeqNum>> {
        let options = ReadOptions::default();
        let (version, _) = self.core().readable(family, options)?;
        point::newest_sequence(&version, key, since, &options)
    }

    /// Pins the current state of all families until the guard is dropped.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let core = self.core();
        core.check_open()?;
        Ok(Arc::clone(&core.snapshots).take_with(|| core.visible()))
    }

    /// Gets `key` and explains the read: which runs were searched, what each returned, what it cost.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn explain_get(&self, family: &Family, key: &[u8], options: ReadOptions) -> Result<GetExplained> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        point::explain_get(&version, &LookupKey::new(key, seq), &core.settled(options), core.env.ticks())
    }

    /// Scans forward within `range`, over at most `keys_max` keys, and explains the reads.
    ///
    /// # Errors
    /// As [`Db::iter`] and the iterator's calls.
    pub fn explain_scan(
        &self,
        family: &Family,
        range: KeyBounds,
        options: ReadOptions,
        keys_max: u64,
    ) -> Result<ScanExplained> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        point::explain_scan(version, seq, range, core.settled(options), keys_max, core.env.ticks())
    }

    /// Whether reads of this database may use the snapshot.
    ///
    /// # Errors
    /// `InvalidArgument`: the snapshot belongs to another database, or to another open of this one. `Shutdown`.
    pub fn check_snapshot(&self, snapshot: &Snapshot) -> Result<()> {
        self.core().check_open()?;
        match snapshot.is_of(&self.core().snapshots) {
            true => Ok(()),
            false => Err(Error::invalid("the snapshot belongs to another open database")
                .hint("Take a snapshot of the database that is read")),
        }
    }
}

/// The family of a tailing iterator. Holds the core of the database and not its handle, so it keeps no database open.
struct Followed {
    core: Arc<Core>,
    family: Arc<Family>,
    options: ReadOptions,
}

impl Follow for Followed {
    fn newest(&self) -> Result<State> {
        let (from, seq) = self.core.readable(&self.family, self.options)?;
        Ok(State { from, seq, tier: self.core.settled(self.options).tier })
    }
}

impl Core {
    /// What a read of the family with these options sees.
    ///
    /// # Errors
    /// `Shutdown`. `InvalidArgument`: the family belongs to another database. `NotSupported`: its keys have timestamps.
    #[inline]
    fn readable(&self, family: &Family, options: ReadOptions) -> Result<(Arc<SuperVersion>, SeqNum)> {
        // The super version is loaded before the sequence: see `super_version`. A close sets `closed` before it shows
        // an empty super version, so this order never mistakes the empty super version for the family's data.
        let version = family.super_version.get();
        self.check_open()?;
        self.check_own(family)?;
        check_readable(family, &version)?;
        match options.at {
            None => {
                let seq = version.read_seq(self.visible());
                Ok((version, seq))
            }
            Some(at) => Ok((self.snapshots.view(family.id(), at).unwrap_or(version), at)),
        }
    }

    /// The options with `ReadTier::Persisted` replaced by `All` while memtables hold logged writes only. Called after the
    /// sequence of the read was loaded: an unlogged write that the sequence shows was noted before.
    #[inline]
    fn settled(&self, mut options: ReadOptions) -> ReadOptions {
        if options.tier == ReadTier::Persisted && !self.committer.has_unlogged() {
            options.tier = ReadTier::All;
        }
        options
    }
}

/// Refuses reads of a family whose keys carry timestamps; such a family is open but not served.
#[inline]
fn check_readable(family: &Family, version: &SuperVersion) -> Result<()> {
    match version.version.order.timestamp_len() {
        0 => Ok(()),
        _ => {
            let text = format!("reading family {:?}: its keys have user-defined timestamps", family.name());
            Err(Error::not_supported(text))
        }
    }
}
