//! What works on memory only: memtables, fences, filters, blocks, checksums.

use crate::case::{Bench, KEY, Place, VALUE, keys, random, values};
use ashlar_base::checksum::{crc32c, xxh3_64};
use ashlar_base::{FileNumber, InternalKeyBuf, Level, LookupKey, Order, SeqNum, Trailer, ValueType};
use ashlar_bench::{Random, Values};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::block::{BlockBuilder, BlockCursor, DataBlock, InternalEntries};
use ashlar_format::filter::{FilterForm, xxph3_64};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_memtable::{MemtableRep, Op, WriterSlot, memtable};
use ashlar_tree::version::{OpenTables, Tables, Version};
use std::hint::black_box;
use std::sync::Arc;

/// Inserts into a memtable that is empty at the beginning of a round.
struct Insert {
    memtable: Arc<dyn MemtableRep>,
    values: Values,
    in_order: bool,
    count: u64,
}

/// Inserts of drawn keys.
pub fn insert_random(place: &Place<'_>) -> Box<dyn Bench> {
    Box::new(Insert::new(false, place.size(100_000, 2000)))
}

/// Inserts of ascending keys.
pub fn insert_in_order(place: &Place<'_>) -> Box<dyn Bench> {
    Box::new(Insert::new(true, place.size(100_000, 2000)))
}

impl Insert {
    fn new(in_order: bool, count: u64) -> Insert {
        Insert { memtable: memtable(Order::Bytewise), values: values(), in_order, count }
    }

    fn fill(&mut self) {
        let (mut keys, mut random) = (keys(), random(1));
        let mut writer = WriterSlot::default();
        for number in 0..self.count {
            let drawn = if self.in_order { number } else { random.below(self.count) };
            let (key, value) = (keys.key(drawn), self.values.next(VALUE));
            let mut op = std::iter::once(Op { key, value, value_type: ValueType::Put, seq_delta: 0 });
            let prepared = self.memtable.prepare(&mut writer, &mut op).unwrap();
            self.memtable.insert(&mut writer, prepared, SeqNum::new(number + 1).unwrap());
        }
    }
}

impl Bench for Insert {
    fn fresh(&mut self) {
        self.memtable = memtable(Order::Bytewise);
    }

    fn round(&mut self) -> u64 {
        self.fill();
        self.count
    }
}

/// Gets from a memtable.
struct Get {
    memtable: Arc<dyn MemtableRep>,
    missing: bool,
    keys: u64,
    random: Random,
    gets: u64,
}

fn get(place: &Place<'_>, missing: bool) -> Box<dyn Bench> {
    let count = place.size(400_000, 2000);
    let mut filled = Insert::new(true, count);
    filled.fill();
    let gets = place.size(50_000, 2000);
    Box::new(Get { memtable: filled.memtable, missing, keys: count, random: random(2), gets })
}

/// Gets of keys that are there.
pub fn get_hit(place: &Place<'_>) -> Box<dyn Bench> {
    get(place, false)
}

/// Gets of keys that are not there.
pub fn get_miss(place: &Place<'_>) -> Box<dyn Bench> {
    get(place, true)
}

impl Bench for Get {
    fn round(&mut self) -> u64 {
        let mut keys = if self.missing { keys().missing() } else { keys() };
        let mut found = 0;
        for _ in 0..self.gets {
            let key = LookupKey::new(keys.key(self.random.below(self.keys)), SeqNum::MAX);
            found += u64::from(self.memtable.get(&key).unwrap().is_some());
        }
        assert_eq!(found, if self.missing { 0 } else { self.gets });
        self.gets
    }
}

/// The table of a level that may hold a key.
struct Fences {
    version: Version,
    keys: u64,
    random: Random,
}

const TABLES: u64 = 256;
const KEYS_PER_TABLE: u64 = 10_000;

/// Look-ups of the one table of a level.
pub fn fences(_: &Place<'_>) -> Box<dyn Bench> {
    let pool = FramePool::new(1 << 20);
    let tables = Tables::new(Env::mem(), "/db".into(), OpenTables::new(pool), Order::Bytewise);
    let mut edit = VersionEdit::default();
    let mut maker = keys();
    let mut bound =
        |number| InternalKeyBuf::new(maker.key(number), Trailer::new(SeqNum::ZERO, ValueType::Put));
    for table in 0..TABLES {
        let first = table * KEYS_PER_TABLE;
        let bounds = (bound(first), bound(first + KEYS_PER_TABLE - 1));
        let file = NewFile::new(FileNumber(table + 1), 1 << 20, bounds, (SeqNum::ZERO, SeqNum::ZERO));
        edit.add_file(Level(1), file);
    }
    let version = Version::empty(2, tables).apply(&[edit]).unwrap();
    Box::new(Fences { version, keys: TABLES * KEYS_PER_TABLE, random: random(3) })
}

impl Bench for Fences {
    fn round(&mut self) -> u64 {
        const LOOKUPS: u64 = 10_000;
        let mut keys = keys();
        for _ in 0..LOOKUPS {
            let key = LookupKey::new(keys.key(self.random.below(self.keys)), SeqNum::MAX);
            black_box(self.version.find_file(Level(1), &key).unwrap());
        }
        LOOKUPS
    }
}

/// Eight filters that each key is asked of.
struct Filters {
    filters: [Vec<u8>; 8],
    random: Random,
}

/// Probes of eight filters by one hash.
pub fn filters(place: &Place<'_>) -> Box<dyn Bench> {
    const LINE: u64 = 64;
    let lines = place.size(200_000, 1000);
    let mut random = random(4);
    let filters = std::array::from_fn(|_| {
        // As full as a filter is: half of the bits are set.
        let words = (0..lines * LINE / 8).flat_map(|_| random.next_u64().to_le_bytes());
        // A Bloom filter with six probes.
        words.chain([0xff, 0, 6, 0, 0]).collect()
    });
    Box::new(Filters { filters, random })
}

impl Bench for Filters {
    fn round(&mut self) -> u64 {
        const PROBES: u64 = 10_000;
        let mut keys = keys();
        let forms = self.filters.each_ref().map(|filter| FilterForm::decode(filter));
        let mut found = 0;
        for _ in 0..PROBES {
            let hash = xxph3_64(keys.key(self.random.next_u64()));
            for (filter, form) in self.filters.iter().zip(forms) {
                found += u32::from(form.may_match(filter, hash));
            }
        }
        black_box(found);
        PROBES
    }
}

/// Seeks in blocks of about four KiB.
struct Blocks {
    blocks: Vec<Vec<u8>>,
    random: Random,
}

const PER_BLOCK: u64 = 33;

fn blocks(count: u64) -> Box<dyn Bench> {
    let (mut keys, mut values) = (keys(), values());
    let mut builder = BlockBuilder::new(16);
    let mut block = |index: u64| {
        builder.reset();
        for number in index * PER_BLOCK..(index + 1) * PER_BLOCK {
            let trailer = Trailer::new(SeqNum::ZERO, ValueType::Put);
            let key = InternalKeyBuf::new(keys.key(number), trailer);
            builder.add(key.as_key().encoded(), values.next(VALUE));
        }
        builder.finish().to_vec()
    };
    Box::new(Blocks { blocks: (0..count).map(&mut block).collect(), random: random(5) })
}

/// In blocks that no cache of the processor holds.
pub fn seek_cold(place: &Place<'_>) -> Box<dyn Bench> {
    blocks(place.size(30_000, 100))
}

/// In four blocks.
pub fn seek_hot(_: &Place<'_>) -> Box<dyn Bench> {
    blocks(4)
}

impl Bench for Blocks {
    fn round(&mut self) -> u64 {
        const SEEKS: u64 = 10_000;
        let (mut keys, mut cursor) = (keys(), BlockCursor::new(InternalEntries));
        for _ in 0..SEEKS {
            let number = self.random.below(self.blocks.len() as u64 * PER_BLOCK);
            let block = &self.blocks[usize::try_from(number / PER_BLOCK).unwrap()];
            let block = DataBlock::reopen(block).unwrap();
            let key = keys.key(number);
            cursor.seek_key(&block, &Order::Bytewise, key, Trailer::seek(SeqNum::MAX)).unwrap();
            assert!(cursor.key().starts_with(key));
        }
        SEEKS
    }
}

/// A checksum over a block. `ashlar bench` has the same as `xxh3` and `crc32c`, without count and limit.
struct Checksum {
    block: Vec<u8>,
    sum: fn(&[u8]) -> u64,
}

fn checksum(sum: fn(&[u8]) -> u64) -> Box<dyn Bench> {
    let mut values = values();
    let block = (0..41).flat_map(|_| values.next(VALUE).to_vec()).take(4096).collect();
    Box::new(Checksum { block, sum })
}

/// XXH3, which tables are checked by.
pub fn xxh3(_: &Place<'_>) -> Box<dyn Bench> {
    checksum(xxh3_64)
}

/// CRC-32C, which logs and older tables are checked by.
pub fn crc(_: &Place<'_>) -> Box<dyn Bench> {
    checksum(|block| crc32c(block).into())
}

impl Bench for Checksum {
    fn round(&mut self) -> u64 {
        const SUMS: u64 = 1000;
        for _ in 0..SUMS {
            black_box((self.sum)(black_box(&self.block)));
        }
        SUMS
    }
}

const _: () = assert!(KEY == 16, "the filters and fences above are made for such keys");
