//! Opens a directory that RocksDB or LevelDB left, says what opening found, and counts what is in it.
//!
//! Opening works in the directory itself: use a copy if the original is to stay as it is.
//!
//! `cargo run -p ashlardb --example open_rocksdb DIRECTORY`

use ashlardb::{Db, Error, FormatLevel, Read as _, Result};
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).ok_or_else(|| Error::invalid("which directory?"))?;
    run(Path::new(&dir)).map(drop)
}

/// The example, on the directory `dir`. Returns the number of entries by family.
pub fn run(dir: &Path) -> Result<Vec<(String, usize)>> {
    // `create(false)`: a wrong path is an error, not a new database. The level says which RocksDB shall be able to open
    // the directory afterwards; with it, tables are written in the form that release knows.
    let level = FormatLevel::V7_8;
    let db = Db::builder(dir)
        .create(false)
        .format_level(level)
        .tune(move |_, family| family.table.format_version = level.max_table_version())
        .open()?;
    print!("{}", db.recovery());

    let mut counts = Vec::new();
    for family in db.families() {
        let mut entries = 0;
        for entry in family.scan(..) {
            // What this engine cannot serve (a merge operator it does not know, say) is an error here, never left out.
            entry?;
            entries += 1;
        }
        println!("{}: {entries} entries", family.name());
        counts.push((family.name().to_owned(), entries));
    }
    db.close()?;
    Ok(counts)
}
