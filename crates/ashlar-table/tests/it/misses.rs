//! Lookups whose block is not in the cache.

use crate::fixture::{Entries, file, key, write};
use ashlar_base::error::BusyKind;
use ashlar_base::{
    ErrorKind, FileNumber, InternalKeyBuf, LookupKey, Order, Result, SeqNum, Trailer, ValueType,
};
use ashlar_cache::FramePool;
use ashlar_env::ReadFile;
use ashlar_format::compress::Compression;
use ashlar_table::{ReadHow, ReaderOptions, TableCursor, TableOptions, TableReader, filter_hash};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts its reads. From one read on, it flips a bit in the middle of each.
#[derive(Debug)]
struct Counting {
    inner: Arc<dyn ReadFile>,
    reads: Arc<AtomicU64>,
    damaged_from: Arc<AtomicU64>,
}

impl ReadFile for Counting {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.reads.fetch_add(1, Ordering::Relaxed);
        let got = self.inner.read_at(buf, offset)?;
        if read >= self.damaged_from.load(Ordering::Relaxed) {
            let middle = buf.len() / 2;
            buf[middle] ^= 4;
        }
        Ok(got)
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }
}

/// A table of 1,000 keys in blocks of three, and its file's reads.
struct Fixture {
    table: Arc<TableReader>,
    pool: Arc<FramePool>,
    reads: Arc<AtomicU64>,
    damaged_from: Arc<AtomicU64>,
}

fn name(number: usize) -> String {
    format!("key{number:06}")
}

fn value(number: usize, len: usize) -> Vec<u8> {
    let mut value = name(number).into_bytes().repeat(len / 9 + 1);
    value.truncate(len);
    value
}

impl Fixture {
    fn new(pool: usize, compression: Compression, len: usize) -> Fixture {
        let entries: Entries = (0..1000)
            .map(|i| {
                let key = key(name(i).as_bytes(), 5, ValueType::Put);
                (key.as_key().encoded().to_vec(), value(i, len))
            })
            .collect();
        let options = TableOptions { block_size: 3 * len, compression, ..TableOptions::default() };
        let (bytes, _) = write(&options, &entries);
        let (reads, damaged_from) = (Arc::default(), Arc::new(AtomicU64::new(u64::MAX)));
        let counting = Counting {
            inner: file(&bytes),
            reads: Arc::clone(&reads),
            damaged_from: Arc::clone(&damaged_from),
        };
        let pool = FramePool::new(pool);
        let options = ReaderOptions::new(Order::Bytewise, Arc::clone(&pool), FileNumber(9));
        let table = TableReader::open(Arc::new(counting), bytes.len() as u64, options).unwrap();
        Fixture { table, pool, reads, damaged_from }
    }

    /// The reads of the file that a lookup does.
    fn reads_of(&self, number: usize, how: &ReadHow) -> Result<u64> {
        let before = self.reads.load(Ordering::Relaxed);
        let name = name(number);
        let key = LookupKey::new(name.as_bytes(), SeqNum::MAX);
        let found =
            self.table.get_hashed(&key, filter_hash(name.as_bytes()), how)?.expect("it is in the table");
        assert!(found.value().starts_with(name.as_bytes()));
        Ok(self.reads.load(Ordering::Relaxed) - before)
    }

    fn get(&self, number: usize) -> u64 {
        self.reads_of(number, ReadHow::plain()).unwrap()
    }
}

#[test]
fn a_full_cache_takes_a_block_on_its_second_read() {
    for compression in [Compression::None, Compression::Lz4, Compression::Snappy, Compression::Zstd] {
        let of = Fixture::new(40_000, compression, 500);
        (0..600).step_by(3).for_each(|at| _ = of.get(at));
        let full = of.pool.usage().used;
        assert!(full > 38_000 && of.get(0) == 0, "the first blocks are in the cache");
        assert_eq!((of.get(700), of.pool.usage().used), (1, full), "not admitted");
        assert_eq!(of.get(800), 1);
        assert_eq!(of.get(700), 1, "admitted now");
        assert_eq!((of.get(900), of.get(700)), (1, 0));
        // The block that was read last is in the thread's buffer, from where it enters.
        assert_eq!((of.get(950), of.get(950), of.get(810), of.get(950)), (1, 0, 1, 0));
        assert!(of.pool.usage().used <= 40_000);
    }
}

#[test]
fn without_memory_nothing_enters_and_values_stay() {
    let of = Fixture::new(0, Compression::Lz4, 700);
    let found = |number: usize| {
        let name = name(number);
        of.table.get(&LookupKey::new(name.as_bytes(), SeqNum::MAX)).unwrap().unwrap()
    };
    let held: Vec<_> = (0..1000).map(|i| (i * 389 % 1000, found(i * 389 % 1000))).collect();
    for (number, found) in held {
        assert_eq!(found.value(), value(number, 700), "{number}");
    }
    assert_eq!((of.pool.usage().used, of.pool.frames()), (0, 0));
}

#[test]
fn long_blocks_stay_correct() {
    // Longer than the buffers; and short when compressed, but long uncompressed.
    for (compression, len) in [(Compression::None, 30_000), (Compression::Zstd, 100_000)] {
        let of = Fixture::new(0, compression, len);
        for number in [3, 500, 4, 999, 3] {
            assert!(of.get(number) <= 1);
            let name = name(number);
            let found = of.table.get(&LookupKey::new(name.as_bytes(), SeqNum::MAX)).unwrap().unwrap();
            assert!(found.value() == value(number, len));
        }
    }
}

/// The buffer is no way around the options of a read.
#[test]
fn the_buffer_keeps_only_what_was_verified() {
    let of = Fixture::new(0, Compression::None, 500);
    let careless = ReadHow { verify: false, ..ReadHow::default() };
    assert_eq!(of.reads_of(7, &careless).unwrap(), 1);
    assert_eq!(of.get(7), 1, "read again, with its checksum");
    assert_eq!(of.reads_of(7, &careless).unwrap(), 0);
    let cached = ReadHow { cached_only: true, ..ReadHow::default() };
    let refused = of.reads_of(7, &cached).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::NotCached));
    let other = Fixture::new(0, Compression::None, 500);
    assert_eq!((of.get(7), other.get(7), of.get(7)), (1, 1, 1), "another table's block");
}

#[test]
fn a_damaged_block_is_an_error_every_time() {
    let of = Fixture::new(0, Compression::Lz4, 500);
    assert_eq!((of.get(3), of.get(900)), (1, 1));
    of.damaged_from.store(0, Ordering::Relaxed);
    for _ in 0..3 {
        let error = of.reads_of(3, ReadHow::plain()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        let text = error.to_string();
        assert!(text.contains("000009.sst") && text.contains("offset"), "{text}");
    }
    of.damaged_from.store(u64::MAX, Ordering::Relaxed);
    assert_eq!((of.get(3), of.get(3)), (1, 0));
}

#[test]
fn a_read_that_must_not_fill_the_cache_does_not() {
    let of = Fixture::new(1 << 20, Compression::None, 500);
    let once = ReadHow { fill_cache: false, ..ReadHow::default() };
    for number in [1, 2, 300, 1, 300] {
        of.reads_of(number, &once).unwrap();
    }
    assert_eq!(of.pool.frames(), 0);
    assert_eq!((of.get(300), of.pool.frames()), (0, 1), "from the buffer");
}

#[test]
fn a_seek_that_ended_early_leaves_nothing_to_the_next() {
    let of = Fixture::new(1 << 20, Compression::None, 100);
    let target = |number: usize| InternalKeyBuf::new(name(number).as_bytes(), Trailer::seek(SeqNum::MAX));
    let (how, order, mut cursor) = (ReadHow::plain(), Order::Bytewise, TableCursor::default());
    for number in 0..200 {
        let (given_up, wanted) = (target(number + 1), target(number));
        cursor.seek_begin(&of.table, how, given_up.as_key()).unwrap();
        cursor.seek_pin(&of.table, how).unwrap();
        cursor.seek_start(&order, given_up.as_key());
        cursor.seek_begin(&of.table, how, wanted.as_key()).unwrap();
        cursor.seek_pin(&of.table, how).unwrap();
        assert!(cursor.seek_finish(&order, wanted.as_key()).unwrap());
        assert_eq!(cursor.key().unwrap().user_key(), name(number).as_bytes());
    }
}
