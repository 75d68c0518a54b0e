//! The device as its user has it: an ext4 on a loop device over the file that the other process serves.

use super::log::Log;
use super::{fuse, places};
use crate::devices::{DeviceFolder, has_ended, mount, run, unmount};
use crate::ext4;
use crate::judge::Skip;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A mounted file system all of whose block writes and flushes are recorded. Needs root and FUSE.
///
/// A drop before [`RecordedDisk`] has ended unmounts the file system lazily and removes the log; open files answer errors soon
/// after.
#[derive(Debug)]
pub struct RecordedDisk {
    folder: DeviceFolder,
    server: Child,
    talk: Mutex<Option<Talk>>,
    log: File,
    device_bytes: u64,
}

/// Commands, and their answers.
#[derive(Debug)]
struct Talk {
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Talk {
    fn answer(&mut self) -> io::Result<()> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

impl RecordedDisk {
    /// Mounts the file system of an image with these options (`""`: none). `server` is a program that calls
    /// [`super::serve()`] with the folder it gets as its last argument.
    ///
    /// # Errors
    /// Why there can be none here: no root, no FUSE, no loop devices.
    pub fn new(server: &mut Command, image: &[u8], options: &str) -> Result<RecordedDisk, Skip> {
        let skip = |e: String| Skip::because(format!("a recorded device needs root and FUSE: {e}"));
        let said = |e: io::Error| skip(e.to_string());
        let folder = DeviceFolder::new(&[places::MOUNTED, places::FUSE]).map_err(said)?;
        ext4::write_sparse(&folder.path().join(places::BASE), image).map_err(said)?;
        // A separate process group: a Ctrl-C must not end the process before everything is unmounted.
        server.arg(folder.path()).process_group(0);
        server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = server.spawn().map_err(said)?;
        let (Some(commands), Some(answers)) = (server.stdin.take(), server.stdout.take()) else {
            return Err(skip("no pipe".to_owned()));
        };
        let mut talk = Talk { commands, answers: BufReader::new(answers) };
        if talk.answer().is_err() {
            let mut words = String::new();
            if let Some(mut errors) = server.stderr.take() {
                let _ = io::Read::read_to_string(&mut errors, &mut words);
            }
            let _ = server.wait();
            return Err(skip(words.trim().to_owned()));
        }
        let log = File::open(folder.path().join(places::LOG)).map_err(said)?;
        let device_bytes = image.len() as u64;
        let talk = Mutex::new(Some(talk));
        let disk = RecordedDisk { folder, server, talk, log, device_bytes };
        let file = disk.folder.path().join(places::FUSE).join(fuse::NAME);
        mount(&file, &disk.path(), options).map_err(skip)?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(places::MOUNTED)
    }

    /// The log's length. All writes that returned before this call are before it.
    ///
    /// # Errors
    /// The file system's, of the log.
    pub fn position(&self) -> io::Result<u64> {
        Ok(self.log.metadata()?.len())
    }

    /// From now on that many of a hundred writes behind the offset `from` fail, and of flushes; drawn from the seed.
    ///
    /// # Errors
    /// The other process is gone.
    pub fn fail(&self, writes: usize, flushes: usize, from: u64, seed: u64) -> io::Result<()> {
        self.command(&format!("fail {writes} {flushes} {from} {seed}"))
    }

    /// No call fails any more.
    ///
    /// # Errors
    /// As of [`RecordedDisk::fail`].
    pub fn heal(&self) -> io::Result<()> {
        self.fail(0, 0, 0, 0)
    }

    fn talk(&self) -> MutexGuard<'_, Option<Talk>> {
        self.talk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn command(&self, line: &str) -> io::Result<()> {
        let mut talk = self.talk();
        let talk = talk.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(talk.commands, "{line}")?;
        talk.answer()
    }

    /// Unmounts it in order, which writes what was not written. No file of it may be open.
    ///
    /// # Errors
    /// What `umount` says.
    pub fn unmount(&self) -> Result<(), String> {
        unmount(&self.path())
    }

    /// The log, once the file system is unmounted.
    ///
    /// # Errors
    /// What the other process says.
    pub fn end(mut self) -> Result<Log, String> {
        // Lazily: the loop device lets go of the file a moment later.
        run("umount", &["-l".as_ref(), &self.folder.path().join(places::FUSE)])?;
        if !has_ended(&mut self.server) {
            return Err("the device over FUSE does not end".to_owned());
        }
        let bytes = std::fs::read(self.folder.path().join(places::LOG)).map_err(|e| e.to_string())?;
        Log::parse(bytes, self.device_bytes).map_err(|e| e.to_string())
    }
}

impl Drop for RecordedDisk {
    fn drop(&mut self) {
        self.folder.clear();
        // Where files are open still, this makes their calls fail.
        if !has_ended(&mut self.server) {
            let _ = self.server.kill();
            let _ = self.server.wait();
        }
    }
}
