//! Tables written by RocksDB 7.8.3, RocksDB 11.8.1 and LevelDB 1.23, in the repository's `golden/`.

use crate::fixture::{Entries, backward, forward, open, open_with, windows};
use ashlar_base::{ErrorKind, FileNumber, InternalKey, LookupKey, Order, SeqNum};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::table::Footer;
use ashlar_table::{ReaderOptions, TableReader, unique_id_bytes};
use std::path::Path;
use std::sync::Arc;

pub fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name);
    let file = Env::os().unwrap().fs.open_read(&path).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// The footer of a table of LevelDB.
pub fn leveldb_footer() -> Footer {
    let bytes = read("leveldb-1.23/plain/000005.ldb");
    Footer::decode(&bytes[bytes.len() - Footer::LEN..], bytes.len() as u64).unwrap().0
}

/// The lines `'HEX' seq:N, type:T => HEX` of a listing.
fn listed(name: &str) -> Entries {
    let text = String::from_utf8(read(name)).unwrap();
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| line.starts_with('\'')) {
        let (key, rest) = line[1..].split_once("' seq:").unwrap();
        let (seq, rest) = rest.split_once(", type:").unwrap();
        let (value_type, value) = rest.split_once(" =>").unwrap();
        let trailer = seq.parse::<u64>().unwrap() << 8 | value_type.parse::<u64>().unwrap();
        let mut encoded = unhex(key);
        encoded.extend_from_slice(&trailer.to_le_bytes());
        entries.push((encoded, unhex(value.trim())));
    }
    entries
}

/// The order of RocksDB's built-in comparator with 64-bit timestamps: newest first among equal keys.
#[derive(Debug)]
pub struct U64Ts;

impl ashlar_base::Comparator for U64Ts {
    fn name(&self) -> &str {
        "leveldb.BytewiseComparator.u64ts"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let split = |key: &[u8]| {
            let (key, ts) = key.split_at(key.len() - 8);
            (key.to_vec(), u64::from_le_bytes(ts.try_into().unwrap()))
        };
        let ((a, at), (b, bt)) = (split(a), split(b));
        a.cmp(&b).then(bt.cmp(&at))
    }
    fn timestamp_len(&self) -> usize {
        8
    }
}

pub fn u64_ts() -> Order {
    Order::Custom(Arc::new(U64Ts))
}

/// Reads a table in every way there is and returns its entries.
fn read_all_ways(table: &Arc<TableReader>, what: &str) -> Entries {
    let entries = forward(table).unwrap();
    assert_eq!(backward(table).unwrap(), entries, "{what} backward");
    assert_eq!(windows(table).unwrap(), entries, "{what} by windows");
    assert_eq!(table.verify().unwrap(), entries.len() as u64, "{what}");
    for (key, value) in &entries {
        let key = InternalKey::decode(key).unwrap();
        let found = table.get(&LookupKey::new(key.user_key(), key.seq())).unwrap();
        let found = found.unwrap_or_else(|| panic!("{what}: {key:?} not found"));
        assert_eq!((found.trailer, found.value()), (key.trailer(), &value[..]), "{what} {key:?}");
        let absent = [key.user_key(), &b"\x01ABSENTLY"[..]].concat();
        assert!(table.get(&LookupKey::new(&absent, SeqNum::MAX)).unwrap().is_none(), "{what} {key:?}");
    }
    entries
}

/// Blobs that stand in the file are given as the plain values they are; the listing has what is stored.
fn with_blobs(mut entries: Entries, file: &[u8]) -> Entries {
    for (key, value) in &mut entries {
        let at = key.len() - 8;
        if key[at] == 0x11 {
            key[at] = 1;
            let mut c = ashlar_base::Cursor::new(&value[2..]);
            let (offset, size) = (c.varint64("offset").unwrap(), c.varint64("size").unwrap());
            *value = file[offset as usize..][..size as usize].to_vec();
        }
    }
    entries
}

#[test]
fn rocksdb_tables_equal_their_listings() {
    let (mut tables, mut entries) = (0, 0);
    for (name, range_deletions) in [
        ("v2_snappy_crc32c_legacybloom", false),
        ("v3_zlib_xxhash32_hashsearch_prefix", false),
        ("v4_lz4_xxhash64_partitioned", false),
        ("v5_bzip2_firstkey", false),
        ("v5_lz4_dict", false),
        ("v5_lz4hc_ribbon", false),
        ("v5_zstd_xxh3_partitioned_dict", false),
        ("v6_crc32c_datablockhash", false),
        ("v6_nochecksum_datablockhash", false),
        ("v6_user_timestamps", false),
        ("v7_db_blobindex_entities", false),
        ("v7_db_merge_rangedel_versions", true),
        ("v7_embedded_blob", false),
        ("v7_large_values", false),
        ("v7_zstd_separated_kv", false),
    ] {
        let bytes = read(&format!("sst/{name}.sst"));
        let table = open(&bytes, if name == "v6_user_timestamps" { u64_ts() } else { Order::Bytewise });
        let table = table.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(!table.range_tombstones().is_empty(), range_deletions, "{name}");
        let mut expected = listed(&format!("sst/{name}.expected.txt"));
        if name == "v7_embedded_blob" {
            expected = with_blobs(expected, &bytes);
            assert_eq!(expected.iter().filter(|(_, value)| value.len() >= 100).count(), 2);
        }
        assert!(!expected.is_empty());
        assert_eq!(read_all_ways(&table, name), expected, "{name}");
        let offset = |at: usize| table.approximate_offset(InternalKey::decode(&expected[at].0).unwrap());
        // Blobs inside the file stand before its blocks.
        assert_eq!(offset(0), if name == "v7_embedded_blob" { 310 } else { 0 }, "{name}");
        assert!(offset(expected.len() - 1) < table.size(), "{name}");
        tables += 1;
        entries += expected.len();
    }
    ashlar_testkit::report::figure(&format!("golden tables: {tables}, {entries} entries, 0 differences"));
}

#[test]
fn partitions_are_read_when_they_are_needed() {
    for name in ["v4_lz4_xxhash64_partitioned", "v5_zstd_xxh3_partitioned_dict"] {
        let table = open(&read(&format!("sst/{name}.sst")), Order::Bytewise).unwrap();
        let at_first = table.memory();
        let key = listed(&format!("sst/{name}.expected.txt"))[200].0.clone();
        let key = InternalKey::decode(&key).unwrap();
        assert!(table.get(&LookupKey::new(key.user_key(), SeqNum::MAX)).unwrap().is_some());
        let after_one = table.memory();
        forward(&table).unwrap();
        let after_all = table.memory();
        assert!(at_first < after_one && after_one < after_all, "{name} {at_first} {after_one} {after_all}");
    }
}

#[test]
fn refused_by_name() {
    let refused = |name: &str, order: Order| {
        let error = open(&read(&format!("sst/{name}.sst")), order).map(|_| ()).unwrap_err();
        assert!(error.path().is_some(), "{name}: {error}");
        (error.kind(), error.to_string())
    };
    let (kind, text) = refused("v6_user_timestamps", Order::Bytewise);
    assert_eq!(kind, ErrorKind::InvalidArgument);
    assert!(text.contains("leveldb.BytewiseComparator.u64ts"), "{text}");
    let (kind, text) = refused("v7_large_values", u64_ts());
    assert_eq!(kind, ErrorKind::InvalidArgument, "{text}");
    let original = read("sst/v7_large_values.sst");
    for (magic, what) in [
        (0x8242_2296_63bf_9564_u64, "PlainTable"),
        (0x4f34_18eb_7a8f_13b8, "PlainTable"),
        (0x9267_89d0_c5f1_7873, "CuckooTable"),
    ] {
        let mut bytes = original.clone();
        let at = bytes.len() - 8;
        bytes[at..].copy_from_slice(&magic.to_le_bytes());
        let error = open(&bytes, Order::Bytewise).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "all else is of a block-based table: {error}");
        bytes[at - 45..at].fill(0);
        let error = open(&bytes, Order::Bytewise).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotSupported, "{error}");
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn tables_of_rocksdb_7() {
    for (number, family) in [
        (21, "default"),
        (23, "snappy"),
        (25, "zlib"),
        (27, "bzip2"),
        (29, "lz4"),
        (31, "lz4hc"),
        (33, "zstd"),
    ] {
        let bytes = read(&format!("rocksdb-7.8.3/compressions/0000{number}.sst"));
        let entries = read_all_ways(&open(&bytes, Order::Bytewise).unwrap(), family);
        assert_eq!(entries.len(), 40);
        for (i, (key, value)) in entries.iter().enumerate() {
            let key = InternalKey::decode(key).unwrap();
            assert_eq!(key.user_key(), format!("key-{family}-{i:03}").as_bytes());
            assert_eq!(*value, format!("{}{i:03}", "value ".repeat(8)).into_bytes());
        }
    }
    for (number, run) in [("09", 0), ("11", 1), ("13", 2)] {
        let bytes = read(&format!("rocksdb-7.8.3/manifest_history/0000{number}.sst"));
        let entries = read_all_ways(&open(&bytes, Order::Bytewise).unwrap(), number);
        for (i, (key, value)) in entries.iter().enumerate() {
            assert_eq!(InternalKey::decode(key).unwrap().user_key(), format!("r{run}-{i}").as_bytes());
            assert_eq!(*value, format!("v{run}").into_bytes());
        }
        assert_eq!(entries.len(), 5);
    }
    let bytes = read("rocksdb-7.8.3/manifest_history/000015.sst");
    let entries = read_all_ways(&open(&bytes, Order::Bytewise).unwrap(), "tombstone");
    assert_eq!(InternalKey::decode(&entries[0].0).unwrap().trailer().type_byte(), 0);
    let bytes = read("rocksdb-7.8.3/column_families/000015.sst");
    let entries = read_all_ways(&open(&bytes, Order::Bytewise).unwrap(), "family");
    assert_eq!((&entries[0].0[..2], &entries[0].1[..]), (&b"o1"[..], &b"one-1"[..]));
}

#[test]
fn leveldb_tables() {
    for kind in ["plain", "snappy"] {
        let bytes = read(&format!("leveldb-1.23/{kind}/000005.ldb"));
        let entries = read_all_ways(&open(&bytes, Order::Bytewise).unwrap(), kind);
        // The listing holds the log's entries too, which begin with sequence 32.
        let mut expected = listed(&format!("leveldb-1.23/{kind}/expected.txt"));
        expected.retain(|(key, _)| InternalKey::decode(key).unwrap().seq().get() < 32);
        assert_eq!(entries, expected, "{kind}");
        assert_eq!(entries.len(), 31);
    }
}

#[test]
fn one_sequence_number_for_an_ingested_table() {
    let bytes = read("sst/v7_large_values.sst");
    let mut options = ReaderOptions::new(Order::Bytewise, FramePool::new(1 << 20), FileNumber(1));
    options.largest_seq = SeqNum::new(77);
    let table = open_with(&bytes, options).unwrap();
    let entries = read_all_ways(&table, "ingested");
    assert_eq!(entries.len(), 8);
    for (key, _) in &entries {
        let key = InternalKey::decode(key).unwrap();
        assert_eq!(key.seq().get(), 77);
        assert!(table.get(&LookupKey::new(key.user_key(), SeqNum::new(76).unwrap())).unwrap().is_none());
        seeks_around(&table, key);
    }
}

/// Old ingestion wrote the sequence number into the properties and left the block's checksum alone.
#[test]
fn a_sequence_number_patched_in_place() {
    let name = b"external_sst_file.global_seqno";
    let original = read("sst/v7_large_values.sst");
    let place = original.windows(name.len()).position(|w| w == name).unwrap() + name.len();
    assert_eq!(original[place..place + 8], [0; 8]);
    let mut patched = original.clone();
    patched[place] = 3;
    let table = open(&patched, Order::Bytewise).unwrap();
    for (key, _) in read_all_ways(&table, "patched") {
        assert_eq!(InternalKey::decode(&key).unwrap().seq().get(), 3);
    }
    let mut options = ReaderOptions::new(Order::Bytewise, FramePool::new(1 << 20), FileNumber(1));
    options.largest_seq = SeqNum::new(4);
    assert!(open_with(&patched, options).unwrap_err().is_corruption(), "the MANIFEST says otherwise");
    patched[place - 1] ^= 1;
    assert!(open(&patched, Order::Bytewise).unwrap_err().is_corruption());
}

/// Seeks at, above and below the presented sequence number.
fn seeks_around(table: &Arc<TableReader>, key: InternalKey<'_>) {
    use ashlar_base::{InternalIterator, InternalKeyBuf, Trailer, ValueType};
    let mut iter = table.iter(ashlar_table::ReadHow::default());
    let at =
        |seq| InternalKeyBuf::new(key.user_key(), Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put));
    let mut expect = |seq: u64, seek_hits: bool, back_hits: bool| {
        iter.seek(at(seq).as_key()).unwrap();
        assert_eq!(iter.entry().is_some_and(|e| e.key == key), seek_hits, "{key:?} {seq}");
        iter.seek_for_prev(at(seq).as_key()).unwrap();
        assert_eq!(iter.entry().is_some_and(|e| e.key == key), back_hits, "{key:?} {seq}");
    };
    expect(78, true, false);
    expect(77, true, true);
    expect(76, false, true);
}

#[test]
fn unique_id_from_the_properties() {
    let table = open(&read("sst/v7_db_blobindex_entities.sst"), Order::Bytewise).unwrap();
    let p = table.properties();
    let bytes = unique_id_bytes(
        p.db_id.as_deref().unwrap(),
        p.db_session_id.as_deref().unwrap(),
        p.original_file_number.unwrap(),
    );
    assert_eq!(bytes[..8], 10_899_466_810_232_436_971u64.to_le_bytes());
    assert_eq!(bytes[8..], 11_130_876_041_085_548_611u64.to_le_bytes());
}
