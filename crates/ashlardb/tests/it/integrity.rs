//! Checks: every damage is found, and every key that a damage keeps from being read is named as at risk.

use crate::store::fingerprint;
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::rng::Rng;
use ashlar_testkit::{Change, Judge, JudgeVersion, Tools, report};
use ashlardb::{CheckReport, Db, Env, ErrorKind, FormatLevel, Risk, check_database};
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
    db.engine().wait_for_background().unwrap();
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
        Risk::Nothing => false,
        Risk::Keys(spans) => {
            damage.family.as_deref() == Some(family)
                && spans.iter().any(|span| &*span.from <= key && key <= &*span.to)
        }
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
    let report = damaged(&log, &|bytes| bytes[length as usize / 2] ^= 4);
    let Risk::Writes { from, to: Some(to), behind, more } = &report.damages[0].risk else {
        panic!("{report}")
    };
    assert!(from <= to && !behind.is_empty() && *more == 0, "{report}");
    assert!(report.to_string().contains("at risk: writes "), "{report}");

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
    assert!(report.is_sound() && report.remarks == ["009999.sst is not in the MANIFEST"], "{report}");
    let e = check_database(&Env::os().unwrap(), &temp.path().join("none"), &mut |_| {}).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
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
                judge.apply(&[ashlar_testkit::Op::Flush { family: "default".into() }])?;
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
