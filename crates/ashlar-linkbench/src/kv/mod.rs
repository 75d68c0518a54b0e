//! The ten operations on a key-value engine.
//!
//! 1. In batch mode an operation that writes holds the lock of its fan or node, reads what it needs, and applies one atomic batch
//!    with every entry that changes: the link, its place in the list, and the count.
//! 2. In transaction mode the engine locks what an operation reads before it writes. After a conflict the operation runs again.
//! 3. Without atomicity, locks are left out and each entry is written by itself: counts may drift, as the original saw it.
//! 4. Old places in the list are deleted exactly once, in the batch that writes the new place.

pub mod contents;
pub mod layout;
mod locks;
pub mod nothing;
#[cfg(test)]
pub mod memory;
#[cfg(test)]
mod tests;

pub use locks::Locks;

use crate::model::{Count, Fan, Link, Node, Visibility};
use crate::phase::check::{self, Faults};
use crate::store::{Store, Tally};
use ashlar_peers::client::{Bounds, CONFLICT, Change, Changes, Client};
use ashlar_peers::peer::{Keys, Result};
use contents::Contents;
use layout::{Bytes, malformed};
use std::time::Duration;

/// How often a transaction that meets conflicts runs, how many of these runs follow at once, and the pause between the others.
const TRIES: u32 = 1000;
const TRIES_AT_ONCE: u32 = 3;
const PAUSE: Duration = Duration::from_millis(1);

/// How writes are made atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// One atomic batch per operation, under the driver's locks.
    Batch,
    /// A transaction of the engine per operation, whose reads lock their keys; tried again after a conflict.
    Txn,
    /// Entry by entry, without locks.
    None,
}

impl Mode {
    /// The name in records.
    pub fn text(self) -> &'static str {
        match self {
            Mode::Batch => "batch",
            Mode::Txn => "txn",
            Mode::None => "none",
        }
    }
}

/// What adding a link found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// There was no such link.
    Inserted,
    /// It was hidden.
    Shown,
    /// It was visible.
    Rewritten,
}

/// Which links of a fan a list has: the newest that are not newer than `time`, without the first `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The fan.
    pub fan: Fan,
    /// Milliseconds.
    pub time: u64,
    /// Links to leave out.
    pub offset: usize,
    /// The most links.
    pub limit: usize,
}

/// The graph through one client.
#[derive(Debug)]
pub struct Graph<'a, C> {
    client: C,
    locks: &'a Locks,
    mode: Mode,
    changes: Changes,
    keys: Keys,
    /// The value that is written next.
    value: Bytes,
    /// A value that was read.
    stored: Bytes,
    /// Bytes of the keys and values that were written.
    written: u64,
    /// Transactions that met a conflict and ran again.
    conflicts: u64,
    /// The difference that the committed changes made to what the database must hold.
    contents: Contents,
    /// The same of the operation that is under way.
    pending: Contents,
    /// Whether the transaction that was begun last has been committed.
    committed: bool,
}

impl<'a, C: Client> Graph<'a, C> {
    /// The graph that `client` reads and writes.
    pub fn new(client: C, locks: &'a Locks, mode: Mode) -> Graph<'a, C> {
        let (changes, keys) = (Changes::new(), Keys::new(layout::LINK_KEY));
        Graph {
            client,
            locks,
            mode,
            changes,
            keys,
            value: Bytes::new(),
            stored: Bytes::new(),
            written: 0,
            conflicts: 0,
            contents: Contents::default(),
            pending: Contents::default(),
            committed: false,
        }
    }

    /// Forgets the changes of the operation before.
    fn begin(&mut self) {
        self.changes.clear();
        self.pending = Contents::default();
    }

    fn try_add(&mut self, link: &Link<'_>) -> Result<Added> {
        self.begin();
        let old = self.state(link.fan, link.id2)?;
        self.put_link(link, old);
        let added = match old {
            None => Added::Inserted,
            Some((Visibility::Hidden, _)) => Added::Shown,
            Some((Visibility::Visible, _)) => Added::Rewritten,
        };
        if added != Added::Rewritten {
            self.change_count(link.fan, link.time, 1)?;
        }
        self.commit()?;
        Ok(added)
    }

    /// Runs an operation that reads and then writes; in a transaction until it meets no conflict, at most [`TRIES`] times.
    fn atomically<T>(&mut self, mut operation: impl FnMut(&mut Self) -> Result<T>) -> Result<T> {
        if self.mode != Mode::Txn {
            return operation(self);
        }
        let mut tries = 1;
        loop {
            self.client.begin()?;
            self.committed = false;
            let done = operation(self);
            let ended = if self.committed { Ok(()) } else { self.client.rollback() };
            match done {
                Err(why) if why.starts_with(CONFLICT) && tries < TRIES && ended.is_ok() => {
                    self.conflicts += 1;
                    // At once at first; then pauses, in which a stalled engine can catch up.
                    if tries > TRIES_AT_ONCE {
                        std::thread::sleep(PAUSE);
                    }
                    tries += 1;
                }
                Err(why) => return Err(why),
                Ok(value) => return ended.map(|()| value),
            }
        }
    }

    /// Reads a key of which the operation may write something; in a transaction it stays locked.
    fn read(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        match self.mode {
            Mode::Txn => self.client.get_for_update(key, see),
            Mode::Batch | Mode::None => self.client.get(key, see),
        }
    }

    fn hide(&mut self, found: bool, fan: Fan, id2: u64, now: u64, stored: &[u8]) -> Result<bool> {
        if !found {
            return Ok(false);
        }
        let Some(link) = layout::link(fan, id2, stored) else {
            return malformed(&layout::link_key(fan, id2), stored);
        };
        if link.visibility == Visibility::Hidden {
            return Ok(false);
        }
        self.begin();
        self.pending.remove(&layout::link_key(fan, id2), stored);
        let old = Some((link.visibility, link.time));
        self.put_link(&Link { visibility: Visibility::Hidden, ..link }, old);
        self.change_count(fan, now, -1)?;
        self.commit()?;
        Ok(true)
    }

    /// Visibility and time of a stored link.
    fn state(&mut self, fan: Fan, id2: u64) -> Result<Option<(Visibility, u64)>> {
        let (key, mut old, mut before) = (layout::link_key(fan, id2), Ok(None), Contents::default());
        self.read(&key, |value| {
            before.remove(&key, value);
            old = match layout::link(fan, id2, value) {
                Some(link) => Ok(Some((link.visibility, link.time))),
                None => malformed(&key, value),
            };
        })?;
        self.pending = self.pending.and(before);
        old
    }

    /// Adds the entries of a link to the batch, and removes its old place in the list.
    fn put_link(&mut self, link: &Link<'_>, old: Option<(Visibility, u64)>) {
        let mut value = std::mem::take(&mut self.value);
        layout::put_link(link, &mut value);
        let key = layout::link_key(link.fan, link.id2);
        self.changes.put(&key, &value);
        self.pending.add(&key, &value);
        let place = layout::list_key(link.fan, link.visibility, link.time, link.id2);
        if let Some((visibility, time)) = old {
            let before = layout::list_key(link.fan, visibility, time, link.id2);
            if before != place {
                self.changes.delete(&before);
            }
        }
        layout::put_listed(link, &mut value);
        self.changes.put(&place, &value);
        self.value = value;
    }

    /// Adds the new count of a fan to the batch.
    fn change_count(&mut self, fan: Fan, now: u64, by: i32) -> Result<()> {
        let (key, mut old, mut before) = (layout::count_key(fan), Ok(None), Contents::default());
        self.read(&key, |value| {
            before.remove(&key, value);
            old = counted(&key, value);
        })?;
        self.pending = self.pending.and(before);
        let new = match old? {
            None => Count { count: u32::from(by > 0), time: now, version: 0 },
            Some(old) => {
                Count { count: old.count.saturating_add_signed(by), time: now, version: old.version + 1 }
            }
        };
        let mut value = std::mem::take(&mut self.value);
        layout::put_count(&new, &mut value);
        self.changes.put(&key, &value);
        self.pending.add(&key, &value);
        self.value = value;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match self.mode {
            Mode::Batch => self.client.apply(&self.changes)?,
            Mode::Txn => {
                self.client.commit(&self.changes)?;
                self.committed = true;
            }
            Mode::None => self.apply_each()?,
        }
        self.written += self.changes.bytes();
        self.contents = self.contents.and(self.pending);
        Ok(())
    }

    /// Writes the changes one by one.
    fn apply_each(&mut self) -> Result<()> {
        let mut one = Changes::new();
        for change in self.changes.iter() {
            one.clear();
            match change {
                Change::Put { key, value } => one.put(key, value),
                Change::Delete { key } => one.delete(key),
            }
            self.client.apply(&one)?;
        }
        Ok(())
    }

    fn put_node(&mut self, id: u64, node: &Node<'_>) -> Result<()> {
        layout::put_node(node, &mut self.value);
        let key = layout::node_key(id);
        self.changes.put(&key, &self.value);
        self.pending.add(&key, &self.value);
        self.commit()
    }

    /// Changes a node, if it exists.
    fn if_there(&mut self, id: u64, change: impl Fn(&mut Self) -> Result<()>) -> Result<bool> {
        let locks = self.locks;
        let held = (self.mode == Mode::Batch).then(|| locks.node(id));
        let found = self.atomically(|graph| {
            graph.begin();
            let (key, mut before) = (layout::node_key(id), Contents::default());
            let found = graph.read(&key, |value| before.remove(&key, value))?;
            graph.pending = before;
            if found {
                change(graph)?;
            }
            Ok(found)
        })?;
        drop(held);
        Ok(found)
    }
}

impl<C: Client> Store for Graph<'_, C> {
    type Client = C;

    fn client(&mut self) -> &mut C {
        &mut self.client
    }

    fn tally(&self) -> Tally {
        let Graph { written, conflicts, contents, .. } = *self;
        Tally { written, conflicts, contents: Some(contents) }
    }

    fn add_link(&mut self, link: &Link<'_>) -> Result<Added> {
        let locks = self.locks;
        let held = (self.mode == Mode::Batch).then(|| locks.fan(link.fan));
        let added = self.atomically(|graph| graph.try_add(link))?;
        drop(held);
        Ok(added)
    }

    fn delete_link(&mut self, fan: Fan, id2: u64, now: u64) -> Result<bool> {
        let locks = self.locks;
        let held = (self.mode == Mode::Batch).then(|| locks.fan(fan));
        let mut stored = std::mem::take(&mut self.stored);
        let hidden = self.atomically(|graph| {
            stored.clear();
            let key = layout::link_key(fan, id2);
            let found = graph.read(&key, |value| stored.extend_from_slice(value))?;
            graph.hide(found, fan, id2, now, &stored)
        });
        self.stored = stored;
        drop(held);
        hidden
    }

    fn count(&mut self, fan: Fan) -> Result<Option<Count>> {
        let (key, mut count) = (layout::count_key(fan), Ok(None));
        self.client.get(&key, |value| count = counted(&key, value))?;
        count
    }

    fn multiget(&mut self, fan: Fan, ids: &[u64], mut see: impl FnMut(&Link<'_>)) -> Result<()> {
        self.keys.clear();
        ids.iter().for_each(|id2| self.keys.push(&layout::link_key(fan, *id2)));
        let mut done = Ok(());
        self.client.multi_get(&self.keys, |place, value| match layout::link(fan, ids[place], value) {
            Some(link) => see(&link),
            None => done = malformed(&layout::link_key(fan, ids[place]), value),
        })?;
        done
    }

    fn list(&mut self, listing: &Listing, mut see: impl FnMut(&Link<'_>)) -> Result<usize> {
        let (from, to) = layout::list_bounds(listing.fan, Visibility::Visible, listing.time);
        let (mut left_out, mut seen, mut done) = (0, 0, Ok(()));
        self.client.scan(Bounds::forward(&from, &to), |key, value| {
            if left_out < listing.offset {
                left_out += 1;
                return true;
            }
            match layout::listed(key, value) {
                Some(link) => see(&link),
                None => done = malformed(key, value),
            }
            seen += 1;
            seen < listing.limit
        })?;
        done.map(|()| seen)
    }

    fn get_node(&mut self, id: u64, see: impl FnOnce(&Node<'_>)) -> Result<bool> {
        let (key, mut done) = (layout::node_key(id), Ok(()));
        let found = self.client.get(&key, |value| match layout::node(value) {
            Some(node) => see(&node),
            None => done = malformed(&key, value),
        })?;
        done.map(|()| found)
    }

    fn add_node(&mut self, id: u64, node: &Node<'_>) -> Result<()> {
        self.atomically(|graph| {
            graph.begin();
            graph.put_node(id, node)
        })
    }

    fn update_node(&mut self, id: u64, node: &Node<'_>) -> Result<bool> {
        self.if_there(id, |graph| graph.put_node(id, node))
    }

    fn delete_node(&mut self, id: u64) -> Result<bool> {
        self.if_there(id, |graph| {
            graph.changes.delete(&layout::node_key(id));
            graph.commit()
        })
    }

    fn check_fan(&mut self, fan: Fan) -> Result<Faults> {
        let locks = self.locks;
        let held = locks.fan(fan);
        let faults = check::fan(&mut self.client, fan)?;
        drop(held);
        Ok(faults)
    }
}

/// The count in a stored value.
fn counted(key: &[u8], value: &[u8]) -> Result<Option<Count>> {
    match layout::count(value) {
        Some(found) => Ok(Some(found)),
        None => malformed(key, value),
    }
}
