//! Calls beyond writes and reads among the steps of a history: transactions, copies, files behind all data, feeds of updates,
//! compactions of chosen tables, secondaries, values that expire.
//!
//! They have a generator of their own, so that the other steps of a known seed stay what they were. Its settings and the moments
//! of its crashes do not.

use super::copies::Copies;
use super::expiring::{self, TIMED, TTL_SECS};
use super::plan::{NAMES, Setup, Step};
use super::secondary::View;
use super::store::Store;
use super::updates::Bookmark;
use ashlar_base::{ErrorKind, Level};
use ashlar_options::{CompactFilesOptions, CompactRangeOptions, CompactionStyle};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::{Change, Mix, Op, draw};
use ashlar_txn::Kind;
use std::collections::BTreeMap;

/// A call between two steps.
#[derive(Clone, Debug)]
pub enum Feature {
    /// A transaction with these changes, begun and committed.
    Transact {
        /// How the transaction keeps others from its keys.
        kind: Kind,
        /// Its changes.
        changes: Vec<Change>,
        /// The commit waits for the device.
        sync: bool,
        /// A plain write to its first key comes before the commit.
        disturbed: bool,
    },
    /// A transaction with these changes, prepared and left so.
    Prepare {
        /// Its changes.
        changes: Vec<Change>,
        /// The prepare waits for the device.
        sync: bool,
    },
    /// The decision on a prepared transaction.
    Decide {
        /// Which one, of those that there are.
        which: usize,
        /// Commit, or else roll back.
        commit: bool,
    },
    /// A file of a family goes behind all data.
    Behind {
        /// The family.
        family: &'static str,
        /// How many keys the file has.
        keys: usize,
    },
    /// A checkpoint in a new directory.
    Checkpoint {
        /// The memtables are flushed first.
        flush: bool,
    },
    /// One more backup.
    Backup {
        /// The memtables are flushed first.
        flush: bool,
    },
    /// Removes the oldest backup.
    DeleteBackup,
    /// Notes where the writes are, for [`Feature::Updates`].
    Bookmark,
    /// Reads the updates since the bookmark.
    Updates,
    /// Compacts a range of keys.
    CompactRange {
        /// The family.
        family: &'static str,
        /// The first and the last key.
        range: [Vec<u8>; 2],
        /// The deepest level is rewritten, no other compaction runs.
        options: [bool; 2],
    },
    /// Compacts a table into a deeper level.
    CompactFile {
        /// The family.
        family: &'static str,
        /// Which table, of those that there are.
        which: usize,
        /// How many levels deeper.
        deeper: u8,
    },
    /// Time passes, then values that expire are written.
    Expire {
        /// How much time, in seconds.
        seconds: u64,
        /// Changes of the family whose values expire, and some of other families.
        changes: Vec<Change>,
        /// The write waits for the device.
        sync: bool,
    },
    /// A secondary catches up.
    Follow {
        /// What the writer writes meanwhile.
        changes: Vec<Change>,
        /// How many calls of the secondary come between two pieces of background work.
        pace: u64,
        /// The steps of such a piece.
        steps: usize,
        /// The writer flushes all families after its write.
        flush: bool,
    },
}

/// What the features of a history know and have done.
#[derive(Default)]
pub struct Done {
    /// The changes of every transaction that was prepared, by name, under the model's names of their families.
    pub(super) prepared: BTreeMap<String, Vec<Change>>,
    /// Files behind all data so far: no two have a key in common.
    pub(super) files_behind: usize,
    /// Checkpoints and backups that were made.
    pub(super) copies: Copies,
    pub(super) bookmark: Option<Bookmark>,
    /// Views of secondaries.
    pub(super) views: Vec<View>,
    /// Counts of the features, by name.
    pub counts: BTreeMap<&'static str, u64>,
}

impl Done {
    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }
}

/// Which features a history has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All.
    All,
    /// Those that a history may have in which calls fail.
    Writes,
}

impl Setup {
    /// The same settings, of a history with features. They are not drawn, so that a known seed draws the same steps.
    pub fn featured(mut self) -> Setup {
        let compaction = &mut self.family.compaction;
        if self.family.write_buffer_bytes == 256 << 10 && self.family.max_write_buffers == 4 {
            // With the limit of 1 GiB that comes by itself, which no history reaches.
            compaction.style = CompactionStyle::Fifo;
            compaction.fifo.allow_compaction = self.db.mapped_wal;
        }
        self.family.ingest_behind = compaction.l0_stop % 3 == 2 && compaction.style != CompactionStyle::Fifo;
        self.ttl_secs = (!self.unlogged && compaction.l0_stop.is_multiple_of(2)).then_some(TTL_SECS);
        self
    }
}

/// Puts features between the steps.
pub fn among(steps: Vec<Step>, setup: &Setup, which: Which, rng: &mut Rng) -> Vec<Step> {
    let mix = Mix {
        families: NAMES.map(String::from).to_vec(),
        batch_percent: 60,
        range_per_mille: 0,
        max_value_bytes: 4 << 10,
        ..Mix::writes_only()
    };
    let mut batches = draw(rng.next_u64(), steps.len(), &mix).into_iter().filter_map(|op| match op {
        Op::Write { changes, .. } => Some(changes),
        _ => None,
    });
    let mut all = Vec::with_capacity(steps.len() * 2);
    for step in steps {
        all.push(step);
        if rng.percent(if which == Which::All { 16 } else { 14 }) {
            let changes = batches.next().unwrap_or_default();
            all.extend(one(setup, which, changes, rng).map(Step::Feature));
        }
    }
    all
}

fn one(setup: &Setup, which: Which, changes: Vec<Change>, rng: &mut Rng) -> Option<Feature> {
    let family = NAMES[rng.below(NAMES.len())];
    // Where calls fail, features are drawn that are served there, and others.
    let all = which == Which::All;
    let compacted = if all && rng.percent(40) { TIMED } else { family };
    let feature = match rng.below(if all { 128 } else { 100 }) {
        0..18 => {
            let kind = if rng.percent(50) { Kind::Optimistic } else { Kind::Pessimistic };
            Feature::Transact { kind, changes, sync: rng.percent(20), disturbed: rng.percent(20) }
        }
        18..40 => Feature::Prepare { changes, sync: rng.percent(30) },
        40..60 => Feature::Decide { which: rng.below(100), commit: rng.percent(60) },
        60..72 => Feature::Behind { family, keys: rng.between(1, 12) },
        72..76 => {
            let mut range = [rng.bytes(2), rng.bytes(2)];
            range.sort();
            Feature::CompactRange { family: compacted, range, options: [rng.percent(50), rng.percent(30)] }
        }
        76..80 => {
            let deeper = if rng.percent(60) { 1 } else { 3 };
            Feature::CompactFile { family: compacted, which: rng.below(100), deeper }
        }
        80..84 => Feature::Bookmark,
        84..91 => Feature::Updates,
        91..95 => Feature::Checkpoint { flush: rng.percent(30) },
        95..99 => Feature::Backup { flush: rng.percent(30) },
        99 => Feature::DeleteBackup,
        100..118 => {
            let seconds = if rng.percent(50) { rng.between(1, 40) as u64 } else { 0 };
            let others = changes.into_iter().take(2);
            let changes = others.chain(expiring::changes(rng)).collect();
            Feature::Expire { seconds, changes, sync: rng.percent(30) }
        }
        _ => {
            let (pace, steps) = (rng.between(1, 12) as u64, rng.between(1, 6));
            Feature::Follow { changes, pace, steps, flush: rng.percent(40) }
        }
    };
    let (of_writes, logged) = match &feature {
        Feature::Transact { .. } => (true, true),
        Feature::Prepare { .. } | Feature::Decide { .. } => (true, true),
        Feature::Behind { .. } | Feature::CompactRange { .. } | Feature::CompactFile { .. } => (true, false),
        Feature::Bookmark | Feature::Updates => (false, true),
        Feature::Expire { .. } => (false, true),
        Feature::Checkpoint { .. } | Feature::Backup { .. } | Feature::DeleteBackup => (false, false),
        Feature::Follow { .. } => (false, false),
    };
    let timed = matches!(feature, Feature::Expire { .. });
    let served = (all || of_writes) && !(logged && setup.unlogged) && (!timed || setup.ttl_secs.is_some());
    served.then_some(feature)
}

impl Store {
    /// Makes the call.
    pub(super) fn feature(&mut self, feature: &Feature) -> Result<(), String> {
        match feature {
            Feature::Transact { kind, changes, sync, disturbed } => {
                self.transact(*kind, changes, *sync, *disturbed)
            }
            Feature::Prepare { changes, sync } => self.prepare(changes, *sync),
            Feature::Decide { which, commit } => self.decide(*which, *commit),
            Feature::Behind { family, keys } => self.ingest_behind(family, *keys),
            Feature::Checkpoint { flush } => self.checkpoint(*flush),
            Feature::Backup { flush } => self.back_up(*flush),
            Feature::DeleteBackup => self.delete_backup(),
            Feature::Bookmark => {
                self.set_bookmark();
                Ok(())
            }
            Feature::Updates => self.read_updates(),
            Feature::CompactRange { family, range, options } => self.compact_range(family, range, *options),
            Feature::CompactFile { family, which, deeper } => self.compact_file(family, *which, *deeper),
            Feature::Expire { seconds, changes, sync } => self.expire(*seconds, changes, *sync),
            Feature::Follow { changes, pace, steps, flush } => self.follow(changes, *pace, *steps, *flush),
        }
    }

    /// Whether tables can move to deeper levels: a FIFO tree has one level only.
    fn has_levels(&self) -> bool {
        self.setup.family.compaction.style != CompactionStyle::Fifo
    }

    fn compact_range(
        &mut self,
        family: &str,
        range: &[Vec<u8>; 2],
        [rewrite_deepest, exclusive]: [bool; 2],
    ) -> Result<(), String> {
        let Some(handle) = self.db.family(family) else { return Ok(()) };
        let options = CompactRangeOptions::new().rewrite_deepest(rewrite_deepest).exclusive(exclusive);
        let [from, to] = range;
        let done = self.db.compact_range_with(&handle, Some(from), Some(to), options);
        if self.passed("compact_range of a part", done)?.is_some() {
            self.features.count("ranges compacted");
        }
        Ok(())
    }

    fn compact_file(&mut self, family: &str, which: usize, deeper: u8) -> Result<(), String> {
        let Some(handle) = self.db.family(family).filter(|_| self.has_levels()) else { return Ok(()) };
        let listed = self.db.live_files(&handle);
        let Some(files) = self.passed("live_files", listed)? else { return Ok(()) };
        // The last level but one: a family may keep the last.
        let deepest = self.setup.family.compaction.num_levels.saturating_sub(2);
        let deepest = Level(u8::try_from(deepest).unwrap_or(u8::MAX));
        let files: Vec<_> = files.iter().filter(|file| file.level < deepest).collect();
        let Some(file) = files.get(which % files.len().max(1)) else { return Ok(()) };
        let output = Level(file.level.0.saturating_add(deeper)).min(deepest);
        let done = self.db.compact_files(&handle, &[file.number], output, CompactFilesOptions::new());
        // Background work may have compacted or moved the table meanwhile.
        if let Err(e) = &done
            && e.kind() == ErrorKind::InvalidArgument
            && let Ok(files) = self.db.live_files(&handle)
            && !files.iter().any(|other| (other.number, other.level) == (file.number, file.level))
        {
            return Ok(());
        }
        if self.passed("compact_files", done)?.is_some() {
            self.features.count("tables compacted");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::DEFAULT;
    use super::*;

    #[test]
    fn every_feature_occurs_and_the_other_steps_stay() {
        let mut rng = Rng::new(1);
        let setup = Setup { unlogged: false, ttl_secs: Some(1), ..Setup::draw(&mut rng) };
        let steps = vec![Step::Create(DEFAULT); 4000];
        let all = among(steps, &setup, Which::All, &mut rng);
        assert_eq!(all.iter().filter(|step| matches!(step, Step::Create(_))).count(), 4000);
        let features = all.iter().filter_map(|step| match step {
            Step::Feature(feature) => Some(std::mem::discriminant(feature)),
            _ => None,
        });
        assert_eq!(features.collect::<std::collections::HashSet<_>>().len(), 13);
    }
}
