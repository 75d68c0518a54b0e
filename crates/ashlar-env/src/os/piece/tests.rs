//! Stores into mapped files, and what the guard does for pages that are missing. In child processes where a signal may end
//! the process.

use super::*;
use crate::{Fs, OsFs, WriteFile};
use ashlar_testkit::fork;
use std::sync::Arc;

const LEN: usize = 32 << 10;

fn file(dir: &tempfile::TempDir) -> (Arc<dyn WriteFile>, PathBuf) {
    let path = dir.path().join("000004.log");
    (OsFs::new().create(&path).unwrap(), path)
}

/// `None`: not on this file system.
fn prepare(file: &Arc<dyn WriteFile>, offset: u64, len: usize) -> Option<Box<dyn PreparedPiece>> {
    let piece = file.prepare(offset, len).unwrap();
    if piece.is_none() {
        ashlar_testkit::report::skipped("mapped piece", "the temporary directory is on neither ext4 nor XFS");
    }
    piece
}

fn bytes_of(path: &Path) -> Vec<u8> {
    let file = OsFs::new().open_read(path).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn what_is_stored_is_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (file, path) = file(&dir);
    file.write_at(&[9; 5000], 0).unwrap();
    let Some(mut piece) = prepare(&file, 5000, LEN) else { return };
    assert_eq!(piece.range(), 5000..5000 + LEN as u64);
    let mut model = [vec![9; 5000], vec![0; LEN]].concat();
    assert_eq!(bytes_of(&path), model);
    let mut at = 5000;
    for len in (8..200).chain([4096, 10_000]) {
        let bytes: Vec<u8> = (0..len).map(|i| u8::try_from((i * 7 + len) % 256).unwrap()).collect();
        if at + len > model.len() {
            break;
        }
        piece.store(at as u64, &bytes).unwrap();
        model[at..at + len].copy_from_slice(&bytes);
        at += len;
    }
    assert!(bytes_of(&path) == model);
    // A write to the mapped range, and a store over it.
    file.write_at(&[1; 100], 5000).unwrap();
    piece.store(5010, &[2; 8]).unwrap();
    model[5000..5100].fill(1);
    model[5010..5018].fill(2);
    file.sync_data().unwrap();
    drop(piece);
    file.truncate(20_000).unwrap();
    assert!(bytes_of(&path) == model[..20_000]);
}

#[test]
fn stores_stay_within_the_piece() {
    let dir = tempfile::tempdir().unwrap();
    let (file, path) = file(&dir);
    let Some(mut piece) = prepare(&file, 100, 1000) else { return };
    let inside = [100, 1100 - 20];
    let outside = [0, 99, 1100 - 19, 1100, 2000, 4096, u64::MAX - 10, u64::MAX];
    for at in inside {
        piece.store(at, &[1; 20]).unwrap();
    }
    let before = bytes_of(&path);
    for at in outside {
        let e = piece.store(at, &[2; 20]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{at}: {e}");
    }
    for len in 0..STORE_HEAD {
        assert_eq!(piece.store(100, &vec![2; len]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    assert!(bytes_of(&path) == before);
}

#[test]
fn a_file_that_is_cut_beneath_the_map_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (file, path) = file(&dir);
    let Some(mut piece) = prepare(&file, 0, LEN) else { return };
    piece.store(0, &[1; 50]).unwrap();
    let other = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    other.set_len(0).unwrap();
    let e = piece.store(8000, &[2; 5000]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io(IoKind::Other), "{e}");
    assert!(e.to_string().contains("000004.log"), "{e}");
    // The map stays refused, also where the file has its pages again.
    other.set_len(LEN as u64).unwrap();
    assert!(piece.store(20_000, &[3; 50]).is_err());
    drop(piece);
    let mut again = prepare(&file, 0, LEN).unwrap();
    again.store(0, &[4; 50]).unwrap();
    assert_eq!(bytes_of(&path)[..50], [4; 50]);
}

#[test]
fn a_forked_child_stores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (file, path) = file(&dir);
    let Some(mut piece) = prepare(&file, 0, LEN) else { return };
    let said = fork::child(|| format!("{:?}", piece.store(0, &[1; 50]).unwrap_err().kind()));
    assert_eq!(said.as_deref(), Ok("Shutdown(Forked)"));
    assert_eq!(bytes_of(&path), vec![0; LEN]);
}

extern "C" fn exits(_: i32) {
    // SAFETY: ends a process of these tests at once. Checked by: `other_faults_go_to_the_former_handler`.
    unsafe { libc::_exit(7) }
}

extern "C" fn exits_with_info(_: i32, _: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: as in `exits`. Checked by: as there.
    unsafe { libc::_exit(8) }
}

fn install(handler: libc::sighandler_t, flags: i32) {
    // SAFETY: numbers and an optional pointer, for all of which zero is a value. Checked by: its callers.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    // SAFETY: a handler of the form that the flags ask for, or none, in a process of its own. Checked by: its callers.
    assert_eq!(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) }, 0);
}

/// Touches a page of a file of no bytes that nothing guards.
fn fault(path: &Path) {
    let file = OsFs::new().create(path).unwrap();
    let file_again = std::fs::OpenOptions::new().read(true).write(true).open(file.path()).unwrap();
    let mapping = Mapping::new(&file_again, 0, PAGE).unwrap();
    // SAFETY: within the mapping; the page is missing, so the kernel sends a signal. Checked by: its callers.
    unsafe { mapping.start.cast::<u8>().write_volatile(1) };
}

const ROLE: &str = "ASHLAR_FORMER_HANDLER";

/// Each case in a process of its own, in which no other test has installed the handler: this test, run again.
#[test]
fn other_faults_go_to_the_former_handler() {
    let dir = tempfile::tempdir().unwrap();
    if let Ok(role) = std::env::var(ROLE) {
        match role.as_str() {
            "short" => install(exits as *const () as libc::sighandler_t, 0),
            "long" => install(exits_with_info as *const () as libc::sighandler_t, libc::SA_SIGINFO),
            "none" => install(libc::SIG_DFL, 0),
            "ignored" => install(libc::SIG_IGN, 0),
            _ => {}
        }
        let (file, _) = file(&dir);
        let Some(mut piece) = prepare(&file, 0, LEN) else { return };
        file.truncate(0).unwrap();
        assert!(piece.store(0, &[1; 50]).is_err(), "the guard's own");
        fault(&dir.path().join("foreign"));
        return;
    }
    let Some(piece) = prepare(&file(&dir).0, 0, LEN) else { return };
    drop(piece);
    for (role, code) in
        [("short", Some(7)), ("long", Some(8)), ("none", None), ("ignored", None), ("std", None)]
    {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "os::piece::tests::other_faults_go_to_the_former_handler"]).env(ROLE, role);
        let ended = again.output().unwrap();
        assert_eq!(ended.status.code(), code, "{role}: {ended:?}");
        if code.is_none() {
            let signal = std::os::unix::process::ExitStatusExt::signal(&ended.status);
            assert_eq!(signal, Some(libc::SIGBUS), "{role}: {ended:?}");
        }
    }
}

#[test]
fn a_displaced_handler_maps_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let (file, _) = file(&dir);
    if prepare(&file, 0, LEN).is_none() {
        return;
    }
    let said = fork::child(|| {
        install(exits as *const () as libc::sighandler_t, 0);
        // A handle of the child's own: those of the parent refuse it.
        let file = OsFs::new().create(&dir.path().join("own")).unwrap();
        format!("{}", file.prepare(0, LEN).unwrap().is_none())
    });
    assert_eq!(said.as_deref(), Ok("true"));
}
