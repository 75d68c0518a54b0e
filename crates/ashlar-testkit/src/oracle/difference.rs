//! What a recovered store holds wrongly, in words.

use super::State;
use crate::KeyValue;
use crate::harm::LOST_WRITE;
use crate::text::short;
use std::fmt;

/// Why a recovered state is not a permitted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It is a gapless prefix, but too short: acknowledged writes are lost.
    Lost {
        /// Writes recovered.
        recovered: usize,
        /// Writes acknowledged as durable.
        floor: usize,
    },
    /// It is no prefix at all: a hole, an entry that was never written, or half a batch.
    NoPrefix {
        /// The cut that comes nearest.
        nearest: usize,
        /// Keys that differ from that cut.
        keys: usize,
        /// One of them.
        family: String,
        /// Its key.
        key: Vec<u8>,
        /// What the nearest cut holds.
        expected: Option<Vec<u8>>,
        /// What was recovered.
        found: Option<Vec<u8>>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |v: &Option<Vec<u8>>| v.as_deref().map_or("nothing".to_owned(), short);
        match self {
            Difference::Lost { recovered, floor } => {
                let lost = floor - recovered;
                write!(
                    f,
                    "{LOST_WRITE}recovered writes 1..={recovered} of {floor} acknowledged ones, {lost} are missing"
                )
            }
            Difference::NoPrefix { nearest, keys, family, key, expected, found } => write!(
                f,
                "no prefix of the writes: {keys} keys differ from the nearest cut, after write {nearest}; family {family} \
                 key {} should hold {}, holds {}",
                short(key),
                value(expected),
                value(found)
            ),
        }
    }
}

impl std::error::Error for Difference {}

/// The first place where two sorted listings differ, in words; `None` when they are equal.
pub fn first_difference(expected: &[KeyValue], found: &[KeyValue]) -> Option<String> {
    let at = expected.iter().zip(found).position(|(a, b)| a != b).unwrap_or(expected.len().min(found.len()));
    let show = |side: Option<&KeyValue>| {
        side.map_or("the end".to_owned(), |(k, v)| format!("{} = {}", short(k), short(v)))
    };
    let (a, b) = (expected.get(at), found.get(at));
    (a != b).then(|| {
        format!(
            "entry {at}: expected {}, found {} ({} entries expected, {} found)",
            show(a),
            show(b),
            expected.len(),
            found.len()
        )
    })
}

/// The entries of one family of a state, sorted.
impl State {
    /// All entries of a family in byte order of the keys; none for a family never written.
    pub fn entries(&self, family: &str) -> Vec<KeyValue> {
        self.family(family)
            .map(|map| map.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
            .unwrap_or_default()
    }
}
