//! As much of the kernel's FUSE protocol as a folder with one file needs: requests in, answers out, one at a time.
//!
//! ```text
//! request | len: u32 | opcode: u32 | unique: u64 | node: u64 | uid, gid, pid: u32 | lengths: u16, u16 | body |
//! answer  | len: u32 | negated errno: i32 | unique: u64 | body |
//! ```
//! Integers are the machine's own, little endian here. The file is opened for direct I/O: what is written to it comes as it
//! was written, before the write returns, and no cache stands between.
//! Source: the kernel's `include/uapi/linux/fuse.h`.

use ashlar_base::bytes::{Cursor, Malformed};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

/// The name of the one file.
pub(super) const NAME: &str = "disk";

/// Most bytes of one write; the kernel wants room for its header beside them.
const WRITE_BYTES: u32 = 1 << 20;
const PAGES: u16 = 256;
const HEADER_BYTES: usize = 40;
const ANSWER_HEADER_BYTES: usize = 16;
const ROOT: u64 = 1;
const FILE: u64 = 2;
/// `FUSE_BIG_WRITES | FUSE_MAX_PAGES`.
const FLAGS: u32 = 1 << 5 | 1 << 22;
/// `FOPEN_DIRECT_IO`.
const DIRECT: u32 = 1;
/// How long the kernel may cache the attributes of the file, which never change.
const VALID_SECONDS: u64 = 3600;

/// What the kernel wants of the file; all else is answered here.
pub(super) enum Request<'a> {
    /// So many bytes from there.
    Read { offset: u64, len: usize },
    /// These bytes, there.
    Write { offset: u64, data: &'a [u8] },
    /// All that was written is to be durable.
    Sync,
}

/// What a request is answered with.
pub(super) enum Answer<'a> {
    Bytes(&'a [u8]),
    Written(usize),
    Done,
    Failed,
}

/// The kernel's end of a mounted folder.
pub(super) struct Connection {
    device: File,
    file_bytes: u64,
    buffer: Vec<u8>,
}

/// Which request, and of what.
struct Header {
    opcode: u32,
    unique: u64,
    node: u64,
}

impl Connection {
    /// Mounts the folder `at`, with a file of this size in it.
    pub(super) fn mount(at: &Path, file_bytes: u64) -> io::Result<Connection> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        let data = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        mount("block-log", at, "fuse", MountFlags::NOSUID | MountFlags::NODEV, &*CString::new(data)?)?;
        let buffer = vec![0; WRITE_BYTES as usize + 4096];
        Ok(Connection { device, file_bytes, buffer })
    }

    /// Answers requests with `serve`, until the folder is unmounted.
    pub(super) fn run(
        mut self,
        mut serve: impl FnMut(Request<'_>, &mut dyn FnMut(Answer<'_>) -> io::Result<()>) -> io::Result<()>,
    ) -> io::Result<()> {
        loop {
            let len = match self.device.read(&mut self.buffer) {
                Ok(len) => len,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                // A request that was taken back before it was read.
                Err(e) if e.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => continue,
                Err(e) if e.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => return Ok(()),
                Err(e) => return Err(e),
            };
            let asked = self.buffer.get(..len).unwrap_or_default();
            let wrong = |e: Malformed| io::Error::new(ErrorKind::InvalidData, e.to_string());
            let (header, body) = header(asked).map_err(wrong)?;
            let unique = header.unique;
            let mut answer = |answer: Answer<'_>| match answer {
                Answer::Bytes(bytes) => send(&self.device, unique, None, bytes),
                Answer::Written(len) => {
                    let len = u64::try_from(len).unwrap_or(0);
                    send(&self.device, unique, None, &len.to_le_bytes())
                }
                Answer::Done => send(&self.device, unique, None, &[]),
                Answer::Failed => send(&self.device, unique, Some(Errno::IO), &[]),
            };
            match request(&header, body).map_err(wrong)? {
                Some(request) => serve(request, &mut answer)?,
                None => match reply(&header, body, self.file_bytes).map_err(wrong)? {
                    Reply::None => {}
                    Reply::Error(errno) => send(&self.device, unique, Some(errno), &[])?,
                    Reply::Body(body) => send(&self.device, unique, None, &body)?,
                },
            }
        }
    }
}

fn send(mut device: &File, unique: u64, error: Option<Errno>, body: &[u8]) -> io::Result<()> {
    let len = u32::try_from(ANSWER_HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let error = error.map_or(0, |errno| -errno.raw_os_error());
    let mut header = [0; ANSWER_HEADER_BYTES];
    header[..4].copy_from_slice(&len.to_le_bytes());
    header[4..8].copy_from_slice(&error.to_le_bytes());
    header[8..].copy_from_slice(&unique.to_le_bytes());
    match device.write_vectored(&[IoSlice::new(&header), IoSlice::new(body)]) {
        // The caller does not wait any more.
        Err(e) if e.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(()),
        done => done.map(drop),
    }
}

fn header(asked: &[u8]) -> Result<(Header, Cursor<'_>), Malformed> {
    let mut c = Cursor::new(asked);
    c.fixed32("len")?;
    let header =
        Header { opcode: c.fixed32("opcode")?, unique: c.fixed64("unique")?, node: c.fixed64("node")? };
    c.bytes(HEADER_BYTES - c.position(), "caller")?;
    Ok((header, c))
}

/// A request that is the file's own.
fn request<'a>(header: &Header, mut c: Cursor<'a>) -> Result<Option<Request<'a>>, Malformed> {
    const READ: u32 = 15;
    const WRITE: u32 = 16;
    const FSYNC: u32 = 20;
    if header.opcode == FSYNC {
        return Ok(Some(Request::Sync));
    }
    if ![READ, WRITE].contains(&header.opcode) {
        return Ok(None);
    }
    c.fixed64("handle")?;
    let offset = c.fixed64("offset")?;
    let size = c.fixed32("size")?;
    let len = usize::try_from(size).map_err(|_| c.malformed("size", "too large"))?;
    if header.opcode == READ {
        return Ok(Some(Request::Read { offset, len }));
    }
    c.bytes(20, "flags and owner")?;
    Ok(Some(Request::Write { offset, data: c.bytes(len, "data")? }))
}

/// The reply with the attributes of a file, without its content.
enum Reply {
    None,
    Error(Errno),
    Body(Vec<u8>),
}

fn reply(header: &Header, mut c: Cursor<'_>, file_bytes: u64) -> Result<Reply, Malformed> {
    let mut body = vec![];
    let put32 = |body: &mut Vec<u8>, n: u32| body.extend(n.to_le_bytes());
    let put64 = |body: &mut Vec<u8>, n: u64| body.extend(n.to_le_bytes());
    match header.opcode {
        // LOOKUP
        1 => {
            let name = c.rest().split_last().map_or(&[][..], |(_, name)| name);
            if header.node != ROOT || name != NAME.as_bytes() {
                return Ok(Reply::Error(Errno::NOENT));
            }
            [FILE, 0, VALID_SECONDS, VALID_SECONDS, 0].into_iter().for_each(|n| put64(&mut body, n));
            attributes(&mut body, FILE, file_bytes);
        }
        // FORGET, INTERRUPT, BATCH_FORGET
        2 | 36 | 42 => return Ok(Reply::None),
        // GETATTR, SETATTR
        3 | 4 => {
            [VALID_SECONDS, 0].into_iter().for_each(|n| put64(&mut body, n));
            attributes(&mut body, header.node, file_bytes);
        }
        // OPEN, OPENDIR
        14 | 27 => {
            put64(&mut body, 0);
            put64(&mut body, if header.node == FILE { DIRECT.into() } else { 0 });
        }
        // STATFS
        17 => {
            body.resize(40, 0);
            [4096, 255, 4096].into_iter().for_each(|n| put32(&mut body, n));
            body.resize(80, 0);
        }
        // RELEASE, FLUSH (a close), RELEASEDIR, DESTROY
        18 | 25 | 29 | 38 => {}
        // INIT
        26 => {
            let (major, minor) = (c.fixed32("major")?, c.fixed32("minor")?);
            let read_ahead = c.fixed32("read ahead")?;
            [major, minor.min(31), read_ahead, FLAGS].into_iter().for_each(|n| put32(&mut body, n));
            // The most requests in the background, and how many are too many: the kernel's own figures.
            [0, WRITE_BYTES, 1, PAGES.into()].into_iter().for_each(|n| put32(&mut body, n));
            body.resize(64, 0);
        }
        _ => return Ok(Reply::Error(Errno::NOSYS)),
    }
    Ok(Reply::Body(body))
}

fn attributes(body: &mut Vec<u8>, node: u64, file_bytes: u64) {
    let (mode, size) = if node == FILE { (0o100_600, file_bytes) } else { (0o040_700, 0) };
    // Inode, size, blocks, and three times.
    [node, size, size.div_ceil(512), 0, 0, 0].into_iter().for_each(|n| body.extend(n.to_le_bytes()));
    // Parts of seconds, mode, links, user, group, device, block size, flags.
    [0u32, 0, 0, mode, 1, 0, 0, 0, 4096, 0].into_iter().for_each(|n| body.extend(n.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let len = u32::try_from(HEADER_BYTES + body.len()).unwrap();
        let mut bytes = [len.to_le_bytes(), opcode.to_le_bytes()].concat();
        [7, node, 0, 0].into_iter().for_each(|n: u64| bytes.extend(n.to_le_bytes()));
        bytes.extend(body);
        bytes
    }

    fn body_of(opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let bytes = asked(opcode, node, body);
        let (header, body) = header(&bytes).unwrap();
        assert_eq!((header.opcode, header.unique, header.node), (opcode, 7, node));
        assert!(request(&header, body).unwrap().is_none());
        match reply(&header, body, 1 << 20).unwrap() {
            Reply::Body(body) => body,
            Reply::Error(errno) => panic!("{errno}"),
            Reply::None => panic!("no answer"),
        }
    }

    #[test]
    fn answers_have_the_sizes_that_the_kernel_expects() {
        assert_eq!(body_of(26, 0, &[0; 64]).len(), 64);
        assert_eq!(body_of(1, ROOT, b"disk\0").len(), 128);
        assert_eq!(body_of(3, FILE, &[0; 16]).len(), 104);
        assert_eq!(body_of(14, FILE, &[0; 8]).len(), 16);
        assert_eq!(body_of(17, ROOT, &[]).len(), 80);
    }

    #[test]
    fn writes_are_read_whole_or_refused() {
        let head = [[0; 8], 4096u64.to_le_bytes(), 3u64.to_le_bytes()].concat();
        let body = [&head[..], &[0; 16], b"abc"].concat();
        let bytes = asked(16, FILE, &body);
        let (header, body) = header(&bytes).unwrap();
        let Ok(Some(Request::Write { offset, data })) = request(&header, body) else { panic!("a write") };
        assert_eq!((offset, data), (4096, &b"abc"[..]));
        let cut = Cursor::new(&body.rest()[..body.rest().len() - 1]);
        assert!(request(&header, cut).is_err());
    }
}
