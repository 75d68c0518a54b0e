//! Where the files of a database are: according to the caller, to the newest OPTIONS file, and to the directories
//! themselves.
//!
//! | file | subject |
//! |---|---|
//! | `namespace` | the file system that finds each file in its directory |
//! | `given` | what the caller says: directories and purpose |
//! | `entered` | the directories of a database, for the purpose of an open, a check or a repair |
//! | `stored_places`, `info_log` | the directories that OPTIONS files and RocksDB's info logs name |
//! | `log_places` | which WAL files count, and from which directory |
//! | `owner`, `original`, `claims` | which database a directory belongs to |
//! | `leave` | the directories beside a database that is being removed |

mod claims;
mod entered;
mod given;
mod info_log;
mod leave;
mod log_places;
mod namespace;
mod original;
mod owner;
mod stored_places;

pub use claims::{Claims, claim_new_place, refuse_of_another};
pub use entered::{Entered, GIVE_PATHS, enter, take_place};
pub use given::{PlaceSettings, Purpose, absolute_paths};
pub use leave::{Leaving, leave, remove_empty};
pub use namespace::{Places, same_directory};
