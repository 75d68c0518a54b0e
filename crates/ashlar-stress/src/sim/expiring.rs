//! A family whose values expire, beside the other families of a history.
//!
//! The model has its values with their times behind them, as the engine stores them. [`Setup::shown`] is what reads show of a value
//! at a moment. A merge is in the model as the put of what it makes.
//!
//! A put whose value begins with [`OWN`] has a time to live of its own: see [`own_ttl`].
//!
//! A value that a merge renewed is lost when a compaction meets the value without the operand, after the value's own time. So only
//! the newest part is compared of what keys with [`RENEWED`] hold, which are merged at any time. A merge to another key comes in the
//! second of the value that it applies to, or after the end of that value. Otherwise the merge becomes a put.

use super::plan::Setup;
use super::store::{Store, listing, model_name};
use ashlar_engine::Db;
use ashlar_engine::column_family::Family;
use ashlar_env::Clock;
use ashlar_env::sim::SimEnv;
use ashlar_format::value_suffix::{is_expired, put_write_time, split_write_time};
use ashlar_options::ReadOptions;
use ashlar_read::expiry::unix_seconds;
use ashlar_testkit::ops::Change;
use ashlar_testkit::oracle::{State, first_difference};
use ashlar_testkit::{KeyValue, Rng};
use std::time::Duration;

/// The family.
pub(super) const TIMED: &str = "timed";
/// The time to live of its values, in seconds.
pub(super) const TTL_SECS: i32 = 60;
/// The first byte of keys that are merged at any time.
const RENEWED: u8 = b'r';
/// The first byte of values with a time to live of their own. The next byte is a letter: `A` for two seconds, `B` for four. No
/// comma is among them: commas separate the parts of a merged value.
const OWN: u8 = b'!';
/// How many keys there are.
const KEYS: usize = 32;

fn key(n: usize) -> Vec<u8> {
    format!("{}{n:02}", if n.is_multiple_of(2) { 'k' } else { char::from(RENEWED) }).into_bytes()
}

/// Changes to different keys of the family, then perhaps a deletion of a range.
pub(super) fn changes(rng: &mut Rng) -> Vec<Change> {
    let family = || TIMED.to_owned();
    let first = rng.below(KEYS);
    let mut changes = Vec::new();
    for n in 0..rng.between(1, 10) {
        let key = key((first + 5 * n) % KEYS);
        let value = format!("{:x}", rng.next_u64()).repeat(rng.between(1, 60)).into_bytes();
        changes.push(match rng.below(10) {
            0 => Change::Delete { family: family(), key },
            1..5 => Change::Merge { family: family(), key, operand: value },
            5 | 6 => {
                let letter = rng.pick(b"ABDHLPTX]^_adhlpx").copied().unwrap_or(b'A');
                Change::Put { family: family(), key, value: [&[OWN, letter], &value[..]].concat() }
            }
            _ => Change::Put { family: family(), key, value },
        });
    }
    if rng.percent(8) {
        let (from, to) = (key(rng.below(KEYS / 2)), vec![RENEWED, b'2']);
        changes.push(Change::DeleteRange { family: family(), from, to });
    }
    changes
}

/// Whether this is the family, also by the name that the model has for it.
pub(super) fn is_timed(family: &str) -> bool {
    family.split('#').next() == Some(TIMED)
}

/// The time to live, in seconds, with which a change to the family is written; `None`: that of the family.
pub(super) fn own_ttl(change: &Change) -> Option<u8> {
    match change {
        Change::Put { family, value, .. } if is_timed(family) => match value[..] {
            [OWN, letter, ..] => Some(letter.saturating_sub(b'@') * 2),
            _ => None,
        },
        _ => None,
    }
}

/// What of a value is compared.
pub(super) fn compared(family: &Family, key: &[u8], value: &[u8]) -> Vec<u8> {
    let renewed = key.first() == Some(&RENEWED) && family.name() == TIMED;
    let newest = if renewed { value.rsplit(|byte| *byte == b',').next() } else { None };
    newest.unwrap_or(value).to_vec()
}

fn stamped(mut value: Vec<u8>, time: i32) -> Vec<u8> {
    put_write_time(&mut value, time);
    value
}

/// The beginning of the next second, to which the clock of the calendar goes.
pub(super) fn next_second(sim: &SimEnv) -> i32 {
    let second = Clock::unix_micros(sim.clock()).div_ceil(1_000_000);
    sim.clock().set_unix_micros(second * 1_000_000);
    i32::try_from(second).unwrap_or(i32::MAX)
}

impl Setup {
    /// What reads at the second `now` show of a value that the model has. `None`: it is over.
    fn shown<'a>(&self, family: &str, stored: &'a [u8], now: i64) -> Option<&'a [u8]> {
        let Some(ttl) = self.ttl_secs.filter(|_| is_timed(family)) else { return Some(stored) };
        let (value, time) = split_write_time(stored).ok()?;
        (!is_expired(time, ttl, now)).then_some(value)
    }

    /// The change of the model as it counts for reads of `db` now.
    pub(super) fn counted(&self, change: &Change, db: &Db) -> Change {
        let Change::Put { family, key, value } = change else { return change.clone() };
        let (family, key) = (family.clone(), key.clone());
        match self.shown(&family, value, unix_seconds(&*db.env().clock)) {
            Some(value) => Change::Put { value: value.to_vec(), family, key },
            None => Change::Delete { family, key },
        }
    }

    /// The entries of a family that reads of `db` show now of a state of the model.
    pub(super) fn entries(&self, state: &State, family: &str, db: &Db) -> Vec<KeyValue> {
        let now = unix_seconds(&*db.env().clock);
        let all = state.entries(family).into_iter();
        all.filter_map(|(key, stored)| Some((key, self.shown(family, &stored, now)?.to_vec()))).collect()
    }

    /// A change to the family at the second `time`: as it is written, and as the model has it.
    pub(super) fn timed(&self, now: &State, named: Change, change: &Change, time: i32) -> (Change, Change) {
        let (family, key) = (named.family().to_owned(), named.key().to_vec());
        let put = |value: Vec<u8>| Change::Put { family: family.clone(), key: key.clone(), value };
        match change {
            Change::Put { value, .. } => {
                let shift = own_ttl(change).map_or(0, |own| i32::from(own) - TTL_SECS);
                (change.clone(), put(stamped(value.clone(), time + shift)))
            }
            Change::Merge { family: real, operand, .. } => {
                let before = now.get(&family, &key);
                let before = before.filter(|stored| self.shown(TIMED, stored, time.into()).is_some());
                let alone = |time| put(stamped(operand.clone(), time));
                match before.and_then(|stored| split_write_time(stored).ok()) {
                    Some((_, then)) if key.first() == Some(&RENEWED) => {
                        (change.clone(), alone(then.max(time)))
                    }
                    Some((value, then)) if then == time => {
                        (change.clone(), put(stamped([value, operand].join(&b','), time)))
                    }
                    Some(_) => {
                        let value = operand.clone();
                        (Change::Put { family: real.clone(), key: key.clone(), value }, alone(time))
                    }
                    None => (change.clone(), alone(time)),
                }
            }
            _ => (change.clone(), named),
        }
    }
}

impl Store {
    /// Time passes. Then changes are written, some of them to the family, which the first call creates.
    pub(super) fn expire(&mut self, seconds: u64, changes: &[Change], sync: bool) -> Result<(), String> {
        self.sim.clock().advance(Duration::from_secs(seconds));
        self.create(TIMED)?;
        self.compare_timed().map_err(|e| format!("before the write: {e}"))?;
        self.write(changes, sync)?;
        self.features.count("writes that expire");
        self.compare_timed()
    }

    /// Compares what reads of the family show, now and at snapshots, with the model.
    fn compare_timed(&mut self) -> Result<(), String> {
        let generation = self.promise.names.get(TIMED).copied().ok_or("the family was not made")?;
        let family = self.db.family(TIMED).ok_or("the family is gone")?;
        let name = model_name(TIMED, generation);
        let held = self.snapshots.values().filter(|held| held.names.get(TIMED) == Some(&generation));
        let held = held.map(|held| (Some(held.snapshot.seq()), &held.state));
        let mut over = 0;
        for (at, state) in held.chain([(None, self.model.now())]) {
            let options = ReadOptions { at, ..ReadOptions::default() };
            let what = |e: String| format!("family {TIMED} at {at:?}: {e}");
            let expected = self.setup.entries(state, &name, &self.db);
            for reverse in [false, true] {
                let found = listing(&self.db, &family, options, reverse).map_err(|e| what(e.to_string()))?;
                first_difference(&expected, &found).map_or(Ok(()), |e| Err(what(e)))?;
            }
            let all = state.entries(&name);
            for (key, _) in &all {
                let found = self.db.get(&family, key, options).map_err(|e| what(e.to_string()))?;
                let found = found.map(|value| (key.clone(), compared(&family, key, &value)));
                if found.as_ref() != expected.iter().find(|(other, _)| other == key) {
                    return Err(what(format!("get {} shows {found:02x?}", key.escape_ascii())));
                }
            }
            over += (all.len() - expected.len()) as u64;
        }
        *self.features.counts.entry("values that were over").or_default() += over;
        Ok(())
    }
}
