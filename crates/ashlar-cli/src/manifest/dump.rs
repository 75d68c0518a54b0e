//! The state after a MANIFEST as ldb's manifest_dump prints it.
//!
//! ```text
//! --------------- Column family "default"  (ID 0) --------------
//! log number: 11
//! comparator: leveldb.BytewiseComparator
//! --- level 0 --- version# 1 ---
//!  12:1017[4 .. 4]['a' seq:4, type:17 .. 'b' seq:4, type:17] blob_file:13
//! ```
//! A table has its number, bytes, smallest and largest sequence and key. In level 0 the newest table comes first, in deeper
//! levels the one with the smallest key.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (`manifest_dump`, by its output).

use super::summary::{Blob, Family, Summary};
use crate::bytes_text::{Hex, write_bytes};
use ashlar_base::{FamilyId, FileNumber, InternalKeyBuf, Level, Order, SeqNum};
use ashlar_format::version_edit::NewFile;
use std::cmp::{Ordering, Reverse};
use std::io::{self, Write};

/// ldb opens a MANIFEST for as many levels.
const LEVELS: u8 = 64;

impl Summary {
    /// Prints the families, their tables by level, and the counters of the database.
    pub(super) fn dump(&self, hex: bool, out: &mut dyn Write) -> io::Result<()> {
        let live: Vec<_> = self.families.iter().filter(|(_, family)| !family.dropped).collect();
        // RocksDB counts two versions for each family: an empty one when it meets the family, and that of the end.
        for (version, (id, family)) in (live.len()..).zip(live) {
            family.dump(*id, version, hex, out)?;
        }
        writeln!(
            out,
            "next_file_number {} last_sequence {}  prev_log_number {} max_column_family {} min_log_number_to_keep {}",
            // RocksDB's reader takes one number for itself.
            self.next_file.unwrap_or_default().0.saturating_add(1),
            self.last_seq.unwrap_or(SeqNum::ZERO),
            self.prev_log.unwrap_or_default().0,
            self.max_family.max(self.families.keys().last().copied()).map_or(0, |id| id.0),
            self.min_log.unwrap_or_default().0,
        )
    }
}

impl Family {
    fn dump(&self, id: FamilyId, version: usize, hex: bool, out: &mut dyn Write) -> io::Result<()> {
        let name: &[u8] = if id == FamilyId::DEFAULT { b"default" } else { &self.name };
        write!(out, "--------------- Column family \"")?;
        out.write_all(name)?;
        writeln!(out, "\"  (ID {}) --------------", id.0)?;
        writeln!(out, "log number: {}", self.log_number.unwrap_or_default().0)?;
        writeln!(out, "comparator: {}", self.comparator.as_deref().unwrap_or_default())?;
        let order = self.comparator.as_deref().and_then(Order::by_name).unwrap_or_default();
        for level in (0..LEVELS).map(Level) {
            writeln!(out, "--- level {} --- version# {version} ---", level.0)?;
            let of_level = self.tables.values().filter(|(of, _)| *of == level).map(|(_, file)| file);
            let mut files: Vec<&NewFile> = of_level.collect();
            files.sort_by(|a, b| before(&order, level, a, b));
            files.into_iter().try_for_each(|file| table(file, hex, out))?;
        }
        let mut live = self.live_blobs().peekable();
        if live.peek().is_some() {
            writeln!(out, "--- blob files --- version# {version} ---")?;
        }
        live.try_for_each(|(number, blob)| blob.dump(number, &self.linked(number), out))
    }

    /// The blob files. One goes when no table refers to it and all of it is garbage.
    pub(super) fn live_blobs(&self) -> impl Iterator<Item = (FileNumber, &Blob)> {
        let all = self.blobs.iter().map(|(number, blob)| (*number, blob));
        all.filter(|(number, blob)| blob.garbage.0 < blob.count || !self.linked(*number).is_empty())
    }

    /// The tables whose oldest blob file has this number.
    fn linked(&self, blob: FileNumber) -> Vec<FileNumber> {
        let linked = self.tables.values().filter(|(_, file)| file.oldest_blob_file == blob);
        linked.map(|(_, file)| file.number).collect()
    }
}

fn before(order: &Order, level: Level, a: &NewFile, b: &NewFile) -> Ordering {
    let newest = |file: &NewFile| Reverse((file.largest_seq, file.smallest_seq, file.number));
    match level {
        Level(0) => newest(a).cmp(&newest(b)),
        _ => order.compare(a.smallest.as_key().user_key(), b.smallest.as_key().user_key()),
    }
}

fn table(file: &NewFile, hex: bool, out: &mut dyn Write) -> io::Result<()> {
    let unknown = (SeqNum::MAX, SeqNum::ZERO);
    let (smallest, largest) =
        if file.sequences_unknown { unknown } else { (file.smallest_seq, file.largest_seq) };
    write!(out, " {}:{}[{smallest} .. {largest}][", file.number.0, file.size)?;
    key(&file.smallest, hex, out)?;
    write!(out, " .. ")?;
    key(&file.largest, hex, out)?;
    write!(out, "]")?;
    if file.oldest_blob_file.0 != 0 {
        write!(out, " blob_file:{}", file.oldest_blob_file.0)?;
    }
    writeln!(out)
}

fn key(key: &InternalKeyBuf, hex: bool, out: &mut dyn Write) -> io::Result<()> {
    let (user_key, trailer) = key.as_key().split();
    write!(out, "'")?;
    write_bytes(out, user_key, hex)?;
    write!(out, "' seq:{}, type:{}", trailer.seq(), trailer.type_byte())
}

impl Blob {
    fn dump(&self, number: FileNumber, linked: &[FileNumber], out: &mut dyn Write) -> io::Result<()> {
        let (count, bytes) = self.garbage;
        let tables: String = linked.iter().map(|table| format!("{} ", table.0)).collect();
        write!(out, "blob_file_number: {} total_blob_count: {}", number.0, self.count)?;
        write!(out, " total_blob_bytes: {} checksum_method: ", self.bytes)?;
        out.write_all(&self.checksum_method)?;
        write!(out, " checksum_value: {} linked_ssts: {{ {tables}}}", Hex(&self.checksum))?;
        writeln!(out, " garbage_blob_count: {count} garbage_blob_bytes: {bytes}")
    }
}
