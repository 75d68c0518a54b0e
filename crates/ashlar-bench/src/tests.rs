//! Whole runs, on a store that is a map: what arrives at an engine, and what is printed.

use crate::store::{Engine, Store, Walk, WriteHow, Writer};
use crate::{Failure, Flags, KeyMaker, Place, run};
use ashlar_base::{Error, Result};
use ashlar_env::Env;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Shared {
    map: Mutex<Map>,
    calls: Mutex<Vec<String>>,
    writes_left: Mutex<Option<u64>>,
}

impl Shared {
    fn call(&self, what: impl Into<String>) {
        self.calls.lock().unwrap().push(what.into());
    }
}

/// Maps instead of databases.
#[derive(Clone, Default)]
struct Maps(Arc<Shared>);

impl Engine for Maps {
    fn describe(&self) -> (String, String) {
        ("Maps".into(), "1".into())
    }

    fn open(&self, _: &Path, _: &Flags, create: bool) -> Result<Box<dyn Store>> {
        self.0.call(if create { "open" } else { "open existing" });
        Ok(Box::new(self.clone()))
    }

    fn destroy(&self, _: &Path, _: &Flags) -> Result<()> {
        self.0.call("destroy");
        self.0.map.lock().unwrap().clear();
        Ok(())
    }
}

impl Store for Maps {
    fn writer(&self, how: WriteHow) -> Box<dyn Writer + '_> {
        if how.sync {
            self.0.call("sync writer");
        }
        Box::new(MapWriter { shared: &self.0, batch: Vec::new() })
    }

    fn get(&self, key: &[u8]) -> Result<Option<usize>> {
        Ok(self.0.map.lock().unwrap().get(key).map(Vec::len))
    }

    fn cursor(&self) -> Result<Box<dyn Walk + '_>> {
        let entries = self.0.map.lock().unwrap().clone().into_iter().collect();
        Ok(Box::new(MapWalk { entries, at: None }))
    }

    fn cursor_within(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Result<Box<dyn Walk + '_>> {
        let map = self.0.map.lock().unwrap();
        let within = |k: &[u8]| lower.is_none_or(|lower| lower <= k) && upper.is_none_or(|upper| k < upper);
        let entries = map.iter().filter(|(k, _)| within(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Box::new(MapWalk { entries, at: None }))
    }

    fn compact_level(&self, level: u8) -> Result<()> {
        self.0.call(format!("compact level {level}"));
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        self.0.call("verify");
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.0.call("flush");
        Ok(())
    }

    fn compact(&self) -> Result<()> {
        self.0.call("compact");
        Ok(())
    }

    fn wait_for_background(&self) -> Result<()> {
        self.0.call("wait");
        Ok(())
    }

    fn property(&self, name: &str) -> Option<String> {
        (name == "stats").then(|| "all is well\n".into())
    }

    fn reset_statistics(&self) -> Result<()> {
        self.0.call("reset");
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.0.call("close");
        Ok(())
    }
}

/// The first key, the end of a range, and the value of a put.
type Change = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

struct MapWriter<'a> {
    shared: &'a Shared,
    batch: Vec<Change>,
}

impl Writer for MapWriter<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) {
        self.batch.push((key.to_vec(), None, Some(value.to_vec())));
    }

    fn merge(&mut self, key: &[u8], operand: &[u8]) {
        self.put(key, operand);
    }

    fn delete(&mut self, key: &[u8]) {
        self.batch.push((key.to_vec(), None, None));
    }

    fn delete_range(&mut self, begin: &[u8], end: &[u8]) {
        self.batch.push((begin.to_vec(), Some(end.to_vec()), None));
    }

    fn commit(&mut self) -> Result<()> {
        if let Some(left) = &mut *self.shared.writes_left.lock().unwrap_or_else(PoisonError::into_inner) {
            *left = left.checked_sub(1).ok_or_else(|| Error::corruption("the map is full"))?;
        }
        let mut map = self.shared.map.lock().unwrap();
        for (key, end, value) in self.batch.drain(..) {
            match (end, value) {
                (Some(end), _) => map.retain(|k, _| *k < key || *k >= end),
                (None, Some(value)) => drop(map.insert(key, value)),
                (None, None) => drop(map.remove(&key)),
            }
        }
        Ok(())
    }
}

struct MapWalk {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    at: Option<usize>,
}

impl Walk for MapWalk {
    fn first(&mut self) -> Result<()> {
        self.at = Some(0);
        Ok(())
    }

    fn last(&mut self) -> Result<()> {
        self.at = self.entries.len().checked_sub(1);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.at = Some(self.entries.partition_point(|(k, _)| &k[..] < key));
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at = self.at.map(|at| at + 1);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.at = self.at.and_then(|at| at.checked_sub(1));
        Ok(())
    }

    fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.entries.get(self.at?).map(|(k, v)| (&k[..], &v[..]))
    }
}

fn bench(engine: &dyn Engine, line: &str) -> std::result::Result<String, Failure> {
    let env = Env::mem();
    let place = Place { engine, env: &env, temporary: Path::new("/tmp"), title: None, show_progress: false };
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let mut out = Vec::new();
    run(&words, &place, &mut out).map(|_| String::from_utf8(out).unwrap())
}

/// Name, operations and message of every result line.
fn lines(text: &str) -> Vec<(String, u64, String)> {
    let results = text.lines().filter(|l| l.contains(" operations;"));
    let parts = results.map(|l| {
        let name = l.split(' ').next().unwrap().to_owned();
        let (head, tail) = l.split_once(" operations;").unwrap();
        let message = tail.find('(').map(|at| tail[at..].to_owned()).unwrap_or_default();
        (name, head.rsplit(' ').next().unwrap().parse().unwrap(), message)
    });
    parts.collect()
}

fn line(name: &str, ops: u64, message: &str) -> (String, u64, String) {
    (name.into(), ops, message.into())
}

/// A tombstone takes the next key of the order and covers it and four more. Both ends of the flags' bounds are met.
#[test]
fn range_tombstones_stand_among_puts() {
    let left = |more: &str| {
        let maps = Maps::default();
        let ranges =
            "--writes_before_delete_range=10 --writes_per_range_tombstone=20 --max_num_range_tombstones=2";
        let flags =
            format!("--benchmarks=fillseq --num=80 --seed=1 --range_tombstone_width=5 {ranges}{more}");
        assert_eq!(lines(&bench(&maps, &flags).unwrap()), [line("fillseq", 80, "")]);
        let map = maps.0.map.lock().unwrap();
        let mut maker = KeyMaker::new(16);
        (0..90).filter(|&number| map.contains_key(maker.key(number))).collect::<Vec<u64>>()
    };
    // The tombstones begin at 30 and 51. Keys that are put later are there: all but the two that the order gave away.
    let wanted: Vec<u64> = (0..82).filter(|number| ![30, 51].contains(number)).collect();
    assert_eq!(left(""), wanted);
    assert_eq!(left(" --expand_range_tombstones=1"), wanted);
    let maps = Maps::default();
    let refused =
        "--benchmarks=fillseq --key_shape=url --writes_per_range_tombstone=1 --max_num_range_tombstones=1";
    let why = format!("{:?}", bench(&maps, refused).unwrap_err());
    assert!(why.contains("keys that sort like their numbers"), "{why}");
}

/// With drawn keys a tombstone also removes what was put before.
#[test]
fn range_tombstones_remove_what_was_put() {
    let count = |more: &str| {
        let maps = Maps::default();
        bench(&maps, &format!("--benchmarks=fillrandom --num=300 --seed=1{more}")).unwrap();
        maps.0.map.lock().unwrap().len()
    };
    let ranges = " --writes_per_range_tombstone=30 --max_num_range_tombstones=100 --range_tombstone_width=20";
    let (all, left) = (count(""), count(ranges));
    assert!(left < all, "{left} of {all}");
    assert_eq!(left, count(&format!("{ranges} --expand_range_tombstones=1")));
}

#[test]
fn every_benchmark_does_its_work() {
    let maps = Maps::default();
    let names = "fill100K,fillsync,filluniquerandom,fillbatch,fillseq,readseq,readreverse,readtocache,readrandom,\
                 readmissing,readhot,multireadrandom,seekrandom,newiterator,overwrite,updaterandom,mergerandom,\
                 readrandomwriterandom,readrandommergerandom,readwhilemerging,readwhilescanning,\
                 seekrandomwhilewriting,seekrandomwhilemerging,flush,compact,compactall,waitforcompaction,deleteseq,\
                 stats,levelstats,memstats,resetstats";
    let flags = "--num=500 --seed=1 --seek_nexts=3 --deletes=100 --batch_size=8 --readwritepercent=90";
    let text = bench(&maps, &format!("--benchmarks={names} {flags}")).unwrap();
    let found = "(500 of 500 found)";
    let lines = lines(&text);
    let merged = &lines[18].2;
    assert_eq!(
        lines,
        [
            line("fill100K", 1, ""),
            line("fillsync", 1, ""),
            line("filluniquerandom", 500, ""),
            line("fillbatch", 500, ""),
            line("fillseq", 500, ""),
            line("readseq", 500, ""),
            line("readreverse", 500, ""),
            line("readtocache", 500, ""),
            line("readrandom", 500, found),
            line("readmissing", 500, "(0 of 500 found)"),
            line("readhot", 500, found),
            line("multireadrandom", 500, found),
            line("seekrandom", 500, found),
            line("newiterator", 500, ""),
            line("overwrite", 500, ""),
            line("updaterandom", 500, "( updates:500 found:500)"),
            line("mergerandom", 500, "( updates:500)"),
            line("readrandomwriterandom", 500, "( reads:450 writes:50 total:500 found:450)"),
            line("readrandommergerandom", 500, merged),
            line("readwhilemerging", 500, found),
            line("readwhilescanning", 500, found),
            line("seekrandomwhilewriting", 500, found),
            line("seekrandomwhilemerging", 500, found),
            line("flush", 1, ""),
            line("compact", 1, ""),
            line("compactall", 1, ""),
            line("waitforcompaction", 1, ""),
            line("deleteseq", 100, ""),
        ]
    );
    assert!(merged.starts_with("(reads:") && merged.contains(" total:500 hits:"), "{merged}");
    assert!(text.starts_with("Maps:       version 1\n"), "{text}");
    assert!(text.contains("\nall is well\n") && text.contains("levelstats: not available"), "{text}");
    let map = maps.0.map.lock().unwrap();
    assert_eq!((map.len(), map.keys().next().unwrap().as_slice()), (400, KeyMaker::new(16).key(100)));
    assert!(map.values().all(|v| v.len() == 100));
    let calls = maps.0.calls.lock().unwrap().join(",");
    assert_eq!(
        calls,
        "destroy,open,close,destroy,open,close,destroy,open,sync writer,close,destroy,open,close,destroy,open,close,\
         destroy,open,flush,compact,compact,wait,reset,close"
    );
}

#[test]
fn the_rest_of_the_tools_benchmarks() {
    let maps = Maps::default();
    let names = "fillseqsync,fillrandsync,fillseq100K,fillrand100K,fillrandbatch,fillseqbatch,overwritebatch,\
                 readrandomsmall,seekordered,multireadwhilewriting,newiteratorwhilewriting,fillseekseq,compact0,\
                 compact1,verifychecksum";
    let flags = "--num=2000 --seed=1 --seek_nexts=3 --batch_size=8";
    let text = bench(&maps, &format!("--benchmarks={names} {flags}")).unwrap();
    let lines = lines(&text);
    let counts: Vec<(&str, u64)> = lines.iter().map(|(name, n, _)| (name.as_str(), *n)).collect();
    assert_eq!(
        counts,
        [
            ("fillseqsync", 20),
            ("fillrandsync", 20),
            ("fillseq100K", 2),
            ("fillrand100K", 2),
            ("fillrandbatch", 2000),
            ("fillseqbatch", 2000),
            ("overwritebatch", 2000),
            ("readrandomsmall", 2),
            ("seekordered", 2000),
            ("multireadwhilewriting", 2000),
            ("newiteratorwhilewriting", 2000),
            // A seek, three steps and a seek for every four keys.
            ("fillseekseq", 2000 / 4 * 5),
            ("compact0", 1),
            ("compact1", 1),
            ("verifychecksum", 1),
        ]
    );
    assert_eq!((lines[8].2.as_str(), lines[9].2.as_str()), ("(2000 of 2000 found)", "(2000 of 2000 found)"));
    let calls = maps.0.calls.lock().unwrap().join(",");
    assert!(calls.ends_with("compact level 0,compact level 1,verify,close"), "{calls}");
    assert_eq!(calls.matches("sync writer").count(), 2, "{calls}");
}

#[test]
fn functions_over_blocks_are_measured_alone() {
    let names = [
        "crc32c",
        "xxhash",
        "xxhash64",
        "xxh3",
        "compress",
        "uncompress",
        "snappycomp",
        "snappyuncomp",
        "zstdcomp",
        "zstduncomp",
        "acquireload",
    ];
    let flags = "--reads=500 --block_size=1000 --compression_type=snappy";
    let text = bench(&Maps::default(), &format!("--benchmarks={} {flags}", names.join(","))).unwrap();
    let lines = lines(&text);
    assert!(
        lines.iter().zip(names).all(|(line, name)| (line.0.as_str(), line.1) == (name, 500)),
        "{lines:?}"
    );
    assert_eq!((lines[0].2.as_str(), lines[5].2.as_str()), ("(1000 per op)", ""));
    assert!(lines[4].2.starts_with("(output: 5") || lines[4].2.starts_with("(output: 6"), "{}", lines[4].2);
    assert_eq!(lines[4].2, lines[6].2, "the codec of the flag is snappy");
    assert!(
        lines[8].2.starts_with("(output: ") && lines[8].2 != lines[6].2,
        "zstd is another codec: {}",
        lines[8].2
    );
    assert_eq!(lines[10].2, "(each op is 1000 loads)");
    let refused = bench(&Maps::default(), "--benchmarks=compress --reads=1 --compression_type=xpress");
    assert!(matches!(refused, Err(Failure::Engine("compress", _))));
}

#[test]
fn strides_bounds_prefixes_and_costs() {
    let found = |line: &str| {
        let text = bench(&Maps::default(), &format!("--num=1000 --seed=2 --reads=500 {line}")).unwrap();
        (lines(&text).pop().unwrap().2, text)
    };
    let (message, _) = found("--benchmarks=fillseq,multireadrandom --batch_size=5 --multiread_stride=7");
    assert_eq!(message, "(500 of 500 found)");
    let keys = "--key_size=20 --prefix_size=6 --keys_per_prefix=10";
    assert_eq!(found(&format!("--benchmarks=fillseq,readrandom {keys}")).0, "(500 of 500 found)");
    assert_eq!(found(&format!("--benchmarks=fillseq,readmissing {keys}")).0, "(0 of 500 found)");
    let rate = |line: &str| {
        let (_, text) = found(line);
        let last = text.lines().rfind(|l| l.starts_with("seekrandom")).unwrap().to_owned();
        last.contains("MB/s").then(|| last.contains("(500 of 500 found)"))
    };
    let seek = "--benchmarks=fillseq,seekrandom --seek_nexts=5";
    assert_eq!(rate(&format!("{seek} --max_scan_distance=3")), Some(true));
    assert_eq!(rate(&format!("{seek} --max_scan_distance=3 --reverse_iterator=1")), Some(true));
    let (message, text) = found("--benchmarks=fillseq,readrandom --perf_level=2");
    assert!(
        message.starts_with("(500 of 500 found) PERF_CONTEXT:") || text.contains("PERF_CONTEXT:"),
        "{text}"
    );
    // The writer does all it has to, long after the one read has ended.
    let maps = Maps::default();
    let flags = "--num=1000 --reads=1 --finish_after_writes=1 --writes=3000";
    bench(&maps, &format!("--benchmarks=readwhilewriting --seed=2 {flags}")).unwrap();
    let there = maps.0.map.lock().unwrap().len();
    assert!(there > 900, "{there}: 3000 draws of 1000 keys leave a twentieth out");
}

#[test]
fn repetitions_reports_and_json() {
    let maps = Maps::default();
    let env = Env::mem();
    let place =
        Place { engine: &maps, env: &env, temporary: Path::new("/tmp"), title: None, show_progress: false };
    let flags = ["--benchmarks=fillseq[W1-X3],readrandom", "--num=100", "--seed=1", "--histogram=1"];
    let more =
        ["--json=/out.jsonl", "--report_interval_seconds=1", "--report_file=/report.csv", "--report=/page"];
    let words: Vec<String> = flags.iter().chain(&more).map(|&w| w.to_owned()).collect();
    let mut out = Vec::new();
    let done = run(&words, &place, &mut out).unwrap();
    let told: Vec<_> = done.measured.iter().map(|(plan, m)| (plan.name, m.operations)).collect();
    assert_eq!(told, [("fillseq", 100), ("fillseq", 100), ("fillseq", 100), ("readrandom", 100)]);
    assert_eq!((done.seed, done.flags.report.as_deref()), (1, Some("/page")));
    let text = String::from_utf8(out).unwrap();
    assert_eq!(lines(&text).len(), 4, "{text}");
    assert!(
        text.contains("fillseq [AVG    3 runs] : ") && text.contains("fillseq [MEDIAN 3 runs] : "),
        "{text}"
    );
    assert_eq!(maps.0.calls.lock().unwrap().iter().filter(|c| *c == "destroy").count(), 5);
    let read = |path| {
        let (file, mut bytes) = (env.fs.open_read(Path::new(path)).unwrap(), vec![0; 1 << 16]);
        let len = file.read_at(&mut bytes, 0).unwrap();
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    };
    let json = read("/out.jsonl");
    let benchmarks = json.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let benchmarks: Vec<_> =
        benchmarks.map(|line| (line["engine"].clone(), line["benchmark"].clone())).collect();
    let told: Vec<_> = told.iter().map(|(name, _)| ("Maps".into(), (*name).into())).collect();
    assert_eq!(benchmarks, told);
    assert!(read("/report.csv").starts_with("secs_elapsed,interval_qps\n"));
}

#[test]
fn shapes_and_distributions_reach_the_engine() {
    for (shape, bytes) in [("decimal", 20), ("be8", 8), ("uuid", 16), ("url", 55), ("prefix:300", 300)] {
        let maps = Maps::default();
        let line = format!(
            "--benchmarks=fillseq,readrandom,readmissing --num=300 --key_size=20 --key_shape={shape}"
        );
        let text = bench(&maps, &line).unwrap();
        assert_eq!(lines(&text)[1].2, "(300 of 300 found)", "{shape}");
        assert_eq!(lines(&text)[2].2, "(0 of 300 found)", "{shape}");
        assert!(maps.0.map.lock().unwrap().keys().all(|k| k.len() == bytes), "{shape}");
    }
    let maps = Maps::default();
    let sizes = "--value_size_distribution_type=uniform --value_size_min=10 --value_size_max=30";
    bench(&maps, &format!("--benchmarks=fillrandom --num=3000 --key_distribution=zipfian {sizes}")).unwrap();
    let map = maps.0.map.lock().unwrap();
    assert!(map.len() < 1000, "{}: few keys are hot", map.len());
    assert!(map.values().all(|v| (10..=30).contains(&v.len())));
}

/// Compacted once for the reads behind each write, also when the write is beside them.
#[test]
fn reads_find_a_settled_tree_when_they_are_to() {
    let calls = |flags: &str| {
        let maps = Maps::default();
        let names = "--benchmarks=fillseq,readrandom,readseq,readwhilewriting,seekrandom";
        bench(&maps, &format!("{names} --num=100 {flags}")).unwrap();
        let calls = maps.0.calls.lock().unwrap().clone();
        calls.into_iter().filter(|call| call == "compact" || call == "wait").collect::<Vec<_>>()
    };
    assert_eq!(calls("--seed=1"), [""; 0], "the default");
    assert_eq!(calls("--tree_state=loaded"), [""; 0]);
    assert_eq!(calls("--tree_state=settled"), ["compact", "wait", "compact", "wait"]);
}

#[test]
fn threads_each_do_the_whole_count() {
    let text =
        bench(&Maps::default(), "--benchmarks=fillseq,readrandom,readwhilewriting --num=500 --threads=3")
            .unwrap();
    assert_eq!(
        lines(&text),
        [
            line("fillseq", 1500, ""),
            line("readrandom", 1500, "(500 of 500 found)"),
            line("readwhilewriting", 1500, "(500 of 500 found)"),
        ]
    );
    assert!(text.contains("Set seed to "), "{text}");
}

#[test]
fn the_seed_makes_the_operations() {
    let fill = |seed: u32, threads: u32| {
        let maps = Maps::default();
        bench(&maps, &format!("--benchmarks=fillrandom --num=200 --seed={seed} --threads={threads}"))
            .unwrap();
        let map = maps.0.map.lock().unwrap();
        map.clone()
    };
    assert_eq!(fill(5, 1), fill(5, 1));
    assert_ne!(fill(5, 1), fill(6, 1));
    assert!(fill(5, 1).keys().all(|k| fill(5, 2).contains_key(k)), "thread 0 does the same beside another");
}

/// With the same stream in both, every key read would have been written.
#[test]
fn reads_draw_other_keys_than_writes() {
    let text = bench(&Maps::default(), "--benchmarks=fillrandom,readrandom --num=2000 --seed=3").unwrap();
    let (_, _, message) = &lines(&text)[1];
    let found: u32 = message[1..].split(' ').next().unwrap().parse().unwrap();
    // A key is there with probability 1 - 1/e.
    assert!((1150..1380).contains(&found), "{message}");
}

#[test]
fn an_existing_database_is_kept() {
    let maps = Maps::default();
    bench(&maps, "--benchmarks=fillseq --num=100 --db=/d").unwrap();
    maps.0.calls.lock().unwrap().clear();
    let text = bench(&maps, "--benchmarks=fillseq,readseq --num=100 --db=/d --use_existing_db=1").unwrap();
    assert!(text.contains("fillseq      : skipped (--use_existing_db is true)\n"), "{text}");
    assert_eq!(lines(&text), [line("readseq", 100, "")]);
    assert_eq!(maps.0.calls.lock().unwrap().join(","), "open existing,close");
}

#[test]
fn mistakes_and_failures_end_the_run() {
    let maps = Maps::default();
    assert!(
        matches!(bench(&maps, "--benchmarks=fillseq,nonsense"), Err(Failure::Usage(e)) if e.contains("nonsense"))
    );
    assert!(matches!(bench(&maps, "--nonsense"), Err(Failure::Usage(_))));
    assert!(maps.0.calls.lock().unwrap().is_empty(), "nothing runs before all names are known");
    *maps.0.writes_left.lock().unwrap() = Some(10);
    for threads in [1, 4] {
        let failed = bench(&maps, &format!("--benchmarks=fillseq --num=100 --threads={threads}"));
        assert!(matches!(failed, Err(Failure::Engine("fillseq", e)) if e.message() == "the map is full"));
    }
    // The writer's failure counts too, and the readers are not left waiting.
    let failed = bench(&maps, "--benchmarks=readwhilewriting --num=100 --reads=1000000");
    assert!(matches!(failed, Err(Failure::Engine("readwhilewriting", _))));
}

#[test]
fn the_baseline_ends_with_a_table() {
    let text = bench(&Maps::default(), "--num=1000 --histogram=1").unwrap();
    assert_eq!(lines(&text).len(), 12);
    assert!(text.contains("Microseconds per write:\nCount: 1000 "), "{text}");
    assert!(text.contains("random writes over existing keys") && text.contains("Database: 0.0 MB on disk; "));
}

#[test]
fn help_is_complete() {
    let text = bench(&Maps::default(), "--help").unwrap();
    assert!(
        text.contains("\n  readwhilewriting ") && text.contains("\n  --compression_ratio (default 0.5)\n"),
        "{text}"
    );
    assert_eq!(bench(&Maps::default(), "--version").unwrap(), "Maps version 1\n");
}

#[test]
fn what_waits_once_prints_no_histogram_and_no_reads_are_none() {
    let flags = "--num=100 --histogram=1 --benchmarks=fillseq,flush,compact,waitforcompaction";
    let text = bench(&Maps::default(), flags).unwrap();
    assert_eq!(text.matches("Microseconds per").count(), 1, "those of fillseq alone: {text}");
    let text = bench(&Maps::default(), "--num=100 --reads=0 --benchmarks=fillseq,readrandom").unwrap();
    assert!(text.contains(" 0 operations; (0 of 0 found)"), "{text}");
}

#[test]
fn files_of_a_user_with_names_of_a_database_stay() {
    let env = Env::mem();
    let (engine, dir) = (crate::Ashlar::new(env.clone()), Path::new("/mine"));
    env.fs.create_dir_all(dir).unwrap();
    let names = ["000001.sst", "CURRENT", "LOG", "MANIFEST-1"];
    for content in [&b"my notes\n"[..], b"MANIFEST-000004\n", b"MANIFEST-1\n"] {
        for name in names {
            env.fs.create(&dir.join(name)).unwrap().write_at(content, 0).unwrap();
        }
        let e = engine.destroy(dir, &Flags::default()).unwrap_err();
        assert!(e.to_string().contains("not a database"), "{e}");
        let left: Vec<String> = env.fs.list(dir).unwrap().into_iter().map(|f| f.name).collect();
        assert_eq!(left, names);
    }
}
