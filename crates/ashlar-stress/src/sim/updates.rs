//! Feeds of updates in a history. A feed shows what was logged since a bookmark, in order, or an error says that a part is gone. Values
//! that expire are left out: a feed has their operands and times.

use super::expiring::is_timed;
use super::store::{Store, model_name};
use super::transactions::PREPARED;
use ashlar_backup::{Change as Update, updates_since};
use ashlar_base::{FamilyId, SeqNum};
use ashlar_testkit::ops::Change;
use std::collections::BTreeMap;

/// A place in the order of writes.
#[derive(Clone, Debug)]
pub(super) struct Bookmark {
    /// The newest write then.
    sequence: SeqNum,
    /// Writes of the model so far.
    number: usize,
    /// Writes that came in by an ingestion, or behind, or with an import: they are in no feed.
    others: u64,
    /// The model's names of the families.
    families: BTreeMap<FamilyId, String>,
}

impl Store {
    fn others(&self) -> u64 {
        self.ingested
            + self.imported
            + self.features.counts.get("files behind all data").copied().unwrap_or(0)
    }

    pub(super) fn set_bookmark(&mut self) {
        let families = self.promise.names.iter().filter_map(|(name, generation)| {
            Some((self.db.family(name)?.id(), model_name(name, *generation)))
        });
        self.features.bookmark = Some(Bookmark {
            sequence: self.db.visible(),
            number: self.model.writes(),
            others: self.others(),
            families: families.collect(),
        });
    }

    /// Reads the feed since the bookmark, if only logged writes to the same families came after it.
    pub(super) fn read_updates(&mut self) -> Result<(), String> {
        let Some(mark) = self.features.bookmark.clone() else {
            self.set_bookmark();
            return Ok(());
        };
        let same = |(id, name): (&FamilyId, &String)| {
            let family = self.db.families().into_iter().find(|family| family.id() == *id);
            let generation = family.as_ref().and_then(|family| self.promise.names.get(family.name()));
            let now = family.as_ref().zip(generation).map(|(family, g)| model_name(family.name(), *g));
            now.as_ref() == Some(name)
        };
        let compares = |change: &&Change| change.family() != PREPARED && !is_timed(change.family());
        let known = |change: &Change| mark.families.values().any(|name| name == change.family());
        let expected = self.model.since(mark.number).filter(compares);
        let expected: Vec<Change> = expected.cloned().collect();
        let unchanged = mark.families.len() == self.promise.names.len()
            && mark.families.iter().all(same)
            && expected.iter().all(known);
        if mark.others != self.others() || mark.number > self.model.writes() || !unchanged {
            self.set_bookmark();
            return Ok(());
        }
        let next = SeqNum::new(mark.sequence.get() + 1).ok_or("too many writes")?;
        let feed = match updates_since(&self.db, next) {
            Ok(feed) => feed,
            // The archive is small or absent.
            Err(e) if e.is_not_found() => {
                self.features.count("feeds that are gone");
                self.set_bookmark();
                return Ok(());
            }
            Err(e) => return Err(format!("updates_since {next}: {e}")),
        };
        let (mut found, mut ends_early) = (Vec::new(), false);
        for update in feed {
            let update = match update {
                Ok(update) => update,
                // A part of the archive went away meanwhile.
                Err(e) if e.is_not_found() => {
                    ends_early = true;
                    break;
                }
                Err(e) => return Err(format!("updates since {next}: {e}")),
            };
            let changes = update.changes().map_err(|e| format!("an update: {e}"))?;
            let changes = changes.iter().map(|update| in_model(update, &mark.families));
            found.extend(changes.filter(|change| compares(&change)));
        }
        let same = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
        let brief = |change: Option<&Change>| format!("{change:?}").chars().take(160).collect::<String>();
        match (expected.get(same), found.get(same)) {
            (_, None) if ends_early => {
                self.features.count("feeds that are gone");
                self.set_bookmark();
                Ok(())
            }
            (None, None) => {
                self.features.count("feeds compared");
                *self.features.counts.entry("changes of feeds compared").or_default() +=
                    expected.len() as u64;
                Ok(())
            }
            (wanted, got) => Err(format!(
                "updates since {next}: change {same} of {} is {}, expected {}",
                expected.len(),
                brief(got),
                brief(wanted)
            )),
        }
    }
}

/// A change of a feed, as the model has it.
fn in_model(update: &Update<'_>, families: &BTreeMap<FamilyId, String>) -> Change {
    let name = |id: &FamilyId| families.get(id).cloned().unwrap_or_else(|| format!("family {}", id.0));
    match update {
        Update::Put { family, key, value } => {
            Change::Put { family: name(family), key: key.to_vec(), value: value.to_vec() }
        }
        Update::Delete { family, key } => Change::Delete { family: name(family), key: key.to_vec() },
        Update::SingleDelete { family, key } => {
            Change::SingleDelete { family: name(family), key: key.to_vec() }
        }
        Update::Merge { family, key, operand } => {
            Change::Merge { family: name(family), key: key.to_vec(), operand: operand.to_vec() }
        }
        Update::DeleteRange { family, begin, end } => {
            Change::DeleteRange { family: name(family), from: begin.to_vec(), to: end.to_vec() }
        }
        other => Change::Put { family: format!("{other:?}"), key: Vec::new(), value: Vec::new() },
    }
}
