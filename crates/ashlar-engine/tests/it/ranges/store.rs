//! A store and its model: every change goes to both, and the store must show what the model has.

use ashlar_base::ext::merge_operator::standard_operator;
use ashlar_base::{FamilyId, Order};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::{Db, OpenFamily};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, ReadOptions, WriteOptions};
use ashlar_read::iter::DbIter;
use ashlar_read::iter::KeyBounds;
use ashlar_read::snapshot::Snapshot;
use ashlar_testkit::Rng;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// Settings that create many small tables on few levels, with an operator that joins strings by commas.
pub(super) fn settings(order: &Order) -> (DbOptions, FamilyOptions) {
    let mut family = FamilyOptions {
        order: order.clone(),
        write_buffer_bytes: 64 << 10,
        merge_operator: standard_operator("stringappend"),
        ..FamilyOptions::default()
    };
    family.table.block_size = 256;
    family.compaction.num_levels = 4;
    family.compaction.l0_trigger = 2;
    family.compaction.target_file_bytes = 4096;
    family.compaction.base_level_bytes = 4096;
    family.compaction.level_multiplier = 2.0;
    // Several jobs at once, and compactions cut into parts.
    let db = DbOptions { format_level: FormatLevel::V7_8, max_background_jobs: 6, ..DbOptions::default() };
    (db, family)
}

/// One change of the default family.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// A database and the state it must have.
pub(super) struct Store {
    env: Env,
    dir: PathBuf,
    options: (DbOptions, FamilyOptions),
    pub(super) db: Db,
    pub(super) state: State,
    held: Vec<(Snapshot, State)>,
}

impl Store {
    pub(super) fn open(env: Env, dir: &Path, options: (DbOptions, FamilyOptions)) -> Store {
        let db = open(&env, dir, &options);
        let (state, held) = (State::new(), Vec::new());
        Store { env, dir: dir.to_path_buf(), options, db, state, held }
    }

    pub(super) fn family(&self) -> Arc<Family> {
        self.db.family("default").unwrap()
    }

    fn order(&self) -> &Order {
        &self.options.1.order
    }

    pub(super) fn reopen(&mut self) {
        self.held.clear();
        self.db.close().unwrap();
        self.db = open(&self.env, &self.dir, &self.options);
    }

    /// Writes all changes in one batch.
    pub(super) fn write(&mut self, changes: &[Change]) {
        let mut batch = WriteBatch::new();
        let id = FamilyId::DEFAULT;
        for change in changes {
            match change {
                Change::Put(key, value) => batch.put(id, key, value),
                Change::Delete(key) => batch.delete(id, key),
                Change::Merge(key, operand) => batch.merge(id, key, operand),
                Change::DeleteRange(begin, end) => batch.delete_range(id, begin, end),
            }
            .unwrap();
            let order = self.options.1.order.clone();
            apply(&mut self.state, &order, change);
        }
        self.db.write(&mut batch, WriteOptions::default()).unwrap();
    }

    pub(super) fn hold_snapshot(&mut self) {
        self.held.push((self.db.snapshot().unwrap(), self.state.clone()));
    }

    pub(super) fn drop_snapshot(&mut self, at: usize) {
        if at < self.held.len() {
            self.held.swap_remove(at);
        }
    }

    pub(super) fn snapshots(&self) -> usize {
        self.held.len()
    }

    /// Compares reads of all kinds, at the newest state and at every snapshot.
    pub(super) fn check(&self, rng: &mut Rng, what: &str) {
        self.check_at(rng, None, &self.state, what);
        for (snapshot, state) in &self.held {
            self.check_at(rng, Some(snapshot), state, &format!("{what}, at {}", snapshot.seq()));
        }
    }

    fn check_at(&self, rng: &mut Rng, snapshot: Option<&Snapshot>, state: &State, what: &str) {
        let at = snapshot.map(Snapshot::seq);
        let family = self.family();
        let options = || ReadOptions { at, ..ReadOptions::default() };
        let mut want: Vec<(Vec<u8>, Vec<u8>)> = state.clone().into_iter().collect();
        want.sort_by(|a, b| self.order().compare(&a.0, &b.0));
        let mut it = self.db.iter(&family, KeyBounds::default(), options()).unwrap();
        assert_eq!(all_forward(&mut it), want, "{what} forward");
        let mut back = all_backward(&mut it);
        back.reverse();
        assert_eq!(back, want, "{what} backward");
        for _ in 0..20 {
            let key = key(rng);
            let got = self.db.get(&family, &key, options()).unwrap();
            assert_eq!(
                got.as_deref(),
                state.get(&key).map(Vec::as_slice),
                "{what} get {}",
                key.escape_ascii()
            );
        }
        let (lower, upper) = (rng.percent(50).then(|| key(rng)), rng.percent(50).then(|| key(rng)));
        want.retain(|(key, _)| {
            lower.as_ref().is_none_or(|l| self.order().compare(key, l).is_ge())
                && upper.as_ref().is_none_or(|u| self.order().compare(key, u).is_lt())
        });
        let mut it =
            self.db.iter(&family, KeyBounds { lower, upper, ..KeyBounds::default() }, options()).unwrap();
        wander(&mut it, &want, self.order(), rng, what);
    }
}

fn open(env: &Env, dir: &Path, (db, family): &(DbOptions, FamilyOptions)) -> Db {
    let default = OpenFamily { name: "default".to_owned(), options: family.clone() };
    Db::open(env.clone(), dir, db.clone(), vec![default], family.clone()).unwrap()
}

fn apply(state: &mut State, order: &Order, change: &Change) {
    match change {
        Change::Put(key, value) => drop(state.insert(key.clone(), value.clone())),
        Change::Delete(key) => drop(state.remove(key)),
        Change::Merge(key, operand) => match state.get_mut(key) {
            Some(value) => {
                value.push(b',');
                value.extend_from_slice(operand);
            }
            None => drop(state.insert(key.clone(), operand.clone())),
        },
        Change::DeleteRange(begin, end) => {
            state.retain(|key, _| order.compare(key, begin).is_lt() || order.compare(key, end).is_ge());
        }
    }
}

/// Mostly one of 192 keys of four bytes; sometimes `k1`, `k1\0` or a key of one byte.
pub(super) fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(20) {
        0 => b"k1".to_vec(),
        1 => b"k1\x00".to_vec(),
        2 => rng.bytes(1),
        _ => format!("k{}{}{}", rng.below(3), rng.below(8), rng.below(8)).into_bytes(),
    }
}

pub(super) fn all_forward(it: &mut DbIter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = vec![];
    it.first().unwrap();
    while let Some((key, value)) = it.entry() {
        all.push((key.to_vec(), value.to_vec()));
        it.next().unwrap();
    }
    all
}

pub(super) fn all_backward(it: &mut DbIter) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = vec![];
    it.last().unwrap();
    while let Some((key, value)) = it.entry() {
        all.push((key.to_vec(), value.to_vec()));
        it.prev().unwrap();
    }
    all
}

/// Moves an iterator randomly, together with an index into the entries it should show.
fn wander(it: &mut DbIter, want: &[(Vec<u8>, Vec<u8>)], order: &Order, rng: &mut Rng, what: &str) {
    let mut at: Option<usize> = None;
    for _ in 0..40 {
        let target = key(rng);
        match rng.below(10) {
            0 => {
                it.seek(&target).unwrap();
                at = Some(want.partition_point(|e| order.compare(&e.0, &target).is_lt()));
            }
            1 => {
                it.seek_for_prev(&target).unwrap();
                at = want.partition_point(|e| order.compare(&e.0, &target).is_le()).checked_sub(1);
            }
            2..6 => {
                it.next().unwrap();
                at = at.map(|i| i + 1);
            }
            _ => {
                it.prev().unwrap();
                at = at.and_then(|i| i.checked_sub(1));
            }
        }
        at = at.filter(|i| *i < want.len());
        let shown = at.map(|i| (&want[i].0[..], &want[i].1[..]));
        assert_eq!(it.entry(), shown, "{what}, near {}", target.escape_ascii());
    }
}
