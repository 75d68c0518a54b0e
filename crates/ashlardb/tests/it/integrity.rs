//! Checks: every damage is found, and every key that a damage keeps from being read is named as at risk.

use crate::store::fingerprint;
use ashlar_env::sim::{CrashMode, SimEnv};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::rng::Rng;
use ashlar_testkit::{Change, Judge, JudgeVersion, Op, Tools, report};
use ashlardb::{
    BusyKind, CheckReport, Db, Env, ErrorKind, FormatLevel, Read as _, Risk, Write as _, check_database,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn check(dir: &Path) -> CheckReport {
    check_database(&Env::os().unwrap(), dir, &mut |_| {}).unwrap()
}

/// Two families; tables of many blocks on two levels, blob files in one of them, and a log.
pub fn database(dir: &Path, options: &str) -> [Entries; 2] {
    // What both judges read.
    let builder = Db::builder(dir).format_level(FormatLevel::V7_8).options(options);
    let db =
        builder.family("blobs", |f| f.blob_files(200)).tune(|_, f| f.table.block_size = 1024).open().unwrap();
    let mut entries = [Entries::new(), Entries::new()];
    let families = [db.default_family(), db.family("blobs").unwrap()];
    for round in 0..3_u32 {
        for (family, model) in families.iter().zip(&mut entries) {
            for i in 0..200_u32 {
                let key = format!("key{:05}", i * 7 % 1000 + round * 3).into_bytes();
                let value: Vec<u8> = (0..100 + i * 2).map(|n| (n * 31 + i + round) as u8 % 96 + 32).collect();
                family.put(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        match round {
            0 => db.compact().unwrap(),
            1 => db.flush().unwrap(),
            _ => {}
        }
    }
    db.wait_for_background().unwrap();
    db.close().unwrap();
    entries
}

pub fn files(dir: &Path, ends: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = all.filter(|path| path.to_str().unwrap().ends_with(ends)).collect();
    files.sort();
    files
}

/// Keys whose read fails. What reads must be right.
fn failing(dir: &Path, entries: &[Entries; 2]) -> Option<[Vec<Vec<u8>>; 2]> {
    let db = Db::builder(dir).read_only(true).open().ok()?;
    let mut failing = [Vec::new(), Vec::new()];
    for (at, name) in ["default", "blobs"].into_iter().enumerate() {
        let family = db.family(name).ok()?;
        for (key, value) in &entries[at] {
            match family.get(key) {
                Ok(found) => assert_eq!(found.as_deref(), Some(&value[..]), "{}", key.escape_ascii()),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::Corruption, "{e}");
                    failing[at].push(key.clone());
                }
            }
        }
    }
    Some(failing)
}

/// Whether the report names the key of the family as at risk.
fn names(report: &CheckReport, family: &str, key: &[u8]) -> bool {
    report.damages.iter().any(|damage| match &damage.risk {
        Risk::Database | Risk::UnknownKeys | Risk::Writes { .. } => true,
        Risk::Keys(spans) => {
            damage.family.as_deref() == Some(family)
                && spans.iter().any(|span| &*span.from <= key && key <= &*span.to)
        }
        _ => false,
    })
}

/// Flips a bit in every part of tables and blob files. Whatever then cannot be read must have been named, and not much
/// more than that; what the check calls sound must read right.
#[test]
fn keys_that_a_damage_hits_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    let entries = database(&dir, "");
    let sound = check(&dir);
    assert!(sound.is_sound() && sound.remarks.is_empty(), "{sound}");
    assert!(sound.tables >= 4 && sound.blob_files >= 2 && sound.logs == 1 && sound.checksums == 0, "{sound}");
    let before = fingerprint(temp.path());
    let (mut flips, mut found, mut hit) = (0, 0, 0);
    let mut rng = Rng::new(7);
    for file in files(&dir, ".sst").into_iter().chain(files(&dir, ".blob")) {
        let good = std::fs::read(&file).unwrap();
        for part in 0..6 {
            let at = (good.len() * part + rng.below(good.len())) / 6;
            let mut bad = good.clone();
            bad[at] ^= 1 << rng.below(8);
            std::fs::write(&file, &bad).unwrap();
            let report = check(&dir);
            flips += 1;
            found += usize::from(!report.is_sound());
            for damage in &report.damages {
                assert_eq!(Some(&*damage.file), file.file_name().unwrap().to_str(), "{report}");
            }
            let Some(failing) = failing(&dir, &entries) else {
                assert!(!report.is_sound(), "{}: {at} is not found", file.display());
                continue;
            };
            for (family, keys) in ["default", "blobs"].into_iter().zip(failing) {
                hit += keys.len();
                for key in keys {
                    assert!(names(&report, family, &key), "{}: {report}", key.escape_ascii());
                }
            }
        }
        std::fs::write(&file, &good).unwrap();
    }
    assert!(found * 100 >= flips * 95 && hit > 0, "{found} of {flips}, {hit} keys");
    let after = fingerprint(temp.path());
    assert!(before.iter().zip(&after).all(|(a, b)| a.0 == b.0 && a.1 == b.1), "a check changes nothing");
    report::figure(&format!(
        "check: {found} of {flips} flips in tables and blob files found; all {hit} keys they hit named"
    ));
}

#[test]
fn damaged_names_manifests_and_logs_are_told_apart() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    database(&dir, "");
    let damaged = |file: &Path, change: &dyn Fn(&mut Vec<u8>)| {
        let good = std::fs::read(file).unwrap();
        let mut bad = good.clone();
        change(&mut bad);
        std::fs::write(file, &bad).unwrap();
        let report = check(&dir);
        std::fs::write(file, &good).unwrap();
        report
    };
    let name = |file: &Path| file.file_name().unwrap().to_str().unwrap().to_owned();

    let current = dir.join("CURRENT");
    let report = damaged(&current, &|bytes| bytes.truncate(4));
    assert_eq!((report.damages[0].file.as_str(), &report.damages[0].risk), ("CURRENT", &Risk::Database));
    assert!(report.tables >= 4, "tables are read for themselves: {report}");

    let text = std::fs::read_to_string(&current).unwrap();
    let manifest = dir.join(text.trim());
    let report = damaged(&manifest, &|bytes| bytes[30] ^= 4);
    assert_eq!((report.damages[0].file.clone(), &report.damages[0].risk), (name(&manifest), &Risk::Database));

    let log = files(&dir, ".log").pop().unwrap();
    let length = std::fs::metadata(&log).unwrap().len();
    // A power cut may leave that, too: nothing proves a damage. But the keys are named.
    let report = damaged(&log, &|bytes| bytes[length as usize / 2] ^= 4);
    let Risk::Writes { from, to: Some(to), last: Some(last), behind, more } = &report.holes[0].risk else {
        panic!("{report}")
    };
    assert!(from <= to && !behind.is_empty(), "{report}");
    assert_eq!(behind.len() as u64 + more, last.get() - to.get(), "{report}");
    assert!(report.is_sound() && report.to_string().contains("at risk: writes "), "{report}");
    assert!(report.to_string().ends_with(": no damage, 1 hole\n"), "{report}");

    // What a crash tears is no damage.
    let report = damaged(&log, &|bytes| bytes.truncate(length as usize - 5));
    assert!(report.is_sound() && report.remarks[0].contains("torn tail"), "{report}");

    let table = files(&dir, ".sst").pop().unwrap();
    std::fs::rename(&table, temp.path().join("away")).unwrap();
    let report = check(&dir);
    let Risk::Keys(spans) = &report.damages[0].risk else { panic!("{report}") };
    assert!(report.damages[0].file == name(&table) && spans[0].from < spans[0].to, "{report}");
    std::fs::rename(temp.path().join("away"), &table).unwrap();

    std::fs::copy(&table, dir.join("009999.sst")).unwrap();
    let report = check(&dir);
    // Readers of other tests may keep tables that a compaction has replaced: epochs are those of the process.
    let told = report.remarks.iter().any(|remark| remark == "009999.sst is not in the MANIFEST");
    assert!(report.is_sound() && told, "{report}");
    let e = check_database(&Env::os().unwrap(), &temp.path().join("none"), &mut |_| {}).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
}

const DIR: &str = "/db";

/// Two families on a simulated disk. Only the log has what `other` was given; `default` was flushed once, and half of the
/// databases have logs behind one another that nothing has synced.
fn logged(seed: u64) -> (SimEnv, Db) {
    let (sim, mut rng) = (SimEnv::new(seed), Rng::new(seed));
    let open = Db::builder(DIR).env(sim.env()).options("write_buffer_size=64K;max_write_buffer_number=8");
    let db = open.family("other", |f| f).open().unwrap();
    let families = [db.default_family(), db.family("other").unwrap()];
    let mut write = |kib: usize| {
        for i in 0..kib {
            let family = &families[usize::from(rng.below(8) == 0)];
            family.put(format!("key{:03}", i * 7 % 100), vec![i as u8; 500 + rng.below(1000)]).unwrap();
        }
    };
    write(30);
    if seed % 4 < 2 {
        families[0].flush().unwrap();
        write(20);
    }
    if seed.is_multiple_of(2) {
        db.pause_background_work().unwrap();
        write(150);
    }
    if seed.is_multiple_of(3) {
        db.sync().unwrap();
    }
    write(20);
    (sim, db)
}

/// Holds what a check says of the machine against what an open does. True: the open refused.
fn agrees(sim: &SimEnv, what: &str) -> (bool, CheckReport) {
    let env = sim.env();
    let report = check_database(&env, Path::new(DIR), &mut |_| {}).unwrap();
    match Db::builder(DIR).env(env).create(false).open() {
        Ok(db) => {
            let recovery = db.recovery();
            let told = !report.holes.is_empty() || report.remarks.iter().any(|r| r.contains("torn tail"));
            assert!(report.is_sound(), "{what}: {report}{recovery}");
            assert_eq!(told, !recovery.dropped.is_empty(), "{what}: {report}{recovery}");
            (false, report)
        }
        Err(e) => {
            assert!(e.is_corruption() && !report.is_sound(), "{what}: {e}\n{report}");
            (true, report)
        }
    }
}

#[test]
fn a_check_calls_damaged_what_an_open_refuses() {
    let (mut cuts, mut flips, mut holes, mut refused) = (0, 0, 0, 0);
    for seed in 0..12 {
        let (sim, _open) = logged(seed);
        for mode in CrashMode::all() {
            let (refuses, report) = agrees(&sim.crash(mode), &format!("seed {seed}, {mode:?}"));
            assert!(!refuses, "seed {seed}, {mode:?}: {report}");
            (cuts, holes) = (cuts + 1, holes + report.holes.len());
        }
        let fs = sim.env().fs;
        let logs = fs.list(Path::new(DIR)).unwrap().into_iter().filter(|entry| entry.name.ends_with(".log"));
        for log in logs.filter(|log| log.len > 0) {
            for part in 0..4 {
                let image = sim.crash(CrashMode::KILL);
                let at = (log.len * part / 4 + seed % 7).min(log.len - 1);
                let path = Path::new(DIR).join(&log.name);
                let (fs, mut byte) = (image.env().fs, [0]);
                fs.open_read(&path).unwrap().read_exact_at(&mut byte, at).unwrap();
                fs.open_write(&path).unwrap().write_at(&[byte[0] ^ 4], at).unwrap();
                let (refuses, _) = agrees(&image, &format!("seed {seed}, {} at {at}", log.name));
                (flips, refused) = (flips + 1, refused + usize::from(refuses));
            }
        }
    }
    assert!(holes > 0 && refused > 0 && refused < flips, "{holes} holes, {refused} of {flips} refused");
    report::figure(&format!(
        "check: {cuts} power cuts left {holes} holes and no damage; {refused} of {flips} flips in logs refused by \
         open and check alike"
    ));
}

const CHECKSUMS: &str = "file_checksum_gen_factory=FileChecksumGenCrc32cFactory";

#[test]
fn checksums_of_files_are_recorded_compared_and_read_by_rocksdb() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    database(&dir, CHECKSUMS);
    let sound = check(&dir);
    assert!(sound.is_sound() && sound.checksums == sound.tables + sound.blob_files, "{sound}");
    // Blocks without checksums: only the one over the file can tell. Here one byte of a table that has them.
    let db = Db::builder(&dir).options(CHECKSUMS).family("blobs", |f| f).open().unwrap();
    let compared = db.verify_file_checksums(|_| {}).unwrap();
    assert!(compared.files == compared.files_total && compared.bytes > 0);
    let all = db.verify_db(|_| {}).unwrap();
    assert!(all.is_sound() && all.checksums == compared.files, "{all}");
    let table = files(&dir, ".sst").pop().unwrap();
    let good = std::fs::read(&table).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 3] ^= 1;
    std::fs::write(&table, &bad).unwrap();
    let e = db.verify_file_checksums(|_| {}).unwrap_err();
    assert!(e.is_corruption() && e.to_string().contains("file checksum mismatch"), "{e}");
    assert_eq!(db.verify_db(|_| {}).unwrap().damages.len(), 1);
    std::fs::write(&table, &good).unwrap();
    db.close().unwrap();

    match Tools::available() {
        Err(skip) => return skip.announce("checksums_of_files_are_recorded_compared_and_read_by_rocksdb"),
        Ok(tools) => {
            let text = tools.manifest(&dir).unwrap().to_lowercase();
            for file in files(&dir, ".sst") {
                let sum = ashlar_base::checksum::crc32c(&std::fs::read(&file).unwrap());
                assert!(text.contains(&format!("{sum:08x}")), "{}: {text}", file.display());
            }
        }
    }
    // The other way: what RocksDB records, we compare.
    for version in JudgeVersion::ALL {
        let theirs = temp.path().join(version.name());
        let written = (|| -> Result<(), JudgeError> {
            let mut judge = Judge::spawn(version)?;
            judge.open(&theirs, Opening::Create, CHECKSUMS)?;
            for round in 0..2_u8 {
                for i in 0..50_u8 {
                    let put = Change::Put { family: "default".into(), key: vec![i], value: vec![round; 300] };
                    judge.write(&[put], false)?;
                }
                judge.apply(&[Op::Flush { family: "default".into() }])?;
            }
            judge.close()
        })();
        match written {
            Err(JudgeError::Skip(skip)) => return skip.announce("checksums_of_files"),
            other => other.unwrap(),
        }
        let report = check(&theirs);
        assert!(report.is_sound() && report.tables > 0 && report.checksums == report.tables, "{report}");
    }
}

#[test]
fn outputs_are_read_back_on_request() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    database(&dir, "paranoid_file_checks=true");
    assert!(check(&dir).is_sound());
}

#[test]
fn a_table_whose_writer_sampled_a_dictionary_is_sound() {
    let dir = tempfile::tempdir().unwrap();
    let judged = || {
        let mut judge = Judge::spawn(JudgeVersion::V11)?;
        let options = "compression=kZSTD;compression_opts={max_dict_bytes=4096;zstd_max_train_bytes=65536}";
        judge.open(dir.path(), Opening::Create, options)?;
        judge.bulk(&"bulk put default 0 5000 100 1".parse().unwrap())?;
        judge.apply(&[Op::Flush { family: "default".into() }])?;
        judge.close()
    };
    match judged() {
        Err(JudgeError::Skip(skip)) => skip.announce("a_table_whose_writer_sampled_a_dictionary_is_sound"),
        outcome => {
            outcome.unwrap();
            let report = check(dir.path());
            assert!(report.is_sound(), "{report}");
        }
    }
}

/// What a process that has the database open removes meanwhile looks like damage. Here every table is empty, and whole
/// again before the close.
#[test]
fn a_check_beside_a_process_that_has_the_database_open_calls_nothing_damaged() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("db");
    database(&dir, "");
    let env = Env::os().unwrap();
    let db = Db::open(&dir).unwrap();
    db.wait_for_background().unwrap();
    let before = files(&dir, "");
    assert!(check(&dir).is_sound(), "a sound result stays one");
    let aside = temp.path().join("aside");
    std::fs::create_dir(&aside).unwrap();
    let tables = files(&dir, ".sst");
    let kept = |table: &Path| aside.join(table.file_name().unwrap());
    for table in &tables {
        std::fs::rename(table, kept(table)).unwrap();
        std::fs::write(table, b"").unwrap();
    }
    let level = ashlar_repair::check_level(&*env.fs, &dir).map(drop);
    for answer in [check_database(&env, &dir, &mut |_| {}).map(drop), level] {
        let e = answer.unwrap_err();
        let text = e.to_string();
        assert_eq!(e.kind(), ErrorKind::Busy(BusyKind::Locked), "{text}");
        let pid = format!("pid {}", std::process::id());
        for part in ["open elsewhere", &pid, "look like damage", "Close the database", dir.to_str().unwrap()]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    tables.iter().for_each(|table| std::fs::rename(kept(table), table).unwrap());
    assert_eq!(before, files(&dir, ""), "a check leaves no file");
    assert!(Db::open(&dir).is_err(), "the lock stays with its owner");
    db.close().unwrap();
    assert!(check(&dir).is_sound());
    files(&dir, ".sst").iter().for_each(|table| std::fs::write(table, b"").unwrap());
    std::fs::remove_file(dir.join("LOCK")).unwrap();
    assert!(!check(&dir).is_sound(), "no process has it open");
    assert!(!dir.join("LOCK").exists(), "a check makes no LOCK");
}
