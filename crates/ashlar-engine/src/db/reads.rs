//! Reading: chooses the memtables, the tables and the sequence of a read.

use super::Db;
use super::core::Core;
use crate::column_family::Family;
use crate::snapshot::Snapshot;
use ashlar_base::{Error, LookupKey, Result, SeqNum};
use ashlar_options::{ReadOptions, ReadTier};
use ashlar_read::iter::DbIter;
use ashlar_read::point::{self, GetExplained, MayExist, ScanExplained, View};
use ashlar_read::super_version::SuperVersion;
use ashlar_tree::columns::Columns;
use std::borrow::Cow;
use std::sync::Arc;

impl Db {
    /// Gets `key` and explains the read: which runs were searched, what each returned, what it cost.
    ///
    /// # Errors
    /// As [`Db::get`].
    pub fn explain_get(&self, family: &Family, key: &[u8], options: &ReadOptions) -> Result<GetExplained> {
        let core = self.core();
        let (version, seq) = core.readable(family, options)?;
        let options = &*core.settled(options);
        point::explain_get(&version, &LookupKey::new(key, seq), options, core.env.ticks())
    }

    /// Scans forward within the bounds of `options`, over at most `keys_max` keys, and explains the reads.
    ///
    /// # Errors
    /// As [`Db::iter`] and the iterator's calls.
    pub fn explain_scan(
        &self,
        family: &Family,
        options: ReadOptions,
        keys_max: u64,
    ) -> Result<ScanExplained> {
        let core = self.core();
        let (version, seq) = core.readable(family, &options)?;
        let options = core.settled(&options).into_owned();
        point::explain_scan(version, seq, options, keys_max, core.env.ticks())
    }
}

impl Db {
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

impl Core {
    /// What a read of the family with these options sees.
    ///
    /// # Errors
    /// `Shutdown`. `InvalidArgument`: the family belongs to another database. `NotSupported`: its keys have timestamps.
    #[inline]
    fn readable(&self, family: &Family, options: &ReadOptions) -> Result<(Arc<SuperVersion>, SeqNum)> {
        // The super version is loaded before the sequence: see `super_version`. A close sets `closed` before it shows
        // an empty super version, so this order never mistakes the empty super version for the family's data.
        let version = family.super_version.get();
        self.check_open()?;
        self.check_own(family)?;
        check_readable(family, &version)?;
        let seq = options.at.unwrap_or_else(|| version.read_seq(self.visible()));
        Ok((version, seq))
    }

    /// The options with `ReadTier::Persisted` replaced by `All` while memtables hold logged writes only. Called after the
    /// sequence of the read was loaded: an unlogged write that the sequence shows was noted before.
    #[inline]
    fn settled<'o>(&self, options: &'o ReadOptions) -> Cow<'o, ReadOptions> {
        if options.tier == ReadTier::Persisted && !self.committer.has_unlogged() {
            return Cow::Owned(ReadOptions { tier: ReadTier::All, ..options.clone() });
        }
        Cow::Borrowed(options)
    }

    /// The newest value of `key` that the options let the read see.
    pub(crate) fn get(&self, family: &Family, key: &[u8], options: &ReadOptions) -> Result<Option<View>> {
        let (version, seq) = self.readable(family, options)?;
        point::get(&version, &LookupKey::new(key, seq), &self.settled(options))
    }

    /// The columns of `key` that the options let the read see.
    pub(crate) fn get_entity(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<Option<Columns>> {
        let (version, seq) = self.readable(family, options)?;
        point::get_entity(&version, &LookupKey::new(key, seq), &self.settled(options))
    }

    /// See [`super::Db::multi_get`].
    pub(crate) fn multi_get(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<View>>>> {
        let (version, seq) = self.readable(family, options)?;
        point::multi_get(&version, seq, keys, &self.settled(options))
    }

    /// See [`super::Db::key_may_exist`].
    pub(crate) fn key_may_exist(
        &self,
        family: &Family,
        key: &[u8],
        options: &ReadOptions,
    ) -> Result<MayExist> {
        let (version, seq) = self.readable(family, options)?;
        point::may_exist(&version, &LookupKey::new(key, seq), &self.settled(options))
    }

    /// An iterator over the family. It pins its state: later changes do not show.
    pub(crate) fn iter(&self, family: &Family, mut options: ReadOptions) -> Result<DbIter> {
        let (version, seq) = self.readable(family, &options)?;
        if let Cow::Owned(settled) = self.settled(&options) {
            options = settled;
        }
        DbIter::new(version, seq, options)
    }

    /// Pins the current state of all families.
    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.check_open()?;
        Ok(Arc::clone(&self.snapshots).take_with(|| self.visible()))
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
