//! Damage is found without a request: by the scrubber, on the simulated machine; and by verification, in the MANIFEST too.

use ashlar_env::Clock;
use ashlar_env::sim::SimEnv;
use ashlar_testkit::report;
use ashlardb::{Db, Event, EventListener, Risk, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DIR: &str = "/db";

/// Files that were told to be damaged.
#[derive(Default)]
struct Ear(Mutex<Vec<String>>);

impl EventListener for Ear {
    fn on_event(&self, event: &Event) {
        if let Event::DamageFound { file, .. } = event {
            self.0.lock().unwrap().push(file.clone());
        }
    }
}

fn open(sim: &SimEnv, rate: u64, ear: &Arc<Ear>) -> Db {
    let listener: Arc<dyn EventListener> = Arc::<Ear>::clone(ear);
    let builder = Db::builder(DIR).env(sim.env()).scrub(rate).listener(listener);
    builder.default_family(|f| f.blob_files(500).tune(|f| f.table.block_size = 512)).open().unwrap()
}

/// Three tables and three blob files.
fn filled(sim: &SimEnv) {
    let db = open(sim, 0, &Arc::default());
    db.pause_background_work().unwrap();
    db.continue_background_work().unwrap();
    for round in 0..3_u32 {
        for i in 0..200_u32 {
            let value = vec![b'a' + i as u8 % 26; if i % 10 == 0 { 600 } else { 60 }];
            db.put(format!("{round}key{i:04}").as_bytes(), &value).unwrap();
        }
        db.flush().unwrap();
    }
    db.wait_for_background().unwrap();
    db.close().unwrap();
}

fn names(sim: &SimEnv, ends: &str) -> Vec<(String, u64)> {
    let entries = sim.env().fs.list(Path::new(DIR)).unwrap();
    entries.into_iter().filter(|e| e.name.contains(ends)).map(|e| (e.name, e.len)).collect()
}

fn flip(sim: &SimEnv, name: &str, at: u64) {
    let (fs, path) = (sim.env().fs, PathBuf::from(DIR).join(name));
    let mut byte = [0];
    fs.open_read(&path).unwrap().read_exact_at(&mut byte, at).unwrap();
    let file = fs.open_write(&path).unwrap();
    file.write_at(&[byte[0] ^ 4], at).unwrap();
    file.sync_all().unwrap();
}

/// Lets time pass until `rounds` rounds are over; how much.
fn scrub(sim: &SimEnv, db: &Db, rounds: u64) -> Duration {
    let begun = sim.clock().now();
    for _ in 0..100_000 {
        if db.scrubbed().rounds >= rounds {
            return sim.clock().now() - begun;
        }
        sim.env().jobs.drive(1);
    }
    panic!("no round ends: {:?}", db.scrubbed());
}

#[test]
fn every_damage_is_told_once_with_its_keys() {
    let sim = SimEnv::new(31);
    filled(&sim);
    let (tables, blobs) = (names(&sim, ".sst"), names(&sim, ".blob"));
    assert!(!tables.is_empty() && !blobs.is_empty());
    let files: Vec<_> = tables.iter().chain(&blobs).cloned().collect();
    let mut hit = 0;
    for (name, len) in &files {
        let sim = sim.crash(ashlar_env::sim::CrashMode::KILL);
        flip(&sim, name, len / 3);
        let ear = Arc::new(Ear::default());
        let db = open(&sim, 10_000, &ear);
        scrub(&sim, &db, 3);
        let found = db.scrubbed();
        assert_eq!(*ear.0.lock().unwrap(), [name.as_str()], "once in three rounds");
        assert!(found.damages.len() == 1 && found.damages[0].file == *name, "{found:?}");
        let Risk::Keys(spans) = &found.damages[0].risk else { panic!("{found:?}") };
        assert!(!spans.is_empty());
        assert_eq!(found.damages, db.verify_db(|_| {}).unwrap().damages, "as a verification has it");
        hit += 1;
        db.close().unwrap();
    }
    report::figure(&format!("scrubber: {hit} damaged files of {} found", files.len()));
}

#[test]
fn it_keeps_to_its_rate_and_a_round_takes_an_hour() {
    let sim = SimEnv::new(32);
    filled(&sim);
    let db = open(&sim, 1_000, &Arc::default());
    let all = db.verify_checksums(|_| {}).unwrap().bytes;
    // The first round begins anywhere.
    scrub(&sim, &db, 1);
    let before = db.scrubbed();
    let took = scrub(&sim, &db, 2);
    let read = db.scrubbed().bytes - before.bytes;
    assert_eq!(read, all, "a whole round");
    assert!(took >= Duration::from_millis(read) && took >= Duration::from_secs(3000), "{read} in {took:?}");
    db.close().unwrap();
    // A round that takes longer than an hour by its rate is followed by the next at once.
    let db = open(&sim, all / 7200, &Arc::default());
    scrub(&sim, &db, 2);
    let took = scrub(&sim, &db, 3);
    assert!((7000..8000).contains(&took.as_secs()), "{took:?}");
    db.close().unwrap();
}

#[test]
fn sound_files_that_come_and_go_are_no_damage() {
    let sim = SimEnv::new(33);
    filled(&sim);
    let ear = Arc::new(Ear::default());
    let db = open(&sim, 20_000, &ear);
    for round in 0..20_u32 {
        for i in 0..50_u32 {
            db.put(format!("{}key{i:04}", i % 3).as_bytes(), [round as u8; 700]).unwrap();
        }
        match round % 4 {
            0 => db.compact().unwrap(),
            1 => db.flush().unwrap(),
            _ => drop(sim.env().jobs.drive(30)),
        }
    }
    scrub(&sim, &db, 3);
    let found = db.scrubbed();
    assert!(found.damages.is_empty() && found.files > 4, "{found:?}");
    assert!(ear.0.lock().unwrap().is_empty());
    db.pause_background_work().unwrap();
    let before = db.scrubbed().files;
    sim.env().jobs.drive(500);
    assert!(db.scrubbed().files <= before + 1, "it pauses with the rest");
    db.close().unwrap();
    assert_eq!(sim.env().jobs.drive(10), 0, "nothing is left of it");
}

#[test]
fn the_end_of_the_manifest_in_use_is_verified() {
    let sim = SimEnv::new(34);
    filled(&sim);
    let db = open(&sim, 0, &Arc::default());
    db.put(b"k", b"v").unwrap();
    db.flush().unwrap();
    assert!(db.verify_db(|_| {}).unwrap().is_sound());
    let (name, len) = names(&sim, "MANIFEST-").into_iter().max().unwrap();
    flip(&sim, &name, len - 3);
    let found = db.verify_db(|_| {}).unwrap();
    assert!(found.damages.len() == 1 && found.damages[0].file == name, "{found}");
    assert_eq!(found.damages[0].risk, Risk::Database);
    db.close().unwrap();
}
