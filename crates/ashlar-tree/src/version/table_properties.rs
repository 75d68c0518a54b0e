//! What one table says about itself.

use super::FileMeta;
use ashlar_base::{FileNumber, Level};
use ashlar_format::table::Properties;

/// The properties of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableProperties {
    /// The file number in the table's name.
    pub number: FileNumber,
    /// The level of the table.
    pub level: Level,
    /// A collector asked for a compaction of the table.
    pub marked_for_compaction: bool,
    /// Everything that the table says, also what collectors gave: [`Properties::collected`].
    pub stored: Properties,
}

impl TableProperties {
    /// The properties `stored` of the table `file` in `level`.
    pub fn of(level: Level, file: &FileMeta, stored: &Properties) -> TableProperties {
        TableProperties {
            number: file.number(),
            level,
            marked_for_compaction: file.file.need_compaction,
            stored: stored.clone(),
        }
    }
}
