//! A real ext4 on a loop device whose power can be cut: what was not on the device at that moment is gone.
//!
//! The cut is the kernel's shutdown call without a flush of the journal: from then on nothing reaches the device, and every
//! call fails. To boot is to unmount and mount again, which replays the journal. Needs root.

use crate::judge::Skip;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// `EXT4_IOC_SHUTDOWN` of the kernel's `include/uapi/linux/ext4.h`; XFS has the same.
const SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);
/// `EXT4_GOING_FLAGS_NOLOGFLUSH`: the journal in memory is dropped too.
const WITHOUT_LOG: u32 = 2;

/// The file system, mounted; unmounted and removed with the value.
#[derive(Debug)]
pub struct Ext4 {
    folder: TempDir,
    options: &'static str,
}

impl Ext4 {
    /// A fresh file system of `mib` MiB, mounted with these options beside `loop` (`""`: none).
    ///
    /// # Errors
    /// Why there can be none here: no root, no tools, no loop devices.
    pub fn new(mib: u64, options: &'static str) -> Result<Ext4, Skip> {
        let folder = TempDir::new().map_err(|e| Skip::because(format!("no folder for the image: {e}")))?;
        let disk = Ext4 { folder, options };
        let skip = |e: String| Skip::because(format!("an ext4 whose power can be cut needs root: {e}"));
        let sized = File::create(disk.image()).and_then(|file| file.set_len(mib << 20));
        sized.and_then(|()| std::fs::create_dir(disk.path())).map_err(|e| skip(e.to_string()))?;
        run("mkfs.ext4", &["-q".as_ref(), "-F".as_ref(), &disk.image()]).map_err(skip)?;
        disk.mount().map_err(skip)?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
    }

    fn mount(&self) -> Result<(), String> {
        let options = ["loop", self.options].join(",");
        let options = options.trim_end_matches(',');
        run("mount", &["-o".as_ref(), options.as_ref(), &self.image(), &self.path()])
    }

    /// Cuts the power.
    ///
    /// # Errors
    /// The kernel's.
    pub fn cut(&self) -> io::Result<()> {
        let root = File::open(self.path())?;
        // SAFETY: the opcode is ext4's own, and the kernel reads a `u32` behind the pointer. Checked by:
        // `what_was_not_synced_is_gone`.
        let shutdown = unsafe { Setter::<SHUTDOWN, u32>::new(WITHOUT_LOG) };
        // SAFETY: the descriptor is open for the call; the kernel writes no memory of ours. Checked by: as above.
        unsafe { ioctl(&root, shutdown) }?;
        Ok(())
    }

    /// Mounts it again after a cut; the journal is replayed. No file of it may be open.
    ///
    /// # Errors
    /// What `umount` and `mount` say.
    pub fn boot(&self) -> Result<(), String> {
        run("umount", &[&self.path()])?;
        self.mount()
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // Lazily: a test that failed may have files open.
        let _ = run("umount", &["-l".as_ref(), &self.path()]);
    }
}

fn run(program: &str, args: &[&Path]) -> Result<(), String> {
    let done = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&done.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_was_not_synced_is_gone() {
        let disk = match Ext4::new(16, "") {
            Ok(disk) => disk,
            Err(skip) => return skip.announce("what_was_not_synced_is_gone"),
        };
        let write = |name: &str, sync: bool| {
            let mut file = File::create(disk.path().join(name)).unwrap();
            file.write_all(b"bytes").unwrap();
            if sync {
                file.sync_all().unwrap();
            }
        };
        write("synced", true);
        File::open(disk.path()).unwrap().sync_all().unwrap();
        write("unsynced", false);
        disk.cut().unwrap();
        assert!(File::create(disk.path().join("later")).is_err());
        disk.boot().unwrap();
        assert_eq!(std::fs::read(disk.path().join("synced")).unwrap(), b"bytes");
        let left = std::fs::read(disk.path().join("unsynced")).unwrap_or_default();
        assert!(left.is_empty(), "nothing had written it to the device");
    }
}
