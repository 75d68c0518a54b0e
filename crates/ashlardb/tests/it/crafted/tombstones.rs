//! Range tombstones that all overlap.

use super::judge;
use super::kit::{Directory, TableFile, block, index, key, put};
use ashlar_base::{FamilyId, SeqNum, ValueType};
use ashlar_format::block::BlockBuilder;
use ashlar_format::table::MetaIndex;
use ashlar_format::write_batch::BatchEncoder;

fn log(ranges: impl Iterator<Item = (String, String)>) -> Directory {
    let mut batch = BatchEncoder::new();
    batch.put(FamilyId::DEFAULT, b"k", b"v").unwrap();
    let dir = Directory::new();
    ranges.for_each(|(begin, end)| {
        batch.delete_range(FamilyId::DEFAULT, begin.as_bytes(), end.as_bytes()).unwrap();
    });
    batch.put(FamilyId::DEFAULT, b"z", b"v").unwrap();
    dir.log(9, &[batch.finish(SeqNum::new(101).unwrap()).to_vec()]);
    dir
}

fn is_read_and_flushed(dir: Directory) {
    let dir = dir.finish();
    let verdict = judge(dir.path());
    for (step, said) in
        [("forward", "1 entries"), ("backward", "1 entries"), ("get", "None"), ("check", "sound")]
    {
        assert_eq!(verdict.of(step), said, "{verdict:#?}");
    }
    for (step, said) in
        [("write", "fine"), ("repair", "fine"), ("after", "2 entries"), ("check after", "sound")]
    {
        assert_eq!(verdict.of(step), said, "{verdict:#?}");
    }
}

#[test]
fn a_log_of_ranges_inside_one_another_costs_little() {
    let count = 5000;
    is_read_and_flushed(log((0..count).map(|i| (format!("a{i:06}"), format!("t{:06}", count - i)))));
}

/// Everything before a mark is deleted again and again, as the mark moves on.
#[test]
fn a_log_of_a_moving_watermark_costs_little() {
    is_read_and_flushed(log((0..4000).map(|i| ("k".to_owned(), format!("k{i:06}")))));
}

#[test]
fn a_table_of_ranges_inside_one_another_costs_little() {
    const COUNT: u64 = 20_000;
    let mut file = TableFile::new();
    let mut ranges = BlockBuilder::new(1);
    for i in 0..COUNT {
        let begin = key(format!("a{i:06}").as_bytes(), 2 + i, ValueType::RangeDelete);
        ranges.add(begin.as_key().encoded(), format!("t{:06}", COUNT - i).as_bytes());
    }
    let handle = file.raw(ranges.finish());
    file.meta.set(MetaIndex::RANGE_DELETIONS, handle);
    let handle = file.raw(&block(&[(put("k", 1), b"v"), (put("z", 1), b"v")]));
    let root = file.raw(&index(&[(put("z", 1), handle)]));
    let mut dir = Directory::new();
    dir.edit.last_seq = SeqNum::new(COUNT + 10);
    let smallest = key(b"a000000", 2, ValueType::RangeDelete);
    dir.table(7, 1, &file.finish(root), (smallest, put("z", 1)), (1, COUNT + 1));
    is_read_and_flushed(dir);
}
