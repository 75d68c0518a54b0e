//! Edits as text: `+L number smallest..largest seqs` adds, `-L number` deletes; `/` separates edits.

use super::*;
use crate::version::OpenTables;
use ashlar_base::{ErrorKind, InternalKeyBuf, LookupKey, Trailer, ValueType};
use ashlar_cache::FramePool;
use ashlar_env::Env;

pub(crate) fn tables(order: Order) -> Arc<Tables> {
    Tables::new(Env::mem(), "/db".into(), OpenTables::new(FramePool::new(1 << 20)), order)
}

fn seq(n: u64) -> SeqNum {
    SeqNum::new(n).unwrap()
}

fn key(text: &str, default_seq: u64) -> InternalKeyBuf {
    let (user, n) = text.split_once('#').map_or((text, default_seq), |(u, n)| (u, n.parse().unwrap()));
    InternalKeyBuf::new(user.as_bytes(), Trailer::new(seq(n), ValueType::Put))
}

/// `number a..c 3-7 [eEPOCH]`
pub(crate) fn file(text: &str) -> NewFile {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (low, high) = words[2].split_once('-').unwrap();
    let (low, high): (u64, u64) = (low.parse().unwrap(), high.parse().unwrap());
    let (smallest, largest) = words[1].split_once("..").unwrap();
    let keys = (key(smallest, high), key(largest, low));
    let mut file = NewFile::new(FileNumber(words[0].parse().unwrap()), 100, keys, (seq(low), seq(high)));
    if let Some(epoch) = words.get(3) {
        file.epoch = epoch.strip_prefix('e').unwrap().parse().unwrap();
    }
    file
}

pub(crate) fn edit(text: &str) -> VersionEdit {
    let mut edit = VersionEdit::default();
    for part in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let (sign, rest) = part.split_at(1);
        let (level, rest) = rest.split_once(' ').unwrap();
        let level = Level(level.parse().unwrap());
        match sign {
            "+" => edit.add_file(level, file(rest)),
            "-" => edit.delete_file(level, FileNumber(rest.parse().unwrap())),
            _ => panic!("{part}"),
        }
    }
    edit
}

fn edits(text: &str) -> Vec<VersionEdit> {
    text.split('/').map(edit).collect()
}

fn apply(text: &str) -> Result<Version> {
    Version::empty(4, tables(Order::Bytewise)).apply(&edits(text))
}

/// `L0 3 1 | L1 7` and so on.
fn shape(version: &Version) -> String {
    let level = |(n, files): (usize, &Vec<Arc<FileMeta>>)| {
        let numbers: Vec<String> = files.iter().map(|f| f.number().0.to_string()).collect();
        format!("L{n} {}", numbers.join(" "))
    };
    let parts: Vec<String> =
        version.levels.iter().enumerate().filter(|(_, f)| !f.is_empty()).map(level).collect();
    parts.join(" | ")
}

#[test]
fn edits_that_fit() {
    for (text, expected) in [
        ("", ""),
        ("+0 1 a..c 1-3 e1, +0 2 a..c 4-6 e2", "L0 2 1"),
        ("+0 2 a..c 4-6 e2 / +0 1 a..c 1-3 e1", "L0 2 1"),
        ("+1 5 m..p 1-9, +1 4 a..c 1-9, +1 6 d..e 1-9", "L1 4 6 5"),
        ("+0 1 a..c 1-3 e1 / -0 1, +1 1 a..c 1-3 e1", "L1 1"),
        ("+0 1 a..c 1-3 e1 / -0 1, +2 7 a..c 1-3 e1", "L2 7"),
        // Without epochs the sequences order level 0, then the numbers.
        ("+0 1 a..c 7-9, +0 2 a..c 1-3, +0 3 a..c 4-6", "L0 1 3 2"),
        ("+0 1 a..c 0-9, +0 3 a..c 0-9, +0 2 a..c 0-9", "L0 3 2 1"),
        // The epoch is stronger than the sequence: a file ingested behind others.
        ("+0 1 a..c 7-9 e1, +0 2 a..c 1-3 e2", "L0 2 1"),
        // Equal epochs are fine when the files do not overlap.
        ("+0 1 a..c 7-9 e4, +0 2 d..e 1-3 e4", "L0 1 2"),
        // One user key may span a file border when the sequences descend.
        ("+1 1 a..c#5 1-9, +1 2 c#4..e 1-9", "L1 1 2"),
    ] {
        assert_eq!(shape(&apply(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn every_broken_rule_is_named() {
    for (text, expected) in [
        ("-0 1", "deletes table 000001, which is not in the tree"),
        ("+0 1 a..c 1-3 / -1 1", "deletes table 000001 from L1, but it is in L0"),
        ("+0 1 a..c 1-3 / +1 1 a..c 1-3", "adds table 000001 to L1, but it is in the tree already, in L0"),
        ("+0 1 a..c 1-3, +0 1 a..c 1-3", "it is in the tree already"),
        ("+0 1 a..c 1-3 / -0 1, -0 1", "deletes table 000001, which is not in the tree"),
        ("+0 9223372036854775807 a..c 1-3", "a number over 62 bits"),
        ("+1 1 c..a 1-3", "its smallest key"),
        ("+1 1 a#3..a#5 1-9", "is above its largest"),
        ("+1 1 a..c 5-3", "its smallest sequence 5 is above its largest 3"),
        (
            "+1 1 a..c 1-3, +1 2 b..d 4-6",
            "tables overlap in L1: 1[a#3,Put .. c#1,Put] and 2[b#6,Put .. d#4,Put]",
        ),
        ("+1 1 a..c#5 1-9, +1 2 c#5..e 1-9", "tables overlap in L1"),
        ("+1 1 a..c#4 1-9, +1 2 c#5..e 1-9", "tables overlap in L1"),
        ("+0 1 a..c 1-3 e2, +0 2 c..d 4-6 e2", "tables of epoch 2 overlap in L0"),
    ] {
        let e = apply(text).unwrap_err();
        assert!(e.is_corruption(), "{text}: {e}");
        assert!(e.to_string().contains(expected), "{text}: {e}");
    }
    // More levels than the family has are no damage.
    let e = apply("+4 1 a..c 1-3").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotSupported);
    assert!(e.to_string().contains("table 000001 is in L4, but a family has 4 levels at most"), "{e}");
}

#[test]
fn a_failed_edit_leaves_the_version_alone() {
    let version = apply("+0 1 a..c 1-3 e1").unwrap();
    assert!(version.apply(&edits("-0 1, +1 2 z..a 1-1")).is_err());
    assert_eq!(shape(&version), "L0 1");
}

#[test]
fn a_trivial_move_keeps_the_file() {
    let version = apply("+0 1 a..c 1-3 e1").unwrap();
    let moved = version.apply(&edits("-0 1, +3 1 a..c 1-3 e1")).unwrap();
    assert!(Arc::ptr_eq(&version.levels[0][0], &moved.levels[3][0]));
    let changed = version.apply(&edits("-0 1, +3 1 a..c 1-3 e9")).unwrap();
    assert_eq!(changed.levels[3][0].file.epoch, 9);
}

#[test]
fn custom_orders_decide_overlap() {
    let version = Version::empty(4, tables(Order::ReverseBytewise));
    let reversed = version.apply(&edits("+1 1 c..a 1-3, +1 2 z..x 1-3")).unwrap();
    assert_eq!(shape(&reversed), "L1 2 1");
    assert!(version.apply(&edits("+1 1 a..c 1-3")).is_err());
}

#[test]
fn queries_find_what_overlaps() {
    let version = apply(
        "+0 1 a..c 1-3 e1, +0 2 m..p 4-6 e2, +0 3 b..n 7-9 e3, +1 4 a..c 1-1, +1 5 f..h 1-1, +1 6 k..k 1-1",
    )
    .unwrap();
    let found = |level, low: &str, high: &str| {
        let files = version.overlapping(Level(level), low.as_bytes(), high.as_bytes());
        files.iter().map(|f| f.number().0).collect::<Vec<_>>()
    };
    assert_eq!(found(0, "a", "b"), [3, 1]);
    assert_eq!(found(0, "q", "z"), [0u64; 0]);
    assert_eq!(found(0, "n", "m"), [3, 2], "a reversed range is still looked at end by end");
    assert_eq!(found(1, "c", "f"), [4, 5]);
    assert_eq!(found(1, "d", "e"), [0u64; 0]);
    assert_eq!(found(1, "", "~"), [4, 5, 6]);
    assert_eq!(found(9, "", "~"), [0u64; 0]);
    let find =
        |k: &str| version.find_file(Level(1), &LookupKey::new(k.as_bytes(), seq(100))).map(|f| f.number().0);
    assert_eq!(
        ["a", "b", "c", "d", "f", "k", "l", ""].map(find),
        [Some(4), Some(4), Some(4), None, Some(5), Some(6), None, None]
    );
    assert_eq!(version.level_bytes(Level(1)), 300);
    assert_eq!(version.file_count(), 6);
}

#[test]
fn a_key_that_spans_files_is_found_by_sequence() {
    let version = apply("+1 1 a..c#5 1-9, +1 2 c#4..e 1-9").unwrap();
    let find = |s| version.find_file(Level(1), &LookupKey::new(b"c", seq(s))).map(|f| f.number().0);
    assert_eq!([9, 5, 4, 1].map(find), [Some(1), Some(1), Some(2), Some(2)]);
}

#[test]
fn missing_epochs_are_inferred() {
    let mut builder = TreeBuilder::default();
    builder
        .apply(&edit(
            "+0 1 a..c 4-6, +0 2 a..c 7-9 e9, +0 3 a..c 1-3, +3 4 a..c 0-0, +3 5 d..e 0-0, +1 6 a..c 0-0",
        ))
        .unwrap();
    builder.complete(&Order::Bytewise, seq(9));
    let version = builder.finish(4, &tables(Order::Bytewise)).unwrap();
    assert_eq!(shape(&version), "L0 2 1 3 | L1 6 | L3 4 5");
    let mut epochs: Vec<_> = version.files().map(|(_, f)| (f.number().0, f.file.epoch)).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, [(1, 4), (2, 5), (3, 3), (4, 1), (5, 1), (6, 2)]);
    assert_eq!(builder.max_epoch(), 5);
}

#[test]
fn epochs_that_are_there_stay() {
    let mut builder = TreeBuilder::default();
    builder.apply(&edit("+0 1 a..c 4-6 e7, +1 6 a..c 1-1 e3")).unwrap();
    builder.complete(&Order::Bytewise, seq(9));
    let version = builder.finish(4, &tables(Order::Bytewise)).unwrap();
    assert_eq!(version.levels[0][0].file.epoch, 7);
    assert_eq!(version.levels[1][0].file.epoch, 3);
}

#[test]
fn leveldb_files_get_the_widest_range() {
    let mut builder = TreeBuilder::default();
    let mut e = edit("+0 4 a..c 0-0, +0 5 a..c 0-0, +2 3 a..c 0-0");
    for (_, f) in &mut e.added {
        f.sequences_unknown = true;
    }
    builder.apply(&e).unwrap();
    assert_eq!(builder.count_of_unknown_sequences(), 3);
    builder.complete(&Order::Bytewise, seq(31));
    let version = builder.finish(4, &tables(Order::Bytewise)).unwrap();
    assert_eq!(shape(&version), "L0 5 4 | L2 3", "the highest number is the newest");
    for (_, f) in version.files() {
        assert_eq!((f.file.smallest_seq, f.file.largest_seq), (seq(0), seq(31)));
        assert!(!f.file.sequences_unknown && f.file.epoch != 0);
    }
}

#[test]
fn bounds_without_timestamps_get_those_that_the_table_reader_gives_to_keys() {
    let order =
        ashlar_base::ext::timestamp_order::timestamp_order("leveldb.BytewiseComparator.u64ts").unwrap();
    let mut builder = TreeBuilder::default();
    let bounds = (key("b", 1), InternalKeyBuf::new(b"d", Trailer::RANGE_END));
    let mut file = NewFile::new(FileNumber(7), 100, bounds, (seq(1), seq(5)));
    file.timestamps_persisted = false;
    builder.apply(&VersionEdit { added: vec![(Level(0), file)], ..VersionEdit::default() }).unwrap();
    builder.complete(&order, seq(9));
    let (_, file) = builder.files.first_key_value().unwrap().1;
    assert_eq!(file.smallest().user_key(), b"b\0\0\0\0\0\0\0\0");
    assert_eq!(file.largest().user_key(), b"d\xff\xff\xff\xff\xff\xff\xff\xff");
    // Every version of a key below the end is inside, no version of the end itself is.
    assert!(file.holds(&order, b"c\xff\xff\xff\xff\xff\xff\xff\xff"));
    assert!(!file.holds(&order, b"d\xff\xff\xff\xff\xff\xff\xff\xff"));
}
