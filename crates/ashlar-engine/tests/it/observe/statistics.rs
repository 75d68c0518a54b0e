//! Tickers and distributions at the places that count.

use super::Store;
use ashlar_base::FamilyId;
use ashlar_base::stats::{Distribution, Statistics, StatsLevel, Ticker};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_options::{BlobOptions, DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::Rng;
use std::path::Path;
use std::sync::Arc;

fn counting() -> (Store, Arc<Statistics>) {
    let statistics = Arc::new(Statistics::new());
    let options = DbOptions { statistics: Some(Arc::clone(&statistics)), ..DbOptions::default() };
    (Store::open(Env::mem(), options), statistics)
}

/// The values of the tickers.
fn shown<const N: usize>(statistics: &Statistics, tickers: [Ticker; N]) -> [u64; N] {
    tickers.map(|ticker| statistics.ticker(ticker))
}

#[test]
fn writes_are_counted_by_group_key_and_byte() {
    let _readers = crate::beside_others();
    let (store, statistics) = counting();
    store.put(b"a", b"1");
    store.write(|batch| {
        batch.put(FamilyId::DEFAULT, b"b", b"2").unwrap();
        batch.delete(FamilyId::DEFAULT, b"c").unwrap();
    });
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, b"d", b"4").unwrap();
    store.db.write(&mut batch, WriteOptions { sync: true, ..WriteOptions::default() }).unwrap();
    batch.clear();
    batch.put(FamilyId::DEFAULT, b"e", b"5").unwrap();
    store.db.write(&mut batch, WriteOptions { disable_wal: true, ..WriteOptions::default() }).unwrap();
    let counted = [Ticker::NumberKeysWritten, Ticker::WriteSelf, Ticker::WriteOther, Ticker::WriteWal];
    assert_eq!(shown(&statistics, counted), [5, 4, 0, 3]);
    assert_eq!(statistics.ticker(Ticker::WalSynced), 1);
    // A put of a one-byte key and a one-byte value: a header of 12 bytes, a type, two lengths, two bytes.
    assert_eq!(statistics.ticker(Ticker::BytesWritten), 17 * 3 + 12 + 5 + 3);
    let headers = 7 * 3;
    assert_eq!(statistics.ticker(Ticker::WalBytes), 17 * 2 + 12 + 5 + 3 + headers);
    let h = statistics.distribution(Distribution::BytesPerWrite);
    assert_eq!((h.count(), h.min(), h.max()), (4, 17, 20));
    assert_eq!(statistics.distribution(Distribution::DbWriteMicros).count(), 4);
    assert_eq!(statistics.distribution(Distribution::WalFileSyncMicros).count(), 1);
}

#[test]
fn gets_are_counted_by_where_they_end() {
    let _readers = crate::beside_others();
    let (store, statistics) = counting();
    for n in 0..100u32 {
        store.put(&n.to_be_bytes(), &[7; 10]);
    }
    store.compact();
    store.put(&500u32.to_be_bytes(), b"level 0");
    store.flush();
    store.put(&600u32.to_be_bytes(), b"memory");
    let reads = [Ticker::NumberKeysRead, Ticker::MemtableHit, Ticker::MemtableMiss, Ticker::L0Hit];
    assert_eq!(shown(&statistics, reads), [0; 4]);
    for n in [600u32, 500, 3, 3, 700] {
        store.get(&n.to_be_bytes());
    }
    assert_eq!(shown(&statistics, reads), [5, 1, 4, 1]);
    assert_eq!(shown(&statistics, [Ticker::L1Hit, Ticker::L2AndUpHit]), [0, 2]);
    assert_eq!(statistics.ticker(Ticker::BytesRead), 6 + 7 + 10 + 10);
    let cache = [Ticker::BlockCacheHit, Ticker::BlockCacheMiss, Ticker::BlockCacheAdd];
    assert_eq!(shown(&statistics, cache), [1, 2, 2], "one block of each table was read, one was met again");
    assert!(statistics.ticker(Ticker::BlockCacheBytesRead) > 1000);
    let filters = [Ticker::BloomFilterFullPositive, Ticker::BloomFilterFullTruePositive];
    assert_eq!(shown(&statistics, filters), [3, 3]);
    assert_eq!(statistics.distribution(Distribution::DbGetMicros).count(), 5);
    assert!(statistics.distribution(Distribution::SstReadMicros).count() >= 2);
    assert_eq!(statistics.distribution(Distribution::BytesPerRead).sum(), 33);
}

/// A filter is used only if the file's bounds include the key.
#[test]
fn filters_that_help_are_counted() {
    let _readers = crate::beside_others();
    let (store, statistics) = counting();
    for n in 0..1000u32 {
        store.put(&(n * 2).to_be_bytes(), b"even");
    }
    store.flush();
    for n in 0..999u32 {
        assert_eq!(store.get(&(n * 2 + 1).to_be_bytes()), None);
    }
    let asked =
        [Ticker::BloomFilterUseful, Ticker::BloomFilterFullPositive, Ticker::BloomFilterFullTruePositive];
    let [useful, positive, true_positive] = shown(&statistics, asked);
    assert_eq!((useful + positive, true_positive), (999, 0));
    assert!(useful > 960, "{useful} of 999");
}

#[test]
fn cursors_hand_their_counts_over_when_they_go() {
    let _readers = crate::beside_others();
    let (store, statistics) = counting();
    for key in [b"a", b"b", b"c", b"d"] {
        store.put(key, b"12345");
        store.put(key, b"123");
    }
    store.write(|batch| batch.delete(FamilyId::DEFAULT, b"c").unwrap());
    let mut it = store.db.iter(&store.family, KeyBounds::default(), ReadOptions::default()).unwrap();
    it.first().unwrap();
    while it.is_valid() {
        it.next().unwrap();
    }
    it.seek(b"zzz").unwrap();
    it.last().unwrap();
    it.prev().unwrap();
    let made = [Ticker::NumberDbSeek, Ticker::NumberDbNext, Ticker::NumberDbPrev];
    assert_eq!(shown(&statistics, made), [0; 3]);
    drop(it);
    assert_eq!(shown(&statistics, made), [3, 3, 1]);
    let found = [Ticker::NumberDbSeekFound, Ticker::NumberDbNextFound, Ticker::NumberDbPrevFound];
    assert_eq!(shown(&statistics, found), [2, 2, 1]);
    assert_eq!(statistics.ticker(Ticker::DbIterBytesRead), 5 * (1 + 3));
    assert_eq!(shown(&statistics, [Ticker::NumIteratorCreated, Ticker::NumIteratorDeleted]), [1, 1]);
    // Forward: the older put of each of the four keys except the last, because the iterator is not moved past it, and
    // the tombstone.
    assert!(statistics.ticker(Ticker::NumberIterSkip) >= 5);
    assert_eq!(statistics.distribution(Distribution::DbSeekMicros).count(), 3);
}

#[test]
fn background_work_is_counted() {
    let _readers = crate::beside_others();
    let (store, statistics) = counting();
    for round in 0..3 {
        for n in 0..500u32 {
            store.put(&n.to_be_bytes(), &[round; 100]);
        }
        store.flush();
    }
    let flushed = statistics.ticker(Ticker::FlushWriteBytes);
    assert!(flushed > 3 * 500, "{flushed}");
    store.compact();
    let [read, written] = shown(&statistics, [Ticker::CompactReadBytes, Ticker::CompactWriteBytes]);
    assert!(read >= flushed && written > 0 && written < read, "{read} read, {written} written");
    assert_eq!(statistics.ticker(Ticker::CompactionKeyDropNew), 1000);
    assert_eq!(statistics.distribution(Distribution::NumfilesInSinglecompaction).max(), 3);
    assert!(statistics.ticker(Ticker::NoFileOpens) >= 3);
}

/// Every block that compression is tried on is counted, and timed above the usual statistics level; a block that hardly
/// shrinks is stored raw.
#[test]
fn compressions_are_counted_and_timed() {
    let _readers = crate::beside_others();
    let (store, statistics) = counting();
    let tried = [Ticker::NumberBlockCompressed, Ticker::NumberBlockCompressionRejected];
    let bytes = [Ticker::BytesCompressedFrom, Ticker::BytesCompressedTo];
    (0..1000u32).for_each(|n| store.put(&n.to_be_bytes(), &[7; 100]));
    store.flush();
    let [compressed, rejected] = shown(&statistics, tried);
    let [from, to] = shown(&statistics, bytes);
    assert!(compressed > 20 && rejected <= 1, "{compressed} compressed, {rejected} not");
    assert!(from > 100_000 && to < from / 2, "{from} bytes became {to}");
    assert_eq!(statistics.distribution(Distribution::CompressionTimesNanos).count(), 0);
    statistics.set_level(StatsLevel::All);
    let mut rng = Rng::new(1);
    (0..1000u32).for_each(|n| store.put(&n.to_be_bytes(), &rng.bytes(100)));
    store.flush();
    let [compressed_now, rejected_now] = shown(&statistics, tried);
    assert!(rejected_now > 20, "{rejected_now} blocks of noise");
    assert!(statistics.ticker(Ticker::BytesCompressionRejected) > 90_000);
    let timed = statistics.distribution(Distribution::CompressionTimesNanos).count();
    assert_eq!(timed, compressed_now + rejected_now - compressed - rejected);
    assert_eq!(statistics.ticker(Ticker::NumberBlockCompressionBypassed), 0);
}

#[test]
fn blobs_are_counted_where_they_are_written_read_and_moved() {
    let _readers = crate::beside_others();
    let statistics = Arc::new(Statistics::new());
    let options = DbOptions { statistics: Some(Arc::clone(&statistics)), ..DbOptions::default() };
    let blob =
        BlobOptions { enabled: true, collect_garbage: true, age_cutoff: 1.0, ..BlobOptions::default() };
    let mut family = FamilyOptions { blob, ..FamilyOptions::default() };
    family.compaction.automatic = false;
    let db = Db::open(Env::mem(), Path::new("/db"), options, vec![], family).unwrap();
    let family = db.family("default").unwrap();
    let store = Store { db, family };
    for key in [b"a", b"b", b"c"] {
        store.put(key, &[7; 1000]);
    }
    store.flush();
    // The file's header and footer; for each record a header, the key and the value.
    let (ends, record) = (30 + 32, 32 + 1 + 1000);
    let written = [Ticker::BlobdbBlobFileBytesWritten, Ticker::BlobdbBlobFileSynced];
    assert_eq!(shown(&statistics, written), [ends + 3 * record, 1]);
    store.get(b"b");
    assert_eq!(statistics.ticker(Ticker::BlobdbBlobFileBytesRead), record);
    store.compact();
    assert_eq!(shown(&statistics, written), [2 * (ends + 3 * record), 2]);
    let moved = [Ticker::BlobdbGcNumKeysRelocated, Ticker::BlobdbGcBytesRelocated];
    assert_eq!(shown(&statistics, moved), [3, 3000]);
    assert_eq!(statistics.ticker(Ticker::BlobdbBlobFileBytesRead), 4 * record);
}
