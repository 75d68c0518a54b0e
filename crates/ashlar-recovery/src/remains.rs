//! Batches in a WAL file behind the end of its replay: the reports name them, and they are never replayed.

use ashlar_base::{FileNumber, Result, SeqNum};
use ashlar_env::ReadFile;
use ashlar_format::write_batch::BatchReader;
use ashlar_log::{LogReader, LogRecordKind};
use std::fmt;
use std::sync::Arc;

/// The largest number of keys that are named.
const KEYS_NAMED: usize = 20;

/// Whole batches behind the place where the replay of a WAL file ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// The number of batches.
    pub batches: u64,
    /// The number of operations in all batches.
    pub operations: u64,
    /// The smallest sequence among them.
    pub first: SeqNum,
    /// The largest sequence among them.
    pub last: SeqNum,
    /// Keys of the first operations.
    pub keys: Vec<Vec<u8>>,
    /// The number of operations whose keys are not named.
    pub more: u64,
}

impl Remains {
    /// Reads the batches from `offset` on, around damage; `None` when there is no whole batch.
    ///
    /// # Errors
    /// `Io`.
    /// # Cost
    /// Reads the whole file: a compressed WAL file can be decompressed only from its beginning.
    pub fn read(file: Arc<dyn ReadFile>, number: FileNumber, offset: u64) -> Result<Option<Remains>> {
        let mut remains = Remains::default();
        let mut reader = LogReader::thorough(file, number);
        while let Some(record) = reader.next()? {
            if record.offset >= offset
                && record.kind == LogRecordKind::Data
                && let Ok(batch) = BatchReader::new(record.payload)
                && batch.validate().is_ok()
            {
                remains.take(&batch);
            }
        }
        Ok((remains.batches > 0).then_some(remains))
    }

    fn take(&mut self, batch: &BatchReader<'_>) {
        let count = u64::from(batch.count());
        let end = batch.seq().checked_add(count.saturating_sub(1)).unwrap_or(batch.seq());
        self.first = if self.batches == 0 { batch.seq() } else { self.first.min(batch.seq()) };
        self.last = self.last.max(end);
        (self.batches, self.operations) = (self.batches + 1, self.operations + count);
        for key in batch.iter().filter_map(|op| op.ok()?.key()) {
            match self.keys.len() < KEYS_NAMED {
                true => self.keys.push(key.to_vec()),
                false => self.more += 1,
            }
        }
    }
}

impl fmt::Display for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Remains { batches, first, last, .. } = self;
        write!(f, "behind it stand {batches} whole batches, sequences {first} to {last}")?;
        for (at, key) in self.keys.iter().enumerate() {
            let before = if at == 0 { ", of keys " } else { ", " };
            write!(f, "{before}'{}'", key.escape_ascii())?;
        }
        if self.more > 0 { write!(f, " and {} more", self.more) } else { Ok(()) }
    }
}
