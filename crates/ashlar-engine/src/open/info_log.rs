//! The directories that the newest info log of RocksDB names.

use ashlar_base::Result;
use ashlar_env::Fs;
use ashlar_format::info_log::InfoLogHead;
use std::path::Path;

/// The bytes of an info log that are read: the lines are within the first few thousand bytes.
const LOOKED_AT: u64 = 64 << 10;

/// How many info logs are searched.
const MOST_LOGS: usize = 16;

/// The directories from RocksDB's newest info log in `dir`. An unreadable log names none.
///
/// # Errors
/// `Io`: the directory cannot be listed.
pub(super) fn read(fs: &dyn Fs, dir: &Path) -> Result<InfoLogHead> {
    let entries = fs.files(dir)?;
    // An open by this engine, even a refused one, renames RocksDB's log to LOG.old.TIME.
    let names = entries.iter().map(|entry| &*entry.name);
    let mut logs: Vec<&str> = names.filter(|name| name.starts_with("LOG.old.")).collect();
    logs.sort_unstable();
    logs.push("LOG");
    let said = |name: &str| {
        let file = fs.open_read(&dir.join(name)).ok()?;
        let mut begin = vec![0; usize::try_from(file.len().min(LOOKED_AT)).ok()?];
        file.read_exact_at(&mut begin, 0).ok()?;
        InfoLogHead::parse(&String::from_utf8_lossy(&begin))
    };
    Ok(logs.into_iter().rev().take(MOST_LOGS).find_map(said).unwrap_or_default())
}
