//! The threads of a case. Each goes on until its work is done, or an operation fails.

use super::history::{self, FAMILIES};
use super::log::{Ack, Log};
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, Result, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_engine::column_family::Family;
use ashlar_env::sim::{CallClass, SimEnv};
use ashlar_options::{FamilyOptions, ReadOptions, WriteOptions};
use ashlar_read::iter::KeyBounds;
use ashlar_read::snapshot::Snapshot;
use ashlar_sync::schedule;
use ashlar_sync::shuttle::thread;
use ashlar_testkit::{KeyValue, Rng};
use std::sync::Arc;
use std::time::Duration;

/// How often a batch that is refused is written again.
const TRIES: u32 = 40;

/// The state that the threads share.
pub struct World {
    /// The machine.
    pub sim: SimEnv,
    /// The database.
    pub db: Db,
    /// The families of the batches, in the order of [`FAMILIES`].
    pub families: Vec<Arc<Family>>,
    /// Whether the log is handed over when it is asked for (`manual_wal_flush`).
    pub holds_back: bool,
    /// The options of a new family.
    pub family: FamilyOptions,
    /// Writers there are.
    pub writers: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// The counts of the work.
    pub log: Log,
}

/// The work of a thread.
#[derive(Clone, Copy, Debug)]
pub enum Actor {
    /// Writes its batches, some of them synced.
    Writer {
        /// Which.
        writer: usize,
        /// How many batches.
        batches: u64,
    },
    /// Looks at everything, again and again, in many ways.
    Reader,
    /// Flushes, compacts, and changes settings.
    Upkeep,
    /// Makes families, writes to them, and drops them.
    Families,
    /// Closes the database among all the others.
    Closer,
}

impl Actor {
    /// Does it.
    pub fn play(self, world: &World, rng: &mut Rng) {
        let (what, done) = match self {
            Actor::Writer { writer, batches } => ("write", write(world, rng, writer, batches)),
            Actor::Reader => ("read", read(world, rng)),
            Actor::Upkeep => ("upkeep", keep_up(world, rng)),
            Actor::Families => ("a family that comes and goes", come_and_go(world, rng)),
            Actor::Closer => ("close", close(world, rng)),
        };
        if let Err(e) = done {
            world.log.failed(what, &e);
        }
    }
}

fn write(world: &World, rng: &mut Rng, writer: usize, batches: u64) -> Result<()> {
    for number in 1..=batches {
        let mut batch = history::batch(writer, number, &world.families, world.value_bytes)?;
        let options = WriteOptions { sync: rng.percent(30), ..WriteOptions::default() };
        world.log.start(writer, number);
        let seq = taken(world, &mut batch, options)?;
        let held = world.holds_back && !options.sync && rng.percent(70);
        if world.holds_back && !options.sync && !held {
            world.db.flush_wal(false)?;
        }
        let calls = (!held).then(|| world.sim.calls_of(CallClass::Change));
        world.log.ack(Ack { writer, number, seq, synced: options.sync, calls });
    }
    Ok(())
}

/// Writes a batch. Where a call failed it may be refused, which leaves nothing of it, until the database has resumed.
fn taken(world: &World, batch: &mut WriteBatch, options: WriteOptions) -> Result<SeqNum> {
    let mut tries = 0;
    loop {
        match world.db.write(batch, options) {
            Err(e) if tries < TRIES && e.kind() == ErrorKind::Io(IoKind::Other) => {
                world.log.failed("write", &e);
                tries += 1;
                schedule::sleep(Duration::from_millis(50));
            }
            done => return done,
        }
    }
}

/// All entries of a family; between two of them, now and then, others go on for a while.
fn scan(world: &World, at: usize, options: ReadOptions, rng: &mut Rng) -> Result<Vec<KeyValue>> {
    let mut iter = world.db.iter(&world.families[at], KeyBounds::default(), options)?;
    let mut entries = Vec::new();
    let back = rng.percent(30);
    if back {
        iter.last()?
    } else {
        iter.first()?
    }
    while let Some((key, value)) = iter.entry() {
        entries.push((key.to_vec(), value.to_vec()));
        if rng.percent(10) {
            thread::yield_now();
        }
        if back { iter.prev()? } else { iter.next()? }
    }
    if back {
        entries.reverse();
    }
    Ok(entries)
}

/// The counters of all writers.
fn counters(world: &World, at: usize, options: ReadOptions, many: bool) -> Result<Vec<Option<Vec<u8>>>> {
    let keys: Vec<Vec<u8>> = (0..world.writers).map(history::counter).collect();
    let family = &world.families[at];
    let read = |view: Option<ashlar_read::point::View>| view.map(|value| value.to_vec());
    if many {
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        return world.db.multi_get(family, &keys, options)?.into_iter().map(|got| got.map(read)).collect();
    }
    keys.iter().map(|key| world.db.get(family, key, options).map(read)).collect()
}

/// The visible content of one family: batches by writer.
///
/// # Errors
/// Receives the events of the engine, and logs those that must not occur.
pub fn look(world: &World, at: usize, seq: Option<&Snapshot>, rng: &mut Rng) -> Result<Option<Vec<u64>>> {
    let options = ReadOptions { at: seq.map(|snapshot| snapshot.seq()), ..ReadOptions::default() };
    // Without a snapshot each get has a moment of its own: only a scan shows one state.
    let shown = if rng.percent(30) {
        let entries = scan(world, at, options, rng)?;
        history::judge(&entries, at, world.writers, world.value_bytes)
    } else {
        let found = counters(world, at, options, rng.percent(50))?;
        found.into_iter().map(|value| value.map_or(Ok(0), |value| history::number(&value))).collect()
    };
    Ok(shown.map_err(|what| world.log.find(what)).ok())
}

fn read(world: &World, rng: &mut Rng) -> Result<()> {
    let mut seen = vec![0; world.writers];
    let mut held = None;
    for _ in 0..rng.between(4, 16) {
        let floor = world.log.acknowledged();
        let at = rng.below(FAMILIES.len());
        let snapshot = rng.percent(60).then(|| world.db.snapshot()).transpose()?;
        let Some(shown) = look(world, at, snapshot.as_ref(), rng)? else { return Ok(()) };
        let ceiling = world.log.started();
        for writer in 0..world.writers {
            let (floor, shown) = (floor[writer].max(seen[writer]), shown[writer]);
            if shown < floor || shown > ceiling[writer] {
                let range = format!("{floor}..={}", ceiling[writer]);
                world.log.find(format!("{} shows {shown} of writer {writer}, not {range}", FAMILIES[at]));
            }
        }
        if let Some(snapshot) = snapshot {
            let Some(other) = look(world, 1 - at, Some(&snapshot), rng)? else { return Ok(()) };
            if other != shown {
                world.log.find(format!("one snapshot shows {shown:?} and, in the other family, {other:?}"));
            }
            // To be looked at again, later: it must show the same then.
            if held.is_none() && rng.percent(50) {
                held = Some((snapshot, shown.clone()));
            }
        }
        seen = shown;
    }
    if let Some((snapshot, first)) = held {
        let at = rng.below(FAMILIES.len());
        if let Some(again) = look(world, at, Some(&snapshot), rng)?
            && again != first
        {
            world.log.find(format!("a snapshot showed {first:?} and then {again:?}"));
        }
    }
    Ok(())
}

fn keep_up(world: &World, rng: &mut Rng) -> Result<()> {
    for _ in 0..rng.between(3, 10) {
        let family = &world.families[rng.below(FAMILIES.len())];
        match rng.below(9) {
            0..3 => world.db.flush(&world.families)?,
            3 => world.db.compact_range(family, None, None)?,
            4 => world.db.sync_wal()?,
            5 => world.db.flush_wal(rng.percent(50))?,
            6 => change_settings(world, family, rng)?,
            _ => world.db.flush(&world.families[..1])?,
        }
    }
    Ok(())
}

fn change_settings(world: &World, family: &Family, rng: &mut Rng) -> Result<()> {
    let bytes = (64 << rng.below(2)) << 10;
    let (bytes, files) = (bytes.to_string(), if rng.percent(50) { "2" } else { "-1" });
    world.db.set_options(family, &[("write_buffer_size", &bytes)])?;
    world.db.set_db_options(&[("max_total_wal_size", &bytes), ("max_open_files", files)])?;
    Ok(())
}

fn come_and_go(world: &World, rng: &mut Rng) -> Result<()> {
    for name in ["x", "y"] {
        let family = world.db.create_family(name, world.family.clone())?;
        for number in 0..rng.between(1, 3) {
            let mut batch = WriteBatch::new();
            batch.put(family.id(), b"number", format!("{number}").as_bytes())?;
            world.db.write(&mut batch, WriteOptions::default())?;
            let found = world.db.get(&family, b"number", ReadOptions::default())?;
            if found.as_deref() != Some(format!("{number}").as_bytes()) {
                world.log.find(format!("{name} shows {found:?} after {number} was written"));
            }
        }
        if rng.percent(40) {
            world.db.flush(&[Arc::clone(&family)])?;
        }
        world.db.drop_family(&family)?;
        let mut batch = WriteBatch::new();
        batch.put(family.id(), b"number", b"none")?;
        if let Ok(seq) = world.db.write(&mut batch, WriteOptions::default()) {
            world.log.find(format!("{name} was dropped and took write {seq:?}"));
        }
    }
    Ok(())
}

fn close(world: &World, rng: &mut Rng) -> Result<()> {
    let acks = rng.below(8);
    for _ in 0..200 {
        if world.log.acks().len() >= acks {
            break;
        }
        thread::yield_now();
    }
    world.log.close_begins();
    if let Err(e) = world.db.close() {
        world.log.close_failed(&e);
    }
    // A write that was let in before may still wait for its sync.
    let writes = world.sim.calls_of(CallClass::Write);
    (0..50).for_each(|_| thread::yield_now());
    if world.sim.calls_of(CallClass::Write) != writes {
        world.log.find("a closed database went on to change files".to_owned());
    }
    let closed = |e: &Error| matches!(e.kind(), ErrorKind::Shutdown(_));
    match world.db.get(&world.families[0], b"w0!", ReadOptions::default()) {
        Err(e) if closed(&e) => Ok(()),
        other => {
            world.log.find(format!("a closed database answers {other:?}"));
            Ok(())
        }
    }
}
