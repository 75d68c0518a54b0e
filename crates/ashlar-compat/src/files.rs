//! Files that are ingested, and the updates of the WAL.

use crate::database::Database;
use crate::options::Texts;
use crate::status::not_found;
use ashlardb::{Db, Error, IngestMode, IngestOptions, Result, SeqNum, Update, Updates};

/// What the options of an ingestion ask for.
///
/// # Errors
/// `NotSupported`: an option that no ingestion keeps.
pub fn ingest_options(texts: &Texts) -> Result<IngestOptions> {
    for name in ["write_global_seqno", "allow_db_generated_files"] {
        if texts.get(name) {
            return Err(Error::not_supported(format!("the option {name} of an ingestion")));
        }
    }
    let mode = match (texts.get("move_files"), texts.get("link_files")) {
        (true, _) => IngestMode::Move,
        (_, true) => IngestMode::Link,
        _ => IngestMode::Copy,
    };
    Ok(IngestOptions::new()
        .mode(mode)
        .behind(texts.get("ingest_behind"))
        .flush(texts.get("allow_blocking_flush"))
        .bottommost_only(texts.get("fail_if_not_bottommost_level")))
}

/// The batches of the WAL since a sequence number: on a batch or not, with a status.
#[derive(Debug)]
pub struct UpdatesIterator {
    db: Db,
    updates: Updates,
    /// The first sequence number behind the batches that were shown.
    next: SeqNum,
    here: Option<Update>,
    status: Option<Error>,
}

impl UpdatesIterator {
    /// The batches since a sequence number, on the first of them.
    ///
    /// # Errors
    /// Those of [`Db::updates_left`]. `Io(NotFound)`: nothing of that number is written yet.
    pub fn since(db: &Database, number: u64) -> Result<UpdatesIterator> {
        let since = SeqNum::new(number).ok_or_else(|| Error::invalid("a sequence number of 2^56 or more"))?;
        if since > db.db().sequence() {
            return Err(not_found("Requested sequence not yet written in the db"));
        }
        let db = db.db();
        Ok(UpdatesIterator::new(&db, db.updates_left(since)?, since))
    }

    fn new(db: &Db, updates: Updates, next: SeqNum) -> UpdatesIterator {
        let mut iterator = UpdatesIterator { db: db.clone(), updates, next, here: None, status: None };
        iterator.step();
        iterator
    }

    fn step(&mut self) {
        self.here = None;
        match self.updates.next() {
            Some(Ok(update)) => {
                let next = update.sequence().checked_add(update.len().into());
                self.next = next.unwrap_or(SeqNum::MAX);
                self.here = Some(update);
            }
            Some(Err(e)) => self.status = Some(e),
            None => {}
        }
    }

    /// To the next batch. Off the end, to the first batch that was written since.
    pub fn next(&mut self) {
        self.step();
        if self.here.is_none() && self.status.is_none() && self.db.sequence() >= self.next {
            match self.db.updates_since(self.next) {
                Ok(newer) => *self = UpdatesIterator::new(&self.db, newer, self.next),
                Err(e) => self.status = Some(e),
            }
        }
    }

    /// Whether it is on a batch.
    pub fn is_valid(&self) -> bool {
        self.here.is_some()
    }

    /// The batch; `None`: off the end.
    pub fn update(&self) -> Option<&Update> {
        self.here.as_ref()
    }

    /// The error that ended the batches.
    ///
    /// # Errors
    /// That error.
    pub fn status(&self) -> Result<()> {
        self.status.clone().map_or(Ok(()), Err)
    }
}
