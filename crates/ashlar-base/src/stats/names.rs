//! The names of tickers and histograms: RocksDB's, as its statistics text and its bindings spell them.
//!
//! The list has the names that this engine counts, in RocksDB's order.
//! Source: RocksDB `include/rocksdb/statistics.h`.

macro_rules! names {
    ($(#[$doc:meta])* $kind:ident { $($variant:ident $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $kind {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl $kind {
            /// All of them, in RocksDB's order.
            pub const ALL: &'static [$kind] = &[$($kind::$variant,)*];

            /// RocksDB's name.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$variant => $name,)*
                }
            }

            /// The one of that name.
            pub fn named(name: &str) -> Option<$kind> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
            }
        }
    };
}

names! {
    /// A sum that only grows.
    Ticker {
        BlockCacheMiss "rocksdb.block.cache.miss",
        BlockCacheHit "rocksdb.block.cache.hit",
        BlockCacheAdd "rocksdb.block.cache.add",
        BlockCacheAddFailures "rocksdb.block.cache.add.failures",
        BlockCacheDataMiss "rocksdb.block.cache.data.miss",
        BlockCacheDataHit "rocksdb.block.cache.data.hit",
        BlockCacheDataAdd "rocksdb.block.cache.data.add",
        BlockCacheDataBytesInsert "rocksdb.block.cache.data.bytes.insert",
        BlockCacheBytesRead "rocksdb.block.cache.bytes.read",
        BlockCacheBytesWrite "rocksdb.block.cache.bytes.write",
        BloomFilterUseful "rocksdb.bloom.filter.useful",
        BloomFilterFullPositive "rocksdb.bloom.filter.full.positive",
        BloomFilterFullTruePositive "rocksdb.bloom.filter.full.true.positive",
        MemtableHit "rocksdb.memtable.hit",
        MemtableMiss "rocksdb.memtable.miss",
        L0Hit "rocksdb.l0.hit",
        L1Hit "rocksdb.l1.hit",
        L2AndUpHit "rocksdb.l2andup.hit",
        CompactionKeyDropNew "rocksdb.compaction.key.drop.new",
        CompactionKeyDropObsolete "rocksdb.compaction.key.drop.obsolete",
        CompactionKeyDropUser "rocksdb.compaction.key.drop.user",
        CompactionCancelled "rocksdb.compaction.cancelled",
        NumberKeysWritten "rocksdb.number.keys.written",
        NumberKeysRead "rocksdb.number.keys.read",
        BytesWritten "rocksdb.bytes.written",
        BytesRead "rocksdb.bytes.read",
        NumberDbSeek "rocksdb.number.db.seek",
        NumberDbNext "rocksdb.number.db.next",
        NumberDbPrev "rocksdb.number.db.prev",
        NumberDbSeekFound "rocksdb.number.db.seek.found",
        NumberDbNextFound "rocksdb.number.db.next.found",
        NumberDbPrevFound "rocksdb.number.db.prev.found",
        DbIterBytesRead "rocksdb.db.iter.bytes.read",
        NumberIterSkip "rocksdb.number.iter.skip",
        NumberReseeksIteration "rocksdb.number.reseeks.iteration",
        NumIteratorCreated "rocksdb.num.iterator.created",
        NumIteratorDeleted "rocksdb.num.iterator.deleted",
        NoFileOpens "rocksdb.no.file.opens",
        NoFileErrors "rocksdb.no.file.errors",
        StallMicros "rocksdb.stall.micros",
        NumberMultigetGet "rocksdb.number.multiget.get",
        NumberMultigetKeysRead "rocksdb.number.multiget.keys.read",
        NumberMultigetBytesRead "rocksdb.number.multiget.bytes.read",
        NumberMultigetKeysFound "rocksdb.number.multiget.keys.found",
        NumberMergeFailures "rocksdb.number.merge.failures",
        WalSynced "rocksdb.wal.synced",
        WalBytes "rocksdb.wal.bytes",
        WriteSelf "rocksdb.write.self",
        WriteOther "rocksdb.write.other",
        WriteWal "rocksdb.write.wal",
        CompactReadBytes "rocksdb.compact.read.bytes",
        CompactWriteBytes "rocksdb.compact.write.bytes",
        FlushWriteBytes "rocksdb.flush.write.bytes",
        NumberBlockCompressed "rocksdb.number.block.compressed",
        NumberBlockDecompressed "rocksdb.number.block.decompressed",
        BytesCompressedFrom "rocksdb.bytes.compressed.from",
        BytesCompressedTo "rocksdb.bytes.compressed.to",
        BytesCompressionBypassed "rocksdb.bytes.compression_bypassed",
        BytesCompressionRejected "rocksdb.bytes.compression.rejected",
        NumberBlockCompressionBypassed "rocksdb.number.block_compression_bypassed",
        NumberBlockCompressionRejected "rocksdb.number.block_compression_rejected",
        BytesDecompressedFrom "rocksdb.bytes.decompressed.from",
        BytesDecompressedTo "rocksdb.bytes.decompressed.to",
        NumberRateLimiterDrains "rocksdb.number.rate_limiter.drains",
        RateLimiterBytesWrite "rocksdb.rate.limiter.bytes.write",
        RateLimiterRequestsWrite "rocksdb.rate.limiter.requests.write",
        RateLimiterDelayedRequestsWrite "rocksdb.rate.limiter.delayed.requests.write",
        RateLimiterTotalWaitMicrosWrite "rocksdb.rate.limiter.total.wait.micros.write",
        BlobdbBlobFileBytesWritten "rocksdb.blobdb.blob.file.bytes.written",
        BlobdbBlobFileBytesRead "rocksdb.blobdb.blob.file.bytes.read",
        BlobdbBlobFileSynced "rocksdb.blobdb.blob.file.synced",
        BlobdbGcNumKeysRelocated "rocksdb.blobdb.gc.num.keys.relocated",
        BlobdbGcBytesRelocated "rocksdb.blobdb.gc.bytes.relocated",
        ErrorHandlerBgErrorCount "rocksdb.error.handler.bg.error.count",
        ErrorHandlerBgIoErrorCount "rocksdb.error.handler.bg.io.error.count",
        ErrorHandlerBgRetryableIoErrorCount "rocksdb.error.handler.bg.retryable.io.error.count",
        ErrorHandlerAutoResumeCount "rocksdb.error.handler.autoresume.count",
        ErrorHandlerAutoResumeSuccessCount "rocksdb.error.handler.autoresume.success.count",
        BlockChecksumComputeCount "rocksdb.block.checksum.compute.count",
        BlockChecksumMismatchCount "rocksdb.block.checksum.mismatch.count",
    }
}

names! {
    /// A distribution: of times in the unit the name ends with, else of bytes or counts.
    Distribution {
        DbGetMicros "rocksdb.db.get.micros",
        DbWriteMicros "rocksdb.db.write.micros",
        CompactionTimesMicros "rocksdb.compaction.times.micros",
        WalFileSyncMicros "rocksdb.wal.file.sync.micros",
        TableOpenIoMicros "rocksdb.table.open.io.micros",
        DbMultigetMicros "rocksdb.db.multiget.micros",
        NumfilesInSinglecompaction "rocksdb.numfiles.in.singlecompaction",
        DbSeekMicros "rocksdb.db.seek.micros",
        DbWriteStall "rocksdb.db.write.stall",
        SstReadMicros "rocksdb.sst.read.micros",
        NumSubcompactionsScheduled "rocksdb.num.subcompactions.scheduled",
        BytesPerRead "rocksdb.bytes.per.read",
        BytesPerWrite "rocksdb.bytes.per.write",
        BytesPerMultiget "rocksdb.bytes.per.multiget",
        CompressionTimesNanos "rocksdb.compression.times.nanos",
        DecompressionTimesNanos "rocksdb.decompression.times.nanos",
        ReadNumMergeOperands "rocksdb.read.num.merge_operands",
        DbFlushMicros "rocksdb.db.flush.micros",
    }
}
