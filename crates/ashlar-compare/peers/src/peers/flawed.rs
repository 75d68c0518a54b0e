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

/// The first byte of the keys of which a client of [`EngineName::TestLosing`] loses one, and the number of the put that is lost.
const LETTER: u8 = b'l';
const LOST: u64 = 1000;

/// An open database.
pub struct Flawed {
    inner: Ashlar,
    engine: EngineName,
    puts: Cell<u64>,
    /// Puts of clients whose keys begin with [`LETTER`].
    of_clients: AtomicU64,
}

impl crate::operations::Operations for Flawed {
    type Transactions<'a> = NoWriter;
}

impl Peer for Flawed {
    type Cursor<'a> = <Ashlar as Peer>::Cursor<'a>;
    type Reader<'a> = <Ashlar as Peer>::Reader<'a>;
    type Writer<'a> = NoWriter;
    type Client<'a> = FlawedClient<'a>;

    fn open(engine: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) -> Result<Self> {
        let mut settings = settings.clone();
        settings.sync &= engine != EngineName::TestCareless;
        let inner = Ashlar::open(engine, dir, &settings, library)?;
        Ok(Flawed { inner, engine, puts: Cell::new(0), of_clients: AtomicU64::new(0) })
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

    fn client(&self) -> Result<FlawedClient<'_>> {
        let loses = (self.engine == EngineName::TestLosing).then_some(&self.of_clients);
        Ok(FlawedClient { inner: self.inner.client()?, loses })
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

/// A client, which may lose the put whose turn it is.
pub struct FlawedClient<'a> {
    inner: <Ashlar as Peer>::Client<'a>,
    /// The puts so far, if one is to be lost.
    loses: Option<&'a AtomicU64>,
}

impl FlawedClient<'_> {
    fn loses(&self, change: &Change<'_>) -> bool {
        let Some(puts) = self.loses else { return false };
        let counted = matches!(change, Change::Put { key, .. } if key.first() == Some(&LETTER));
        // A count: nothing else depends on its order.
        counted && puts.fetch_add(1, Ordering::Relaxed) + 1 == LOST
    }
}

impl Client for FlawedClient<'_> {
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
