//! Which merge operands of the WAL are already in tables, where no MANIFEST says which WAL files are obsolete.
//!
//! Replaying a put that is already in a table does no harm, but a merge operand would count twice. A flush takes all
//! entries of a key up to some sequence. So a table with an entry of the key at or above the operand's sequence holds
//! the operand, folded or not.
//!
//! A compaction into the deepest level sets sequences to 0. A table with such an entry of the key proves nothing, unless
//! its number is below that of the WAL file: then the table was begun before the operand was written. Where nothing
//! proves it, the operand is replayed, so that it is not lost. It may count twice then, and the report names its key.

use ashlar_base::{FamilyId, FileNumber, LookupKey, Order, Result, SeqNum};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_table::TableReader;
use ashlar_tree::check::KeySpan;
use ashlar_tree::version::{Tables, VersionSet};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The tables of all families, opened on first use.
pub(super) struct Covered(BTreeMap<FamilyId, Family>);

struct Family {
    name: String,
    tables: Arc<Tables>,
    order: Order,
    asked: Vec<Asked>,
    /// The operands that may count twice: how many, and the span of their keys.
    doubtful: RefCell<Option<(u64, KeySpan)>>,
}

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
            let family = versions.family(*id)?;
            let (tables, order) = (Arc::clone(family.version.tables()), family.version.order.clone());
            let (name, doubtful) = (family.name.clone(), RefCell::default());
            Some((*id, Family { name, tables, order, asked: asked(edit), doubtful }))
        });
        Covered(families.collect())
    }

    /// Whether a table already holds the operand of `user_key`, written at `seq` to the WAL file `wal`.
    ///
    /// # Errors
    /// Those of reading the tables in whose bounds the key lies.
    pub(super) fn holds(
        &self,
        id: FamilyId,
        user_key: &[u8],
        (seq, wal): (SeqNum, FileNumber),
    ) -> Result<bool> {
        let Some(family) = self.0.get(&id) else { return Ok(false) };
        let mut doubtful = false;
        for asked in &family.asked {
            let within = family.order.compare(asked.file.smallest.as_key().user_key(), user_key).is_le()
                && family.order.compare(user_key, asked.file.largest.as_key().user_key()).is_le();
            let may_be_set = asked.file.smallest_seq == SeqNum::ZERO && asked.file.number > wal;
            if !within || asked.file.largest_seq < seq && !may_be_set {
                continue;
            }
            let newest = asked.reader(&family.tables)?.get(&LookupKey::new(user_key, SeqNum::MAX))?;
            match newest.map(|found| found.trailer.seq()) {
                Some(newest) if newest >= seq => return Ok(true),
                Some(newest) => doubtful |= may_be_set && newest == SeqNum::ZERO,
                None => {}
            }
        }
        if doubtful {
            family.doubt(user_key);
        }
        Ok(false)
    }

    /// Says which operands were replayed that a table may already hold.
    pub(super) fn remarks(&self) -> impl Iterator<Item = String> + '_ {
        self.0.values().filter_map(|family| {
            let doubtful = family.doubtful.borrow();
            let (count, span) = doubtful.as_ref()?;
            Some(format!(
                "family {:?}: merge operands may count twice, {count} in WAL files, of keys {span}: tables hold these keys at \
                 sequence 0, which compactions set, so nothing tells whether they hold the operands",
                family.name
            ))
        })
    }
}

impl Family {
    fn doubt(&self, user_key: &[u8]) {
        let mut doubtful = self.doubtful.borrow_mut();
        let (count, span) = doubtful.get_or_insert_with(|| (0, KeySpan::key(user_key)));
        *count += 1;
        if self.order.compare(user_key, &span.from).is_lt() {
            span.from = user_key.to_vec();
        } else if self.order.compare(user_key, &span.to).is_gt() {
            span.to = user_key.to_vec();
        }
    }
}

impl Asked {
    fn reader(&self, tables: &Tables) -> Result<&Arc<TableReader>> {
        if let Some(reader) = self.table.get() {
            return Ok(reader);
        }
        let opened = tables.open(&self.file)?;
        Ok(self.table.get_or_init(|| opened))
    }
}
