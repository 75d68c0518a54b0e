//! The recorded device under a real ext4, and what the kernel makes of calls that fail; no database.

use ashlar_testkit::block_log::{Event, Log, RecordedDisk, Replay, Survivors};
use ashlar_testkit::ext4::{Blank, Ext4};
use ashlar_testkit::{Rng, Skip, report};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 16;
const BYTES: usize = 100_000;

/// A disk on a fresh file system, and that file system.
fn fresh() -> Result<(RecordedDisk, Blank), Skip> {
    let blank = Blank::new(MIB)?;
    let mut server = Command::new(env!("CARGO_BIN_EXE_rel"));
    let disk = RecordedDisk::new(server.args(["child", "block-log"]), &blank.image, "")?;
    Ok((disk, blank))
}

fn create(folder: &Path, name: &str, byte: u8) -> File {
    let mut file = File::create(folder.join(name)).unwrap();
    file.write_all(&vec![byte; BYTES]).unwrap();
    file
}

fn ended(disk: RecordedDisk) -> Log {
    disk.unmount().unwrap();
    disk.end().unwrap()
}

/// What files hold once the power came back.
fn booted(
    log: &Log,
    blank: &Blank,
    cut: usize,
    survivors: Survivors,
    names: [&str; 2],
) -> [Option<Vec<u8>>; 2] {
    let image = Replay::new(log, blank.image.clone()).cut(cut, survivors, &mut Rng::new(1));
    let disk = Ext4::of_image(&image.bytes, "").unwrap();
    let found = names.map(|name| std::fs::read(disk.path().join(name)).ok());
    disk.unmount().unwrap();
    found
}

/// The cut that is the first with all of a length of the log.
fn cut_at(log: &Log, position: u64) -> usize {
    (0..=log.len()).find(|cut| log.position(*cut) >= position).unwrap()
}

fn syncs_are_flushes() -> Result<(), Skip> {
    let (disk, blank) = fresh()?;
    let synced = create(&disk.path(), "synced", 1);
    let before = disk.position().unwrap();
    synced.sync_all().unwrap();
    let after = disk.position().unwrap();
    drop((synced, create(&disk.path(), "unsynced", 2)));
    let log = ended(disk);
    let names = ["synced", "unsynced"];
    let (before, after) = (cut_at(&log, before), cut_at(&log, after));
    let caused: Vec<&Event> = log.events().take(after).skip(before).collect();
    assert_eq!(caused.last(), Some(&&Event::Flush), "the sync ends in a flush");
    let whole = |byte| Some(vec![byte; BYTES]);
    assert_eq!(booted(&log, &blank, before, Survivors::None, names), [None, None]);
    for survivors in Survivors::ALL {
        assert_eq!(booted(&log, &blank, after, survivors, names), [whole(1), None], "{survivors:?}");
        let [first, _] = booted(&log, &blank, log.len() - 1, survivors, names);
        assert_eq!(first, whole(1), "{survivors:?}");
    }
    assert_eq!(booted(&log, &blank, log.len(), Survivors::All, names), [whole(1), whole(2)], "unmounted");
    Ok(())
}

#[test]
fn a_sync_is_a_flush_behind_what_it_promises() {
    syncs_are_flushes().unwrap_or_else(|skip| skip.announce("a_sync_is_a_flush_behind_what_it_promises"));
}

fn failed_syncs() -> Result<(), Skip> {
    let (disk, blank) = fresh()?;
    let file = create(&disk.path(), "failed", 1);
    disk.fail(100, 0, blank.front_bytes, 1).unwrap();
    assert!(file.sync_all().is_err(), "the failure is reported");
    disk.heal().unwrap();
    let again = file.sync_all();
    let cached = std::fs::read(disk.path().join("failed")).unwrap_or_default() == [1; BYTES];
    report::figure(&format!(
        "of a failed fsync this kernel says when asked again: {again:?}; cached: {cached}"
    ));
    let position = disk.position().unwrap();
    drop(file);
    let log = ended(disk);
    assert!(log.events().any(|event| *event == Event::FailedWrite));
    let [found, _] = booted(&log, &blank, cut_at(&log, position), Survivors::All, ["failed", ""]);
    assert_ne!(
        found,
        Some(vec![1; BYTES]),
        "what failed is not on the device, whatever the second sync said"
    );
    Ok(())
}

/// Why a file that failed is never trusted again: the second sync has nothing to write, and is content.
#[test]
fn a_sync_that_failed_may_succeed_when_done_again_and_has_lost_the_bytes() {
    let test = "a_sync_that_failed_may_succeed_when_done_again_and_has_lost_the_bytes";
    failed_syncs().unwrap_or_else(|skip| skip.announce(test));
}

fn flushes_fail() -> Result<(), Skip> {
    let (disk, _) = fresh()?;
    disk.fail(0, 100, 0, 1).unwrap();
    let file = create(&disk.path(), "failed", 1);
    assert!(file.sync_all().is_err(), "the failure is reported");
    drop(file);
    let mounted = disk.path();
    drop(disk);
    assert!(!mounted.exists(), "dropped, it leaves nothing");
    Ok(())
}

#[test]
fn a_failed_flush_fails_the_sync() {
    flushes_fail().unwrap_or_else(|skip| skip.announce("a_failed_flush_fails_the_sync"));
}
