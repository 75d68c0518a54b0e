//! Replays the WAL files that hold unflushed data, oldest first, into the caller's memtables. Reads only.
//!
//! 1. Replay begins at the smallest WAL file that the MANIFEST needs; later files are replayed even if the MANIFEST
//!    does not know them.
//! 2. A batch is checked as a whole (framing, count, every record, range bounds) before any of it is applied.
//! 3. In point-in-time mode replay stops before the first damage. A later WAL file is replayed only if its first batch
//!    continues exactly; then nothing is missing in between. Everything else is dropped and listed in the report.
//! 4. A WAL file of this engine names the file before it and where that file ended. If less of that file was read,
//!    writes are missing between the two, which is damage too. A link to a file older than all replayed ones, with a
//!    sequence that goes back, does not belong to this file. After a failed device write, ext4 may show a block's
//!    content from another file.
//! 5. If the MANIFEST lost its end, the WAL files show whether that end was in use. Writes of a family that no record
//!    of the MANIFEST created prove it, and, where the tail is torn, a missing needed WAL file does. The open fails then.
//! 6. Damage below a size that the MANIFEST recorded as synced is never a torn tail: the open fails, except in the mode
//!    that skips all damage.
//! 7. A sequence that goes back fails the open in every mode. Two processes that write one WAL file cause it. A repair
//!    keeps the earlier batches and drops the rest of that file. An I/O error fails the open in every mode.
//! 8. A family takes nothing from WAL files below its log number: that data is in tables.
//! 9. Prepared data counts when its commit is read (see `two_phase`). The sink gets undecided data at the end, and the
//!    report names it. Families with timestamps take nothing.
//!
//! 10. WAL files of transactions that write before they commit count sequences differently. Only their marks show that.
//!     A replay that meets such a mark, or a sequence that goes back in WAL files with such a mark, ends. A read-only
//!     open then starts again under that policy.
//!
//! Source: RocksDB `db/db_impl/db_impl_open.cc` (`RecoverLogFiles`).

use super::before_commit::Undecided;
use super::remains::Remains;
use super::report::{DroppedRange, RecoveryReport, WalReport};
use super::sink::{BatchPlace, FamilyFilter, ReplaySink};
use super::two_phase::Prepared;
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, FamilyId, FileNumber, Malformed, Order, Result, SeqNum};
use ashlar_env::{EntryKind, Env, ReadFile};
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::{LogLink, PredecessorInfo, decode_timestamp_sizes};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogEnd, LogReader, LogRecord, LogRecordKind, RecoveryMode, Skipped};
use ashlar_tree::files::in_place_of_wals;
use ashlar_tree::logs::{Marks, ends_a_part, goes_back_to, has_marks, has_transactions, link_of};
use ashlar_tree::version::{FamilyState, VersionSet};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// When transactions write to memtables, and therefore what sequences count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// When they commit, as plain writes do: sequences count records.
    #[default]
    AtCommit,
    /// When they prepare, or earlier: sequences count parts of batches.
    BeforeCommit,
}

/// Why a database with WAL files of [`Policy::BeforeCommit`] takes no writes.
const BEFORE_COMMIT: &str = "the logs are those of transactions that write before they commit (write-prepared or \
                             write-unprepared), and only a transaction database can continue with them";

/// What a replay found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayOutcome {
    /// The newest known sequence: of the tables or of the last batch.
    pub last_seq: SeqNum,
    /// Data was dropped. The caller's new WAL file must begin with a synced empty batch that carries the sequence after
    /// `last_seq`. Then a later recovery, here or by RocksDB, continues after the damage.
    pub cut: bool,
    /// The largest WAL file number seen; the MANIFEST's log numbers may move past it once everything is flushed.
    pub newest_wal: Option<FileNumber>,
    /// The newest WAL file read, and the end of its last record.
    pub newest_end: Option<LogLink>,
    /// The oldest needed WAL file that did not end cleanly. Beside a live writer it may have been recycled meanwhile.
    pub unclean: Option<FileNumber>,
    /// The same of the WAL files that are kept for transactions only.
    pub unclean_kept: Option<FileNumber>,
    /// How the WAL files must be read. If it differs from the requested policy, the replay ended when it found that.
    pub policy: Policy,
}

/// Replays the WAL files of `dir` that `versions` needs into `sink`. Stores the numbers and sequences found in
/// `versions`; writes nothing.
///
/// # Errors
/// `Corruption` naming file and offset, where the mode does not allow the damage or the damaged bytes had been durable;
/// `Io` of any read; `NotSupported`: timestamps in the WAL of a family that has none; any error of the sink.
pub fn replay_wals(
    env: &Env,
    dir: &Path,
    versions: &VersionSet,
    mode: RecoveryMode,
    sink: &mut dyn ReplaySink,
    report: &mut RecoveryReport,
) -> Result<ReplayOutcome> {
    let wals = FoundWals::open(env, dir, versions)?;
    replay_found(&wals, dir, versions, (mode, Policy::AtCommit), sink, report)
}

/// [`replay_wals`] for a repair: continues after every damage. Where sequences go back it drops only the rest of that
/// WAL file.
///
/// # Errors
/// As [`replay_wals`].
pub fn salvage_wals(
    env: &Env,
    dir: &Path,
    versions: &VersionSet,
    sink: &mut dyn ReplaySink,
    report: &mut RecoveryReport,
) -> Result<ReplayOutcome> {
    let wals = FoundWals::open(env, dir, versions)?;
    let how = How { mode: RecoveryMode::SkipAny, policy: Policy::AtCommit, salvaging: true };
    replay_all(&wals, dir, versions, how, sink, report)
}

/// How WAL files are replayed.
#[derive(Clone, Copy)]
struct How {
    mode: RecoveryMode,
    policy: Policy,
    /// True for a repair.
    salvaging: bool,
}

/// [`replay_wals`], with already opened WAL files and a given policy.
///
/// # Errors
/// As [`replay_wals`], and `NotSupported` when tables hold writes of undecided transactions.
pub fn replay_found(
    wals: &FoundWals,
    dir: &Path,
    versions: &VersionSet,
    (mode, policy): (RecoveryMode, Policy),
    sink: &mut dyn ReplaySink,
    report: &mut RecoveryReport,
) -> Result<ReplayOutcome> {
    replay_all(wals, dir, versions, How { mode, policy, salvaging: false }, sink, report)
}

fn replay_all(
    wals: &FoundWals,
    dir: &Path,
    versions: &VersionSet,
    How { mode, policy, salvaging }: How,
    sink: &mut dyn ReplaySink,
    report: &mut RecoveryReport,
) -> Result<ReplayOutcome> {
    let families = versions.families();
    let tracked = versions.db_facts().tracked_wals;
    let wals = &wals.0;
    let mut replay = Replay {
        dir,
        mode,
        salvaging,
        log_numbers: families
            .iter()
            .filter(|f| f.version.order.timestamp_len() == 0)
            .map(|f| (f.id, f.log_number))
            .collect(),
        orders: families.iter().map(|f| (f.id, f.version.order.clone())).collect(),
        next_seq: None,
        stopped: None,
        previous: None,
        ends: BTreeMap::new(),
        manifest_cut: report.dropped.first().map(|d| (dir.join(&d.file), d.offset)),
        max_family: versions.db_facts().max_family,
        min_wal: versions.min_wal(),
        outcome: ReplayOutcome { policy, ..ReplayOutcome::default() },
        policy,
        wals,
        prepared: Prepared::default(),
        undecided: Undecided::default(),
        sink,
        report,
    };
    for (number, size) in &tracked {
        if *number >= versions.min_wal() {
            check_tracked(dir, *number, *size, wals)?;
        }
    }
    for (i, wal) in wals.iter().enumerate() {
        versions.mark_file_number_used(wal.number);
        let synced = tracked.get(&wal.number).copied().flatten().unwrap_or(0);
        replay.wal(wal, synced, i + 1 == wals.len())?;
        replay.outcome.newest_wal = Some(wal.number);
        if replay.outcome.policy != policy {
            replay.report.read_only.push(BEFORE_COMMIT.to_owned());
            return Ok(replay.outcome);
        }
    }
    if let Some(damaged) = replay.stopped {
        check_consistency(dir, &families, wals, (damaged, &replay.report.dropped))?;
    }
    replay.tell_undecided()?;
    if policy == Policy::BeforeCommit {
        replay.undecided.check_tables(&replay.log_numbers).map_err(|e| e.at_path(dir))?;
        replay.report.read_only.push(BEFORE_COMMIT.to_owned());
        replay.report.read_only.extend(replay.undecided.lines());
    }
    if let Some(last) = replay.next_seq.map(SeqNum::before) {
        versions.raise_last_sequence(last);
    }
    let last_seq = versions.last_sequence();
    replay.report.last_sequence = last_seq;
    if replay.outcome.cut {
        replay.report.sequence_cut = Some(last_seq);
    }
    Ok(ReplayOutcome { last_seq, newest_end: replay.newest_end(), ..replay.outcome })
}

/// # Errors
/// `Corruption`: some family has tables with data from after the WAL file at whose damage replay stopped.
fn check_consistency(
    dir: &Path,
    families: &[Arc<FamilyState>],
    wals: &[WalFile],
    (damaged, dropped): (FileNumber, &[DroppedRange]),
) -> Result<()> {
    let ahead = families.iter().find(|f| f.log_number > damaged && f.version.file_count() != 0);
    let Some(family) = ahead else { return Ok(()) };
    let name = FileKind::Wal(damaged).name();
    let path = wals.iter().find(|wal| wal.number == damaged).map(|wal| wal.path.clone());
    let path = path.unwrap_or_else(|| dir.join(&name));
    let what = format!(
        "column family inconsistency: family {:?} has tables with data from behind the damage",
        family.name
    );
    let e = match dropped.iter().rfind(|range| range.file == name) {
        Some(range) => Error::corruption(format!("{what}: {}", range.reason)).at(&path, range.offset),
        None => Error::corruption(what).at_path(&path),
    };
    Err(e.hint(
        "Restore the WAL file from a backup, repair the database, or open with the recovery mode that skips what is damaged",
    ))
}

/// An open WAL file.
#[derive(Debug)]
struct WalFile {
    number: FileNumber,
    name: String,
    /// The path for messages.
    path: PathBuf,
    /// The length when the file was opened.
    len: u64,
    file: Arc<dyn ReadFile>,
}

/// The WAL files that a database needs, oldest first. All are open, so they stay readable if a writer unlinks them.
#[derive(Debug)]
pub struct FoundWals(Vec<WalFile>);

impl FoundWals {
    /// Finds and opens the WAL files. They are opened after they were listed, so all but the newest are complete even
    /// beside a writer. A WAL file that no family needs may be kept for transactions prepared in it.
    ///
    /// # Errors
    /// `Io`.
    pub fn open(env: &Env, dir: &Path, versions: &VersionSet) -> Result<FoundWals> {
        let (min, facts) = (versions.min_wal(), versions.db_facts());
        let (prev, keep) = (facts.prev_log, facts.min_log_to_keep);
        let mut wals = Vec::new();
        let entries = env.fs.list(dir)?;
        if let Some((_, name)) = in_place_of_wals(&entries, min).next() {
            return Err(not_a_log(&env.fs.real_path(&dir.join(name))));
        }
        for entry in entries.into_iter().filter(|entry| entry.kind != EntryKind::Dir) {
            let Some(FileKind::Wal(number)) = FileKind::parse(&entry.name) else { continue };
            // RocksDB does not always record the oldest WAL file that it keeps, so every older file is searched for
            // transactions.
            let kept = (keep..min).contains(&number);
            if number >= min || kept || (number == prev && prev.0 != 0) {
                let path = dir.join(&entry.name);
                let file = env.fs.open_read(&path)?;
                if !kept || has_transactions(&file, number)? {
                    let (path, len) = (env.fs.real_path(&path), file.len());
                    wals.push(WalFile { number, name: entry.name, path, len, file });
                }
            }
        }
        wals.sort_by_key(|w| w.number);
        Ok(FoundWals(wals))
    }
}

/// The error for a directory that has the name of a WAL file which may be needed.
fn not_a_log(path: &Path) -> Error {
    let e =
        Error::invalid("a directory is in the place of a WAL file that the database may need").at_path(path);
    e.hint(
        "Put the WAL file in its place; if there was none of this number, or it is lost, move the directory away",
    )
}

/// The error of an open for a batch whose sequence goes back.
fn gone_back(dir: &Path, path: &Path, offset: u64, reason: String) -> Error {
    let dir = dir.display();
    Error::corruption(reason).at(path, offset).hint(format!(
        "More than one process may have written to the WAL. 'ashlar db --db={dir} check' lists the writes from there on, \
         'ashlar db --db={dir} repair' keeps the writes before"
    ))
}

fn check_tracked(dir: &Path, number: FileNumber, size: Option<u64>, wals: &[WalFile]) -> Result<()> {
    let Some(size) = size else { return Ok(()) };
    let path = dir.join(FileKind::Wal(number).name());
    match wals.iter().find(|w| w.number == number) {
        Some(wal) if wal.len >= size => Ok(()),
        Some(wal) => Err(Error::corruption(format!(
            "WAL file {number} has {} bytes, but {size} were synced as the MANIFEST says",
            wal.len
        ))
        .at(&wal.path, wal.len)),
        None => Err(Error::corruption(format!("WAL file {number} is missing, which the MANIFEST tracks"))
            .at_path(&path)),
    }
}

struct Replay<'a> {
    dir: &'a Path,
    mode: RecoveryMode,
    salvaging: bool,
    log_numbers: BTreeMap<FamilyId, FileNumber>,
    orders: BTreeMap<FamilyId, Order>,
    /// The sequence the next batch should have; `None` before the first.
    next_seq: Option<SeqNum>,
    /// The WAL file at whose damage replay stopped.
    stopped: Option<FileNumber>,
    previous: Option<Predecessor>,
    /// Where the last good record of each WAL file ended.
    ends: BTreeMap<FileNumber, u64>,
    /// Where the end of the MANIFEST was dropped.
    manifest_cut: Option<(PathBuf, u64)>,
    max_family: FamilyId,
    min_wal: FileNumber,
    outcome: ReplayOutcome,
    policy: Policy,
    wals: &'a [WalFile],
    prepared: Prepared,
    undecided: Undecided,
    sink: &'a mut dyn ReplaySink,
    report: &'a mut RecoveryReport,
}

/// Why a record was not replayed.
enum Refused {
    /// The bytes are wrong; the mode decides.
    Damaged(String),
    /// The end of an earlier WAL file is missing.
    Hole(FileNumber, String),
    /// The sequence is below that of the record before.
    GoesBack(String),
    /// Replay stopped earlier, and this record does not continue exactly there.
    Unconnected,
    /// This record, and everything before it, must be replayed under another policy.
    Policy,
    /// The open fails.
    Fatal(Error),
}

impl From<Malformed> for Refused {
    fn from(e: Malformed) -> Refused {
        Refused::Damaged(e.to_string())
    }
}

/// The WAL file before the current one.
struct Predecessor {
    number: FileNumber,
    len: u64,
    /// The sequence field of its last batch; 0 = none.
    last_batch: SeqNum,
}

impl Replay<'_> {
    /// Hands over what is prepared and not decided on.
    fn tell_undecided(&mut self) -> Result<()> {
        for undecided in self.prepared.undecided() {
            let (mut found, data) = undecided.map_err(|e| e.into_error().at_path(self.dir))?;
            found.count_keys(&[data.reader()], &self.report.families);
            self.sink.undecided(&found.name, data);
            self.report.undecided.push(found);
        }
        let before_commit = self.undecided.transactions(&self.report.families);
        self.report.undecided.extend(before_commit.map_err(|e| e.into_error().at_path(self.dir))?);
        Ok(())
    }

    fn wal(&mut self, wal: &WalFile, synced: u64, newest: bool) -> Result<()> {
        let path = wal.path.clone();
        let mut reader = LogReader::open(Arc::clone(&wal.file), wal.number, self.mode);
        let mut found = WalReport { number: wal.number, records: 0, bytes: 0 };
        let mut this = Predecessor { number: wal.number, len: wal.len, last_batch: SeqNum::ZERO };
        let mut ended = false;
        loop {
            let next = match reader.next() {
                Err(_) if planted(Bug::LogReadErrorIsEnd) => None,
                other => other?,
            };
            let Some(record) = next else { break };
            let LogRecord { offset, payload, kind } = record;
            match self.record(wal.number, offset, kind, payload) {
                Ok(None) => {}
                Ok(Some(seq)) => {
                    this.last_batch = seq;
                    found.records += 1;
                    found.bytes += payload.len() as u64;
                }
                Err(Refused::Unconnected) => {
                    let reason =
                        "replay stopped in an earlier WAL file, and this one does not continue there";
                    self.drop_range(wal, offset, wal.len.saturating_sub(offset), reason.to_string())?;
                    ended = true;
                    break;
                }
                Err(Refused::Policy) => {
                    self.outcome.policy = Policy::BeforeCommit;
                    return Ok(());
                }
                Err(Refused::GoesBack(reason)) if self.salvaging => {
                    self.drop_range(wal, offset, wal.len.saturating_sub(offset), reason)?;
                    ended = true;
                    break;
                }
                Err(Refused::GoesBack(reason)) => return Err(gone_back(self.dir, &path, offset, reason)),
                Err(Refused::Fatal(e)) => return Err(e.at(&path, offset)),
                Err(Refused::Hole(before, reason)) => {
                    self.damage(wal, &path, offset, reason, synced)?;
                    self.stopped = self.stopped.map(|_| before);
                    if self.mode != RecoveryMode::SkipAny {
                        ended = true;
                        break;
                    }
                }
                Err(Refused::Damaged(reason)) => {
                    self.damage(wal, &path, offset, reason, synced)?;
                    if self.mode != RecoveryMode::SkipAny {
                        ended = true;
                        break;
                    }
                }
            }
        }
        if ended || reader.end() != LogEnd::Clean || reader.good_end() < wal.len {
            let oldest = match wal.number < self.min_wal {
                true => &mut self.outcome.unclean_kept,
                false => &mut self.outcome.unclean,
            };
            oldest.get_or_insert(wal.number);
        }
        if !ended {
            self.end_of(wal, &path, &reader, synced, newest)?;
        }
        self.ends.insert(wal.number, reader.good_end());
        self.report.wals.push(found);
        self.previous = Some(this);
        Ok(())
    }

    /// Replays one record. Returns the sequence of a batch.
    fn record(
        &mut self,
        wal: FileNumber,
        offset: u64,
        kind: LogRecordKind,
        payload: &[u8],
    ) -> Result<Option<SeqNum>, Refused> {
        match kind {
            LogRecordKind::Data => self.batch(BatchPlace { wal, offset }, payload).map(Some),
            LogRecordKind::PredecessorInfo => self.check_predecessor(payload).map(|()| None),
            LogRecordKind::TimestampSizes => {
                let sizes = decode_timestamp_sizes(payload)?;
                match sizes.iter().find(|(family, _)| self.log_numbers.contains_key(family)) {
                    None => Ok(None),
                    Some((family, _)) => Err(Refused::Fatal(Error::not_supported(format!(
                        "user-defined timestamps in the WAL, of family {}",
                        family.0
                    )))),
                }
            }
        }
    }

    fn batch(&mut self, place: BatchPlace, payload: &[u8]) -> Result<SeqNum, Refused> {
        let batch = BatchReader::new(payload)?;
        let (seq, link) = (batch.seq(), link_of(&batch)?);
        let mut hole = Ok(());
        if self.stopped.is_some() {
            if self.next_seq != Some(seq) && !planted(Bug::ReplayPastAHole) {
                return Err(Refused::Unconnected);
            }
            self.stopped = None;
        } else if let Some(link) = link {
            hole = self.check_link(link);
        }
        // A mode that skips damage applies the batch behind a hole: it may have copies of transactions.
        let skips = self.mode == RecoveryMode::SkipAny && matches!(hole, Err(Refused::Hole(..)));
        if !skips {
            std::mem::replace(&mut hole, Ok(()))?;
        }
        let seq = self.connected(place, (payload, batch), (seq, link))?;
        hole.map(|()| seq)
    }

    /// Replays a batch that continues where the replay is.
    fn connected(
        &mut self,
        place: BatchPlace,
        (payload, batch): (&[u8], BatchReader<'_>),
        (seq, link): (SeqNum, Option<LogLink>),
    ) -> Result<SeqNum, Refused> {
        let count = u64::from(batch.count());
        if let Some(link) = link.filter(|_| self.next_seq.is_some_and(|next| seq < next)) {
            return match self.ends.contains_key(&link.number) {
                // The creation of this WAL file failed: writing continued in the file before it.
                true => Ok(seq),
                false => Err(Refused::Damaged("the record is the beginning of an older WAL file".into())),
            };
        }
        let marks = self.check_ops(&batch)?;
        if let Some(link) = link {
            // Writing continued in the file before, and took no sequence numbers: this file was begun in vain, too.
            if self.ends.get(&link.number).is_some_and(|found| *found > link.end) {
                return Ok(seq);
            }
            self.prepared.begin_file(&batch)?;
        }
        if self.policy == Policy::BeforeCommit {
            self.written_before(place, payload, seq)?;
            return Ok(seq);
        }
        let goes_back = self.next_seq.filter(|next| seq < *next);
        let counts_parts = || Ok::<_, Refused>(ends_a_part(&batch) || self.any_before_commit()?);
        if marks == Marks::BeforeCommit || goes_back.is_some() && counts_parts()? {
            return Err(Refused::Policy);
        }
        if let Some(next) = goes_back {
            return Err(Refused::GoesBack(goes_back_to(next, seq)));
        }
        let next = seq
            .checked_add(count)
            .ok_or_else(|| Refused::Damaged("a sequence number over 56 bits".to_string()))?;
        if marks == Marks::TwoPhase {
            self.next_seq = Some(self.pieces(place, payload, seq)?);
            return Ok(seq);
        }
        let filter = FamilyFilter { wal: place.wal, log_numbers: &self.log_numbers };
        self.sink.apply(place, &batch, &filter).map_err(Refused::Fatal)?;
        self.next_seq = Some(next);
        Ok(seq)
    }

    /// Applies a batch with two-phase marks; returns the sequence after it.
    #[cold]
    fn pieces(&mut self, place: BatchPlace, payload: &[u8], first: SeqNum) -> Result<SeqNum, Refused> {
        let filter = FamilyFilter { wal: place.wal, log_numbers: &self.log_numbers };
        let mut seq = first;
        for piece in self.prepared.apply(place.wal, payload)? {
            let batch = piece.at(seq);
            self.sink.apply(place, &BatchReader::new(&batch)?, &filter).map_err(Refused::Fatal)?;
            seq = seq
                .checked_add(piece.count())
                .ok_or_else(|| Refused::Fatal(Error::corruption("a sequence number over 56 bits")))?;
        }
        Ok(seq)
    }

    /// Applies the writes that count after a batch of transactions that write before they commit.
    #[cold]
    fn written_before(&mut self, place: BatchPlace, payload: &[u8], first: SeqNum) -> Result<(), Refused> {
        let (writes, next) = self.undecided.apply(place.wal, payload, first)?;
        for write in writes {
            let filter = FamilyFilter { wal: write.wal, log_numbers: &self.log_numbers };
            self.sink.apply(place, &BatchReader::new(&write.batch())?, &filter).map_err(Refused::Fatal)?;
        }
        // Two queues of writers may log sequences out of order.
        self.next_seq = self.next_seq.max(Some(next));
        Ok(())
    }

    /// Whether any WAL file has marks of transactions that write before they commit.
    #[cold]
    fn any_before_commit(&self) -> Result<bool, Refused> {
        for wal in self.wals {
            if has_marks(&wal.file, wal.number, Marks::BeforeCommit).map_err(Refused::Fatal)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Proves that the bytes of the batch cannot make its application fail half-way. Returns the marks of the batch.
    fn check_ops(&self, batch: &BatchReader<'_>) -> Result<Marks, Refused> {
        let mut marks = Marks::None;
        for op in batch.iter() {
            let op = op?;
            marks = marks.max(Marks::of(&op));
            // The commit that creates a family is durable before any write to the family. A dropped family's id is lower.
            if let Some(family) = op.family().filter(|f| !self.salvaging && *f > self.max_family) {
                let what =
                    format!("the WAL has data of family {}, which a later commit had created", family.0);
                return Err(Refused::Fatal(self.lost_manifest(&what)));
            }
            if let BatchOp::DeleteRange { family, begin, end } = op {
                let order = self.orders.get(&family);
                if order.is_some_and(|o| o.compare(begin, end) == Ordering::Greater) {
                    return Err(Refused::Damaged("a range deletion that ends before it begins".to_string()));
                }
            }
        }
        Ok(marks)
    }

    fn lost_manifest(&self, witness: &str) -> Error {
        let e = Error::corruption(format!("the end of the MANIFEST is lost: {witness}"))
            .hint("Restore the MANIFEST from a backup, or repair the database");
        match &self.manifest_cut {
            Some((path, offset)) => e.at(path, *offset),
            None => e,
        }
    }

    fn newest_end(&self) -> Option<LogLink> {
        self.ends.last_key_value().map(|(number, end)| LogLink { number: *number, end: *end })
    }

    fn check_link(&self, link: LogLink) -> Result<(), Refused> {
        let LogLink { number, end } = link;
        let hole =
            |what: String| Err(Refused::Hole(number, format!("the WAL file before, {number}, {what}")));
        match self.ends.get(&number) {
            Some(&found) if found < end => hole(format!("ends at {found} where {end} bytes were written")),
            None if number >= self.min_wal && self.manifest_cut.is_some() => {
                Err(Refused::Fatal(self.lost_manifest(&format!(
                    "the WAL file {number} is gone, so a later commit had made it obsolete"
                ))))
            }
            None if number >= self.min_wal => hole("is missing".to_string()),
            _ => Ok(()),
        }
    }

    /// A WAL file may state what the file before it must hold: that proves a loss between records.
    fn check_predecessor(&self, payload: &[u8]) -> Result<(), Refused> {
        let info = PredecessorInfo::decode(payload)?;
        let hole =
            |what: String| Err(Refused::Damaged(format!("the WAL file before, {}, {what}", info.number)));
        match &self.previous {
            // Replay already stopped in that file: only the sequence shows whether this file continues.
            _ if self.stopped.is_some() => Ok(()),
            Some(p) if p.number == info.number => {
                if p.len < info.size {
                    hole(format!("has {} bytes where {} were written", p.len, info.size))
                } else if p.last_batch != info.last_batch {
                    hole(format!("ends with batch {}, not {}", p.last_batch, info.last_batch))
                } else {
                    Ok(())
                }
            }
            _ if info.number >= self.min_wal => hole("is missing".to_string()),
            _ => Ok(()),
        }
    }

    /// Handles the reader's account of the end of a WAL file whose records were all valid.
    fn end_of(
        &mut self,
        wal: &WalFile,
        path: &Path,
        reader: &LogReader,
        synced: u64,
        newest: bool,
    ) -> Result<()> {
        if let Some((offset, reason)) = reader.skipped().first {
            let Skipped { count, bytes, .. } = reader.skipped();
            self.drop_range(wal, offset, bytes, format!("{count} damages skipped, the first: {reason}"))?;
        }
        match reader.end() {
            LogEnd::Clean => Ok(()),
            LogEnd::Torn { offset, reason, dropped_bytes } => {
                if self.mode == RecoveryMode::TolerateTail && !newest {
                    // Only the last WAL file can end in a write that a crash interrupted.
                    return Err(damaged(
                        path,
                        offset,
                        &format!("{reason}, in a WAL file that is not the newest"),
                    ));
                }
                self.proved(path, offset, synced, &reason.to_string())?;
                self.drop_range(wal, offset, dropped_bytes, format!("torn tail: {reason}"))
            }
            LogEnd::Cut { offset, reason, .. } => self.damage(wal, path, offset, reason.to_string(), synced),
            LogEnd::OldRecord { offset } => {
                self.proved(path, offset, synced, "a record of the file's former life")?;
                // The usual end of a recycled WAL file. Nothing is lost, but the next file must continue exactly, unless
                // this one is kept for transactions: WAL files between the two may be gone or unread.
                if wal.number >= self.min_wal {
                    self.stopped = Some(wal.number);
                }
                Ok(())
            }
        }
    }

    /// Damage at `offset`: fails the open or stops replay, depending on the mode.
    fn damage(&mut self, wal: &WalFile, path: &Path, offset: u64, reason: String, synced: u64) -> Result<()> {
        match self.mode {
            RecoveryMode::TolerateTail | RecoveryMode::Absolute => Err(damaged(path, offset, &reason)),
            RecoveryMode::PointInTime => {
                self.proved(path, offset, synced, &reason)?;
                self.stopped = Some(wal.number);
                self.outcome.cut = true;
                self.drop_range(wal, offset, wal.len.saturating_sub(offset), reason)
            }
            RecoveryMode::SkipAny => self.drop_range(wal, offset, 0, reason),
        }
    }

    /// Bytes below the synced size had been durable: their loss is damage, not a torn tail.
    fn proved(&self, path: &Path, offset: u64, synced: u64, reason: &str) -> Result<()> {
        if offset < synced && self.mode != RecoveryMode::SkipAny {
            let why = format!("{reason}, in a part of the WAL file that was synced ({synced} bytes)");
            return Err(damaged(path, offset, &why));
        }
        Ok(())
    }

    /// Reports what is not replayed. A mode that continues after damage replays the batches after it.
    fn drop_range(&mut self, wal: &WalFile, offset: u64, bytes: u64, reason: String) -> Result<()> {
        let remains = match self.mode {
            RecoveryMode::SkipAny => None,
            _ => Remains::read(Arc::clone(&wal.file), wal.number, offset)?,
        };
        self.report.dropped.push(DroppedRange { file: wal.name.clone(), offset, bytes, reason, remains });
        Ok(())
    }
}

fn damaged(path: &Path, offset: u64, reason: &str) -> Error {
    Error::corruption(format!("WAL file damaged: {reason}")).at(path, offset).hint(
        "Restore the WAL file from a backup, or open with a recovery mode that drops the writes after the damage",
    )
}
