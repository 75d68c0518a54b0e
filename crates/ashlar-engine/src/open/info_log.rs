//! The newest info log of RocksDB in a directory, for what it tells of places.

use ashlar_base::Result;
use ashlar_env::Fs;
use ashlar_format::info_log::InfoLogHead;
use std::path::Path;

/// The bytes of an info log that are read: the lines in question stand in the first few thousand.
const LOOKED_AT: u64 = 64 << 10;

/// How many info logs are looked through.
const MOST_LOGS: usize = 16;

/// What the newest info log of RocksDB in `dir` says. One that cannot be read tells nothing.
///
/// # Errors
/// `Io`: the directory cannot be listed.
pub(super) fn read(fs: &dyn Fs, dir: &Path) -> Result<InfoLogHead> {
    let entries = fs.files(dir)?;
    // An open of ours, a refused one too, renames the log of RocksDB to LOG.old.TIME.
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
