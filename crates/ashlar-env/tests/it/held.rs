//! Directories that the machine's file system holds, while others rename, replace and remove them.

use ashlar_base::error::IoKind;
use ashlar_base::{ErrorKind, Result};
use ashlar_env::{Fs, OsFs};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NOT_FOUND: ErrorKind = ErrorKind::Io(IoKind::NotFound);

fn kind<T>(r: Result<T>) -> ErrorKind {
    r.err().expect("an error").kind()
}

/// A directory of that name, held.
fn held(above: &Path, name: &str) -> (PathBuf, Arc<dyn Fs>) {
    let dir = above.join(name);
    std::fs::create_dir(&dir).unwrap();
    let fs = OsFs::new().hold(&dir).unwrap();
    (dir, fs)
}

#[test]
fn a_renamed_directory_is_still_the_one_that_is_held() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, fs) = held(temp.path(), "db");
    let moved = temp.path().join("moved");
    std::fs::rename(&dir, &moved).unwrap();
    std::fs::create_dir(&dir).unwrap();
    std::fs::write(dir.join("foreign"), b"").unwrap();

    fs.create(&dir.join("a")).unwrap().write_at(b"x", 0).unwrap();
    fs.create_dir_all(&dir.join("lost")).unwrap();
    fs.rename(&dir.join("a"), &dir.join("lost/a")).unwrap();
    fs.sync_dir(&dir).unwrap();
    assert!(moved.join("lost/a").exists());
    assert_eq!(fs.metadata(&dir.join("foreign")).unwrap(), None);
    assert_eq!(kind(fs.remove(&dir.join("foreign"))), NOT_FOUND);
    assert_eq!(fs.list(&dir).unwrap().len(), 1);
    assert_eq!(fs.open_read(&dir.join("lost/a")).unwrap().path(), dir.join("lost/a"), "the caller's name");
    let lock = fs.lock(&dir.join("LOCK")).unwrap();
    assert!(moved.join("LOCK").exists());
    assert!(OsFs::new().lock(&moved.join("LOCK")).is_err(), "one directory, whatever its name");
    drop(OsFs::new().lock(&dir.join("LOCK")).unwrap());
    drop(lock);
    let names: Vec<_> = std::fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "foreign and its LOCK: {names:?}");
}

#[test]
fn a_removed_directory_takes_no_more_files() {
    let temp = tempfile::tempdir().unwrap();
    let (dir, fs) = held(temp.path(), "db");
    std::fs::remove_dir(&dir).unwrap();
    std::fs::create_dir(&dir).unwrap();
    assert_eq!(kind(fs.create(&dir.join("a"))), NOT_FOUND);
    assert_eq!(kind(fs.list(&dir)), NOT_FOUND);
    assert_eq!(kind(fs.sync_dir(&dir)), NOT_FOUND);
    assert_eq!(kind(fs.create_dir_all(&dir)), NOT_FOUND);
    assert_eq!(kind(fs.lock(&dir.join("LOCK"))), NOT_FOUND);
    assert_eq!(fs.metadata(&dir).unwrap(), None);
}

#[test]
fn a_link_to_a_directory_is_followed_to_the_held_one_and_not_below_it() {
    let temp = tempfile::tempdir().unwrap();
    let (real, elsewhere) = (temp.path().join("real"), temp.path().join("elsewhere"));
    std::fs::create_dir(&real).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("a"), b"mine").unwrap();
    let dir = temp.path().join("db");
    symlink(&real, &dir).unwrap();
    symlink(&elsewhere, real.join("lost")).unwrap();

    let fs = OsFs::new().hold(&dir).unwrap();
    fs.create(&dir.join("b")).unwrap();
    let lost = dir.join("lost");
    let says = fs.rename(&dir.join("b"), &lost.join("b")).unwrap_err();
    assert_eq!(says.kind(), ErrorKind::InvalidArgument);
    assert!(says.to_string().contains("db/lost") && says.to_string().contains("symbolic link"), "{says}");
    assert_eq!(kind(fs.create(&lost.join("c"))), ErrorKind::InvalidArgument);
    assert_eq!(kind(fs.open_read(&lost.join("a"))), ErrorKind::InvalidArgument);
    assert_eq!(kind(fs.remove(&lost.join("a"))), ErrorKind::InvalidArgument);
    assert_eq!(kind(fs.create_dir_all(&lost)), ErrorKind::InvalidArgument);
    assert_eq!(kind(fs.create_dir_all(&lost.join("deep"))), ErrorKind::InvalidArgument);
    assert!(fs.list(&lost).is_err() && fs.sync_dir(&lost).is_err());
    assert!(fs.metadata(&lost.join("a")).is_err());
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
    assert_eq!(std::fs::read(elsewhere.join("a")).unwrap(), b"mine");
    // A directory that the caller names may be reached through a link.
    let fs = fs.hold(&lost).unwrap();
    fs.create(&lost.join("b")).unwrap();
    assert!(elsewhere.join("b").exists());
}

#[test]
fn the_free_space_is_that_of_the_held_directory() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("dir");
    std::fs::create_dir(&dir).unwrap();
    let fs = OsFs::new().hold(&dir).unwrap();
    std::fs::rename(&dir, root.path().join("renamed")).unwrap();
    assert!(fs.free_space(&dir).unwrap() > Some(0));
    assert!(OsFs::new().free_space(&dir).is_err_and(|e| e.is_not_found()));
}
