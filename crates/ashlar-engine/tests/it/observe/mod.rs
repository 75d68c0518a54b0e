//! Properties, statistics and events of a database.

mod cost;
mod events;
mod properties;
mod statistics;
mod timer;

use ashlar_base::FamilyId;
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_env::Env;
use ashlar_options::{DbOptions, FamilyOptions, ReadOptions, WriteOptions};
use std::path::Path;
use std::sync::Arc;

/// A database in memory with its family `default`. Compacts only on request.
struct Store {
    db: Db,
    family: Arc<Family>,
}

impl Store {
    fn open(env: Env, options: DbOptions) -> Store {
        let mut family = FamilyOptions::default();
        family.compaction.automatic = false;
        let db = Db::open(env, Path::new("/db"), options, vec![], family).unwrap();
        let family = db.family("default").unwrap();
        Store { db, family }
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.write(|batch| batch.put(FamilyId::DEFAULT, key, value).unwrap());
    }

    fn write(&self, fill: impl FnOnce(&mut WriteBatch)) {
        let mut batch = WriteBatch::new();
        fill(&mut batch);
        self.db.write(&mut batch, WriteOptions::default()).unwrap();
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.db.get(&self.family, key, ReadOptions::default()).unwrap().map(|v| v.to_vec())
    }

    fn flush(&self) {
        self.db.flush(std::slice::from_ref(&self.family)).unwrap();
    }

    fn compact(&self) {
        self.db.compact_range(&self.family, None, None).unwrap();
    }
}
