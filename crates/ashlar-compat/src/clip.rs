//! Settings that RocksDB's open brings into their range instead of refusing them, or takes where the engine's range is narrower.
//!
//! The engine refuses a wrong setting and names its range. Programs of RocksDB rely on the milder rule, so the settings that
//! such a program gives are brought into range before the engine sees them.
//! Source: RocksDB `db/column_family.cc`, `db/db_impl/db_impl_open.cc`.

use crate::database::Database;
use crate::options::Texts;
use crate::value::{Scalar, Value};
use ashlardb::{CompactRangeOptions, Error, Family, Read, Result, Write};
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
    let factor = Value::known(texts.text(FACTOR)).filter(|value| !matches!(value, Value::Bool(_)));
    if factor.is_some_and(|factor| (0.0..2.0).contains(&f64::of(&factor))) {
        texts.set_text(FACTOR, "2".to_owned());
    }
}

/// Negative numbers, and texts that are no whole number, are wrong for the engine too, and stay for it to refuse.
fn at_least(texts: &mut Texts, name: &str, least: i64) {
    let whole =
        Value::known(texts.text(name)).filter(|value| matches!(value, Value::Int(_) | Value::UInt(_)));
    if whole.is_some_and(|number| (0..least).contains(&i64::of(&number))) {
        texts.set_text(name, least.to_string());
    }
}

/// Deletes all keys of a family outside `begin..end`, and leaves no tombstone of them that a live snapshot does not need. Tables that
/// have only such keys are deleted whole; all others are compacted. Other compactions of the database wait meanwhile.
///
/// # Errors
/// Those of the flush, [`Family::delete_files_in_ranges`], the scan, the deletions and the compaction. RocksDB's `Incomplete`: requests
/// for a compaction are refused. `InvalidArgument`: the range begins behind its end.
/// # Source
/// RocksDB `include/rocksdb/db.h` (`ClipColumnFamily`).
pub fn clip_family(db: &Database, family: &Family, begin: &[u8], end: &[u8]) -> Result<()> {
    db.check_requests()?;
    let family = &*db.family(Some(family))?;
    let order = family.options().order.clone();
    if order.compare(begin, end).is_gt() {
        return Err(Error::invalid("the first key to keep is behind the key that ends the range"));
    }
    family.flush()?;
    let outside = [(Unbounded, Excluded(begin.to_vec())), (Included(end.to_vec()), Unbounded)];
    family.delete_files_in_ranges(&outside)?;
    // After the tables are gone: a deleted table may have had a tombstone over an older value of another one.
    let mut cursor = family.scan(..).cursor()?;
    let first = cursor.first()?.map(|(key, _)| key.to_vec());
    let last = cursor.last()?.map(|(key, _)| key.to_vec());
    drop(cursor);
    if let Some(first) = first.filter(|first| order.compare(first, begin).is_lt()) {
        family.delete_range(&first, begin)?;
    }
    if let Some(last) = last.filter(|last| order.compare(last, end).is_ge()) {
        family.delete_range(end, &last)?;
        // A range does not have its end.
        family.delete(&last)?;
    }
    // All keys: a compaction of a part does not reach the deepest level, where tombstones end.
    family.compact_range(.., CompactRangeOptions::new().exclusive(true))
}

/// Changes options of a family of an open database. As at an open, a number whose range depends on no other setting comes into range.
///
/// # Errors
/// Those of [`Family::set_options`].
pub fn set_options(family: &Family, changes: &[(&str, &str)]) -> Result<()> {
    let texts = clipped(changes);
    let changes: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
    family.set_options(&changes).map(drop)
}

fn clipped(changes: &[(&str, &str)]) -> Vec<(String, String)> {
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

    /// Regression: a text that is no number counted as zero, and the least number took its place.
    #[test]
    fn texts_that_are_no_numbers_stay_for_the_engine_to_refuse() {
        let wrong = ["write_buffer_size", "max_write_buffer_number", "max_bytes_for_level_multiplier"]
            .map(|name| (name, ["many", "", "true"]));
        for (name, texts) in wrong {
            for text in texts {
                assert_eq!(clipped(&[(name, text)]), [(name.to_owned(), text.to_owned())]);
            }
        }
        assert_eq!(clipped(&[("write_buffer_size", "0.5")])[0].1, "0.5");
    }

    fn database(dir: &std::path::Path) -> Database {
        let mut options = crate::options::Options::default();
        options.texts.set("create_if_missing", true);
        options.texts.set("disable_auto_compactions", true);
        Database::open(&options, dir, crate::database::Mode::Write, &[]).unwrap().0
    }

    /// The keys that each family keeps of `a`, `c`, `m`, `x`; its tables, with their levels.
    fn filled(db: &Database) -> Family {
        let family = db.create_family(&crate::options::Options::default(), "f", None).unwrap();
        for key in ["a", "c", "m", "x"] {
            family.put(key, key).unwrap();
        }
        family.flush().unwrap();
        family.compact_range(.., CompactRangeOptions::new()).unwrap();
        family.delete("b").unwrap();
        family.put("m", "newer").unwrap();
        family.flush().unwrap();
        family
    }

    /// Regression: the tombstones of the deleted keys stayed, and hid the keys of another part that was imported with them.
    #[test]
    fn a_clipped_family_has_no_tombstone_and_joins_with_its_other_part() {
        let dir = tempfile::tempdir().unwrap();
        let db = database(&dir.path().join("db"));
        let mut exports = Vec::new();
        for (part, begin, end, kept) in
            [("low", "a", "m", vec!["a", "c"]), ("high", "m", "y", vec!["m", "x"])]
        {
            let family = filled(&db);
            clip_family(&db, &family, begin.as_bytes(), end.as_bytes()).unwrap();
            let keys: Vec<_> =
                family.scan(..).map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect();
            assert_eq!(keys, kept);
            for file in family.live_files().unwrap() {
                let said = family.properties_of_table(file.number).unwrap().unwrap().stored;
                assert_eq!(
                    (said.num_deletions.unwrap_or(0), said.num_range_deletions.unwrap_or(0)),
                    (0, 0),
                    "{part}"
                );
            }
            exports.push(crate::copies::export(&db, &family, &dir.path().join(part)).unwrap());
            db.db().drop_family(&family).unwrap();
        }
        let joined = ashlardb::FamilyExport::joined(&exports.iter().collect::<Vec<_>>()).unwrap();
        let how = ashlardb::ImportOptions::new().mode(ashlardb::IngestMode::Move);
        let options = crate::options::Options::default();
        let whole = db.import_family(&options, "whole", &joined, how).unwrap();
        let found = ["a", "c", "m", "x"].map(|key| whole.get(key).unwrap().map(|value| value.to_vec()));
        assert_eq!(found, ["a", "c", "newer", "x"].map(|value| Some(value.as_bytes().to_vec())));
        assert!(["low", "high"].iter().all(|part| !dir.path().join(part).exists()), "a move leaves nothing");
    }

    #[test]
    fn a_clip_is_refused_where_its_compaction_would_be() {
        let dir = tempfile::tempdir().unwrap();
        let db = database(&dir.path().join("db"));
        let family = filled(&db);
        db.disable_requests();
        assert!(crate::status::is_paused(&clip_family(&db, &family, b"b", b"c").unwrap_err()));
        assert!(family.get("a").unwrap().is_some(), "a refused clip deletes nothing");
        db.enable_requests();
        clip_family(&db, &family, b"n", b"n").unwrap();
        assert!(family.scan(..).next().is_none() && family.live_files().unwrap().is_empty());
    }
}
