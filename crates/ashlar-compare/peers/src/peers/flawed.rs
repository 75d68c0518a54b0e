//! AshlarDB spoilt on purpose, so that the suite's checks can be seen to catch it.

use crate::engine::EngineName;
use crate::peer::{Entries, NoWriter, Peer, Result, Written};
use crate::peers::Ashlar;
use crate::settings::Settings;
use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

/// An open database.
pub struct Flawed {
    inner: Ashlar,
    engine: EngineName,
    puts: Cell<u64>,
}

impl crate::operations::Operations for Flawed {
    type Transactions<'a> = NoWriter;
}

impl Peer for Flawed {
    type Cursor<'a> = <Ashlar as Peer>::Cursor<'a>;
    type Reader<'a> = <Ashlar as Peer>::Reader<'a>;
    type Writer<'a> = NoWriter;
    type Client<'a> = <Ashlar as Peer>::Client<'a>;

    fn open(engine: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) -> Result<Self> {
        let mut settings = settings.clone();
        settings.sync &= engine != EngineName::TestCareless;
        let inner = Ashlar::open(engine, dir, &settings, library)?;
        Ok(Flawed { inner, engine, puts: Cell::new(0) })
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
        self.inner.client()
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
