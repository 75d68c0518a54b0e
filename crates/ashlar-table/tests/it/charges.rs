//! What tables and builders keep in memory is charged to the budget, when it comes and as long as it stays.

use crate::fixture::{Entries, identity, key, open_with, write};
use ashlar_base::memory::{MemoryBudget, MemoryUse};
use ashlar_base::{FileNumber, InternalKey, LookupKey, Order, Result, SeqNum, ValueType, Window};
use ashlar_cache::FramePool;
use ashlar_env::{Env, WriteFile};
use ashlar_format::compress::Compression;
use ashlar_format::table::IndexKind;
use ashlar_table::{ReaderOptions, TableBuilder, TableOptions, Windows};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn numbered(count: u32) -> Entries {
    let entry = |i| {
        (key(format!("key{i:06}").as_bytes(), 5, ValueType::Put).as_key().encoded().to_vec(), vec![7; 20])
    };
    (0..count).map(entry).collect()
}

#[test]
fn partitions_are_charged_when_they_are_read() {
    let options = TableOptions {
        block_size: 128,
        index: IndexKind::TwoLevel,
        partition_filters: true,
        metadata_block_size: 512,
        ..TableOptions::default()
    };
    let (bytes, _) = write(&options, &numbered(4000));
    let budget = MemoryBudget::new(1 << 30);
    let pool = FramePool::within(1 << 20, &budget);
    let table = open_with(&bytes, ReaderOptions::new(Order::Bytewise, pool, FileNumber(9))).unwrap();
    let held = || budget.held(MemoryUse::Tables);
    let at_open = held();
    assert_eq!(at_open, table.memory());
    let mut before = at_open;
    for at in (0..4000).step_by(500) {
        let name = format!("key{at:06}");
        for _ in 0..2 {
            let found = table.get(&LookupKey { user_key: name.as_bytes(), seq: SeqNum::MAX }).unwrap();
            assert!(found.is_some());
            assert_eq!(held(), table.memory(), "once, however often it is read");
        }
        assert!(held() > before, "a part of the index and one of the filter came in");
        before = held();
    }
    assert!(before > 2 * at_open, "{before} of {at_open}");
    drop(table);
    assert_eq!(held(), 0);
}

#[test]
fn a_table_in_the_making_is_charged() {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    for (compression, max_dict_bytes) in [(Compression::None, 0), (Compression::Zstd, 4096)] {
        let options =
            TableOptions { block_size: 256, compression, max_dict_bytes, ..TableOptions::default() };
        let file = env.fs.create(Path::new("/db/000009.sst")).unwrap();
        let budget = MemoryBudget::new(1 << 30);
        let builder = TableBuilder::new(file, options, identity()).unwrap();
        let mut builder = builder.charged_to(budget.charge(MemoryUse::Buffers, 0));
        let entries = numbered(30_000);
        for (key, value) in &entries {
            builder.add(InternalKey::decode(key).unwrap(), value).unwrap();
        }
        // A hash of eight bytes per key, ten bits of filter, and the keys of some four thousand blocks; without compression the
        // blocks are written as they come, before a dictionary they all wait.
        let least = 30_000 * 9 + 4000 * 10 + if max_dict_bytes > 0 { 30_000 * 20 } else { 0 };
        let held = budget.held(MemoryUse::Buffers);
        assert!((least..8 * least).contains(&held), "{held} where {least} are sure");
        builder.finish().unwrap();
        assert_eq!(budget.held(MemoryUse::Buffers), 0);
    }
}

/// A file without content that notes the most that is charged while it is written.
#[derive(Debug)]
struct Watching {
    budget: Arc<MemoryBudget>,
    most: AtomicUsize,
}

impl WriteFile for Watching {
    fn path(&self) -> &Path {
        Path::new("/db/000009.sst")
    }
    fn write_at(&self, _: &[u8], _: u64) -> Result<()> {
        self.most.fetch_max(self.budget.held(MemoryUse::Buffers), Ordering::Relaxed);
        Ok(())
    }
    fn sync_data(&self) -> Result<()> {
        Ok(())
    }
    fn sync_all(&self) -> Result<()> {
        Ok(())
    }
    fn truncate(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Regression: the compressed form of a value of many MB was under no cap.
#[test]
fn a_long_block_is_charged_twice_while_it_is_compressed() {
    const LONG: usize = 1 << 20;
    let budget = MemoryBudget::new(1 << 30);
    let file = Arc::new(Watching { budget: Arc::clone(&budget), most: AtomicUsize::new(0) });
    let options = TableOptions { compression: Compression::Lz4, ..TableOptions::default() };
    let builder = TableBuilder::new(Arc::clone(&file) as Arc<dyn WriteFile>, options, identity()).unwrap();
    let mut builder = builder.charged_to(budget.charge(MemoryUse::Buffers, 0));
    // Bytes that do not shrink.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_be_bytes()[0]
    };
    let value: Vec<u8> = (0..LONG).map(|_| next()).collect();
    for name in [b"a", b"b", b"c"] {
        builder.add(key(name, 5, ValueType::Put).as_key(), &value).unwrap();
    }
    builder.finish().unwrap();
    let most = file.most.load(Ordering::Relaxed);
    assert!((2 * LONG..2 * LONG + LONG / 2).contains(&most), "{most}");
}

#[test]
fn a_cursor_hands_its_buffer_on_with_the_charge() {
    const READAHEAD: usize = 1 << 16;
    let entries = numbered(10_000);
    let (bytes, _) =
        write(&TableOptions { compression: Compression::None, ..TableOptions::default() }, &entries);
    let budget = MemoryBudget::new(1 << 30);
    let pool = FramePool::within(1 << 20, &budget);
    let table = open_with(&bytes, ReaderOptions::new(Order::Bytewise, pool, FileNumber(9))).unwrap();
    let windows = Arc::new(Windows::new(1 << 20));
    let held = || budget.held(MemoryUse::Buffers);
    // One cursor reads to the end, the next one stops in the middle.
    for most in [usize::MAX, 100] {
        let mut cursor = table.cursor_within(READAHEAD, &windows);
        cursor.seek(None).unwrap();
        let (mut window, mut seen) = (Window::default(), 0);
        while seen < most && cursor.window(&mut window).unwrap() {
            for at in 0..window.len() {
                let entry = window.entry(at).unwrap();
                let (key, value) = entries.get(seen).unwrap();
                assert_eq!((entry.key.encoded(), entry.value), (&key[..], &value[..]));
                seen += 1;
            }
            assert!((READAHEAD..2 * READAHEAD).contains(&held()), "one buffer: {}", held());
        }
        assert!(seen == entries.len() || seen >= most);
        window.clear();
        drop(cursor);
        assert!((READAHEAD..2 * READAHEAD).contains(&held()), "it waits for the next cursor: {}", held());
    }
    windows.clear();
    assert_eq!(held(), 0);
}

/// Half of it random, so that its stored form is about half as long.
fn large_value() -> Vec<u8> {
    let mut value = vec![0; 4 << 20];
    let mut word = 1_u64;
    for piece in value[..2 << 20].chunks_mut(8) {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        piece.copy_from_slice(&word.to_le_bytes());
    }
    value
}

#[test]
fn the_room_of_a_large_value_is_charged_and_goes_with_it() {
    let value = large_value();
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let options = TableOptions { compression: Compression::Snappy, ..TableOptions::default() };
    let file = env.fs.create(Path::new("/db/000009.sst")).unwrap();
    let budget = MemoryBudget::new(1 << 30);
    let held = || budget.held(MemoryUse::Buffers);
    let mut builder = TableBuilder::new(file, options.clone(), identity())
        .unwrap()
        .charged_to(budget.charge(MemoryUse::Buffers, 0));
    let entries: Entries = [("a", 10), ("b", value.len()), ("c", 10), ("d", 10)]
        .map(|(name, len)| {
            (key(name.as_bytes(), 5, ValueType::Put).as_key().encoded().to_vec(), value[..len].to_vec())
        })
        .into();
    for (at, (key, value)) in entries.iter().enumerate() {
        builder.add(InternalKey::decode(key).unwrap(), value).unwrap();
        match at {
            1 => assert!(held() >= value.len(), "with the value: {}", held()),
            _ => assert!(held() < 1 << 20, "without it: {}", held()),
        }
    }
    builder.finish().unwrap();

    let (bytes, _) = write(&options, &entries);
    let pool = FramePool::within(1 << 20, &budget);
    let table = open_with(&bytes, ReaderOptions::new(Order::Bytewise, pool, FileNumber(9))).unwrap();
    let windows = Arc::new(Windows::new(1 << 20));
    let mut cursor = table.cursor_within(1 << 16, &windows);
    cursor.seek(None).unwrap();
    let (mut window, mut seen) = (Window::default(), 0);
    while cursor.window(&mut window).unwrap() {
        for at in 0..window.len() {
            let entry = window.entry(at).unwrap();
            let (key, value) = entries.get(seen).unwrap();
            assert_eq!((entry.key.encoded(), entry.value), (&key[..], &value[..]));
            seen += 1;
        }
        let large = if seen == 2 { value.len() } else { 0 };
        assert!((large..large + (1 << 20)).contains(&held()), "after {seen} entries: {}", held());
    }
    assert_eq!(seen, entries.len());
    drop((window, cursor, table));
    windows.clear();
    assert_eq!(held(), 0);
}
