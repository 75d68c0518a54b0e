//! Ingestion: tables made outside the database become part of its tree, without passing through WAL and memtables.
//!
//! ```text
//! survey each file -> link or copy it into the directory -> inspect it there, sync -> [lead] flush what overlaps,
//! sync the WAL, choose levels, one commit, take the sequence numbers [end of the lead] -> remove moved sources
//! ```
//! 1. A call is one commit, over all its files and families: after a crash the database has all of them or none.
//! 2. The files are not written to. All entries of a file get one sequence number, which the MANIFEST records as the file's
//!    smallest and largest. It is above every write before the call, so live snapshots and iterators do not see the file.
//!    Files of one call get ascending numbers in the order of the call: of a key in two files, the later file's entry counts.
//! 3. The order of runs stays the order of sequences. So no memtable may hold an older entry in the range of a file: such
//!    memtables are flushed first. And a file goes above every level that has an entry, or will get the output of a running
//!    compaction, in its range.
//! 4. The last steps run under the lead, so no write comes between them. Claims keep compactions from writing into the chosen
//!    places meanwhile; other ingestions wait for the lead.
//! 5. The WAL is synced before the commit, and memtables with writes that skipped the WAL are flushed. So the state after a
//!    power cut is still a prefix of the writes.
//! 6. Until the commit, the source files are only read. After an error the linked or copied files are removed, unless the
//!    outcome of the commit is unknown; then the purge removes them once a new MANIFEST is durable.
//! 7. Files *behind* all data go to the last level with sequence number 0. Their families keep that level for them, so no
//!    entry has to be flushed or moved for their sake, and every entry above hides theirs. Live snapshots keep the view from before.
//!
//! Source: RocksDB `db/external_sst_file_ingestion_job.cc`, `db/db_impl/db_impl.cc` (`IngestExternalFiles`), behaviour.

mod bring;
mod place;
#[cfg(test)]
mod tests;
mod writer;

pub use bring::Brought;
pub(super) use bring::bring;
pub use writer::sst_writer;

use super::Db;
use super::core::Core;
use super::install::Change;
use crate::column_family::{Family, LiveFamily};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Level, Result, SeqNum};
use ashlar_env::folder_of;
use ashlar_format::version_edit::VersionEdit;
use ashlar_options::{Event, FamilyOptions, FormatLevel, IngestEvent};
use ashlar_read::overlap::memtables_overlap;
use ashlar_tree::external::{Inspected, Taker, Takes, inspect, survey};
use place::LevelClaims;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How an ingestion takes a file into the directory of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngestMode {
    /// A hard link, or a copy where the file system has no link between the two places. The program must not change the bytes
    /// of the source afterwards; it may remove the name.
    #[default]
    Link,
    /// A copy. The source and the database share nothing.
    Copy,
    /// As [`IngestMode::Link`]. The name of the source is removed after the commit.
    Move,
}

/// Options of an ingestion. Every option has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "options do nothing until an ingestion gets them"]
pub struct IngestOptions {
    mode: IngestMode,
    verify: bool,
    flush: bool,
    bottommost_only: bool,
    behind: bool,
}

impl Default for IngestOptions {
    fn default() -> Self {
        IngestOptions {
            mode: IngestMode::Link,
            verify: true,
            flush: true,
            bottommost_only: false,
            behind: false,
        }
    }
}

impl IngestOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// How files come into the directory. Default: [`IngestMode::Link`]. (RocksDB: `move_files`, `link_files`.)
    pub fn mode(self, mode: IngestMode) -> Self {
        IngestOptions { mode, ..self }
    }

    /// Whether to read every block first: checksums, the order of the keys, their types and sequence numbers, filter and
    /// index. Default: true. Without it only properties, range deletions, the first and the last block are checked, and other
    /// damage shows when a read meets it. (RocksDB: `verify_checksums_before_ingest`.)
    pub fn verify(self, yes: bool) -> Self {
        IngestOptions { verify: yes, ..self }
    }

    /// Whether memtables with keys in the range of a file may be flushed. Default: true. Otherwise the call fails when one has
    /// such keys. (RocksDB: `allow_blocking_flush`.)
    pub fn flush(self, yes: bool) -> Self {
        IngestOptions { flush: yes, ..self }
    }

    /// Whether the files go behind all data of their families, as if they had been there first: every entry above hides them.
    /// Default: false. Needs `allow_ingest_behind` of the database or `cf_allow_ingest_behind` of the family. (RocksDB:
    /// `ingest_behind`.)
    pub fn behind(self, yes: bool) -> Self {
        IngestOptions { behind: yes, ..self }
    }

    /// Whether the call fails when a file cannot go to the last level of the tree. Default: false. (RocksDB:
    /// `fail_if_not_bottommost_level`.)
    pub fn bottommost_only(self, yes: bool) -> Self {
        IngestOptions { bottommost_only: yes, ..self }
    }
}

/// One ingested file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ingested {
    /// The file as the caller named it.
    pub source: PathBuf,
    /// The name of the family.
    pub family: String,
    /// The number of the table in the database.
    pub number: FileNumber,
    /// Bytes of the file.
    pub size: u64,
    /// The number of entries, range deletions included.
    pub entries: u64,
    /// The level that the file went to.
    pub level: Level,
    /// The sequence number of all its entries.
    pub sequence: SeqNum,
    /// The bytes were copied. Otherwise the table is a hard link to the source.
    pub copied: bool,
    /// Why the source of a move is still there. The ingestion itself succeeded.
    pub source_kept: Option<Error>,
}

/// A file on its way into the tree.
struct Candidate {
    source: PathBuf,
    brought: Brought,
    inspected: Inspected,
}

/// The files of one family.
struct Part {
    family: Arc<Family>,
    files: Vec<Candidate>,
}

/// The order of arrival of a table behind all others: before every flushed one. (RocksDB:
/// `kReservedEpochNumberForFileIngestedBehind`.)
const EPOCH_BEHIND: u64 = 1;

/// Where a file goes: its level and the sequence number of its entries.
type Placement = (Level, SeqNum);

impl Db {
    /// Makes tables that were written outside a database part of families, all of them or none. The files of a family are
    /// listed in the order in which they count: of a key in several files, the last file has the newest entry.
    ///
    /// # Errors
    /// `InvalidArgument`: no file, a file or a family that is named twice, a file of the database itself or of another family,
    /// another comparator, merges for a family without a merge operator, a file above the format level. `Corruption`: a file
    /// is damaged or not whole. `NotSupported`: a file that was not written to be ingested, or entries that are not served; a
    /// database that is open for reading only. `Aborted`: a needed flush or a level deeper than possible was ruled out by
    /// the options, or background work is paused. `Io`. The text names the file. After an error the database is unchanged,
    /// and so are the sources.
    pub fn ingest(
        &self,
        parts: &[(Arc<Family>, Vec<PathBuf>)],
        options: IngestOptions,
    ) -> Result<Vec<Ingested>> {
        let core = self.core();
        core.check_open()?;
        core.check_outside("ingest()")?;
        parts.iter().try_for_each(|(family, _)| core.check_live(family))?;
        core.health.check_writable()?;
        check_named_once(parts)?;
        if options.behind {
            check_behind(parts)?;
        }
        core.ingest(parts, options)
    }
}

fn check_named_once(parts: &[(Arc<Family>, Vec<PathBuf>)]) -> Result<()> {
    if parts.iter().all(|(_, files)| files.is_empty()) {
        return Err(Error::invalid("no file to ingest was named"));
    }
    for (at, (family, files)) in parts.iter().enumerate() {
        if files.is_empty() {
            let what = format!("no file to ingest was named for column family {:?}", family.name());
            return Err(Error::invalid(what));
        }
        let before = parts.get(..at).unwrap_or_default();
        if before.iter().any(|(other, _)| other.id() == family.id()) {
            let e = Error::invalid(format!("column family {:?} is named twice", family.name()));
            return Err(e.hint("List all files of a family together"));
        }
    }
    Ok(())
}

/// # Errors
/// `InvalidArgument`: a family keeps no level for files behind all others.
fn check_behind(parts: &[(Arc<Family>, Vec<PathBuf>)]) -> Result<()> {
    let keeps = |family: &Family| family.options().compaction.keeps_last_level;
    match parts.iter().find(|(family, _)| !keeps(family)) {
        None => Ok(()),
        Some((family, _)) => {
            let what =
                format!("column family {:?} keeps no level for files behind all others", family.name());
            Err(Error::invalid(what).hint(
                "Create it with cf_allow_ingest_behind=true, at least 3 levels, and the style Level or Universal",
            ))
        }
    }
}

impl Core {
    fn ingest(
        self: &Arc<Self>,
        parts: &[(Arc<Family>, Vec<PathBuf>)],
        options: IngestOptions,
    ) -> Result<Vec<Ingested>> {
        // A close waits for the call, and ends what it waits for.
        let _claim = self.claim()?;
        let parts = self.inside(|| self.prepare(parts, options))?;
        self.flush_overlapped(&parts, options)?;
        // So that little is left to sync while writers wait.
        self.sync_earlier()?;
        let mut ingested = self.committer.lead_alone(|| self.ingest_alone(parts, options))?;
        self.notify_ingested(&ingested);
        if options.mode == IngestMode::Move {
            self.remove_sources(&mut ingested);
        }
        Ok(ingested)
    }

    /// Runs `act`, which may call a comparator. Nothing has changed yet, so a panic goes to the caller alone.
    fn inside<T>(&self, act: impl FnOnce() -> T) -> T {
        let _inside = self.database.enter();
        act()
    }

    /// Checks the files, and brings them into the directory.
    fn prepare(
        self: &Arc<Self>,
        parts: &[(Arc<Family>, Vec<PathBuf>)],
        options: IngestOptions,
    ) -> Result<Vec<Part>> {
        let level = self.options().format_level;
        let takes = Takes { verified: options.verify, entities: level >= FormatLevel::V7_8 };
        for (family, files) in parts {
            let options = family.options();
            for path in files {
                self.check_outside_directory(path)?;
                survey(&*self.env.fs, path, taker(family, &options), level)?;
            }
        }
        let mut brought: Vec<Part> = Vec::with_capacity(parts.len());
        for (family, files) in parts {
            let mut part = Part { family: Arc::clone(family), files: Vec::with_capacity(files.len()) };
            for path in files {
                let of = family.options();
                let file = bring(self, (&*of, Level::ZERO), path, options.mode)?;
                let inspected = inspect(&*self.env.fs, file.path(), taker(family, &of), takes)
                    .map_err(|e| of_source(&e, path))?;
                if options.behind && inspected.counts.is_none_or(|counts| counts.range_deletions > 0) {
                    let e = Error::invalid("a range deletion behind all data would delete nothing");
                    return Err(e.at_path(path).hint("Write the file without range deletions"));
                }
                part.files.push(Candidate { source: path.clone(), brought: file, inspected });
            }
            brought.push(part);
        }
        check_different(&brought)?;
        for dir in bring::folders(&brought) {
            if !planted(Bug::IngestedDirUnsynced) {
                self.env.fs.sync_dir(&dir)?;
            }
        }
        Ok(brought)
    }

    /// Refuses a file in a directory of the database: a move would take a table from the tree.
    pub(super) fn check_outside_directory(&self, path: &Path) -> Result<()> {
        let folder = folder_of(path);
        let elsewhere = self.places.elsewhere();
        let own = std::iter::once(&self.dir).chain(elsewhere.iter().map(|(dir, _)| dir));
        for dir in own {
            if ashlar_tree::places::same_directory(&*self.env.fs, dir, folder) {
                let e = Error::invalid("a directory of the database is no place for files to ingest");
                return Err(e.at_path(path).hint("Write them to a directory of their own"));
            }
        }
        Ok(())
    }

    /// The families whose memtables must be flushed first: those with entries in the range of a file that does not go behind
    /// all data. After writes that skipped
    /// the WAL also those with any entry, and with `atomic_flush` all such families of the database, unless the options rule
    /// out a flush.
    fn to_flush(&self, parts: &[Part], options: IngestOptions) -> Result<Vec<FamilyId>> {
        let unlogged = options.flush && self.committer.has_unlogged();
        let every = unlogged && self.options().atomic_flush;
        let memtables: Vec<_> = {
            let state = self.state();
            let all = |live: &LiveFamily| {
                let mut all = live.memtables.immutable_newest_first().into_vec();
                all.push(Arc::clone(&live.memtables.current().rep));
                (live.family.id(), all)
            };
            state.families.iter().map(all).collect()
        };
        let mut overlapped = Vec::new();
        for (id, memtables) in memtables {
            let used = memtables.iter().any(|memtable| !memtable.is_empty());
            let part = parts.iter().find(|part| part.family.id() == id);
            let all = every || unlogged && part.is_some();
            let overlaps = |part: &Part| {
                if options.behind {
                    return Ok(false);
                }
                let spans = part.files.iter().map(|file| &file.inspected.span);
                memtables_overlap(&part.family.options().order, &memtables, spans)
            };
            if used && (all || part.map_or(Ok(false), overlaps)?) {
                overlapped.push(id);
            }
        }
        Ok(overlapped)
    }

    /// Flushes the families with such entries, before the lead is taken: writers go on meanwhile.
    fn flush_overlapped(self: &Arc<Self>, parts: &[Part], options: IngestOptions) -> Result<()> {
        let overlapped = self.inside(|| self.to_flush(parts, options))?;
        match overlapped.is_empty() {
            true => Ok(()),
            false => {
                check_may_flush(options)?;
                self.flush(&overlapped)
            }
        }
    }

    /// Makes the earlier writes durable, which the files come after.
    pub(super) fn sync_earlier(&self) -> Result<()> {
        if planted(Bug::IngestedBeforeLogs) { Ok(()) } else { self.committer.sync() }
    }

    /// The part of an ingestion beside which no write runs.
    fn ingest_alone(self: &Arc<Self>, parts: Vec<Part>, options: IngestOptions) -> Result<Vec<Ingested>> {
        let overlapped = self.inside(|| self.to_flush(&parts, options))?;
        if !overlapped.is_empty() {
            check_may_flush(options)?;
            self.seal(&overlapped)?;
            let _holding = self.hold_writers(None);
            self.flush_immutable(&overlapped)?;
        }
        parts.iter().try_for_each(|part| self.check_live(&part.family))?;
        self.sync_earlier()?;
        let first = self.committer.last_reserved();
        let (placements, claims) = self.place(&parts, first, options)?;
        let (ingested, mut change) = self.change(parts, &placements);
        if options.behind {
            // Snapshots keep what they saw. One number more tells them from later ones.
            change.filtered = change.edits.iter().map(|edit| (edit.family, None)).collect();
            change.raised = Some(first.checked_add(1).ok_or_else(out_of_sequences)?);
        }
        let last = ingested.iter().map(|file| file.sequence).max().unwrap_or(first);
        let done = self.apply(change);
        // Also after a failure: the next open may find the tables, and then no write may have their numbers.
        self.committer.take_sequences(last);
        drop(claims);
        done.inspect_err(|e| {
            self.commit_failed(e);
            self.settle(e);
        })?;
        Ok(ingested)
    }

    /// The change of the tree. From here on the files belong to it: after a failed commit the purge removes them.
    fn change(&self, parts: Vec<Part>, placements: &[Placement]) -> (Vec<Ingested>, Change) {
        let now = self.unix_secs();
        let (mut ingested, mut change) = (Vec::new(), Change::default());
        let mut placements = placements.iter();
        for part in parts {
            let mut edit = VersionEdit::of(part.family.id());
            for (file, (level, seq)) in part.files.into_iter().zip(placements.by_ref()) {
                let Candidate { source, brought, inspected } = file;
                let mut meta = inspected.meta(brought.number(), *seq, now);
                meta.path_id = brought.path_id();
                (meta.checksum, meta.checksum_function) = brought.checksum();
                if *seq == SeqNum::ZERO {
                    meta.epoch = EPOCH_BEHIND;
                }
                change.counts.extend(inspected.counts.map(|counts| (meta.number, counts)));
                ingested.push(Ingested {
                    source,
                    family: part.family.name().to_owned(),
                    number: meta.number,
                    size: meta.size,
                    entries: inspected.entries,
                    level: *level,
                    sequence: *seq,
                    copied: brought.copied(),
                    source_kept: None,
                });
                edit.add_file(*level, meta);
                let (pending, space) = brought.keep();
                change.pending.extend(pending);
                change.space.extend(space);
            }
            change.edits.push(edit);
        }
        (ingested, change)
    }

    /// Chooses the level of each file, and claims the places.
    fn place(
        self: &Arc<Self>,
        parts: &[Part],
        first: SeqNum,
        options: IngestOptions,
    ) -> Result<(Vec<Placement>, LevelClaims)> {
        if options.behind {
            let (levels, claims) = self.inside(|| place::behind(self, parts))?;
            return Ok((levels.into_iter().map(|level| (level, SeqNum::ZERO)).collect(), claims));
        }
        let (levels, claims) = self.inside(|| place::choose(self, parts))?;
        let files = || parts.iter().flat_map(|part| part.files.iter().map(move |file| (part, file)));
        if options.bottommost_only {
            for ((part, file), level) in files().zip(&levels) {
                let compaction = &part.family.options().compaction;
                let last = compaction.num_levels.saturating_sub(1 + usize::from(compaction.keeps_last_level));
                if level.index() != last {
                    return Err(not_bottommost(&file.source, *level, last));
                }
            }
        }
        let mut placements = Vec::with_capacity(levels.len());
        let mut seq = first;
        for level in levels {
            seq = seq.checked_add(1).ok_or_else(out_of_sequences)?;
            placements.push((level, if planted(Bug::IngestedWithoutSequence) { SeqNum::ZERO } else { seq }));
        }
        Ok((placements, claims))
    }

    /// Reports the files that a durable edit took in.
    fn notify_ingested(&self, ingested: &[Ingested]) {
        for Ingested { source, family, number, size, level, sequence, .. } in ingested {
            let (source, table) = (source.display().to_string(), (*number, *level));
            let event = IngestEvent::new(family.clone(), source, table, *size, *sequence);
            self.events.tell(&Event::FileIngested(event));
        }
    }

    /// Removes the names that a move has replaced, and then syncs each directory once. A failure changes nothing of the
    /// ingestion.
    fn remove_sources(&self, ingested: &mut [Ingested]) {
        let mut synced: BTreeMap<PathBuf, Result<()>> = BTreeMap::new();
        for file in ingested.iter_mut() {
            file.source_kept = self.env.fs.remove(&file.source).err();
        }
        for file in ingested.iter_mut().filter(|file| file.source_kept.is_none()) {
            let folder = folder_of(&file.source);
            let done = synced.entry(folder.to_path_buf()).or_insert_with(|| self.env.fs.sync_dir(folder));
            file.source_kept = done.as_ref().err().map(|e| of_source(e, &file.source));
        }
    }
}

/// An error of the file in the directory of the database, which the caller knows by another name.
fn of_source(e: &Error, source: &Path) -> Error {
    match e.offset() {
        Some(offset) => Error::new(e.kind(), e.message()).at(source, offset),
        None => Error::new(e.kind(), e.message()).at_path(source),
    }
    .hint("The file was not ingested, and the database is unchanged")
}

/// Refuses two names of one file.
fn check_different(parts: &[Part]) -> Result<()> {
    let all: Vec<&Candidate> = parts.iter().flat_map(|part| &part.files).collect();
    for (at, file) in all.iter().enumerate() {
        let Some(id) = file.inspected.unique_id else { continue };
        let before = all.get(..at).unwrap_or_default();
        if let Some(same) = before.iter().find(|other| other.inspected.unique_id == Some(id)) {
            let what = format!("the same file as {}, which the call names too", same.source.display());
            return Err(Error::invalid(what).at_path(&file.source).hint("Name each file once"));
        }
    }
    Ok(())
}

fn check_may_flush(options: IngestOptions) -> Result<()> {
    if options.flush {
        return Ok(());
    }
    let e = Error::new(
        ErrorKind::Aborted,
        "a memtable has keys in the range of a file, and must be flushed first",
    );
    Err(e.hint("Flush the family, or let the ingestion flush it: IngestOptions::flush"))
}

fn not_bottommost(source: &Path, level: Level, last: usize) -> Error {
    let what =
        format!("the file could only go to {level}, because the tree has or gets keys in its range below");
    let e = Error::new(ErrorKind::Aborted, what).at_path(source);
    e.hint(format!("Ingest it without bottommost_only, or when L{last} has no key in its range"))
}

#[cold]
pub(super) fn out_of_sequences() -> Error {
    Error::not_supported("more than 2^56 writes in one database")
}

/// The family as the checks of a file see it.
fn taker<'a>(family: &'a Family, options: &'a FamilyOptions) -> Taker<'a> {
    Taker { name: family.name(), id: family.id(), options }
}
