//! Measurements by sensor and time, and their daily sums in a family of their own.
//!
//! `cargo run -p ashlardb --example time_series [DIRECTORY]`

use ashlardb::prelude::*;
use ashlardb::{Compression, Result, UInt64Add};
use std::path::Path;
use std::sync::Arc;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "time_series.db".to_owned());
    run(Path::new(&dir))
}

/// The sensor's number, then the time: big-endian numbers sort as numbers do.
fn key(sensor: u32, second: u64) -> Vec<u8> {
    [&sensor.to_be_bytes()[..], &second.to_be_bytes()[..]].concat()
}

fn second_of(key: &[u8]) -> u64 {
    key.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    // Families that are named here are made if they are missing; each may have settings of its own.
    let db = Db::builder(dir)
        .default_family(|f| f.compression(Compression::Zstd))
        .family("sums", |f| f.merge_operator(Arc::new(UInt64Add)))
        .open()?;
    let sums = db.family("sums")?;
    sums.delete_range("", key(u32::MAX, 0))?;

    for second in 0..100 {
        for sensor in [1, 2, 3] {
            let value = u64::from(sensor) * second;
            // No reader and no crash ever sees the measurement without its part of the sum.
            let batch = WriteBatch::new();
            batch.put(key(sensor, second), value.to_le_bytes())?;
            batch.family(&sums).merge(sensor.to_be_bytes(), value.to_le_bytes())?;
            db.write(batch)?;
        }
    }
    assert_eq!(sums.get(2_u32.to_be_bytes())?.as_deref(), Some(&9900_u64.to_le_bytes()[..]));

    // Sensor 2, seconds 10 to 13. The scan never looks at what lies outside of its range.
    let seen = db.scan(key(2, 10)..=key(2, 13)).map(|entry| Ok(second_of(&entry?.0)));
    assert_eq!(seen.collect::<Result<Vec<_>>>()?, [10, 11, 12, 13]);

    // The last three, newest first.
    let newest = db.prefix(2_u32.to_be_bytes()).rev().take(3);
    let seconds = newest.map(|entry| Ok(second_of(&entry?.0))).collect::<Result<Vec<_>>>()?;
    println!("newest: {seconds:?}");
    assert_eq!(seconds, [99, 98, 97]);

    // A cursor lends its entries instead of copying them, and jumps: the value at second 50, or the one before.
    db.delete(key(2, 50))?;
    let mut cursor = db.prefix(2_u32.to_be_bytes()).cursor()?;
    let at = cursor.seek_for_prev(key(2, 50))?.map(|(key, _)| second_of(key));
    println!("at or before 50: {at:?}");
    assert_eq!(at, Some(49));

    // What is old goes at the cost of one record.
    db.delete_range(key(2, 0), key(2, 90))?;
    assert_eq!(db.prefix(2_u32.to_be_bytes()).count(), 10);
    db.close()
}
