//! Directories beside the database directory: for the logs, for the tables of the database, for those of a family.
//!
//! Some opens are given the places, the others have to find them in the OPTIONS file. A reopen may move `wal_dir`, or add
//! a directory behind the last one of `db_paths`.

use super::store::DIR;
use ashlar_env::sim::SimEnv;
use ashlar_format::filename::FileKind;
use ashlar_options::{DbOptions, DbPath};
use ashlar_testkit::Rng;
use std::path::{Path, PathBuf};

/// The directories of logs that a reopen chooses from.
const WAL_DIRS: [&str; 3] = ["/data/wal", "/logs/of/it", DIR];

/// Where the files of a store are. What is empty is the database directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The directory of the logs.
    pub wal_dir: String,
    /// The directories of tables.
    pub db_paths: Vec<DbPath>,
    /// The directories of the tables of every family but `default`.
    pub cf_paths: Vec<DbPath>,
}

impl Places {
    /// Half of the stores have everything in one directory.
    pub fn draw(rng: &mut Rng) -> Places {
        let mut places = Places::default();
        if rng.percent(50) {
            return places;
        }
        if rng.percent(70) {
            places.wal_dir = (*rng.pick(&WAL_DIRS).unwrap_or(&DIR)).to_owned();
        }
        // Small targets, so that levels reach the second directory.
        if rng.percent(60) {
            let target = *rng.pick(&[0, 200_000, 400_000]).unwrap_or(&0);
            places.db_paths = vec![DbPath::new("/p0", target)];
            if rng.percent(70) {
                places.db_paths.push(DbPath::new("/p1", u64::MAX));
            }
        }
        if rng.percent(40) {
            places.cf_paths = vec![DbPath::new("/q0", 200_000), DbPath::new("/far/q1", u64::MAX)];
            places.cf_paths.truncate(rng.between(1, 2));
        }
        places
    }

    /// Whether the store has a place of its own for anything.
    pub fn are_any(&self) -> bool {
        *self != Places::default()
    }

    /// The places from the next open on.
    pub fn change(&mut self, rng: &mut Rng) {
        if !self.wal_dir.is_empty() && rng.percent(50) {
            self.wal_dir = (*rng.pick(&WAL_DIRS).unwrap_or(&DIR)).to_owned();
        }
        if self.db_paths.len() == 1 && rng.percent(30) {
            self.db_paths.push(DbPath::new("/p2", u64::MAX));
        }
    }

    /// The directories, each once, the database directory first.
    pub fn dirs(&self) -> Vec<PathBuf> {
        let mut dirs = vec![PathBuf::from(DIR)];
        let logs = WAL_DIRS.iter().filter(|_| !self.wal_dir.is_empty()).map(PathBuf::from);
        let tables = self.db_paths.iter().chain(&self.cf_paths).map(|p| p.path.clone());
        for dir in logs.chain(tables) {
            if !dirs.contains(&dir) {
                dirs.push(dir);
            }
        }
        dirs
    }

    /// What an open of `sim` is given of these: all, or nothing where the OPTIONS file has them. Not drawn, so that
    /// opens in the checks of crashes change no history.
    pub fn given_to(&self, sim: &SimEnv) -> Places {
        if (sim.used_bytes() / 8).is_multiple_of(2) { self.not_stored_on(sim) } else { self.clone() }
    }

    /// The places that an open of `sim` cannot find in the OPTIONS file: nothing, or all.
    pub fn not_stored_on(&self, sim: &SimEnv) -> Places {
        let stored = |name: &str| matches!(FileKind::parse(name), Some(FileKind::Options(_)));
        let listed = sim.env().fs.list(Path::new(DIR)).unwrap_or_default();
        let found = listed.iter().any(|f| stored(&f.name)) && listed.iter().any(|f| f.name == "CURRENT");
        if found { Places::default() } else { self.clone() }
    }

    /// The settings with these places.
    pub fn of(&self, db: &DbOptions) -> DbOptions {
        DbOptions { wal_dir: self.wal_dir.clone(), db_paths: self.db_paths.clone(), ..db.clone() }
    }
}
