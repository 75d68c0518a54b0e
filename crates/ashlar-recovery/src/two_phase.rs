//! Two-phase transactions in the WAL: prepared in one batch, decided in a later one.
//!
//! ```text
//! 09 BeginPrepare  data…  0A EndPrepare xid          …          0B Commit xid   or   0C Rollback xid
//! ```
//! 1. Prepared data takes no sequence numbers. A commit takes one per prepared record, at its place in its batch; a
//!    rollback takes none.
//! 2. Group commit joins batches: one record may prepare, decide and write plainly in any order.
//! 3. A decision whose prepared data is missing is skipped: that data was flushed, and its WAL file is gone.
//! 4. A rollback directly in front of a prepare of its name makes that prepare a copy of older data: see `prepared`. If the
//!    decision on that data was read, the copy does not count. The decision was written, its write failed, and the engine
//!    continued in another WAL file.
//! 5. The first batch of a WAL file of this engine has a copy of all that is undecided. The rest is decided on, although the
//!    decision may be in a file that is gone.
//! 6. A commit with a timestamp (15) gives the timestamp to the keys of families with timestamps. Such families take
//!    nothing here, so it is treated as a plain commit.
//! 7. This is the policy that writes committed data. Policies that write before the commit have their own marks (12,
//!    13): see `before_commit`.
//!
//! Source: RocksDB `db/write_batch.cc` (`MemTableInserter`), `utilities/transactions/pessimistic_transaction.cc`.

use super::report::UndecidedTransaction;
use ashlar_base::{FileNumber, Malformed, Result, SeqNum};
use ashlar_format::write_batch::{BatchEncoder, BatchOp, BatchReader};
use std::collections::{BTreeMap, BTreeSet};

/// Records of a batch that belong together: their bytes, and how many sequence numbers they take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    records: Vec<u8>,
    count: u32,
}

impl Piece {
    /// The records as a batch that begins at `seq`.
    pub fn at(&self, seq: SeqNum) -> Vec<u8> {
        let mut batch = Vec::with_capacity(12 + self.records.len());
        batch.extend_from_slice(&seq.get().to_le_bytes());
        batch.extend_from_slice(&self.count.to_le_bytes());
        batch.extend_from_slice(&self.records);
        batch
    }

    /// The number of sequence numbers.
    pub fn count(&self) -> u64 {
        u64::from(self.count)
    }
}

/// Prepared, undecided data by transaction name: the WAL file, and the records.
#[derive(Debug, Default)]
pub struct Prepared {
    undecided: BTreeMap<Vec<u8>, (FileNumber, Piece)>,
    /// The names that were decided on, unless they were prepared again since.
    decided: BTreeSet<Vec<u8>>,
}

impl Prepared {
    /// The undecided transactions with their data.
    pub(super) fn undecided(
        &self,
    ) -> impl Iterator<Item = Result<(UndecidedTransaction, BatchEncoder), Malformed>> {
        self.undecided.iter().map(|(xid, (wal, piece))| {
            let bytes = piece.records.len() as u64;
            let found = UndecidedTransaction::new(xid, *wal, piece.count(), bytes);
            BatchEncoder::from_encoded(&piece.at(SeqNum::ZERO)).map(|data| (found, data))
        })
    }

    /// Begins a WAL file of this engine with its first batch, which has a copy of every transaction that was undecided then. A
    /// transaction without a copy was decided on in a file that is gone, or in a lost end of the file before.
    ///
    /// # Errors
    /// The batch is malformed.
    pub(super) fn begin_file(&mut self, first: &BatchReader<'_>) -> Result<(), Malformed> {
        let mut copied = BTreeSet::new();
        for op in first.iter() {
            if let BatchOp::EndPrepare { xid } = op? {
                copied.insert(xid);
            }
        }
        let (copied, decided) = (&copied, &mut self.decided);
        self.undecided.retain(|xid, _| {
            let stays = copied.contains(&xid[..]);
            if !stays {
                decided.insert(xid.clone());
            }
            stays
        });
        Ok(())
    }

    /// Whether the data of the transaction `xid` was read and not decided on.
    pub fn knows(&self, xid: &[u8]) -> bool {
        self.undecided.contains_key(xid)
    }

    /// The records that a batch applies, in order. Stores what the batch prepares and removes what it decides.
    ///
    /// # Errors
    /// The batch is malformed.
    pub fn apply(&mut self, wal: FileNumber, payload: &[u8]) -> Result<Vec<Piece>, Malformed> {
        let mut out = Vec::new();
        let mut stretch = Stretch::default();
        // The rollback directly in front: its name, and whether that was decided on before. At a prepare it moves to `copy`.
        let mut rolled_back: Option<(&[u8], bool)> = None;
        let mut copy = None;
        let mut ops = BatchReader::new(payload)?.iter();
        loop {
            let start = ops.position();
            let Some(op) = ops.next().transpose()? else { break };
            match op {
                BatchOp::BeginPrepare => {
                    out.extend(stretch.cut());
                    copy = rolled_back.take();
                }
                BatchOp::EndPrepare { xid } => {
                    let piece = stretch.cut().unwrap_or(Piece { records: Vec::new(), count: 0 });
                    if copy.take() != Some((xid, true)) {
                        self.decided.remove(xid);
                        self.undecided.insert(xid.to_vec(), (wal, piece));
                    }
                }
                BatchOp::Commit { xid } | BatchOp::CommitWithTimestamp { xid, .. } => {
                    out.extend(stretch.cut());
                    out.extend(self.undecided.remove(xid).map(|(_, piece)| piece));
                    self.decided.insert(xid.to_vec());
                    rolled_back = None;
                }
                BatchOp::Rollback { xid } => {
                    self.undecided.remove(xid);
                    rolled_back = Some((xid, !self.decided.insert(xid.to_vec())));
                }
                op => {
                    let bytes = payload.get(start..ops.position()).unwrap_or_default();
                    stretch.records.extend_from_slice(bytes);
                    stretch.count += u32::from(op.is_counted());
                    rolled_back = None;
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
