//! Settings that RocksDB's open brings into their range instead of refusing them.
//!
//! The engine refuses a wrong setting and names its range. Programs of RocksDB rely on the milder rule, so the settings that
//! such a program gives are brought into range before the engine sees them.
//! Source: RocksDB `db/column_family.cc`, `db/db_impl/db_impl_open.cc`.

use crate::options::Texts;

/// Brings the settings in range, as RocksDB's open does.
pub(crate) fn clip(texts: &mut Texts) {
    at_least(texts, "write_buffer_size", 64 << 10);
    at_least(texts, "max_write_buffer_number", 2);
    at_least(texts, "level0_file_num_compaction_trigger", 1);
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

/// Negative numbers are out of range for the engine too, and stay for it to refuse.
fn at_least(texts: &mut Texts, name: &str, least: i64) {
    if (0..least).contains(&texts.get::<i64>(name)) {
        texts.set_text(name, least.to_string());
    }
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
        let universal = [("num_levels", "1"), ("compaction_style", "kCompactionStyleUniversal")];
        assert_eq!(clipped(&universal, "num_levels"), "1");
        assert_eq!(
            clipped(&[("wal_compression", "kSnappyCompression")], "wal_compression"),
            "kNoCompression"
        );
        assert_eq!(clipped(&[("max_write_buffer_number", "-3")], "max_write_buffer_number"), "-3");
    }
}
