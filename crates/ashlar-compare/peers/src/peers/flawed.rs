//! AshlarDB spoilt on purpose, so that the suite's checks can be seen to catch it.

use crate::client::{Bounds, Change, Changes, Client};
use crate::engine::EngineName;
use crate::peer::{Entries, Keys, NoWriter, Peer, Result, Written};
use crate::peers::Ashlar;
use crate::settings::Settings;
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An open database.
pub struct Flawed {
    inner: Ashlar,
    engine: EngineName,
    puts: Cell<u64>,
    /// Links that clients have put.
    links: AtomicU64,
}

/// The first byte of the keys of links.
const LINK: u8 = b'l';
/// The number of the link that [`EngineName::TestLosing`] loses.
const LOST: u64 = 1000;

impl crate::operations::Operations for Flawed {
    type Transactions<'a> = NoWriter;
}

impl Peer for Flawed {
    type Cursor<'a> = <Ashlar as Peer>::Cursor<'a>;
    type Reader<'a> = <Ashlar as Peer>::Reader<'a>;
    type Writer<'a> = NoWriter;
    type Client<'a> = Losing<'a>;

    fn open(engine: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) -> Result<Self> {
        let mut settings = settings.clone();
        settings.sync &= engine != EngineName::TestCareless;
        let inner = Ashlar::open(engine, dir, &settings, library)?;
        Ok(Flawed { inner, engine, puts: Cell::new(0), links: AtomicU64::new(0) })
    }

    fn version(&self) -> String {
        format!("{}, spoilt for a test", self.inner.version())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.puts.set(self.puts.get() + 1);
        match self.engine {
            EngineName::TestSlow => std::thread::sleep(Duration::from_millis(1)),
            EngineName::TestForgetful if self.puts.get().is_multiple_of(1000) => return Ok(()),
            _ => {}
        }
        self.inner.put(key, value)
    }

    fn put_all(&self, entries: &Entries) -> Result<()> {
        self.inner.put_all(entries)
    }

    fn reader(&self) -> Result<Self::Reader<'_>> {
        self.inner.reader()
    }

    fn client(&self) -> Result<Self::Client<'_>> {
        Ok(Losing {
            inner: self.inner.client()?,
            links: &self.links,
            loses: self.engine == EngineName::TestLosing,
        })
    }

    fn cursor(&self) -> Result<Self::Cursor<'_>> {
        self.inner.cursor()
    }

    fn settle(&self) -> Result<()> {
        self.inner.settle()
    }

    fn compact(&self) -> Result<()> {
        self.inner.compact()
    }

    fn written(&self) -> Written {
        self.inner.written()
    }

    fn levels(&self) -> Vec<u64> {
        self.inner.levels()
    }

    fn close(self) -> Result<()> {
        self.inner.close()
    }
}

/// A client that loses one link of all that the clients put.
pub struct Losing<'a> {
    inner: <Ashlar as Peer>::Client<'a>,
    links: &'a AtomicU64,
    loses: bool,
}

impl Losing<'_> {
    fn loses(&self, change: &Change<'_>) -> bool {
        let link = matches!(change, Change::Put { key, .. } if key.first() == Some(&LINK));
        // A count: nothing else depends on its order.
        let number = if link { self.links.fetch_add(1, Ordering::Relaxed) + 1 } else { 0 };
        self.loses && number == LOST
    }
}

impl Client for Losing<'_> {
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
