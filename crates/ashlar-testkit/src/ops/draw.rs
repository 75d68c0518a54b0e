//! Random operation lists: the same seed and mix give the same list on every machine.
//!
//! Keys are chosen to hurt: a hot space of 64 keys (long version chains), keys that are prefixes of each other, the
//! empty key, runs of 0x00 and 0xFF, and a wide space. Values go from nothing to `max_value_bytes`, mostly short.
//!
//! Keys that are deleted singly (`once/…`) are put once in a list and deleted once, so that the list stays lawful when a
//! crash cuts it anywhere.

use super::{Change, Op};
use crate::rng::Rng;

/// The composition of a list. Shares are in percent or per mille of all operations; the rest are writes.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Families written to; at least one.
    pub families: Vec<String>,
    /// Percentage of writes with more than one change.
    pub batch_percent: usize,
    /// Percentage of changes that are deletes.
    pub delete_percent: usize,
    /// Percentage of changes that are puts of keys for single deletion, or the single deletions.
    pub single_percent: usize,
    /// Percentage of changes that are merges.
    pub merge_percent: usize,
    /// Deletions of a range per 1000 changes.
    pub range_per_mille: usize,
    /// Percentage of writes that wait for the device.
    pub sync_percent: usize,
    /// Gets and scans.
    pub read_percent: usize,
    /// Snapshots taken; each is released later.
    pub snapshot_percent: usize,
    /// Flushes.
    pub flush_per_mille: usize,
    /// Compactions.
    pub compact_per_mille: usize,
    /// Orderly reopens.
    pub reopen_per_mille: usize,
    /// Longest value.
    pub max_value_bytes: usize,
}

impl Default for Mix {
    fn default() -> Self {
        Mix {
            families: ["default", "one", "two"].map(String::from).to_vec(),
            batch_percent: 30,
            delete_percent: 20,
            single_percent: 6,
            merge_percent: 8,
            range_per_mille: 8,
            sync_percent: 5,
            read_percent: 10,
            snapshot_percent: 2,
            flush_per_mille: 8,
            compact_per_mille: 3,
            reopen_per_mille: 2,
            max_value_bytes: 64 << 10,
        }
    }
}

impl Mix {
    /// Writes, flushes and compactions only: what a judge can replay.
    pub fn writes_only() -> Self {
        Mix { read_percent: 0, snapshot_percent: 0, reopen_per_mille: 0, ..Mix::default() }
    }
}

/// Draws `count` operations.
pub fn draw(seed: u64, count: usize, mix: &Mix) -> Vec<Op> {
    let mut rng = Rng::new(seed);
    let mut live: Vec<u32> = Vec::new();
    let mut next_id = 1;
    let mut once = Once { name: rng.next_u64(), ..Once::default() };
    let mut ops = Vec::with_capacity(count);
    while ops.len() < count {
        let op = draw_one(&mut rng, mix, &live, next_id, &mut once);
        match &op {
            Op::Snapshot { id } => {
                live.push(*id);
                next_id += 1;
            }
            Op::Release { id } => live.retain(|other| other != id),
            Op::Reopen => live.clear(),
            _ => {}
        }
        ops.push(op);
    }
    ops
}

/// The keys that are put once and deleted singly.
#[derive(Default)]
struct Once {
    /// Makes the keys of a list its own: a store may obey several.
    name: u64,
    made: u32,
    /// Family and key of those that were put and not deleted yet.
    there: Vec<(String, Vec<u8>)>,
}

impl Once {
    fn change(&mut self, rng: &mut Rng, family: String, max_value_bytes: usize) -> Change {
        if !self.there.is_empty() && rng.percent(45) {
            let (family, key) = self.there.swap_remove(rng.below(self.there.len()));
            return Change::SingleDelete { family, key };
        }
        self.made += 1;
        let key = format!("once/{:03}/{:016x}/{}", rng.below(1000), self.name, self.made).into_bytes();
        self.there.push((family.clone(), key.clone()));
        Change::Put { family, key, value: draw_value(rng, max_value_bytes) }
    }
}

fn draw_one(rng: &mut Rng, mix: &Mix, live: &[u32], next_id: u32, once: &mut Once) -> Op {
    let family = family(rng, mix);
    let mut roll = rng.below(1000);
    let mut falls_in = |share: usize| {
        let hit = roll < share;
        roll = roll.saturating_sub(share);
        hit
    };
    if falls_in(mix.flush_per_mille) {
        return Op::Flush { family };
    }
    if falls_in(mix.compact_per_mille) {
        return Op::Compact { family };
    }
    if falls_in(mix.reopen_per_mille) {
        return Op::Reopen;
    }
    if falls_in(mix.snapshot_percent * 10) {
        return match rng.pick(live) {
            Some(&id) if live.len() >= 4 || rng.percent(40) => Op::Release { id },
            _ => Op::Snapshot { id: next_id },
        };
    }
    if falls_in(mix.read_percent * 10) {
        return draw_read(rng, family, live);
    }
    let sync = rng.percent(mix.sync_percent);
    let many = if rng.percent(mix.batch_percent) { rng.between(0, 12) } else { 1 };
    Op::Write { changes: (0..many).map(|_| draw_change(rng, mix, once)).collect(), sync }
}

fn draw_read(rng: &mut Rng, family: String, live: &[u32]) -> Op {
    let at = if rng.percent(50) { rng.pick(live).copied() } else { None };
    if rng.percent(60) {
        return Op::Get { family, key: draw_key(rng), at };
    }
    let (a, b) = (draw_key(rng), draw_key(rng));
    Op::Scan { family, from: a.clone().min(b.clone()), to: a.max(b), reverse: rng.percent(50), at }
}

fn draw_change(rng: &mut Rng, mix: &Mix, once: &mut Once) -> Change {
    let (family, key) = (family(rng, mix), draw_key(rng));
    if rng.percent(mix.delete_percent) {
        return Change::Delete { family, key };
    }
    if rng.percent(mix.single_percent) {
        return once.change(rng, family, mix.max_value_bytes);
    }
    if rng.percent(mix.merge_percent) {
        let len = rng.between(0, 40);
        return Change::Merge { family, key, operand: rng.bytes(len) };
    }
    if rng.below(1000) < mix.range_per_mille {
        return draw_range(rng, family, key);
    }
    Change::Put { family, key, value: draw_value(rng, mix.max_value_bytes) }
}

/// Half of the ranges are narrow, the others end anywhere.
fn draw_range(rng: &mut Rng, family: String, key: Vec<u8>) -> Change {
    let other = if rng.percent(50) { [key.as_slice(), &[0xff]].concat() } else { draw_key(rng) };
    let (from, mut to) = if key <= other { (key, other) } else { (other, key) };
    if from == to {
        to.push(0);
    }
    Change::DeleteRange { family, from, to }
}

fn family(rng: &mut Rng, mix: &Mix) -> String {
    rng.pick(&mix.families).cloned().unwrap_or_else(|| "default".into())
}

/// Draws a key of one of the shapes named above.
pub fn draw_key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(100) {
        0..50 => format!("k{:02}", rng.below(64)).into_bytes(),
        50..65 => b"prefix/of/a/prefix/of/a/prefix/of/a/key"[..rng.between(1, 39)].to_vec(),
        65..67 => Vec::new(),
        67..72 => vec![0x00; rng.between(1, 20)],
        72..77 => vec![0xff; rng.between(1, 20)],
        77..80 => {
            let len = rng.between(1, 300);
            rng.bytes(len)
        }
        _ => format!("wide{:07}", rng.below(1 << 20)).into_bytes(),
    }
}

/// Draws a value of at most `max_bytes`: a tenth are empty, most are short, a few take the whole limit.
pub fn draw_value(rng: &mut Rng, max_bytes: usize) -> Vec<u8> {
    let len = match rng.below(100) {
        0..10 => 0,
        10..75 => rng.between(1, 100),
        75..95 => rng.between(100, 4096),
        95..99 => rng.between(4096, 32 << 10),
        _ => max_bytes,
    };
    let len = len.min(max_bytes);
    // Half can be compressed, half cannot.
    if rng.percent(50) { rng.bytes(len) } else { b"value-".iter().copied().cycle().take(len).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_is_a_list() {
        let mix = Mix::default();
        assert_eq!(draw(5, 200, &mix), draw(5, 200, &mix));
        assert_ne!(draw(5, 200, &mix), draw(6, 200, &mix));
    }

    #[test]
    fn every_kind_and_shape_occurs_and_snapshots_are_live() {
        let ops = draw(1, 20_000, &Mix { max_value_bytes: 100, ..Mix::default() });
        let mut verbs = BTreeSet::new();
        let mut live = BTreeSet::new();
        let mut keys = BTreeSet::new();
        for op in &ops {
            verbs.insert(op.to_string().split(' ').next().unwrap_or("").to_owned());
            match op {
                Op::Snapshot { id } => assert!(live.insert(*id), "snapshot {id} taken twice"),
                Op::Release { id } => assert!(live.remove(id), "snapshot {id} is not live"),
                Op::Reopen => live.clear(),
                Op::Get { at: Some(id), .. } | Op::Scan { at: Some(id), .. } => assert!(live.contains(id)),
                Op::Write { changes, .. } => keys.extend(changes.iter().map(|c| c.key().to_vec())),
                _ => {}
            }
        }
        let wanted = [
            "batch",
            "compact",
            "delete",
            "delete_range",
            "flush",
            "get",
            "merge",
            "put",
            "release",
            "reopen",
            "rscan",
            "scan",
            "single_delete",
            "snapshot",
            "sync",
        ];
        assert_eq!(verbs.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
        assert!(keys.contains(&b""[..]) && keys.contains(&[0xff; 20][..]) && keys.contains(&b"k63"[..]));
    }
    #[test]
    fn single_deletes_are_lawful_and_ranges_go_forward() {
        let mut puts = std::collections::BTreeMap::new();
        let mut singles = 0;
        for op in draw(3, 20_000, &Mix { max_value_bytes: 10, ..Mix::default() }) {
            let Op::Write { changes, .. } = op else { continue };
            for change in changes {
                let at = (change.family().to_owned(), change.key().to_vec());
                match change {
                    Change::Put { key, .. } if key.starts_with(b"once/") => {
                        assert_eq!(puts.insert(at, 1), None, "put twice");
                    }
                    Change::SingleDelete { .. } => {
                        singles += 1;
                        assert_eq!(puts.insert(at, 0), Some(1), "deleted without a put, or twice");
                    }
                    Change::DeleteRange { from, to, .. } => assert!(from < to),
                    other => assert!(!other.key().starts_with(b"once/"), "{other:?}"),
                }
            }
        }
        assert!(singles > 300, "{singles}");
    }
}
