//! Exports that cannot be made, and imports of what is no such family: each is refused by name, and nothing has changed.

use ashlardb::prelude::*;
use ashlardb::{
    ErrorKind, ExportedFile, FamilyBuilder, FamilyExport, FormatLevel, ImportOptions, IngestMode, Level,
    SeqNum, ShutdownKind, StringAppend,
};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

struct Place {
    home: tempfile::TempDir,
    from: Db,
    to: Db,
    export: FamilyExport,
}

impl Place {
    fn new() -> Place {
        let home = tempfile::tempdir().unwrap();
        let from = Db::builder(home.path().join("from")).family("source", |f| f).open().unwrap();
        let source = from.family("source").unwrap();
        for n in 0..2000 {
            source.put(format!("key{n:05}"), format!("value {n} ").repeat(5)).unwrap();
        }
        from.compact().unwrap();
        source.compact_range(.., ashlardb::CompactRangeOptions::default()).unwrap();
        for n in 0..10 {
            source.put(format!("key{n:05}"), "new").unwrap();
        }
        let export = source.export(home.path().join("out")).unwrap();
        assert_eq!(export.files.len(), 2);
        let to = Db::open(home.path().join("to")).unwrap();
        to.put("k", "v").unwrap();
        to.flush().unwrap();
        drop(source);
        Place { home, from, to, export }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn tables(&self) -> Vec<String> {
        let entries = fs::read_dir(self.at("to")).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".sst"));
        names.sort();
        names
    }

    /// Imports, and finds the database unchanged after the refusal, in every mode.
    fn refused(
        &self,
        name: &str,
        export: &FamilyExport,
        set: impl Fn(FamilyBuilder) -> FamilyBuilder,
    ) -> (ErrorKind, String) {
        let mut refusal = None;
        for mode in [IngestMode::Copy, IngestMode::Link, IngestMode::Move] {
            let (before, families) = (self.tables(), self.to.families().len());
            let e =
                self.to.import_family_with(name, export, ImportOptions::new().mode(mode), &set).unwrap_err();
            self.to.wait_for_background().unwrap();
            assert_eq!(self.tables(), before, "{e}");
            assert_eq!(self.to.families().len(), families, "{e}");
            assert_eq!(self.to.get("k").unwrap().as_deref(), Some(&b"v"[..]));
            refusal = Some((e.kind(), e.to_string()));
        }
        refusal.unwrap()
    }

    fn described(&self, change: impl Fn(usize, &mut ExportedFile)) -> FamilyExport {
        let files = self.export.files.iter().enumerate().map(|(at, file)| {
            let mut described = ExportedFile::described(&file.path, file.level, file.sequences);
            change(at, &mut described);
            described
        });
        FamilyExport::described("source", self.export.comparator.clone(), files.collect())
    }
}

fn plain(family: FamilyBuilder) -> FamilyBuilder {
    family
}

#[test]
fn exports_to_places_that_are_taken_and_from_families_that_are_gone() {
    let place = Place::new();
    let source = place.from.family("source").unwrap();
    fs::create_dir(place.at("full")).unwrap();
    fs::write(place.at("full/something"), "1").unwrap();
    for into in [place.at("full"), place.at("out"), place.at("from/inside"), place.at("from"), PathBuf::new()]
    {
        let e = source.export(&into).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{}: {e}", into.display());
    }
    let blobs = place
        .from
        .create_family_with("blobs", |f| f.options("enable_blob_files=true;min_blob_size=10"))
        .unwrap();
    blobs.put("k", vec![1; 1000]).unwrap();
    let e = blobs.export(place.at("blobs")).unwrap_err();
    assert!(e.kind() == ErrorKind::NotSupported && e.to_string().contains("blob files"), "{e}");
    place.from.pause_background_work().unwrap();
    source.put("k", "v").unwrap();
    assert_eq!(source.export(place.at("paused")).unwrap_err().kind(), ErrorKind::Aborted);
    place.from.continue_background_work().unwrap();
    place.from.drop_family(&source).unwrap();
    assert_eq!(source.export(place.at("dropped")).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let reading = Db::open_read_only(place.at("to")).unwrap();
    let e = reading.default_family().export(place.at("reading")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotSupported, "{e}");
    drop(blobs);
    place.from.close().unwrap();
    let e = source.export(place.at("closed")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shutdown(ShutdownKind::Closed), "{e}");
    for name in ["blobs", "paused", "dropped", "reading", "closed"] {
        assert!(!place.at(name).exists() && !place.at(&format!("{name}.tmp")).exists(), "{name}");
    }
}

#[test]
fn imports_that_make_no_sense() {
    let place = Place::new();
    let invalid = |name: &str, export: &FamilyExport, set: fn(FamilyBuilder) -> FamilyBuilder, word: &str| {
        let (kind, text) = place.refused(name, export, set);
        assert!(kind == ErrorKind::InvalidArgument && text.contains(word), "{text}");
    };
    invalid("default", &place.export, plain, "exists already");
    invalid("", &place.export, plain, "a name");
    invalid("new", &place.export, |f| f.reverse_order(), "comparator");
    invalid("new", &place.export, |f| f.options("num_levels=3"), "num_levels=7");
    let mut other = place.export.clone();
    other.comparator = "mine".into();
    invalid("new", &other, plain, "\"mine\"");
    let mut twice = place.export.clone();
    twice.files.extend(place.export.files.clone());
    invalid("new", &twice, plain, "named twice");
    let deep = place.described(|_, file| file.level = Level(200));
    invalid("new", &deep, plain, "L200");
    let endless = place.described(|_, file| file.sequences.1 = SeqNum::MAX);
    invalid("new", &endless, plain, "sequence numbers");
    let backwards = place.described(|_, file| std::mem::swap(&mut file.sequences.0, &mut file.sequences.1));
    invalid("new", &backwards, plain, "sequence numbers");

    let own = place.to.default_family().live_files().unwrap()[0].number;
    let mut inside = place.described(|_, _| ());
    inside.files[0].path = place.at("to").join(format!("{:06}.sst", own.0));
    invalid("new", &inside, plain, "a directory of the database");
    // The export is as before.
    assert_eq!(FamilyExport::read(place.at("out")).unwrap(), place.export);
    let imported = place.to.import_family("new", &place.export).unwrap();
    assert_eq!(imported.get("key00003").unwrap().as_deref(), Some(&b"new"[..]));
    let again = place.to.import_family("newer", &place.described(|_, _| ())).unwrap();
    assert_eq!(again.scan(..).count(), 2000);
}

#[test]
fn tables_that_are_damaged_missing_or_not_the_described_ones() {
    let place = Place::new();
    let refused = |export: &FamilyExport, word: &str| {
        let (kind, text) = place.refused("new", export, plain);
        assert!(kind == ErrorKind::Corruption && text.contains(word), "{text}");
    };
    // Descriptions that are wrong.
    refused(&place.described(|_, file| file.level = Level(6)), "overlap");
    refused(
        &place.described(|_, file| file.sequences = (SeqNum::ZERO, SeqNum::new(1).unwrap())),
        "sequence number",
    );
    let mut other = place.export.clone();
    other.files[0].sequences = (SeqNum::ZERO, SeqNum::ZERO);
    refused(&other, "sequence number 2");
    let mut swapped = place.export.clone();
    let path = swapped.files[0].path.clone();
    swapped.files[0].path = std::mem::replace(&mut swapped.files[1].path, path);
    refused(&swapped, "bytes");
    // Tables that are.
    let table = place.export.files[1].path.clone();
    let sound = fs::read(&table).unwrap();
    let write = |bytes: &[u8]| {
        // Not through the hard link, which is the table of the other database.
        fs::remove_file(&table).unwrap();
        fs::write(&table, bytes).unwrap();
    };
    let mut flipped = sound.clone();
    flipped[2000] ^= 1;
    write(&flipped);
    refused(&place.export, "checksum");
    refused(&place.described(|_, _| ()), "checksum");
    write(&sound[..sound.len() - 1]);
    refused(&place.export, "bytes");
    write(&sound);
    let gone = place.at("gone.sst");
    fs::rename(&table, &gone).unwrap();
    let (kind, text) = place.refused("new", &place.export, plain);
    assert!(
        matches!(kind, ErrorKind::Io(_)) && text.contains(table.file_name().unwrap().to_str().unwrap()),
        "{text}"
    );
    fs::rename(&gone, &table).unwrap();
    place.to.import_family("new", &place.export).unwrap();
}

#[test]
fn databases_that_cannot_take_the_family() {
    let place = Place::new();
    let old = Db::builder(place.at("old")).format_level(FormatLevel::V7_8).open().unwrap();
    let e = old.import_family("new", &place.export).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("format level"), "{e}");
    place.to.close().unwrap();
    let e = place.to.import_family("new", &place.export).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shutdown(ShutdownKind::Closed), "{e}");
    let reading = Db::open_read_only(place.at("to")).unwrap();
    assert_eq!(reading.import_family("new", &place.export).unwrap_err().kind(), ErrorKind::NotSupported);
    // Merges of another operator.
    let merging = |f: FamilyBuilder| f.merge_operator(Arc::new(StringAppend::new(",")));
    let db = Db::builder(place.at("merging")).family("merged", merging).open().unwrap();
    let merged = db.family("merged").unwrap();
    merged.merge("k", "1").unwrap();
    let export = merged.export(place.at("merged")).unwrap();
    let max = |f: FamilyBuilder| f.merge_operator(Arc::new(ashlardb::Max));
    let e = db.import_family_with("other", &export, ImportOptions::new(), max).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("merge operator"), "{e}");
    // A description that another program gave names no operator.
    let [file] = &export.files[..] else { panic!("{export:?}") };
    let file = ExportedFile::described(&file.path, file.level, file.sequences);
    let described = FamilyExport::described("merged", export.comparator.clone(), vec![file]);
    let e = db.import_family("other", &described).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("no merge operator"), "{e}");
    assert!(db.family("other").is_err());
}

#[test]
fn directories_that_are_no_export() {
    let place = Place::new();
    let e = FamilyExport::read(place.at("nothing")).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::InvalidArgument | ErrorKind::Io(_)), "{e}");
    fs::create_dir(place.at("empty")).unwrap();
    assert_eq!(FamilyExport::read(place.at("empty")).unwrap_err().kind(), ErrorKind::InvalidArgument);
    // A database with writes that its tables lack, and one with two families.
    let db = Db::builder(place.at("db")).family("a", |f| f).family("b", |f| f).open().unwrap();
    db.family("a").unwrap().put("k", "v").unwrap();
    db.close().unwrap();
    let e = FamilyExport::read(place.at("db")).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("WAL"), "{e}");
    let db = Db::builder(place.at("db")).family("a", |f| f).family("b", |f| f).open().unwrap();
    db.family("b").unwrap().put("k", "v").unwrap();
    db.flush().unwrap();
    db.checkpoint_with(place.at("copy"), ashlardb::CheckpointOptions::new().flush(true), |_| ()).unwrap();
    let e = FamilyExport::read(place.at("copy")).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument, "{e}");
    // A MANIFEST that lost its end.
    let out = place.at("out");
    let mut files = fs::read_dir(&out).unwrap().map(|e| e.unwrap().path());
    let manifest = files.find(|path| path.to_string_lossy().contains("MANIFEST")).unwrap();
    let bytes = fs::read(&manifest).unwrap();
    for end in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&manifest, &bytes[..end]).unwrap();
        assert_eq!(FamilyExport::read(&out).unwrap_err().kind(), ErrorKind::Corruption, "{end}");
    }
    fs::write(&manifest, &bytes).unwrap();
    assert_eq!(FamilyExport::read(&out).unwrap(), place.export);
}
