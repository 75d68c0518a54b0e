//! Files that move to `lost/` instead of being removed once they are obsolete. For each such file N, the note
//! `lost/QUARANTINE-N.txt` says why. They are damaged tables and blob files that a quarantine took out of an open
//! database, and WAL files that an open did not replay to their end.
//!
//! 1. The note is durable before the commit that makes the file obsolete. If the note exists, a purge moves the file to
//!    `lost/` once no reader needs it: a purge of this session, or else the purge of the next open.
//! 2. The note is never removed. File numbers are not reused, so the note cannot apply to a second file.

use super::{LOST, leave_in_lost};
use ashlar_base::{FileNumber, Result};
use ashlar_env::Fs;
use std::collections::BTreeSet;
use std::path::Path;

/// Leaves the account of a file in the database in `dir`, durably.
pub fn leave_account(fs: &dyn Fs, dir: &Path, number: FileNumber, account: &str) -> Result<()> {
    leave_in_lost(fs, dir, &format!("QUARANTINE-{number}.txt"), account)
}

/// The files of which there is an account in `dir`.
pub fn in_quarantine(fs: &dyn Fs, dir: &Path) -> Result<BTreeSet<FileNumber>> {
    let number = |name: &str| {
        let digits = name.strip_prefix("QUARANTINE-")?.strip_suffix(".txt")?;
        digits.parse().ok().map(FileNumber)
    };
    match fs.list(&dir.join(LOST)) {
        Ok(entries) => Ok(entries.iter().filter_map(|entry| number(&entry.name)).collect()),
        Err(e) if e.is_not_found() => Ok(BTreeSet::new()),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::Env;

    #[test]
    fn who_has_an_account_is_in_quarantine() {
        let env = Env::mem();
        let dir = Path::new("/db");
        env.fs.create_dir_all(dir).unwrap();
        assert!(in_quarantine(&*env.fs, dir).unwrap().is_empty());
        for number in [12, 1_234_567] {
            leave_account(&*env.fs, dir, FileNumber(number), "why").unwrap();
        }
        for other in
            ["QUARANTINE-.txt", "QUARANTINE-x.txt", "QUARANTINE-3", "REPAIR-000004.txt", "000005.sst"]
        {
            env.fs.create(&dir.join(LOST).join(other)).unwrap();
        }
        let expected = BTreeSet::from([FileNumber(12), FileNumber(1_234_567)]);
        assert_eq!(in_quarantine(&*env.fs, dir).unwrap(), expected);
    }
}
