//! Texts of an OPTIONS file that are kept for the next one, so that RocksDB gets its own settings back.
//!
//! 1. A name that no setting of ours acts on is written as it stood, whatever its value.
//! 2. A name with a setting of ours is written as it stood while that setting still has the value the text was read as.
//!    So a text that had to be changed to be used (`format_version=7` at a level that has 6) returns unchanged.
//! 3. A name that the caller gave as text, and that we do not act on, replaces the stored one.
//! 4. Families with the same texts share them: ten thousand equal families cost one list.

use super::FormatLevel;
use ashlar_format::options_file::{escape, split_object, unescape};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names and values of one section, in its order. Written back by the next OPTIONS file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptTexts(Arc<Vec<KeptText>>);

/// A name, and what stood behind it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptText {
    pub(crate) name: String,
    /// The value, escaped as in the file.
    pub(crate) text: String,
    /// What our setting of that name shows for the value that was adopted; `None`: there is no such setting.
    pub(crate) means: Option<String>,
    /// What to tell of the text while it holds.
    pub(crate) note: Option<String>,
    /// The caller gave it; it is not from a file.
    pub(crate) given: bool,
}

impl KeptTexts {
    pub(crate) fn new(texts: Vec<KeptText>) -> KeptTexts {
        KeptTexts(Arc::new(texts))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &KeptText> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both are one list.
    pub(crate) fn is_shared_with(&self, other: &KeptTexts) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The value of a name, unescaped.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.iter().find(|kept| kept.name == name).map(|kept| unescape(&kept.text))
    }

    /// Takes a value that the caller gave for a name without effect.
    pub(crate) fn give(&mut self, name: &str, value: &str) {
        let text = stored_form(value);
        let given = KeptText { name: name.to_owned(), text, means: None, note: None, given: true };
        let texts = Arc::make_mut(&mut self.0);
        match texts.iter_mut().find(|kept| kept.name == name) {
            Some(kept) => *kept = given,
            None => texts.push(given),
        }
    }

    /// What the caller gave, without what a file held.
    pub(crate) fn given_only(&self) -> KeptTexts {
        match self.0.iter().any(|kept| !kept.given) {
            true => KeptTexts::new(self.0.iter().filter(|kept| kept.given).cloned().collect()),
            false => self.clone(),
        }
    }

    /// What the caller gave, and behind that what `stored` has.
    pub(crate) fn over(&self, stored: &KeptTexts) -> KeptTexts {
        let given = self.given_only();
        if given.is_empty() {
            return stored.clone();
        }
        let mut all = stored.clone();
        for kept in given.iter() {
            all.give(&kept.name, &unescape(&kept.text));
        }
        all
    }
}

/// A value as it stands in a file. A colon may stand as it is: it separates the parts of a list.
pub(crate) fn stored_form(value: &str) -> String {
    escape(value).replace("\\:", ":")
}

/// A stored object with the members of `ours` in place of its own, and those it lacks behind them. No object: `ours`.
pub(crate) fn merged(stored: &str, ours: &str) -> String {
    let object = |text: &str| text.starts_with('{').then(|| split_object(text).ok()).flatten();
    let (Some(stored), Some(ours)) = (object(stored), object(ours)) else { return ours.to_owned() };
    let has = |list: &[(String, String)], name: &str| list.iter().any(|(n, _)| n == name);
    let value = |name: &String, old: &String| {
        ours.iter().find(|(n, _)| n == name).map_or_else(|| old.clone(), |(_, new)| new.clone())
    };
    let kept = stored.iter().map(|(name, old)| (name.clone(), value(name, old)));
    let added = ours.iter().filter(|(name, _)| !has(&stored, name)).cloned();
    let members: String = kept.chain(added).map(|(name, value)| format!("{name}={value};")).collect();
    format!("{{{members}}}")
}

/// How much of an older file the next one can hold.
#[derive(Clone, Debug)]
pub(crate) struct Carry {
    /// RocksDB's release in the file's head.
    pub(crate) release: String,
    /// Everything may stand as it stood.
    pub(crate) whole: bool,
}

impl Carry {
    /// For a file of `release` (empty: there is none) that is written anew at `level`. A level below the default is one
    /// that the caller asked for: then nothing is written that RocksDB of that level does not know.
    pub(crate) fn new(level: FormatLevel, release: &str) -> Carry {
        let newer = version(release) > version(level.release());
        match (newer, level >= FormatLevel::default()) {
            (true, true) => Carry { release: release.to_owned(), whole: true },
            (newer, _) => Carry { release: level.release().to_owned(), whole: !newer },
        }
    }

    /// Whether RocksDB of the release in the head knows the name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        version(&self.release) >= vec![8] || !NEWER_THAN_7_8.contains(&name)
    }

    /// Whether a text without a setting of ours is written.
    pub(crate) fn takes(&self, kept: &KeptText, known: bool) -> bool {
        self.whole || known && !NEWER_THAN_7_8.contains(&kept.name.as_str()) && !kept.text.starts_with('{')
    }
}

fn version(release: &str) -> Vec<u32> {
    release.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Lines `family "a", "b" and 7 more: NOTE`, a line for each note; families that share their texts share the line.
pub(crate) fn note_lines(notes: &[(Vec<&str>, Vec<String>)]) -> Vec<String> {
    const NAMED: usize = 3;
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    for (families, notes) in notes {
        let named: Vec<_> = families.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
        let scope = match families.len() {
            0 => "database".to_owned(),
            n if n > NAMED => format!("families {} and {} more", named.join(", "), n - NAMED),
            1 => format!("family {}", named.join("")),
            _ => format!("families {}", named.join(", ")),
        };
        let new =
            notes.iter().map(|note| format!("{scope}: {note}")).filter(|line| seen.insert(line.clone()));
        lines.extend(new);
    }
    lines
}

/// Names that OPTIONS files have since RocksDB 8. A test holds the list against files of 7.8.3 and 11.8.1.
#[rustfmt::skip]
const NEWER_THAN_7_8: &[&str] = &[
    "async_wal_precreate", "background_close_inactive_wals", "blob_compression_opts", "blob_direct_write_partitions",
    "block_protection_bytes_per_key", "bottommost_file_compaction_delay", "cf_allow_ingest_behind",
    "compaction_verify_record_count", "compression_manager", "decouple_partitioned_filters", "default_temperature",
    "default_write_temperature", "disallow_memtable_writes", "enable_blob_direct_write",
    "enforce_write_buffer_manager_during_recovery", "fail_if_no_udi_on_open", "fast_sst_open",
    "follower_catchup_retry_count", "follower_catchup_retry_wait_ms", "follower_refresh_catchup_period_ms",
    "index_block_search_type", "max_compaction_trigger_wakeup_seconds", "max_manifest_space_amp_pct",
    "memtable_avg_op_scan_flush_trigger", "memtable_batch_lookup_optimization", "memtable_max_range_deletions",
    "memtable_op_scan_flush_trigger", "memtable_verify_per_key_checksum_on_seek", "metadata_write_temperature",
    "min_tombstones_for_range_conversion", "open_files_async", "optimize_manifest_for_recovery",
    "paranoid_memory_checks", "persist_user_defined_timestamps", "prefix_seek_opt_in_only", "read_io_executor_threads",
    "read_triggered_compaction_threshold", "reuse_manifest_on_open", "separate_key_value_in_data_block",
    "strict_max_successive_merges", "super_block_alignment_size", "super_block_alignment_space_overhead_ratio",
    "target_file_size_is_upper_bound", "track_and_verify_wals", "uncache_aggressiveness", "uniform_cv_threshold",
    "use_delta_encoding", "use_direct_io_for_compaction_reads", "use_udi_as_primary_index",
    "user_defined_index_factory", "verify_manifest_content_on_close", "verify_output_flags", "wal_write_temperature",
    "write_identity_file",
];

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_format::options_file::OptionsFile;

    #[test]
    fn the_list_of_newer_names_is_what_the_files_of_two_releases_differ_by() {
        let names = |text: &str| -> BTreeSet<String> {
            let sections = OptionsFile::parse(text).unwrap().sections;
            sections.into_iter().flat_map(|s| s.entries).map(|(name, _)| name).collect()
        };
        let old = names(include_str!("../../tests/golden/OPTIONS-7.8.3"));
        let new = names(include_str!("../../tests/golden/OPTIONS-11.8.1"));
        let listed: BTreeSet<String> = NEWER_THAN_7_8.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(new.difference(&old).cloned().collect::<BTreeSet<_>>(), listed);
    }

    #[test]
    fn a_member_that_changes_leaves_the_others_of_its_object() {
        assert_eq!(
            merged("{strategy=3;level=32767;}", "{level=5;max_dict_bytes=1;}"),
            "{strategy=3;level=5;max_dict_bytes=1;}"
        );
        assert_eq!((merged("7", "8").as_str(), merged("{a", "{a=1;}").as_str()), ("8", "{a=1;}"));
    }

    #[test]
    fn a_low_level_drops_what_its_release_does_not_know() {
        let text = |name: &str, text: &str| KeptText {
            name: name.to_owned(),
            text: text.to_owned(),
            means: None,
            note: None,
            given: false,
        };
        let low = Carry::new(FormatLevel::V7_8, "11.8.1");
        assert!(low.release == "7.8.3" && low.takes(&text("use_fsync", "true"), true));
        assert!(
            !low.takes(&text("write_identity_file", "true"), true) && !low.takes(&text("new", "1"), false)
        );
        let default = Carry::new(FormatLevel::default(), "11.8.1");
        assert!(default.release == "11.8.1" && default.takes(&text("new", "{x=1;}"), false));
        assert_eq!(Carry::new(FormatLevel::V7_8, "7.8.3").release, "7.8.3");
        assert!(Carry::new(FormatLevel::V11, "7.8.3").whole && Carry::new(FormatLevel::V11, "").whole);
    }
}
