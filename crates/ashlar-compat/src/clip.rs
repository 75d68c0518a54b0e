//! Settings that RocksDB's open brings into their range instead of refusing them, or takes where the engine's range is narrower.
//!
//! The engine refuses a wrong setting and names its range. Programs of RocksDB rely on the milder rule, so the settings that
//! such a program gives are brought into range before the engine sees them.
//! Source: RocksDB `db/column_family.cc`, `db/db_impl/db_impl_open.cc`.

use crate::options::Texts;
use ashlardb::{Error, Family, Read, Result, Write};
use std::ops::Bound::{Excluded, Included, Unbounded};

/// Brings the settings in range, as RocksDB's open does.
pub(crate) fn clip(texts: &mut Texts) {
    clip_each(texts);
    let trigger = texts.get("level0_file_num_compaction_trigger");
    at_least(texts, "level0_slowdown_writes_trigger", trigger);
    let slowdown = texts.get("level0_slowdown_writes_trigger");
    at_least(texts, "level0_stop_writes_trigger", slowdown);
    // A universal tree of one level is another tree than one of two; leveled and FIFO trees are not.
    let grows_levels = texts.text("compaction_style") == "kCompactionStyleUniversal";
    if !grows_levels {
        at_least(texts, "num_levels", 2);
    }
    // RocksDB compresses WAL records with zstd only.
    if !matches!(texts.text("wal_compression"), "kNoCompression" | "kZSTD") {
        texts.set_text("wal_compression", "kNoCompression".to_owned());
    }
}

/// Brings those into range whose range depends on no other setting.
fn clip_each(texts: &mut Texts) {
    at_least(texts, "write_buffer_size", 64 << 10);
    at_least(texts, "max_write_buffer_number", 2);
    at_least(texts, "level0_file_num_compaction_trigger", 1);
    // The engine's ranges are narrower here. What is brought into them only decides when the engine compacts.
    at_least(texts, "target_file_size_base", 4 << 10);
    at_least(texts, "max_bytes_for_level_base", 4 << 10);
    const FACTOR: &str = "max_bytes_for_level_multiplier";
    if (0.0..2.0).contains(&texts.get::<f64>(FACTOR)) {
        texts.set_text(FACTOR, "2".to_owned());
    }
}

/// Negative numbers are out of range for the engine too, and stay for it to refuse.
fn at_least(texts: &mut Texts, name: &str, least: i64) {
    if (0..least).contains(&texts.get::<i64>(name)) {
        texts.set_text(name, least.to_string());
    }
}

/// Deletes all keys of a family outside `begin..end`, and the tables that have only such keys.
///
/// # Errors
/// Those of the scan, the deletions and [`Family::delete_files_in_ranges`].
/// # Source
/// RocksDB `include/rocksdb/db.h` (`ClipColumnFamily`).
pub fn clip_family(family: &Family, begin: &[u8], end: &[u8]) -> Result<()> {
    let order = family.options().order.clone();
    if order.compare(begin, end).is_gt() {
        return Err(Error::invalid("the first key to keep is behind the key that ends the range"));
    }
    let mut cursor = family.scan(..).cursor()?;
    let Some(first) = cursor.first()?.map(|(key, _)| key.to_vec()) else { return Ok(()) };
    let Some(last) = cursor.last()?.map(|(key, _)| key.to_vec()) else { return Ok(()) };
    drop(cursor);
    if order.compare(&first, begin).is_lt() {
        family.delete_range(&first, begin)?;
    }
    if order.compare(&last, end).is_ge() {
        family.delete_range(end, &last)?;
        // A range does not have its end.
        family.delete(&last)?;
    }
    let outside = [(Unbounded, Excluded(begin.to_vec())), (Included(end.to_vec()), Unbounded)];
    family.delete_files_in_ranges(&outside).map(drop)
}

/// Changes of options of an open database: names and texts. A number whose range depends on no other setting is in range.
pub fn clipped(changes: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut texts = Texts::default();
    changes.iter().for_each(|(name, text)| texts.set_text(name, (*text).to_owned()));
    clip_each(&mut texts);
    changes.iter().map(|(name, _)| ((*name).to_owned(), texts.text(name).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_into_range_as_in_rocksdb() {
        let clipped = |given: &[(&str, &str)], name: &str| {
            let mut texts = Texts::default();
            given.iter().for_each(|(name, text)| texts.set_text(name, (*text).to_owned()));
            clip(&mut texts);
            texts.text(name).to_owned()
        };
        assert_eq!(clipped(&[("write_buffer_size", "0")], "write_buffer_size"), "65536");
        assert_eq!(clipped(&[("write_buffer_size", "1M")], "write_buffer_size"), "1M");
        assert_eq!(clipped(&[("max_write_buffer_number", "1")], "max_write_buffer_number"), "2");
        let given = [("level0_slowdown_writes_trigger", "1"), ("level0_stop_writes_trigger", "1")];
        assert_eq!(clipped(&given, "level0_slowdown_writes_trigger"), "4");
        assert_eq!(clipped(&given, "level0_stop_writes_trigger"), "4");
        assert_eq!(clipped(&[("num_levels", "1")], "num_levels"), "2");
        let factor = "max_bytes_for_level_multiplier";
        assert_eq!(
            ["0", "1.5", "2.5", "-1"].map(|text| clipped(&[(factor, text)], factor)),
            ["2", "2", "2.5", "-1"]
        );
        assert_eq!(clipped(&[("target_file_size_base", "500")], "target_file_size_base"), "4096");
        let changes = super::clipped(&[("write_buffer_size", "1"), ("level0_slowdown_writes_trigger", "2")]);
        assert_eq!(changes.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), ["65536", "2"]);
        let universal = [("num_levels", "1"), ("compaction_style", "kCompactionStyleUniversal")];
        assert_eq!(clipped(&universal, "num_levels"), "1");
        assert_eq!(
            clipped(&[("wal_compression", "kSnappyCompression")], "wal_compression"),
            "kNoCompression"
        );
        assert_eq!(clipped(&[("max_write_buffer_number", "-3")], "max_write_buffer_number"), "-3");
    }
}
