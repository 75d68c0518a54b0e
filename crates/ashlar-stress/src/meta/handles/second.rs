//! A second database of the process, with a model of its own. In some cases it shares memory, rate limit and executor with the
//! first one (`Resources`). Each is closed, dropped and opened again while the other goes on, and refuses the other's handles.

use super::acts::{End, SecondAct, Share};
use super::shown::{Map, Sorted};
use super::world::{HELD, Handle, Held, Origin, World, builder, is_refused, wrong};
use ashlar_env::sim::SimEnv;
use ashlar_testkit::ops::Change;
use ashlar_testkit::oracle::first_difference;
use ashlardb::{CompactRangeOptions, Db, Family, Read, Resources, Result, Write, WriteBatch};
use std::ops::Bound;
use std::sync::Arc;

/// The directory of the second database.
const DIR: &str = "/data/other";
/// Its families: the first ones of the other database.
const FAMILIES: [(&str, Sorted); 2] = [("default", Sorted::Up), ("back", Sorted::Down)];

type Done = std::result::Result<(), String>;

/// The database and its model.
pub(super) struct Second {
    /// `None`: it is closed.
    pub(super) db: Option<Db>,
    pub(super) resources: Option<Resources>,
    share: Option<Share>,
    maps: [Arc<Map>; 2],
    opens: u64,
}

impl Second {
    pub(super) fn new(sim: &SimEnv, share: Option<Share>) -> std::result::Result<Second, String> {
        let maps = Default::default();
        let mut second = Second { db: None, resources: None, share, maps, opens: 0 };
        second.move_to(sim)?;
        let db = second.open(sim)?;
        db.put("k01", "of the other database").map_err(|e| wrong("put", &e))?;
        Arc::make_mut(&mut second.maps[0]).insert(b"k01".to_vec(), b"of the other database".to_vec());
        Ok(second)
    }

    /// Which open its handles are of now.
    pub(super) fn origin(&self) -> Origin {
        Origin::Foreign(self.opens)
    }

    /// The machine was killed. Makes new shared resources, and opens the database if it was open.
    pub(super) fn move_to(&mut self, sim: &SimEnv) -> Done {
        self.resources = self.share.map(|share| Resources::new(share.memory).rate_limit(share.rate));
        self.db.take().map_or(Ok(()), |_| self.open(sim).map(|_| ()))
    }

    /// The open database.
    pub(super) fn open(&mut self, sim: &SimEnv) -> std::result::Result<&Db, String> {
        let db = match self.db.take() {
            Some(db) => db,
            None => {
                self.opens += 1;
                let builder = builder(sim, DIR, self.resources.as_ref());
                let db = builder.family("back", |family| family.reverse_order()).open();
                db.map_err(|e| wrong("open of the second database", &e))?
            }
        };
        Ok(self.db.insert(db))
    }

    /// Everything as the model has it?
    pub(super) fn compare(&self) -> Done {
        let Some(db) = &self.db else { return Ok(()) };
        for ((name, sorted), map) in FAMILIES.into_iter().zip(&self.maps) {
            let family = db.family(name).map_err(|e| wrong("a family of the second", &e))?;
            let found: Result<Vec<_>> = family.scan(..).collect();
            let found = found.map_err(|e| wrong("scan of the second", &e))?;
            let expected = sorted.shown(map, &(Bound::Unbounded, Bound::Unbounded), &[]);
            if let Some(difference) = first_difference(&expected, &found) {
                return Err(format!("the second database, family {name}: {difference}"));
            }
        }
        Ok(())
    }

    fn write(&mut self, changes: &[Change]) -> Done {
        let Some(db) = &self.db else { return Ok(()) };
        let (batch, mut modelled) = (WriteBatch::new(), Vec::new());
        for change in changes {
            let place = FAMILIES.iter().position(|(name, _)| *name == change.family());
            let Some(model) = place else { continue };
            let family = db.family(change.family()).map_err(|e| wrong("a family of the second", &e))?;
            let to = batch.family(&family);
            let added = match change {
                Change::Put { key, value, .. } => to.put(key, value),
                Change::Delete { key, .. } | Change::SingleDelete { key, .. } => to.delete(key),
                Change::Merge { key, operand, .. } => to.merge(key, operand),
                Change::DeleteRange { .. } => continue,
            };
            added.map_err(|e| wrong("a change", &e))?;
            modelled.push((model, change));
        }
        db.write(batch).map_err(|e| wrong("write to the second", &e))?;
        for (model, change) in modelled {
            FAMILIES[model].1.apply(Arc::make_mut(&mut self.maps[model]), change);
        }
        Ok(())
    }

    /// Handles of the first database are refused by the first call that can know, and change nothing.
    fn refuses(&self, family: &Family) -> Done {
        let Some(db) = &self.db else { return Ok(()) };
        let what = "a family of the first database, handed to the second";
        is_refused(what, &db.drop_family(family))?;
        let reader = db.reading(Default::default()).family(family);
        is_refused(what, &reader.get("k01"))?;
        is_refused(what, &reader.get_entity("k01"))?;
        is_refused(what, &reader.key_may_exist("k01"))?;
        is_refused(what, &reader.scan(..).cursor())?;
        let snapshot = db.snapshot().map_err(|e| wrong("snapshot of the second", &e))?;
        is_refused(what, &snapshot.family(family).multi_get(["k01"]))?;
        is_refused(what, &db.writing(Default::default()).family(family).put("k02", "x"))?;
        let batch = WriteBatch::new();
        batch.put("k02", "x").map_err(|e| wrong("a change", &e))?;
        let added = batch.family(family).put("k02", "x");
        if added.is_err() {
            return is_refused(what, &added);
        }
        is_refused(what, &db.write(batch))
    }
}

impl World {
    /// Takes the handles of an open of the second database.
    pub(super) fn begin_second(&mut self) -> Done {
        let Some(db) = &self.second.db else { return Ok(()) };
        let origin = self.second.origin();
        for (model, (name, _)) in FAMILIES.into_iter().enumerate() {
            let family = db.family(name).map_err(|e| wrong("a family of the second", &e))?;
            self.handles.push(Handle { family, model, origin });
        }
        self.second_snapshot()
    }

    fn second_snapshot(&mut self) -> Done {
        let Some(db) = &self.second.db else { return Ok(()) };
        let snapshot = db.snapshot().map_err(|e| wrong("snapshot of the second", &e))?;
        let maps = self.second.maps.iter().cloned().enumerate().collect();
        let (origin, lossy) = (self.second.origin(), Vec::new());
        self.snapshots.push(Held { snapshot, origin, maps, lossy });
        if self.snapshots.iter().filter(|held| held.origin.is_foreign()).count() > HELD {
            let first = self.snapshots.iter().position(|held| held.origin.is_foreign());
            first.map(|first| self.snapshots.remove(first));
        }
        Ok(())
    }

    pub(super) fn second(&mut self, act: &SecondAct) -> Done {
        self.done.second += 1;
        let family = |back: bool| {
            let name = FAMILIES[usize::from(back)].0;
            self.second.db.as_ref().map(|db| db.family(name)).transpose()
        };
        match act {
            SecondAct::Write(changes) => return self.second.write(changes),
            SecondAct::Snapshot => return self.second_snapshot(),
            SecondAct::Turn(end) => return self.turn(*end),
            SecondAct::Refused(n) => {
                self.done.refused += 1;
                return self.live(*n).map_or(Ok(()), |handle| self.second.refuses(&handle.family));
            }
            SecondAct::Flush(back) => family(*back).and_then(|f| f.map_or(Ok(()), |f| f.flush())),
            SecondAct::Compact(back) => family(*back)
                .and_then(|f| f.map_or(Ok(()), |f| f.compact_range(.., CompactRangeOptions::default()))),
        }
        .map_err(|e| wrong("flush or compaction of the second", &e))
    }

    fn turn(&mut self, end: End) -> Done {
        self.done.turns += 1;
        let origin = self.second.origin();
        let Some(db) = self.second.db.take() else {
            self.second.open(&self.sim)?;
            self.begin_second()?;
            return self.second.compare();
        };
        self.scans.retain(|held| !held.origin.is_foreign());
        // Handles of older opens keep nothing open.
        self.handles
            .retain(|handle| !handle.origin.is_foreign() || handle.origin == origin && end == End::Close);
        self.snapshots.retain(|held| !held.origin.is_foreign() || held.origin == origin && end == End::Close);
        if end == End::Close {
            db.close().map_err(|e| wrong("close of the second", &e))?;
            is_refused("a write to a closed database", &db.put("k02", "x"))?;
        }
        drop(db);
        let users = self.second.resources.as_ref().map_or(1, Resources::databases);
        if users == 1 { Ok(()) } else { Err(format!("{users} databases use the resources, and one is open")) }
    }
}
