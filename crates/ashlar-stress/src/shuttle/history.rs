//! The writers' batches. Each is a function of its writer and its number, so that any state of the database can be checked
//! by itself.

use ashlar_base::Result;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_testkit::KeyValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The families that every batch writes to.
pub const FAMILIES: [&str; 2] = ["default", "other"];
/// Keys of a writer that its batches take turns at.
const SLOTS: u64 = 5;

/// The operations of a batch on one family.
enum Change {
    Put(Vec<u8>, Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

/// The key that holds the number of a writer's last batch.
pub fn counter(writer: usize) -> Vec<u8> {
    format!("w{writer}!").into_bytes()
}

/// The key that the numbers of its batches are appended to.
fn trail(writer: usize) -> Vec<u8> {
    format!("w{writer}+").into_bytes()
}

fn slot(writer: usize, slot: u64) -> Vec<u8> {
    format!("w{writer}:{slot}").into_bytes()
}

/// What batch `number` of `writer` does to the family at `at`. Values are long: few of them fill a memtable.
fn changes(writer: usize, number: u64, at: usize, value_bytes: usize) -> Vec<Change> {
    let value = |what: &str| {
        let mut value = format!("{number} {what} ").into_bytes();
        value.resize(value.len() + value_bytes, b'a' + (number % 26) as u8);
        value
    };
    let mut changes = vec![Change::Put(counter(writer), format!("{number}").into_bytes())];
    if number % 4 == 3 {
        changes.push(Change::DeleteRange(slot(writer, 0), slot(writer, 1 + number % SLOTS)));
    }
    changes.push(Change::Put(slot(writer, (number + at as u64) % SLOTS), value("slot")));
    if number % 3 == 1 {
        changes.push(Change::Delete(slot(writer, (number + 2) % SLOTS)));
    }
    changes.push(match number % 6 {
        0 => Change::Put(trail(writer), format!("{number}").into_bytes()),
        5 => Change::Delete(trail(writer)),
        _ => Change::Merge(trail(writer), format!("{number}").into_bytes()),
    });
    changes
}

/// Batch `number` of `writer`.
pub fn batch(writer: usize, number: u64, families: &[Arc<Family>], value_bytes: usize) -> Result<WriteBatch> {
    let mut batch = WriteBatch::new();
    for (at, family) in families.iter().enumerate() {
        for change in changes(writer, number, at, value_bytes) {
            match change {
                Change::Put(key, value) => batch.put(family.id(), &key, &value)?,
                Change::Merge(key, operand) => batch.merge(family.id(), &key, &operand)?,
                Change::Delete(key) => batch.delete(family.id(), &key)?,
                Change::DeleteRange(begin, end) => batch.delete_range(family.id(), &begin, &end)?,
            }
        }
    }
    Ok(batch)
}

/// The keys of `writer` in the family at `at` after its first `number` batches.
fn state(writer: usize, number: u64, at: usize, value_bytes: usize) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut state = BTreeMap::<Vec<u8>, Vec<u8>>::new();
    for change in (1..=number).flat_map(|number| changes(writer, number, at, value_bytes)) {
        match change {
            Change::Put(key, value) => drop(state.insert(key, value)),
            Change::Merge(key, operand) => match state.get_mut(&key) {
                Some(value) => value.extend([b",".as_slice(), &operand].concat()),
                None => drop(state.insert(key, operand)),
            },
            Change::Delete(key) => drop(state.remove(&key)),
            Change::DeleteRange(begin, end) => state.retain(|key, _| *key < begin || *key >= end),
        }
    }
    state
}

/// The number in a counter's value.
pub fn number(value: &[u8]) -> Result<u64, String> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("a counter that is no number: {}", value.escape_ascii()))
}

/// How many batches of each writer the whole family at `at` shows.
///
/// # Errors
/// It is the state after no number of batches.
pub fn judge(
    entries: &[KeyValue],
    at: usize,
    writers: usize,
    value_bytes: usize,
) -> Result<Vec<u64>, String> {
    let mut numbers = Vec::new();
    let mut others = entries.len();
    for writer in 0..writers {
        let prefix = format!("w{writer}");
        let shown: BTreeMap<_, _> =
            entries.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())).cloned().collect();
        let count = entries.iter().filter(|(key, _)| key.starts_with(prefix.as_bytes())).count();
        let shows = shown.get(&counter(writer)).map_or(Ok(0), |value| number(value))?;
        let expected = state(writer, shows, at, value_bytes);
        if count != shown.len() {
            return Err(format!("{} shows a key twice", FAMILIES[at]));
        }
        if shown != expected {
            let brief = |state: &BTreeMap<Vec<u8>, Vec<u8>>| {
                let text = |(key, value): (&Vec<u8>, &Vec<u8>)| {
                    let value = value.get(..8).unwrap_or(value);
                    format!("{}={}", key.escape_ascii(), value.escape_ascii())
                };
                state.iter().map(text).collect::<Vec<_>>().join(" ")
            };
            return Err(format!(
                "{} shows half a batch of writer {writer} behind {shows}: {}; expected {}",
                FAMILIES[at],
                brief(&shown),
                brief(&expected)
            ));
        }
        others -= count;
        numbers.push(shows);
    }
    if others != 0 {
        return Err(format!("{} shows {others} keys that were never written", FAMILIES[at]));
    }
    Ok(numbers)
}
