//! backup, restore, backups: states of the database in one directory of backups.

use super::{Target, check};
use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::{Outcome, answer};
use ashlardb::{BackupEngine, BackupOptions, Copied, RestoreOptions};
use indicatif::ProgressBar;
use std::io::Write;
use std::path::Path;

/// How to make a backup.
pub(super) struct Create {
    pub(super) flush: bool,
    pub(super) metadata: String,
    pub(super) keep: Option<u32>,
    pub(super) rate_limit: u64,
    pub(super) num_threads: u16,
}

/// How to restore one.
pub(super) struct Restore {
    pub(super) id: Option<u32>,
    pub(super) keep_log_files: bool,
    pub(super) rate_limit: u64,
    pub(super) num_threads: u16,
}

fn named(backups: Option<&Path>) -> Result<&Path, Outcome> {
    backups.ok_or_else(|| Outcome::Usage("which backups? Name their directory".to_owned()))
}

fn show(bar: &ProgressBar, done: &Copied) {
    bar.set_length(done.bytes_total);
    bar.set_position(done.bytes);
}

/// Adds a backup, and deletes old ones if the user says how many to keep.
pub(super) fn create(target: &Target, backups: Option<&Path>, how: Create, out: &mut dyn Write) -> Done {
    let dir = named(backups)?;
    let db = target.open()?;
    let mut engine =
        BackupEngine::builder(dir).rate_limit(how.rate_limit).threads(how.num_threads.into()).open()?;
    let options = BackupOptions::new().flush(how.flush).metadata(how.metadata);
    let bar = check::bar();
    let made = engine.create_backup_with(&db, &options, |done| show(&bar, done));
    bar.finish_and_clear();
    let made = made?;
    db.close()?;
    let (info, shared) = (&made.info, counted(made.shared_files as u64, "file"));
    let line = format!(
        "OK: backup {} in {} has the writes up to {}; {} bytes copied, {shared} shared with earlier backups\n",
        info.id,
        dir.display(),
        info.sequence,
        made.copied_bytes
    );
    answer(out, &line, "the backup was made")?;
    if let Some(keep) = how.keep {
        let old = engine.purge_old(usize::try_from(keep).unwrap_or(usize::MAX))?;
        writeln!(out, "{} deleted", counted(old.len() as u64, "old backup"))?;
    }
    Ok(())
}

/// Makes the directory the database of a backup.
pub(super) fn restore(target: &Target, backups: Option<&Path>, how: &Restore, out: &mut dyn Write) -> Done {
    let builder = BackupEngine::builder(named(backups)?).read_only(true).rate_limit(how.rate_limit);
    let engine = builder.threads(how.num_threads.into()).open()?;
    let id = match how.id {
        Some(id) => id,
        None => engine.latest()?.id,
    };
    let bar = check::bar();
    let options = RestoreOptions::new().keep_log_files(how.keep_log_files);
    let restored = engine.restore_with(id, &target.directory, options, |done| show(&bar, done));
    bar.finish_and_clear();
    let restored = restored?;
    let line = format!(
        "OK: {} has backup {}, with the writes up to {}; {}, {} bytes\n",
        target.directory.display(),
        restored.id,
        restored.sequence,
        counted(restored.files as u64, "file"),
        restored.bytes
    );
    answer(out, &line, "the backup was restored")
}

/// Lists the backups, and verifies them if asked. Fails if one is damaged.
pub(super) fn list(dir: &Path, verify: bool, out: &mut dyn Write) -> Done {
    let engine = BackupEngine::builder(dir).read_only(true).open()?;
    let mut damaged = engine.corrupt_backups().len();
    for info in engine.backups() {
        let at = u64::try_from(info.unix_seconds).map_or_else(|_| "?".to_owned(), ashlar_observe::utc);
        let verified = || {
            let bar = check::bar();
            let verified = engine.verify_with(info.id, |done| show(&bar, done));
            bar.finish_and_clear();
            verified
        };
        let state = match verify.then(verified) {
            None => String::new(),
            Some(Ok(())) => "  verified".to_owned(),
            Some(Err(e)) => {
                damaged += 1;
                format!("  damaged: {e}")
            }
        };
        // The metadata may have any bytes, control characters of the terminal too.
        let metadata = String::from_utf8_lossy(&info.metadata).escape_debug().to_string();
        let (id, bytes, files) = (info.id, info.bytes, counted(info.files as u64, "file"));
        let text = format!("{id}  {at} UTC  up to write {}  {files}, {bytes} bytes{state}", info.sequence);
        writeln!(out, "{}", format!("{text}  {metadata}").trim_end())?;
    }
    for corrupt in engine.corrupt_backups() {
        writeln!(out, "{}  damaged: {}", corrupt.id, corrupt.error)?;
    }
    match damaged {
        0 => Ok(()),
        n => Err(Outcome::Failed(format!("{} damaged", counted(n as u64, "backup")))),
    }
}
