//! What the database itself remembers of the phases that ran on it: how many there were, and how many rows there must be.
//!
//! 1. The load writes the entry in the batch that marks the load as ended.
//! 2. When requests begin, the entry becomes "unknown"; when they have ended, the driver writes what must be there. After an
//!    interrupted or failed request phase the rows stay unknown: the check leaves them out, and records say so.

use super::check::Expected;
use crate::kv::contents::Contents;
use ashlar_peers::client::{Changes, Client};
use ashlar_peers::peer::Result;

const KEY: &[u8] = b"mrows";
/// The second number of the entry: the numbers of rows are known, or those and the digests; 0: neither.
const ROWS: u64 = 1;
const ALL: u64 = 2;

/// The phases of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Request phases so far. Each has random streams of its own.
    pub phases: u64,
    /// The rows, if they are known.
    pub rows: Option<Expected>,
}

impl Kept {
    /// Reads the entry. Without one nothing is known.
    ///
    /// # Errors
    /// The engine's.
    pub fn read<C: Client>(client: &mut C) -> Result<Kept> {
        let mut numbers = [0; 7];
        client.get(KEY, |value| {
            for (number, bytes) in numbers.iter_mut().zip(value.as_chunks::<8>().0) {
                *number = u64::from_be_bytes(*bytes);
            }
        })?;
        let [phases, known, links, nodes, sums @ ..] = numbers;
        let contents = (known == ALL).then(|| Contents::from_numbers(sums));
        let rows = (known == ALL || known == ROWS).then_some(Expected { links, nodes, contents });
        Ok(Kept { phases, rows })
    }

    /// Adds the entry to a batch.
    pub fn put(self, changes: &mut Changes) {
        let rows = self.rows.unwrap_or_default();
        let known = match self.rows {
            None => 0,
            Some(Expected { contents: None, .. }) => ROWS,
            Some(_) => ALL,
        };
        let [a, b, c] = rows.contents.unwrap_or_default().numbers();
        let numbers = [self.phases, known, rows.links, rows.nodes, a, b, c].map(u64::to_be_bytes);
        changes.put(KEY, numbers.as_flattened());
    }

    /// Writes the entry.
    ///
    /// # Errors
    /// The engine's.
    pub fn write<C: Client>(self, client: &mut C) -> Result<()> {
        let mut changes = Changes::new();
        self.put(&mut changes);
        client.apply(&changes)
    }

    /// Notes that a request phase begins: until it ends, the rows are unknown. Returns the state before it.
    ///
    /// # Errors
    /// The engine's.
    pub fn begin<C: Client>(client: &mut C) -> Result<Kept> {
        let before = Kept::read(client)?;
        Kept { phases: before.phases + 1, rows: None }.write(client)?;
        Ok(before)
    }

    /// The state after a phase that made these changes; `None`: what it changed is unknown.
    pub fn after(self, changed: Option<Changed>) -> Kept {
        let rows = self.rows.zip(changed).map(|(rows, changed)| Expected {
            links: rows.links + changed.links,
            nodes: rows.nodes.saturating_add_signed(changed.nodes),
            contents: rows.contents.zip(changed.contents).map(|(before, more)| before.and(more)),
        });
        Kept { phases: self.phases + 1, rows }
    }
}

/// What a request phase changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// New links.
    pub links: u64,
    /// New nodes, less those that were removed.
    pub nodes: i64,
    /// The difference of the digests, if clients could not overwrite each other's changes.
    pub contents: Option<Contents>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::memory::Memory;

    #[test]
    fn an_interrupted_phase_leaves_the_rows_unknown() {
        let memory = Memory::default();
        let mut client = &memory;
        assert_eq!(Kept::read(&mut client), Ok(Kept::default()));
        let contents = Some(Contents { links: u64::MAX, counts: 2, nodes: 3 });
        let loaded = Kept { phases: 0, rows: Some(Expected { links: 7, nodes: 5, contents }) };
        loaded.write(&mut client).unwrap();
        let before = Kept::begin(&mut client).unwrap();
        assert_eq!(before, loaded);
        assert_eq!(Kept::read(&mut client), Ok(Kept { phases: 1, rows: None }));
        let more = Some(Contents { links: 2, counts: 0, nodes: 1 });
        let after = before.after(Some(Changed { links: 3, nodes: -2, contents: more }));
        after.write(&mut client).unwrap();
        let contents = Some(Contents { links: 1, counts: 2, nodes: 4 });
        assert_eq!(
            Kept::read(&mut client),
            Ok(Kept { phases: 1, rows: Some(Expected { links: 10, nodes: 3, contents }) })
        );
        let later = after.after(Some(Changed { links: 1, nodes: 0, contents: None }));
        later.write(&mut client).unwrap();
        assert_eq!(
            Kept::read(&mut client),
            Ok(Kept { phases: 2, rows: Some(Expected { links: 11, nodes: 3, contents: None }) })
        );
        assert_eq!(later.after(None), Kept { phases: 3, rows: None });
    }
}
