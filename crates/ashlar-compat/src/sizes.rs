//! Approximate sizes of key ranges, with RocksDB's options.

use crate::options::Texts;
use ashlardb::{Error, Family, Result, SizeOptions};

/// RocksDB's defaults that are not zero.
pub const SIZE_DEFAULTS: [(&str, &str); 2] = [("include_files", "true"), ("files_size_error_margin", "-1.0")];

/// The approximate bytes of each range `from..to` of a family in the places that `options` names: `include_memtables`,
/// `include_files`, `include_blob_files`. As in RocksDB, a range has the share of the blob files that it has of the tables.
///
/// # Errors
/// `InvalidArgument`: no place is named. Those of [`Family::approximate_sizes`].
pub fn approximate_sizes(family: &Family, ranges: &[(&[u8], &[u8])], options: &Texts) -> Result<Vec<u64>> {
    let [memtables, files, blobs] =
        ["include_memtables", "include_files", "include_blob_files"].map(|name| options.get::<bool>(name));
    if !memtables && !files && !blobs {
        return Err(Error::invalid("sizes of no place: include memtables, files or blob files"));
    }
    let nothing = || vec![0; ranges.len()];
    let of = |wanted: bool, place: SizeOptions| {
        if wanted { family.approximate_sizes(ranges, place) } else { Ok(nothing()) }
    };
    let in_memtables = of(memtables, SizeOptions::new().files(false).memtables(true))?;
    let in_tables = of(files || blobs, SizeOptions::new())?;
    let number = |name: &str| family.int_property(name).unwrap_or(0);
    let (all_tables, all_blobs) =
        (number("rocksdb.live-sst-files-size"), number("rocksdb.live-blob-file-size"));
    let share = |bytes: u64| {
        let part = u128::from(bytes) * u128::from(all_blobs) / u128::from(all_tables.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    };
    let sums = in_memtables.iter().zip(&in_tables).map(|(memory, tables)| {
        let tables_part = if files { *tables } else { 0 };
        let blobs_part = if blobs { share(*tables) } else { 0 };
        memory + tables_part + blobs_part
    });
    Ok(sums.collect())
}
