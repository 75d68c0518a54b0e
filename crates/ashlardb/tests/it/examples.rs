//! The examples of `examples/` do what they say, twice on one directory.

#[path = "../../examples/bounded_scan.rs"]
#[allow(dead_code, reason = "its main")]
mod bounded_scan;
#[path = "../../examples/families.rs"]
#[allow(dead_code, reason = "its main")]
mod families;
#[path = "../../examples/open_rocksdb.rs"]
#[allow(dead_code, reason = "its main")]
mod open_rocksdb;
#[path = "../../examples/quickstart.rs"]
#[allow(dead_code, reason = "its main")]
mod quickstart;

use std::path::Path;

type Example = fn(&Path) -> ashlardb::Result<()>;

#[test]
fn examples_run() {
    let dir = tempfile::tempdir().unwrap();
    let examples: [(&str, Example); 3] =
        [("quickstart", quickstart::run), ("families", families::run), ("bounded_scan", bounded_scan::run)];
    for (name, run) in examples {
        for _ in 0..2 {
            run(&dir.path().join(name)).unwrap();
        }
    }
    let counts = open_rocksdb::run(&dir.path().join("bounded_scan")).unwrap();
    assert_eq!(counts, [("default".to_owned(), 299)]);
    assert!(open_rocksdb::run(&dir.path().join("nothing")).is_err());
}

#[test]
fn open_rocksdb_opens_what_rocksdb_left() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden");
    for name in ["rocksdb-7.8.3/compressions", "rocksdb-7.8.3/manifest_history", "leveldb-1.23/plain"] {
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(golden.join(name)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        let counts = open_rocksdb::run(copy.path()).unwrap();
        assert!(counts.iter().map(|(_, entries)| entries).sum::<usize>() > 0, "{name}");
    }
}
