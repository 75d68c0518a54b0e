//! Golden pieces as internal entries: what stands in tables and logs, key by key, whatever the engine makes of it.

use super::Tally;
use ashlar_base::ext::timestamp_order::timestamp_order;
use ashlar_base::range_del::RangeTombstone;
use ashlar_base::{FileNumber, InternalIterator, InternalKey, Order, SeqNum, Trailer, ValueType};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::{BatchOp, BatchReader};
use ashlar_log::{LogReader, LogRecordKind, RecoveryMode};
use ashlar_table::{ReadHow, ReaderOptions, TableReader};
use ashlar_testkit::golden::{self, InternalEntry};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The records of a log or a MANIFEST, all of them good.
fn records(path: &Path, number: FileNumber) -> Vec<Vec<u8>> {
    let file = Env::os().unwrap().fs.open_read(path).unwrap();
    let mut reader = LogReader::open(file, number, RecoveryMode::Absolute);
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        assert_eq!(record.kind, LogRecordKind::Data, "{}", path.display());
        all.push(record.payload.to_vec());
    }
    assert!(reader.cut_error().is_none(), "{}", path.display());
    all
}

fn open_table(path: &Path, order: Order, number: FileNumber) -> std::sync::Arc<TableReader> {
    let file = Env::os().unwrap().fs.open_read(path).unwrap();
    let size = file.len();
    TableReader::open(file, size, ReaderOptions::new(order, FramePool::new(1 << 20), number))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn table_entries(table: &std::sync::Arc<TableReader>) -> Vec<InternalEntry> {
    let mut iter = table.iter(ReadHow::default());
    let mut entries = Vec::new();
    iter.first().unwrap();
    while let Some(entry) = iter.entry() {
        entries.push(internal(entry.key, entry.value));
        iter.next().unwrap();
    }
    entries
}

fn internal(key: InternalKey<'_>, value: &[u8]) -> InternalEntry {
    InternalEntry {
        key: key.user_key().to_vec(),
        sequence: key.seq().get(),
        kind: key.trailer().type_byte(),
        value: value.to_vec(),
    }
}

fn sorted(order: &Order, mut entries: Vec<InternalEntry>) -> Vec<InternalEntry> {
    entries.sort_by(|a, b| order.compare(&a.key, &b.key).then(b.sequence.cmp(&a.sequence)));
    entries
}

fn range_deletion(tombstone: RangeTombstone) -> InternalEntry {
    InternalEntry {
        key: tombstone.begin,
        sequence: tombstone.seq.get(),
        kind: Trailer::new(tombstone.seq, ValueType::RangeDelete).type_byte(),
        value: tombstone.end,
    }
}

/// What the data of a batch becomes in a memtable, from sequence `seq` on.
fn batch_entries(ops: &[BatchOp<'_>], mut seq: u64, timestamps: bool) -> Vec<InternalEntry> {
    let mut entries = Vec::new();
    for op in ops {
        let (key, kind, value): (&[u8], _, &[u8]) = match *op {
            BatchOp::Put { key, value, .. } => (key, ValueType::Put, value),
            BatchOp::Delete { key, .. } if timestamps => (key, ValueType::DeleteWithTimestamp, b""),
            BatchOp::Delete { key, .. } => (key, ValueType::Delete, b""),
            _ => continue,
        };
        let trailer = Trailer::new(SeqNum::new(seq).unwrap(), kind);
        entries.push(InternalEntry {
            key: key.to_vec(),
            sequence: seq,
            kind: trailer.type_byte(),
            value: value.to_vec(),
        });
        seq += 1;
    }
    entries
}

impl Tally {
    fn compare_entries(&mut self, name: &str, expected: &[InternalEntry], found: &[InternalEntry]) {
        self.comparisons += 1;
        self.entries += expected.len();
        assert!(!expected.is_empty(), "{name}: an empty listing");
        let at = expected.iter().zip(found).position(|(a, b)| a != b);
        let at = at.or_else(|| (expected.len() != found.len()).then(|| expected.len().min(found.len())));
        if let Some(at) = at {
            let (want, got) = (expected.get(at), found.get(at));
            self.differences.push(format!("{name}, entry {at}: {want:?} listed, {got:?} found"));
        }
    }
}

/// The numbers of a directory's logs that MANIFEST `number` still needs, and its tables.
fn live_files(dir: &Path, number: u64) -> (u64, Vec<u64>) {
    let number = FileNumber(number);
    let (mut log, mut tables) = (0, BTreeSet::new());
    for record in records(&dir.join(FileKind::Manifest(number).name()), number) {
        let edit = VersionEdit::decode(&record).unwrap();
        log = edit.log_number.map_or(log, |n| n.0);
        tables.extend(edit.added.iter().map(|(_, file)| file.number.0));
        tables.retain(|number| !edit.deleted.iter().any(|(_, gone)| gone.0 == *number));
    }
    (log, tables.into_iter().collect())
}

/// `udt`: keys with timestamps in one table and one log.
pub(super) fn timestamps(tally: &mut Tally) {
    let golden = golden::golden("rocksdb-7.8.3/udt").unwrap_or_else(|skip| panic!("{skip}"));
    let order = timestamp_order("leveldb.BytewiseComparator.u64ts").unwrap();
    let (log, tables) = live_files(golden.path(), 5);
    assert_eq!((log, &tables[..]), (8, &[9][..]));
    let mut found = Vec::new();
    for number in tables.into_iter().map(FileNumber) {
        let path = golden.path().join(FileKind::Table(number).name());
        found.extend(table_entries(&open_table(&path, order.clone(), number)));
    }
    for record in records(&golden.path().join("000008.log"), FileNumber(log)) {
        let batch = BatchReader::new(&record).unwrap();
        let ops: Vec<_> = batch.iter().map(Result::unwrap).collect();
        found.extend(batch_entries(&ops, batch.seq().get(), true));
    }
    tally.looked_into += 1;
    tally.compare_entries("rocksdb-7.8.3/udt", &golden.families[0].internal, &sorted(&order, found));
}

/// `txn_2pc`: what is committed, prepared and rolled back, by the markers in its only log.
pub(super) fn transactions(tally: &mut Tally) {
    let golden = golden::golden("rocksdb-7.8.3/txn_2pc").unwrap_or_else(|skip| panic!("{skip}"));
    assert_eq!(live_files(golden.path(), 5), (0, vec![]));
    let batches = records(&golden.path().join("000004.log"), FileNumber(4));
    let (mut committed, mut prepared) = (Vec::new(), BTreeMap::new());
    let mut words = Vec::new();
    for record in &batches {
        let batch = BatchReader::new(record).unwrap();
        let ops: Vec<_> = batch.iter().map(Result::unwrap).collect();
        let mut own = &ops[..];
        for (at, op) in ops.iter().enumerate() {
            match op {
                BatchOp::EndPrepare { xid } => {
                    words.push(format!("prepare {}", xid.escape_ascii()));
                    prepared.insert(xid.to_vec(), ops[..at].to_vec());
                    own = &ops[at..];
                }
                BatchOp::Commit { xid } => {
                    words.push(format!("commit {}", xid.escape_ascii()));
                    let ops = prepared.remove(*xid).unwrap();
                    committed.extend(batch_entries(&ops, batch.seq().get(), false));
                }
                BatchOp::Rollback { xid } => {
                    words.push(format!("roll back {}", xid.escape_ascii()));
                    prepared.remove(*xid).unwrap();
                }
                _ => {}
            }
        }
        committed.extend(batch_entries(own, batch.seq().get(), false));
    }
    assert_eq!(
        words,
        [
            "prepare tx-commit",
            "prepare tx-rollback",
            "prepare tx-pending",
            "commit tx-commit",
            "roll back tx-rollback"
        ]
    );
    let pending: Vec<_> =
        prepared.iter().map(|(xid, ops)| (&xid[..], batch_entries(ops, 0, false))).collect();
    assert!(
        matches!(&pending[..], [(b"tx-pending", ops)] if ops.len() == 1 && ops[0].key == b"k-tx-pending"),
        "{pending:?}"
    );
    tally.looked_into += 1;
    let committed = sorted(&Order::Bytewise, committed);
    tally.compare_entries("rocksdb-7.8.3/txn_2pc", &golden.families[0].internal, &committed);
}

/// The tables of RocksDB 11.8.1, each by itself.
pub(super) fn tables(tally: &mut Tally) {
    for path in golden::tables() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path.with_extension("expected.txt")).unwrap();
        let timestamps = name.ends_with("_user_timestamps");
        let order = match timestamps {
            true => timestamp_order("leveldb.BytewiseComparator.u64ts").unwrap(),
            false => Order::Bytewise,
        };
        let table = open_table(&path, order, FileNumber(9));
        let mut found = table_entries(&table);
        let mut expected = golden::entries(&text, "");
        if name == "v7_embedded_blob" {
            // Its blobs stand in the file itself and are read as the values they are; the listing has what is stored.
            let values = |entries: &mut Vec<InternalEntry>| entries.retain(|entry| entry.value.len() < 100);
            values(&mut found);
            expected.retain(|entry| entry.kind != 0x11);
        }
        tally.compare_entries(&name, &expected, &found);
        let tombstones = golden::entries(&text, "R ");
        let pieces = table.range_tombstones().fragments().flat_map(|f| {
            let of = |seq| RangeTombstone { begin: f.begin.to_vec(), end: f.end.to_vec(), seq };
            f.seqs().into_iter().map(of).collect::<Vec<_>>()
        });
        let found: Vec<InternalEntry> = pieces.map(range_deletion).collect();
        if !(tombstones.is_empty() && found.is_empty()) {
            tally.compare_entries(&format!("{name}, range tombstones"), &tombstones, &found);
        }
        tally.tables += 1;
    }
}
