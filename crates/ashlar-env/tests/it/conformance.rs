//! What every file system has to do alike: the machine's, the one in memory and the simulated one.

use ashlar_base::error::{BusyKind, IoKind};
use ashlar_base::{ErrorKind, Result};
use ashlar_env::sim::SimEnv;
use ashlar_env::{EntryKind, Env, Fs, MemFs, OsFs};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs `check` with each file system and an empty directory of it.
fn everywhere(check: impl Fn(&Arc<dyn Fs>, &Path)) {
    let temp = tempfile::tempdir().expect("a temporary directory");
    check(&(Arc::new(OsFs::new()) as _), temp.path());
    for fs in [Arc::new(MemFs::new()) as Arc<dyn Fs>, SimEnv::new(1).env().fs] {
        fs.create_dir_all(Path::new("/db")).unwrap();
        check(&fs, Path::new("/db"));
    }
}

fn read_all(fs: &dyn Fs, path: &Path) -> Result<Vec<u8>> {
    let file = fs.open_read(path)?;
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

fn write_all(fs: &dyn Fs, path: &Path, bytes: &[u8]) {
    let file = fs.create(path).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync_data().unwrap();
    file.sync_all().unwrap();
}

fn names(fs: &dyn Fs, dir: &Path) -> Vec<String> {
    fs.list(dir).unwrap().into_iter().map(|e| e.name).collect()
}

fn kind<T>(r: Result<T>) -> ErrorKind {
    r.err().expect("an error").kind()
}

const NOT_FOUND: ErrorKind = ErrorKind::Io(IoKind::NotFound);

#[test]
fn bytes_come_back() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        let file = fs.create(&path).unwrap();
        file.write_at(b"hello", 0).unwrap();
        file.write_at(b"J", 0).unwrap();
        file.write_at(b"end", 10).unwrap();
        file.write_at(b"", 99).unwrap();
        // Nothing shows of it, also beyond the end and beyond what a file can hold.
        for (offset, len) in [(0, 13), (5, 1 << 30), (u64::MAX, 1), (1, u64::MAX)] {
            file.begin_writeback(offset, len);
        }
        let reader = fs.open_read(&path).unwrap();
        reader.expect_random();
        for (offset, len) in [(0, 13), (5, 1 << 30), (u64::MAX, 1), (1, u64::MAX), (0, 0)] {
            reader.will_read(offset, len);
        }
        assert_eq!(read_all(&**fs, &path).unwrap(), b"Jello\0\0\0\0\0end");
        file.truncate(4).unwrap();
        file.truncate(6).unwrap();
        assert_eq!(read_all(&**fs, &path).unwrap(), b"Jell\0\0");
        file.allocate(6, 1 << 16).unwrap();
        file.allocate(1 << 20, 0).unwrap();
        assert_eq!(fs.metadata(&path).unwrap().unwrap().len, 6);
        assert_eq!(file.path(), path);
        let again = fs.open_write(&path).unwrap();
        again.write_at(b"!", 4).unwrap();
        assert_eq!(read_all(&**fs, &path).unwrap(), b"Jell!\0");
        drop(fs.create(&path).unwrap());
        assert_eq!(read_all(&**fs, &path).unwrap(), b"");
    });
}

#[test]
fn reading_past_the_end() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        write_all(&**fs, &path, b"0123456789");
        let file = fs.open_read(&path).unwrap();
        assert_eq!((file.len(), file.is_empty(), file.path()), (10, false, path.as_path()));
        let mut buf = [0xee; 4];
        assert_eq!(file.read_at(&mut buf, 8).unwrap(), 2);
        assert_eq!(&buf, b"89\xee\xee");
        assert_eq!(file.read_at(&mut buf, 10).unwrap(), 0);
        assert_eq!(file.read_at(&mut buf, 1 << 40).unwrap(), 0);
        let e = file.read_exact_at(&mut buf, 8).unwrap_err();
        assert!(e.is_corruption());
        assert_eq!((e.path(), e.offset()), (Some(path.as_path()), Some(8)));
        file.read_exact_at(&mut buf, 6).unwrap();
        assert_eq!(&buf, b"6789");
    });
}

#[test]
fn what_is_not_there() {
    everywhere(|fs, dir| {
        let gone = dir.join("gone");
        let below = gone.join("x");
        assert_eq!(kind(fs.open_read(&gone)), NOT_FOUND);
        assert_eq!(kind(fs.open_write(&gone)), NOT_FOUND);
        assert_eq!(kind(fs.create(&below)), NOT_FOUND);
        assert_eq!(kind(fs.rename(&gone, &dir.join("y"))), NOT_FOUND);
        assert_eq!(kind(fs.remove(&gone)), NOT_FOUND);
        assert_eq!(kind(fs.remove_dir(&gone)), NOT_FOUND);
        assert_eq!(kind(fs.list(&gone)), NOT_FOUND);
        assert_eq!(kind(fs.sync_dir(&gone)), NOT_FOUND);
        assert_eq!(fs.metadata(&gone).unwrap(), None);
        assert_eq!(fs.metadata(&below).unwrap(), None);
        let e = fs.open_read(&gone).unwrap_err();
        assert!(e.to_string().starts_with("IO error: cannot open: ") && e.path() == Some(&gone), "{e}");
    });
}

#[test]
fn directories() {
    everywhere(|fs, dir| {
        let sub = dir.join("one/two");
        fs.create_dir_all(&sub).unwrap();
        fs.create_dir_all(&sub).unwrap();
        write_all(&**fs, &sub.join("b"), b"bb");
        write_all(&**fs, &sub.join("a"), b"");
        fs.create_dir_all(&sub.join("c")).unwrap();
        let seen: Vec<_> = fs.list(&sub).unwrap().into_iter().map(|e| (e.name, e.len, e.kind)).collect();
        let want = [("a", 0, EntryKind::File), ("b", 2, EntryKind::File), ("c", 0, EntryKind::Dir)];
        assert_eq!(seen, want.map(|(n, l, k)| (n.to_owned(), l, k)));
        assert_eq!(fs.metadata(&sub).unwrap().unwrap().kind, EntryKind::Dir);
        fs.sync_dir(&sub).unwrap();
        assert!(matches!(kind(fs.remove_dir(&sub)), ErrorKind::Io(_)));
        assert!(matches!(kind(fs.remove_dir(&sub.join("a"))), ErrorKind::Io(_)));
        assert!(matches!(kind(fs.remove(&sub.join("c"))), ErrorKind::Io(_)));
        assert!(matches!(kind(fs.list(&sub.join("a"))), ErrorKind::Io(_)));
        assert!(matches!(kind(fs.create_dir_all(&sub.join("a/x"))), ErrorKind::Io(_)));
        assert_eq!(kind(fs.open_read(&sub.join("c"))), ErrorKind::InvalidArgument);
        assert_eq!(kind(fs.create(&sub.join("c"))), ErrorKind::InvalidArgument);
        fs.remove(&sub.join("a")).unwrap();
        fs.remove(&sub.join("b")).unwrap();
        fs.remove_dir(&sub.join("c")).unwrap();
        fs.remove_dir(&sub).unwrap();
        assert_eq!(names(&**fs, &dir.join("one")), Vec::<String>::new());
    });
}

#[test]
fn rename_replaces_and_handles_keep_their_file() {
    everywhere(|fs, dir| {
        let (a, b, sub) = (dir.join("a"), dir.join("b"), dir.join("sub"));
        write_all(&**fs, &a, b"new");
        write_all(&**fs, &b, b"old file");
        let old = fs.open_read(&b).unwrap();
        fs.rename(&a, &b).unwrap();
        fs.rename(&b, &b).unwrap();
        assert_eq!(names(&**fs, dir), ["b"]);
        assert_eq!(read_all(&**fs, &b).unwrap(), b"new");
        let mut buf = [0; 8];
        old.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"old file");
        let writer = fs.open_write(&b).unwrap();
        fs.remove(&b).unwrap();
        writer.write_at(b"still", 0).unwrap();
        writer.sync_all().unwrap();

        fs.create_dir_all(&sub).unwrap();
        write_all(&**fs, &sub.join("f"), b"f");
        let moved = dir.join("moved");
        fs.rename(&sub, &moved).unwrap();
        assert_eq!(read_all(&**fs, &moved.join("f")).unwrap(), b"f");
        assert!(fs.rename(&moved, &moved.join("inside")).is_err());
        write_all(&**fs, &a, b"a");
        assert!(fs.rename(&a, &moved).is_err());
        assert!(fs.rename(&moved, &a).is_err());
        assert_eq!(names(&**fs, dir), ["a", "moved"]);
    });
}

#[test]
fn a_file_lives_as_long_as_one_of_its_names() {
    everywhere(|fs, dir| {
        let (a, b, sub) = (dir.join("a"), dir.join("b"), dir.join("sub"));
        fs.create_dir_all(&sub).unwrap();
        write_all(&**fs, &a, b"one");
        fs.link(&a, &b).unwrap();
        fs.link(&b, &sub.join("c")).unwrap();
        fs.open_write(&b).unwrap().write_at(b"O", 0).unwrap();
        assert_eq!(read_all(&**fs, &a).unwrap(), b"One", "one file");
        fs.rename(&a, &b).unwrap();
        assert_eq!(names(&**fs, dir), ["a", "b", "sub"], "they are the same: nothing happens");
        fs.remove(&a).unwrap();
        fs.remove(&b).unwrap();
        assert_eq!(read_all(&**fs, &sub.join("c")).unwrap(), b"One");

        write_all(&**fs, &a, b"other");
        assert_eq!(kind(fs.link(&a, &sub.join("c"))), ErrorKind::Io(IoKind::AlreadyExists));
        assert_eq!(kind(fs.link(&dir.join("gone"), &b)), NOT_FOUND);
        assert_eq!(kind(fs.link(&a, &dir.join("gone/b"))), NOT_FOUND);
        assert!(fs.link(&sub, &b).is_err(), "no directory");
        assert_eq!(names(&**fs, dir), ["a", "sub"]);
    });
}

#[test]
fn a_lock_has_one_holder() {
    everywhere(|fs, dir| {
        let path = dir.join("LOCK");
        fs.check_unlocked(&path).unwrap();
        assert!(names(&**fs, dir).is_empty(), "looking creates nothing");
        let held = fs.lock(&path).unwrap();
        for _ in 0..2 {
            assert_eq!(kind(fs.check_unlocked(&path)), ErrorKind::Busy(BusyKind::Locked));
            assert_eq!(kind(fs.lock(&path)), ErrorKind::Busy(BusyKind::Locked));
        }
        assert_eq!(names(&**fs, dir), ["LOCK"]);
        fs.create_dir_all(&dir.join("other")).unwrap();
        let other = fs.lock(&dir.join("other/LOCK")).unwrap();
        drop(held);
        assert!(fs.metadata(&path).unwrap().is_some(), "never unlinked");
        fs.check_unlocked(&path).unwrap();
        drop(fs.lock(&path).unwrap());
        drop(other);
    });
}

#[test]
fn a_lock_holds_though_its_file_was_removed() {
    everywhere(|fs, dir| {
        let path = dir.join("LOCK");
        let held = fs.lock(&path).unwrap();
        fs.remove(&path).unwrap();
        for _ in 0..2 {
            assert_eq!(kind(fs.lock(&path)), ErrorKind::Busy(BusyKind::Locked));
        }
        drop(held);
        drop(fs.lock(&path).unwrap());
    });
}

#[test]
fn a_created_file_replaces_what_has_its_name() {
    everywhere(|fs, dir| {
        let (a, b) = (dir.join("a"), dir.join("b"));
        write_all(&**fs, &a, b"old");
        fs.link(&a, &b).unwrap();
        let before = fs.open_read(&a).unwrap();
        write_all(&**fs, &a, b"fresh");
        assert_eq!(read_all(&**fs, &a).unwrap(), b"fresh");
        assert_eq!(read_all(&**fs, &b).unwrap(), b"old", "the file's other name keeps its bytes");
        let mut buf = [0; 3];
        before.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"old", "so does an open handle");
    });
}

#[test]
fn a_held_directory_serves_the_paths_below_it() {
    everywhere(|fs, dir| {
        let (one, two) = (dir.join("one"), dir.join("two"));
        assert_eq!(kind(fs.hold(&one)), NOT_FOUND);
        fs.create_dir_all(&one).unwrap();
        fs.create_dir_all(&two).unwrap();
        let fs = fs.hold(&one).unwrap().hold(&two).unwrap().hold(&one).unwrap();
        write_all(&*fs, &one.join("a"), b"a");
        fs.link(&one.join("a"), &two.join("b")).unwrap();
        fs.rename(&one.join("a"), &two.join("c")).unwrap();
        fs.create_dir_all(&one).unwrap();
        fs.create_dir_all(&one.join("x/y")).unwrap();
        fs.rename(&two.join("c"), &one.join("x/y/d")).unwrap();
        assert_eq!(read_all(&*fs, &one.join("x/y/d")).unwrap(), b"a");
        assert_eq!(fs.metadata(&one.join("x/none/d")).unwrap(), None);
        assert_eq!(fs.metadata(&one).unwrap().unwrap().name, "one");
        assert_eq!(fs.metadata(&two.join("b")).unwrap().unwrap().len, 1);
        fs.sync_dir(&one).unwrap();
        fs.sync_dir(&one.join("x")).unwrap();
        assert_eq!(names(&*fs, &one), ["x"]);
        assert_eq!(names(&*fs, &two), ["b"]);
        assert_eq!(kind(fs.lock(&one.join("x")).map(drop)), ErrorKind::InvalidArgument);
        drop(fs.lock(&one.join("LOCK")).unwrap());
        fs.remove(&two.join("b")).unwrap();
        fs.remove_dir(&two).unwrap();
        assert!(fs.list(&two).is_err());
        write_all(&*fs, &dir.join("outside"), b"o");
        assert_eq!(read_all(&*fs, &dir.join("outside")).unwrap(), b"o");
    });
}

#[test]
fn one_file_many_threads() {
    everywhere(|fs, dir| {
        let path = dir.join("shared");
        let file = fs.create(&path).unwrap();
        const PART: usize = 64 << 10;
        std::thread::scope(|scope| {
            for i in 0..4u8 {
                let file = &file;
                scope.spawn(move || {
                    for (n, piece) in vec![i; PART].chunks(4096).enumerate() {
                        file.write_at(piece, (usize::from(i) * PART + n * 4096) as u64).unwrap();
                    }
                });
            }
        });
        let file = fs.open_read(&path).unwrap();
        std::thread::scope(|scope| {
            for i in 0..4u8 {
                let file = &file;
                scope.spawn(move || {
                    let mut part = vec![0xff; PART];
                    file.read_exact_at(&mut part, (usize::from(i) * PART) as u64).unwrap();
                    assert!(part.iter().all(|b| *b == i));
                });
            }
        });
    });
}

fn says<T>(answer: Result<T>, kind: ErrorKind, message: &str, path: &Path) {
    let e = answer.err().expect("an error");
    assert_eq!((e.kind(), e.message(), e.path()), (kind, message, Some(path)), "{e}");
}

#[test]
fn names_that_are_none_are_refused() {
    let odd = Path::new(OsStr::from_bytes(b"/a\xff"));
    let (root, plain, dir) = (Path::new("/"), Path::new("/plain"), Path::new("/dir"));
    let invalid = ErrorKind::InvalidArgument;
    for fs in [Arc::new(MemFs::new()) as Arc<dyn Fs>, SimEnv::new(1).env().fs] {
        fs.create_dir_all(dir).unwrap();
        write_all(&*fs, plain, b"x");
        let not_text = "file name is not UTF-8";
        says(fs.create(odd), invalid, not_text, odd);
        says(fs.open_read(odd), invalid, not_text, odd);
        says(fs.rename(plain, odd), invalid, not_text, odd);
        says(fs.metadata(odd), invalid, not_text, odd);
        says(fs.create_dir_all(odd), invalid, not_text, odd);
        let no_file = "the root directory is no file";
        says(fs.create(root), invalid, no_file, root);
        says(fs.lock(root), invalid, no_file, root);
        says(fs.remove(root), invalid, no_file, root);
        says(fs.open_write(dir), invalid, "cannot open for writing a directory", dir);
        says(fs.lock(dir), invalid, "cannot lock a directory", dir);
        assert_eq!(names(&*fs, root), ["dir", "plain"]);
    }
}

#[test]
fn offsets_that_no_file_has_are_refused() {
    everywhere(|fs, dir| {
        let path = dir.join("a");
        let file = fs.create(&path).unwrap();
        file.write_at(b"0123", 0).unwrap();
        // Out of sight: what is unlinked is not charged.
        for unlinked in [false, true] {
            if unlinked {
                fs.remove(&path).unwrap();
            }
            for (answer, words) in [
                (file.write_at(b"x", u64::MAX - 1), "cannot write"),
                (file.truncate(u64::MAX), "cannot truncate"),
            ] {
                let e = answer.unwrap_err();
                assert!(matches!(e.kind(), ErrorKind::Io(_)) && e.message() == words, "{e}");
                assert_eq!(e.path(), Some(&*path));
            }
        }
    });
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a");
    write_all(&OsFs::new(), &path, b"0123");
    let e = OsFs::new().open_read(&path).unwrap().read_at(&mut [0; 2], u64::MAX).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::Io(_)) && e.message() == "cannot read", "{e}");
    assert_eq!((e.path(), e.offset()), (Some(&*path), Some(u64::MAX)));
}

#[test]
fn nothing_is_below_a_file() {
    everywhere(|fs, dir| {
        let file = dir.join("file");
        write_all(&**fs, &file, b"x");
        let below = file.join("x");
        assert!(fs.metadata(&below).is_err() || fs.metadata(&below).unwrap().is_none());
        assert!(matches!(kind(fs.lock(&below)), ErrorKind::Io(_)));
        assert!(matches!(kind(fs.create(&below)), ErrorKind::Io(_)));
        assert!(matches!(kind(fs.sync_dir(&below)), ErrorKind::Io(_)));
    });
}

#[test]
fn paths_without_a_machine_below_are_normal() {
    let fs = MemFs::new();
    fs.create_dir_all(Path::new("x/y")).unwrap();
    write_all(&fs, Path::new("/x/./y/../f"), b"1");
    assert_eq!(read_all(&fs, Path::new("x/f")).unwrap(), b"1");
    assert_eq!(names(&fs, Path::new("/")), ["x"]);
    assert_eq!(kind(fs.create(Path::new("/"))), ErrorKind::InvalidArgument);
    assert_eq!(fs.metadata(Path::new("/")).unwrap().unwrap().kind, EntryKind::Dir);
    assert_eq!(kind(fs.create(Path::new("x/f")).unwrap().truncate(u64::MAX)), ErrorKind::Io(IoKind::NoSpace));
}

#[test]
fn the_machine_follows_no_link_and_waits_for_no_pipe() {
    let temp = tempfile::tempdir().unwrap();
    let fs = OsFs::new();
    let (real, link, pipe) = (temp.path().join("real"), temp.path().join("link"), temp.path().join("pipe"));
    write_all(&fs, &real, b"x");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    for odd in [&link, &pipe] {
        assert_eq!(kind(fs.open_read(odd)), ErrorKind::InvalidArgument);
        assert_eq!(kind(fs.open_write(odd)), ErrorKind::InvalidArgument);
        assert_eq!(fs.metadata(odd).unwrap().unwrap().kind, EntryKind::Other);
    }
    let kinds: Vec<_> = fs.list(temp.path()).unwrap().into_iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [EntryKind::Other, EntryKind::Other, EntryKind::File]);
    assert_eq!(kind(fs.create(&pipe)), ErrorKind::InvalidArgument);
    assert_eq!(kind(fs.rename(&real, &pipe)), ErrorKind::InvalidArgument);
    assert_eq!(fs.metadata(&pipe).unwrap().unwrap().kind, EntryKind::Other, "the pipe keeps its name");
    write_all(&fs, &link, b"the link is replaced");
    assert_eq!(read_all(&fs, &real).unwrap(), b"x");
}

#[test]
fn the_machine_tells_a_full_disk() {
    let full = PathBuf::from("/dev/full");
    // A device is refused before it is written to.
    assert_eq!(kind(OsFs::new().open_write(&full)), ErrorKind::InvalidArgument);
}

/// On the file systems in use; one that cannot keep room says that it does.
#[test]
fn the_machine_keeps_room_and_gives_it_back() {
    use std::os::unix::fs::MetadataExt;
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("a");
    let file = OsFs::new().create(&path).unwrap();
    let taken = || std::fs::metadata(&path).unwrap().blocks() * 512;
    file.write_at(&[7; 100], 0).unwrap();
    file.allocate(100, 1 << 20).unwrap();
    if taken() < 1 << 20 {
        println!("skipped: this file system keeps no room");
        return;
    }
    file.write_at(&[8; 100], 100).unwrap();
    file.sync_data().unwrap();
    assert_eq!(read_all(&OsFs::new(), &path).unwrap().len(), 200);
    file.truncate(200).unwrap();
    assert!(taken() < 64 << 10, "{} bytes", taken());
}

#[test]
fn the_machine_as_a_whole() {
    let env = Env::os().unwrap();
    assert!(env.clock.unix_micros() > 1_600_000_000_000_000);
    let before = env.clock.now();
    env.clock.sleep(std::time::Duration::from_millis(2));
    assert!(env.clock.now() >= before + std::time::Duration::from_millis(2));
    assert_ne!(env.rand.next_u64(), Env::os().unwrap().rand.next_u64());
    assert_eq!(env.jobs.drive(5), 0);
    env.jobs.close();
}
