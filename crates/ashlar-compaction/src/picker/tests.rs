//! Pickers by text: a shape of the tree in, the compaction out.
//!
//! A shape has one line per level in use. `L1 7:b-f*30 8:f-k!` is file 7 with user keys b to f and size 30, and file 8
//! with size 10, which a compaction has claimed. `9:b-c@4` is a file whose oldest blob file is 4. `9:a-b~60` has 60
//! deletions among its 100 entries; `9:a-b~60s` is also spent. Level 0 is sorted newest first. Sizes are in units of 1
//! MiB.

use super::blob_gc::pick_blob_garbage;
use super::tombstones::awaited_snapshot;
use super::*;
use crate::{Action, Compaction, Running};
use ashlar_base::{FileNumber, InternalKeyBuf, Level, Order, SeqNum, Trailer, ValueType};
use ashlar_blob::{BlobAmount, BlobOptions, LiveBlobFile};
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_format::version_edit::NewFile;
use ashlar_options::{CompactionOptions, DbPath};
use ashlar_table::TableOptions;
use ashlar_tree::blobs::BlobFiles;
use ashlar_tree::version::{FileMeta, TableCounts};
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

struct Tree {
    order: Order,
    levels: Vec<Vec<Arc<FileMeta>>>,
}

impl Tree {
    fn shape(&self) -> Shape<'_> {
        Shape { order: &self.order, levels: &self.levels, table: None, paths: &[], arriving: false }
    }
}

fn file(text: &str) -> Arc<FileMeta> {
    let (text, busy) = text.strip_suffix('!').map_or((text, false), |t| (t, true));
    let (text, deletions) = text.split_once('~').map_or((text, ""), |(t, d)| (t, d));
    let (number, rest) = text.split_once(':').unwrap();
    let (rest, blob) = rest.split_once('@').unwrap_or((rest, "0"));
    let (range, size) = rest.split_once('*').unwrap_or((rest, "10"));
    let (from, to) = range.split_once('-').unwrap();
    let number: u64 = number.parse().unwrap();
    let key = |user: &str, seq: u64| {
        InternalKeyBuf::new(user.as_bytes(), Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put))
    };
    let seqs = (SeqNum::new(number).unwrap(), SeqNum::new(number + 1).unwrap());
    let size = size.parse::<u64>().unwrap() * MIB;
    let mut new = NewFile::new(FileNumber(number), size, (key(from, number + 1), key(to, number)), seqs);
    new.oldest_blob_file = FileNumber(blob.parse().unwrap());
    let file = FileMeta::new(new);
    file.set_compacting(busy);
    if !deletions.is_empty() {
        let spent = deletions.ends_with('s');
        let deletions = deletions.trim_end_matches('s').parse().unwrap();
        file.note_counts(Some(TableCounts { entries: 100, deletions, spent, ..TableCounts::default() }));
    }
    file
}

fn tree(text: &str) -> Tree {
    let mut levels = vec![vec![]; 7];
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let mut words = line.split_whitespace();
        let level: usize = words.next().unwrap()[1..].parse().unwrap();
        levels[level] = words.map(file).collect();
    }
    Tree { order: Order::Bytewise, levels }
}

fn picked(text: &str) -> String {
    let t = tree(text);
    pick_overfull(&t.shape(), &options(), &[]).map_or("nothing".into(), |c| c.to_string())
}

/// Trigger 4, base 100 MiB, target 10 MiB, compactions of at most 100 MiB.
fn options() -> CompactionOptions {
    CompactionOptions {
        target_file_bytes: 10 * MIB,
        base_level_bytes: 100 * MIB,
        max_compaction_bytes: 100 * MIB,
        ..CompactionOptions::default()
    }
}

#[test]
fn level0_waits_for_its_trigger() {
    assert_eq!(picked(""), "nothing");
    assert_eq!(picked("L0 3:a-z 2:a-z 1:a-z"), "nothing");
    assert_eq!(picked("L0 4:a-z 3:a-z 2:a-z 1:a-z"), "L0[4 3 2 1] -> L6 level0 bottommost");
    assert_eq!(picked("L0 1:a-z*100"), "L0[1] -> L6 level0 move bottommost");
}

#[test]
fn level0_goes_to_the_base_with_what_it_meets() {
    assert_eq!(
        picked("L0 14:c-f 13:d-k 12:a-e 11:b-c \n L6 1:a-b 2:c-d 3:e-f 4:l-m"),
        "L0[14 13 12 11] + L6[1 2 3] -> L6 level0 bottommost"
    );
    // 250 MiB in L6: the base is L5, and L6 lies beneath.
    assert_eq!(
        picked("L0 14:c-f 13:d-k 12:a-e 11:b-c \n L6 1:a-b*90 2:c-d*90 3:s-t*70"),
        "L0[14 13 12 11] -> L5 level0"
    );
}

/// The compaction picked while a flush is running.
fn picked_before_a_flush(text: &str) -> String {
    let t = tree(text);
    pick_overfull(&Shape { arriving: true, ..t.shape() }, &options(), &[])
        .map_or("nothing".into(), |c| c.to_string())
}

#[test]
fn level0_waits_for_a_table_on_its_way_where_the_base_costs_more() {
    let dear = "L0 9:a-z 8:a-z 7:a-z 6:a-z\nL6 1:a-z*90";
    assert_ne!(picked(dear), "nothing");
    assert_eq!(picked_before_a_flush(dear), "nothing");
    let cheap = "L0 9:a-z 8:a-z 7:a-z 6:a-z\nL6 1:a-z*20";
    assert_eq!(picked_before_a_flush(cheap), picked(cheap));
    let many = "L0 13:a-z 12:a-z 11:a-z 10:a-z 9:a-z 8:a-z 7:a-z 6:a-z\nL6 1:a-z*90";
    assert_eq!(picked_before_a_flush(many), picked(many), "not for ever");
}

#[test]
fn level0_is_exclusive() {
    assert_eq!(picked("L0 5:a-z 4:a-z 3:a-z 2:a-z 1:a-z!"), "nothing");
    assert_eq!(picked("L0 5:a-z 4:a-z 3:a-z 2:a-z \n L6 1:c-d!"), "nothing");
}

#[test]
fn disjoint_level0_files_are_moved() {
    assert_eq!(picked("L0 4:g-h 3:e-f 2:c-d 1:a-b"), "L0[4 3 2 1] -> L6 level0 move bottommost");
    // Into a base level in use, the oldest files move as long as they overlap nothing.
    assert_eq!(picked("L0 5:a-z 4:g-h 3:e-f 2:c-d \n L6 1:a-b"), "L0[4 3 2] -> L6 level0 move bottommost");
    // Files between them in the level below do not prevent the move.
    assert_eq!(picked("L0 5:a-z 4:x-y 3:k-l 2:a-b \n L6 1:m-n"), "L0[4 3 2] -> L6 level0 move bottommost");
    // The oldest file overlaps the base level: only its group is rewritten.
    assert_eq!(picked("L0 5:x-z 4:g-h 3:e-f 2:a-d \n L6 1:a-b"), "L0[2] + L6[1] -> L6 level0 bottommost");
    assert_eq!(picked("L0 5:x-z 4:d-h 3:e-f 2:a-d \n L6 1:a-b"), "L0[4 3 2] + L6[1] -> L6 level0 bottommost");
}

#[test]
fn a_level_gives_the_file_that_meets_least_below() {
    let below = "L6 1:a-b*700 2:c-d*20 3:e-f*300 4:x-z*500";
    assert_eq!(
        picked(&format!("L5 11:a-b*60 12:c-d*60 13:e-f*60 14:g-h*60! \n {below}")),
        "L5[12] + L6[2] -> L6 level-size bottommost"
    );
    assert_eq!(
        picked(&format!("L5 11:a-b*60 12:c-d*60! 13:e-f*60 14:p-q*60 15:r-s \n {below}")),
        "L5[14] -> L6 level-size move bottommost"
    );
    // All files below are claimed.
    assert_eq!(picked("L5 11:a-b*120 12:c-d*60 \n L6 1:a-d*500! 2:e-f*600"), "nothing");
}

#[test]
fn files_that_share_a_border_key_go_together() {
    let t = tree("L5 11:a-c*60 12:c-e*60 13:e-f*60 14:g-h*60 \n L6 1:a-f*500 2:f-k*500 3:l-m*400");
    let c = pick_overfull(&t.shape(), &options(), &[]).unwrap();
    assert_eq!(c.to_string(), "L5[11 12 13] + L6[1 2] -> L6 level-size bottommost");
    assert_eq!(picked("L5 11:a-c*60 12:c-e*60! \n L6 1:a-f*500 2:f-k*500"), "nothing");
}

#[test]
fn the_upper_inputs_grow_when_that_costs_nothing_below() {
    assert_eq!(
        picked("L5 11:a-b*6 12:c-d*6 13:e-f*95 \n L6 1:a-d*20 2:e-f*980"),
        "L5[11 12] + L6[1] -> L6 level-size bottommost"
    );
    // File 13 would add another input below.
    assert_eq!(
        picked("L5 11:a-b*6 13:c-e*101 \n L6 1:a-d*20 2:e-f*980"),
        "L5[11] + L6[1] -> L6 level-size bottommost"
    );
}

#[test]
fn what_lies_beneath_is_joined_and_bounds_the_move() {
    let deep = "L5 3:f-g*100 \n L6 1:a-b*500 2:c-h*500";
    let t = tree(&format!("L3 21:k-l*10 \n L4 9:b-d*60 8:e-k*50 \n {deep}"));
    let c = pick_overfull(&t.shape(), &options(), &[]).unwrap();
    assert_eq!(c.to_string(), "L4[9] -> L5 level-size");
    assert_eq!(c.beneath, [(b"a".to_vec(), b"b".to_vec()), (b"c".to_vec(), b"h".to_vec())]);
    assert_eq!(c.grandparents.len(), 2);
    assert!(c.action == Action::Rewrite, "it would meet 1000 MiB of L6");
    assert_eq!((c.cut_limits().target_bytes, c.cut_limits().grandparents.len()), (10 * MIB, 2));
}

#[test]
fn a_claimed_range_is_left_alone() {
    let t = tree("L5 11:a-b*60 12:c-d*60 \n L6 1:x-z*1000");
    let claim = |from: &str, to: &str| Running {
        runs: 1,
        output_level: Level(6),
        smallest: from.as_bytes().to_vec(),
        largest: to.as_bytes().to_vec(),
    };
    let pick = |running: &[Running]| {
        pick_overfull(&t.shape(), &options(), running).map(|c: Compaction| c.to_string())
    };
    assert_eq!(pick(&[]).as_deref(), Some("L5[11] -> L6 level-size move bottommost"));
    assert_eq!(pick(&[claim("b", "bb")]).as_deref(), Some("L5[12] -> L6 level-size move bottommost"));
    assert_eq!(pick(&[claim("b", "m")]), None);
    assert!(pick(&[Running { output_level: Level(5), ..claim("a", "z") }]).is_some());
}

#[test]
fn upper_levels_go_first() {
    // L5 has 3 times its target, L4 1.2 times: but the bytes that come down from above lower the score of L5.
    let t = tree("L0 30:a-b*900 \n L4 20:a-b*120 \n L5 10:a-b*300 \n L6 1:a-z*1000");
    let targets = Targets::new(&[900 * MIB, 0, 0, 0, 120 * MIB, 300 * MIB, 1000 * MIB], &options());
    let order: Vec<usize> = scores(&t.shape(), &targets, &options()).iter().map(|s| s.level).collect();
    assert_eq!(&order[..3], &[0, 5, 4]);
    let all = scores(&t.shape(), &targets, &options());
    assert!(all.iter().find(|s| s.level == 5).unwrap().score < 3.0 * 10.0 / 2.0);
}

fn debt_mib(text: &str) -> u64 {
    let t = tree(text);
    let bytes: Vec<u64> = (0..7).map(|l| t.shape().bytes(l)).collect();
    debt(&t.shape(), &Targets::new(&bytes, &options()), &options()) / MIB
}

#[test]
fn absurd_sizes_do_not_overflow() {
    let mut t = tree("L0 4:a-b 3:a-b \n L5 9:a-f 8:k-l \n L6 7:a-z 6:zz-zzz");
    for level in &mut t.levels {
        for file in level {
            *file = FileMeta::new(NewFile { size: u64::MAX, ..file.file.clone() });
        }
    }
    let bytes: Vec<u64> = (0..7).map(|l| t.shape().bytes(l)).collect();
    assert!(pick_overfull(&t.shape(), &options(), &[]).is_some());
    assert_eq!(debt(&t.shape(), &Targets::new(&bytes, &options()), &options()), u64::MAX);
}

#[test]
fn debt_counts_what_must_come_down() {
    assert_eq!(debt_mib("L0 1:a-b 2:a-b 3:a-b"), 0);
    assert_eq!(debt_mib("L0 4:a-b 3:a-b 2:a-b 1:a-b"), 40);
    assert_eq!(debt_mib("L0 4:a-b 3:a-b 2:a-b 1:a-b \n L6 9:a-z*50"), 90);
    // L5 may keep 100 of its 160: 60 go down, and each rewrites 1000/160 bytes of L6.
    assert_eq!(debt_mib("L5 4:a-b*160 \n L6 9:a-z*1000"), 60 * 7);
}

/// Runs a manual compaction to its end, as if every plan were carried out at once: the inputs are replaced by one file
/// with their range, or moved unchanged.
fn manual(text: &str, begin: Option<&str>, end: Option<&str>, deepest: bool) -> Vec<String> {
    let mut t = tree(text);
    let mut range = ManualRange::new(begin.map(str::as_bytes), end.map(str::as_bytes), deepest);
    let mut done = vec![];
    for next in 100.. {
        let plan = match range.pick(&t.shape(), &options(), &[], FileNumber(next)) {
            ManualPick::Run(plan) => *plan,
            ManualPick::Blocked => {
                done.push("blocked".into());
                return done;
            }
            ManualPick::Done => return done,
        };
        done.push(plan.to_string());
        let claim = plan.running(&t.order).unwrap();
        let numbers: Vec<FileNumber> = plan.files().map(|(_, f)| f.number()).collect();
        for level in &mut t.levels {
            level.retain(|f| !numbers.contains(&f.number()));
        }
        let (from, to) =
            (String::from_utf8(claim.smallest).unwrap(), String::from_utf8(claim.largest).unwrap());
        let home = &mut t.levels[plan.output_level.index()];
        if plan.action == Action::Move {
            home.extend(plan.files().map(|(_, f)| Arc::clone(f)));
        } else {
            home.push(file(&format!("{next}:{from}-{to}*{}", plan.input_bytes() / MIB)));
        }
        home.sort_by(|a, b| a.smallest().user_key().cmp(b.smallest().user_key()));
        assert!(next < 120, "no end: {done:?}");
    }
    unreachable!()
}

#[test]
fn manual_walks_down_to_the_deepest_level() {
    assert_eq!(manual("", None, None, true), [""; 0]);
    assert_eq!(manual("L6 1:a-b", None, None, false), [""; 0]);
    assert_eq!(manual("L6 1:a-b", None, None, true), ["L6[1] -> L6 manual bottommost"]);
    assert_eq!(
        manual("L0 3:a-c 2:b-d \n L6 1:a-b*50", None, None, false),
        ["L0[3 2] + L6[1] -> L6 manual bottommost"]
    );
    assert_eq!(
        manual(
            "L0 9:c-d 8:k-l \n L5 7:a-e*50 6:k-m*20 \n L6 1:a-b*500 2:k-l*500",
            Some("b"),
            Some("d"),
            false
        ),
        ["L0[9] + L5[7] -> L5 manual", "L5[100] + L6[1] -> L6 manual bottommost"]
    );
}

#[test]
fn manual_goes_in_pieces() {
    let text = "L5 11:a-b*40 12:c-d*40 13:e-f*40 14:f-g*40 \n L6 1:a-a*10 2:x-z*900";
    assert_eq!(
        manual(text, None, None, false),
        ["L5[11 12] + L6[1] -> L6 manual bottommost", "L5[13 14] -> L6 manual move bottommost",]
    );
    // L5 is the deepest level that has the range: there is work only on request.
    assert_eq!(manual(text, Some("c"), Some("d"), false), [""; 0]);
    assert_eq!(manual(text, Some("c"), Some("d"), true), ["L5[12] -> L5 manual bottommost"]);
    assert_eq!(
        manual("L6 1:a-b*60 2:c-d*60 3:e-f*60", Some("c"), None, true),
        ["L6[2] -> L6 manual bottommost", "L6[3] -> L6 manual bottommost"]
    );
}

#[test]
fn manual_writes_no_table_twice() {
    assert_eq!(
        manual("L0 3:a-c 2:b-d \n L6 1:a-b*20 4:e-f*20 5:g-h*20", None, None, true),
        ["L0[3 2] + L6[1] -> L6 manual bottommost", "L6[4 5] -> L6 manual bottommost"]
    );
    assert_eq!(
        manual("L0 9:c-d \n L6 1:a-b*500 2:c-d*50 3:e-f*500", None, None, true),
        [
            "L0[9] -> L4 manual move",
            "L4[9] -> L5 manual move",
            "L5[9] + L6[2] -> L6 manual bottommost",
            "L6[1] -> L6 manual bottommost",
            "L6[3] -> L6 manual bottommost"
        ]
    );
    // A moved table is not a rewritten one.
    assert_eq!(
        manual("L5 2:c-d \n L6 1:a-b*500", None, None, true),
        [
            "L5[2] -> L6 manual move bottommost",
            "L6[1] -> L6 manual bottommost",
            "L6[2] -> L6 manual bottommost"
        ]
    );
}

/// A compaction that runs at the time of the request may keep data for a snapshot that was released meanwhile.
#[test]
fn manual_rewrites_what_compactions_of_before_make() {
    let t = tree("L5 2:c-d! \n L6 1:a-e!");
    let earlier =
        Running { output_level: Level(6), runs: 2, smallest: b"a".to_vec(), largest: b"e".to_vec() };
    let mut range = ManualRange::new(None, None, true);
    let running = [earlier];
    assert!(matches!(range.pick(&t.shape(), &options(), &running, FileNumber(3)), ManualPick::Blocked));
    let installed = tree("L6 3:a-b 4:c-e");
    let ManualPick::Run(plan) = range.pick(&installed.shape(), &options(), &[], FileNumber(5)) else {
        panic!("left as it is")
    };
    assert_eq!(plan.to_string(), "L6[3 4] -> L6 manual bottommost");
    let rewritten = tree("L6 5:a-e");
    assert!(matches!(range.pick(&rewritten.shape(), &options(), &[], FileNumber(6)), ManualPick::Done));
}

#[test]
fn manual_waits_for_others() {
    assert_eq!(manual("L0 3:a-c 2:b-d!", None, None, false), ["blocked"]);
    assert_eq!(manual("L5 3:a-c \n L6 1:a-b!", None, None, false), ["blocked"]);
    assert_eq!(manual("L6 1:a-b!", None, None, true), ["blocked"]);
}

#[test]
fn manual_waits_for_what_comes_down() {
    let t = tree("L0 9:c-d \n L6 1:a-e*500");
    let mut range = ManualRange::new(None, None, true);
    let next = FileNumber(10);
    let ManualPick::Run(plan) = range.pick(&t.shape(), &options(), &[], next) else {
        panic!("nothing picked")
    };
    assert_eq!(plan.to_string(), "L0[9] -> L5 manual");
    plan.set_compacting(true);
    let claims = [plan.running(&t.order).unwrap()];
    assert!(matches!(range.pick(&t.shape(), &options(), &claims, next), ManualPick::Blocked));
    plan.set_compacting(false);
    let installed = tree("L5 9:c-d \n L6 1:a-e*500");
    let ManualPick::Run(plan) = range.pick(&installed.shape(), &options(), &[], next) else {
        panic!("lost a file")
    };
    assert_eq!(plan.to_string(), "L5[9] + L6[1] -> L6 manual bottommost");
}

#[test]
fn new_files_are_merged_within_level0_while_the_way_down_is_taken() {
    let old = "4:a-z! 3:a-z! 2:a-z! 1:a-z!";
    assert_eq!(picked(&format!("L0 7:a-z 6:a-z 5:a-z {old}")), "nothing");
    assert_eq!(picked(&format!("L0 8:a-z 7:a-z 6:a-z 5:a-z {old}")), "L0[8 7 6 5] -> L0 within-level0");
    // The base level is claimed.
    let below = "L6 9:c-d!";
    assert_eq!(picked(&format!("L0 5:a-z 4:a-z 3:a-z 2:a-z 1:a-z \n {below}")), "nothing");
    assert_eq!(
        picked(&format!("L0 6:a-z 5:a-z 4:a-z 3:a-z 2:a-z 1:a-z \n {below}")),
        "L0[6 5 4 3 2 1] -> L0 within-level0"
    );
    // A large old file raises the cost per file; if the newest file is claimed, no unbroken sequence is left.
    assert_eq!(
        picked(&format!("L0 8:a-z 7:a-z 6:a-z 5:a-z 9:a-z*90 {old}")),
        "L0[8 7 6 5] -> L0 within-level0"
    );
    assert_eq!(picked(&format!("L0 9:a-z! 8:a-z 7:a-z 6:a-z 5:a-z {old}")), "nothing");
    let t = tree(&format!("L0 8:b-z 7:a-z 6:a-y 5:a-z {old}"));
    let c = pick_overfull(&t.shape(), &options(), &[]).unwrap();
    assert_eq!(c.beneath, [(b"a".to_vec(), b"z".to_vec())], "everything may lie beneath");
    assert_eq!(c.cut_limits().target_bytes, u64::MAX, "one file");
}

fn unhurried(text: &str, oldest: Option<u64>) -> String {
    let t = tree(text);
    let oldest = oldest.map(|seq| SeqNum::new(seq).unwrap());
    pick_tombstones(&t.shape(), &options(), &[], oldest).map_or("nothing".into(), |c| c.to_string())
}

#[test]
fn tables_of_tombstones_go_down() {
    assert_eq!(unhurried("L5 11:a-b~49 12:c-d \n L6 1:a-z", None), "nothing");
    assert_eq!(
        unhurried("L5 11:a-b~50 12:c-d~90 13:e-f~99! \n L6 1:a-z", None),
        "L5[12] + L6[1] -> L6 tombstones bottommost"
    );
    // Level 0 counts such tables twice.
    assert_eq!(picked("L0 2:a-z~60 1:a-z~60"), "L0[2 1] -> L6 level0 bottommost");
    assert_eq!(picked("L0 2:a-z~40 1:a-z~60"), "nothing");
}

/// A tree that stays in level 0 gets no compaction, whatever its tables are.
#[test]
fn a_tree_of_level0_is_left_alone() {
    let (t, blobs) =
        (tree("L0 4:a-z~90 3:a-z 2:a-z 1:a-z"), BlobFiles::new(Env::mem().fs, "db".into(), BTreeMap::new()));
    let options = CompactionOptions { level0_only: true, ttl_secs: 1, ..options() };
    let input = PickInput {
        shape: t.shape(),
        options: &options,
        running: &[],
        oldest_snapshot: None,
        now: 1 << 40,
        blob_options: &BlobOptions::default(),
        blobs: &blobs,
    };
    let style = Style::of(&options);
    assert_eq!((style, style.pick(&input).is_none()), (Style::Level0Only, true));
    assert_eq!((style.next_look(&t.shape(), &options, 1), style.allows_requests()), (None, false));
    assert!(
        Style::Leveled.pick(&input).is_some() && Style::Leveled.next_look(&t.shape(), &options, 1).is_some()
    );
    assert_eq!(style.debt(&t.shape(), &options), Style::Leveled.debt(&t.shape(), &options));
}

#[test]
fn tables_at_the_bottom_wait_for_snapshots() {
    // Tables here have sequences up to their number plus one.
    let text = "L5 4:k-l~10 \n L6 9:a-b~10 8:c-d~1 7:e-f~10s";
    assert_eq!(unhurried(text, None), "L5[4] -> L5 bottommost-files bottommost");
    assert_eq!(unhurried(text, Some(4)), "nothing");
    assert_eq!(unhurried(text, Some(5)), "L5[4] -> L5 bottommost-files bottommost");
    assert_eq!(
        unhurried("L6 9:a-b~10 8:c-d~1 7:e-f~10s", Some(10)),
        "L6[9] -> L6 bottommost-files bottommost"
    );
    assert_eq!(unhurried("L6 8:c-d~1 7:e-f~10s", None), "nothing");
    let awaited = |oldest: u64| {
        let t = tree(text);
        awaited_snapshot(&t.shape(), SeqNum::new(oldest)).map(SeqNum::get)
    };
    assert_eq!([3, 5, 10].map(awaited), [Some(5), Some(10), None]);
}

#[test]
fn another_codec_is_no_move() {
    let per_level = |kinds: &[Compression]| TableOptions {
        compression_per_level: kinds.to_vec(),
        ..TableOptions::default()
    };
    let move_of = |text: &str, table: &TableOptions| {
        let t = tree(text);
        let shape = Shape { table: Some(table), ..t.shape() };
        pick_overfull(&shape, &options(), &[]).map(|c| c.action == Action::Move).unwrap()
    };
    let deep = "L5 11:a-b*60 12:c-d*60 \n L6 1:x-z*1000";
    let flat = "L0 4:g-h 3:e-f 2:c-d 1:a-b";
    use Compression::{Lz4, None, Zstd};
    for (kinds, deep_moves, flat_moves) in
        [(&[][..], true, true), (&[None, Lz4, Zstd], false, false), (&[Lz4, Lz4, Zstd], false, true)]
    {
        assert_eq!(move_of(deep, &per_level(kinds)), deep_moves, "{kinds:?}");
        assert_eq!(move_of(flat, &per_level(kinds)), flat_moves, "{kinds:?}");
    }
    let bottom = TableOptions { bottommost_compression: Some(Zstd), ..TableOptions::default() };
    assert!(!move_of(deep, &bottom) && !move_of(flat, &bottom));
}

#[test]
fn tables_that_go_to_another_directory_go_one_by_one() {
    let t = tree("L0 4:g-h 3:e-f 2:c-d 1:a-a \n L6 9:b-b");
    let places = [("near", 1 << 20), ("far", 1 << 40)].map(|(path, bytes)| DbPath::new(path, bytes));
    let picked =
        |paths: &[DbPath]| pick_overfull(&Shape { paths, ..t.shape() }, &options(), &[]).unwrap().to_string();
    assert_eq!(picked(&[]), "L0[4 3 2 1] -> L6 level0 move bottommost");
    assert_eq!(picked(&places[1..]), "L0[4 3 2 1] -> L6 level0 move bottommost");
    assert_eq!(picked(&places), "L0[1] -> L6 level0 move bottommost");
}

fn chosen(text: &str, numbers: &[u64], output: u8) -> String {
    let t = tree(text);
    let numbers: Vec<_> = numbers.iter().map(|n| FileNumber(*n)).collect();
    match pick_chosen(&t.shape(), &options(), &[], &numbers, Level(output)) {
        Ok(plan) => plan.map_or("taken".into(), |c| c.to_string()),
        Err(e) => format!("{:?}", e.kind()),
    }
}

#[test]
fn chosen_files_bring_along_what_they_must() {
    let text = "L0 9:a-c 8:k-l 7:b-d \n L3 6:d-e 5:m-n \n L5 4:a-b 3:e-f*20 2:x-y";
    assert_eq!(chosen(text, &[9], 5), "L0[9 7] + L3[6] + L5[4 3] -> L5 chosen bottommost");
    assert_eq!(chosen(text, &[7], 3), "L0[7] + L3[6] -> L3 chosen");
    assert_eq!(chosen(text, &[8], 6), "L0[8] -> L6 chosen bottommost");
    assert_eq!(chosen(text, &[6, 2], 5), "L3[6] + L5[3 2] -> L5 chosen bottommost");
    assert_eq!(chosen(text, &[2], 5), "L5[2] -> L5 chosen bottommost");
    assert_eq!(chosen(text, &[2], 3), "InvalidArgument");
    assert_eq!(chosen(text, &[77], 5), "InvalidArgument");
    assert_eq!(chosen(text, &[2], 7), "InvalidArgument");
    assert_eq!(chosen(text, &[], 5), "InvalidArgument");
    assert_eq!(chosen("L0 9:a-c \n L5 4:a-b!", &[9], 5), "taken");
}

#[test]
fn the_deepest_level_moves_over_empty_ones() {
    let moved = |text: &str, to: u8| {
        let t = tree(text);
        pick_refit(&t.shape(), &options(), &[], Level(to)).map(|plan| plan.map(|c| c.to_string()))
    };
    let text = "L0 9:a-b \n L2 3:a-b \n L5 1:a-b 2:c-d";
    assert_eq!(moved(text, 3).unwrap().unwrap(), "L5[1 2] -> L3 manual move bottommost");
    assert_eq!(moved(text, 6).unwrap().unwrap(), "L5[1 2] -> L6 manual move bottommost");
    assert_eq!(moved(text, 5).unwrap().unwrap(), " -> L5 manual move bottommost");
    assert!(moved(text, 2).is_err() && moved(text, 0).is_err() && moved(text, 7).is_err());
}

#[test]
fn reverse_order_is_no_special_case() {
    let mut t = tree("L0 4:z-a 3:z-a 2:z-a 1:z-a \n L6 9:z-y 8:m-l 7:b-a");
    t.order = Order::ReverseBytewise;
    let c = pick_overfull(&t.shape(), &options(), &[]).unwrap();
    assert_eq!(c.to_string(), "L0[4 3 2 1] + L6[9 8 7] -> L6 level0 bottommost");
}

#[test]
fn tables_that_keep_garbage_alive_are_rewritten_where_they_are() {
    let file = |number, garbage| LiveBlobFile {
        number: FileNumber(number),
        total: BlobAmount { count: 10, bytes: 100 },
        garbage: BlobAmount { count: 1, bytes: garbage },
    };
    let blobs = BlobOptions {
        collect_garbage: true,
        age_cutoff: 0.5,
        force_threshold: 0.6,
        ..BlobOptions::default()
    };
    let picked = |text: &str, garbage: u64, running: &[Running]| {
        let (t, files) = (tree(text), [file(3, garbage), file(4, 0), file(7, 0), file(9, 0)]);
        let plan = pick_blob_garbage(&t.shape(), &files, &blobs, &options(), running);
        plan.map_or("nothing".into(), |c| c.to_string())
    };
    let deep = "L5 20:a-f@4 21:g-k@3 22:l-p@3 \n L6 23:a-h@7 24:i-z@3";
    assert_eq!(picked(deep, 60, &[]), "L5[21] -> L5 blob-garbage");
    assert_eq!(picked(deep, 59, &[]), "nothing");
    let taken = "L5 20:a-f@4 21:g-k@3! 22:l-p@3! \n L6 23:a-h@7 24:i-z@3";
    assert_eq!(picked(taken, 60, &[]), "L6[24] -> L6 blob-garbage bottommost");
    assert_eq!(picked("L6 24:i-k@3 25:k-z@4", 60, &[]), "L6[24 25] -> L6 blob-garbage bottommost");
    let claim = Running { output_level: Level(6), runs: 1, smallest: b"x".to_vec(), largest: b"y".to_vec() };
    assert_eq!(picked("L5 23:a-b@4 \n L6 24:i-z@3", 60, &[claim]), "nothing");
    let above = "L0 31:a-c@9 30:b-d@3 29:x-z@4 \n L6 24:c-e@7 25:f-g";
    assert_eq!(picked(above, 60, &[]), "L0[31 30] + L6[24] -> L6 blob-garbage bottommost");
    assert_eq!(picked("L0 31:a-c@9! 30:b-d@3 \n L6 24:c-e@4", 60, &[]), "nothing");
    assert_eq!(picked("L6 24:a-z@4", 60, &[]), "nothing", "a batch that no table names goes by itself");
}
