//! The lost end of a MANIFEST: what the other files of the directory prove about it.
//!
//! A program needs a record of the MANIFEST only after the record is durable. These witnesses therefore prove that the
//! MANIFEST had more records, and that a program used them:
//!
//! | witness | the tail is torn | the MANIFEST ends at a record |
//! |---|---|---|
//! | WAL files have writes of a family whose id is above all ids that the MANIFEST gave | an open fails | an open fails |
//! | a WAL file names a file before it that the MANIFEST needs and that is gone | an open fails | a gap in the WAL |
//! | no record names a table, and the WAL file with the table's data is gone | an open moves the table to `lost/` | no proof: a crash leaves such tables |

use ashlar_base::{FamilyId, FileNumber};
use ashlar_format::write_batch::BatchReader;
use ashlar_tree::check::{Damage, KeySpan, Risk};
use ashlar_tree::version::Replayed;
use std::collections::{BTreeMap, BTreeSet};

/// The writes of WAL files to one family.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    /// How many.
    pub(crate) count: u64,
    /// Their keys, as bytes.
    keys: Option<KeySpan>,
}

/// The writes of WAL files, by family.
#[derive(Debug, Default)]
pub(crate) struct Writes(pub(crate) BTreeMap<FamilyId, Written>);

impl Writes {
    /// Counts the operations of a batch on families with an id above `max`; `None`: on all families.
    pub(crate) fn take(&mut self, batch: &BatchReader<'_>, max: Option<FamilyId>) {
        for op in batch.iter().flatten() {
            let Some(family) = op.family().filter(|id| max.is_none_or(|max| *id > max)) else { continue };
            let written = self.0.entry(family).or_insert(Written { count: 0, keys: None });
            written.count += 1;
            let Some(key) = op.key() else { continue };
            match &mut written.keys {
                None => written.keys = Some(KeySpan::key(key)),
                Some(span) if key < &*span.from => span.from = key.to_vec(),
                Some(span) if key > &*span.to => span.to = key.to_vec(),
                Some(_) => {}
            }
        }
    }

    /// The damages that writes of families above all ids of `replayed` prove.
    pub(crate) fn damages(self, replayed: &Replayed) -> impl Iterator<Item = Damage> {
        self.0.into_iter().map(|(id, written)| {
            let what = format!(
                "the WAL files have {}, which a later commit had created; a repair keeps them",
                written.of_family(id)
            );
            end_is_lost(
                replayed,
                &what,
                written.keys.map_or(Risk::UnknownKeys, |span| Risk::Keys(vec![span])),
            )
        })
    }
}

impl Written {
    /// The writes in words.
    pub(crate) fn of_family(&self, id: FamilyId) -> String {
        format!("{} write{} of family {}", self.count, if self.count == 1 { "" } else { "s" }, id.0)
    }
}

/// The damage of a MANIFEST whose end is lost, by what `witness` says.
pub(crate) fn end_is_lost(replayed: &Replayed, witness: &str, risk: Risk) -> Damage {
    let file = replayed.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let offset = replayed.dropped.as_ref().map(|tail| tail.offset);
    Damage::new(file, offset, format!("the end of the MANIFEST is lost: {witness}"), risk)
}

/// Whether `unknown` tables, which no record of `replayed` names, hold data that no other file has: the WAL file from
/// which the database would take the data is not among `logs`. `in_use`: another witness proves that the end is lost.
pub(crate) fn data_only_in_unknown<'a>(
    replayed: &Replayed,
    mut unknown: impl Iterator<Item = &'a FileNumber>,
    logs: &BTreeSet<FileNumber>,
    in_use: bool,
) -> bool {
    (replayed.dropped.is_some() || in_use)
        && unknown.next().is_some()
        && !logs.contains(&replayed.logs_from())
}
