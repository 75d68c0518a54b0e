//! The LOCK file against this process under other names, and against another process.

use ashlar_base::ErrorKind;
use ashlar_base::error::BusyKind;
use ashlar_env::{Fs, OsFs};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const PATH: &str = "ASHLAR_TEST_LOCK_PATH";
const LOCKED: ErrorKind = ErrorKind::Busy(BusyKind::Locked);

/// What the child process does: takes the lock, tells how that went, and holds it until its input ends. Without the
/// variable, in an ordinary run, there is nothing to do.
#[test]
fn child_entry() {
    let Ok(path) = std::env::var(PATH) else { return };
    match OsFs::new().lock(Path::new(&path)) {
        Ok(_held) => {
            println!("\nchild: locked");
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
        }
        Err(e) => println!("\nchild: {e}"),
    }
}

/// A running child process, with what it still says kept readable.
struct Holder {
    process: Child,
    output: BufReader<ChildStdout>,
}

/// Starts the child; what it said first.
fn child(path: &Path) -> (Holder, String) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lock::child_entry", "--nocapture"])
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("child: ") {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child said nothing");
    }
    (Holder { process, output }, line["child: ".len()..].trim_end().to_owned())
}

fn finish(mut holder: Holder) {
    drop(holder.process.stdin.take());
    holder.output.read_to_end(&mut Vec::new()).unwrap();
    assert!(holder.process.wait().unwrap().success());
}

/// How many descriptors of this process lead to a file.
fn descriptors_of(path: &Path) -> usize {
    let path = path.canonicalize().unwrap();
    let all = std::fs::read_dir("/proc/self/fd").unwrap();
    // A descriptor may be closed by another test while we look.
    all.filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok()).filter(|to| *to == path).count()
}

#[test]
fn an_alias_does_not_pass_nor_drop_the_lock() {
    let temp = tempfile::tempdir().unwrap();
    let real = temp.path().join("db");
    let alias = temp.path().join("alias");
    let fs = OsFs::new();
    fs.create_dir_all(&real).unwrap();
    std::os::unix::fs::symlink(&real, &alias).unwrap();
    std::fs::write(temp.path().join("hard"), b"").unwrap();
    std::fs::hard_link(temp.path().join("hard"), real.join("LOCK")).unwrap();

    let held = fs.lock(&real.join("LOCK")).unwrap();
    for name in [alias.join("LOCK"), real.join("LOCK"), temp.path().join("hard")] {
        for e in [fs.check_unlocked(&name).unwrap_err(), fs.lock(&name).unwrap_err()] {
            assert_eq!(e.kind(), LOCKED);
            assert!(e.to_string().contains(&std::process::id().to_string()), "{e}");
        }
    }
    assert_eq!(descriptors_of(&real.join("LOCK")), 1, "a refused attempt opened the file");
    // Had a refused attempt opened and closed the file, another process would get the lock now.
    let (refused, said) = child(&real.join("LOCK"));
    finish(refused);
    assert!(said.starts_with("Resource busy: ") && said.contains(&std::process::id().to_string()), "{said}");
    drop(held);
    let (got, said) = child(&alias.join("LOCK"));
    assert_eq!(said, "locked");
    finish(got);
    drop(fs.lock(&alias.join("LOCK")).unwrap());
}

#[test]
fn another_process_keeps_us_out_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("LOCK");
    let fs = OsFs::new();
    let (holder, said) = child(&path);
    assert_eq!(said, "locked");
    for _ in 0..2 {
        for e in [fs.check_unlocked(&path).unwrap_err(), fs.lock(&path).unwrap_err()] {
            assert_eq!(e.kind(), LOCKED);
            assert!(e.to_string().contains(&format!("pid {}", holder.process.id())), "{e}");
        }
    }
    finish(holder);
    assert!(path.exists());
    fs.check_unlocked(&path).unwrap();
    drop(fs.lock(&path).unwrap());
}

#[test]
fn a_removed_lock_file_lets_no_other_process_in() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("LOCK");
    let fs = OsFs::new();
    let held = fs.lock(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (refused, said) = child(&path);
    finish(refused);
    assert!(said.starts_with("Resource busy: the lock is held by another process"), "{said}");
    assert!(!path.exists(), "a refused attempt left a file");
    assert_eq!(fs.lock(&path).unwrap_err().kind(), LOCKED);
    drop(held);
    let (holder, said) = child(&path);
    assert_eq!(said, "locked");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(fs.lock(&path).unwrap_err().kind(), LOCKED);
    finish(holder);
    drop(fs.lock(&path).unwrap());
}

#[test]
fn a_killed_holder_leaves_no_lock() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("LOCK");
    let (mut holder, said) = child(&path);
    assert_eq!(said, "locked");
    holder.process.kill().unwrap();
    holder.process.wait().unwrap();
    drop(OsFs::new().lock(&path).unwrap());
}

#[test]
fn a_link_in_place_of_the_lock_file_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("LOCK");
    std::os::unix::fs::symlink(temp.path().join("elsewhere"), &path).unwrap();
    assert_eq!(OsFs::new().lock(&path).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!temp.path().join("elsewhere").exists());
}
