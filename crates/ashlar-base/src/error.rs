//! The one error type. Its few kinds say what the caller can do; its text names file, offset and cause.
//!
//! 1. Errors are built only through the constructors here, which record the place in the code (`site`).
//! 2. `Display` is one sentence that starts with the status name that RocksDB prints before the first colon, because
//!    bindings and scripts parse that text.
//! 3. A missing key is `None`, never an error.
//! 4. Cloning is cheap, because every affected caller gets a copy of a background error.

use std::fmt;
use std::io;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The hint of an error about a damaged table or blob file.
const DAMAGED_FILE: &str = "\"ashlar db DIR check\" lists the keys at risk; \"ashlar db DIR repair --into=COPY\", or \
    Db::quarantine in the open database, saves what is readable";

/// The result of everything that can fail with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, by what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Stored bytes are wrong. A retry cannot help: check, repair or quarantine the file, or restore a copy.
    Corruption,
    /// The operating system refused a call; the kind says why.
    Io(IoKind),
    /// The call is wrong. It changed nothing.
    InvalidArgument,
    /// AshlarDB knows the request or file but does not serve it, or not at this format level.
    NotSupported,
    /// A lock or memory is taken, background work is late, or a block is not in memory; the kind says which. Retry the whole
    /// operation later. After `NotCached`, retry without the limit on the read.
    Busy(BusyKind),
    /// The caller's time limit is over.
    TimedOut,
    /// The operation ended early: on request, during a pause, or because another operation failed.
    Aborted,
    /// A write failed after it may have reached the WAL. After the next open all of it is there, or nothing.
    Indeterminate,
    /// The handle is closed, or belongs to another process.
    Shutdown(ShutdownKind),
}

/// The sub-kinds of [`ErrorKind::Io`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoKind {
    /// No such file or directory.
    NotFound,
    /// Disk full or quota reached.
    NoSpace,
    /// Permission denied.
    Denied,
    /// A read-only file system.
    ReadOnly,
    /// The file exists already.
    AlreadyExists,
    /// No file descriptor left.
    TooManyFiles,
    /// Any other.
    Other,
}

/// The sub-kinds of [`ErrorKind::Busy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BusyKind {
    /// Another process or handle has locked the directory.
    Locked,
    /// The memory budget is used up.
    Memory,
    /// Background work is late, and `no_slowdown` forbids to wait for it.
    Stalled,
    /// The answer needs a file, and the read allows memory and the block cache only (RocksDB's `Incomplete`).
    NotCached,
    /// Another write came between: what the transaction read or locked has changed. Run the transaction again.
    Conflict,
    /// Transactions wait for each other's locks in a circle. Roll this one back, and run it again.
    Deadlock,
    /// The transaction has as many locks as its options allow.
    LockLimit,
}

/// The sub-kinds of [`ErrorKind::Shutdown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ShutdownKind {
    /// `close` was called on the database.
    Closed,
    /// The handle was opened before a `fork`, by the parent. It serves the parent only.
    Forked,
}

impl ErrorKind {
    /// RocksDB's name of the status: the text before the first colon of a printed error.
    pub fn status_name(self) -> &'static str {
        match self {
            ErrorKind::Corruption => "Corruption",
            ErrorKind::Io(_) | ErrorKind::Indeterminate => "IO error",
            ErrorKind::InvalidArgument => "Invalid argument",
            ErrorKind::NotSupported => "Not implemented",
            ErrorKind::Busy(BusyKind::Memory) => "Operation failed. Try again.",
            ErrorKind::Busy(BusyKind::Stalled | BusyKind::NotCached) => "Result incomplete",
            ErrorKind::Busy(_) => "Resource busy",
            ErrorKind::TimedOut => "Operation timed out",
            ErrorKind::Aborted => "Operation aborted",
            ErrorKind::Shutdown(_) => "Shutdown in progress",
        }
    }
}

/// What an error is about, where other languages have a text or a number for it that the kind does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// A family is stored in the order of another comparator.
    OtherComparator {
        /// The name of the family.
        family: String,
        /// The name of the comparator that the family is stored with.
        stored: String,
        /// The name of the comparator that the open has for the family; `None`: none was given.
        given: Option<String>,
    },
    /// A transaction has waited too long for the lock of a key.
    LockTimeout,
    /// A caller has paused the compactions that callers ask for.
    CompactionsPaused,
    /// A caller has stopped the backups.
    BackupsStopped,
    /// The operation would make a write batch larger than its limit.
    BatchFull,
    /// The value of the key is in the database; the batch alone has operands of it only.
    MergeInProgress,
}

struct Inner {
    kind: ErrorKind,
    reason: Option<Reason>,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    hint: Option<String>,
    cause: Option<String>,
    site: &'static Location<'static>,
}

/// What went wrong, where, why, and what to do next. One pointer wide; clones share.
#[derive(Clone)]
pub struct Error(Arc<Inner>);

impl Error {
    /// An error of `kind`. The named constructors below read better.
    #[track_caller]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let site = Location::caller();
        Error(Arc::new(Inner {
            kind,
            reason: None,
            message: message.into(),
            path: None,
            offset: None,
            hint: None,
            cause: None,
            site,
        }))
    }

    /// Stored bytes are wrong.
    #[track_caller]
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message)
    }

    /// The call itself is wrong.
    #[track_caller]
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// A feature by name that is not served.
    #[track_caller]
    pub fn not_supported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::NotSupported, message)
    }

    /// The family is stored in the order of the comparator `stored`; the open has `given` for the family, or none.
    #[track_caller]
    #[doc(hidden)]
    pub fn other_comparator(family: &str, stored: &str, given: Option<&str>) -> Self {
        let shown = stored.escape_debug();
        let what = match given {
            Some(given) => {
                format!("{given}: does not match existing comparator {shown} of family {family:?}")
            }
            None => format!("family {family:?} needs the comparator {shown}, which was not given"),
        };
        let (family, stored, given) = (family.to_owned(), stored.to_owned(), given.map(str::to_owned));
        Self::invalid(what).about(Reason::OtherComparator { family, stored, given })
    }

    /// The database handle is closed.
    #[track_caller]
    #[doc(hidden)]
    pub fn closed() -> Self {
        Self::new(ErrorKind::Shutdown(ShutdownKind::Closed), "the database is closed")
    }

    /// The handle belongs to the parent process of this forked one.
    #[track_caller]
    #[cold]
    #[doc(hidden)]
    pub fn forked() -> Self {
        let text = "the handle was opened before a fork, by the parent process";
        Self::new(ErrorKind::Shutdown(ShutdownKind::Forked), text)
            .hint("Open the database in the child, for reading only while the parent has it open")
    }

    /// A failed call of the operating system: `action` is what was tried ("open", "sync" …).
    #[track_caller]
    pub fn io(action: &str, path: &Path, e: &io::Error) -> Self {
        let sub = match e.kind() {
            io::ErrorKind::NotFound => IoKind::NotFound,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                IoKind::NoSpace
            }
            io::ErrorKind::PermissionDenied => IoKind::Denied,
            io::ErrorKind::ReadOnlyFilesystem => IoKind::ReadOnly,
            io::ErrorKind::AlreadyExists => IoKind::AlreadyExists,
            _ if matches!(e.raw_os_error(), Some(23 | 24)) => IoKind::TooManyFiles,
            _ => IoKind::Other,
        };
        Self::new(ErrorKind::Io(sub), format!("cannot {action}")).at_path(path).because(e)
    }

    fn edit(self, f: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = match Arc::try_unwrap(self.0) {
            Ok(inner) => inner,
            Err(shared) => Inner {
                kind: shared.kind,
                reason: shared.reason.clone(),
                message: shared.message.clone(),
                path: shared.path.clone(),
                offset: shared.offset,
                hint: shared.hint.clone(),
                cause: shared.cause.clone(),
                site: shared.site,
            },
        };
        f(&mut inner);
        Error(Arc::new(inner))
    }

    /// Adds the file, unless one is named already.
    pub fn at_path(self, path: &Path) -> Self {
        if self.0.path.is_some() { self } else { self.edit(|i| i.path = Some(path.to_path_buf())) }
    }

    /// Adds the file and the byte offset in it, unless they are named already.
    pub fn at(self, path: &Path, offset: u64) -> Self {
        if self.0.offset.is_some() {
            return self.at_path(path);
        }
        self.at_path(path).edit(|i| i.offset = Some(offset))
    }

    /// Adds what the error is about.
    #[doc(hidden)]
    pub fn about(self, reason: Reason) -> Self {
        self.edit(|i| i.reason = Some(reason))
    }

    /// Adds the cause.
    pub fn because(self, cause: impl fmt::Display) -> Self {
        self.edit(|i| i.cause = Some(cause.to_string()))
    }

    /// Adds what to do next, as a short imperative sentence without a full stop.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.edit(|i| i.hint = Some(hint.into()))
    }

    /// Adds what to do about a damaged table or blob file. The commands and the method exist: see the manual.
    #[doc(hidden)]
    pub fn damaged_file_hint(self) -> Self {
        self.hint(DAMAGED_FILE)
    }

    /// Removes the hint, where it does not apply.
    #[doc(hidden)]
    pub fn without_hint(self) -> Self {
        if self.0.hint.is_none() { self } else { self.edit(|i| i.hint = None) }
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What the error is about, if there is more to tell than the kind.
    pub fn reason(&self) -> Option<&Reason> {
        self.0.reason.as_ref()
    }

    /// The file concerned, if one is known.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte offset in that file, if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// What happened, without file, cause and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The place in the code where the error was built.
    pub fn site(&self) -> &'static Location<'static> {
        self.0.site
    }

    /// True for a missing file or directory.
    pub fn is_not_found(&self) -> bool {
        self.0.kind == ErrorKind::Io(IoKind::NotFound)
    }

    /// True for stored bytes that are wrong.
    pub fn is_corruption(&self) -> bool {
        self.0.kind == ErrorKind::Corruption
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let i = &*self.0;
        write!(f, "{}: {}", i.kind.status_name(), i.message)?;
        if let Some(path) = &i.path {
            write!(f, ": {}", path.display())?;
        }
        if let Some(offset) = i.offset {
            write!(f, " at offset {offset}")?;
        }
        if let Some(cause) = &i.cause {
            write!(f, ": {cause}")?;
        }
        if let Some(hint) = &i.hint {
            write!(f, ". {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} [{:?} at {}]", self.0.kind, self.0.site)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_one_sentence() {
        let e = Error::corruption("block checksum mismatch: stored 0x1, computed 0x2")
            .at(Path::new("db/000012.sst"), 4096)
            .hint("Restore the file from a backup");
        assert_eq!(
            e.to_string(),
            "Corruption: block checksum mismatch: stored 0x1, computed 0x2: db/000012.sst at offset 4096. \
             Restore the file from a backup"
        );
    }

    #[test]
    fn a_reason_stays_with_the_error() {
        let e = Error::other_comparator("default", "mine", None).at_path(Path::new("db")).hint("Give it");
        assert_eq!(
            e.to_string(),
            "Invalid argument: family \"default\" needs the comparator mine, which was not given: db. Give it"
        );
        assert!(matches!(e.clone().reason(), Some(Reason::OtherComparator { given: None, .. })));
        assert_eq!(Error::invalid(e.message()).reason(), None);
    }

    #[test]
    fn keeps_the_first_place_named() {
        let e = Error::corruption("x").at(Path::new("a"), 1).at(Path::new("b"), 2);
        assert_eq!((e.path(), e.offset()), (Some(Path::new("a")), Some(1)));
    }

    #[test]
    fn sorts_os_errors() {
        let full = Error::io("append", Path::new("f"), &io::Error::from_raw_os_error(28));
        assert_eq!(full.kind(), ErrorKind::Io(IoKind::NoSpace));
        let missing = Error::io("open", Path::new("f"), &io::Error::from_raw_os_error(2));
        assert!(missing.is_not_found());
        assert!(missing.to_string().starts_with("IO error: cannot open: f: "));
    }
}
