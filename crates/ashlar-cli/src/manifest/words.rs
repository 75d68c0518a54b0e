//! Prints a version edit as lines, field by field, in the order of the bytes.

use crate::bytes_text::{Hex, counted, internal, quoted};
use ashlar_base::{FamilyId, Level};
use ashlar_format::version_edit::{BlobAddition, NewFile, VersionEdit};

/// The lines of an edit. An edit without changes has no lines.
pub(super) fn of(edit: &VersionEdit, hex: bool) -> Vec<String> {
    let mut lines = Vec::new();
    family(edit, &mut lines);
    numbers(edit, &mut lines);
    for (level, key) in &edit.compact_cursors {
        lines.push(format!("the next compaction of {level} begins behind {}", internal(key.as_key(), hex)));
    }
    for (level, number) in &edit.deleted {
        lines.push(format!("remove table {number} from {level}"));
    }
    for (level, file) in &edit.added {
        table(*level, file, hex, &mut lines);
    }
    blobs(edit, &mut lines);
    logs(edit, &mut lines);
    rest(edit, &mut lines);
    lines
}

fn family(edit: &VersionEdit, lines: &mut Vec<String>) {
    if let Some(remaining) = edit.atomic_group {
        lines.push(match remaining {
            0 => "part of an atomic group, the last".to_owned(),
            n => format!("part of an atomic group, {n} more to come"),
        });
    }
    if let Some(name) = &edit.family_add {
        lines.push(format!("create family {} {}", edit.family.0, quoted(name, false)));
    } else if edit.family_drop {
        lines.push(format!("drop family {}", edit.family.0));
    } else if edit.family != FamilyId::DEFAULT {
        lines.push(format!("of family {}", edit.family.0));
    }
}

fn numbers(edit: &VersionEdit, lines: &mut Vec<String>) {
    if let Some(id) = &edit.db_id {
        lines.push(format!("database id {id}"));
    }
    if let Some(name) = &edit.comparator {
        lines.push(format!("comparator {name}"));
    }
    if let Some(n) = edit.log_number {
        lines.push(format!("WAL files below {n} hold nothing unflushed of the family"));
    }
    if let Some(n) = edit.prev_log_number {
        lines.push(match n.0 {
            0 => "no previous WAL file".to_owned(),
            _ => format!("previous WAL file {n}"),
        });
    }
    if let Some(n) = edit.next_file {
        lines.push(format!("next file {n}"));
    }
    if let Some(id) = edit.max_family {
        lines.push(format!("highest family id ever used {}", id.0));
    }
    if let Some(n) = edit.min_log_to_keep {
        lines.push(format!("WAL files below {n} are obsolete"));
    }
    if let Some(seq) = edit.last_seq {
        lines.push(format!("last sequence {seq}"));
    }
}

fn table(level: Level, file: &NewFile, hex: bool, lines: &mut Vec<String>) {
    let seqs = match file.sequences_unknown {
        true => "sequences not recorded".to_owned(),
        false => format!("sequences {} to {}", file.smallest_seq, file.largest_seq),
    };
    lines.push(format!(
        "add table {} to {level}: {}, {} .. {}, {seqs}",
        file.number,
        counted(file.size, "byte"),
        internal(file.smallest.as_key(), hex),
        internal(file.largest.as_key(), hex),
    ));
    let more = table_fields(file);
    if !more.is_empty() {
        lines.push(format!("  {}", more.join(", ")));
    }
}

/// The fields of a table besides number, size, bounds and sequences.
fn table_fields(file: &NewFile) -> Vec<String> {
    let mut words = Vec::new();
    let mut add = |there: bool, word: String| words.extend(there.then_some(word));
    add(file.epoch != 0, format!("epoch {}", file.epoch));
    add(file.path_id != 0, format!("path {}", file.path_id));
    let time = |what: &str, seconds: Option<u64>| format!("{what} {}", seconds.unwrap_or(0));
    add(file.oldest_ancestor_time.unwrap_or(0) != 0, time("oldest entry of", file.oldest_ancestor_time));
    add(file.file_creation_time.unwrap_or(0) != 0, time("made at", file.file_creation_time));
    let function = file.checksum_function.as_deref().unwrap_or_default().escape_ascii();
    let sum = file.checksum.as_deref().unwrap_or_default();
    add(!sum.is_empty(), format!("checksum {} ({function})", Hex(sum)));
    add(file.temperature != 0, format!("temperature {}", file.temperature));
    add(file.need_compaction, "marked for compaction".to_owned());
    add(
        file.min_log_to_keep.is_some(),
        match file.min_log_to_keep {
            Some(n) => format!("WAL files below {n} are obsolete"),
            None => String::new(),
        },
    );
    add(file.oldest_blob_file.0 != 0, format!("oldest blob file {}", file.oldest_blob_file));
    add(file.unique_id.is_some(), format!("unique id {}", Hex(&file.unique_id.unwrap_or_default())));
    add(
        file.range_deletion_size != 0,
        format!("range deletions cover {}", counted(file.range_deletion_size, "byte")),
    );
    add(file.tail_size != 0, format!("tail of {}", counted(file.tail_size, "byte")));
    add(!file.min_timestamp.is_empty(), format!("timestamps from 0x{}", Hex(&file.min_timestamp)));
    add(!file.max_timestamp.is_empty(), format!("timestamps to 0x{}", Hex(&file.max_timestamp)));
    add(!file.timestamps_persisted, "timestamps not stored".to_owned());
    add(
        !file.open_metadata.is_empty(),
        format!("metadata for opening, {}", counted(file.open_metadata.len() as u64, "byte")),
    );
    words.extend(file.ignored.iter().map(|(tag, bytes)| unknown("field", *tag, bytes)));
    words
}

fn blobs(edit: &VersionEdit, lines: &mut Vec<String>) {
    for blob in &edit.blob_added {
        let BlobAddition { number, count, bytes, checksum_method, checksum, ignored } = blob;
        let mut line =
            format!("add blob file {number}: {}, {}", counted(*count, "blob"), counted(*bytes, "byte"));
        if !checksum.is_empty() {
            line += &format!(", checksum {} ({})", Hex(checksum), checksum_method.escape_ascii());
        }
        ignored.iter().for_each(|(tag, bytes)| line += &format!(", {}", unknown("field", *tag, bytes)));
        lines.push(line);
    }
    for garbage in &edit.blob_garbage {
        let (count, bytes) = (counted(garbage.count, "blob"), counted(garbage.bytes, "byte"));
        lines.push(format!("blob file {}: {count}, {bytes} more are garbage", garbage.number));
    }
}

fn logs(edit: &VersionEdit, lines: &mut Vec<String>) {
    for log in &edit.wal_added {
        lines.push(match log.synced_size {
            Some(size) => format!("WAL file {} is closed and durable, {}", log.number, counted(size, "byte")),
            None => format!("WAL file {} was created", log.number),
        });
    }
    if let Some(n) = edit.wal_deleted {
        lines.push(format!("WAL files below {n} are deleted"));
    }
}

fn rest(edit: &VersionEdit, lines: &mut Vec<String>) {
    if let Some(low) = &edit.full_history_ts_low {
        lines.push(format!("history below timestamp 0x{} may be dropped", Hex(low)));
    }
    if let Some(persist) = edit.persist_udt {
        let word = if persist { "are stored" } else { "are not stored" };
        lines.push(format!("timestamps of the family {word} in tables"));
    }
    if let Some(progress) = &edit.compaction_progress {
        lines.push(format!("progress of a compaction, {}", counted(progress.len() as u64, "byte")));
    }
    if let Some(size) = edit.last_manifest_size {
        lines.push(format!("the last MANIFEST of one snapshot had {}", counted(size, "byte")));
    }
    lines.extend(edit.ignored.iter().map(|(tag, bytes)| unknown("tag", *tag, bytes)));
}

/// An unknown tag, which readers skip.
fn unknown(what: &str, tag: u32, bytes: &[u8]) -> String {
    format!("unknown {what} {tag}, passed over: 0x{}", Hex(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{FileNumber, InternalKeyBuf, SeqNum, Trailer, ValueType};
    use ashlar_format::version_edit::{BlobGarbage, WalAddition};

    fn key(user_key: &[u8], seq: u64) -> InternalKeyBuf {
        InternalKeyBuf::new(user_key, Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put))
    }

    #[test]
    fn nothing_is_left_out() {
        let seq = |n| SeqNum::new(n).unwrap();
        let mut file = NewFile::new(FileNumber(9), 1068, (key(b"a", 1), key(b"z", 5)), (seq(1), seq(5)));
        file.epoch = 3;
        file.oldest_blob_file = FileNumber(8);
        file.timestamps_persisted = false;
        file.ignored = vec![(33, vec![1, 2])];
        let mut edit = VersionEdit {
            log_number: Some(FileNumber(4)),
            last_seq: Some(seq(5)),
            atomic_group: Some(2),
            compact_cursors: vec![(Level(1), key(b"m", 2))],
            wal_added: vec![WalAddition { number: FileNumber(4), synced_size: Some(51) }],
            blob_garbage: vec![BlobGarbage { number: FileNumber(8), count: 1, bytes: 40, ignored: vec![] }],
            ignored: vec![(8300, b"x".to_vec())],
            ..VersionEdit::of(FamilyId(7))
        };
        edit.delete_file(Level(0), FileNumber(6));
        edit.add_file(Level(2), file);
        assert_eq!(
            of(&edit, false),
            [
                "part of an atomic group, 2 more to come",
                "of family 7",
                "WAL files below 000004 hold nothing unflushed of the family",
                "last sequence 5",
                "the next compaction of L1 begins behind 'm' seq 2 put",
                "remove table 000006 from L0",
                "add table 000009 to L2: 1068 bytes, 'a' seq 1 put .. 'z' seq 5 put, sequences 1 to 5",
                "  epoch 3, oldest blob file 000008, timestamps not stored, unknown field 33, passed over: 0x0102",
                "blob file 000008: 1 blob, 40 bytes more are garbage",
                "WAL file 000004 is closed and durable, 51 bytes",
                "unknown tag 8300, passed over: 0x78",
            ]
        );
        assert_eq!(of(&VersionEdit::default(), false), [""; 0]);
        assert!(of(&edit, true)[6].contains("0x61 seq 1 put .. 0x7A"));
    }
}
