//! A real ext4 on a loop device whose power can be cut: what was not on the device at that moment is gone.
//!
//! The cut is the kernel's shutdown call without a flush of the journal: from then on nothing reaches the device, and every
//! call fails. To boot is to unmount and mount again, which replays the journal. Needs root.
//!
//! A blank one begins with its bitmaps, its inode tables and a journal of 4 MiB, which goes around often; behind them are
//! files and directories.

use crate::devices::{DeviceFolder, mount, run, unmount};
use crate::judge::Skip;
use rustix::ioctl::{Opcode, Setter, ioctl, opcode};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// `EXT4_IOC_SHUTDOWN` of the kernel's `include/uapi/linux/ext4.h`; XFS has the same.
const SHUTDOWN: Opcode = opcode::read::<u32>(b'X', 125);
/// `EXT4_GOING_FLAGS_NOLOGFLUSH`: the journal in memory is dropped too.
const WITHOUT_LOG: u32 = 2;

/// Where in its folder it is mounted.
const MOUNTED: &str = "mounted";

/// A file system without files.
#[derive(Clone, Debug)]
pub struct Blank {
    /// The device.
    pub image: Vec<u8>,
    /// The offset of the files, after journal and tables.
    pub front_bytes: u64,
}

/// The file system, mounted; unmounted and removed with the value.
#[derive(Debug)]
pub struct Ext4 {
    folder: DeviceFolder,
    options: &'static str,
}

impl Ext4 {
    /// A fresh file system of `mib` MiB, mounted with these options beside `loop` (`""`: none).
    ///
    /// # Errors
    /// Why there can be none here: no root, no tools, no loop devices.
    pub fn new(mib: u64, options: &'static str) -> Result<Ext4, Skip> {
        Ext4::on(options, |disk| format(&disk.image(), mib)).map_err(skip)
    }

    /// The file system of an image, mounted.
    ///
    /// # Errors
    /// What `mount` says of the image, or that it cannot mount here.
    pub fn of_image(image: &[u8], options: &'static str) -> Result<Ext4, String> {
        Ext4::on(options, |disk| write_sparse(&disk.image(), image).map_err(|e| e.to_string()))
    }

    /// A file system on a device that `make` makes.
    fn on(options: &'static str, make: impl Fn(&Ext4) -> Result<(), String>) -> Result<Ext4, String> {
        let folder = DeviceFolder::new(&[MOUNTED]).map_err(|e| e.to_string())?;
        let disk = Ext4 { folder, options };
        make(&disk)?;
        mount(&disk.image(), &disk.path(), options)?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(MOUNTED)
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("image")
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
        self.unmount()?;
        mount(&self.image(), &self.path(), self.options)
    }

    /// Unmounts it in order. No file of it may be open.
    ///
    /// # Errors
    /// What `umount` says.
    pub fn unmount(&self) -> Result<(), String> {
        unmount(&self.path())
    }
}

fn skip(why: String) -> Skip {
    Skip::because(format!("an ext4 of our own needs root: {why}"))
}

impl Blank {
    /// A fresh file system of `mib` MiB.
    ///
    /// # Errors
    /// Why there can be none here: no tools.
    pub fn new(mib: u64) -> Result<Blank, Skip> {
        const BLOCK: u64 = 4096;
        let said = |e: io::Error| skip(e.to_string());
        let file = NamedTempFile::new().map_err(said)?;
        format(file.path(), mib).map_err(skip)?;
        let found = run("debugfs", &["-R".as_ref(), "ffb 1".as_ref(), file.path()]).map_err(skip)?;
        let first = found.split_whitespace().find_map(|word| word.parse::<u64>().ok());
        let first = first.ok_or_else(|| skip(format!("debugfs finds no free block: {found}")))?;
        Ok(Blank { image: std::fs::read(file.path()).map_err(said)?, front_bytes: first * BLOCK })
    }
}

/// Makes the file one with a fresh file system.
fn format(file: &Path, mib: u64) -> Result<(), String> {
    const FRONT: &str = "packed_meta_blocks=1,lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    let sized = File::create(file).and_then(|file| file.set_len(mib << 20));
    sized.map_err(|e| e.to_string())?;
    let options = ["-q", "-F", "-b", "4096", "-i", "16384", "-J", "size=4", "-E", FRONT].map(Path::new);
    run("mkfs.ext4", &[&options[..], &[file]].concat()).map(drop)
}

/// Writes a file, with holes for zeros.
pub(crate) fn write_sparse(path: &Path, bytes: &[u8]) -> io::Result<()> {
    const PIECE: usize = 64 << 10;
    static ZEROS: [u8; PIECE] = [0; PIECE];
    let mut file = File::create(path)?;
    for piece in bytes.chunks(PIECE) {
        if ZEROS.starts_with(piece) {
            file.seek(SeekFrom::Current(PIECE as i64))?;
        } else {
            file.write_all(piece)?;
        }
    }
    file.set_len(bytes.len() as u64)
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
