//! Files that are not removed once they are obsolete: `lost/QUARANTINE-N.txt` is the account of file N. Damaged tables and
//! blob files that were taken out of an open database, and logs that an open did not replay to their end.
//!
//! 1. The account is durable before the commit that makes the file obsolete. Where it stands, the file goes to `lost/`
//!    once no reader needs it, and is never removed: by a purge of the session, or else by that of the next open.
//! 2. It stays. A number is never given to a second file, so there is nothing to take back.

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
