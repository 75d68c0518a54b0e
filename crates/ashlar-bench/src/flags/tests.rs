//! Command lines and what becomes of them.

use super::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ').filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

fn flags(line: &str) -> Flags {
    parse(&words(line)).unwrap().flags
}

fn error(line: &str) -> String {
    parse(&words(line)).unwrap_err()
}

#[test]
fn every_way_to_write_a_flag() {
    for line in ["--num=5", "--num 5", "-num=5", "-num 5", "--num=7 --num=5"] {
        assert_eq!(flags(line).num, 5, "{line}");
    }
    for (line, on) in [
        ("--sync", true),
        ("--nosync", false),
        ("--sync=1", true),
        ("--sync=false", false),
        ("--sync --nosync", false),
    ] {
        assert_eq!(flags(line).sync, on, "{line}");
    }
    assert_eq!(flags("--value-size=3").value_size, 3);
    assert_eq!(flags("--reads=-1 --bloom_bits=-1").reads, -1);
    assert_eq!(flags("--db=/a=b").db.as_deref(), Some("/a=b"));
    assert_eq!(flags("--write_buffer_size=4194304").write_buffer_size, Some(4 << 20));
    assert_eq!(flags(""), Flags::default());
}

#[test]
fn a_line_of_a_script() {
    let parsed = parse(&words(
        "--benchmarks=fillrandom,stats --use_existing_db=0 --sync=0 --num=8000000 --threads=1 --value_size=400 \
         --key_size=20 --compression_type=lz4 --compression_ratio=0.5 --seed=1594 --histogram=1 --statistics=0 \
         --stats_interval_seconds=60 --bloom_bits=10 --open_files=-1 --compaction_style=0 --nommap_read --mmap_write=0",
    ))
    .unwrap();
    assert_eq!((parsed.flags.num, parsed.flags.value_size, parsed.flags.key_size), (8_000_000, 400, 20));
    assert_eq!(
        (parsed.flags.histogram, parsed.flags.statistics, parsed.flags.bloom_bits),
        (true, false, 10.0)
    );
    assert_eq!((&parsed.warnings[..], parsed.flags.open_files), (&[][..], Some(-1)));
    assert!(parsed.given.contains("seed") && !parsed.given.contains("reads"));
}

#[test]
fn mistakes_are_named() {
    let unknown = error("--nun=5");
    assert!(unknown.starts_with("ERROR: unknown command line flag 'nun' (did you mean --num?)"), "{unknown}");
    assert!(error("--Num=5").contains("unknown command line flag 'Num'"));
    assert!(error("--nonum").contains("unknown command line flag 'nonum'"));
    assert_eq!(
        error("--num=abc"),
        "ERROR: illegal value for flag 'num': expected a whole number from 0, found \"abc\""
    );
    assert_eq!(error("--num"), "ERROR: flag 'num' is missing its argument");
    assert!(error("--num=-1").contains("illegal value for flag 'num'"));
    assert!(error("--sync=maybe").contains("expected true or false"));
    assert_eq!(error("fillseq"), "ERROR: \"fillseq\" is not a flag; flags are --name=value");
    assert!(error("--").contains("is not a flag"));
    assert!(error("--compaction_style=4").contains("4 is not 0 to 3"));
    assert!(error("--zipfian_theta=1").contains("is not above 0, or is 1"));
    assert!(error("--readwritepercent=101").contains("not 0 to 100"));
    assert!(error("--use_direct_reads").contains("--use_direct_reads=true: Not implemented"));
    assert!(error("--keys_per_prefix=10").contains("'prefix_size': 0 is not 1 to 16"));
    assert!(error("--perf_level=7").contains("7 is not 1 to 6"));
    assert!(error("--threads=0").contains("'threads': 0 is not 1 to 4096"));
    assert!(error("--compression_ratio=2").contains("not 0 to 1"));
    assert!(error("--bloom_bits=nan").contains("expected a number"));
    assert!(error("--use_existing_db=1").contains("--db=DIRECTORY"));
}

#[test]
fn options_of_rocksdb_are_flags() {
    let parsed = parse(&words(
        "--db_write_buffer_size=1048576 --max_compaction_bytes 5 --atomic_flush --nommap_read \
         --allow_concurrent_memtable_write=false --partition_filters=1 --options=max_background_jobs=3;",
    ))
    .unwrap();
    assert_eq!(parsed.flags.options, "max_background_jobs=3;", "the string replaces what stood before it");
    let parsed =
        parse(&words("--db_write_buffer_size=1048576 --atomic_flush --noenable_pipelined_write")).unwrap();
    assert_eq!(
        parsed.flags.options,
        "db_write_buffer_size=1048576;atomic_flush=true;enable_pipelined_write=false;"
    );
    assert_eq!(parsed.warnings, [""; 0], "what has no effect is the default");
    let parsed = parse(&words("--enable_pipelined_write")).unwrap();
    assert!(parsed.warnings[0].starts_with("WARNING: --enable_pipelined_write has no effect: "));
    assert!(error("--max_compaction_bytes=many").contains("--max_compaction_bytes=many: "));
    assert!(error("--max_compaction_byte=1").contains("did you mean --max_compaction_bytes?"));
    let shape =
        "ERROR: illegal value for flag 'key_shape': expected integer, be8, decimal, uuid, url or prefix:N";
    assert!(error("--key_shape=round").starts_with(shape));
    assert!(error("--tree_state=full").ends_with("expected loaded or settled, found \"full\""));
}

#[test]
fn retired_flags_become_others() {
    let parsed =
        parse(&words("--writes_per_second=10 --value_size=84 --max_grandparent_overlap_factor=10")).unwrap();
    assert_eq!(parsed.flags.benchmark_write_rate_limit, 1000);
    assert_eq!(parsed.flags.options, format!("max_compaction_bytes={};", 640 << 20));
    assert_eq!(parsed.warnings.len(), 2);
    assert_eq!(flags("--writes_per_second=0").benchmark_write_rate_limit, 0);
}

/// Flags of db_bench for what is there, each with a value that scripts give. All are taken; what has no effect says why.
const EVERYDAY: &str = "\
    --benchmarks=fillseq --db=/d --wal_dir=/d --use_existing_db=0 --num=10 --reads=-1 --writes=-1 --deletes=-1 --threads=1 \
    --duration=0 --seed=1 --key_size=16 --value_size=100 --value_size_distribution_type=fixed --value_size_min=100 \
    --value_size_max=102400 --compression_ratio=0.5 --compression_type=snappy --compression_level=3 \
    --compression_max_dict_bytes=0 --compression_zstd_max_train_bytes=0 --compression_max_dict_buffer_bytes=0 \
    --compression_use_zstd_dict_trainer=1 --compression_parallel_threads=1 --min_level_to_compress=-1 --batch_size=1 \
    --seek_nexts=0 --reverse_iterator=0 --max_scan_distance=0 --readwritepercent=90 --mergereadpercent=70 --deletepercent=2 \
    --merge_operator=put --merge_keys=-1 --writes_before_delete_range=0 --writes_per_range_tombstone=0 \
    --range_tombstone_width=100 --max_num_range_tombstones=0 --expand_range_tombstones=0 \
    --read_random_exp_range=0.0 --prefix_size=0 --keys_per_prefix=0 \
    --total_order_seek=1 --prefix_same_as_start=0 --auto_prefix_mode=0 --sync=0 --use_fsync=0 --disable_wal=0 \
    --manual_wal_flush=0 --wal_compression=none --wal_bytes_per_sync=0 --bytes_per_sync=0 --write_buffer_size=65536 \
    --db_write_buffer_size=0 --max_write_buffer_number=2 --min_write_buffer_number_to_merge=1 --max_background_jobs=2 \
    --max_background_compactions=-1 --max_background_flushes=-1 --subcompactions=1 --num_levels=7 \
    --target_file_size_base=65536 --target_file_size_multiplier=1 --max_bytes_for_level_base=262144 \
    --max_bytes_for_level_multiplier=10 --level_compaction_dynamic_level_bytes=1 --level0_file_num_compaction_trigger=4 \
    --level0_slowdown_writes_trigger=20 --level0_stop_writes_trigger=36 --soft_pending_compaction_bytes_limit=68719476736 \
    --hard_pending_compaction_bytes_limit=137438953472 --delayed_write_rate=8388608 --compaction_style=0 --compaction_pri=3 \
    --universal_size_ratio=0 --universal_min_merge_width=0 --universal_max_merge_width=0 --universal_incremental=0 \
    --universal_max_size_amplification_percent=0 --universal_compression_size_percent=-1 --universal_max_read_amp=-1 \
    --universal_allow_trivial_move=0 --universal_stop_style=1 --universal_reduce_file_locking=1 \
    --fifo_compaction_max_table_files_size_mb=0 --fifo_compaction_max_data_files_size_mb=0 --fifo_compaction_ttl=0 \
    --fifo_compaction_allow_compaction=1 --fifo_compaction_use_kv_ratio_compaction=0 --fifo_age_for_warm=0 \
    --disable_auto_compactions=0 --max_compaction_bytes=0 --compaction_readahead_size=2097152 --cache_type=lru_cache \
    --cache_size=33554432 --cache_numshardbits=-1 --cache_index_and_filter_blocks=0 --cache_high_pri_pool_ratio=0.0 \
    --cache_low_pri_pool_ratio=0.0 --pin_l0_filter_and_index_blocks_in_cache=0 --pin_top_level_index_and_filter=0 \
    --row_cache_size=0 --block_size=4096 --block_restart_interval=16 --index_block_restart_interval=1 --format_version=6 \
    --checksum_type=4 --partition_index=0 --partition_index_and_filters=0 --partition_filters=0 --metadata_block_size=4096 \
    --optimize_filters_for_memory=0 --bloom_bits=10 --use_ribbon_filter=0 --whole_key_filtering=1 \
    --memtable_bloom_size_ratio=0 --memtable_whole_key_filtering=0 --memtablerep=skip_list --max_successive_merges=0 \
    --allow_concurrent_memtable_write=1 --enable_pipelined_write=1 --open_files=-1 --file_opening_threads=16 \
    --table_cache_numshardbits=4 --verify_checksum=1 --verify_compression=0 --mmap_read=0 --mmap_write=0 \
    --use_direct_reads=0 --use_direct_io_for_flush_and_compaction=0 --advise_random_on_open=1 --paranoid_checks=1 \
    --rate_limiter_bytes_per_sec=0 --rate_limiter_auto_tuned=0 --rate_limit_bg_reads=0 --rate_limiter_refill_period_us=100000 \
    --benchmark_write_rate_limit=0 --benchmark_read_rate_limit=0 --finish_after_writes=0 --bgwriter_num=0 \
    --use_tailing_iterator=0 --readahead_size=0 --async_io=0 --multiread_batched=0 --multiread_stride=0 \
    --num_column_families=2 --num_hot_column_families=0 --num_multi_db=0 --transaction_db=0 --optimistic_transaction_db=0 \
    --transaction_sets=2 --transaction_lock_timeout=100 --enable_blob_files=0 --min_blob_size=0 --blob_file_size=268435456 \
    --blob_compression_type=none --enable_blob_garbage_collection=0 --blob_garbage_collection_age_cutoff=0.25 \
    --blob_garbage_collection_force_threshold=1.0 --blob_compaction_readahead_size=0 --blob_file_starting_level=0 \
    --use_blob_cache=0 --use_shared_block_and_blob_cache=1 --blob_cache_size=8388608 --blob_cache_numshardbits=6 \
    --prepopulate_blob_cache=0 --statistics=0 --stats_level=3 --histogram=1 --confidence_interval_only=0 --stats_interval=0 \
    --stats_interval_seconds=0 --stats_per_interval=0 --report_interval_seconds=0 --report_file=r --report_bg_io_stats=0 \
    --perf_level=1 --progress_reports=1 --thread_status_per_interval=0 --ops_between_duration_checks=1000 --undefok=a \
    --write_thread_max_yield_usec=100 --write_thread_slow_yield_usec=3 --enable_write_thread_adaptive_yield=1 \
    --num_deletion_threads=1 --readonly=0 --use_secondary_db=0 --ttl_seconds=0 --periodic_compaction_seconds=0 \
    --preclude_last_level_data_seconds=0 --preserve_internal_time_seconds=0 --user_timestamp_size=0 \
    --disable_seek_compaction=1 --disable_data_sync=0 --max_grandparent_overlap_factor=10 --source_compaction_factor=1 \
    --writes_per_second=0 --delete_obsolete_files_period_micros=0 --cache_remove_scan_count_limit=16 --comparisons=0 \
    --max_file_size=65536 --key_prefix=0 --reuse_logs=0 --compression=1 --zstd_compression_level=1 --key_shape=integer \
    --key_distribution=uniform --zipfian_theta=0.99 --options_file=o";

#[test]
fn every_flag_for_what_is_there_is_taken() {
    let all: Vec<&str> = EVERYDAY.split_whitespace().collect();
    let mut silent = 0;
    for flag in &all {
        let parsed = parse(&words(flag)).unwrap_or_else(|e| panic!("{flag}: {e}"));
        silent += usize::from(parsed.warnings.is_empty());
        assert!(parsed.warnings.iter().all(|w| w.starts_with("WARNING: --")), "{:?}", parsed.warnings);
    }
    let names: BTreeSet<&str> = all.iter().map(|flag| flag.split('=').next().unwrap()).collect();
    assert!(names.len() == all.len() && silent > 130, "{} names, {silent} without a word", names.len());
    let parsed = parse(&words(EVERYDAY)).unwrap();
    assert_eq!((parsed.flags.compression_level, parsed.flags.num_column_families), (Some(1), 2));
    assert_eq!(flags("--compression=0").compression_type, "none");
    assert_eq!(flags("--max_file_size=4096").target_file_size_base, Some(4096));
    assert!(error("--checksum_type=5").contains("5 is not 0 to 4"));
    assert!(error("--num_column_families=0").contains("0 is not 1 to 10000"));
}

#[test]
fn files_of_flags_stand_for_their_lines() {
    let read = |name: &str| match name {
        "a" => Ok("# a comment\n--num=5\n\n  --flagfile=b\n".to_owned()),
        "b" => Ok("--sync\n".to_owned()),
        "round" => Ok("--flagfile=round".to_owned()),
        "wrong" => Ok("fillseq".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    let all = |line: &str| with_files(&words(line), &read);
    assert_eq!(all("--flagfile=a --num=6").unwrap(), ["--num=5", "--sync", "--num=6"]);
    assert_eq!(all("-flagfile a,b").unwrap(), ["--num=5", "--sync", "--sync"]);
    assert!(all("--flagfile=round").unwrap_err().contains("circle"));
    assert_eq!(all("--flagfile=wrong").unwrap_err(), "ERROR: flagfile wrong: \"fillseq\" is not a flag");
    assert_eq!(all("--flagfile=none").unwrap_err(), "ERROR: flagfile none: no such file");
    assert!(all("--flagfile").unwrap_err().contains("missing its argument"));
}

#[test]
fn undefok_excuses_names() {
    assert_eq!(flags("--undefok=foo,bar --foo=1 --num=3").num, 3);
    assert!(error("--undefok=foo --baz=1").contains("'baz'"));
}

#[test]
fn help_names_every_flag_once() {
    let text = help();
    assert!(text.contains("  --num (default 1000000)\n"));
    assert_eq!(text.matches("  --").count(), FLAGS.len());
    assert!(parse(&words("--help")).unwrap().help);
    assert!(parse(&words("-version")).unwrap().version);
}
