//! What a family holds before and after compactions with the filter.

use ashlardb::Decision;
use std::collections::BTreeMap;

/// The entries that a scan shows.
pub(super) type Seen = BTreeMap<Vec<u8>, Vec<u8>>;

/// The first key at which two states differ.
pub(super) fn difference(found: &Seen, expected: &Seen) -> Option<String> {
    let key = found.keys().chain(expected.keys()).find(|key| found.get(*key) != expected.get(*key))?;
    let text = |seen: &Seen| seen.get(key).map(|value| value.escape_ascii().to_string());
    Some(format!("{} is {:?}, expected {:?}", key.escape_ascii(), text(found), text(expected)))
}

/// `x…` goes, `c…` becomes `d…`.
pub(super) fn verdict(value: &[u8]) -> Decision {
    match value {
        [b'x', ..] => Decision::Remove,
        [b'c', rest @ ..] => Decision::Change([b"d", rest].concat()),
        _ => Decision::Keep,
    }
}

fn filtered(value: Vec<u8>) -> Option<Vec<u8>> {
    match verdict(&value) {
        Decision::Remove => None,
        Decision::Change(new) => Some(new),
        _ => Some(value),
    }
}

/// A key: its value and the operands above it, each with the number of its write.
#[derive(Clone, Debug, Default)]
struct State {
    base: Option<(u64, Vec<u8>)>,
    operands: Vec<(u64, Vec<u8>)>,
}

impl State {
    fn joined(&self) -> Option<Vec<u8>> {
        let base = self.base.iter().map(|(_, value)| &value[..]);
        let parts: Vec<_> = base.chain(self.operands.iter().map(|(_, operand)| &operand[..])).collect();
        (!parts.is_empty()).then(|| parts.join(&b','))
    }

    fn writes(&self) -> impl Iterator<Item = u64> {
        self.base.iter().chain(&self.operands).map(|(write, _)| *write)
    }

    /// What a compaction of some tables may leave: it may have read the value with the oldest of its operands only.
    fn may_become(&self, newest: u64) -> Vec<Option<Vec<u8>>> {
        let mut all = vec![self.joined()];
        if let Some(base) = self.base.as_ref().filter(|(write, _)| *write > newest) {
            for folded in 0..=self.operands.len() {
                let (below, above) = self.operands.split_at(folded);
                let part = State { base: Some(base.clone()), operands: below.to_vec() }.joined();
                let left = part.and_then(filtered).map(|value| (base.0, value));
                all.push(State { base: left, operands: above.to_vec() }.joined());
            }
        }
        all
    }
}

/// The keys of a family.
#[derive(Debug, Default)]
pub(super) struct Keys {
    keys: BTreeMap<Vec<u8>, State>,
    /// The number of the last write.
    pub(super) last: u64,
}

impl Keys {
    pub(super) fn put(&mut self, key: &[u8], value: Vec<u8>) {
        self.keys.insert(key.to_vec(), State { base: Some((self.last, value)), operands: Vec::new() });
    }

    pub(super) fn merge(&mut self, key: &[u8], operand: Vec<u8>) {
        self.keys.entry(key.to_vec()).or_default().operands.push((self.last, operand));
    }

    pub(super) fn delete(&mut self, key: &[u8]) {
        self.keys.remove(key);
    }

    pub(super) fn delete_range(&mut self, begin: Vec<u8>, end: Vec<u8>) {
        self.keys.range_mut(begin..end).for_each(|(_, state)| *state = State::default());
    }

    pub(super) fn seen(&self) -> Seen {
        self.keys.iter().filter_map(|(key, state)| Some((key.clone(), state.joined()?))).collect()
    }

    /// After a compaction of everything. `newest`: the last write that a snapshot sees.
    pub(super) fn compacted_all(&mut self, newest: u64, found: &Seen) -> Result<(), String> {
        self.compacted(found, |state| match state.writes().min() > Some(newest) {
            true => vec![state.joined().and_then(filtered)],
            false => vec![state.joined()],
        })
    }

    /// After a compaction of some tables.
    pub(super) fn compacted_some(&mut self, newest: u64, found: &Seen) -> Result<(), String> {
        self.compacted(found, |state| state.may_become(newest))
    }

    fn compacted(
        &mut self,
        found: &Seen,
        may_be: impl Fn(&State) -> Vec<Option<Vec<u8>>>,
    ) -> Result<(), String> {
        for (key, state) in &mut self.keys {
            let (allowed, now) = (may_be(state), found.get(key).cloned());
            if !allowed.contains(&now) {
                return Err(format!(
                    "key {} has {now:?} after a compaction of {state:?}, the model allows {allowed:?}",
                    key.escape_ascii()
                ));
            }
            if now != state.joined() {
                let write = state.writes().max().unwrap_or_default();
                *state = State { base: now.map(|value| (write, value)), operands: Vec::new() };
            }
        }
        difference(found, &self.seen())
            .map_or(Ok(()), |text| Err(format!("a scan differs from the model: {text}")))
    }
}
