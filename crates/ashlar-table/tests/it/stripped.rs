//! Tables whose keys had their timestamps taken off: RocksDB's option `persist_user_defined_timestamps = false`.
//!
//! There is no golden one. What is taken for one here is a table of ours over plain keys, with the properties that such a
//! table has: name of the comparator, and `user.defined.timestamps.persisted = 0`.

use crate::fixture::{Entries, backward, forward, key, open, windows, write};
use crate::golden::u64_ts;
use ashlar_base::{ErrorKind, InternalKey, LookupKey, Order, SeqNum, ValueType};
use ashlar_format::table::{Footer, IndexKind, MetaIndex, Properties};
use ashlar_table::TableOptions;

/// The table with other properties: block, metaindex and footer are written again behind what stays.
pub fn with_properties(table: &[u8], change: impl FnOnce(&mut Properties)) -> Vec<u8> {
    let (mut footer, _) = Footer::decode(&table[table.len() - Footer::LEN..], table.len() as u64).unwrap();
    let block = |offset: u64, size: u64| &table[offset as usize..][..size as usize];
    let mut meta = MetaIndex::decode(block(footer.metaindex.offset, footer.metaindex.size)).unwrap();
    let old = meta.get(MetaIndex::PROPERTIES).unwrap();
    let mut properties = Properties::decode(block(old.offset, old.size)).unwrap();
    change(&mut properties);
    let mut out = table[..old.offset as usize].to_vec();
    let mut put = |bytes: &[u8]| {
        let handle = ashlar_format::table::BlockHandle { offset: out.len() as u64, size: bytes.len() as u64 };
        let trailer = footer.checksum.trailer(handle.offset, bytes, 0);
        out.extend_from_slice(bytes);
        out.extend_from_slice(&trailer);
        handle
    };
    meta.set(MetaIndex::PROPERTIES, put(&properties.encode()));
    footer.metaindex = put(&meta.encode());
    let footer = footer.encode(out.len() as u64).unwrap();
    out.extend_from_slice(&footer);
    out
}

fn entries() -> Entries {
    (0..300u64)
        .map(|i| {
            let user_key = format!("key{:05}", i / 2);
            let key = key(user_key.as_bytes(), 1000 - i, ValueType::Put);
            (key.as_key().encoded().to_vec(), format!("value {i}").into_bytes())
        })
        .collect()
}

fn stripped(options: &TableOptions) -> Vec<u8> {
    let (bytes, _) = write(options, &entries());
    with_properties(&bytes, |p| {
        p.comparator = Some("leveldb.BytewiseComparator.u64ts".into());
        p.user_defined_timestamps_persisted = Some(0);
    })
}

#[test]
fn keys_get_the_smallest_timestamp_back() {
    for index in [IndexKind::BinarySearch, IndexKind::TwoLevel] {
        for (version, partition_filters) in [(5, false), (7, true), (2, true)] {
            let options = TableOptions {
                block_size: 300,
                metadata_block_size: 100,
                index,
                partition_filters,
                format_version: version,
                ..TableOptions::default()
            };
            let table = open(&stripped(&options), u64_ts()).unwrap();
            let expected: Entries = entries()
                .into_iter()
                .map(|(key, value)| {
                    let (user_key, trailer) = key.split_at(key.len() - 8);
                    ([user_key, &[0; 8], trailer].concat(), value)
                })
                .collect();
            assert_eq!(forward(&table).unwrap(), expected);
            assert_eq!(backward(&table).unwrap(), expected);
            assert_eq!(windows(&table).unwrap(), expected);
            assert_eq!(table.verify().unwrap(), 300);
            for (key, value) in &expected {
                let key = InternalKey::decode(key).unwrap();
                let found = table.get(&LookupKey::new(key.user_key(), key.seq())).unwrap().unwrap();
                assert_eq!((found.trailer, found.value()), (key.trailer(), &value[..]));
                let other = [&key.user_key()[..8], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
                assert!(table.get(&LookupKey::new(&other, SeqNum::MAX)).unwrap().is_none());
            }
        }
    }
}

/// Range tombstones get the smallest timestamp back too, at both ends: what they cover is what they covered.
#[test]
fn range_tombstones_get_it_back_as_well() {
    let ranges = [
        ("key00010", "key00015", 2000),
        ("key00015", "key00020", 2000),
        ("key00015", "key00020", 1500),
        ("key00020", "key00040", 1500),
    ];
    let points = [("key00012", 3), ("key00030", 4)];
    let (bytes, _) = crate::tombstones::write(&TableOptions::default(), &points, &ranges).unwrap();
    let bytes = with_properties(&bytes, |p| {
        p.comparator = Some("leveldb.BytewiseComparator.u64ts".into());
        p.user_defined_timestamps_persisted = Some(0);
    });
    let table = open(&bytes, u64_ts()).unwrap();
    assert_eq!(table.verify().unwrap(), 2);
    let found = table.range_tombstones();
    let stamped = |key: &str, time: u64| [key.as_bytes(), &time.to_le_bytes()].concat();
    let fragments: Vec<_> =
        found.fragments().map(|f| (f.begin.to_vec(), f.end.to_vec(), f.seqs().len())).collect();
    assert_eq!(
        fragments,
        [
            (stamped("key00010", 0), stamped("key00015", 0), 1),
            (stamped("key00015", 0), stamped("key00020", 0), 2),
            (stamped("key00020", 0), stamped("key00040", 0), 1),
        ]
    );
    let covering = |key: &str| found.covering_seq(&stamped(key, 0), SeqNum::MAX).map(SeqNum::get);
    assert_eq!(
        ["key00009", "key00010", "key00017", "key00020", "key00039", "key00040"].map(covering),
        [None, Some(2000), Some(2000), Some(1500), Some(1500), None]
    );
}

#[test]
fn under_an_order_without_timestamps_no_key_lacks_one() {
    let bytes = stripped(&TableOptions::default());
    let bytes = with_properties(&bytes, |p| p.comparator = Some("leveldb.BytewiseComparator".into()));
    let table = open(&bytes, Order::Bytewise).unwrap();
    assert_eq!(forward(&table).unwrap(), entries());
    assert_eq!(table.verify().unwrap(), 300);
}

#[test]
fn plug_ins_are_refused_by_name() {
    let (bytes, _) = write(&TableOptions { format_version: 7, ..TableOptions::default() }, &entries());
    let custom = with_properties(&bytes, |p| p.compression = Some("Mine;81;".into()));
    let error = open(&custom, Order::Bytewise).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotSupported);
    assert!(error.to_string().contains("custom compression manager"), "{error}");
}
