//! The files of a database directory: what a directory holds, how a database is created there, which files are being
//! written, which are obsolete, how those go, and how files are copied.

mod archive;
mod checksum;
mod copy;
mod create;
mod directory;
mod log_tail;
mod lost;
mod obsolete;
mod pending;
mod quarantine;
mod repair_mark;
mod survey;
mod unlink;
mod within;

pub use archive::{Archive, ArchiveLimits, archive_beside, wal_files};
pub use checksum::{
    CRC32C_FUNCTION, FileChecksum, SummedFile, check_file_checksum, checksum_of_file, recorded_crc32c, summed,
};
pub use copy::{copy_file, copy_options, copy_with, link_or_copy, options_of_copy, read_pieces, write_file};
pub use create::{Settled, create_database, make_directory, settle_identity};
pub use directory::hold_directory;
pub use directory::{
    check_lost, check_named, check_there, holds_remains, in_place_of_wals, lost_is_usable, misnamed,
};
pub use log_tail::{TAIL_MAX, keep_tail, used_end};
pub use lost::{LOST, leave_in_lost};
pub use obsolete::{Action, Live, Obsolete, Spared, find_obsolete};
pub use pending::{Numbers, PendingFile, PendingOutputs};
pub use quarantine::{in_quarantine, leave_account};
pub use repair_mark::RepairMark;
pub use survey::{DirState, survey};
pub use unlink::{Unlinked, bytes_of_database, remove_obsolete, unlink};
pub use within::{KeyRange, tables_within};
