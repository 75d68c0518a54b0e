//! Collectors of table properties through the door: what they collect is in the tables, and a wrong one harms nothing.

use crate::store::listing;
use ashlardb::prelude::*;
use ashlardb::{
    Builder, CollectedEntry, CollectorContext, Error, Event, EventListener, FamilyBuilder, IngestOptions,
    Level, Result, TableProperties, TablePropertiesCollector, TablePropertiesCollectorFactory,
    UserProperties,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Counts entries by their kind, and keeps the largest value.
#[derive(Debug, Default)]
struct Census {
    kinds: BTreeMap<String, u64>,
    longest: usize,
    bytes: u64,
}

impl TablePropertiesCollector for Census {
    fn add(&mut self, entry: &CollectedEntry<'_>) -> Result<()> {
        *self.kinds.entry(format!("{:?}", entry.kind)).or_default() += 1;
        self.longest = self.longest.max(entry.value.len());
        assert!(entry.file_bytes >= self.bytes, "the table grows");
        self.bytes = entry.file_bytes;
        Ok(())
    }

    fn finish(&mut self) -> Result<UserProperties> {
        let kinds =
            self.kinds.iter().map(|(kind, n)| (format!("census.{kind}").into_bytes(), text(n.to_string())));
        Ok(kinds.chain([(b"census.longest".to_vec(), text(self.longest.to_string()))]).collect())
    }
}

fn text(text: String) -> Vec<u8> {
    text.into_bytes()
}

/// Makes a [`Census`] for each table, and notes the levels.
#[derive(Debug, Default)]
pub struct Counting {
    levels: Mutex<Vec<Level>>,
}

impl TablePropertiesCollectorFactory for Counting {
    fn name(&self) -> &str {
        "test.Census"
    }

    fn create(&self, context: &CollectorContext<'_>) -> Option<Box<dyn TablePropertiesCollector>> {
        self.levels.lock().unwrap().extend(context.level);
        Some(Box::<Census>::default())
    }
}

/// Goes wrong in each of its tables.
#[derive(Debug)]
struct Bad(&'static str);

impl TablePropertiesCollectorFactory for Bad {
    fn name(&self) -> &str {
        "test.Bad"
    }

    fn create(&self, _: &CollectorContext<'_>) -> Option<Box<dyn TablePropertiesCollector>> {
        assert_ne!(self.0, "begin", "on purpose");
        Some(Box::new(Bad(self.0)))
    }
}

impl TablePropertiesCollector for Bad {
    fn add(&mut self, _: &CollectedEntry<'_>) -> Result<()> {
        assert_ne!(self.0, "add", "on purpose");
        if self.0 == "refuse" { Err(Error::invalid("not this entry")) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<UserProperties> {
        assert_ne!(self.0, "finish", "on purpose");
        Ok(UserProperties::from([(b"rocksdb.num.entries".to_vec(), vec![0])]))
    }
}

fn quiet(dir: &Path) -> Builder {
    Db::builder(dir).options("disable_auto_compactions=true")
}

fn counting(counting: &Arc<Counting>) -> impl Fn(FamilyBuilder) -> FamilyBuilder + Send + Sync + 'static {
    let counting = Arc::clone(counting);
    move |f| f.table_properties_collector(Arc::clone(&counting) as _)
}

fn said(table: &TableProperties) -> String {
    let show =
        |(name, value): (&Vec<u8>, &Vec<u8>)| format!("{}={}", name.escape_ascii(), value.escape_ascii());
    table.stored.collected().iter().map(show).collect::<Vec<_>>().join(" ")
}

fn all_said(family: &Family) -> Vec<String> {
    family.properties_of_all_tables().unwrap().iter().map(said).collect()
}

#[test]
fn tables_of_flushes_compactions_replays_and_ingestions_have_what_was_collected() {
    let dir = tempfile::tempdir().unwrap();
    let made = Arc::new(Counting::default());
    let path = dir.path().join("db");
    let builder = || quiet(&path).default_family(counting(&made)).family("plain", |f| f);
    let db = builder().open().unwrap();
    let family = db.default_family();
    for n in 0..100 {
        db.put(format!("key{n:02}"), vec![b'v'; n]).unwrap();
    }
    db.delete("gone").unwrap();
    db.delete_range("x", "zz").unwrap();
    db.flush().unwrap();
    let first = "census.Delete=1 census.Put=100 census.RangeDelete=1 census.longest=99";
    assert_eq!(all_said(&family), [first]);
    db.put("key00", "new").unwrap();
    db.flush().unwrap();
    let newest = "census.Put=1 census.longest=3";
    assert_eq!(all_said(&family), [newest, first], "the newest table of level 0 comes first");
    db.compact().unwrap();
    let merged = "census.Put=100 census.longest=99";
    assert_eq!(all_said(&family), [merged]);
    let table = &family.properties_of_all_tables().unwrap()[0];
    assert_eq!(family.properties_of_table(table.number).unwrap().as_ref(), Some(table));
    assert_eq!(family.properties_of_table(ashlardb::FileNumber(999_999)).unwrap(), None);
    let stored = &table.stored;
    assert_eq!(
        (stored.num_entries, stored.num_deletions, stored.num_range_deletions),
        (Some(100), Some(0), Some(0))
    );
    assert_eq!(stored.property_collectors.as_deref(), Some("[test.Census]"));
    assert!(!table.marked_for_compaction);
    let levels = std::mem::take(&mut *made.levels.lock().unwrap());
    assert_eq!(levels, [Level(0), Level(0), table.level]);
    // The replay of the log writes a table.
    db.merge("counter", "1").unwrap_err();
    db.put("later", "v").unwrap();
    drop((family, db));
    let db = builder().open().unwrap();
    let family = db.default_family();
    assert_eq!(all_said(&family), ["census.Put=1 census.longest=1", merged]);
    let mut writer = family.sst_writer(dir.path().join("in.sst")).unwrap();
    writer.put("z1", "12345").unwrap();
    assert_eq!(writer.finish().unwrap().collector_failures, []);
    family.ingest(&[dir.path().join("in.sst")], IngestOptions::new()).unwrap();
    assert!(all_said(&family).contains(&"census.Put=1 census.longest=5".to_owned()));
    assert_eq!(all_said(&db.family("plain").unwrap()), [""; 0]);
}

#[test]
fn tables_of_a_range_are_those_that_reach_into_it() {
    let dir = tempfile::tempdir().unwrap();
    let made = Arc::new(Counting::default());
    let db = quiet(dir.path()).default_family(counting(&made)).open().unwrap();
    for keys in [["a", "c"], ["e", "g"], ["i", "k"]] {
        keys.iter().for_each(|key| db.put(key, "v").unwrap());
        db.flush().unwrap();
    }
    db.delete_range("m", "p").unwrap();
    db.flush().unwrap();
    let family = db.default_family();
    let all = family.live_files().unwrap();
    let paths = family.paths_of_tables().unwrap();
    assert_eq!(paths, all.iter().map(|file| (file.number, file.path())).collect());
    for (number, path) in paths {
        assert_eq!(family.path_of_table(number).unwrap(), Some(path));
    }
    let tables = |found: Result<Vec<TableProperties>>| {
        let found = found.unwrap();
        let first = |table: &TableProperties| {
            let file = all.iter().find(|file| file.number == table.number).unwrap();
            file.smallest.escape_ascii().to_string()
        };
        found.iter().map(first).collect::<Vec<_>>().join(" ")
    };
    let in_range = |range| tables(family.properties_of_tables_in_range(range));
    assert_eq!(tables(family.properties_of_all_tables()), "m i e a");
    assert_eq!(in_range("b".."c"), "a");
    assert_eq!(in_range("d".."e"), "");
    assert_eq!(in_range("c".."f"), "e a");
    assert_eq!(in_range("a".."z"), "m i e a");
    assert_eq!(tables(family.properties_of_tables_in_range("d"..="e")), "e");
    assert_eq!(tables(family.properties_of_tables_in_range("l"..)), "m");
    // The range deletion excludes its end.
    assert_eq!(tables(family.properties_of_tables_in_range("p"..)), "");
    assert_eq!(tables(family.properties_of_tables_in_range(.."e")), "a");
    use std::ops::Bound::{Excluded, Unbounded};
    let behind = |key: &'static str| (Excluded(key), Unbounded::<&str>);
    assert_eq!(tables(family.properties_of_tables_in_range(behind("k"))), "m");
    assert!(family.properties_of_tables_in_range("z".."a").unwrap_err().to_string().contains("begins at"));
    db.close().unwrap();
    assert!(family.properties_of_all_tables().is_err());
}

#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl EventListener for Ear {
    fn on_event(&self, event: &Event) {
        if let Event::CollectorFailed { family, number, collector, cause } = event {
            let line = format!("{family} {} {collector} {cause}", number.0);
            self.0.lock().unwrap().push(line);
        }
    }
}

/// A table without the properties of the wrong collector, and everything else as without it.
#[test]
fn a_wrong_collector_is_reported_and_harms_nothing() {
    let causes = [
        ("begin", "panicked"),
        ("add", "it panicked"),
        ("refuse", "not this entry"),
        ("finish", "it panicked"),
        ("give", "begin with rocksdb., or are taken: \"rocksdb.num.entries\""),
    ];
    for (wrong, cause) in causes {
        let dir = tempfile::tempdir().unwrap();
        let (made, ear) = (Arc::new(Counting::default()), Arc::new(Ear::default()));
        let builder = || {
            let (bad, good) = (Arc::new(Bad(wrong)), counting(&made));
            let set = move |f: FamilyBuilder| good(f.table_properties_collector(bad.clone()));
            quiet(dir.path()).listener(ear.clone()).default_family(set)
        };
        let db = builder().open().unwrap();
        for n in 0..50 {
            db.put(format!("key{n:02}"), "v").unwrap();
        }
        db.flush().unwrap();
        db.put("key00", "w").unwrap();
        db.flush().unwrap();
        db.compact().unwrap();
        db.put("last", "v").unwrap();
        let tables = db.default_family().properties_of_all_tables().unwrap();
        assert_eq!(
            tables.iter().map(said).collect::<Vec<_>>(),
            ["census.Put=50 census.longest=1"],
            "{wrong}"
        );
        assert_eq!(tables[0].stored.num_entries, Some(50));
        let reported = std::mem::take(&mut *ear.0.lock().unwrap());
        assert_eq!(reported.len(), 3, "{wrong}: {reported:?}");
        assert!(
            reported.iter().all(|line| line.contains("default ") && line.contains(cause)),
            "{reported:?}"
        );
        let log = std::fs::read_to_string(dir.path().join("LOG")).unwrap();
        assert!(log.contains("table_properties_collector_failed") && log.contains("test.Bad"), "{log}");
        drop(db);
        let db = builder().open().unwrap();
        let report = db.recovery();
        assert!(report.is_clean(), "{report}");
        assert!(
            report.unserved.join("\n").contains("lacks properties of the collector \"test.Bad\""),
            "{report}"
        );
        assert_eq!(listing(db.scan(..)).len(), 51, "{wrong}");
        db.verify_db(|_| ()).unwrap();
    }
}

/// Two flushes at once, atomically: the report names the family.
#[test]
fn an_atomic_flush_reports_too() {
    let dir = tempfile::tempdir().unwrap();
    let ear = Arc::new(Ear::default());
    let bad = || Arc::new(Bad("finish"));
    let db = quiet(dir.path())
        .options("atomic_flush=true")
        .listener(ear.clone())
        .family("one", move |f| f.table_properties_collector(bad()))
        .family("two", |f| f)
        .open()
        .unwrap();
    for family in db.families() {
        family.put("k", "v").unwrap();
    }
    db.flush().unwrap();
    let reported = ear.0.lock().unwrap().clone();
    assert!(reported.len() == 1 && reported[0].starts_with("one "), "{reported:?}");
}

/// Asks for a compaction of every table.
#[derive(Debug)]
struct Wishing(Arc<AtomicBool>);

impl TablePropertiesCollectorFactory for Wishing {
    fn name(&self) -> &str {
        "test.Wishing"
    }

    fn create(&self, _: &CollectorContext<'_>) -> Option<Box<dyn TablePropertiesCollector>> {
        self.0.load(Ordering::Relaxed).then(|| Box::new(Wishing(Arc::clone(&self.0))) as _)
    }
}

impl TablePropertiesCollector for Wishing {
    fn add(&mut self, _: &CollectedEntry<'_>) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<UserProperties> {
        Ok(UserProperties::new())
    }

    fn needs_compaction(&self) -> bool {
        true
    }
}

#[test]
fn the_mark_of_a_table_survives_a_reopening() {
    let (dir, on) = (tempfile::tempdir().unwrap(), Arc::new(AtomicBool::new(true)));
    let builder = || {
        let on = Arc::clone(&on);
        quiet(dir.path()).default_family(move |f| f.table_properties_collector(Arc::new(Wishing(on.clone()))))
    };
    let db = builder().open().unwrap();
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    on.store(false, Ordering::Relaxed);
    db.put("l", "v").unwrap();
    db.flush().unwrap();
    let marks = |db: &Db| -> Vec<bool> {
        let tables = db.default_family().properties_of_all_tables().unwrap();
        tables.iter().map(|table| table.marked_for_compaction).collect()
    };
    assert_eq!(marks(&db), [false, true]);
    db.close().unwrap();
    let db = builder().open().unwrap();
    assert_eq!(marks(&db), [false, true]);
    db.compact().unwrap();
    assert_eq!(marks(&db), [false]);
}

/// A collector that marks every table ends in tables of the last level, in every style, and the mark starts the compaction.
#[test]
fn marked_tables_go_down_by_themselves_and_that_ends() {
    for style in ["kCompactionStyleLevel", "kCompactionStyleUniversal", "kCompactionStyleFIFO"] {
        let dir = tempfile::tempdir().unwrap();
        let (on, reasons) = (Arc::new(AtomicBool::new(true)), Arc::new(Reasons::default()));
        let heard = Arc::clone(&reasons);
        let db = Db::builder(dir.path())
            .options(&format!(
                "compaction_style={style};target_file_size_base=16K;compression=kNoCompression"
            ))
            .listener(heard)
            .default_family(move |f| f.table_properties_collector(Arc::new(Wishing(on.clone()))))
            .open()
            .unwrap();
        for round in 0..3 {
            for n in 0..500 {
                db.put(format!("key{:04}", n * 7 % 500), format!("{round} {n}").repeat(20)).unwrap();
            }
            db.flush().unwrap();
            db.wait_for_background().unwrap();
        }
        let tables = db.default_family().properties_of_all_tables().unwrap();
        assert!(tables.iter().all(|table| table.marked_for_compaction), "{style}");
        let levels: Vec<u8> = tables.iter().map(|table| table.level.0).collect();
        let reasons = reasons.0.lock().unwrap();
        if style == "kCompactionStyleFIFO" {
            assert_eq!((levels, reasons.len()), (vec![0; 3], 0));
            continue;
        }
        assert!(tables.len() > 1 && levels.iter().all(|level| *level == 6), "{style}: {levels:?}");
        assert!(reasons.contains(&"marked"), "{style}: {reasons:?}");
        assert_eq!(listing(db.scan(..)).len(), 500);
    }
}

#[derive(Default)]
struct Reasons(Mutex<Vec<&'static str>>);

impl EventListener for Reasons {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionBegin(compaction) = event {
            self.0.lock().unwrap().push(compaction.reason);
        }
    }
}

/// A queue whose head is deleted: its tables go down, and the deletions with their entries are gone.
#[test]
fn deletions_meet_what_they_delete_by_the_name_of_the_collector() {
    let dir = tempfile::tempdir().unwrap();
    let options =
        "table_properties_collectors={id=CompactOnDeletionCollector;window_size=100;deletion_trigger=50;}";
    Db::builder(dir.path()).options(options).open().unwrap().close().unwrap();
    // The stored setting acts.
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.recovery().unserved, Vec::<String>::new());
    for n in 0..1000 {
        db.put(format!("job{n:04}"), "work").unwrap();
    }
    db.compact().unwrap();
    for n in 0..40 {
        db.delete(format!("job{n:04}")).unwrap();
    }
    for n in 0..60 {
        db.put(format!("job{n:04} again"), "work").unwrap();
    }
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    let shape = |db: &Db| {
        let tables = db.default_family().properties_of_all_tables().unwrap();
        tables
            .iter()
            .map(|t| (t.level.0, t.stored.num_entries.unwrap(), t.stored.num_deletions.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(shape(&db), [(0, 100, 40), (6, 1000, 0)], "too few deletions");
    for n in 100..160 {
        db.delete(format!("job{n:04}")).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_background().unwrap();
    assert_eq!(shape(&db)[..1], [(0, 100, 40)]);
    assert_eq!(shape(&db)[1..], [(6, 940, 0)], "by the mark alone");
    db.compact().unwrap();
    assert_eq!(shape(&db), [(6, 960, 0)]);
}

#[test]
fn names_that_cannot_be_stored_are_refused() {
    #[derive(Debug)]
    struct Called(&'static str);
    impl TablePropertiesCollectorFactory for Called {
        fn name(&self) -> &str {
            self.0
        }
        fn create(&self, _: &CollectorContext<'_>) -> Option<Box<dyn TablePropertiesCollector>> {
            None
        }
    }
    for (name, why) in [
        ("", "has an empty name"),
        ("CompactOnDeletionCollector", "has the name of a built-in one"),
        ("a:b", "does not come back from an OPTIONS file"),
        ("{a}", "does not come back"),
        ("a=b", "does not come back"),
        ("a,b", "does not come back"),
        (" a", "does not come back"),
        ("a\nb", "does not come back"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let builder = Db::builder(dir.path());
        let e = builder.default_family(move |f| f.table_properties_collector(Arc::new(Called(name)))).open();
        let e = e.unwrap_err().to_string();
        assert!(e.contains(why) && e.contains("collector of table properties"), "{name:?}: {e}");
    }
    let wrong =
        Db::builder(tempfile::tempdir().unwrap().path()).options("table_properties_collectors=Mine").open();
    assert!(wrong.unwrap_err().to_string().contains("\"Mine\" is not built in"));
}
