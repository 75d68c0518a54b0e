//! What the database itself remembers of the phases that ran on it: how many there were, and how many rows there must be.
//!
//! The entry is removed before requests begin and written when they have ended. After an interrupted request phase the number of
//! rows is unknown, so the check leaves it out.

use super::check::Expected;
use ashlar_peers::client::{Changes, Client};
use ashlar_peers::peer::Result;

const KEY: &[u8] = b"mrows";
/// A number that is unknown.
const UNKNOWN: u64 = u64::MAX;

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
        let mut numbers = [0, UNKNOWN, UNKNOWN];
        client.get(KEY, |value| {
            for (number, bytes) in numbers.iter_mut().zip(value.as_chunks::<8>().0) {
                *number = u64::from_be_bytes(*bytes);
            }
        })?;
        let [phases, links, nodes] = numbers;
        Ok(Kept { phases, rows: (links != UNKNOWN).then_some(Expected { links, nodes }) })
    }

    /// Writes the entry.
    ///
    /// # Errors
    /// The engine's.
    pub fn write<C: Client>(self, client: &mut C) -> Result<()> {
        let rows = self.rows.map_or([UNKNOWN; 2], |rows| [rows.links, rows.nodes]);
        let numbers = [self.phases, rows[0], rows[1]].map(u64::to_be_bytes);
        let mut changes = Changes::new();
        changes.put(KEY, numbers.as_flattened());
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

    /// The state after a phase that inserted `links` links and changed the number of nodes by `nodes`.
    pub fn after(self, links: u64, nodes: i64) -> Kept {
        let rows = self.rows.map(|rows| Expected {
            links: rows.links + links,
            nodes: rows.nodes.saturating_add_signed(nodes),
        });
        Kept { phases: self.phases + 1, rows }
    }
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
        let loaded = Kept { phases: 0, rows: Some(Expected { links: 7, nodes: 5 }) };
        loaded.write(&mut client).unwrap();
        let before = Kept::begin(&mut client).unwrap();
        assert_eq!(before, loaded);
        assert_eq!(Kept::read(&mut client), Ok(Kept { phases: 1, rows: None }));
        let after = before.after(3, -2);
        after.write(&mut client).unwrap();
        assert_eq!(
            Kept::read(&mut client),
            Ok(Kept { phases: 1, rows: Some(Expected { links: 10, nodes: 3 }) })
        );
    }
}
