//! AshlarDB's part of a case, through the public API.

use super::directory::Folder;
use super::plan::{Plan, Setting, Step, Turn, places};
use ashlar_testkit::ops::{Bulk, BulkKind};
use ashlar_testkit::oracle::State;
use ashlar_testkit::text::to_hex;
use ashlar_testkit::{Change, JudgeVersion, KeyValue};
use ashlardb::{
    Builder, CompactRangeOptions, Db, DbPath, Env, ErrorKind, Family, FamilyBuilder, FormatLevel,
    PlaceSettings, Read as _, Write as _, check_database_in,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The reason why AshlarDB refused.
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

/// How a directory of a plan is opened: with the stored settings, as after a change of the library and nothing else.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    pub(super) folder: &'a Folder,
    pub(super) plan: &'a Plan,
    /// As a program that also gives what no file of RocksDB names or proves: `db_paths`, `cf_paths`, and `wal_dir` where the
    /// info log is silent. All of it must fit the directory.
    pub(super) stored: bool,
}

impl How<'_> {
    /// An open without the directories of tables may miss them, if it says so.
    fn no(&self, e: &ashlardb::Error) -> No {
        match no(e) {
            No::Refused(text) if self.stored && e.kind() == ErrorKind::InvalidArgument => No::Failed(text),
            No::Failed(text) if self.may_miss_tables() && text.contains("db_paths") => No::Refused(text),
            other => other,
        }
    }

    fn may_miss_tables(&self) -> bool {
        !self.stored && self.plan.has_places()
    }

    fn paths(&self, settings: &[Setting], name: &str) -> Vec<DbPath> {
        let root = self.folder.root().display().to_string();
        let of_name = settings.iter().filter(|setting| self.stored && setting.name == name);
        let all = of_name.flat_map(|setting| places(&setting.value));
        all.map(|(path, size)| DbPath::new(Path::new(&path.replace('@', &root)), size)).collect()
    }

    /// The `wal_dir` to give where RocksDB's info log proves of no `wal_dir` that it is this database's: at these levels it
    /// is empty, and where RocksDB keeps few logs the one that names the database may be gone.
    fn wal_dir(&self) -> Option<String> {
        const REPLACED: [&str; 2] = ["max_log_file_size", "log_file_time_to_roll"];
        const SILENT: [&str; 4] = ["WARN_LEVEL", "ERROR_LEVEL", "FATAL_LEVEL", "HEADER_LEVEL"];
        let of = |name: &str| self.plan.db.iter().find(|s| s.name == name).map(|s| s.value.as_str());
        let empty = of("info_log_level").is_some_and(|level| SILENT.contains(&level));
        let few = of("keep_log_file_num").is_some() && REPLACED.iter().any(|name| of(name).is_some());
        let silent = self.stored && (empty || few);
        let root = self.folder.root().display().to_string();
        of("wal_dir").filter(|_| silent).map(|dir| dir.replace('@', &root))
    }

    /// Opens; also answers what the open tells of itself.
    pub(super) fn open(&self, read_only: bool) -> Result<(Db, String), No> {
        let old = self.plan.version == JudgeVersion::V7;
        let level = if old { FormatLevel::V7_8 } else { FormatLevel::default() };
        let builder = Db::builder(self.folder.db()).create(false).format_level(level).read_only(read_only);
        let db_paths = self.paths(&self.plan.db, "db_paths");
        let mut builder = db_paths.into_iter().fold(builder, |b, p| b.db_path(p.path, p.target_bytes));
        for family in &self.plan.families {
            let own = self.paths(&family.settings, "cf_paths");
            let give = |f| own.iter().fold(f, |f: FamilyBuilder, p| f.cf_path(&p.path, p.target_bytes));
            builder = match family.name.as_str() {
                _ if own.is_empty() => builder,
                "default" => builder.default_family(give),
                name => builder.family(name, give),
            };
        }
        let builder = self.wal_dir().into_iter().fold(builder, Builder::wal_dir);
        let db = builder.open().map_err(|e| self.no(&e))?;
        let told = db.recovery().to_string();
        Ok((db, told))
    }

    /// What is damaged, by our own check.
    pub(super) fn damage(&self) -> Result<Option<String>, No> {
        let env = Env::os().map_err(|e| no(&e))?;
        let mut given = PlaceSettings {
            db_paths: self.paths(&self.plan.db, "db_paths"),
            wal_dir: self.wal_dir().unwrap_or_default(),
            ..PlaceSettings::default()
        };
        for family in &self.plan.families {
            given.cf_paths.insert(family.name.clone(), self.paths(&family.settings, "cf_paths"));
        }
        let report =
            check_database_in(&env, &self.folder.db(), &given, &mut |_| ()).map_err(|e| self.no(&e))?;
        let text = report.to_string();
        // A check cannot tell a single table that is elsewhere from one that is lost.
        if self.may_miss_tables() && text.contains("cannot open") {
            return Err(No::Refused("check: a table is not in the database directory".to_owned()));
        }
        Ok((!report.is_sound()).then_some(text))
    }
}

/// Every family forwards and backwards; gets and seeks must find the same, and entities of `plan` all their columns.
pub(super) fn show(db: &Db, plan: &Plan) -> Result<Shown, String> {
    let entities = entities(plan);
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
                probe(&family, &forward, &entities).map_err(|what| format!("family {name}: {what}"))?;
                listings.push((name, forward));
            }
            Err(e) => {
                unserved.insert(name, no(&e));
            }
        }
    }
    Ok(Shown { state: State::of(listings), unserved })
}

/// Family, key and default column of every entity that a case writes.
type Entities = BTreeSet<(String, Vec<u8>, Vec<u8>)>;

fn entities(plan: &Plan) -> Entities {
    let bulks = plan.bulks().filter(|bulk| bulk.kind == BulkKind::Entity);
    bulks.flat_map(|b| b.entries().map(|(key, value)| (b.family.clone(), key, value))).collect()
}

/// Gets and seeks up to `MOST` of the entries that a scan found.
fn probe(family: &Family, entries: &[KeyValue], entities: &Entities) -> Result<(), String> {
    const MOST: usize = 200;
    for (key, value) in entries.iter().step_by(entries.len().div_ceil(MOST).max(1)) {
        let text = to_hex(key);
        if family.get(key).map_err(|e| e.to_string())?.as_deref() != Some(&value[..]) {
            return Err(format!("a get of {text} is not what a scan finds"));
        }
        let behind = family.scan(key.clone()..).next().transpose().map_err(|e| e.to_string())?;
        if behind.as_ref() != Some(&(key.clone(), value.clone())) {
            return Err(format!("a seek of {text} is not what a scan finds"));
        }
        let columns = family.get_entity(key).map_err(|e| e.to_string())?.ok_or("a key without columns")?;
        let found: Vec<(&[u8], &[u8])> = columns.iter().collect();
        let is_entity = entities.contains(&(family.name().to_owned(), key.clone(), value.clone()));
        if is_entity && found != Bulk::columns(value) || columns.default_column() != Some(&value[..]) {
            return Err(format!("the columns of {text} are {found:?}"));
        }
    }
    Ok(())
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
            if bulk.kind == BulkKind::Entity {
                for (key, value) in bulk.entries() {
                    family.put_entity(&key, &Bulk::columns(&value)).map_err(|e| no(&e))?;
                    done.push(Change::Put { family: bulk.family.clone(), key, value });
                }
            }
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
