//! Two-phase transactions in the WAL: prepared in one batch, decided in a later one.
//!
//! ```text
//! 09 BeginPrepare  data…  0A EndPrepare xid          …          0B Commit xid   or   0C Rollback xid
//! ```
//! 1. Prepared data takes no sequence numbers. A commit takes one per prepared record, at its place in its batch; a
//!    rollback takes none.
//! 2. Group commit joins batches: one record may prepare, decide and write plainly in any order.
//! 3. A decision whose prepared data is missing is skipped: that data was flushed, and its WAL file is gone.
//! 4. A commit with a timestamp (15) gives the timestamp to the keys of families with timestamps. Such families take
//!    nothing here, so it is treated as a plain commit.
//! 5. This is the policy that writes committed data. Policies that write before the commit have their own marks (12,
//!    13): see `before_commit`.
//!
//! Source: RocksDB `db/write_batch.cc` (`MemTableInserter`), `utilities/transactions/pessimistic_transaction.cc`.

use ashlar_base::{FileNumber, Malformed, Result, SeqNum};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use std::collections::BTreeMap;

/// Records of a batch that belong together: their bytes, and how many sequence numbers they take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    records: Vec<u8>,
    count: u32,
}

impl Piece {
    /// The records as a batch that begins at `seq`.
    pub(super) fn at(&self, seq: SeqNum) -> Vec<u8> {
        let mut batch = Vec::with_capacity(12 + self.records.len());
        batch.extend_from_slice(&seq.get().to_le_bytes());
        batch.extend_from_slice(&self.count.to_le_bytes());
        batch.extend_from_slice(&self.records);
        batch
    }

    pub(super) fn count(&self) -> u64 {
        u64::from(self.count)
    }
}

/// Prepared, undecided data by transaction name: the WAL file, and the records.
#[derive(Debug, Default)]
pub(super) struct Prepared(BTreeMap<Vec<u8>, (FileNumber, Piece)>);

impl Prepared {
    /// A line for each undecided transaction.
    pub(super) fn undecided(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(xid, (wal, piece))| {
            let xid = xid.escape_ascii();
            format!(
                "transaction '{xid}' with {} writes in WAL file {wal} is prepared and not decided on",
                piece.count
            )
        })
    }

    /// The records that a batch applies, in order. Stores what the batch prepares and removes what it decides.
    pub(super) fn apply(&mut self, wal: FileNumber, payload: &[u8]) -> Result<Vec<Piece>, Malformed> {
        let mut out = Vec::new();
        let mut stretch = Stretch::default();
        let mut ops = BatchReader::new(payload)?.iter();
        loop {
            let start = ops.position();
            let Some(op) = ops.next().transpose()? else { break };
            match op {
                BatchOp::BeginPrepare => out.extend(stretch.cut()),
                BatchOp::EndPrepare { xid } => {
                    let piece = stretch.cut().unwrap_or(Piece { records: Vec::new(), count: 0 });
                    self.0.insert(xid.to_vec(), (wal, piece));
                }
                BatchOp::Commit { xid } | BatchOp::CommitWithTimestamp { xid, .. } => {
                    out.extend(stretch.cut());
                    out.extend(self.0.remove(xid).map(|(_, piece)| piece));
                }
                BatchOp::Rollback { xid } => drop(self.0.remove(xid)),
                op => {
                    let bytes = payload.get(start..ops.position()).unwrap_or_default();
                    stretch.records.extend_from_slice(bytes);
                    stretch.count += u32::from(op.is_counted());
                }
            }
        }
        out.extend(stretch.cut());
        Ok(out)
    }
}

/// Records since the last mark.
#[derive(Default)]
struct Stretch {
    records: Vec<u8>,
    count: u32,
}

impl Stretch {
    fn cut(&mut self) -> Option<Piece> {
        let Stretch { records, count } = std::mem::take(self);
        (!records.is_empty()).then_some(Piece { records, count })
    }
}
