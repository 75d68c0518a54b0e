//! Some families of a history are made by an import: of a table with one range deletion over all keys, which has a higher sequence
//! number than anything in the history. So the family is empty, as the model has it, and every later write must be newer.

use super::expiring::TIMED;
use super::store::Store;
use ashlar_backup::{ExportedFile, FamilyExport, ImportOptions, import_family};
use ashlar_base::{Error, Level, Order, SeqNum};
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_engine::{Db, IngestMode};
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, FormatLevel, WriteOptions};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Where the table is.
const TABLE: &str = "/data/exports/000007.sst";

/// More changes than a history has.
const CHANGES: u32 = 200_000;

/// The table, and the sequence number of its range deletion.
type Table = (Vec<u8>, SeqNum);

impl Store {
    /// Whether that generation of a family is made by an import. Decided without a draw: known seeds draw what they drew.
    pub(super) fn imports(&self, name: &str, generation: u32) -> bool {
        name != TIMED && generation % 2 == u32::from(name.len() % 2 == 1)
    }

    /// Makes the family of the table.
    pub(super) fn import(&self, name: &str, generation: u32) -> Result<Arc<Family>, Error> {
        let (bytes, seq) = table()?;
        let fs = &*self.sim.env().fs;
        let path = Path::new(TABLE);
        if let Some(folder) = path.parent() {
            fs.create_dir_all(folder)?;
        }
        let file = fs.create(path)?;
        file.write_at(bytes, 0)?;
        drop(file);
        let file = ExportedFile::described(path, Level::ZERO, (*seq, *seq));
        let export = FamilyExport::described(name, Order::Bytewise.name(), vec![file]);
        let mode = [IngestMode::Link, IngestMode::Copy, IngestMode::Move][generation as usize % 3];
        let options = ImportOptions::new().mode(mode).verify(generation.is_multiple_of(4));
        let made = import_family(&self.db, name, &export, self.setup.of(name, &self.setup.places), options);
        // Gone after a move.
        let _ = fs.remove(path);
        made
    }
}

/// The table, which the first call writes.
fn table() -> Result<&'static Table, Error> {
    static TABLE: OnceLock<Table> = OnceLock::new();
    if TABLE.get().is_none() {
        let made = write_table()?;
        let _ = TABLE.set(made);
    }
    TABLE.get().ok_or_else(|| Error::invalid("the table was not kept"))
}

fn write_table() -> Result<Table, Error> {
    let (env, dir) = (Env::mem(), Path::new("/export"));
    let options = DbOptions { format_level: FormatLevel::V7_8, ..DbOptions::default() };
    let mut family = FamilyOptions::default();
    family.table.format_version = FormatLevel::V7_8.max_table_version();
    let db = Db::open(env.clone(), dir, options, Vec::new(), family.clone())?;
    let (default, source) = (db.families(), db.create_family("source", family)?);
    for id in default.iter().map(|family| family.id()) {
        let mut batch = WriteBatch::new();
        for n in 0..CHANGES {
            batch.put(id, &n.to_be_bytes(), b"")?;
        }
        db.write(&mut batch, WriteOptions::default())?;
    }
    let mut batch = WriteBatch::new();
    batch.delete_range(source.id(), b"", &[0xff; 64])?;
    db.write(&mut batch, WriteOptions::default())?;
    let export = ashlar_backup::export_family(&db, &source, Path::new("/exported"))?;
    let [file] = export.files.as_slice() else { return Err(Error::invalid("not one table")) };
    let mut bytes = vec![0; usize::try_from(file.bytes().unwrap_or_default()).unwrap_or_default()];
    env.fs.open_read(&file.path)?.read_exact_at(&mut bytes, 0)?;
    db.close()?;
    Ok((bytes, file.sequences.1))
}
