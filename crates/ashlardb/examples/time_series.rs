//! Scans with bounds, both ways, and the cursor below them: here over measurements keyed by sensor and time.
//!
//! `cargo run --example bounded_scan [DIRECTORY]`

use ashlardb::{Db, Result};
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "bounded_scan.db".to_owned());
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
    let db = Db::open(dir)?;
    for second in 0..100 {
        for sensor in [1, 2, 3] {
            db.put(key(sensor, second), format!("{}", u64::from(sensor) * second))?;
        }
    }

    // Sensor 2, seconds 10 to 13. The bounds are part of the scan: it never looks at what lies outside.
    let mut seen = Vec::new();
    for entry in db.scan(key(2, 10)..key(2, 14)) {
        let (key, value) = entry?;
        println!("second {}: {}", second_of(&key), value.escape_ascii());
        seen.push(second_of(&key));
    }
    assert_eq!(seen, [10, 11, 12, 13]);

    // The last three, newest first.
    let newest = db.scan(..).prefix(2_u32.to_be_bytes()).rev().into_iter().take(3);
    let seconds = newest.map(|entry| Ok(second_of(&entry?.0))).collect::<Result<Vec<_>>>()?;
    println!("newest: {seconds:?}");
    assert_eq!(seconds, [99, 98, 97]);

    // A cursor lends its entries instead of copying them, and jumps: the value at second 50, or the one before.
    db.delete(key(2, 50))?;
    let mut cursor = db.scan(..).prefix(2_u32.to_be_bytes()).cursor()?;
    cursor.seek_for_prev(key(2, 50))?;
    let at = cursor.entry().map(|(key, _)| second_of(key));
    println!("at or before 50: {at:?}");
    assert_eq!(at, Some(49));
    db.close()
}
