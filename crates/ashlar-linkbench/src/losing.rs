//! AshlarDB behind clients that lose one link of all that they put, so that the check can be seen to find it.

use ashlar_peers::client::{Bounds, Change, Changes, Client};
use ashlar_peers::engine::EngineName;
use ashlar_peers::operations::Operations;
use ashlar_peers::peer::{Entries, Keys, NoWriter, Peer, Result};
use ashlar_peers::peers::Ashlar;
use ashlar_peers::settings::Settings;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The first byte of the keys of links.
const LINK: u8 = b'l';
/// The number of the put that is lost.
const LOST: u64 = 1000;

/// An open database.
pub struct Losing {
    inner: Ashlar,
    /// Links that clients have put.
    links: AtomicU64,
}

impl Operations for Losing {
    type Transactions<'a> = NoWriter;
}

impl Peer for Losing {
    type Cursor<'a> = <Ashlar as Peer>::Cursor<'a>;
    type Reader<'a> = <Ashlar as Peer>::Reader<'a>;
    type Writer<'a> = NoWriter;
    type Client<'a> = LosingClient<'a>;

    fn open(engine: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) -> Result<Self> {
        Ok(Losing { inner: Ashlar::open(engine, dir, settings, library)?, links: AtomicU64::new(0) })
    }

    fn version(&self) -> String {
        format!("{}, spoilt for a test", self.inner.version())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.inner.put(key, value)
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        self.inner.put_all(entries)
    }

    fn reader(&self) -> Result<Self::Reader<'_>> {
        self.inner.reader()
    }

    fn client(&self) -> Result<LosingClient<'_>> {
        Ok(LosingClient { inner: self.inner.client()?, links: &self.links })
    }

    fn cursor(&self) -> Result<Self::Cursor<'_>> {
        self.inner.cursor()
    }

    fn settle(&self) -> Result<()> {
        self.inner.settle()
    }

    fn close(self) -> Result<()> {
        self.inner.close()
    }
}

/// A client that loses the link whose turn it is.
pub struct LosingClient<'a> {
    inner: <Ashlar as Peer>::Client<'a>,
    links: &'a AtomicU64,
}

impl LosingClient<'_> {
    fn loses(&self, change: &Change<'_>) -> bool {
        let link = matches!(change, Change::Put { key, .. } if key.first() == Some(&LINK));
        // A count: nothing else depends on its order.
        link && self.links.fetch_add(1, Ordering::Relaxed) + 1 == LOST
    }
}

impl Client for LosingClient<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        Client::get(&mut self.inner, key, see)
    }

    fn multi_get(&mut self, keys: &Keys, see: impl FnMut(usize, &[u8])) -> Result<()> {
        Client::multi_get(&mut self.inner, keys, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.inner.scan(bounds, see)
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let mut kept = Changes::new();
        for change in changes.iter().filter(|change| !self.loses(change)) {
            match change {
                Change::Put { key, value } => kept.put(key, value),
                Change::Delete { key } => kept.delete(key),
            }
        }
        self.inner.apply(&kept)
    }
}
