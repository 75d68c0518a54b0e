//! The rules. A threshold is a value at which users have complained, or at which the cost exceeds a tenth.
//!
//! Source: complaints and tuning guides collected from RocksDB's users: memory beyond what was set, stalls, logs
//! without bound, lost keys in prefix scans, space.

use super::rule::{Rule, View, number};
use crate::names::Value;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::options_file::{split_object, unescape};

const GIB: i128 = 1 << 30;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "one-background-job",
        of_family: false,
        check: |v| {
            (number(v.db("max_background_jobs")) == Some(1)).then(|| "max_background_jobs=1: a flush waits for the compaction that runs, and writers for the flush".to_owned())
        },
        advice: "Allow at least two; leave it out for one per core.",
    },
    Rule {
        name: "logs-bound-below-a-memtable",
        of_family: false,
        check: logs_bound,
        advice: "Raise max_total_wal_size above all write buffers together, or set 0.",
    },
    Rule {
        name: "logs-without-bound",
        of_family: false,
        check: logs_unbound,
        advice: "Set max_total_wal_size: recovery reads all of it.",
    },
    Rule {
        name: "memtables-may-take-much",
        of_family: false,
        check: memtables,
        advice: "Lower write_buffer_size or max_write_buffer_number of families that are seldom written.",
    },
    Rule {
        name: "cache-small-for-the-data",
        of_family: false,
        check: small_cache,
        advice: "Give the block cache at least a hundredth of the data.",
    },
    Rule {
        name: "holes-after-recovery",
        of_family: false,
        check: |v| {
            (v.db("wal_recovery_mode") == Some("kSkipAnyCorruptedRecords")).then(|| "wal_recovery_mode=kSkipAnyCorruptedRecords: writes after damage are kept, although writes before it are lost".to_owned())
        },
        advice: "Use kPointInTimeRecovery.",
    },
    Rule {
        name: "damage-read-over",
        of_family: false,
        check: |v| {
            (v.db("paranoid_checks") == Some("false")).then(|| {
                "paranoid_checks=false: RocksDB opens and reads over damage that it finds".to_owned()
            })
        },
        advice: "Leave it true. Here it has no effect.",
    },
    Rule {
        name: "unordered-writes",
        of_family: false,
        check: |v| {
            (v.db("unordered_write") == Some("true")).then(|| {
                "unordered_write=true: in RocksDB a snapshot may show only a part of the writes before it"
                    .to_owned()
            })
        },
        advice: "Leave it false. Here it has no effect.",
    },
    Rule {
        name: "writes-lost-with-the-process",
        of_family: false,
        check: |v| {
            (v.db("manual_wal_flush") == Some("true")).then(|| "manual_wal_flush=true: writes that returned are lost when the process dies before flush_wal".to_owned())
        },
        advice: "Leave it false unless the program can repeat lost writes.",
    },
    Rule {
        name: "mapped-writes",
        of_family: false,
        check: |v| {
            (v.db("allow_mmap_writes") == Some("true")).then(|| {
                "allow_mmap_writes=true: in RocksDB a full disk kills the process instead of failing a write"
                    .to_owned()
            })
        },
        advice: "Leave it false for RocksDB. Here it has no effect.",
    },
    Rule {
        name: "few-open-files",
        of_family: false,
        check: |v| {
            number(v.db("max_open_files")).filter(|n| (0..256).contains(n)).map(|n| {
                format!("max_open_files={n}: reads open tables again and again, index and filter with them")
            })
        },
        advice: "Use -1, or as many as there are tables.",
    },
    Rule {
        name: "logs-kept",
        of_family: false,
        check: logs_kept,
        advice: "Set both to 0 unless a program reads the archive.",
    },
    Rule {
        name: "no-filter",
        of_family: true,
        check: |v| {
            (v.table("filter_policy") == Some("nullptr")).then(|| {
                "filter_policy=nullptr: a read of a missing key searches a table of every level".to_owned()
            })
        },
        advice: "Use bloomfilter:10:false.",
    },
    Rule {
        name: "filter-too-large",
        of_family: true,
        check: |v| {
            filter_bits(v).filter(|bits| *bits > 20.0).map(|bits| format!("{bits} bits of filter per key: beyond 16, where one read in a thousand errs, memory buys next to nothing"))
        },
        advice: "Use 10 to 16 bits per key.",
    },
    Rule {
        name: "filter-too-small",
        of_family: true,
        check: |v| {
            filter_bits(v).filter(|bits| *bits < 4.0).map(|bits| {
                format!("{bits} bits of filter per key: more than one read in six searches a table in vain")
            })
        },
        advice: "Use 10 bits per key.",
    },
    Rule {
        name: "blocks-too-large",
        of_family: true,
        check: |v| {
            number(v.table("block_size"))
                .filter(|n| *n > 256 << 10)
                .map(|n| format!("block_size={n}: each point read reads and decompresses that many bytes"))
        },
        advice: "Use 4 to 64 KiB; large scans read ahead by themselves.",
    },
    Rule {
        name: "blocks-too-small",
        of_family: true,
        check: |v| {
            number(v.table("block_size")).filter(|n| *n < 1024).map(|n| {
                format!("block_size={n}: the index grows to a good part of the data, and nothing compresses")
            })
        },
        advice: "Use 4 to 64 KiB.",
    },
    Rule {
        name: "no-checksums",
        of_family: true,
        check: |v| {
            (v.table("checksum") == Some("kNoChecksum"))
                .then(|| "checksum=kNoChecksum: reads return damaged bytes as data".to_owned())
        },
        advice: "Use kXXH3.",
    },
    Rule {
        name: "metadata-outside-the-cache",
        of_family: true,
        check: metadata_outside,
        advice: "Set cache_index_and_filter_blocks=true. Here it has no effect.",
    },
    Rule {
        name: "level0-out-of-order",
        of_family: true,
        check: level0_order,
        advice: "Keep level0_file_num_compaction_trigger < level0_slowdown_writes_trigger < level0_stop_writes_trigger, with room between.",
    },
    Rule {
        name: "debt-bounds-out-of-order",
        of_family: true,
        check: debt_order,
        advice: "Keep soft_pending_compaction_bytes_limit well below hard_pending_compaction_bytes_limit.",
    },
    Rule {
        name: "compactions-off",
        of_family: true,
        check: |v| {
            (v.family("disable_auto_compactions") == Some("true")).then(|| "disable_auto_compactions=true: level 0 grows until writers stop at level0_stop_writes_trigger".to_owned())
        },
        advice: "Switch them on again after a bulk load.",
    },
    Rule {
        name: "memtable-too-small",
        of_family: true,
        check: |v| {
            number(v.family("write_buffer_size")).filter(|n| *n < 1 << 20).map(|n| {
                format!(
                    "write_buffer_size={n}: many small tables, each with its index, filter and compaction"
                )
            })
        },
        advice: "Use 16 MiB or more.",
    },
    Rule {
        name: "level0-larger-than-base",
        of_family: true,
        check: level0_size,
        advice: "Raise max_bytes_for_level_base to about write_buffer_size times level0_file_num_compaction_trigger.",
    },
    Rule {
        name: "tables-larger-than-base",
        of_family: true,
        check: table_size,
        advice: "Keep target_file_size_base at a quarter of max_bytes_for_level_base or less.",
    },
    Rule {
        name: "levels-grow-too-fast",
        of_family: true,
        check: |v| {
            v.family("max_bytes_for_level_multiplier")?.parse::<f64>().ok().filter(|m| *m > 20.0 || *m < 4.0).map(|m| format!("max_bytes_for_level_multiplier={m}: every byte is rewritten about as often as the levels are deep times this"))
        },
        advice: "Use 8 to 10.",
    },
    Rule {
        name: "fixed-level-sizes",
        of_family: true,
        check: |v| {
            (v.family("level_compaction_dynamic_level_bytes") == Some("false")).then(|| "level_compaction_dynamic_level_bytes=false: in RocksDB, half-filled levels contain up to as much garbage as data".to_owned())
        },
        advice: "Set it true. Here the sizes always follow the last level.",
    },
    Rule {
        name: "universal-takes-twice-the-space",
        of_family: true,
        check: |v| {
            (v.family("compaction_style") == Some("kCompactionStyleUniversal") && !merges_in_parts(v)).then(|| "compaction_style=kCompactionStyleUniversal: a full compaction needs the size of the data once more".to_owned())
        },
        advice: "Keep half of the disk free, set incremental=true in compaction_options_universal, or use leveled compaction.",
    },
    Rule {
        name: "nothing-compressed",
        of_family: true,
        check: nothing_compressed,
        advice: "Set bottommost_compression=kZSTD: the last level holds nine tenths of the data.",
    },
    Rule {
        name: "hard-compression-everywhere",
        of_family: true,
        check: hard_compression,
        advice: "Compress hard at the bottom only: compression=kLZ4Compression;bottommost_compression=kZSTD.",
    },
    Rule {
        name: "prefix-scans-lose-keys",
        of_family: true,
        check: |v| {
            v.family("prefix_extractor").filter(|p| *p != "nullptr").map(|p| format!("prefix_extractor={p}: RocksDB's iterators leave out keys of other prefixes unless total_order_seek or auto_prefix_mode is set"))
        },
        advice: "Set auto_prefix_mode in every read. Here scans are always whole.",
    },
    Rule {
        name: "blobs-never-collected",
        of_family: true,
        check: |v| {
            (v.family("enable_blob_files") == Some("true")
                && v.family("enable_blob_garbage_collection") == Some("false"))
            .then(|| {
                "enable_blob_garbage_collection=false: a blob file is deleted only when all its values are obsolete"
                    .to_owned()
            })
        },
        advice: "Set enable_blob_garbage_collection=true.",
    },
    Rule {
        name: "blobs-too-small",
        of_family: true,
        check: |v| {
            number(v.family("min_blob_size")).filter(|n| *n < 256 && v.family("enable_blob_files") == Some("true")).map(|n| format!("min_blob_size={n}: a small value costs a read of its own and a reference as large as itself"))
        },
        advice: "Separate values from about 1 KiB on.",
    },
];

fn gib(bytes: i128) -> String {
    format!("{} GiB", bytes / GIB)
}

/// The limit on the bytes of all memtables.
fn write_buffers(v: &View<'_>) -> Option<i128> {
    let of = |section: &ashlar_format::options_file::Section| {
        let buffers = number(section.get("max_write_buffer_number"))?;
        Some(number(section.get("write_buffer_size"))?.saturating_mul(buffers))
    };
    v.families().map(of).try_fold(0i128, |sum, one| Some(sum.saturating_add(one?)))
}

/// Whether a universal tree merges its oldest runs in parts.
fn merges_in_parts(v: &View<'_>) -> bool {
    let members = v.family("compaction_options_universal").and_then(|object| split_object(object).ok());
    members
        .is_some_and(|members| members.iter().any(|(name, value)| name == "incremental" && value == "true"))
}

fn filter_bits(v: &View<'_>) -> Option<f64> {
    match Option::<FilterPolicy>::parse(&unescape(v.table("filter_policy")?)).ok()?? {
        FilterPolicy::Bloom { bits_per_key } => Some(bits_per_key),
        FilterPolicy::Ribbon { bloom_bits_per_key, .. } => Some(bloom_bits_per_key),
    }
}

fn logs_bound(v: &View<'_>) -> Option<String> {
    let (limit, buffers) = (number(v.db("max_total_wal_size"))?, write_buffers(v)?);
    let one = buffers / i128::try_from(v.families().count()).ok()?.max(1);
    (limit > 0 && limit < one / 2)
        .then(|| format!("max_total_wal_size={limit}: memtables are flushed long before they are full"))
}

fn logs_unbound(v: &View<'_>) -> Option<String> {
    let (limit, buffers) = (number(v.db("max_total_wal_size"))?, write_buffers(v)?);
    (limit == 0 && buffers.saturating_mul(4) > 16 * GIB).then(|| {
        format!(
            "max_total_wal_size=0 lets the logs grow to four times all write buffers, {}",
            gib(buffers.saturating_mul(4))
        )
    })
}

fn memtables(v: &View<'_>) -> Option<String> {
    let buffers = write_buffers(v)?;
    // Memtables of AshlarDB always have a share of the cap on memory.
    let bounded = v.own("memory_bytes").is_some() || number(v.db("db_write_buffer_size")).unwrap_or(0) > 0;
    (buffers > 8 * GIB && !bounded)
        .then(|| format!("the memtables of {} families may take {}", v.families().count(), gib(buffers)))
}

fn small_cache(v: &View<'_>) -> Option<String> {
    let (cache, data) = (i128::from(v.own("block_cache_bytes")?), i128::from(v.table_bytes));
    (data > GIB && cache < data / 100).then(|| {
        format!(
            "the block cache has {} MiB for {} of tables: upper levels and hot blocks push each other out",
            cache >> 20,
            gib(data)
        )
    })
}

fn logs_kept(v: &View<'_>) -> Option<String> {
    let kept = |name| number(v.db(name)).filter(|n| *n > 0).map(|n| format!("{name}={n}"));
    let what = kept("WAL_ttl_seconds").or(kept("WAL_size_limit_MB"))?;
    Some(format!("{what}: RocksDB keeps obsolete logs in an archive"))
}

fn metadata_outside(v: &View<'_>) -> Option<String> {
    let outside = v.table("cache_index_and_filter_blocks") == Some("false")
        && number(v.db("max_open_files")) == Some(-1)
        && i128::from(v.table_bytes) > 16 * GIB;
    outside.then(|| "cache_index_and_filter_blocks=false with max_open_files=-1: in RocksDB index and filter of every table stay in memory beside the cache, without bound".to_owned())
}

fn level0_order(v: &View<'_>) -> Option<String> {
    let of = |name| number(v.family(name));
    let (start, slow) = (of("level0_file_num_compaction_trigger")?, of("level0_slowdown_writes_trigger")?);
    let stop = of("level0_stop_writes_trigger")?;
    let room = start < slow && slow < stop;
    (!room).then(|| {
        format!("level 0 starts compaction at {start}, slows writers at {slow} and stops them at {stop} tables: from full speed to standstill at once")
    })
}

fn debt_order(v: &View<'_>) -> Option<String> {
    let soft = number(v.family("soft_pending_compaction_bytes_limit"))?;
    let hard = number(v.family("hard_pending_compaction_bytes_limit"))?;
    (hard > 0 && (soft == 0 || soft >= hard)).then(|| {
        format!("writers are slowed at a debt of {soft} bytes and stopped at {hard}: from full speed to standstill at once")
    })
}

fn level0_size(v: &View<'_>) -> Option<String> {
    let buffer = number(v.family("write_buffer_size"))?;
    let level0 = buffer.checked_mul(number(v.family("level0_file_num_compaction_trigger"))?)?;
    let base = number(v.family("max_bytes_for_level_base"))?;
    (level0 > base * 4).then(|| {
        format!("level 0 is compacted at {level0} bytes into a base level of {base}: each time all of it is rewritten, more than once over")
    })
}

fn table_size(v: &View<'_>) -> Option<String> {
    let table = number(v.family("target_file_size_base"))?;
    let base = number(v.family("max_bytes_for_level_base"))?;
    (table > base).then(|| format!("a table of {table} bytes is larger than the base level of {base}: every compaction takes a whole level"))
}

fn nothing_compressed(v: &View<'_>) -> Option<String> {
    let none = v.family("compression") == Some("kNoCompression")
        && v.family("compression_per_level").is_none_or(|list| list.is_empty())
        && matches!(
            v.family("bottommost_compression"),
            None | Some("kDisableCompressionOption" | "kNoCompression")
        );
    (none && i128::from(v.table_bytes) > 10 * GIB)
        .then(|| format!("compression=kNoCompression with {} of tables", gib(i128::from(v.table_bytes))))
}

fn hard_compression(v: &View<'_>) -> Option<String> {
    let compression = v.family("compression")?;
    let hard =
        matches!(compression, "kZSTD" | "kZlibCompression" | "kBZip2Compression" | "kLZ4HCCompression");
    let everywhere = v.family("compression_per_level").is_none_or(|list| list.is_empty());
    (hard && everywhere && v.family("bottommost_compression") == Some("kDisableCompressionOption"))
        .then(|| format!("compression={compression} at every level: flushes and the upper levels, which live shortly, pay for it too"))
}
