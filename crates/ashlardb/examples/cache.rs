//! A cache on disk: entries that can be made again, that expire, and that must not push others out of memory.
//!
//! Expiry is an index by time. What expired goes with one scan of the index.
//!
//! `cargo run -p ashlardb --example cache [DIRECTORY]`

use ashlardb::Result;
use ashlardb::prelude::*;
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "cache.db".to_owned());
    run(Path::new(&dir))
}

/// Keys of the index by time: the second, then the key of the entry.
fn expiry(second: u64, key: &str) -> Vec<u8> {
    [&second.to_be_bytes()[..], key.as_bytes()].concat()
}

struct Cache {
    db: Db,
    expiries: Family,
}

impl Cache {
    fn open(dir: &Path) -> Result<Cache> {
        // The cap counts block cache, write buffers, indexes and filters.
        let db = Db::builder(dir).memory(64 << 20).family("expiries", |f| f).open()?;
        let expiries = db.family("expiries")?;
        Ok(Cache { db, expiries })
    }

    fn put(&self, key: &str, value: &str, expires: u64) -> Result<()> {
        let batch = WriteBatch::new();
        batch.put(key, value)?;
        batch.family(&self.expiries).put(expiry(expires, key), "")?;
        // A crash may lose entries of a cache: no log.
        self.db.writing(WriteOptions::new().disable_wal(true)).write(batch)
    }

    /// Removes what expired before `now`, and says how many entries that were.
    fn expire(&self, now: u64) -> Result<usize> {
        // The index is read once. Its blocks need no place in the block cache.
        let once = self.expiries.reading(ReadOptions::new().fill_cache(false));
        let mut cursor = once.scan(..now.to_be_bytes()).cursor()?;
        let batch = WriteBatch::new();
        let mut gone = 0;
        while let Some((key, _)) = cursor.next()? {
            batch.delete(key.get(8..).unwrap_or_default())?;
            gone += 1;
        }
        batch.family(&self.expiries).delete_range("", now.to_be_bytes())?;
        self.db.writing(WriteOptions::new().disable_wal(true)).write(batch)?;
        Ok(gone)
    }
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    let cache = Cache::open(dir)?;
    cache.expire(u64::MAX)?;
    for n in 0..100_u64 {
        cache.put(&format!("page/{n}"), "<html>", 1000 + n)?;
    }
    let gone = cache.expire(1050)?;
    println!("{gone} entries expired");
    assert_eq!(gone, 50);
    assert!(cache.db.get("page/49")?.is_none());
    assert!(cache.db.get("page/50")?.is_some());
    cache.db.close()
}
