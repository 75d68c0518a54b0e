//! Files that cannot be ingested, and calls that make no sense: each is refused, by name, and nothing has changed.

use super::callbacks::{Callback, Trap, trapped};
use super::kind;
use ashlardb::prelude::*;
use ashlardb::{ErrorKind, IngestMode, IngestOptions, IoKind, Result, Severity, SstWriter, StringAppend};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Place {
    dir: tempfile::TempDir,
    db: Db,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open(dir.path().join("db")).unwrap();
        db.put("k", "before").unwrap();
        db.flush().unwrap();
        Place { dir, db }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A file with many blocks.
    fn file(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        let mut writer = SstWriter::create(&path).unwrap();
        for n in 0..2000 {
            writer.put(format!("key{n:05}"), format!("value {n} ").repeat(5)).unwrap();
        }
        writer.delete_range("z", "zz").unwrap();
        writer.finish().unwrap();
        path
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("db")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".sst"));
        names.sort();
        names
    }

    /// Ingests, and finds the database and its directory unchanged after the refusal.
    fn refused(&self, paths: &[impl AsRef<Path>], options: IngestOptions) -> (ErrorKind, String) {
        let before = self.files();
        let e = self.db.ingest(paths, options).unwrap_err();
        assert_eq!(self.files(), before, "{e}");
        assert_eq!(self.db.get("k").unwrap().as_deref(), Some(&b"before"[..]));
        assert!(self.db.get("key00000").unwrap().is_none());
        (e.kind(), e.to_string())
    }
}

const DEFAULT: fn() -> IngestOptions = IngestOptions::new;

#[test]
fn lists_that_make_no_sense() {
    let place = Place::new();
    let good = place.file("good.sst");
    let none: [&Path; 0] = [];
    assert_eq!(place.refused(&none, DEFAULT()).0, ErrorKind::InvalidArgument);
    for mode in [IngestMode::Link, IngestMode::Copy, IngestMode::Move] {
        let (kind, text) = place.refused(&[&good, &good], DEFAULT().mode(mode));
        assert!(kind == ErrorKind::InvalidArgument && text.contains("the same file"), "{text}");
        let missing = place.path("none.sst");
        let (kind, text) = place.refused(&[&good, &missing], DEFAULT().mode(mode));
        assert!(kind == ErrorKind::Io(IoKind::NotFound) && text.contains("none.sst"), "{text}");
        let (kind, text) = place.refused(&[place.dir.path()], DEFAULT().mode(mode));
        assert_eq!(kind, ErrorKind::InvalidArgument, "{text}");
        assert!(good.exists(), "the source is gone after an error");
    }
    let (db, family) = (&place.db, place.db.default_family());
    let twice = db.ingest_families(&[(&family, &[&good][..]), (&family, &[&good])], DEFAULT());
    assert_eq!(kind(twice), Some(ErrorKind::InvalidArgument));
    assert_eq!(kind(db.ingest_families::<&Path>(&[], DEFAULT())), Some(ErrorKind::InvalidArgument));
    assert_eq!(
        kind(db.ingest_families::<&Path>(&[(&family, &[])], DEFAULT())),
        Some(ErrorKind::InvalidArgument)
    );
    db.ingest(&[&good], DEFAULT()).unwrap();
}

/// A move of a table of the tree would take it away.
#[test]
fn files_of_the_database_itself() {
    let place = Place::new();
    let table = place.path("db").join(&place.files()[0]);
    for path in [table.clone(), place.path("db/../db").join(&place.files()[0])] {
        let (kind, text) = place.refused(&[&path], DEFAULT().mode(IngestMode::Move));
        assert!(kind == ErrorKind::InvalidArgument && text.contains("directory of the database"), "{text}");
    }
    // Under another name it is a table of a database all the same.
    let linked = place.path("linked.sst");
    fs::hard_link(&table, &linked).unwrap();
    let (kind, text) = place.refused(&[&linked], DEFAULT());
    assert!(kind == ErrorKind::NotSupported && text.contains("not written to be ingested"), "{text}");
    let writer = place.db.default_family().sst_writer(place.path("db/000099.sst"));
    assert_eq!(kind_of(writer), Some(ErrorKind::InvalidArgument));
}

fn kind_of<T>(answer: Result<T>) -> Option<ErrorKind> {
    kind(answer)
}

#[test]
fn damage_is_found_before_anything_changes() {
    let place = Place::new();
    let good = place.file("good.sst");
    let bytes = fs::read(&good).unwrap();
    let bad = place.path("bad.sst");
    for len in [0, 1, 60, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&bad, &bytes[..len]).unwrap();
        let (kind, text) = place.refused(&[&good, &bad], DEFAULT());
        assert!(kind == ErrorKind::Corruption && text.contains("bad.sst"), "{len} bytes: {text}");
    }
    let mut accepted = 0;
    for at in (0..bytes.len()).step_by(bytes.len() / 150) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x40;
        fs::write(&bad, &flipped).unwrap();
        let (kind, text) = place.refused(&[&good, &bad], DEFAULT());
        assert!(kind != ErrorKind::Aborted && text.contains("bad.sst"), "byte {at}: {text}");
        accepted += usize::from(kind != ErrorKind::Corruption);
    }
    assert!(accepted < 8, "{accepted} flips without a word of corruption");
    fs::write(&bad, b"no table at all, but longer than the footer of a table would be, to be sure of that")
        .unwrap();
    assert_eq!(place.refused(&[&bad], DEFAULT()).0, ErrorKind::Corruption);
    place.db.ingest(&[&good], DEFAULT()).unwrap();
}

#[test]
fn files_for_other_families() {
    let place = Place::new();
    let reverse = place.path("reverse.sst");
    let mut writer = SstWriter::create_with(&reverse, |f| f.reverse_order()).unwrap();
    writer.put("b", "1").unwrap();
    writer.put("a", "1").unwrap();
    writer.finish().unwrap();
    let (kind, text) = place.refused(&[&reverse], DEFAULT());
    assert!(kind == ErrorKind::InvalidArgument && text.contains("ReverseBytewise"), "{text}");
    let merges = place.path("merges.sst");
    let mut writer =
        SstWriter::create_with(&merges, |f| f.merge_operator(Arc::new(StringAppend::new(",")))).unwrap();
    writer.merge("m", "1").unwrap();
    writer.finish().unwrap();
    let (kind, text) = place.refused(&[&merges], DEFAULT());
    assert!(kind == ErrorKind::InvalidArgument && text.contains("no merge operator"), "{text}");
    let newer = place.path("newer.sst");
    let mut writer =
        SstWriter::create_with(&newer, |f| f.tune(|family| family.table.format_version = 7)).unwrap();
    writer.put("n", "1").unwrap();
    writer.finish().unwrap();
    let (kind, text) = place.refused(&[&newer], DEFAULT());
    assert!(kind == ErrorKind::InvalidArgument && text.contains("table format 7"), "{text}");
}

#[test]
fn handles_that_do_not_write() {
    let place = Place::new();
    let good = place.file("good.sst");
    let other = Db::open(place.path("other")).unwrap();
    let foreign = place.db.ingest_families(&[(&other.default_family(), &[&good])], DEFAULT());
    assert_eq!(kind(foreign), Some(ErrorKind::InvalidArgument));
    let family = place.db.create_family("dropped").unwrap();
    place.db.drop_family(&family).unwrap();
    assert_eq!(kind(family.ingest(&[&good], DEFAULT())), Some(ErrorKind::InvalidArgument));
    other.close().unwrap();
    assert!(matches!(kind(other.ingest(&[&good], DEFAULT())), Some(ErrorKind::Shutdown(_))));
    assert!(matches!(
        kind(other.default_family().sst_writer(place.path("x.sst"))),
        Some(ErrorKind::Shutdown(_))
    ));
    let reader = Db::open_read_only(place.path("db")).unwrap();
    assert_eq!(kind(reader.ingest(&[&good], DEFAULT())), Some(ErrorKind::NotSupported));
    // Paused background work cannot flush, so only files that need no flush come in.
    place.db.put("key00005", "in the way").unwrap();
    place.db.pause_background_work().unwrap();
    assert_eq!(kind(place.db.ingest(&[&good], DEFAULT())), Some(ErrorKind::Aborted));
    place.db.continue_background_work().unwrap();
    place.db.ingest(&[&good], DEFAULT()).unwrap();
    assert!(place.db.get("key00005").unwrap().unwrap().starts_with(b"value 5"));
}

/// A hard link to a symbolic link would break with it.
#[test]
fn symbolic_links_are_not_followed() {
    let place = Place::new();
    let good = place.file("good.sst");
    let link = place.path("link.sst");
    std::os::unix::fs::symlink(&good, &link).unwrap();
    for mode in [IngestMode::Link, IngestMode::Copy, IngestMode::Move] {
        let (kind, text) = place.refused(&[&link], DEFAULT().mode(mode));
        assert!(kind == ErrorKind::InvalidArgument && text.contains("symbolic link"), "{text}");
    }
    assert!(link.exists());
}

/// Whatever the comparator was asked for: the panic goes to the caller, and the database goes on.
#[test]
fn a_comparator_that_panics_fails_the_ingestion_alone() {
    let (dir, trap) = (tempfile::tempdir().unwrap(), Arc::new(Trap::default()));
    let path = dir.path().join("db");
    let db = trapped(&path, Callback::Comparator, &trap).open().unwrap();
    let file = dir.path().join("file.sst");
    let mut writer = db.default_family().sst_writer(&file).unwrap();
    for key in ["a", "m", "trap"] {
        writer.put(key, "1").unwrap();
    }
    writer.finish().unwrap();
    for key in ["b", "c"] {
        db.put(key, "1").unwrap();
    }
    for verify in [true, false] {
        trap.panics();
        let options = DEFAULT().verify(verify);
        let ingesting = db.clone();
        let paths = [file.clone()];
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = ingesting.ingest(&paths, options);
        }));
        assert!(panicked.is_err() && trap.is_sprung());
        assert_eq!(db.health().severity, Severity::Healthy);
        db.put("d", "1").unwrap();
        assert!(db.get("a").unwrap().is_none());
    }
    db.ingest(&[&file], DEFAULT()).unwrap();
    assert!(db.get("trap").unwrap().is_some());
    db.close().unwrap();
    let tables = fs::read_dir(&path).unwrap();
    let tables = tables.filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "sst"));
    assert_eq!(tables.count(), 2);
}

/// Each ingestion has succeeded, or the database was closed before; then nothing of it is there.
#[test]
fn ingestions_beside_a_close_are_whole() {
    for round in 0..8 {
        let place = Place::new();
        let files: Vec<PathBuf> = (0..3).map(|n| place.path(&format!("{n}.sst"))).collect();
        for (n, path) in files.iter().enumerate() {
            let mut writer = SstWriter::create(path).unwrap();
            writer.put("k", format!("{n}")).unwrap();
            writer.put(format!("own{n}"), "1").unwrap();
            writer.finish().unwrap();
        }
        let done: Vec<bool> = std::thread::scope(|scope| {
            let ingests: Vec<_> = files
                .iter()
                .map(|path| {
                    let db = &place.db;
                    scope.spawn(move || match db.ingest(&[path], DEFAULT()) {
                        Ok(_) => true,
                        Err(e) if matches!(e.kind(), ErrorKind::Shutdown(_)) => false,
                        Err(e) => panic!("{e}"),
                    })
                })
                .collect();
            std::thread::yield_now();
            if round % 2 == 0 {
                std::thread::sleep(std::time::Duration::from_micros(300 * round));
            }
            place.db.close().unwrap();
            ingests.into_iter().map(|i| i.join().unwrap()).collect()
        });
        let db = Db::open(place.path("db")).unwrap();
        for (n, done) in done.iter().enumerate() {
            assert_eq!(db.get(format!("own{n}")).unwrap().is_some(), *done, "round {round}, file {n}");
        }
        let value = db.get("k").unwrap().unwrap();
        let newest = done.iter().any(|done| *done);
        assert_eq!(&*value == b"before", !newest);
    }
}

/// From one file system to another there is no link.
#[test]
fn a_move_between_file_systems_is_a_copy() {
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        return ashlar_testkit::report::skipped("a_move_between_file_systems_is_a_copy", "no /dev/shm");
    };
    let place = Place::new();
    let path = other.path().join("file.sst");
    let mut writer = SstWriter::create(&path).unwrap();
    writer.put("a", "1").unwrap();
    writer.finish().unwrap();
    let done = place.db.ingest(&[&path], DEFAULT().mode(IngestMode::Move)).unwrap();
    assert!(done[0].source_kept.is_none() && !path.exists());
    assert!(place.db.get("a").unwrap().is_some());
}
