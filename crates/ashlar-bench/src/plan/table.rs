//! The table of benchmarks: names, work, and differences from the flags.

use super::{Beside, Micro, Plan, Work};
use crate::flags::Flags;
use crate::keys::KeyOrder;
use crate::lengths::Kind;

/// A benchmark by name.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) work: Work,
    pub(super) adjust: fn(&mut Plan, &Flags),
}

const fn entry(name: &'static str, text: &'static str, work: Work) -> Entry {
    Entry { name, text, work, adjust: |_, _| {} }
}

const SEQUENTIAL: Work = Work::Put(KeyOrder::Sequential);
const RANDOM: Work = Work::Put(KeyOrder::Random);

pub(super) const ENTRIES: &[Entry] = &[
    Entry { adjust: fresh, ..entry("fillseq", "puts in key order, fresh database", SEQUENTIAL) },
    Entry { adjust: fresh, ..entry("fillrandom", "puts of random keys, fresh database", RANDOM) },
    Entry {
        adjust: |plan, flags| {
            fresh(plan, flags);
            plan.threads = 1;
        },
        ..entry(
            "filluniquerandom",
            "puts of every key once, in random order, fresh database, one thread",
            Work::Put(KeyOrder::Unique),
        )
    },
    Entry { adjust: fresh_batches, ..entry("fillbatch", "fillseq in batches of 1000", SEQUENTIAL) },
    Entry { adjust: fresh_batches, ..entry("fillseqbatch", "the same, by LevelDB's name", SEQUENTIAL) },
    Entry { adjust: fresh_batches, ..entry("fillrandbatch", "fillrandom in batches of 1000", RANDOM) },
    Entry {
        adjust: |plan, _| plan.batch = 1000,
        ..entry("overwritebatch", "overwrite in batches of 1000", RANDOM)
    },
    Entry { adjust: synced, ..entry("fillseqsync", "num/100 puts in key order, each synced", SEQUENTIAL) },
    Entry { adjust: synced, ..entry("fillrandsync", "num/100 puts of random keys, each synced", RANDOM) },
    Entry {
        adjust: |plan, flags| {
            fresh(plan, flags);
            plan.how.sync = true;
            a_part(plan, flags, 1000);
        },
        ..entry("fillsync", "num/1000 puts of random keys, each synced, fresh database", RANDOM)
    },
    Entry {
        adjust: large,
        ..entry("fill100K", "num/1000 puts of 100000 bytes, random keys, fresh database", RANDOM)
    },
    Entry { adjust: large, ..entry("fillrand100K", "the same, by LevelDB's name", RANDOM) },
    Entry { adjust: large, ..entry("fillseq100K", "num/1000 puts of 100000 bytes in key order", SEQUENTIAL) },
    Entry {
        adjust: fresh,
        ..entry("fillseekseq", "puts in key order, then seeks of the same keys in order", Work::PutThenSeek)
    },
    entry("overwrite", "puts of random keys into the existing database", RANDOM),
    entry("updaterandom", "a get and a put of the same random key", Work::Update),
    entry("mergerandom", "merges into random keys; needs --merge_operator", Work::Merge),
    entry("readrandom", "gets of random keys", Work::Get),
    Entry {
        adjust: |plan, _| plan.missing = true,
        ..entry("readmissing", "gets of missing keys", Work::Get)
    },
    Entry {
        adjust: |plan, flags| plan.keys = flags.num.div_ceil(100),
        ..entry("readhot", "gets of random keys of the first hundredth", Work::Get)
    },
    Entry {
        adjust: |plan, flags| {
            if flags.reads < 0 {
                plan.count = plan.count.map(|_| (flags.num / 1000).max(1));
            } else {
                plan.count = plan.count.map(|count| (count / 1000).max(1));
            }
        },
        ..entry("readrandomsmall", "a thousandth of readrandom", Work::Get)
    },
    Entry {
        adjust: |plan, flags| plan.keys = flags.num.checked_next_power_of_two().unwrap_or(u64::MAX),
        ..entry(
            "readrandomfast",
            "gets of random keys below the next power of two: some are missing",
            Work::Get,
        )
    },
    entry("multireadrandom", "gets of --batch_size random keys at once", Work::MultiGet),
    entry("readseq", "a scan forward", Work::Scan { backward: false }),
    entry("readreverse", "a scan backward", Work::Scan { backward: true }),
    Entry {
        adjust: |plan, _| plan.threads = 1,
        ..entry(
            "readtocache",
            "a scan forward, one thread: brings the data into the cache",
            Work::Scan { backward: false },
        )
    },
    entry("seekrandom", "seeks of random keys, --seek_nexts steps after each", Work::Seek),
    entry("seekordered", "seeks of ascending keys, up to a hundred apart, by one cursor", Work::SeekOrdered),
    entry("newiterator", "cursors made and dropped", Work::NewCursor),
    Entry {
        adjust: |plan, _| plan.beside = Beside::Writer,
        ..entry("readwhilewriting", "readrandom while one more thread writes", Work::Get)
    },
    Entry {
        adjust: |plan, _| plan.beside = Beside::Merger,
        ..entry("readwhilemerging", "readrandom while one more thread merges", Work::Get)
    },
    Entry {
        adjust: |plan, _| plan.beside = Beside::Scanner,
        ..entry("readwhilescanning", "readrandom while one more thread reads everything", Work::Get)
    },
    Entry {
        adjust: |plan, _| plan.beside = Beside::Writer,
        ..entry("seekrandomwhilewriting", "seekrandom while one more thread writes", Work::Seek)
    },
    Entry {
        adjust: |plan, _| plan.beside = Beside::Merger,
        ..entry("seekrandomwhilemerging", "seekrandom while one more thread merges", Work::Seek)
    },
    Entry {
        adjust: |plan, _| plan.beside = Beside::Writer,
        ..entry("multireadwhilewriting", "multireadrandom while one more thread writes", Work::MultiGet)
    },
    Entry {
        adjust: |plan, _| plan.beside = Beside::Writer,
        ..entry("newiteratorwhilewriting", "newiterator while one more thread writes", Work::NewCursor)
    },
    Entry {
        adjust: |plan, flags| {
            plan.percent = flags.readwritepercent;
            if flags.reads >= 0 && flags.writes < 0 && plan.duration.is_none() {
                plan.count = u64::try_from(flags.reads).ok();
            }
        },
        ..entry(
            "readrandomwriterandom",
            "in every hundred operations --readwritepercent gets, then puts, of random keys",
            Work::ReadWrite,
        )
    },
    Entry {
        adjust: |plan, flags| plan.percent = flags.mergereadpercent,
        ..entry(
            "readrandommergerandom",
            "gets and merges of random keys, --mergereadpercent of them merges",
            Work::ReadMerge,
        )
    },
    entry(
        "randomtransaction",
        "transactions over --transaction_sets keys, checked at the end; see --transaction_db",
        Work::Transactions,
    ),
    entry("deleteseq", "deletes in key order", Work::Delete(KeyOrder::Sequential)),
    entry("deleterandom", "deletes of random keys", Work::Delete(KeyOrder::Random)),
    Entry { adjust: once, ..entry("compact", "compacts everything", Work::Compact) },
    Entry { adjust: once, ..entry("compactall", "the same", Work::Compact) },
    Entry { adjust: once, ..entry("compact0", "compacts level 0 into the next one", Work::CompactLevel(0)) },
    Entry { adjust: once, ..entry("compact1", "compacts level 1 into the next one", Work::CompactLevel(1)) },
    Entry { adjust: once, ..entry("verifychecksum", "reads every file and checks it", Work::Verify) },
    Entry {
        adjust: once,
        ..entry(
            "verifyfilechecksums",
            "compares files with their checksums in the MANIFEST, if it has them",
            Work::VerifyFiles,
        )
    },
    entry("approximatesizerandom", "sizes of random ranges, estimated", Work::ApproximateSize),
    Entry { adjust: once, ..entry("flush", "flushes the memtables", Work::Flush) },
    Entry { adjust: once, ..entry("waitforcompaction", "waits for background work", Work::Wait) },
    entry("stats", "prints the engine's statistics", Work::Print(&["stats"])),
    entry("levelstats", "prints files and sizes of the levels", Work::Print(&["levelstats"])),
    entry("sstables", "prints the tables of every level", Work::Print(&["sstables"])),
    entry(
        "memstats",
        "prints the use of memory",
        Work::Print(&[
            "num-immutable-mem-table",
            "cur-size-active-mem-table",
            "cur-size-all-mem-tables",
            "num-entries-active-mem-table",
            "block-cache-usage",
        ]),
    ),
    entry("resetstats", "sets the statistics to zero", Work::ResetStats),
    Entry { adjust: micro, ..entry("crc32c", "CRC-32C of blocks in memory", Work::Micro(Micro::Crc32c)) },
    Entry { adjust: micro, ..entry("xxhash", "XXH32 of blocks in memory", Work::Micro(Micro::XxHash)) },
    Entry { adjust: micro, ..entry("xxhash64", "XXH64 of blocks in memory", Work::Micro(Micro::XxHash64)) },
    Entry { adjust: micro, ..entry("xxh3", "XXH3 of blocks in memory", Work::Micro(Micro::Xxh3)) },
    Entry {
        adjust: micro,
        ..entry("compress", "compresses blocks in memory", Work::Micro(Micro::Compress(None)))
    },
    Entry { adjust: micro, ..entry("uncompress", "uncompresses them", Work::Micro(Micro::Uncompress(None))) },
    Entry {
        adjust: micro,
        ..entry("snappycomp", "compress with snappy, by LevelDB's name", Work::Micro(Micro::Compress(SNAPPY)))
    },
    Entry {
        adjust: micro,
        ..entry("snappyuncomp", "uncompress with snappy", Work::Micro(Micro::Uncompress(SNAPPY)))
    },
    Entry {
        adjust: micro,
        ..entry("zstdcomp", "compress with zstd, by LevelDB's name", Work::Micro(Micro::Compress(ZSTD)))
    },
    Entry {
        adjust: micro,
        ..entry("zstduncomp", "uncompress with zstd", Work::Micro(Micro::Uncompress(ZSTD)))
    },
    Entry {
        adjust: |plan, flags| {
            if flags.reads < 0 {
                plan.count = Some(100_000);
            }
        },
        ..entry(
            "acquireload",
            "a thousand loads of one pointer by all threads",
            Work::Micro(Micro::AcquireLoad),
        )
    },
];

const SNAPPY: Option<&str> = Some("snappy");
const ZSTD: Option<&str> = Some("zstd");

/// Bytes that a function over blocks processes, unless --reads gives the number of blocks.
const MICRO_BYTES: u64 = 500 << 20;

fn fresh(plan: &mut Plan, _: &Flags) {
    plan.fresh = true;
}

fn fresh_batches(plan: &mut Plan, flags: &Flags) {
    fresh(plan, flags);
    plan.batch = 1000;
}

fn synced(plan: &mut Plan, flags: &Flags) {
    fresh(plan, flags);
    plan.how.sync = true;
    a_part(plan, flags, 100);
}

fn large(plan: &mut Plan, flags: &Flags) {
    fresh(plan, flags);
    plan.lengths = Kind::Fixed(100_000);
    a_part(plan, flags, 1000);
}

fn a_part(plan: &mut Plan, flags: &Flags, part: u64) {
    if flags.writes < 0 {
        plan.count = plan.count.map(|_| (flags.num / part).max(1));
    }
}

fn micro(plan: &mut Plan, flags: &Flags) {
    if flags.reads < 0 {
        plan.count = Some(MICRO_BYTES / flags.block_size.unwrap_or(4096).max(1));
    }
}

fn once(plan: &mut Plan, _: &Flags) {
    (plan.count, plan.duration, plan.threads) = (Some(1), None, 1);
}
