use super::*;
use crate::{Fs, Rand, SeededRand, WriteFile};
use ashlar_base::ErrorKind;
use ashlar_base::error::IoKind;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const PAGE: usize = 4096;

fn p(path: &str) -> &Path {
    Path::new(path)
}

fn machine() -> (SimEnv, Arc<dyn Fs>) {
    let sim = SimEnv::new(42);
    let fs = sim.env().fs;
    fs.create_dir_all(p("/db")).unwrap();
    fs.sync_dir(p("/")).unwrap();
    (sim, fs)
}

/// A file whose name is durable and whose bytes are `bytes`, synced.
fn durable(fs: &dyn Fs, path: &str, bytes: &[u8]) -> Arc<dyn WriteFile> {
    let file = fs.create(p(path)).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    fs.sync_dir(p(path).parent().unwrap()).unwrap();
    file
}

fn read(sim: &SimEnv, path: &str) -> Option<Vec<u8>> {
    let file = sim.env().fs.open_read(p(path)).ok()?;
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    Some(bytes)
}

fn names(sim: &SimEnv, dir: &str) -> Vec<String> {
    sim.env().fs.list(p(dir)).unwrap().into_iter().map(|e| e.name).collect()
}

fn data(data: DataMode) -> CrashMode {
    CrashMode { data, dirs: DirMode::DropAll }
}

fn dirs(dirs: DirMode) -> CrashMode {
    CrashMode { data: DataMode::KeepAll, dirs }
}

/// The different contents of a file over many crashes.
fn outcomes(sim: &SimEnv, path: &str, mode: CrashMode, n: usize) -> BTreeSet<Option<Vec<u8>>> {
    (0..n).map(|_| read(&sim.crash(mode), path)).collect()
}

#[test]
fn synced_bytes_survive_every_mode() {
    let (sim, fs) = machine();
    durable(&*fs, "/db/a", b"precious");
    for mode in CrashMode::all() {
        assert_eq!(read(&sim.crash(mode), "/db/a").unwrap(), b"precious", "{mode:?}");
    }
    assert_eq!(CrashMode::all().len(), 21);
}

#[test]
fn m0_loses_what_is_not_synced_and_m5_nothing() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"old");
    file.write_at(b"NEW!", 0).unwrap();
    assert_eq!(read(&sim, "/db/a").unwrap(), b"NEW!", "reads see the volatile state");
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/a").unwrap(), b"old");
    assert_eq!(read(&sim.crash(CrashMode::KILL), "/db/a").unwrap(), b"NEW!");
    file.truncate(1).unwrap();
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/a").unwrap(), b"old");
    file.sync_all().unwrap();
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/a").unwrap(), b"N");
}

#[test]
fn m1_keeps_each_prefix_of_events_and_nothing_else() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"");
    for (i, letter) in [b"a", b"b", b"c"].iter().enumerate() {
        file.write_at(*letter, i as u64).unwrap();
    }
    file.truncate(1).unwrap();
    let want = ["", "a", "ab", "abc"].map(|s| Some(s.as_bytes().to_vec())).into_iter().collect();
    assert_eq!(outcomes(&sim, "/db/a", data(DataMode::Prefix), 200), want);
}

#[test]
fn m2_mixes_versions_of_pages_and_leaves_holes() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", &[b'0'; 3 * PAGE]);
    for version in [b'1', b'2'] {
        file.write_at(&[version; 4 * PAGE], 0).unwrap();
    }
    let mut seen = BTreeSet::new();
    for bytes in outcomes(&sim, "/db/a", data(DataMode::Pages), 600).into_iter().flatten() {
        assert!([3 * PAGE, 4 * PAGE].contains(&bytes.len()));
        let pages: Vec<u8> = bytes.chunks(PAGE).map(|page| page[0]).collect();
        assert!(bytes.chunks(PAGE).all(|page| page.iter().all(|b| *b == page[0])), "no page is torn");
        seen.insert(pages);
    }
    // The first three pages at any version, out of order; the fourth a hole, or any version, or not there.
    assert!(seen.contains(&b"021"[..]) && seen.contains(&b"2000"[..3]));
    assert!(seen.iter().any(|s| s.ends_with(b"\0") && s.len() == 4));
    assert!(seen.iter().any(|s| s.ends_with(b"2") && s.starts_with(b"0")));
    assert!(seen.len() > 40, "{}", seen.len());
}

#[test]
fn m2_keeps_the_rest_of_a_page_that_is_written_in_pieces() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"");
    for i in 0..6 {
        file.write_at(&[b'a' + i; 1000], u64::from(i) * 1000).unwrap();
    }
    for bytes in outcomes(&sim, "/db/a", data(DataMode::Pages), 300).into_iter().flatten() {
        for (at, b) in bytes.iter().enumerate() {
            let whole = b'a' + u8::try_from(at / 1000).unwrap();
            assert!(*b == whole || *b == 0, "byte {at} is {b}");
        }
        // Within a page, what was written earlier is there if what was written later is.
        for page in bytes.chunks(PAGE) {
            let hole = page.iter().position(|b| *b == 0).unwrap_or(page.len());
            assert!(page[hole..].iter().all(|b| *b == 0));
        }
    }
}

#[test]
fn m3_tears_one_page_at_a_sector() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", &[b'0'; 4 * PAGE]);
    file.write_at(&[b'1'; 4 * PAGE], 0).unwrap();
    let mut torn_seen = false;
    for bytes in outcomes(&sim, "/db/a", data(DataMode::TornPage), 300).into_iter().flatten() {
        let torn: Vec<_> = bytes.chunks(PAGE).filter(|page| page.iter().any(|b| *b != page[0])).collect();
        assert!(torn.len() <= 1);
        for page in torn {
            torn_seen = true;
            assert!(page.chunks(512).all(|s| s.iter().all(|b| *b == s[0])), "torn inside a sector");
            assert_eq!(page.chunks(512).collect::<Vec<_>>().windows(2).filter(|w| w[0] != w[1]).count(), 1);
        }
    }
    assert!(torn_seen);
}

#[test]
fn m4_has_the_length_without_the_bytes() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"abc");
    file.write_at(b"XYZ", 2).unwrap();
    assert_eq!(read(&sim.crash(data(DataMode::ZeroTail)), "/db/a").unwrap(), b"abc\0\0");
}

#[test]
fn a_synced_file_without_a_synced_name_is_gone() {
    let (sim, fs) = machine();
    let file = fs.create(p("/db/a")).unwrap();
    file.write_at(b"x", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(names(&sim.crash(CrashMode::DROP_ALL), "/db"), Vec::<String>::new());
    fs.sync_dir(p("/db")).unwrap();
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/a").unwrap(), b"x");
    // A directory needs its own parent synced.
    fs.create_dir_all(p("/db/sub")).unwrap();
    durable(&*fs, "/db/sub/f", b"f");
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/sub/f"), None);
    fs.sync_dir(p("/db")).unwrap();
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/sub/f").unwrap(), b"f");
}

#[test]
fn a_synced_name_without_synced_bytes_is_an_empty_file() {
    let (sim, fs) = machine();
    fs.create(p("/db/a")).unwrap().write_at(b"x", 0).unwrap();
    fs.sync_dir(p("/db")).unwrap();
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/a").unwrap(), b"");
}

#[test]
fn an_undone_unlink_brings_the_file_back() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"kept");
    file.write_at(b"lost", 0).unwrap();
    fs.remove(p("/db/a")).unwrap();
    assert_eq!(read(&sim, "/db/a"), None);
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/a").unwrap(), b"kept");
    fs.sync_dir(p("/db")).unwrap();
    assert_eq!(read(&sim.crash(CrashMode::DROP_ALL), "/db/a"), None);
}

#[test]
fn rename_is_one_event() {
    let (sim, fs) = machine();
    durable(&*fs, "/db/CURRENT", b"old");
    durable(&*fs, "/db/tmp", b"new");
    fs.rename(p("/db/tmp"), p("/db/CURRENT")).unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..50 {
        let after = sim.crash(dirs(DirMode::Prefix));
        seen.insert((read(&after, "/db/CURRENT").unwrap(), names(&after, "/db").len()));
    }
    assert_eq!(seen, BTreeSet::from([(b"old".to_vec(), 2), (b"new".to_vec(), 1)]));
    fs.sync_dir(p("/db")).unwrap();
    let after = sim.crash(CrashMode::DROP_ALL);
    assert_eq!(
        (read(&after, "/db/CURRENT").unwrap(), names(&after, "/db")),
        (b"new".to_vec(), vec!["CURRENT".into()])
    );
}

#[test]
fn a_link_is_a_name_of_its_own() {
    let (sim, fs) = machine();
    fs.create_dir_all(p("/copy")).unwrap();
    fs.sync_dir(p("/")).unwrap();
    durable(&*fs, "/db/a", b"bytes");
    fs.link(p("/db/a"), p("/copy/a")).unwrap();
    assert_eq!(sim.used_bytes(), 5, "charged once");
    let after = sim.crash(CrashMode::DROP_ALL);
    assert_eq!((read(&after, "/db/a").unwrap(), read(&after, "/copy/a")), (b"bytes".to_vec(), None));
    fs.sync_dir(p("/copy")).unwrap();
    fs.remove(p("/db/a")).unwrap();
    fs.sync_dir(p("/db")).unwrap();
    let after = sim.crash(CrashMode::DROP_ALL);
    assert_eq!((read(&after, "/db/a"), read(&after, "/copy/a").unwrap()), (None, b"bytes".to_vec()));
    assert_eq!((sim.used_bytes(), after.used_bytes()), (5, 5));
    after.env().fs.remove(p("/copy/a")).unwrap();
    assert_eq!(after.used_bytes(), 0, "with its last name");
}

#[test]
fn d1_keeps_a_prefix_of_all_directory_changes() {
    let (sim, fs) = machine();
    for name in ["1", "2", "3"] {
        drop(fs.create(&p("/db").join(name)).unwrap());
    }
    fs.remove(p("/db/2")).unwrap();
    let seen: BTreeSet<_> =
        (0..200).map(|_| names(&sim.crash(dirs(DirMode::Prefix)), "/db").concat()).collect();
    assert_eq!(seen, ["", "1", "12", "123", "13"].map(String::from).into());
    assert_eq!(names(&sim.crash(dirs(DirMode::KeepAll)), "/db").concat(), "13");
}

#[test]
fn syncing_one_side_of_a_move_syncs_both() {
    let (sim, fs) = machine();
    fs.create_dir_all(p("/lost")).unwrap();
    fs.sync_dir(p("/")).unwrap();
    durable(&*fs, "/db/a", b"a");
    fs.rename(p("/db/a"), p("/lost/a")).unwrap();
    drop(fs.create(p("/db/later")).unwrap());
    fs.sync_dir(p("/lost")).unwrap();
    let after = sim.crash(CrashMode::DROP_ALL);
    assert_eq!((names(&after, "/db").concat(), names(&after, "/lost").concat()), (String::new(), "a".into()));
}

#[test]
fn a_synced_move_takes_the_earlier_changes_of_the_other_side_along() {
    let (sim, fs) = machine();
    fs.create_dir_all(p("/lost")).unwrap();
    fs.sync_dir(p("/")).unwrap();
    drop(fs.create(p("/db/a")).unwrap());
    fs.rename(p("/db/a"), p("/lost/a")).unwrap();
    fs.sync_dir(p("/lost")).unwrap();
    // Replaying the creation after the durable move would give the file two names.
    for mode in [DirMode::DropAll, DirMode::Prefix, DirMode::KeepAll] {
        let after = sim.crash(dirs(mode));
        assert_eq!(
            (names(&after, "/db").concat(), names(&after, "/lost").concat()),
            (String::new(), "a".into())
        );
    }
}

#[test]
fn a_crash_is_a_photograph_and_can_be_taken_again() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"1");
    let held = fs.lock(p("/db/LOCK")).unwrap();
    let before = sim.trace_hash();
    let after = sim.crash(CrashMode::KILL);
    file.write_at(b"2", 0).unwrap();
    assert_eq!(read(&after, "/db/a").unwrap(), b"1", "the old machine does not reach the new disk");
    let next = after.env().fs;
    drop(next.lock(p("/db/LOCK")).expect("a crash releases it"));
    next.open_write(p("/db/a")).unwrap().write_at(b"3", 0).unwrap();
    assert_eq!(read(&after.crash(CrashMode::DROP_ALL), "/db/a").unwrap(), b"1", "what survived is durable");
    assert_eq!(read(&sim, "/db/a").unwrap(), b"2");
    assert_ne!(sim.trace_hash(), before);
    drop(held);
}

#[test]
fn chosen_calls_fail() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"abc");
    let kind = |r: ashlar_base::Result<()>| r.map_err(|e| e.kind());
    let eio = Err(ErrorKind::Io(IoKind::Other));

    sim.fail_call(CallClass::Any, sim.calls() + 2, Repeat::Once, IoKind::Denied);
    assert_eq!(kind(file.truncate(3)), Ok(()));
    let e = fs.remove(p("/db/a")).unwrap_err();
    assert_eq!((e.kind(), e.path()), (ErrorKind::Io(IoKind::Denied), Some(p("/db/a"))));
    assert!(e.to_string().contains("injected"), "{e}");
    assert_eq!(read(&sim, "/db/a").unwrap(), b"abc");

    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Sticky, IoKind::Other);
    assert_eq!(kind(fs.sync_dir(p("/db"))), eio);
    assert_eq!(kind(file.sync_data()), eio);
    assert_eq!(kind(file.write_at(b"z", 0)), Ok(()));
    assert_eq!(sim.injected(), 3);
    sim.heal();
    assert_eq!(kind(fs.sync_dir(p("/db"))), Ok(()));

    sim.fail_call(CallClass::Read, sim.calls_of(CallClass::Read) + 2, Repeat::Sticky, IoKind::Other);
    let reader = fs.open_read(p("/db/a")).unwrap();
    let e = reader.read_at(&mut [0; 2], 1).unwrap_err();
    assert_eq!((e.kind(), e.offset()), (ErrorKind::Io(IoKind::Other), Some(1)));
    assert!(fs.list(p("/db")).is_err() && fs.metadata(p("/db/a")).is_err());
    assert_eq!(kind(file.sync_all()), Ok(()));
    assert_eq!(kind(fs.remove(p("/db/a"))), Ok(()));

    sim.heal();
    sim.fail_call(CallClass::Change, sim.calls_of(CallClass::Change) + 1, Repeat::Once, IoKind::NoSpace);
    assert!(fs.metadata(p("/db/a")).is_ok());
    assert_eq!(fs.create(p("/db/b")).err().map(|e| e.kind()), Some(ErrorKind::Io(IoKind::NoSpace)));
    assert_eq!(names(&sim, "/db").len(), 0);
}

#[test]
fn a_failing_write_leaves_a_prefix() {
    let lens: BTreeSet<_> = (0..60)
        .map(|seed| {
            let sim = SimEnv::new(seed);
            let file = sim.env().fs.create(p("/a")).unwrap();
            sim.fail_call(CallClass::Write, 2, Repeat::Once, IoKind::Other);
            assert!(file.write_at(b"abcd", 0).is_err());
            let bytes = read(&sim, "/a").unwrap();
            assert!(b"abcd".starts_with(&bytes));
            bytes.len()
        })
        .collect();
    assert_eq!(lens.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn bytes_of_a_failed_sync_never_become_durable() {
    let (sim, fs) = machine();
    let file = durable(&*fs, "/db/a", b"old");
    file.write_at(b"new", 0).unwrap();
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
    assert!(file.sync_data().is_err());
    file.sync_data().expect("the error is reported once");
    assert_eq!(read(&sim, "/db/a").unwrap(), b"new");
    for mode in CrashMode::all() {
        let want: &[u8] = if mode == CrashMode::KILL { b"new" } else { b"old" };
        assert_eq!(read(&sim.crash(mode), "/db/a").unwrap(), want, "{mode:?}");
    }
}

/// What a reader sees, and what a power cut leaves, of "old" when writing "NE" over it and "!" behind it ends in a sync that
/// fails in this way.
fn failed_sync(fault: SyncFault, seed: u64) -> [Vec<u8>; 2] {
    let sim = SimEnv::new(seed);
    let file = sim.env().fs.create(p("/a")).unwrap();
    sim.env().fs.sync_dir(p("/")).unwrap();
    file.write_at(b"old", 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(b"NE", 0).unwrap();
    file.write_at(b"!", 3).unwrap();
    sim.set_sync_fault(fault);
    sim.fail_call(CallClass::Sync, sim.calls_of(CallClass::Sync) + 1, Repeat::Once, IoKind::Other);
    assert!(file.sync_data().is_err());
    file.sync_data().expect("the error is reported once");
    assert_eq!(sim.reverted(), fault == SyncFault::Reverted);
    assert_eq!(sim.used_bytes(), read(&sim, "/a").unwrap().len() as u64);
    [&sim, &sim.crash(CrashMode::DROP_ALL)].map(|sim| read(sim, "/a").unwrap())
}

#[test]
fn a_failed_sync_has_four_ways() {
    let seen = |fault| (0..20).map(|seed| failed_sync(fault, seed)).collect::<BTreeSet<_>>();
    let is = |reader: &[u8], durable: &[u8]| [reader.to_vec(), durable.to_vec()];
    assert_eq!(seen(SyncFault::Kept), [is(b"NEd!", b"old")].into());
    assert_eq!(seen(SyncFault::Reverted), [is(b"old", b"old")].into());
    assert_eq!(seen(SyncFault::Late), [is(b"NEd!", b"old"), is(b"NEd!", b"old!")].into());
    assert_eq!(seen(SyncFault::Spurious), [is(b"NEd!", b"NEd!")].into());
}

#[test]
fn a_full_disk_takes_a_prefix_and_room_comes_back() {
    let (sim, fs) = machine();
    sim.set_capacity(10);
    let file = durable(&*fs, "/db/a", b"12345678");
    let full = Some(ErrorKind::Io(IoKind::NoSpace));
    assert_eq!(file.write_at(b"9abc", 8).err().map(|e| e.kind()), full);
    assert_eq!((read(&sim, "/db/a").unwrap(), sim.used_bytes()), (b"123456789a".to_vec(), 10));
    assert_eq!(file.allocate(8, 3).err().map(|e| e.kind()), full);
    assert_eq!(file.truncate(11).err().map(|e| e.kind()), full);
    file.write_at(b"XX", 0).expect("no growth needs no room");
    let other = fs.create(p("/db/b")).unwrap();
    assert!(other.write_at(b"1", 0).is_err());
    file.truncate(4).unwrap();
    other.write_at(b"123456", 0).unwrap();
    fs.rename(p("/db/b"), p("/db/a")).unwrap();
    assert_eq!(sim.used_bytes(), 6);
    fs.remove(p("/db/a")).unwrap();
    file.write_at(&[0; 100], 0).expect("nameless files are not charged");
    assert_eq!(sim.used_bytes(), 0);
    assert_eq!(sim.crash(CrashMode::KILL).used_bytes(), 0);
}

/// A run of drawn calls; its trace and what a crash of each mode leaves.
fn run(seed: u64, last: &[u8]) -> (u64, u64, Vec<Option<Vec<u8>>>) {
    let sim = SimEnv::new(seed);
    let fs = sim.env().fs;
    let draw = SeededRand::stream(seed, "ops");
    fs.create_dir_all(p("/db")).unwrap();
    for _ in 0..200 {
        let path = p("/db").join(draw.below(4).to_string());
        match draw.below(8) {
            0 => drop(fs.remove(&path)),
            1 => drop(fs.rename(&path, p("/db/0"))),
            2 => fs.sync_dir(p("/db")).unwrap(),
            n => {
                let file = fs.open_write(&path).or_else(|_| fs.create(&path)).unwrap();
                file.write_at(&draw.next_u64().to_le_bytes(), draw.below(9000)).unwrap();
                if n == 3 {
                    file.sync_data().unwrap();
                }
            }
        }
    }
    fs.create(p("/db/0")).unwrap().write_at(last, 0).unwrap();
    let left = CrashMode::all().into_iter().map(|mode| read(&sim.crash(mode), "/db/1")).collect();
    (sim.trace_hash(), sim.calls(), left)
}

#[test]
fn same_seed_same_trace_and_same_crashes() {
    for seed in 0..4 {
        assert_eq!(run(seed, b"x"), run(seed, b"x"));
    }
    assert_ne!(run(1, b"x").0, run(2, b"x").0);
    let (a, b) = (run(1, b"x"), run(1, b"y"));
    assert_eq!(a.1, b.1);
    assert_ne!(a.0, b.0, "the data of a write is part of the trace");
}

#[test]
fn the_clock_goes_on_over_a_crash() {
    let (sim, _) = machine();
    sim.env().clock.sleep(std::time::Duration::from_secs(9));
    let after = sim.crash(CrashMode::KILL);
    assert_eq!(after.env().clock.now(), sim.env().clock.now());
    assert_eq!(after.env().clock.unix_micros(), sim.env().clock.unix_micros());
    assert_ne!(after.seed(), sim.crash(CrashMode::KILL).seed());
    assert_eq!(sim.jobs().unfinished(), 0);
}

#[test]
fn photographs_are_taken_in_the_middle() {
    let sim = SimEnv::new(9);
    let env = sim.env();
    for at in [3, 4, 5, 99] {
        sim.photograph_at(at, CrashMode::KILL);
    }
    sim.photograph_at(5, CrashMode::DROP_ALL);
    let file = env.fs.create(Path::new("/f")).unwrap();
    file.write_at(b"one", 0).unwrap();
    file.write_at(b"two", 3).unwrap();
    file.sync_all().unwrap();
    env.fs.sync_dir(Path::new("/")).unwrap();
    let seen: Vec<_> = sim
        .photographs()
        .into_iter()
        .map(|(at, mode, machine)| {
            let len = machine.env().fs.metadata(Path::new("/f")).unwrap().map(|e| e.len);
            (at, mode == CrashMode::KILL, len)
        })
        .collect();
    assert_eq!(seen, [(3, true, Some(3)), (4, true, Some(6)), (5, true, Some(6)), (5, false, None)]);
    assert!(sim.photographs().is_empty(), "each is handed over once");
}

#[test]
fn what_is_reserved_is_used() {
    let (sim, fs) = machine();
    sim.set_capacity(100);
    let (file, other) = (durable(&*fs, "/db/a", b"12345678"), fs.create(p("/db/b")).unwrap());
    file.allocate(8, 50).unwrap();
    assert_eq!((sim.used_bytes(), read(&sim, "/db/a").unwrap().len()), (58, 8));
    let full = Some(ErrorKind::Io(IoKind::NoSpace));
    assert_eq!(other.write_at(&[0; 43], 0).err().map(|e| e.kind()), full);
    file.write_at(&[1; 50], 8).expect("its room was kept");
    assert_eq!(file.write_at(b"!", 58).err().map(|e| e.kind()), full);
    other.truncate(12).unwrap();
    assert_eq!(other.allocate(12, 40).err().map(|e| e.kind()), full);
    assert_eq!(sim.used_bytes(), 100, "what fits is reserved");
    assert_eq!(sim.crash(CrashMode::KILL).used_bytes(), 100);
    other.truncate(12).unwrap();
    assert_eq!(sim.used_bytes(), 70);
    other.allocate(12, 10).unwrap();
    fs.remove(p("/db/b")).unwrap();
    assert_eq!(sim.used_bytes(), 58);
}
