//! What a table asks the system to read in the background.

use crate::fixture::{Entries, file, key, write};
use ashlar_base::{FileNumber, InternalIterator, LookupKey, Order, Result, SeqNum, ValueType, Window};
use ashlar_cache::FramePool;
use ashlar_env::ReadFile;
use ashlar_format::compress::Compression;
use ashlar_table::{ReadHow, ReaderOptions, TableOptions, TableReader};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const KEYS: u32 = 4000;

/// Notes its reads, and what it is asked to read in the background.
#[derive(Debug)]
struct Noting {
    inner: Arc<dyn ReadFile>,
    is_random: AtomicBool,
    read: Mutex<Vec<Range<u64>>>,
    asked: Mutex<Vec<Range<u64>>>,
}

impl ReadFile for Noting {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.read.lock().unwrap().push(offset..offset + buf.len() as u64);
        self.inner.read_at(buf, offset)
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn expect_random(&self) {
        self.is_random.store(true, Ordering::Relaxed);
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.asked.lock().unwrap().push(offset..offset + len);
    }
}

impl Noting {
    /// The reads since the last call, and what was asked for meanwhile.
    fn noted(&self) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
        (std::mem::take(&mut self.read.lock().unwrap()), std::mem::take(&mut self.asked.lock().unwrap()))
    }
}

/// A table of 400 KB in blocks of 4 KiB without a cache, and its file.
fn opened() -> (Arc<TableReader>, Arc<Noting>) {
    let entries: Entries = (0..KEYS).map(|n| (key_of(n), vec![7; 100])).collect();
    let (bytes, _) =
        write(&TableOptions { compression: Compression::None, ..TableOptions::default() }, &entries);
    let (read, asked) = Default::default();
    let noting = Arc::new(Noting { inner: file(&bytes), is_random: AtomicBool::new(false), read, asked });
    let options = ReaderOptions::new(Order::Bytewise, FramePool::new(0), FileNumber(9));
    let table = TableReader::open(noting.clone(), bytes.len() as u64, options).unwrap();
    assert!(noting.is_random.load(Ordering::Relaxed));
    assert_eq!(noting.noted().1, [], "an open asks for nothing");
    (table, noting)
}

fn key_of(n: u32) -> Vec<u8> {
    key(format!("key{n:06}").as_bytes(), 5, ValueType::Put).as_key().encoded().to_vec()
}

#[test]
fn a_scan_in_either_direction_asks_for_what_it_reads() {
    let (table, noting) = opened();
    for back in [false, true] {
        let mut iter = table.iter(ReadHow::default());
        if back { iter.last() } else { iter.first() }.unwrap();
        let mut seen = 0;
        while iter.entry().is_some() {
            seen += 1;
            if back { iter.prev() } else { iter.next() }.unwrap();
        }
        assert_eq!(seen, KEYS);
        let (read, asked) = noting.noted();
        assert!(read.len() > 90 && asked.len() < 10, "{} reads, asked {asked:?}", read.len());
        let is_asked = |place: &Range<u64>| {
            (place.start..place.end).step_by(512).all(|byte| asked.iter().any(|range| range.contains(&byte)))
        };
        assert!(read.iter().skip(3).all(is_asked), "{read:?} of {asked:?}");
    }
}

#[test]
fn gets_and_reads_of_the_cache_alone_ask_for_nothing() {
    let (table, noting) = opened();
    for n in (0..KEYS).step_by(10) {
        let name = format!("key{:06}", n * 389 % KEYS);
        table.get(&LookupKey::new(name.as_bytes(), SeqNum::MAX)).unwrap().unwrap();
    }
    let (read, asked) = noting.noted();
    assert!(read.len() > 300);
    assert_eq!(asked, []);
    let mut iter = table.iter(ReadHow { cached_only: true, ..ReadHow::default() });
    assert!(iter.first().is_err());
    assert_eq!(noting.noted(), (vec![], vec![]));
}

#[test]
fn a_compaction_asks_for_its_next_window() {
    const READAHEAD: usize = 1 << 16;
    let (table, noting) = opened();
    let mut cursor = table.cursor(READAHEAD);
    cursor.seek(None).unwrap();
    let mut window = Window::default();
    while cursor.window(&mut window).unwrap() {}
    let (read, asked) = noting.noted();
    assert!(read.len() > 5, "{read:?}");
    // A window begins with the block that the end of the one before has cut, and that is read already.
    for pair in read.windows(2) {
        let unread = pair[0].end..pair[1].end;
        assert!(
            asked.iter().any(|r| r.start <= unread.start && unread.end <= r.end),
            "{unread:?} of {asked:?}"
        );
    }
    assert!(asked.iter().all(|range| range.end <= noting.len()), "{asked:?}");
}
