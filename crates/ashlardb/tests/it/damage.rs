//! Directories that are missing, not ours, cut or damaged: an error that names file, offset and cause, and not a byte on
//! disk changed; or, where a log was cut, what stands before the cut and a report. Never wrong data.

use crate::store::{fingerprint, listing, write};
use ashlar_testkit::golden::golden;
use ashlar_testkit::ops::draw;
use ashlar_testkit::oracle::first_difference;
use ashlar_testkit::{Change, KeyValue, Model, Op, report};
use ashlardb::{Builder, Db, Error, ErrorKind, Read as _, RecoveryMode, Write as _};
use std::path::{Path, PathBuf};

/// A database with tables, a log and a model of what is in it.
struct Patient {
    temp: tempfile::TempDir,
    model: Model,
}

impl Patient {
    fn new(seed: u64, tables: usize, writes: usize) -> Patient {
        let temp = tempfile::tempdir().unwrap();
        let mut patient = Patient { temp, model: Model::new() };
        let db = Db::open(patient.path()).unwrap();
        for part in 0..=tables as u64 {
            for change in changes(seed + part, writes) {
                patient.model.apply(std::slice::from_ref(&change));
                write(&db, &[change], false);
            }
            if part < tables as u64 {
                db.flush().unwrap();
                // The logs behind it are gone then: one that is still there would heal what a test damages.
                db.wait_for_background().unwrap();
            }
        }
        db.close().unwrap();
        patient
    }

    fn path(&self) -> PathBuf {
        self.temp.path().join("db")
    }

    fn builder(&self) -> Builder {
        Db::builder(self.path())
    }

    /// The newest file of a kind.
    fn file(&self, matches: impl Fn(&str) -> bool) -> PathBuf {
        let entries = std::fs::read_dir(self.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| matches(path.file_name().unwrap().to_str().unwrap())).max().unwrap()
    }

    fn expected(&self) -> Vec<KeyValue> {
        self.model.now().entries("default")
    }
}

fn changes(seed: u64, count: usize) -> Vec<Change> {
    let mix = ashlar_testkit::ops::Mix {
        merge_percent: 0,
        families: vec!["default".into()],
        batch_percent: 0,
        max_value_bytes: 300,
        ..ashlar_testkit::ops::Mix::writes_only()
    };
    let ops = draw(seed, count, &mix).into_iter();
    ops.flat_map(|op| if let Op::Write { changes, .. } = op { changes } else { Vec::new() }).collect()
}

/// Opens what must not open, and looks whether anything below `root` changed.
fn refused(root: &Path, builder: Builder, what: &str) -> Error {
    let before = fingerprint(root);
    let e = match builder.open() {
        Ok(db) => panic!("{what}: it opened: {}", db.recovery()),
        Err(e) => e,
    };
    let after = fingerprint(root);
    let names = |list: &[(PathBuf, Vec<u8>, std::time::SystemTime)]| {
        list.iter().map(|(path, bytes, _)| format!("{} {}", path.display(), bytes.len())).collect::<Vec<_>>()
    };
    assert!(
        before == after,
        "{what}: the refused open changed {:#?} to {:#?}",
        names(&before),
        names(&after)
    );
    e
}

fn says(e: &Error, kind: ErrorKind, words: &[&str]) {
    let text = e.to_string();
    assert_eq!(e.kind(), kind, "{e:?}");
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} lacks one of {words:?}");
}

#[test]
fn what_is_no_database_stays_as_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    let missing = root.join("missing");
    let e = refused(root, Db::builder(&missing).create(false), "missing");
    says(&e, ErrorKind::InvalidArgument, &["missing"]);
    std::fs::create_dir(root.join("empty")).unwrap();
    let e = refused(root, Db::builder(root.join("empty")).create(false), "empty");
    says(&e, ErrorKind::InvalidArgument, &["empty"]);
    std::fs::write(root.join("file"), "text").unwrap();
    says(&refused(root, Db::builder(root.join("file")), "a file"), ErrorKind::InvalidArgument, &["file"]);
    let below = refused(root, Db::builder(root.join("file/db")), "below a file");
    assert!(below.to_string().contains("file"), "{below}");

    let foreign = root.join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("000123.sst"), "foreign data").unwrap();
    let e = refused(root, Db::builder(&foreign), "tables without CURRENT");
    says(&e, ErrorKind::Corruption, &["CURRENT", "000123.sst"]);
    std::fs::write(foreign.join("CURRENT"), "PostgreSQL says hello\n").unwrap();
    says(&refused(root, Db::builder(&foreign), "another CURRENT"), ErrorKind::Corruption, &["CURRENT"]);

    // Files that mean nothing to us are left alone.
    let beside = root.join("beside");
    std::fs::create_dir(&beside).unwrap();
    std::fs::write(beside.join("notes.txt"), "mine").unwrap();
    Db::open(&beside).unwrap().close().unwrap();
    assert_eq!(std::fs::read(beside.join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let patient = Patient::new(1, 1, 20);
    let root = patient.temp.path();
    let e = refused(root, patient.builder().default_family(|f| f.reverse_order()), "another order");
    says(
        &e,
        ErrorKind::InvalidArgument,
        &["leveldb.BytewiseComparator", "rocksdb.ReverseBytewiseComparator"],
    );
    says(&refused(root, patient.builder().must_be_new(), "not new"), ErrorKind::InvalidArgument, &["db"]);
    let e = refused(root, patient.builder().default_family(|f| f.write_buffer(1)), "a tiny write buffer");
    says(&e, ErrorKind::InvalidArgument, &["write_buffer_size"]);
    let e = refused(root, patient.builder().family("x", |f| f).family("x", |f| f), "a family twice");
    says(&e, ErrorKind::InvalidArgument, &["\"x\""]);
}

#[test]
fn damaged_names_and_manifests_are_refused() {
    let patient = Patient::new(2, 2, 40);
    let root = patient.temp.path();
    let current = patient.path().join("CURRENT");
    let good = std::fs::read(&current).unwrap();
    for bad in
        [&b""[..], b"\n", b"MANIFEST-", b"MANIFEST-000001", b"MANIFEST-999999\n", b"../MANIFEST-000001\n"]
    {
        std::fs::write(&current, bad).unwrap();
        let what = format!("CURRENT is {:?}", bad.escape_ascii().to_string());
        let e = refused(root, patient.builder(), &what);
        assert!(
            e.to_string().contains("CURRENT") || e.to_string().contains("MANIFEST-999999"),
            "{what}: {e}"
        );
    }
    std::fs::write(&current, &good).unwrap();
    assert_eq!(listing(patient.builder().open().unwrap().scan(..)), patient.expected());
}

/// How an open of a damaged MANIFEST ended.
#[derive(PartialEq, Eq)]
enum Answer {
    Refused,
    Told,
    Whole,
}

/// Opens a copy whose MANIFEST holds `bytes`. A refusal names file and offset, and changes nothing. What looks as if a
/// crash had torn the end off may open with less, but says so, and no table may be gone.
fn open_with_manifest(patient: &Patient, bytes: &[u8], what: &str) -> (Answer, Option<Error>) {
    let copy = crate::store::copy(&patient.path());
    let manifest = patient.file(|name| name.starts_with("MANIFEST-"));
    let manifest = copy.path().join(manifest.file_name().unwrap());
    std::fs::write(&manifest, bytes).unwrap();
    let before = fingerprint(copy.path());
    let db = match Db::builder(copy.path()).create(false).open() {
        Ok(db) => db,
        Err(e) => {
            assert!(fingerprint(copy.path()) == before, "{what}: a refused open changed something");
            assert!(e.kind() == ErrorKind::Corruption && e.path() == Some(&manifest), "{what}: {e:?}");
            return (Answer::Refused, Some(e));
        }
    };
    let (found, report) = (listing(db.scan(..)), db.recovery().clone());
    db.close().unwrap();
    if found == patient.expected() {
        return (Answer::Whole, None);
    }
    assert!(!report.is_clean(), "{what}: less data, and a clean report:\n{report}");
    let tables = |dir: &Path| {
        let all = fingerprint(dir).into_iter().map(|(path, bytes, _)| (path, bytes));
        all.filter(|(path, _)| path.extension().is_some_and(|ext| ext == "sst")).collect::<Vec<_>>()
    };
    let kept: Vec<_> = tables(copy.path()).into_iter().map(|(_, bytes)| bytes).collect();
    for (path, bytes) in tables(&patient.path()) {
        assert!(kept.contains(&bytes), "{what}: {} is gone:\n{report}", path.display());
    }
    (Answer::Told, None)
}

#[test]
fn a_flipped_byte_in_a_manifest_is_found() {
    let patient = Patient::new(3, 2, 40);
    let good = std::fs::read(patient.file(|name| name.starts_with("MANIFEST-"))).unwrap();
    let (mut refused, mut told) = (0, 0);
    for at in (0..good.len()).step_by(report::scale(3, 1)) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x10;
        match open_with_manifest(&patient, &bytes, &format!("byte {at} of {} flipped", good.len())) {
            (Answer::Refused, e) => {
                let offset = e.as_ref().and_then(Error::offset);
                assert!(offset.is_some_and(|offset| offset <= at as u64), "byte {at}: {e:?}");
                refused += 1;
            }
            // A length that reaches over the end of the file is what a torn append looks like.
            (Answer::Told, _) => told += 1,
            (Answer::Whole, _) => panic!("byte {at} of {} flipped, and it was not found", good.len()),
        }
    }
    report::figure(&format!(
        "damage: {} flipped bytes of a MANIFEST, {refused} refused with nothing changed, {told} opened as torn and told, \
         0 unseen",
        refused + told
    ));
    assert!(refused > 10 * told, "{refused} refused, {told} told");
}

#[test]
fn a_cut_manifest_never_opens_as_something_else() {
    let patient = Patient::new(4, 2, 40);
    let good = std::fs::read(patient.file(|name| name.starts_with("MANIFEST-"))).unwrap();
    let mut refused = 0;
    for len in (0..good.len()).step_by(report::scale(5, 1)) {
        let (answer, _) = open_with_manifest(&patient, &good[..len], &format!("cut to {len} bytes"));
        refused += usize::from(answer == Answer::Refused);
    }
    // Whatever is cut off, a log that went with it is missed.
    assert!(refused > 0);
}

#[test]
fn damaged_tables_are_told_by_name_and_give_no_wrong_data() {
    let patient = Patient::new(4, 2, 60);
    let root = patient.temp.path();
    let table = patient.file(|name| name.ends_with(".sst"));
    let name = table.file_name().unwrap().to_str().unwrap();
    let good = std::fs::read(&table).unwrap();
    for len in [0, 1, 40, good.len() / 2, good.len() - 1] {
        std::fs::write(&table, &good[..len]).unwrap();
        says(&refused(root, patient.builder(), &format!("{len} bytes")), ErrorKind::Corruption, &[name]);
    }
    std::fs::remove_file(&table).unwrap();
    let e = refused(root, patient.builder(), "without a table");
    assert!(e.to_string().contains(name), "{e}");
    std::fs::write(&table, &good).unwrap();

    let (mut told, mut harmless) = (0, 0);
    for at in (0..good.len()).step_by(report::scale(61, 13)) {
        let mut bytes = good.clone();
        bytes[at] ^= 0x04;
        std::fs::write(&table, bytes).unwrap();
        match read_all(&patient) {
            Ok(found) => {
                assert_eq!(first_difference(&patient.expected(), &found), None, "byte {at} flipped");
                harmless += 1;
            }
            Err(e) => {
                says(&e, ErrorKind::Corruption, &[name]);
                assert!(e.path() == Some(table.as_path()), "byte {at}: {e:?}");
                told += 1;
            }
        }
    }
    report::figure(&format!(
        "damage: {} flipped bytes of a table, {told} told, {harmless} harmless, 0 wrong",
        told + harmless
    ));
    assert!(told > 20 && told > harmless, "{told} told, {harmless} harmless");
}

/// Reads with a scan and, when that works, every key alone.
fn read_all(patient: &Patient) -> Result<Vec<KeyValue>, Error> {
    // A copy: compaction must not come between.
    let db = patient.builder().tune(|_, f| f.compaction.automatic = false).open()?;
    let entries = db.scan(..).collect::<Result<Vec<_>, _>>()?;
    for (key, value) in &patient.expected() {
        assert_eq!(db.get(key)?.as_deref(), Some(value.as_slice()));
    }
    db.close()?;
    Ok(entries)
}

#[test]
fn a_cut_or_damaged_log_is_a_prefix_or_an_error() {
    let patient = Patient::new(5, 1, 60);
    let log = patient.file(|name| name.ends_with(".log"));
    let name = log.file_name().unwrap().to_str().unwrap().to_owned();
    let good = std::fs::read(&log).unwrap();
    let (mut cuts, mut flips) = (0, 0);
    for at in (0..good.len()).step_by(report::scale(307, 31)) {
        let flipped: Vec<u8> =
            good.iter().enumerate().map(|(i, b)| if i == at { b ^ 0x20 } else { *b }).collect();
        for (bytes, cut) in [(&good[..at], true), (&flipped[..], false)] {
            let what = format!("byte {at} of {}, cut: {cut}", good.len());
            let copy = crate::store::copy(&patient.path());
            std::fs::write(copy.path().join(&name), bytes).unwrap();
            if !cut {
                let builder = Db::builder(copy.path()).recovery_mode(RecoveryMode::Absolute);
                let e = refused(copy.path(), builder, &what);
                says(&e, ErrorKind::Corruption, &[&name]);
                assert!(e.offset().is_some_and(|offset| offset <= at as u64), "{what}: {e:?}");
                flips += 1;
            }
            let db = Db::open(copy.path()).unwrap_or_else(|e| panic!("{what}: {e:?}"));
            let state = crate::store::state_of(&db);
            let prefix = patient.model.match_prefix(&state).unwrap_or_else(|e| panic!("{what}: {e}"));
            if !cut {
                assert!(
                    prefix < patient.model.writes() && db.recovery().tail_dropped(),
                    "{what}: {}",
                    db.recovery()
                );
                assert!(db.recovery().to_string().contains(&name), "{}", db.recovery());
            }
            cuts += usize::from(cut);
            // What was recovered stays: a second open finds the same and has nothing to say.
            db.put("after", "wards").unwrap();
            db.close().unwrap();
            drop(db);
            let db = Db::open(copy.path()).unwrap();
            assert!(db.recovery().is_clean(), "{what}: {}", db.recovery());
            assert_eq!(listing(db.scan(..)).len(), state.entries("default").len() + 1, "{what}");
        }
    }
    report::figure(&format!(
        "damage: a log cut at {cuts} lengths and flipped at {flips} bytes, each a prefix, 0 holes"
    ));
}

#[test]
fn what_others_left_and_we_do_not_serve_is_named_and_untouched() {
    let names = [
        "atomic_flush",
        "blobs",
        "manifest_tags",
        "merge_flushed",
        "range_del",
        "ttl",
        "txn_2pc",
        "udt",
        "wal_recycle",
        "wal_trailer",
        "wal_zstd",
    ];
    let (mut served, mut refusals) = (0, Vec::new());
    for name in names {
        let golden = golden(&format!("rocksdb-7.8.3/{name}")).unwrap();
        let before = fingerprint(golden.path());
        let db = match Db::builder(golden.path()).create(false).open() {
            Ok(db) => db,
            Err(e) => {
                let kinds = [ErrorKind::NotSupported, ErrorKind::InvalidArgument];
                assert!(kinds.contains(&e.kind()), "{name}: {e:?}");
                assert!(fingerprint(golden.path()) == before, "{name}: a refused open changed something");
                refusals.push(format!("{name}: {e}"));
                continue;
            }
        };
        for family in &golden.families {
            let entries: Result<Vec<_>, _> = db.family(&family.family).unwrap().scan(..).collect();
            match entries {
                Ok(found) if family.visible.is_empty() => drop(found),
                Ok(found) => {
                    assert_eq!(first_difference(&family.visible, &found), None, "{name} {}", family.family);
                    served += 1;
                }
                // Merge operands without their operator; or what we do not serve.
                Err(e) => {
                    let kinds = [ErrorKind::NotSupported, ErrorKind::InvalidArgument];
                    assert!(kinds.contains(&e.kind()), "{name}: {e:?}");
                    refusals.push(format!("{name} {}: {e}", family.family));
                }
            }
        }
    }
    report::figure(&format!(
        "other golden directories: {served} families served, {} refused by name",
        refusals.len()
    ));
    assert!(served >= 3, "{refusals:#?}");
}
