//! A session store: a login must survive a power cut, a page view need not.
//!
//! `cargo run -p ashlardb --example sessions [DIRECTORY]`

use ashlardb::Result;
use ashlardb::prelude::*;
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "sessions.db".to_owned());
    run(Path::new(&dir))
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    let db = Db::open(dir)?;

    // The options are those of the calls on this writer, and of no other.
    let synced = db.writing(WriteOptions::synced());
    synced.put("session/7f3a", "ada")?;
    synced.put("session/91bc", "grace")?;
    db.put("seen/7f3a", "2026-11-23T10:00:00Z")?;

    let user = db.get("session/7f3a")?;
    assert_eq!(user.as_deref(), Some(&b"ada"[..]));

    // All sessions of one user end together: both entries of each, or none.
    let batch = WriteBatch::new();
    for entry in db.prefix("session/") {
        let (key, user) = entry?;
        if user == b"ada" {
            let id = key.strip_prefix(b"session/").unwrap_or_default();
            batch.delete([b"seen/", id].concat())?;
            batch.delete(&key)?;
        }
    }
    println!("{} entries go", batch.len());
    synced.write(batch)?;

    assert!(db.get("session/7f3a")?.is_none());
    assert_eq!(db.prefix("session/").count(), 1);
    db.close()
}
