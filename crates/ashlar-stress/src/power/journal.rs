//! Journals that fail: files written through the environment, without a database, on an ext4 whose device refuses writes for
//! a moment, also those of the journal.
//!
//! Synced data must be there when the device works again and is mounted again: the bytes of a file up to its last sync, and
//! the names in a directory up to its last sync, with the content of their files. The kernel alone does not guarantee this
//! (`ashlar-env`, `os/sync`).

use super::{Done, MOUNTS};
use ashlar_base::Error;
use ashlar_env::{Env, Fs};
use ashlar_testkit::Rng;
use ashlar_testkit::block_log::{RecordedDisk, Replay, Survivors};
use ashlar_testkit::ext4::{Blank, Ext4};
use ashlar_testkit::harm::LOST_WRITE;
use ashlar_testkit::harm::PANIC;
use ashlar_testkit::suite::{Budget, Report};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

const MIB: u64 = 64;
/// Devices of a life, a quarter of a second each. A kernel that calls a lost sync done is seen on one in forty.
const DEVICES: usize = 40;
/// Files that are appended to at once, each by a thread; one more thread makes names.
const FILES: usize = 2;
/// More is not appended to a file.
const MAX_BYTES: usize = 8 << 20;
/// The percentage of writes and flushes that fail.
const FAULTS: [(usize, usize); 4] = [(20, 0), (20, 10), (50, 10), (100, 0)];

/// The expected content: the first bytes of files, and the number of names.
#[derive(Default)]
struct Durable {
    files: Vec<Vec<u8>>,
    names: u64,
}

/// Some fresh file systems, one after the other.
pub(super) fn life(seed: u64, budget: &Budget, report: &mut Report) -> Result<Done, String> {
    let mut rng = Rng::new(seed);
    for _ in 0..DEVICES {
        let options = rng.pick(&MOUNTS).copied().unwrap_or_default();
        let begun = Blank::new(MIB).and_then(|blank| {
            let mut server = Command::new(&budget.program);
            let disk = RecordedDisk::new(server.args(["child", "block-log"]), &blank.image, options)?;
            Ok((blank.image, disk))
        });
        let (blank, disk) = match begun {
            Ok(begun) => begun,
            Err(skip) => {
                report.skip(format!("journals that fail: {}", skip.why()));
                return Ok(Done::Skipped);
            }
        };
        let durable = work(&disk, &mut rng, report)?;
        disk.unmount()?;
        let log = disk.end()?;
        let survivors = *rng.pick(&Survivors::ALL).unwrap_or(&Survivors::All);
        let image = Replay::new(&log, blank).cut(log.len(), survivors, &mut rng);
        let after = Ext4::of_image(&image.bytes, options)?;
        look(&after.path(), &durable).map_err(|e| format!("{e} ({survivors:?}, options {options:?})"))?;
        after.unmount()?;
        report.count("images after journals that failed", 1);
        if budget.is_over() {
            break;
        }
    }
    Ok(Done::Life)
}

/// Writes before, while and after the device refuses; until the file system refuses, or a moment behind.
fn work(disk: &RecordedDisk, rng: &mut Rng, report: &mut Report) -> Result<Durable, String> {
    let root = disk.path();
    let fs = Env::os().map_err(|e| e.to_string())?.fs;
    let (over, begin) = (AtomicBool::new(false), Barrier::new(FILES + 2));
    let said = |e: std::io::Error| format!("the device does not obey: {e}");
    let (files, names, obeyed) = std::thread::scope(|scope| {
        let appenders: Vec<_> = (0..FILES)
            .map(|number| (number, rng.fork()))
            .map(|(number, rng)| {
                let (fs, root, over, begin) = (&fs, &root, &over, &begin);
                scope.spawn(move || {
                    begin.wait();
                    append(fs, root, number, rng, over)
                })
            })
            .collect();
        let namer = scope.spawn(|| {
            begin.wait();
            name(&fs, &root, &over)
        });
        begin.wait();
        let obeyed = fail_for_a_moment(disk, rng).map_err(said);
        over.store(true, Ordering::Relaxed);
        let files: Vec<_> = appenders.into_iter().map(|appender| appender.join()).collect();
        (files, namer.join(), obeyed)
    });
    obeyed?;
    let panicked = |_| format!("{PANIC}of a writer");
    let (names, refused) = names.map_err(panicked)?;
    let mut durable = Durable { names, ..Durable::default() };
    let mut shut = refused;
    for file in files {
        let (bytes, refused) = file.map_err(panicked)?;
        durable.files.push(bytes);
        shut |= refused;
    }
    report.count("file systems that the kernel shut under plain files", u64::from(shut));
    report.count("names durable by promise in images", durable.names);
    report.count("bytes durable by promise in images", durable.files.iter().map(|f| f.len() as u64).sum());
    Ok(durable)
}

fn fail_for_a_moment(disk: &RecordedDisk, rng: &mut Rng) -> std::io::Result<()> {
    let pause = |(from, to), rng: &mut Rng| {
        std::thread::sleep(Duration::from_micros(rng.between(from, to) as u64));
    };
    pause((2000, 40_000), rng);
    let (writes, flushes) = *rng.pick(&FAULTS).unwrap_or(&FAULTS[0]);
    disk.fail(writes, flushes, 0, rng.next_u64())?;
    pause((2000, 60_000), rng);
    disk.heal()?;
    pause((10_000, 40_000), rng);
    Ok(())
}

/// Appends records, most of them synced. What was durable by the last sync, and whether anything was refused.
fn append(fs: &Arc<dyn Fs>, root: &Path, number: usize, mut rng: Rng, over: &AtomicBool) -> (Vec<u8>, bool) {
    let (mut written, mut durable) = (Vec::new(), 0);
    let mut records = || -> Result<(), Error> {
        let file = fs.create(&root.join(format!("file-{number}")))?;
        fs.sync_dir(root)?;
        while !over.load(Ordering::Relaxed) && written.len() < MAX_BYTES {
            let bytes = rng.between(100, 4096);
            let record = rng.bytes(bytes);
            file.write_at(&record, written.len() as u64)?;
            written.extend(record);
            if rng.percent(70) {
                file.sync_data()?;
                durable = written.len();
            }
        }
        Ok(())
    };
    let refused = records().is_err();
    written.truncate(durable);
    (written, refused)
}

fn content(number: u64) -> Vec<u8> {
    format!("{number:>1000}").into_bytes()
}

/// Makes files in the way of `CURRENT`. How many names are durable, and whether anything was refused.
fn name(fs: &Arc<dyn Fs>, root: &Path, over: &AtomicBool) -> (u64, bool) {
    let mut durable = 0;
    let mut next = || -> Result<(), Error> {
        while !over.load(Ordering::Relaxed) {
            let passing = root.join("passing");
            let file = fs.create(&passing)?;
            file.write_at(&content(durable), 0)?;
            file.sync_all()?;
            fs.rename(&passing, &root.join(format!("name-{durable}")))?;
            fs.sync_dir(root)?;
            durable += 1;
        }
        Ok(())
    };
    let refused = next().is_err();
    (durable, refused)
}

/// Whether all of it is there.
fn look(root: &Path, durable: &Durable) -> Result<(), String> {
    let read = |name: &str| std::fs::read(root.join(name)).unwrap_or_default();
    for (number, expected) in durable.files.iter().enumerate() {
        let found = read(&format!("file-{number}"));
        let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
        if same < expected.len() {
            let (there, wanted) = (found.len(), expected.len());
            return Err(format!(
                "{LOST_WRITE}a file has {same} of {wanted} durable bytes; its length is {there}"
            ));
        }
    }
    match (0..durable.names).find(|number| read(&format!("name-{number}")) != content(*number)) {
        Some(lost) => Err(format!("{LOST_WRITE}name {lost} of {} durable names", durable.names)),
        None => Ok(()),
    }
}
