//! Which directory holds the WAL files of a database: the one that the caller gives, one that the newest OPTIONS file
//! names, or the database directory.
//!
//! Rules for WAL files. A WAL file is *needed* when its number is not below the smallest number that the MANIFEST
//! needs.
//! 1. If the caller's `wal_dir` holds needed WAL files, only it is read.
//! 2. If the caller's `wal_dir` holds none, needed WAL files are read where they are, in the `wal_dir` of the OPTIONS
//!    file or in the database directory. New WAL files go to the caller's `wal_dir`.
//! 3. Without a caller's `wal_dir`, the stored one counts. If only the database directory holds needed WAL files, the
//!    database was moved, copied or restored: its own WAL files count, and the stored directory is left alone.
//! 4. Needed WAL files in two places are refused: one of the two places belongs to another database, and only the
//!    caller knows which.
//! 5. A WAL file without a write does not count in these rules: an open that crashed before its commit may have left
//!    it. Before an open commits a change of `wal_dir`, `db_paths` or `cf_paths`, it stores the new directories in the
//!    OPTIONS file, in lines that only this engine reads; a change back to the database directory too. Until the commit, no newer WAL file in the new directory counts. It
//!    may begin with a torn copy of undecided transactions.
//! 6. If the OPTIONS file names a `wal_dir` and no needed WAL file exists anywhere, the open is refused, because every
//!    open leaves a WAL file there. A repair continues and reports it. Exception: RocksDB with
//!    `optimize_manifest_for_recovery` marks all WAL files as not needed when it closes. Then the directory holds the
//!    WAL file right below the first needed number. Second exception: a `wal_dir` to which an open was about to change
//!    has a WAL file only once the open has committed. The MANIFEST then needs a higher number than the announcement's.
//! 7. RocksDB before 8 continues when it cannot store its settings, which are then in `OPTIONS-N.dbtmp`. The `wal_dir`
//!    of such a file, if newer, is searched beside that of the OPTIONS file. Without either file RocksDB's info log
//!    names the `wal_dir`.
//! 8. Without an OPTIONS file and an info log, nothing says where the WAL files are. If a needed one is missing then, the
//!    open is refused unless the caller gives `wal_dir`.
//! 9. WAL files to which only a stored `wal_dir` leads need a proof that they are those of this database: see
//!    [`super::original`].

use super::given::Purpose;
use super::namespace::{same_directory, whole};
use crate::logs::may_hold_writes;
use crate::version::read_manifest_beside;
use ashlar_base::{Error, ErrorKind, FileNumber, Result};
use ashlar_env::Fs;
use ashlar_format::filename::FileKind;
use ashlar_options::StoredPlaces;
use std::path::{Path, PathBuf};

/// Bytes of a WAL file with one write of an empty key: header of the record, header of the batch, type, two lengths.
const SMALLEST_WRITE: u64 = 7 + 12 + 2;

/// A directory that may hold WAL files.
#[derive(Debug)]
struct Candidate {
    dir: PathBuf,
    /// The WAL files that are needed by their number.
    needed: Vec<FileNumber>,
    /// One of them holds a write, or has no readable record.
    holds: bool,
    /// The WAL file right below the first needed number is here.
    holds_the_last: bool,
}

/// What is known of the WAL files.
#[derive(Debug)]
pub(super) struct Logs {
    /// The database directory.
    here: Candidate,
    given: Option<Candidate>,
    /// The directories that the OPTIONS file names, except the database directory and the given one.
    stored: Vec<Candidate>,
    /// The OPTIONS file names a directory other than the database's, and an open has made a WAL file there.
    elsewhere: bool,
    is_new: bool,
    /// The database needs WAL files, and there is neither an OPTIONS file nor an info log of RocksDB.
    is_silent: bool,
}

/// Where new WAL files go, and where others are read; `None`: the database directory, and no other directory.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) write: Option<PathBuf>,
    pub(super) former: Option<PathBuf>,
    pub(super) notes: Vec<String>,
}

impl Logs {
    /// # Errors
    /// `Io`; a MANIFEST of an unsupported kind.
    pub(super) fn look(
        fs: &dyn Fs,
        dir: &Path,
        given: &str,
        stored: Option<&StoredPlaces>,
        purpose: Purpose,
    ) -> Result<Logs> {
        let is_told = stored.is_some();
        let named = stored.into_iter().flat_map(StoredPlaces::wal_dirs).map(whole);
        let mut named: Vec<PathBuf> = named.filter(|named| !same_directory(fs, dir, named)).collect();
        named.dedup();
        let is_named = !named.is_empty();
        let given = (!given.is_empty()).then(|| whole(Path::new(given)));
        named.retain(|n| given.as_ref().is_none_or(|g| !same_directory(fs, g, n)));
        if is_told && !is_named && given.is_none() {
            let (here, stored) = (Candidate::empty(dir), Vec::new());
            return Ok(Logs { here, given: None, stored, elsewhere: false, is_new: false, is_silent: false });
        }
        let (mut from, mut is_new) = (FileNumber(0), false);
        match read_manifest_beside(fs, dir) {
            Ok((_, replayed)) => from = replayed.logs_from(),
            // Recovery reports an unreadable MANIFEST; every WAL file counts here.
            Err(e) if e.is_corruption() || e.is_not_found() => {}
            Err(e) if e.kind() == ErrorKind::InvalidArgument => is_new = purpose == Purpose::Write,
            Err(e) => return Err(e),
        }
        let in_use = stored.into_iter().flat_map(|stored| stored.wal_dirs_in_use(from)).map(whole);
        let elsewhere = in_use.into_iter().any(|named| !same_directory(fs, dir, &named));
        let next = stored.and_then(|stored| stored.next_wal_dir.as_deref());
        let next = next.map(|next| if next.is_empty() { dir.to_path_buf() } else { whole(Path::new(next)) });
        let uncommitted = next.zip(stored.and_then(|stored| stored.uncommitted_after(from)));
        let look = |place: &Path| {
            let is_next = |(next, _): &&(PathBuf, FileNumber)| same_directory(fs, next, place);
            let last = uncommitted.as_ref().filter(is_next).map_or(FileNumber::HIGHEST, |(_, after)| *after);
            Candidate::look(fs, place, from, last)
        };
        let aside = |place: &Path| same_directory(fs, dir, place);
        let given = given.map(|g| if aside(&g) { look(dir) } else { look(&g) }).transpose()?;
        let stored = named.iter().map(|named| look(named)).collect::<Result<_>>()?;
        // A number beyond those is damage, and is reported as such.
        let is_silent = !is_told && (FileNumber(1)..=FileNumber::HIGHEST).contains(&from);
        Ok(Logs { here: look(dir)?, given, stored, elsewhere, is_new, is_silent })
    }

    /// # Errors
    /// `InvalidArgument`: see the module.
    pub(super) fn choose(self, purpose: Purpose) -> Result<Choice> {
        let Logs { here, given, stored, elsewhere, is_new, is_silent } = self;
        let is_given = |c: &&Candidate| given.as_ref().is_some_and(|g| g.dir == c.dir);
        let others: Vec<&Candidate> = stored.iter().chain([&here]).filter(|c| !is_given(c)).collect();
        // Without writes anywhere, the oldest files count: newer ones may be those of an open that failed.
        let present = others.iter().copied().filter(|c| !c.needed.is_empty());
        let present = present.min_by_key(|c| c.needed.iter().min().copied());
        let holding: Vec<&Candidate> = others.iter().copied().filter(|c| c.holds).collect();
        let fallback = holding.first().copied().or(present).or(stored.first()).unwrap_or(&here);
        let write = given.as_ref().unwrap_or(fallback);
        let mut choice =
            Choice { write: (write.dir != here.dir).then(|| write.dir.clone()), ..Choice::default() };
        if is_new {
            return Ok(choice);
        }
        if given.as_ref().is_some_and(|given| given.holds) {
            choice.notes.extend(holding.iter().map(|c| left_alone(c, &write.dir)));
            return Ok(choice);
        }
        if let [a, b, ..] = *holding {
            return Err(ambiguous(a, b));
        }
        let Some(source) = holding.first().copied().or(present) else {
            let is_silent = is_silent && given.is_none();
            if (elsewhere || is_silent) && write.needed.is_empty() && !fallback.holds_the_last {
                let e = match stored.first() {
                    None if is_silent => untold(&here.dir),
                    named => missing(&named.unwrap_or(write).dir, given.as_ref().map(|g| &*g.dir)),
                };
                if purpose != Purpose::Repair {
                    return Err(e);
                }
                if given.is_none() {
                    // The directory may be gone.
                    choice.write = None;
                }
                choice.notes.push(e.message().to_owned());
            }
            return Ok(choice);
        };
        if source.dir != write.dir {
            choice.former = Some(source.dir.clone());
            choice.notes.push(format!(
                "WAL files were read from {}; new ones are in wal_dir, {}",
                source.dir.display(),
                write.dir.display()
            ));
        } else if let Some(named) = stored.first().filter(|_| source.dir == here.dir) {
            choice.notes.push(format!(
                "the OPTIONS file says wal_dir={}, which holds no WAL file that is needed: those of the database directory are \
                 used, as of a database that was moved or copied",
                named.dir.display()
            ));
        }
        Ok(choice)
    }
}

impl Candidate {
    fn empty(place: &Path) -> Candidate {
        Candidate { dir: place.to_path_buf(), needed: Vec::new(), holds: false, holds_the_last: false }
    }

    /// `from`: the first number that is needed. `last`: the last one that a committed open may have made here.
    fn look(fs: &dyn Fs, place: &Path, from: FileNumber, last: FileNumber) -> Result<Candidate> {
        let entries = match fs.files(place) {
            Err(e) if e.is_not_found() => Vec::new(),
            entries => entries?,
        };
        let mut found = Candidate::empty(place);
        for entry in entries {
            let Some(FileKind::Wal(number)) = FileKind::parse(&entry.name) else { continue };
            found.holds_the_last |= number.0.checked_add(1) == Some(from.0);
            if number < from {
                continue;
            }
            found.needed.push(number);
            // An open that failed before its commit leaves a WAL file without a write, or a part of a file.
            if !found.holds && number <= last && entry.len >= SMALLEST_WRITE {
                found.holds = match fs.open_read(&place.join(&entry.name)) {
                    Ok(file) => may_hold_writes(&file, number)?,
                    Err(e) if e.is_not_found() => false,
                    Err(e) => return Err(e),
                };
            }
        }
        Ok(found)
    }
}

fn numbers(candidate: &Candidate) -> String {
    let names = candidate.needed.iter().map(|n| FileKind::Wal(*n).name());
    names.collect::<Vec<_>>().join(", ")
}

fn left_alone(candidate: &Candidate, wal_dir: &Path) -> String {
    format!(
        "{} holds WAL files that may be of this database ({}): they were neither read nor changed, because wal_dir is {}",
        candidate.dir.display(),
        numbers(candidate),
        wal_dir.display()
    )
}

fn ambiguous(a: &Candidate, b: &Candidate) -> Error {
    Error::invalid(format!(
        "WAL files that may be needed are in two directories, {} ({}) and {} ({})",
        a.dir.display(),
        numbers(a),
        b.dir.display(),
        numbers(b)
    ))
    .hint(
        "Give wal_dir as the one that belongs to this database: the database directory itself for a copy, a checkpoint or \
         a restored backup",
    )
}

fn untold(dir: &Path) -> Error {
    let what = format!(
        "no log that the database needs is in {}, and neither an OPTIONS file nor an info log of RocksDB says where the logs are",
        dir.display()
    );
    Error::invalid(what).hint(
        "Give wal_dir as the directory where the WAL files are; if there are none, give wal_dir as the database directory itself",
    )
}

fn missing(stored: &Path, given: Option<&Path>) -> Error {
    let also = given.filter(|given| *given != stored);
    let also = also.map(|given| format!(", nor is there one in {}", given.display())).unwrap_or_default();
    Error::invalid(format!(
        "the OPTIONS file says wal_dir={}, but no WAL file that the database needs is there{also}",
        stored.display()
    ))
    .hint(
        "Mount or restore that directory, or give wal_dir as the directory where the WAL files are; if they are lost, a repair \
         makes a database of the rest",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with WAL files; the number 0 stands for a WAL file without a write.
    fn at(dir: &str, logs: &[u64]) -> Candidate {
        let needed = logs.iter().map(|n| FileNumber(*n)).collect();
        Candidate { needed, holds: logs.iter().any(|n| *n > 0), ..Candidate::empty(Path::new(dir)) }
    }

    /// The choice of an existing database, as "write former notes", or the first words of the error.
    fn chosen(here: &[u64], given: Option<(&str, &[u64])>, stored: &[(&str, &[u64])]) -> String {
        let given = given.map(|(dir, logs)| at(dir, logs));
        let elsewhere = !stored.is_empty();
        let mut stored: Vec<_> = stored.iter().map(|(dir, logs)| at(dir, logs)).collect();
        stored.retain(|s| given.as_ref().is_none_or(|g| g.dir != s.dir));
        let logs = Logs { here: at("/db", here), given, stored, elsewhere, is_new: false, is_silent: false };
        match logs.choose(Purpose::Write) {
            Ok(choice) => {
                let show = |dir: Option<PathBuf>| dir.map_or("-".to_owned(), |d| d.display().to_string());
                format!("{} {} {}", show(choice.write), show(choice.former), choice.notes.len())
            }
            Err(e) => e.message().split_whitespace().take(2).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn needed_logs_are_used_where_they_are_and_never_passed_over() {
        let none: &[u64] = &[];
        assert_eq!(chosen(&[4], None, &[]), "- - 0");
        assert_eq!(chosen(&[4], None, &[("/s", none)]), "- - 1", "moved or copied");
        assert_eq!(chosen(none, None, &[("/s", &[4])]), "/s - 0", "adopted");
        assert_eq!(chosen(none, None, &[("/s", &[0])]), "/s - 0", "nothing was written");
        assert_eq!(chosen(&[4], None, &[("/s", &[4])]), "WAL files", "a checkpoint, or the original");
        assert_eq!(chosen(none, None, &[("/s", none)]), "the OPTIONS");
        assert_eq!(
            chosen(&[4], Some(("/g", none)), &[]),
            "/g /db 1",
            "a wal_dir for a database that had none"
        );
        assert_eq!(chosen(&[4], Some(("/g", &[5])), &[("/s", &[6])]), "/g - 2", "the caller knows");
        assert_eq!(chosen(none, Some(("/g", none)), &[("/s", &[6])]), "/g /s 1", "another wal_dir");
        assert_eq!(chosen(&[4], Some(("/g", none)), &[("/s", &[6])]), "WAL files");
        assert_eq!(chosen(none, Some(("/g", none)), &[("/s", none)]), "the OPTIONS", "a wrong name");
        assert_eq!(chosen(none, Some(("/s", none)), &[("/s", none)]), "the OPTIONS", "it is gone");
        assert_eq!(chosen(none, Some(("/db", none)), &[("/s", &[6])]), "- /s 1", "back to one directory");
        assert_eq!(chosen(&[4], Some(("/db", &[4])), &[("/s", &[6])]), "- - 1", "a checkpoint, so said");
    }

    #[test]
    fn a_change_of_wal_dir_that_crashed_loses_no_log() {
        let none: &[u64] = &[];
        let before: &[(&str, &[u64])] = &[("/s", &[4]), ("/g", &[0])];
        assert_eq!(chosen(none, Some(("/g", &[0])), before), "/g /s 1", "before the commit, and again");
        assert_eq!(chosen(none, None, before), "/s - 0", "before the commit, and given up");
        let behind: &[(&str, &[u64])] = &[("/s", none), ("/g", &[0])];
        assert_eq!(chosen(none, Some(("/g", &[0])), behind), "/g - 0");
        assert_eq!(chosen(none, None, behind), "/g - 0");
    }
}
