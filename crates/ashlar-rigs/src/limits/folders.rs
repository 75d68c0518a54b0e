//! The directory: links in it, not to be written, renamed, entered under another working directory, or gone.

use super::small_disk::Mounted;
use super::store::{Known, flush, open, open_read_only};
use super::{Case, expect};
use ashlar_base::ErrorKind;
use ashlar_testkit::Rng;
use ashlar_testkit::children::answer;
use std::path::Path;

/// A closed database with tables and a log.
fn written(dir: &Path, seed: u64) -> Result<Known, String> {
    let mut known = Known::default();
    let mut rng = Rng::new(seed);
    let db = open(dir).map_err(|e| e.to_string())?;
    known.fill(&db, "table", 1200, &mut rng).map_err(|e| e.to_string())?;
    flush(&db).map_err(|e| e.to_string())?;
    known.fill(&db, "log", 100, &mut rng).map_err(|e| e.to_string())?;
    db.close().map_err(|e| e.to_string())?;
    Ok(known)
}

fn names(dir: &Path, ending: &str) -> Result<Vec<std::path::PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|e| e.to_string())?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect())
}

/// A directory may be reached through a link; a file of it that is one is not followed.
pub(super) fn links(case: &mut Case<'_>) -> Result<(), String> {
    let dir = case.folder.join("db");
    let known = written(&dir, case.seed)?;
    let alias = case.folder.join("alias");
    std::os::unix::fs::symlink("db", &alias).map_err(|e| e.to_string())?;
    known.check(&open(&alias).map_err(|e| format!("through a link: {e}"))?)?;
    let nowhere = case.folder.join("nowhere");
    std::os::unix::fs::symlink("missing", &nowhere).map_err(|e| e.to_string())?;
    expect(open(&nowhere).is_err(), || "opened at a link to nothing".to_owned())?;
    let table = names(&dir, ".sst")?.pop().ok_or("no table")?;
    for file in [dir.join("CURRENT"), table] {
        let aside = case.folder.join("aside");
        std::fs::rename(&file, &aside).map_err(|e| e.to_string())?;
        std::os::unix::fs::symlink(&aside, &file).map_err(|e| e.to_string())?;
        let opened = open(&dir).and_then(|db| db.verify_checksums(|_| ()).map(drop));
        let what = || format!("{} is a link, and was followed", file.display());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        expect(opened.is_err_and(|e| e.to_string().contains(&*name)), what)?;
        std::fs::rename(&aside, &file).map_err(|e| e.to_string())?;
    }
    known.check(&open(&dir).map_err(|e| format!("all as before: {e}"))?)
}

/// A file system that must not be written: refused, shown to read, and taken up again later.
pub(super) fn read_only(case: &mut Case<'_>) -> Result<(), String> {
    let disk = Mounted::new(case.folder, "size=16m")?;
    let dir = disk.path("db");
    let mut known = written(&dir, case.seed)?;
    disk.remount("ro")?;
    match open(&dir) {
        Ok(_) => return Err("opened for writing on what must not be written".to_owned()),
        Err(e) => expect(matches!(e.kind(), ErrorKind::Io(_)), || format!("refused, but not for that: {e}"))?,
    }
    known.check(&open_read_only(&dir).map_err(|e| format!("to be read only: {e}"))?)?;
    disk.remount("rw")?;
    let db = open(&dir).map_err(|e| format!("to be written again: {e}"))?;
    known.fill(&db, "after", 100, &mut Rng::new(case.seed)).map_err(|e| e.to_string())?;
    known.check(&db)?;
    db.close().map_err(|e| e.to_string())
}

/// The directory is removed while it is open: a flush fails, writes are refused, nothing hangs, and the close says it.
pub(super) fn removed(case: &mut Case<'_>) -> Result<(), String> {
    let dir = case.folder.join("db");
    let mut rng = Rng::new(case.seed);
    let mut known = Known::default();
    let db = open(&dir).map_err(|e| e.to_string())?;
    known.fill(&db, "key", 300, &mut rng).map_err(|e| e.to_string())?;
    std::fs::remove_dir_all(&dir).map_err(|e| e.to_string())?;
    // What is in memory is read on.
    known.check(&db)?;
    let told = |e: &ashlar_base::Error| e.to_string().contains(&*dir.to_string_lossy());
    match flush(&db) {
        Ok(()) => return Err("a flush into a directory that is gone succeeded".to_owned()),
        Err(e) => expect(told(&e), || format!("names no file: {e}"))?,
    }
    let refused = (0..20_000).find_map(|number| known.put(&db, format!("gone {number:06}"), &mut rng).err());
    expect(refused.is_some(), || format!("writes go on without a directory: {:?}", db.health()))?;
    match db.close() {
        Ok(()) => return Err("a close says nothing of the directory that is gone".to_owned()),
        Err(e) => expect(told(&e), || format!("names no file: {e}"))?,
    }
    drop(db);
    // Nothing of it was made again behind our back.
    expect(!dir.exists(), || "the directory is there again".to_owned())
}

/// The directory is renamed while it is open, and another database is made under the old name: each keeps its own.
pub(super) fn renamed(case: &mut Case<'_>) -> Result<(), String> {
    let (dir, away) = (case.folder.join("db"), case.folder.join("away"));
    let mut rng = Rng::new(case.seed);
    let (mut first, mut second) = (Known::default(), Known::default());
    let one = open(&dir).map_err(|e| e.to_string())?;
    first.fill(&one, "before", 800, &mut rng).map_err(|e| e.to_string())?;
    std::fs::rename(&dir, &away).map_err(|e| e.to_string())?;
    let two = open(&dir).map_err(|e| format!("the old name is free: {e}"))?;
    for (known, db) in [(&mut first, &one), (&mut second, &two)] {
        known.fill(db, "after", 2000, &mut rng).map_err(|e| e.to_string())?;
        flush(db).map_err(|e| e.to_string())?;
    }
    expect(open(&away).is_err(), || "opened twice, the second time under its new name".to_owned())?;
    one.close().map_err(|e| e.to_string())?;
    two.close().map_err(|e| e.to_string())?;
    first.check(&open(&away).map_err(|e| format!("under its new name: {e}"))?)?;
    second.check(&open(&dir).map_err(|e| format!("under the old name: {e}"))?)?;
    case.report.count("directories renamed under an open database", 1);
    Ok(())
}

/// A process opens the same relative path in two working directories, and writes to both from a third.
pub(super) fn working_directory(case: &mut Case<'_>) -> Result<(), String> {
    let folder = case.folder.to_string_lossy();
    let said = answer(case.budget, &["limits", "chdir", &folder, &case.seed.to_string()])?;
    expect(said.starts_with("kept"), || format!("the child: {said}"))?;
    case.report.count("changes of the working directory", 3);
    Ok(())
}

/// The child of [`working_directory`].
pub(super) fn change_directories(folder: &Path, seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut dbs = Vec::new();
    for name in ["x", "y"] {
        let above = folder.join(name);
        std::fs::create_dir(&above)
            .and_then(|()| std::env::set_current_dir(&above))
            .map_err(|e| e.to_string())?;
        let (db, mut known) = (open(Path::new("db")).map_err(|e| e.to_string())?, Known::default());
        known.fill(&db, name, 500, &mut rng).map_err(|e| e.to_string())?;
        dbs.push((above.join("db"), db, known));
    }
    for round in 0..4 {
        for (_, db, known) in &mut dbs {
            known.fill(db, &format!("round {round}"), 700, &mut rng).map_err(|e| e.to_string())?;
            flush(db).map_err(|e| e.to_string())?;
        }
        std::env::set_current_dir("/").map_err(|e| e.to_string())?;
    }
    for (dir, db, known) in dbs {
        db.close().map_err(|e| e.to_string())?;
        known.check(&open(&dir).map_err(|e| format!("{}: {e}", dir.display()))?)?;
    }
    println!("kept");
    Ok(())
}

/// A table is removed from a closed database: the open names it.
pub(super) fn table_removed(case: &mut Case<'_>) -> Result<(), String> {
    let dir = case.folder.join("db");
    written(&dir, case.seed)?;
    let table = names(&dir, ".sst")?.pop().ok_or("no table")?;
    std::fs::remove_file(&table).map_err(|e| e.to_string())?;
    let name = table.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match open(&dir) {
        Ok(_) => Err(format!("opened without {name}")),
        Err(e) => {
            expect(e.is_corruption() && e.to_string().contains(&name), || format!("{name} is gone: {e}"))
        }
    }
}
