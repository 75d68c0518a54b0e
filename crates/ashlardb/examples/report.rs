//! A report on a database that another process may be writing to: a read-only open, and one moment for every figure.
//!
//! `cargo run -p ashlardb --example report DIRECTORY`

use ashlardb::prelude::*;
use ashlardb::{Error, Result};
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).ok_or_else(|| Error::invalid("which directory?"))?;
    run(Path::new(&dir)).map(drop)
}

/// Number of entries and of bytes.
type Sum = (u64, u64);

fn sum(of: &impl ashlardb::Read) -> Result<Sum> {
    let mut cursor = of.reading(ReadOptions::new().fill_cache(false)).scan(..).cursor()?;
    let (mut entries, mut bytes) = (0, 0);
    while let Some((key, value)) = cursor.next()? {
        entries += 1;
        bytes += (key.len() + value.len()) as u64;
    }
    Ok((entries, bytes))
}

/// The example, on the directory `dir`. Returns the sums by family.
pub fn run(dir: &Path) -> Result<Vec<(String, Sum)>> {
    // Takes no lock and changes nothing. The writer's later writes show after the next open.
    let db = Db::open_read_only(dir)?;
    let now = db.snapshot()?;
    let mut sums = Vec::new();
    for family in db.families() {
        let of = sum(&now.family(&family))?;
        println!("{}: {} entries, {} bytes", family.name(), of.0, of.1);
        // The first and the last key, both with one call.
        let mut scan = now.family(&family).scan(..);
        let ends = [scan.next(), scan.next_back()].into_iter().flatten().collect::<Result<Vec<_>>>()?;
        let values = now.family(&family).multi_get(ends.iter().map(|(key, _)| key))?;
        assert!(values.iter().all(Option::is_some));
        sums.push((family.name().to_owned(), of));
    }
    db.close()?;
    Ok(sums)
}
