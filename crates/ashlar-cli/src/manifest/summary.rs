//! The state after all edits of a MANIFEST.

use crate::bytes_text::{counted, quoted};
use ashlar_base::{FamilyId, FileNumber, Level, SeqNum};
use ashlar_format::version_edit::{BlobAddition, NewFile, VersionEdit};
use std::collections::BTreeMap;
use std::fmt;

/// The state after the readable records of a MANIFEST. An open checks the state; this code does not.
#[derive(Clone, Debug, Default)]
pub(super) struct Summary {
    /// Records seen.
    pub(super) records: u64,
    pub(super) families: BTreeMap<FamilyId, Family>,
    pub(super) last_seq: Option<SeqNum>,
    pub(super) next_file: Option<FileNumber>,
    pub(super) min_log: Option<FileNumber>,
    pub(super) prev_log: Option<FileNumber>,
    pub(super) max_family: Option<FamilyId>,
    /// Edits of an atomic group that is still incomplete.
    group: Vec<VersionEdit>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    pub(super) name: Vec<u8>,
    pub(super) comparator: Option<String>,
    pub(super) log_number: Option<FileNumber>,
    pub(super) tables: BTreeMap<FileNumber, (Level, NewFile)>,
    pub(super) blobs: BTreeMap<FileNumber, Blob>,
    pub(super) dropped: bool,
}

/// A blob file.
#[derive(Clone, Debug, Default)]
pub(super) struct Blob {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) checksum_method: Vec<u8>,
    pub(super) checksum: Vec<u8>,
    /// The blobs that are garbage: their number and bytes.
    pub(super) garbage: (u64, u64),
}

impl Blob {
    fn new(added: &BlobAddition) -> Blob {
        let (checksum_method, checksum) = (added.checksum_method.clone(), added.checksum.clone());
        Blob { count: added.count, bytes: added.bytes, checksum_method, checksum, garbage: (0, 0) }
    }
}

impl Summary {
    /// Applies the next edit. The edits of an atomic group apply when its last edit arrives.
    pub(super) fn take(&mut self, edit: &VersionEdit) {
        match edit.atomic_group {
            Some(remaining) => {
                self.group.push(edit.clone());
                if remaining == 0 {
                    std::mem::take(&mut self.group).iter().for_each(|edit| self.apply(edit));
                }
            }
            None => self.apply(edit),
        }
    }

    /// The number of missing edits, if the last atomic group is incomplete.
    pub(super) fn unfinished(&self) -> Option<String> {
        let last = self.group.last()?.atomic_group?;
        Some(format!(
            "an atomic group ends {} early; readers drop it whole",
            counted(u64::from(last), "record")
        ))
    }

    fn apply(&mut self, edit: &VersionEdit) {
        self.last_seq = edit.last_seq.or(self.last_seq);
        self.next_file = edit.next_file.or(self.next_file);
        self.min_log = edit.min_log_to_keep.max(self.min_log);
        self.prev_log = edit.prev_log_number.or(self.prev_log);
        self.max_family = edit.max_family.max(self.max_family);
        let log_only = !edit.wal_added.is_empty() || edit.wal_deleted.is_some();
        let family = self.families.entry(edit.family).or_default();
        if let Some(name) = &edit.family_add {
            *family = Family { name: name.clone(), ..Family::default() };
        }
        family.dropped |= edit.family_drop;
        if log_only {
            return;
        }
        family.comparator = edit.comparator.clone().or(family.comparator.take());
        family.log_number = edit.log_number.max(family.log_number);
        for (_, number) in &edit.deleted {
            family.tables.remove(number);
        }
        for (level, file) in &edit.added {
            family.tables.insert(file.number, (*level, file.clone()));
        }
        family.blobs.extend(edit.blob_added.iter().map(|added| (added.number, Blob::new(added))));
        for garbage in &edit.blob_garbage {
            let (count, bytes) = &mut family.blobs.entry(garbage.number).or_default().garbage;
            (*count, *bytes) = (count.saturating_add(garbage.count), bytes.saturating_add(garbage.bytes));
        }
    }
}

impl Family {
    fn levels(&self) -> BTreeMap<Level, (u64, u64)> {
        let mut levels = BTreeMap::new();
        for (level, file) in self.tables.values() {
            let (tables, bytes): &mut (u64, u64) = levels.entry(*level).or_default();
            *tables += 1;
            *bytes = bytes.saturating_add(file.size);
        }
        levels
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "summary: {}", counted(self.records, "record"))?;
        let mut number = |what: &str, n: Option<String>| match n {
            Some(n) => write!(f, ", {what} {n}"),
            None => write!(f, ", no {what}"),
        };
        number("last sequence", self.last_seq.map(|n| n.to_string()))?;
        number("next file", self.next_file.map(|n| n.to_string()))?;
        if let Some(n) = self.min_log {
            write!(f, ", WAL files from {n}")?;
        }
        writeln!(f)?;
        for (id, family) in &self.families {
            let name: &[u8] = if *id == FamilyId::DEFAULT { b"default" } else { &family.name };
            write!(f, "family {} {}", id.0, quoted(name, false))?;
            if family.dropped {
                writeln!(f, ": dropped")?;
                continue;
            }
            match &family.comparator {
                Some(name) => write!(f, ": comparator {name}")?,
                None => write!(f, ": no comparator named")?,
            }
            writeln!(f, ", WAL files from {}", family.log_number.unwrap_or_default())?;
            for (level, (tables, bytes)) in family.levels() {
                writeln!(f, "  {level}: {}, {}", counted(tables, "table"), counted(bytes, "byte"))?;
            }
            if !family.blobs.is_empty() {
                writeln!(f, "  {} added", counted(family.blobs.len() as u64, "blob file"))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{InternalKeyBuf, Trailer};

    fn add(family: u32, level: u8, number: u64, group: Option<u32>) -> VersionEdit {
        let key = InternalKeyBuf::new(b"k", Trailer::from_raw(0x101));
        let seqs = (SeqNum::ZERO, SeqNum::ZERO);
        let mut edit = VersionEdit { atomic_group: group, ..VersionEdit::of(FamilyId(family)) };
        edit.add_file(Level(level), NewFile::new(FileNumber(number), 100, (key.clone(), key), seqs));
        edit
    }

    #[test]
    fn groups_count_when_they_are_whole() {
        let mut summary = Summary::default();
        summary.take(&add(0, 0, 5, Some(1)));
        assert!(!summary.to_string().contains("L0"), "{summary}");
        assert!(summary.unfinished().unwrap().contains("ends 1 record early"));
        summary.take(&add(0, 0, 6, Some(0)));
        assert_eq!(summary.unfinished(), None);
        assert!(summary.to_string().contains("  L0: 2 tables, 200 bytes\n"), "{summary}");
    }

    #[test]
    fn tables_move_and_families_go() {
        let mut summary = Summary::default();
        let make = VersionEdit { family_add: Some(b"one".to_vec()), ..VersionEdit::of(FamilyId(1)) };
        summary.take(&make);
        summary.take(&add(1, 0, 5, None));
        let mut moved = add(1, 6, 5, None);
        moved.delete_file(Level(0), FileNumber(5));
        summary.take(&moved);
        let text = summary.to_string();
        assert!(text.contains("family 1 'one'") && text.contains("  L6: 1 table, 100 bytes"), "{text}");
        assert!(!text.contains("L0"), "{text}");
        summary.take(&VersionEdit { family_drop: true, ..VersionEdit::of(FamilyId(1)) });
        assert!(summary.to_string().contains("family 1 'one': dropped\n"), "{summary}");
    }
}
