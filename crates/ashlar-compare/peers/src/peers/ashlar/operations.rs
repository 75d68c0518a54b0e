//! AshlarDB's transactions, scans of a prefix, SST files, checkpoints and backups.

use super::{Ashlar, text};
use crate::operations::{Append, Operations, Transact, is_removed, plus_one};
use crate::peer::Result;
use crate::settings::{Settings, Transactions};
use ashlardb::options::FamilyOptions;
use ashlardb::{
    BackupEngine, BusyKind, CheckpointOptions, CompactionFilter, CompactionStyle, Decision, ErrorKind,
    FilterSource, IngestMode, IngestOptions, PrefixExtractor, Read as _, TransactionOptions, Write as _,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Removes what [`is_removed`] names.
#[derive(Debug)]
struct Tenth;

impl CompactionFilter for Tenth {
    fn name(&self) -> &str {
        "compare.Tenth"
    }

    fn filter(&self, key: &[u8], value: &[u8]) -> Decision {
        if is_removed(key, value) { Decision::Remove } else { Decision::Keep }
    }
}

/// The settings of the family that only these operations need.
pub fn set(family: &mut FamilyOptions, s: &Settings) {
    if s.universal {
        family.compaction.style = CompactionStyle::Universal;
    }
    if s.filters {
        family.compaction_filter = Some(FilterSource::Filter(Arc::new(Tenth)));
    }
    if s.prefix_bytes > 0 {
        family.table.prefix_extractor = Some(PrefixExtractor::Fixed(s.prefix_bytes));
    }
}

/// How transactions of the set kind begin.
pub fn transaction_options(of: &Ashlar) -> Result<TransactionOptions> {
    let options = match of.transactions.ok_or("no kind of transactions was set")? {
        Transactions::Pessimistic => TransactionOptions::new().deadlock_detect(false),
        Transactions::Optimistic => TransactionOptions::optimistic(),
    };
    Ok(options.write_options(of.writes))
}

impl Operations for Ashlar {
    type Transactions<'a> = Client<'a>;

    fn transactions(&self) -> Result<Client<'_>> {
        Ok(Client { of: self, options: transaction_options(self)?, value: Vec::new() })
    }

    fn scan_prefix(&self, prefix: &[u8], mut see: impl FnMut(&[u8], &[u8])) -> Result<()> {
        let mut cursor = self.db.prefix(prefix).cursor().map_err(text)?;
        let mut entry = cursor.first().map_err(text)?;
        while let Some((key, value)) = entry {
            see(key, value);
            entry = cursor.next().map_err(text)?;
        }
        Ok(())
    }

    fn write_sst(&self, path: &Path, fill: &mut dyn FnMut(Append<'_>) -> Result<()>) -> Result<()> {
        let mut writer = self.db.default_family().sst_writer(path).map_err(text)?;
        fill(&mut |key, value| writer.put(key, value).map_err(text))?;
        writer.finish().map(drop).map_err(text)
    }

    fn ingest(&self, files: &[PathBuf], verified: bool) -> Result<()> {
        let options = IngestOptions::new().mode(IngestMode::Move).verify(verified);
        self.db.ingest(files, options).map(drop).map_err(text)
    }

    fn checkpoint(&self, into: &Path) -> Result<()> {
        let options = CheckpointOptions::new().flush(true);
        self.db.checkpoint_with(into, options, |_| ()).map(drop).map_err(text)
    }

    fn backup(&self, into: &Path) -> Result<()> {
        let mut engine = BackupEngine::open(into).map_err(text)?;
        engine.create_backup(&self.db).map(drop).map_err(text)
    }

    fn restore(&self, from: &Path, into: &Path) -> Result<()> {
        let engine = BackupEngine::open(from).map_err(text)?;
        engine.restore_latest(into).map(drop).map_err(text)
    }
}

/// The transactions of a thread.
pub struct Client<'a> {
    of: &'a Ashlar,
    options: TransactionOptions,
    value: Vec<u8>,
}

impl Client<'_> {
    fn tried(&mut self, keys: [&[u8]; 2]) -> ashlardb::Result<()> {
        let transaction = self.of.db.begin_with(self.options)?;
        for key in keys {
            self.value.clear();
            if let Some(view) = transaction.get_for_update(key)? {
                self.value.extend_from_slice(&view);
            }
            plus_one(&mut self.value);
            transaction.put(key, &self.value)?;
        }
        transaction.commit()
    }
}

impl Transact for Client<'_> {
    fn increment(&mut self, keys: [&[u8]; 2]) -> Result<bool> {
        match self.tried(keys) {
            Ok(()) => Ok(true),
            Err(e) if matches!(e.kind(), ErrorKind::Busy(BusyKind::Conflict) | ErrorKind::TimedOut) => {
                Ok(false)
            }
            Err(e) => Err(text(e)),
        }
    }
}
