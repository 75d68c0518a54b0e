//! Pickers by text: a shape of the tree in, the compaction out. The cases are the scripts in `tests/scripts/picker`; run
//! the test with `REWRITE=1` to write the outputs found into them.
//!
//! A shape has one line per level in use. `L1 7:b-f*30 8:f-k!` is file 7 with user keys b to f and size 30, and file 8
//! with size 10, which a compaction has claimed. `9:b-c@4` is a file whose oldest blob file is 4. `9:a-b~60` has 60
//! deletions among its 100 entries; `9:a-b~60s` is also spent. `9:a-b^` is marked for a compaction. Level 0 is sorted newest first. Sizes are in units of 1
//! MiB. `running=L6:a-e*2,L5:c-d` lists the claims of running compactions: the output level, the range, and the number
//! of runs.

use super::blob_gc::pick_blob_garbage;
use super::tombstones::awaited_snapshot;
use super::*;
use crate::{Action, Compaction, Running};
use ashlar_base::ext::sst_partitioner::{FixedPrefixPartitioner, SstPartitionerFactory};
use ashlar_base::{FileNumber, InternalKeyBuf, Level, Order, SeqNum, Trailer, ValueType};
use ashlar_blob::{BlobAmount, BlobOptions, LiveBlobFile};
use ashlar_env::Env;
use ashlar_format::compress::Compression;
use ashlar_format::version_edit::NewFile;
use ashlar_options::{CompactionOptions, CompactionStyle, DbPath, FifoOptions, UniversalOptions};
use ashlar_table::TableOptions;
use ashlar_testkit::script::{self, Command};
use ashlar_tree::blobs::BlobFiles;
use ashlar_tree::version::{FileMeta, TableCounts};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(super) const MIB: u64 = 1 << 20;

pub(super) struct Tree {
    pub(super) order: Order,
    pub(super) levels: Vec<Vec<Arc<FileMeta>>>,
}

impl Tree {
    pub(super) fn shape(&self) -> Shape<'_> {
        Shape {
            order: &self.order,
            levels: &self.levels,
            table: None,
            paths: &[],
            partitioner: None,
            arriving: false,
            unflushed_since: None,
            behind: false,
        }
    }
}

fn file(text: &str) -> Arc<FileMeta> {
    let (text, busy) = text.strip_suffix('!').map_or((text, false), |t| (t, true));
    let (text, marked) = text.strip_suffix('^').map_or((text, false), |t| (t, true));
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
    new.file_creation_time = Some(number);
    new.need_compaction = marked;
    let file = FileMeta::new(new);
    file.set_compacting(busy);
    if !deletions.is_empty() {
        let (spent, newest_value) = (deletions.ends_with('s'), deletions.ends_with('n').then_some(seqs.1));
        let deletions = deletions.trim_end_matches(['s', 'n']).parse().unwrap();
        let counts = TableCounts { entries: 100, deletions, spent, newest_value, ..TableCounts::default() };
        file.note_counts(Some(counts));
    }
    file
}

pub(super) fn tree(text: &str) -> Tree {
    tree_in(Order::Bytewise, text)
}

fn tree_in(order: Order, text: &str) -> Tree {
    let mut levels = vec![vec![]; 7];
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        let mut words = line.split_whitespace();
        let level: usize = words.next().unwrap()[1..].parse().unwrap();
        levels[level] = words.map(file).collect();
    }
    Tree { order, levels }
}

/// Trigger 4, base 100 MiB, target 10 MiB, compactions of at most 100 MiB.
pub(super) fn options() -> CompactionOptions {
    CompactionOptions {
        target_file_bytes: 10 * MIB,
        base_level_bytes: 100 * MIB,
        max_compaction_bytes: 100 * MIB,
        ..CompactionOptions::default()
    }
}

#[test]
fn scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/picker");
    // The request that `step` steps through, by script.
    let mut requests = BTreeMap::new();
    let run = |script: &str, command: &Command| {
        run_command(requests.entry(script.to_owned()).or_insert_with(request_of_all), command)
    };
    if let Err(differences) = script::run_folder(&folder, run) {
        panic!("{differences}");
    }
}

fn request_of_all() -> ManualRange {
    ManualRange::new(None, None, false)
}

fn run_command(request: &mut ManualRange, command: &Command) -> Result<String, String> {
    let t = tree_in(
        if command.has("reverse") { Order::ReverseBytewise } else { Order::Bytewise },
        &command.input,
    );
    let partitioner =
        command.number("prefix")?.map(|length| FixedPrefixPartitioner::new(usize::try_from(length).unwrap()));
    let partitioner = partitioner.as_ref().map(|partitioner| partitioner as &dyn SstPartitionerFactory);
    let (shape, running) = (Shape { partitioner, ..t.shape() }, running(command));
    let oldest = command.number("oldest")?.and_then(SeqNum::new);
    let next_file = FileNumber(command.number("next_file")?.unwrap_or(100));
    let into = level(command.arg("into").unwrap_or("0"));
    let words = |known: &[&str]| command.only(known);
    match command.name.as_str() {
        "pick" => {
            words(&[
                "arriving",
                "bottommost",
                "details",
                "paths",
                "per_level",
                "prefix",
                "reverse",
                "running",
            ])?;
            Ok(shown(overfull(&shape, command, &running).as_ref(), command.has("details")))
        }
        "scores" => {
            words(&[])?;
            let all = scores(&shape, &shape.targets(&options()), &options());
            Ok(all.iter().map(|s| format!("L{} {:.2}\n", s.level, s.score)).collect())
        }
        "debt" => {
            words(&[])?;
            Ok(format!("{} MiB", Style::Leveled.debt(&shape, &options()) / MIB))
        }
        "tombstones" => {
            words(&["oldest"])?;
            Ok(shown(pick_tombstones(&shape, &options(), &running, oldest).as_ref(), false))
        }
        "awaited" => {
            words(&["oldest"])?;
            Ok(awaited_snapshot(&shape, oldest).map_or("nothing".into(), |seq| seq.get().to_string()))
        }
        "blob_garbage" => {
            words(&["garbage", "running"])?;
            let garbage = command.number("garbage")?.unwrap_or(0);
            Ok(shown(blob_garbage(&shape, garbage, &running).as_ref(), false))
        }
        "chosen" => {
            words(&["files", "into"])?;
            let files = command.arg("files").map(|files| files.split(',').map(file_number).collect());
            let picked = pick_chosen(&shape, &options(), &running, &files.unwrap_or(vec![]), into);
            picked.map(|plan| shown(plan.as_ref(), false)).map_err(|e| format!("{:?}", e.kind()))
        }
        "refit" => {
            words(&["into"])?;
            let picked = pick_refit(&shape, &options(), &running, into);
            picked.map(|plan| shown(plan.as_ref(), false)).map_err(|e| format!("{:?}", e.kind()))
        }
        "manual" => {
            words(&["begin", "deepest", "end"])?;
            Ok(manual(t, requested(command)))
        }
        "leveled" | "universal" | "fifo" => {
            words(&[
                "age", "alike", "begin", "deepest", "details", "end", "limit", "manual", "merges", "most",
                "moves", "now", "one", "parts", "prefix", "running", "space",
            ])?;
            of_style(&shape, command, &running)
        }
        "request" => {
            words(&["begin", "deepest", "end"])?;
            *request = requested(command);
            Ok("ok".into())
        }
        "step" => {
            words(&["next_file", "running"])?;
            Ok(match request.pick(&shape, &options(), &running, next_file) {
                ManualPick::Run(plan) => plan.to_string(),
                ManualPick::Blocked => "blocked".into(),
                ManualPick::Done => "done".into(),
            })
        }
        other => Err(format!("no such command: {other}")),
    }
}

/// The compaction of a tree of another style. Universal: `space` and `alike` are percent, `most` bounds the runs of one merge,
/// `moves` allows moves, `parts` merges in parts, `one` is a tree with one level, `manual` a request. FIFO: `limit` in MiB, `merges` allows merges.
/// All: `prefix` is the length for the fixed-prefix partitioner. Both: `now` and `age` in seconds; a table is as old as the epoch 1970 plus its number.
fn of_style(shape: &Shape<'_>, command: &Command, running: &[Running]) -> Result<String, String> {
    let number = |key: &str, default: u64| Ok::<u64, String>(command.number(key)?.unwrap_or(default));
    let percent = |key: &str, default: u64| Ok::<u32, String>(u32::try_from(number(key, default)?).unwrap());
    let options = CompactionOptions {
        style: match command.name.as_str() {
            "leveled" => CompactionStyle::Level,
            "fifo" => CompactionStyle::Fifo,
            _ => CompactionStyle::Universal,
        },
        single_level: command.has("one"),
        ttl_secs: number("age", 0)?,
        universal: UniversalOptions {
            max_size_amplification_percent: percent("space", 200)?,
            size_ratio: percent("alike", 1)?,
            max_merge_width: percent("most", u64::from(u32::MAX))?,
            allow_trivial_move: command.has("moves"),
            incremental: command.has("parts"),
            ..UniversalOptions::default()
        },
        fifo: FifoOptions {
            max_table_files_size: number("limit", 1 << 20)? * MIB,
            allow_compaction: command.has("merges"),
        },
        ..options()
    };
    let blobs = BlobFiles::new(Env::mem().fs, "db".into(), BTreeMap::new());
    let input = PickInput {
        shape: *shape,
        options: &options,
        running,
        oldest_snapshot: None,
        now: number("now", 0)?,
        blob_options: &BlobOptions::default(),
        blobs: &blobs,
    };
    let style = Style::of(&options);
    if !command.has("manual") {
        return Ok(shown(style.pick(&input).as_ref(), command.has("details")));
    }
    Ok(match style.pick_requested(&mut requested(command), &input, FileNumber(100)) {
        ManualPick::Run(plan) => shown(Some(&plan), command.has("details")),
        ManualPick::Blocked => "blocked".into(),
        ManualPick::Done => "done".into(),
    })
}

fn shown(plan: Option<&Compaction>, details: bool) -> String {
    let Some(plan) = plan else { return "nothing".into() };
    if !details {
        return plan.to_string();
    }
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    let beneath = plan.beneath.iter().map(|(from, to)| format!(" {}-{}", text(from), text(to)));
    let limits = plan.cut_limits();
    let target = match limits.target_bytes {
        u64::MAX => "unlimited".into(),
        bytes => format!("{} MiB", bytes / MIB),
    };
    let (beneath, grandparents) = (beneath.collect::<String>(), limits.grandparents.len());
    format!("{plan}\nbeneath{beneath}\ngrandparents {grandparents}\ntarget {target}")
}

fn file_number(text: &str) -> FileNumber {
    FileNumber(text.parse().unwrap())
}

fn level(text: &str) -> Level {
    Level(text.trim_start_matches('L').parse().unwrap())
}

fn running(command: &Command) -> Vec<Running> {
    let claim = |text: &str| {
        let (levels, range) = text.split_once(':').unwrap();
        let (output, deepest) = levels.split_once('-').unwrap_or((levels, levels));
        let (range, runs) = range.split_once('*').unwrap_or((range, "1"));
        let (from, to) = range.split_once('-').unwrap();
        let (smallest, largest) = (from.as_bytes().to_vec(), to.as_bytes().to_vec());
        let (output_level, deepest) = (level(output), level(deepest));
        Running { output_level, deepest, runs: runs.parse().unwrap(), smallest, largest }
    };
    command.arg("running").map_or(vec![], |claims| claims.split(',').map(claim).collect())
}

/// The compaction of a level over its limit. `paths` has the size of each directory; `per_level` and `bottommost` name
/// codecs.
fn overfull(shape: &Shape<'_>, command: &Command, running: &[Running]) -> Option<Compaction> {
    let codec = |name: &str| match name {
        "none" => Compression::None,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        other => panic!("no codec {other}"),
    };
    let codecs = command.arg("per_level").unwrap_or("").split(',').filter(|name| !name.is_empty());
    let table = TableOptions {
        compression_per_level: codecs.map(codec).collect(),
        bottommost_compression: command.arg("bottommost").map(codec),
        ..TableOptions::default()
    };
    let sizes = command.arg("paths").unwrap_or("").split(',').filter(|size| !size.is_empty());
    let path = |mib: &str| DbPath::new(mib, mib.parse::<u64>().unwrap() * MIB);
    let shape = Shape {
        table: (command.has("per_level") || command.has("bottommost")).then_some(&table),
        paths: &sizes.map(path).collect::<Vec<_>>(),
        arriving: command.has("arriving"),
        ..*shape
    };
    pick_overfull(&shape, &options(), running)
}

/// The compaction because of blob garbage: file 3 is the oldest one, and has this many bytes of garbage among its 100.
fn blob_garbage(shape: &Shape<'_>, garbage: u64, running: &[Running]) -> Option<Compaction> {
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
    let files = [file(3, garbage), file(4, 0), file(7, 0), file(9, 0)];
    pick_blob_garbage(shape, &files, &blobs, &options(), running)
}

fn requested(command: &Command) -> ManualRange {
    let end = |key: &str| command.arg(key).map(str::as_bytes);
    ManualRange::new(end("begin"), end("end"), command.has("deepest"))
}

/// Runs a manual compaction to its end, as if every plan were carried out at once: the inputs are replaced by one file
/// with their range, or moved unchanged.
fn manual(mut t: Tree, mut range: ManualRange) -> String {
    let mut steps = String::new();
    for next in 100..120 {
        let plan = match range.pick(&t.shape(), &options(), &[], FileNumber(next)) {
            ManualPick::Run(plan) => *plan,
            ManualPick::Blocked => return steps + "blocked",
            ManualPick::Done => return steps + "done",
        };
        steps += &format!("{plan}\n");
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
    }
    steps + "no end"
}

#[test]
fn absurd_sizes_do_not_overflow() {
    let mut t = tree("L0 4:a-b 3:a-b \n L5 9:a-f 8:k-l \n L6 7:a-z 6:zz-zzz");
    for level in &mut t.levels {
        for file in level {
            *file = FileMeta::new(NewFile { size: u64::MAX, ..file.file.clone() });
        }
    }
    assert!(pick_overfull(&t.shape(), &options(), &[]).is_some());
    assert_eq!(Style::Leveled.debt(&t.shape(), &options()), u64::MAX);
}

/// A tree that stays in level 0 gets no compaction, whatever its tables are.
#[test]
fn a_tree_of_level0_is_left_alone() {
    let (t, blobs) =
        (tree("L0 4:a-z~90 3:a-z 2:a-z 1:a-z"), BlobFiles::new(Env::mem().fs, "db".into(), BTreeMap::new()));
    let options = CompactionOptions { single_level: true, ttl_secs: 1, ..options() };
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
