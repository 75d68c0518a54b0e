//! Random tables of every shape against a sorted list.

use crate::fixture::{Entries, backward, drain, forward, key, open, open_with, windows, write};
use ashlar_base::{FileNumber, InternalIterator, InternalKey, LookupKey, Order, SeqNum, Trailer, ValueType};
use ashlar_cache::{FramePin, FramePool};
use ashlar_env::SeededRand;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use ashlar_table::{ReadHow, ReaderOptions, TableOptions};
use std::cmp::Ordering;
use std::ops::Range;

fn pick<T: Copy>(rand: &SeededRand, from: &[T]) -> T {
    from[rand.below(from.len() as u64) as usize]
}

fn user_key(rand: &SeededRand) -> Vec<u8> {
    match rand.below(4) {
        0 => format!("user:{:05}", rand.below(200)).into_bytes(),
        1 => (0..rand.below(4)).map(|_| pick(rand, &[0, 1, b'u', 0xfe, 0xff])).collect(),
        2 => [b"a long prefix that keys share ".as_slice(), &rand.below(300).to_be_bytes()].concat(),
        _ => vec![0xff; rand.below(12) as usize],
    }
}

fn random_entries(rand: &SeededRand, order: &Order) -> Entries {
    let mut entries = Entries::new();
    for _ in 0..1 + rand.below(400) {
        let user_key = user_key(rand);
        // Mostly one version; now and then so many that they fill several blocks.
        let versions = if rand.below(40) == 0 { 60 } else { 1 + rand.below(3) };
        for _ in 0..versions {
            let value_type = pick(
                rand,
                &[
                    ValueType::Put,
                    ValueType::Put,
                    ValueType::Delete,
                    ValueType::Merge,
                    ValueType::SingleDelete,
                ],
            );
            let value = vec![pick(rand, b"abc"); pick(rand, &[0, 1, 10, 100, 127, 128, 1000])];
            let seq = rand.below(1 << 20);
            entries.push((key(&user_key, seq, value_type).as_key().encoded().to_vec(), value));
        }
    }
    entries.sort_by(|a, b| compare(order, &a.0, &b.0));
    entries.dedup_by(|a, b| a.0 == b.0);
    entries
}

fn compare(order: &Order, a: &[u8], b: &[u8]) -> Ordering {
    order.compare_internal(InternalKey::decode(a).unwrap(), InternalKey::decode(b).unwrap())
}

fn bloom(bits_per_key: f64) -> FilterPolicy {
    FilterPolicy::Bloom { bits_per_key }
}

fn ribbon(bloom_bits_per_key: f64) -> FilterPolicy {
    FilterPolicy::Ribbon { bloom_bits_per_key, bloom_before_level: -1 }
}

fn random_options(rand: &SeededRand, order: Order) -> TableOptions {
    TableOptions {
        block_size: pick(rand, &[1, 100, 500, 4096, 65536]),
        block_restart_interval: pick(rand, &[1, 2, 16, 1000]),
        index_restart_interval: pick(rand, &[1, 3, 16]),
        format_version: 2 + rand.below(6) as u32,
        checksum: pick(
            rand,
            &[
                ChecksumKind::None,
                ChecksumKind::Crc32c,
                ChecksumKind::XxHash32,
                ChecksumKind::XxHash64,
                ChecksumKind::Xxh3,
            ],
        ),
        compression: pick(
            rand,
            &[
                Compression::None,
                Compression::Snappy,
                Compression::Lz4,
                Compression::Lz4hc,
                Compression::Zstd,
                Compression::Zlib,
                Compression::Bzip2,
            ],
        ),
        filter: pick(
            rand,
            &[None, Some(bloom(2.0)), Some(bloom(10.0)), Some(bloom(16.5)), Some(ribbon(10.0))],
        ),
        index: pick(
            rand,
            &[IndexKind::BinarySearch, IndexKind::TwoLevel, IndexKind::BinarySearchWithFirstKey],
        ),
        metadata_block_size: pick(rand, &[1, 100, 4096]),
        partition_filters: rand.below(2) == 0,
        data_block_hash_ratio: pick(rand, &[None, Some(0.75), Some(1.0)]),
        max_dict_bytes: pick(rand, &[0, 0, 100, 4096]),
        zstd_max_train_bytes: pick(rand, &[0, 20_000]),
        max_dict_buffer_bytes: pick(rand, &[0, 2000]),
        order,
        ..TableOptions::default()
    }
}

/// A user order that is neither of the built-in ones: by length, then by bytes.
#[derive(Debug)]
struct ByLength;

impl ashlar_base::Comparator for ByLength {
    fn name(&self) -> &str {
        "test.ByLength"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

#[test]
fn equals_a_sorted_list() {
    for seed in 0..ashlar_testkit::report::scale(80, 1000) as u64 {
        let rand = SeededRand::new(seed);
        let order = match seed % 4 {
            0 => Order::ReverseBytewise,
            1 => Order::Custom(std::sync::Arc::new(ByLength)),
            _ => Order::Bytewise,
        };
        let entries = random_entries(&rand, &order);
        let options = random_options(&rand, order.clone());
        let (bytes, summary) = write(&options, &entries);
        let what = format!("seed {seed} {options:?}");
        assert_eq!(summary.entries, entries.len() as u64, "{what}");
        assert_eq!(summary.smallest.as_key().encoded(), entries[0].0, "{what}");
        assert_eq!(summary.largest.as_key().encoded(), entries[entries.len() - 1].0, "{what}");
        let table = open(&bytes, order.clone()).unwrap();
        assert_eq!(table.verify().unwrap(), summary.entries, "{what}");
        assert!(forward(&table).unwrap() == entries, "{what}");
        assert!(backward(&table).unwrap() == entries, "{what}");
        assert!(windows(&table).unwrap() == entries, "{what}");
        check_walk(&rand, &table, &entries, &order, &what);
        check_lookups(&rand, &table, &entries, &order, &what);
        let pool = FramePool::new(pick(&rand, &[0, 5000]));
        let uncached = ReaderOptions::new(order.clone(), pool, FileNumber(9));
        check_lookups(&rand, &open_with(&bytes, uncached).unwrap(), &entries, &order, &what);
    }
}

/// A target near the entries: one of them, or a version or a key beside one.
fn target(rand: &SeededRand, entries: &Entries) -> (Vec<u8>, Trailer) {
    let (near, _) = &entries[rand.below(entries.len() as u64) as usize];
    let (near_user, near_trailer) = InternalKey::decode(near).unwrap().split();
    let seq = near_trailer.seq().get();
    let trailer = match rand.below(5) {
        0 => Trailer::FIRST,
        1 => Trailer::LAST,
        2 => near_trailer,
        3 => Trailer::seek(SeqNum::new(seq + 1).unwrap()),
        _ => Trailer::seek(SeqNum::new(seq.saturating_sub(1)).unwrap()),
    };
    let user = if rand.below(3) == 0 { user_key(rand) } else { near_user.to_vec() };
    (user, trailer)
}

fn check_walk(
    rand: &SeededRand,
    table: &std::sync::Arc<ashlar_table::TableReader>,
    entries: &Entries,
    order: &Order,
    what: &str,
) {
    let mut iter = table.iter(ReadHow::default());
    let mut at: Option<usize> = None;
    for _ in 0..600 {
        match rand.below(8) {
            0 => {
                iter.first().unwrap();
                at = Some(0);
            }
            1 => {
                iter.last().unwrap();
                at = entries.len().checked_sub(1);
            }
            2 | 3 => {
                let (user, trailer) = target(rand, entries);
                let wanted = ashlar_base::InternalKeyBuf::new(&user, trailer);
                let wanted = wanted.as_key();
                if rand.below(2) == 0 {
                    iter.seek(wanted).unwrap();
                    let i = entries.partition_point(|(k, _)| compare(order, k, wanted.encoded()).is_lt());
                    at = Some(i).filter(|i| *i < entries.len());
                } else {
                    iter.seek_for_prev(wanted).unwrap();
                    let i = entries.partition_point(|(k, _)| compare(order, k, wanted.encoded()).is_le());
                    at = i.checked_sub(1);
                }
            }
            4 | 5 => {
                iter.next().unwrap();
                at = at.map(|i| i + 1).filter(|i| *i < entries.len());
            }
            _ => {
                iter.prev().unwrap();
                at = at.and_then(|i| i.checked_sub(1));
            }
        }
        let got = iter.entry().map(|e| (e.key.encoded().to_vec(), e.value.to_vec()));
        assert!(got.as_ref() == at.map(|i| &entries[i]), "{what} at {at:?}");
    }
}

fn check_lookups(
    rand: &SeededRand,
    table: &std::sync::Arc<ashlar_table::TableReader>,
    entries: &Entries,
    order: &Order,
    what: &str,
) {
    for round in 0..400 {
        let (user, trailer) = target(rand, entries);
        let lookup = LookupKey::new(&user, trailer.seq());
        let seek = lookup.to_internal();
        let i = entries.partition_point(|(k, _)| compare(order, k, seek.as_key().encoded()).is_lt());
        let expected = entries.get(i).filter(|(k, _)| k[..k.len() - 8] == user[..]);
        // The versions that the lookup sees, newest first.
        let mut expected = expected.into_iter().chain(entries.iter().skip(i + 1));
        if let Some(found) = table.get(&lookup).unwrap() {
            let mut see = |trailer, value: &[u8]| {
                let (k, v) = expected.next().unwrap();
                let want = InternalKey::decode(k).unwrap().split();
                assert_eq!((want, &v[..]), ((&user[..], trailer), value), "{what} {lookup:?}");
                Ok(true)
            };
            see(found.trailer, found.value()).unwrap();
            let mut show = |trailer, pin: &FramePin, value: Range<usize>| see(trailer, &pin[value]);
            table.older(&user, found, &ReadHow::default(), &mut show).unwrap();
        }
        let missed = expected.next().filter(|(k, _)| k[..k.len() - 8] == user[..]);
        assert!(missed.is_none(), "{what} {lookup:?}");
        if round % 20 == 0 {
            let mut cursor = table.cursor(rand.below(3000) as usize);
            cursor.seek(Some(&lookup)).unwrap();
            assert!(drain(cursor.as_mut()).unwrap() == entries[i..], "{what} {lookup:?}");
        }
    }
}
