//! Collected properties and marks for compactions beside real RocksDB.

use crate::collectors::Counting;
use crate::judge::{judge, level_of};
use crate::store::listing;
use ashlar_testkit::judge::Opening;
use ashlar_testkit::{JudgeVersion, Op, Tools};
use ashlardb::prelude::*;
use std::sync::Arc;

/// 7.8.3's `sst_dump` lists the properties of our tables, and both releases open, verify and compact them.
#[test]
fn rocksdb_shows_what_was_collected() {
    let test = "rocksdb_shows_what_was_collected";
    let tools = match Tools::available() {
        Ok(tools) => tools,
        Err(skip) => return skip.announce(test),
    };
    for version in JudgeVersion::ALL {
        let Some(mut judge) = judge(version, test) else { return };
        let dir = tempfile::tempdir().unwrap();
        let db = Db::builder(dir.path())
            .format_level(level_of(version))
            .options("disable_auto_compactions=true")
            .default_family(|f| f.table_properties_collector(Arc::new(Counting::default())))
            .open()
            .unwrap();
        for n in 0..500 {
            db.put(format!("key{n:03}"), vec![b'v'; n % 90]).unwrap();
        }
        db.delete("key007").unwrap();
        db.delete_range("key100", "key200").unwrap();
        db.flush().unwrap();
        let expected = listing(db.scan(..));
        let table = db.default_family().live_files().unwrap()[0].number;
        db.close().unwrap();
        if version == JudgeVersion::V7 {
            let shown = tools.properties(&dir.path().join(format!("{:06}.sst", table.0))).unwrap();
            for line in [
                "property collectors names: [test.Census]",
                "# census.Delete: 0x31",
                "# census.Put: 0x333939",
                "# census.RangeDelete: 0x31",
                "# census.longest: 0x3839",
            ] {
                assert!(shown.lines().any(|shown| shown.trim() == line), "{line}: {shown}");
            }
        }
        judge.open(dir.path(), Opening::Stored, "").unwrap();
        judge.verify().unwrap();
        assert_eq!(judge.dump("default").unwrap(), expected);
        judge.apply(&[Op::Compact { family: "default".into() }]).unwrap();
        assert_eq!(judge.dump("default").unwrap(), expected);
        judge.close().unwrap();
    }
}
