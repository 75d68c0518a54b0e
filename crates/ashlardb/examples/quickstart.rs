//! Open, write, read, scan, and find everything again after closing.
//!
//! `cargo run -p ashlardb --example quickstart [DIRECTORY]`

use ashlardb::Result;
use ashlardb::prelude::*;
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "quickstart.db".to_owned());
    run(Path::new(&dir))
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    // Makes the database if there is none. No option is needed.
    let db = Db::open(dir)?;
    db.put(b"user:1", b"Ada")?;
    db.put(b"user:2", b"Grace")?;
    assert_eq!(db.get(b"user:1")?.as_deref(), Some(&b"Ada"[..]));

    // Several changes at once: all of them are there afterwards, or none, even if the machine stops in between.
    let batch = WriteBatch::new();
    batch.put("user:3", "Barbara")?;
    batch.delete("user:2")?;
    db.write(batch)?;

    // A snapshot keeps its view of the data.
    let before = db.snapshot()?;
    db.put(b"user:1", b"Augusta Ada")?;
    assert_eq!(before.get(b"user:1")?.as_deref(), Some(&b"Ada"[..]));

    // Keys come in order.
    for entry in db.prefix("user:") {
        let (key, value) = entry?;
        println!("{} = {}", key.escape_ascii(), value.escape_ascii());
    }

    // A returned write survives a killed process; behind `sync` it survives a power cut too.
    db.sync()?;
    drop(before);
    db.close()?;

    let again = Db::open(dir)?;
    assert_eq!(again.get(b"user:1")?.as_deref(), Some(&b"Augusta Ada"[..]));
    assert!(again.get(b"user:2")?.is_none());
    again.close()
}
