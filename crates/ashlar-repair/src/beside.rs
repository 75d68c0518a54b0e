//! Checks of a directory that is open elsewhere.
//!
//! A check takes no lock. The process that has the directory open writes and removes files during the check, and what the
//! check then misses looks like damage. So nothing bad is said of a directory whose LOCK is held: the check answers that
//! the directory is open. What is found sound was read whole, and stays a result.

use ashlar_base::error::BusyKind;
use ashlar_base::{Error, ErrorKind, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use std::path::Path;

/// Runs `check`, and answers `Busy(Locked)` in the place of a bad result if the LOCK in `dir` was held before or after.
/// `wrong` says what is bad in a report; `None`: nothing. `NotSupported` stays: no change of the files makes it.
///
/// # Errors
/// Those of `check`. `Busy(Locked)`.
pub(super) fn beside_owner<T>(
    fs: &dyn Fs,
    dir: &Path,
    check: impl FnOnce() -> Result<T>,
    wrong: impl Fn(&T) -> Option<String>,
) -> Result<T> {
    let before = holder(fs, dir);
    let result = check();
    let cause = match &result {
        Ok(report) => wrong(report),
        Err(e) if e.kind() == ErrorKind::NotSupported => None,
        // The advice would be for a database that is not open.
        Err(e) => Some(e.clone().without_hint().to_string()),
    };
    match cause.and_then(|cause| Some((cause, before.or_else(|| holder(fs, dir))?))) {
        None => result,
        Some((cause, holder)) => Err(open_elsewhere(dir, &holder, &cause)),
    }
}

/// What holds the LOCK. A LOCK that cannot be looked at counts as free.
fn holder(fs: &dyn Fs, dir: &Path) -> Option<String> {
    let e = fs.check_unlocked(&dir.join(FileKind::Lock.name())).err()?;
    (e.kind() == ErrorKind::Busy(BusyKind::Locked)).then(|| e.message().to_owned())
}

#[cold]
#[track_caller]
fn open_elsewhere(dir: &Path, holder: &str, cause: &str) -> Error {
    let what = format!(
        "the database is open elsewhere ({holder}), and files that are removed or written during the check look like \
         damage: nothing is proved of what the check found"
    );
    Error::new(ErrorKind::Busy(BusyKind::Locked), what)
        .at_path(dir)
        .because(cause)
        .hint("Close the database there and check again, or check a checkpoint of it")
}
