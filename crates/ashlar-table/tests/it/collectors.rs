//! Collectors see what a table takes, their properties are in it, and a wrong one costs no table.

use crate::fixture::{identity, key};
use ashlar_base::ext::table_properties_collector::{
    CollectedEntry, CollectorContext, TablePropertiesCollector, TablePropertiesCollectorFactory,
    UserProperties,
};
use ashlar_base::{Error, FileNumber, Level, Order, Result, SeqNum, ValueType};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_table::{
    CollectorFailure, ReaderOptions, SstWriter, SstWriterInput, TableBuilder, TableIdentity, TableOptions,
    TableReader, TableSummary,
};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Where a collector goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wrong {
    Nowhere,
    FailsAtEntry(usize),
    PanicsAtEntry(usize),
    PanicsAtBlock,
    FailsAtEnd,
    PanicsAtEnd,
    PanicsInAnswer,
    PanicsAtDrop,
    PanicsAtBegin,
    Declines,
}

/// What collectors of all tables saw, line by line.
type Seen = Arc<Mutex<Vec<String>>>;

#[derive(Debug)]
struct Maker {
    name: &'static str,
    wrong: Wrong,
    seen: Seen,
    gives: Vec<(&'static str, Vec<u8>)>,
}

fn maker(name: &'static str, wrong: Wrong) -> Maker {
    Maker { name, wrong, seen: Seen::default(), gives: Vec::new() }
}

impl TablePropertiesCollectorFactory for Maker {
    fn name(&self) -> &str {
        self.name
    }

    fn create(&self, context: &CollectorContext<'_>) -> Option<Box<dyn TablePropertiesCollector>> {
        assert_ne!(self.wrong, Wrong::PanicsAtBegin, "on purpose");
        let line = format!("{:?} {:?} {:?}", context.family, context.family_name, context.level);
        self.seen.lock().unwrap().push(line);
        let gives = self.gives.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.clone()));
        let collector =
            Counter { wrong: self.wrong, seen: Arc::clone(&self.seen), entries: 0, gives: gives.collect() };
        (self.wrong != Wrong::Declines).then(|| Box::new(collector) as _)
    }
}

#[derive(Debug)]
struct Counter {
    wrong: Wrong,
    seen: Seen,
    entries: usize,
    gives: UserProperties,
}

impl TablePropertiesCollector for Counter {
    fn add(&mut self, entry: &CollectedEntry<'_>) -> Result<()> {
        let (key, value) = (entry.key.escape_ascii(), entry.value.len());
        let line = format!("{key} {value} {:?} {}", entry.kind, entry.sequence);
        self.seen.lock().unwrap().push(line);
        self.entries += 1;
        match self.wrong {
            Wrong::FailsAtEntry(at) if at == self.entries => Err(Error::invalid("no more")),
            Wrong::PanicsAtEntry(at) if at == self.entries => panic!("on purpose"),
            _ => Ok(()),
        }
    }

    fn close_block(&mut self, raw_bytes: u64) {
        assert_ne!(self.wrong, Wrong::PanicsAtBlock, "on purpose");
        assert!(raw_bytes > 0);
        self.seen.lock().unwrap().push("block".to_owned());
    }

    fn finish(&mut self) -> Result<UserProperties> {
        assert_ne!(self.wrong, Wrong::PanicsAtEnd, "on purpose");
        if self.wrong == Wrong::FailsAtEnd {
            return Err(Error::invalid("nothing to give"));
        }
        let mut gives = self.gives.clone();
        gives.insert(b"count".to_vec(), self.entries.to_string().into_bytes());
        Ok(gives)
    }

    fn needs_compaction(&self) -> bool {
        assert_ne!(self.wrong, Wrong::PanicsInAnswer, "on purpose");
        true
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        assert_ne!(self.wrong, Wrong::PanicsAtDrop, "on purpose");
    }
}

fn seq(n: u64) -> SeqNum {
    SeqNum::new(n).unwrap()
}

/// Writes 200 entries and two range deletions; returns the table, what was written, and the expected lines.
fn written(options: &TableOptions) -> (Arc<TableReader>, TableSummary, Vec<String>) {
    let env = Env::mem();
    let path = Path::new("/db/000009.sst");
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let identity = TableIdentity { level: Some(Level(3)), ..identity() };
    let mut builder = TableBuilder::new(env.fs.create(path).unwrap(), options.clone(), identity).unwrap();
    let kinds = [ValueType::Put, ValueType::Delete, ValueType::SingleDelete, ValueType::Merge];
    let mut expected = vec!["Some(FamilyId(0)) \"default\" Some(Level(3))".to_owned()];
    for n in 0..200usize {
        let (name, kind) = (format!("key{n:04}"), kinds[n % 4]);
        let value = vec![b'v'; if n % 4 == 0 { 30 } else { n % 4 - 1 }];
        builder.add(key(name.as_bytes(), n as u64 + 1, kind).as_key(), &value).unwrap();
        expected.push(format!("{name} {} {kind:?} {}", value.len(), n + 1));
    }
    for (begin, end) in [("a", "bb"), ("x", "zzz")] {
        builder.add_range_tombstone(begin.as_bytes(), end.as_bytes(), seq(500)).unwrap();
        expected.push(format!("{begin} {} RangeDelete 500", end.len()));
    }
    let summary = builder.finish().unwrap();
    let options = ReaderOptions::new(Order::Bytewise, FramePool::new(1 << 20), FileNumber(9));
    let table = TableReader::open(env.fs.open_read(path).unwrap(), summary.size, options).unwrap();
    assert_eq!(table.verify().unwrap(), 200);
    (table, summary, expected)
}

fn with(makers: Vec<Maker>) -> TableOptions {
    let mut options = TableOptions { compression: Compression::None, block_size: 512, ..Default::default() };
    makers.into_iter().for_each(|maker| options.add_collector(Arc::new(maker)));
    options
}

#[test]
fn a_collector_sees_every_entry_and_its_properties_are_in_the_table() {
    let mut one = maker("one", Wrong::Nowhere);
    one.gives = vec![("a first", vec![0, 255]), ("zz", Vec::new()), ("rocksdc", vec![7; 70_000])];
    let seen = Arc::clone(&one.seen);
    let (plain, without, _) = written(&with(Vec::new()));
    assert!(!without.needs_compaction && plain.properties().collected().is_empty());
    assert_eq!(plain.properties().property_collectors.as_deref(), Some("[]"));
    let (table, summary, expected) = written(&with(vec![one, maker("two", Wrong::Declines)]));
    assert!(summary.needs_compaction && summary.collector_failures.is_empty());
    let lines = std::mem::take(&mut *seen.lock().unwrap());
    let (blocks, entries): (Vec<_>, Vec<_>) = lines.into_iter().partition(|line| line == "block");
    assert_eq!(entries, expected);
    assert_eq!(Some(blocks.len() as u64), table.properties().num_data_blocks);
    let collected: Vec<_> = table.properties().collected().into_iter().collect();
    let given = [(&b"a first"[..], vec![0, 255]), (b"count", b"202".to_vec()), (b"rocksdc", vec![7; 70_000])];
    assert_eq!(collected[..3], given.map(|(name, value)| (name.to_vec(), value)));
    assert_eq!(collected[3], (b"zz".to_vec(), Vec::new()));
    assert_eq!(table.properties().property_collectors.as_deref(), Some("[one,two]"));
}

#[test]
fn a_wrong_collector_costs_its_properties_and_nothing_else() {
    let wrong = [
        (Wrong::FailsAtEntry(1), "no more"),
        (Wrong::FailsAtEntry(202), "no more"),
        (Wrong::PanicsAtEntry(77), "it panicked"),
        (Wrong::PanicsAtBlock, "it panicked"),
        (Wrong::FailsAtEnd, "nothing to give"),
        (Wrong::PanicsAtEnd, "it panicked"),
        (Wrong::PanicsInAnswer, "it panicked"),
        (Wrong::PanicsAtBegin, "the factory panicked"),
    ];
    let (plain, without, _) = written(&with(Vec::new()));
    for (wrong, cause) in wrong {
        let (bad, good) = (maker("bad", wrong), maker("good", Wrong::Nowhere));
        let seen = (Arc::clone(&bad.seen), Arc::clone(&good.seen));
        let (table, summary, expected) = written(&with(vec![bad, good]));
        let [CollectorFailure { collector, cause: reported }] = &summary.collector_failures[..] else {
            panic!("{wrong:?}: {:?}", summary.collector_failures)
        };
        assert!(collector == "bad" && reported.contains(cause), "{wrong:?}: {reported}");
        assert_eq!(
            table.properties().collected().into_iter().collect::<Vec<_>>(),
            [(b"count".to_vec(), b"202".to_vec())]
        );
        assert_eq!((summary.entries, summary.needs_compaction), (without.entries, true), "{wrong:?}");
        assert_eq!(table.properties().num_entries, plain.properties().num_entries);
        if let Wrong::FailsAtEntry(at) | Wrong::PanicsAtEntry(at) = wrong {
            let lines = seen.0.lock().unwrap().iter().filter(|line| *line != "block").count();
            assert_eq!(lines, at + 1, "{wrong:?}: it is called no more");
        }
        let lines = seen.1.lock().unwrap().iter().filter(|line| *line != "block").count();
        assert_eq!(lines, expected.len(), "{wrong:?}: the other one is");
    }
    // A panic when it is dropped takes nothing back.
    let (table, summary, _) = written(&with(vec![maker("bad", Wrong::PanicsAtDrop)]));
    assert!(summary.needs_compaction && table.properties().collected().len() == 1);
    // A panic at the drop of an unfinished table is contained too.
    let env = Env::mem();
    let file = env.fs.create(Path::new("/000010.sst")).unwrap();
    let options = with(vec![maker("bad", Wrong::PanicsAtDrop)]);
    drop(TableBuilder::new(file, options, identity()).unwrap());
}

#[test]
fn names_of_the_engine_and_taken_names_are_left_out() {
    let mut one = maker("one", Wrong::Nowhere);
    one.gives = vec![
        ("", vec![1]),
        ("rocksdb.num.entries", vec![9]),
        ("rocksdb.mine", vec![1]),
        ("Rocksdb.num.entries", vec![2]),
    ];
    let mut two = maker("two", Wrong::Nowhere);
    two.gives = vec![("count", b"other".to_vec()), ("Rocksdb.num.entries", vec![3]), ("second", vec![4])];
    let (table, summary, _) = written(&with(vec![one, two]));
    let said = table.properties();
    assert_eq!(said.num_entries, Some(202));
    let collected = said.collected();
    assert_eq!(collected[&b"Rocksdb.num.entries"[..]], [2]);
    assert_eq!((&collected[&b"count"[..]][..], &collected[&b"second"[..]][..]), (&b"202"[..], &[4][..]));
    assert_eq!((collected.len(), said.other.len()), (3, 3));
    let reported: Vec<_> = summary.collector_failures.iter().map(|f| f.cause.as_str()).collect();
    assert!(reported[0].ends_with("taken: \"\", \"rocksdb.mine\", \"rocksdb.num.entries\""), "{reported:?}");
    assert!(reported[1].ends_with("taken: \"Rocksdb.num.entries\", \"count\""), "{reported:?}");
}

#[test]
fn properties_that_readers_could_not_hold_are_left_out() {
    let (mut large, mut larger) = (maker("large", Wrong::Nowhere), maker("larger", Wrong::Nowhere));
    large.gives = vec![("a", vec![1; 40 << 20])];
    larger.gives = vec![("b", vec![2; 40 << 20])];
    let (table, summary, _) = written(&with(vec![large, larger, maker("small", Wrong::Declines)]));
    let collected = table.properties().collected();
    assert_eq!(collected.keys().map(Vec::as_slice).collect::<Vec<_>>(), [&b"a"[..], b"count"]);
    assert_eq!(summary.collector_failures.len(), 1);
    let CollectorFailure { collector, cause } = &summary.collector_failures[0];
    assert!(collector == "larger" && cause.contains("a table takes 67108864"), "{cause}");
}

#[test]
fn a_file_to_be_ingested_has_its_collectors_too() {
    let env = Env::mem();
    env.fs.create_dir_all(Path::new("/out")).unwrap();
    let (good, bad) = (maker("good", Wrong::Nowhere), maker("bad", Wrong::PanicsAtEnd));
    let seen = Arc::clone(&good.seen);
    let mut writer = SstWriter::create(SstWriterInput {
        fs: Arc::clone(&env.fs),
        path: "/out/a.sst".into(),
        table: with(vec![good, bad]),
        session_id: "ABCDEFGHIJKLMNOPQRST".to_owned(),
        unix_secs: 7,
    })
    .unwrap();
    writer.add(ValueType::Put, b"k", b"v").unwrap();
    let written = writer.finish().unwrap();
    assert_eq!(written.collector_failures.len(), 1);
    assert_eq!(*seen.lock().unwrap(), ["None \"\" None", "k 1 Put 0", "block"]);
    let options = ReaderOptions::new(Order::Bytewise, FramePool::new(1 << 20), FileNumber(1));
    let table = TableReader::open(env.fs.open_read(&written.path).unwrap(), written.size, options).unwrap();
    assert_eq!(table.properties().collected()[&b"count"[..]], b"1");
}

#[test]
fn a_collector_takes_the_place_of_one_with_its_name() {
    let mut first = maker("same", Wrong::Nowhere);
    first.gives = vec![("from the first", Vec::new())];
    let options = with(vec![first, maker("other", Wrong::Declines), maker("same", Wrong::Nowhere)]);
    let (table, ..) = written(&options);
    assert_eq!(table.properties().property_collectors.as_deref(), Some("[same,other]"));
    assert_eq!(table.properties().collected().len(), 1);
}
