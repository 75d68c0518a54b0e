//! The receiving side of a replay: its input, and how batches are numbered.

use ashlar_base::{Error, FamilyId, FileNumber, Result, SeqNum};
use ashlar_format::write_batch::{BatchEncoder, BatchOp, BatchReader};
use std::collections::BTreeMap;

/// The position of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchPlace {
    /// The WAL file.
    pub wal: FileNumber,
    /// The offset of its record in the file.
    pub offset: u64,
}

/// Which families take data from the current WAL file.
#[derive(Clone, Debug)]
pub struct FamilyFilter<'a> {
    pub(super) wal: FileNumber,
    pub(super) log_numbers: &'a BTreeMap<FamilyId, FileNumber>,
}

impl FamilyFilter<'_> {
    /// False for data that is already in tables, and for families that do not exist or are not open.
    pub fn takes(&self, family: FamilyId) -> bool {
        self.log_numbers.get(&family).is_some_and(|log| self.wal >= *log)
    }
}

/// Receives the batches of a replay, in WAL order.
pub trait ReplaySink {
    /// Applies one batch whose records are all valid. Data of families that `filter` does not take is skipped, but
    /// keeps its sequence numbers; see [`sequenced_ops`]. An error fails the open.
    fn apply(&mut self, place: BatchPlace, batch: &BatchReader<'_>, filter: &FamilyFilter<'_>) -> Result<()>;

    /// Receives the name and the data of each transaction that is prepared and not decided on, after all batches. Data of
    /// families that no longer exist is among it.
    fn undecided(&mut self, _name: &[u8], _data: BatchEncoder) {}
}

/// The data records of a batch with their sequence numbers. As in RocksDB, an empty range deletion takes no number and
/// is left out; the records behind it move up.
pub fn sequenced_ops<'a>(batch: &BatchReader<'a>) -> impl Iterator<Item = Result<(SeqNum, BatchOp<'a>)>> {
    let first = batch.seq();
    let mut taken = 0u64;
    batch.iter().filter_map(move |op| match op {
        Err(e) => Some(Err(e.into_error())),
        Ok(BatchOp::DeleteRange { begin, end, .. }) if begin == end => None,
        Ok(op) if op.is_counted() => {
            let seq = first.checked_add(taken);
            taken += 1;
            Some(seq.map(|seq| (seq, op)).ok_or_else(|| Error::corruption("a sequence number over 56 bits")))
        }
        Ok(_) => None,
    })
}
