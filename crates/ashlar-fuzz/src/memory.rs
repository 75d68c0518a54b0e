//! Files and a machine in memory.

use ashlar_base::Result;
use ashlar_env::jobs::InlineExecutor;
use ashlar_env::{Env, MemFs, ReadFile, SeededRand, VirtualClock};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of every database here.
pub const DIR: &str = "/db";

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// A file of these bytes.
pub fn memory_file(bytes: &[u8]) -> Arc<dyn ReadFile> {
    Arc::new(MemoryFile { path: PathBuf::from("/input"), bytes: bytes.to_vec() })
}

impl ReadFile for MemoryFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.bytes.get(at..)).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// A machine with an empty database directory. Everything runs in the caller, and equal inputs run equally.
pub fn machine() -> Env {
    let clock = Arc::new(VirtualClock::new());
    let rand = Arc::new(SeededRand::new(1));
    let jobs = Arc::new(InlineExecutor::new(Arc::clone(&clock), SeededRand::new(2)));
    let env = Env { fs: Arc::new(MemFs::new()), clock, rand, jobs };
    env.fs.create_dir_all(Path::new(DIR)).expect("memory has room for a directory");
    env
}

/// Puts a file into the machine's directory. Names with separators are left out.
pub fn put(env: &Env, name: &str, bytes: &[u8]) {
    if name.is_empty() || name.contains('/') || name == "." || name == ".." {
        return;
    }
    if let Ok(file) = env.fs.create(&Path::new(DIR).join(name)) {
        file.write_at(bytes, 0).expect("memory takes what fits");
    }
}
