//! Targets for logs and their content: batches and version edits.

use super::Outcome;
use crate::memory::{DIR, machine, memory_file, put};
use crate::{corpus, records};
use ashlar_base::FileNumber;
use ashlar_cache::FramePool;
use ashlar_format::log_record::{
    Framing, PredecessorInfo, decode_compression, decode_timestamp_sizes, encode_record,
};
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::{BatchEncoder, BatchOp, BatchReader};
use ashlar_log::{LogEnd, LogReader, LogRecordKind, PhysicalKind, PhysicalRecords, RecoveryMode};
use ashlar_options::FormatLevel;
use ashlar_recovery::{Families, Others, recover_manifest};
use ashlar_tree::version::OpenTables;
use std::collections::BTreeSet;
use std::path::Path;

/// Types of the record that says that records are compressed.
const SET_COMPRESSION: [u8; 2] = [9, 12];

pub(super) fn files() -> Vec<Vec<u8>> {
    [corpus::logs(), corpus::manifests()].concat()
}

pub(super) fn metas() -> Vec<Vec<u8>> {
    vec![vec![7, 0, 0, 0], vec![1, 0, 0, 0, 8, 0], vec![4, 32, 1, 17, 200, 1]]
}

pub(super) fn physical(input: &[u8]) -> Outcome {
    let mut bytes = 0;
    records::walk(input, |_, payload| bytes += payload.len());
    assert!(bytes <= input.len(), "more payload than file");
    Ok(())
}

/// Every byte belongs to one stretch, and every record that is read begins one.
pub(super) fn stretches(input: &[u8]) -> Outcome {
    let number = number_of(input);
    let mut walk = PhysicalRecords::new(memory_file(input), FileNumber(u64::from(number)));
    let (mut at, mut begins, mut wrong) = (0, BTreeSet::new(), None);
    while let Some(stretch) = walk.next().expect("memory is always readable") {
        assert_eq!(stretch.offset, at, "stretches follow one another");
        assert!(stretch.len > 0, "every stretch has bytes");
        begins.insert(stretch.offset);
        at += stretch.len;
        if !matches!(stretch.kind, PhysicalKind::Record { .. } | PhysicalKind::BlockEnd) {
            wrong.get_or_insert(format!("{:?}", stretch.kind));
        }
    }
    assert_eq!(at, input.len() as u64, "to the end of the file");
    for mode in [RecoveryMode::PointInTime, RecoveryMode::SkipAny] {
        let (read, _) = read(input, number, mode);
        assert!(read.iter().all(|(offset, _)| begins.contains(offset)), "a record inside a stretch");
    }
    wrong.map_or(Ok(()), Err)
}

/// The log number that a recyclable record at the beginning has.
fn number_of(input: &[u8]) -> u32 {
    input.get(7..11).and_then(|b| b.first_chunk::<4>()).map_or(4, |n| u32::from_le_bytes(*n))
}

pub(super) fn meta(input: &[u8]) -> Outcome {
    let _ = decode_compression(input);
    if let Ok(sizes) = decode_timestamp_sizes(input) {
        assert!(sizes.len() <= input.len(), "more sizes than bytes");
    }
    let info = PredecessorInfo::decode(input).map_err(|e| e.to_string())?;
    assert_eq!(PredecessorInfo::decode(&info.encode()), Ok(info));
    Ok(())
}

/// What a mode makes of a log: its data records, and how it ended.
fn read(input: &[u8], number: u32, mode: RecoveryMode) -> (Vec<(u64, Vec<u8>)>, LogEnd) {
    let mut reader = LogReader::open(memory_file(input), FileNumber(u64::from(number)), mode);
    let mut data = Vec::new();
    let mut last = None;
    while let Some(record) = reader.next().expect("memory is always readable") {
        assert!(last.is_none_or(|before| before < record.offset), "offsets ascend");
        last = Some(record.offset);
        if record.kind == LogRecordKind::Data {
            data.push((record.offset, record.payload.to_vec()));
        }
    }
    assert!(reader.next().expect("memory is always readable").is_none(), "the end is the end");
    assert!(reader.good_end() <= input.len() as u64, "good bytes behind the end");
    assert_eq!(reader.cut_error().is_some(), matches!(reader.end(), LogEnd::Cut { .. }));
    (data, reader.end())
}

pub(super) fn reader(input: &[u8]) -> Outcome {
    let number = number_of(input);
    let (strict, _) = read(input, number, RecoveryMode::Absolute);
    let (point, end) = read(input, number, RecoveryMode::PointInTime);
    let (tolerant, _) = read(input, number, RecoveryMode::TolerateTail);
    let (_, skipping) = read(input, number, RecoveryMode::SkipAny);
    assert!(!matches!(skipping, LogEnd::Cut { .. }), "this mode is never cut");
    assert!(strict == point, "the strict modes read the same");
    assert!(tolerant.starts_with(&strict), "a strict mode reads what no other does");
    let compressed = input.get(6).is_some_and(|kind| SET_COMPRESSION.contains(kind));
    let bytes: usize = point.iter().map(|(_, payload)| payload.len()).sum();
    assert!(compressed || bytes <= input.len(), "more payload than file");
    let mut again = Vec::new();
    for (_, payload) in &point {
        let at = again.len() as u64;
        encode_record(&mut again, Framing::Recyclable, 7, at, payload);
    }
    let (read_again, clean) = read(&again, 7, RecoveryMode::Absolute);
    assert_eq!(clean, LogEnd::Clean);
    assert!(read_again.iter().map(|(_, p)| p).eq(point.iter().map(|(_, p)| p)), "written and read again");
    match end {
        LogEnd::Clean => Ok(()),
        LogEnd::Cut { reason, .. } | LogEnd::Torn { reason, .. } => Err(reason.to_string()),
        LogEnd::OldRecord { .. } => Err("a record of the file's former life".to_owned()),
    }
}

pub(super) fn write_batch(input: &[u8]) -> Outcome {
    let reader = BatchReader::new(input).map_err(|e| e.to_string())?;
    let valid = reader.validate();
    let mut ops = Vec::new();
    for op in reader.iter().take(input.len() + 1) {
        match op {
            Ok(op) => ops.push(op),
            Err(e) => {
                assert!(valid.is_err(), "validated, then malformed");
                return Err(e.to_string());
            }
        }
    }
    assert!(valid.is_ok() && ops.len() <= input.len(), "more records than bytes");
    let mut encoder = BatchEncoder::from_encoded(input).expect("it was read before");
    assert!(encoder.finish(reader.seq()) == input, "taken over and handed out again");
    let mut encoder = BatchEncoder::new();
    if ops.iter().all(|op| add(&mut encoder, op)) {
        let again = BatchReader::new(encoder.finish(reader.seq())).expect("a whole batch");
        assert!(again.iter().map_while(Result::ok).eq(ops), "encoded and decoded again");
    }
    Ok(())
}

/// False for records that are never written here.
fn add(batch: &mut BatchEncoder, op: &BatchOp<'_>) -> bool {
    match *op {
        BatchOp::Put { family, key, value } => batch.put(family, key, value),
        BatchOp::Delete { family, key } => batch.delete(family, key),
        BatchOp::SingleDelete { family, key } => batch.single_delete(family, key),
        BatchOp::Merge { family, key, value } => batch.merge(family, key, value),
        BatchOp::DeleteRange { family, begin, end } => batch.delete_range(family, begin, end),
        BatchOp::Entity { family, key, entity } => batch.entity(family, key, entity),
        BatchOp::LogData(data) => batch.log_data(data),
        _ => return false,
    }
    .is_ok()
}

pub(super) fn version_edit(input: &[u8]) -> Outcome {
    let edit = VersionEdit::decode(input).map_err(|e| e.into_error().to_string())?;
    let mut again = Vec::new();
    edit.encode(&mut again);
    assert_eq!(VersionEdit::decode(&again).as_ref(), Ok(&edit), "not equal after encode and decode");
    Ok(())
}

pub(super) fn manifest(input: &[u8]) -> Outcome {
    let env = machine();
    put(&env, "CURRENT", b"MANIFEST-000005\n");
    put(&env, "MANIFEST-000005", input);
    let families = Families { listed: Vec::new(), others: Others::Open { levels: 7 } };
    let tables = OpenTables::new(FramePool::new(1 << 20));
    let recovered = recover_manifest(&env, Path::new(DIR), FormatLevel::V9_11, &tables, &families);
    recovered.map(drop).map_err(|e| e.to_string())
}
