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
    assert!(
        unknown.starts_with(
            "ERROR: unknown command line flag 'nun' (did you mean --num?)\nThe flags are: benchmarks, db, "
        ),
        "{unknown}"
    );
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
    assert_eq!(error("--compaction_style=1"), "ERROR: --compaction_style=1 is not supported yet; only 0 is");
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

#[test]
fn files_of_flags_stand_for_their_lines() {
    let read = |name: &str| match name {
        "a" => Ok("# a comment\n--num=5\n\n  --flagfile=b\n".to_owned()),
        "b" => Ok("--sync\n".to_owned()),
        "round" => Ok("--flagfile=round".to_owned()),
        "wrong" => Ok("fillseq".to_owned()),
        _ => Err("there is none".to_owned()),
    };
    let all = |line: &str| with_files(&words(line), &read);
    assert_eq!(all("--flagfile=a --num=6").unwrap(), ["--num=5", "--sync", "--num=6"]);
    assert_eq!(all("-flagfile a,b").unwrap(), ["--num=5", "--sync", "--sync"]);
    assert!(all("--flagfile=round").unwrap_err().contains("circle"));
    assert_eq!(all("--flagfile=wrong").unwrap_err(), "ERROR: flagfile wrong: \"fillseq\" is not a flag");
    assert_eq!(all("--flagfile=none").unwrap_err(), "ERROR: flagfile none: there is none");
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
