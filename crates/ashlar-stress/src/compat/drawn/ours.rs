//! Our part of a case, through the public API.

use super::directory::Folder;
use super::plan::{Step, Turn};
use ashlar_testkit::oracle::State;
use ashlar_testkit::{Change, JudgeVersion};
use ashlardb::{
    CompactRangeOptions, Db, Env, ErrorKind, Family, FormatLevel, Read as _, Write as _, check_database,
};
use std::collections::BTreeMap;

/// Why we did not do something.
#[derive(Clone, Debug)]
pub(super) enum No {
    /// A clear no: not served, or wrong to ask for.
    Refused(String),
    /// An error that a healthy directory must not give.
    Failed(String),
}

/// What we show of a directory, and what of it we do not serve.
pub(super) struct Shown {
    pub(super) state: State,
    pub(super) unserved: BTreeMap<String, No>,
}

fn no(e: &ashlardb::Error) -> No {
    match e.kind() {
        ErrorKind::NotSupported | ErrorKind::InvalidArgument => No::Refused(e.to_string()),
        _ => No::Failed(e.to_string()),
    }
}

/// Opens as a user does who changes the library and nothing else: with the stored settings, as every open without settings
/// does. `stored` is a turn whose settings must fit the directory. Also answers what the open tells of itself.
pub(super) fn open(
    folder: &Folder,
    version: JudgeVersion,
    stored: bool,
    read_only: bool,
) -> Result<(Db, String), No> {
    let level = if version == JudgeVersion::V7 { FormatLevel::V7_8 } else { FormatLevel::default() };
    let builder = Db::builder(folder.db()).create(false).format_level(level);
    let db = builder.read_only(read_only).open().map_err(|e| match no(&e) {
        // What the directory itself names must fit the directory.
        No::Refused(text) if stored && e.kind() == ErrorKind::InvalidArgument => No::Failed(text),
        other => other,
    })?;
    let told = db.recovery().to_string();
    Ok((db, told))
}

pub(super) fn show(db: &Db) -> Result<Shown, String> {
    let (mut listings, mut unserved) = (Vec::new(), BTreeMap::new());
    for family in db.families() {
        let name = family.name().to_owned();
        // RocksDB's own, which its programs do not open.
        if name == "___rocksdb_stats_history___" {
            continue;
        }
        let forward = family.scan(..).collect::<Result<Vec<_>, _>>();
        let backward = family.scan(..).rev().collect::<Result<Vec<_>, _>>();
        match forward.and_then(|forward| Ok((forward, backward?))) {
            Ok((forward, mut backward)) => {
                backward.reverse();
                if forward != backward {
                    return Err(format!("family {name} backwards is not what it is forwards"));
                }
                listings.push((name, forward));
            }
            Err(e) => {
                unserved.insert(name, no(&e));
            }
        }
    }
    Ok(Shown { state: State::of(listings), unserved })
}

/// What is damaged, by our own check.
pub(super) fn damage(folder: &Folder) -> Result<Option<String>, No> {
    let env = Env::os().map_err(|e| no(&e))?;
    let report = check_database(&env, &folder.db(), &mut |_| ()).map_err(|e| no(&e))?;
    Ok((!report.is_sound()).then(|| report.to_string()))
}

/// Does the steps of a turn; `state` takes what was written. Answers what was refused.
pub(super) fn work(db: &Db, turn: &Turn, state: &mut State) -> Result<Vec<String>, String> {
    let mut refused = Vec::new();
    for step in &turn.steps {
        match do_step(db, step) {
            Ok(changes) => state.apply(&changes),
            Err(No::Refused(why)) => refused.push(why),
            Err(No::Failed(why)) => return Err(format!("{step}: {why}")),
        }
    }
    Ok(refused)
}

fn do_step(db: &Db, step: &Step) -> Result<Vec<Change>, No> {
    let family = |name: &str| db.family(name).map_err(|e| no(&e));
    match step {
        Step::Bulk(bulk) => {
            let family = family(&bulk.family)?;
            let mut done = Vec::new();
            for change in bulk.batches().into_iter().flatten().flatten() {
                apply(&family, &change).map_err(|e| no(&e))?;
                done.push(change);
            }
            Ok(done)
        }
        Step::Flush(name) => family(name)?.flush().map_err(|e| no(&e)).map(|()| Vec::new()),
        Step::Compact(name) => {
            let done = family(name)?.compact_range(.., CompactRangeOptions::default());
            done.map_err(|e| no(&e)).map(|()| Vec::new())
        }
        Step::Close | Step::Kill => Ok(Vec::new()),
    }
}

fn apply(family: &Family, change: &Change) -> ashlardb::Result<()> {
    match change {
        Change::Put { key, value, .. } => family.put(key, value),
        Change::Delete { key, .. } => family.delete(key),
        Change::SingleDelete { key, .. } => family.single_delete(key),
        Change::Merge { key, operand, .. } => family.merge(key, operand),
        Change::DeleteRange { from, to, .. } => family.delete_range(from, to),
    }
}
