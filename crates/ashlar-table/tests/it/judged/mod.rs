//! RocksDB reads every shape of table that is written here: 7.8.3's `sst_dump` file by file, and both versions as the
//! tables of a database, with all checksums verified, scanned whole and looked up key by key.

mod combinations;
mod directory;

use ashlar_testkit::judge::{Judge, JudgeError, JudgeVersion, Opening, Skip, place};
use ashlar_testkit::report;
use combinations::{Combination, all, entries, written};
use directory::{Directory, Written};
use std::process::Command;

/// Tables per directory: RocksDB's tools are started once for each.
const BATCH: usize = 330;
/// Shares no factor with the numbers of choices, so that every stride meets every pair of them.
const QUICK_STRIDE: usize = 53;

#[derive(Default)]
struct Tally {
    files: usize,
    entries: usize,
    dumped: usize,
    opened: [usize; 2],
    lookups: usize,
    differences: Vec<String>,
}

#[test]
fn every_combination_is_read_by_rocksdb() {
    let stride = report::scale(QUICK_STRIDE, 1);
    let total = all().len();
    let chosen: Vec<Combination> = all().into_iter().step_by(stride).collect();
    let mut tally = Tally::default();
    let mut done = Ok(());
    // Directories of old versions first: only those go to 7.8.3.
    for old in [true, false] {
        let of_kind: Vec<_> = chosen.iter().filter(|c| (c.options.format_version <= 5) == old).collect();
        for batch in of_kind.chunks(BATCH) {
            done = done.and_then(|()| judge(batch, old, &mut tally));
        }
    }
    if let Err(skip) = done {
        return skip.announce("every_combination_is_read_by_rocksdb");
    }
    report::figure(&format!(
        "tables judged: {} of {total} combinations, {} files of {} entries; sst_dump 7.8.3 {} files, 7.8.3 opened {}, \
         11.8.1 opened {}, {} lookups; {} differences",
        chosen.len(),
        tally.files,
        tally.entries,
        tally.dumped,
        tally.opened[0],
        tally.opened[1],
        tally.lookups,
        tally.differences.len()
    ));
    assert!(tally.differences.is_empty(), "{}", tally.differences.join("\n"));
    assert_eq!((tally.files, tally.opened[1]), (chosen.len(), chosen.len()));
}

fn judge(batch: &[&Combination], old: bool, tally: &mut Tally) -> Result<(), Skip> {
    let mut directory = Directory::new();
    for combination in batch {
        directory.add(combination);
    }
    directory.finish();
    tally.files += batch.len();
    tally.entries += directory.tables.iter().map(|t| t.entries.len()).sum::<usize>();
    if old {
        dump(&directory, tally)?;
        open(JudgeVersion::V7, &directory, tally)?;
    }
    open(JudgeVersion::V11, &directory, tally)
}

/// All tables by `sst_dump`: checked, their checksums verified, their listings compared.
fn dump(directory: &Directory, tally: &mut Tally) -> Result<(), Skip> {
    let tool = place("sst_dump")?;
    let say = |args: &[&str]| {
        let file = format!("--file={}", directory.path().display());
        let output = Command::new(&tool).arg(file).args(args).output().expect("sst_dump runs");
        // It ends with success even when a table is damaged: its words decide.
        (
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (text, errors) = say(&["--command=scan", "--output_hex", "--verify_checksum"]);
    let mut parts: Vec<&str> = text.split("Process ").skip(1).collect();
    parts.sort_unstable();
    if parts.len() != directory.tables.len() || !errors.trim().is_empty() {
        tally.differences.push(format!(
            "scan: {} tables of {}: {errors}",
            parts.len(),
            directory.tables.len()
        ));
    }
    for (part, table) in parts.iter().zip(&directory.tables) {
        let lines: Vec<&str> = part.lines().filter(|line| line.starts_with('\'')).collect();
        let expected: Vec<String> = table.entries.iter().map(written).collect();
        if !part.contains(&table.name) || lines != expected {
            tally.differences.push(format!("{}: another listing, {} lines", table.what, lines.len()));
        }
    }
    let (text, errors) = say(&["--command=verify"]);
    let sound = text.lines().filter(|line| line.trim() == "The file is ok").count();
    if sound != directory.tables.len() || !errors.trim().is_empty() {
        tally.differences.push(format!("verify: {sound} of {} are ok: {errors}", directory.tables.len()));
    }
    let (text, errors) = say(&["--command=check", "--verify_checksum"]);
    let words = ["Corruption", "not a valid SST", "IO error", "Not implemented", "Invalid argument"];
    if words.iter().any(|word| text.contains(word) || errors.contains(word)) {
        tally.differences.push(format!("check: {errors}"));
    }
    tally.dumped += sound;
    Ok(())
}

/// All tables as one database.
fn open(version: JudgeVersion, directory: &Directory, tally: &mut Tally) -> Result<(), Skip> {
    let mut judge = match Judge::spawn(version) {
        Ok(judge) => judge,
        Err(JudgeError::Skip(skip)) => return Err(skip),
        Err(e) => panic!("{e}"),
    };
    let name = version.name();
    if let Err(e) = look(&mut judge, name, directory, tally) {
        let tables: Vec<&str> = directory.tables.iter().map(|t| t.what.as_str()).collect();
        tally.differences.push(format!("{name}: {e}, one of {}", tables.join("\n")));
        return Ok(());
    }
    tally.opened[usize::from(version == JudgeVersion::V11)] += directory.tables.len();
    Ok(())
}

fn look(judge: &mut Judge, name: &str, directory: &Directory, tally: &mut Tally) -> Result<(), JudgeError> {
    // RocksDB looks at filters only under a policy; which one does not matter.
    let policy = "block_based_table_factory={filter_policy=bloomfilter:10:false}";
    judge.open(directory.path(), Opening::ReadOnly, policy)?;
    if judge.tables()? != directory.tables.len() {
        tally.differences.push(format!("{name}: another number of tables"));
    }
    judge.verify()?;
    let visible: Vec<_> = directory.tables.iter().flat_map(Written::visible).collect();
    if judge.dump("default")? != visible || judge.dump_backwards("default")? != reversed(&visible) {
        tally.differences.push(format!("{name}: another content"));
    }
    for table in &directory.tables {
        let present = table.visible();
        for (key, value) in present.iter().step_by(present.len() / 9) {
            let absent = [key, &b"x"[..]].concat();
            if judge.get("default", key)?.as_ref() != Some(value) || judge.get("default", &absent)?.is_some()
            {
                tally.differences.push(format!("{name}: {}: wrong lookup", table.what));
            }
            tally.lookups += 2;
        }
    }
    judge.close()
}

fn reversed<T: Clone>(list: &[T]) -> Vec<T> {
    list.iter().rev().cloned().collect()
}

/// A filter with no bit set hides every key from RocksDB's lookups: so it does look into our filters.
#[test]
fn rocksdb_looks_into_the_filters() {
    let mut hidden = 0;
    for (at, combination) in all().iter().enumerate() {
        let options = &combination.options;
        let plain = options.max_dict_bytes == 0 && options.data_block_hash_ratio.is_none();
        if options.filter.is_none() || !plain || at % 4 != 0 || options.format_version < 5 {
            continue;
        }
        let mut directory = Directory::new();
        directory.add(combination);
        directory.blank_filter();
        directory.finish();
        let mut judge = match Judge::spawn(JudgeVersion::V11) {
            Ok(judge) => judge,
            Err(JudgeError::Skip(skip)) => return skip.announce("rocksdb_looks_into_the_filters"),
            Err(e) => panic!("{e}"),
        };
        let policy = "block_based_table_factory={filter_policy=bloomfilter:10:false}";
        judge.open(directory.path(), Opening::ReadOnly, policy).unwrap();
        let (key, _) = entries(0).into_iter().find(|(key, _)| key[key.len() - 8] == 1).unwrap();
        let user_key = &key[..key.len() - 8];
        assert_eq!(judge.get("default", user_key).unwrap(), None, "{}", combination.what());
        hidden += 1;
        if hidden == report::scale(6, 24) {
            break;
        }
    }
    assert!(hidden >= 6);
}
