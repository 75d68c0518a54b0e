//! Folders for devices and the file systems on them, and programs that mount: what nothing here outlives.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long a process that is to end may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a file system that is busy is unmounted again.
const BUSY_TRIES: u32 = 25;

/// Unmounts lazily, for files may be open, and removes the folder `$0`. A line says that all is over; without one the
/// process that began it is dead, and a `mount` that it had begun may still be at work.
const KEEPER: &str = r#"read -r line || sleep 2
for at; do umount -l "$at" 2>/dev/null; done
rm -rf --one-file-system "$0""#;

/// A folder whose file systems are unmounted, and which is removed, with the value or with the process, even if that one is
/// killed: another process waits for its end.
#[derive(Debug)]
pub(crate) struct DeviceFolder {
    path: PathBuf,
    keeper: Child,
    line: Option<ChildStdin>,
}

impl DeviceFolder {
    /// With folders of these names to mount on, unmounted in this order. In memory, where there is room for some, as no
    /// test needs its devices on a disk.
    pub(crate) fn new(mounts: &[&str]) -> io::Result<DeviceFolder> {
        const MEMORY: &str = "/dev/shm";
        const ENOUGH: u64 = 1 << 30;
        let free = rustix::fs::statvfs(MEMORY).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
        let folder = if free >= ENOUGH { TempDir::new_in(MEMORY)? } else { TempDir::new()? };
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER]).arg(folder.path());
        for name in mounts {
            let at = folder.path().join(name);
            std::fs::create_dir(&at)?;
            keeper.arg(at);
        }
        // A separate process group, which gets no Ctrl-C.
        keeper.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut keeper = keeper.spawn()?;
        let line = keeper.stdin.take();
        Ok(DeviceFolder { path: folder.keep(), keeper, line })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts everything and removes the folder; done again, nothing.
    pub(crate) fn clear(&mut self) {
        if let Some(mut line) = self.line.take() {
            let _ = writeln!(line);
            drop(line);
            has_ended(&mut self.keeper);
        }
    }
}

impl Drop for DeviceFolder {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Waits for the end of a process, a while.
pub(crate) fn has_ended(process: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match process.try_wait() {
            Ok(Some(_)) => return true,
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => return false,
        }
    }
    false
}

/// Mounts the ext4 in a file by way of a loop device.
pub(crate) fn mount(file: &Path, at: &Path, options: &str) -> Result<(), String> {
    let options = ["loop", options].join(",");
    let options = options.trim_end_matches(',');
    run("mount", &["-t".as_ref(), "ext4".as_ref(), "-o".as_ref(), options.as_ref(), file, at]).map(drop)
}

/// Unmounts in order.
pub(crate) fn unmount(at: &Path) -> Result<(), String> {
    // A process that another thread starts has all open files until its program begins.
    for _ in 0..BUSY_TRIES {
        if run("umount", &[at]).is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    run("umount", &[at]).map(drop)
}

/// What a program prints.
pub(crate) fn run(program: &str, args: &[&Path]) -> Result<String, String> {
    let done = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}
