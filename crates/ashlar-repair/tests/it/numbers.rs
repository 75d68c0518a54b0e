//! The largest file numbers: those over 62 bits are refused, and a repair goes on with lower ones.

use ashlar_base::{FamilyId, FileNumber, SeqNum};
use ashlar_engine::Db;
use ashlar_engine::batch::WriteBatch;
use ashlar_env::Env;
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::VersionEdit;
use ashlar_log::{Framing, LogWriter};
use ashlar_options::{DbOptions, FamilyOptions, WriteOptions};
use ashlar_repair::repair;
use std::path::Path;
use std::sync::Arc;

/// A MANIFEST with valid checksums and numbers at their maximum: no work is begun that could not be recorded, and a
/// repair continues with lower numbers.
#[test]
fn no_file_is_made_beyond_the_last_file_number() {
    let env = Env::mem();
    let (dir, number) = (Path::new("/db"), FileNumber(5));
    env.fs.create_dir_all(dir).unwrap();
    env.fs.create(&dir.join(FileKind::Current.name())).unwrap().write_at(b"MANIFEST-000005\n", 0).unwrap();
    let edit = VersionEdit {
        log_number: Some(FileNumber(0)),
        next_file: Some(FileNumber::MAX),
        last_seq: SeqNum::new(9),
        ..VersionEdit::default()
    };
    let path = dir.join(FileKind::Manifest(number).name());
    let manifest = LogWriter::create(Arc::clone(&env.fs), &path, number, Framing::Legacy).unwrap();
    manifest.append(&edit.to_bytes(), true).unwrap();
    manifest.close().unwrap();
    let (options, family) = (DbOptions::default, FamilyOptions::default);
    let open = || Db::open(env.clone(), dir, options(), Vec::new(), family());
    let e = open().map(drop).unwrap_err();
    assert!(e.is_corruption() && e.path().is_some(), "{e}");
    assert!(e.message().starts_with("file number 4611686018427387903 is above"), "{e}");
    repair(env.clone(), dir, options(), Vec::new(), family(), &mut |_| {}).unwrap();
    let db = open().unwrap();
    let mut batch = WriteBatch::new();
    batch.put(FamilyId::DEFAULT, b"a", b"v").unwrap();
    db.write(&mut batch, WriteOptions::default()).unwrap();
    db.close().unwrap();
}
