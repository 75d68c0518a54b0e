//! The examples of `examples/` do what they say, twice on one directory.

#[path = "../../examples/bank.rs"]
#[allow(dead_code, reason = "its main")]
mod bank;
#[path = "../../examples/cache.rs"]
#[allow(dead_code, reason = "its main")]
mod cache;
#[path = "../../examples/index.rs"]
#[allow(dead_code, reason = "its main")]
mod index;
#[path = "../../examples/open_rocksdb.rs"]
#[allow(dead_code, reason = "its main")]
mod open_rocksdb;
#[path = "../../examples/queue.rs"]
#[allow(dead_code, reason = "its main")]
mod queue;
#[path = "../../examples/quickstart.rs"]
#[allow(dead_code, reason = "its main")]
mod quickstart;
#[path = "../../examples/report.rs"]
#[allow(dead_code, reason = "its main")]
mod report;
#[path = "../../examples/sessions.rs"]
#[allow(dead_code, reason = "its main")]
mod sessions;
#[path = "../../examples/time_series.rs"]
#[allow(dead_code, reason = "its main")]
mod time_series;

use ashlar_testkit::golden::golden;
use std::path::Path;

type Example = fn(&Path) -> ashlardb::Result<()>;

#[test]
fn examples_run() {
    let dir = tempfile::tempdir().unwrap();
    let examples: [(&str, Example); 7] = [
        ("quickstart", quickstart::run),
        ("sessions", sessions::run),
        ("time_series", time_series::run),
        ("queue", queue::run),
        ("index", index::run),
        ("cache", cache::run),
        ("bank", bank::run),
    ];
    for (name, run) in examples {
        for _ in 0..2 {
            run(&dir.path().join(name)).unwrap();
        }
    }
    let sums = report::run(&dir.path().join("index")).unwrap();
    let entries: Vec<_> = sums.iter().map(|(family, (entries, _))| (family.as_str(), *entries)).collect();
    assert_eq!(entries, [("default", 0), ("articles", 3), ("words", 15)]);
    assert!(report::run(&dir.path().join("nothing")).is_err());
    let counts = open_rocksdb::run(&dir.path().join("index")).unwrap();
    assert_eq!(counts.iter().map(|(_, entries)| entries).sum::<usize>(), 18);
    assert!(open_rocksdb::run(&dir.path().join("nothing")).is_err());
}

#[test]
fn open_rocksdb_opens_what_rocksdb_left() {
    for name in ["rocksdb-7.8.3/compressions", "rocksdb-7.8.3/manifest_history", "leveldb-1.23/plain"] {
        let copy = golden(name).unwrap_or_else(|skip| panic!("{skip}"));
        let counts = open_rocksdb::run(copy.path()).unwrap();
        assert!(counts.iter().map(|(_, entries)| entries).sum::<usize>() > 0, "{name}");
    }
}
