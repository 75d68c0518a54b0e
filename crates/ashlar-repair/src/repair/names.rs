//! Names for families that only WAL files mention: by their ids, without names.
//!
//! 1. If the OPTIONS file lists as many further names as there are such families, they get those names, in order of
//!    their ids. Otherwise a name is made of the id, because which is which is not guessed.
//! 2. With a MANIFEST there are such families where its end is lost with the records that created them. The repair
//!    creates them again, and the writes in WAL files become their tables.

use super::report::RepairReport;
use crate::lost_end::{Writes, end_is_lost};
use ashlar_base::FamilyId;
use ashlar_engine::for_repair::Settings;
use ashlar_options::StoredFamily;
use ashlar_tree::check::Risk;
use ashlar_tree::version::{Replayed, ReplayedFamily};
use std::collections::BTreeSet;

/// A family and the name that it gets.
pub(super) struct Named {
    pub(super) id: FamilyId,
    pub(super) name: String,
    /// The OPTIONS file lists the name; otherwise it is made up.
    pub(super) listed: bool,
}

/// Names for the families `ids`, other than the names in `taken`.
pub(super) fn name_families(ids: &[FamilyId], taken: &BTreeSet<&str>, stored: &[StoredFamily]) -> Vec<Named> {
    let free: Vec<&str> = stored.iter().map(|f| &*f.name).filter(|name| !taken.contains(name)).collect();
    let listed = free.len() == ids.len();
    let name = |(at, &id): (usize, &FamilyId)| match free.get(at).filter(|_| listed) {
        Some(&name) => Named { id, name: name.to_owned(), listed },
        None => {
            let mut name = nameless(id);
            while taken.contains(&*name) {
                name.push('_');
            }
            Named { id, name, listed }
        }
    };
    ids.iter().enumerate().map(name).collect()
}

/// A name for a family whose name is unknown.
pub(super) fn nameless(id: FamilyId) -> String {
    format!("family_{}", id.0)
}

/// Creates again the families to which only WAL files write, and reports the lost end of the MANIFEST.
pub(super) fn bring_back(
    unnamed: &Writes,
    replayed: &mut Replayed,
    (stored, settings): (&[StoredFamily], &Settings),
    report: &mut RepairReport,
) {
    let ids: Vec<FamilyId> = unnamed.0.keys().copied().collect();
    let taken = replayed.families.values().map(|family| &*family.name).collect();
    let log_number = replayed.logs_from();
    for Named { id, name, listed } in name_families(&ids, &taken, stored) {
        let Some(written) = unnamed.0.get(&id) else { continue };
        let from = match listed {
            true => "a name that the OPTIONS file lists",
            false => "a made-up name",
        };
        let what = format!(
            "no record creates the family of {}; they are kept, in family {name:?}, {from}",
            written.of_family(id)
        );
        report.lose(end_is_lost(replayed, &what, Risk::Nothing));
        let known = stored.iter().find(|f| f.name == name).and_then(|f| f.comparator.clone());
        let comparator = Some(known.unwrap_or_else(|| settings.order_of_found(&name).name().to_owned()));
        if !listed {
            report.renamed.push(name.clone());
        }
        replayed.families.insert(id, ReplayedFamily { name, comparator, log_number, ..Default::default() });
        replayed.db.max_family = replayed.db.max_family.max(id);
    }
}
