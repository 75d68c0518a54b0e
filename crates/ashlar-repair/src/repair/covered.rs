//! Which merge operands of the WAL are already in tables, where no MANIFEST says which WAL files are obsolete.
//!
//! Replaying a put that is already in a table does no harm, but a merge operand would count twice. A flush takes all
//! entries of a key up to some sequence. So a table with an entry of the key at or above the operand's sequence holds
//! the operand, folded or not.

use ashlar_base::{FamilyId, LookupKey, Order, Result, SeqNum};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_table::TableReader;
use ashlar_tree::version::{Tables, VersionSet};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tables of all families, opened on first use.
pub(super) struct Covered(BTreeMap<FamilyId, (Arc<Tables>, Order, Vec<Asked>)>);

struct Asked {
    file: NewFile,
    table: OnceCell<Arc<TableReader>>,
}

impl Covered {
    /// The tables that `edits` add.
    pub(super) fn by(versions: &VersionSet, edits: &BTreeMap<FamilyId, VersionEdit>) -> Covered {
        let asked = |edit: &VersionEdit| {
            let files = edit.added.iter().map(|(_, file)| file.clone());
            files.map(|file| Asked { file, table: OnceCell::new() }).collect()
        };
        let families = edits.iter().filter_map(|(id, edit)| {
            let version = &versions.family(*id)?.version;
            Some((*id, (Arc::clone(version.tables()), version.order.clone(), asked(edit))))
        });
        Covered(families.collect())
    }

    /// Whether a table already holds the operand.
    ///
    /// # Errors
    /// Those of reading the tables in whose bounds the key lies.
    pub(super) fn holds(&self, family: FamilyId, user_key: &[u8], seq: SeqNum) -> Result<bool> {
        let Some((tables, order, asked)) = self.0.get(&family) else { return Ok(false) };
        for Asked { file, table } in asked {
            let within = order.compare(file.smallest.as_key().user_key(), user_key).is_le()
                && order.compare(user_key, file.largest.as_key().user_key()).is_le();
            if !within || file.largest_seq < seq {
                continue;
            }
            let reader = match table.get() {
                Some(reader) => reader,
                None => {
                    let opened = tables.open(file)?;
                    table.get_or_init(|| opened)
                }
            };
            let newest = reader.get(&LookupKey::new(user_key, SeqNum::MAX))?;
            if newest.is_some_and(|found| found.trailer.seq() >= seq) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
