//! Transactions that write before they commit, as WAL files record them: the policies write-prepared and
//! write-unprepared.
//!
//! ```text
//! 12 BeginPersistedPrepare  data…  0A EndPrepare xid      …      0B Commit xid   or   data… 0C Rollback xid
//! 13 BeginUnprepare         data…  0A EndPrepare xid      a part of a transaction that was not prepared yet
//! ```
//! 1. Data enters the memtable when it is prepared, under its sequence at that point; the commit only makes it count.
//! 2. Sequences count parts of batches, not records: a part ends at 0A, 0B, 0C, 15, and at a 0D behind data. A key that
//!    repeats in a part gets the next sequence.
//! 3. Undecided data does not count. It may be in tables, where nothing marks it. Its WAL files are kept, and a family
//!    whose log number has passed them has the data in tables. Such a database is not read.
//! 4. A rollback writes the old values again in front of its mark, which covers data that reached a table.
//!
//! This engine only reads such a database. Only a transaction database can continue to write: it knows which
//! transactions commit and which keys they lock.
//!
//! Source: RocksDB `db/write_batch.cc` (`MemTableInserter`, `seq_per_batch`),
//! `utilities/transactions/write_prepared_txn.cc`.

use super::report::{FamilyReport, UndecidedTransaction};
use ashlar_base::{Error, FamilyId, FileNumber, Malformed, Result, SeqNum};
use ashlar_format::write_batch::{BatchOp, BatchReader};
use std::collections::{BTreeMap, BTreeSet};

/// One data record: its WAL file, its sequence and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    pub(super) wal: FileNumber,
    family: FamilyId,
    seq: SeqNum,
    record: Vec<u8>,
}

impl Write {
    /// The record as a batch of its own.
    pub(super) fn batch(&self) -> Vec<u8> {
        let mut batch = Vec::with_capacity(12 + self.record.len());
        batch.extend_from_slice(&self.seq.get().to_le_bytes());
        batch.extend_from_slice(&1u32.to_le_bytes());
        batch.extend_from_slice(&self.record);
        batch
    }
}

/// Writes of undecided transactions, by transaction name.
#[derive(Debug, Default)]
pub(super) struct Undecided(BTreeMap<Vec<u8>, Vec<Write>>);

impl Undecided {
    /// A line for each undecided transaction.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(xid, writes)| {
            let (xid, count) = (xid.escape_ascii(), writes.len());
            format!("transaction '{xid}' with {count} writes in the WAL is not decided on")
        })
    }

    /// The undecided transactions, for the report. `known`: the families of the database.
    ///
    /// # Errors
    /// A record is malformed.
    pub(super) fn transactions(
        &self,
        known: &[FamilyReport],
    ) -> Result<Vec<UndecidedTransaction>, Malformed> {
        let described = |(xid, writes): (&Vec<u8>, &Vec<Write>)| {
            let batches: Vec<_> = writes.iter().map(Write::batch).collect();
            let readers =
                batches.iter().map(|batch| BatchReader::new(batch)).collect::<Result<Vec<_>, _>>()?;
            let bytes = writes.iter().map(|write| write.record.len() as u64).sum();
            let wal = writes.first().map_or(FileNumber(0), |write| write.wal);
            let mut found = UndecidedTransaction::new(xid, wal, writes.len() as u64, bytes);
            found.count_keys(&readers, known);
            Ok(found)
        };
        self.0.iter().map(described).collect()
    }

    /// # Errors
    /// `NotSupported`: writes of an undecided transaction are in tables, by the log numbers of the families.
    pub(super) fn check_tables(&self, log_numbers: &BTreeMap<FamilyId, FileNumber>) -> Result<()> {
        for (xid, writes) in &self.0 {
            let flushed = |w: &&Write| log_numbers.get(&w.family).is_some_and(|log| w.wal < *log);
            if let Some(write) = writes.iter().find(flushed) {
                let (xid, family) = (xid.escape_ascii(), write.family.0);
                let e = format!(
                    "tables of family {family} hold writes of transaction '{xid}', which is not decided on; the \
                     tables do not mark these writes"
                );
                return Err(Error::not_supported(e).hint(
                    "Open it with RocksDB's TransactionDB under the policy it was written with, and commit or roll back",
                ));
            }
        }
        Ok(())
    }

    /// The writes that count after a batch, in order, and the sequence after the batch.
    pub(super) fn apply(
        &mut self,
        wal: FileNumber,
        payload: &[u8],
        first: SeqNum,
    ) -> Result<(Vec<Write>, SeqNum), Malformed> {
        let mut out = Vec::new();
        let mut prepared: Option<Vec<Write>> = None;
        let mut part = Part { seq: first, empty: true, keys: BTreeSet::new() };
        let mut ops = BatchReader::new(payload)?.iter();
        loop {
            let start = ops.position();
            let Some(op) = ops.next().transpose()? else { break };
            match op {
                BatchOp::BeginPersistedPrepare | BatchOp::BeginUnprepare | BatchOp::BeginPrepare => {
                    prepared = Some(Vec::new());
                }
                BatchOp::EndPrepare { xid } => {
                    self.0.entry(xid.to_vec()).or_default().extend(prepared.take().unwrap_or_default());
                    part.end(start)?;
                }
                BatchOp::Commit { xid } | BatchOp::CommitWithTimestamp { xid, .. } => {
                    out.extend(self.0.remove(xid).unwrap_or_default());
                    part.end(start)?;
                }
                BatchOp::Rollback { xid } => {
                    self.0.remove(xid);
                    part.end(start)?;
                }
                BatchOp::Noop if !part.empty => part.end(start)?,
                op => {
                    let Some(family) = op.family() else { continue };
                    let record = payload.get(start..ops.position()).unwrap_or_default().to_vec();
                    let seq = part.place(family, point_key(&op), start)?;
                    prepared.as_mut().unwrap_or(&mut out).push(Write { wal, family, seq, record });
                }
            }
        }
        if !part.empty {
            part.end(payload.len())?;
        }
        Ok((out, part.seq))
    }
}

/// The key of an operation on one key.
fn point_key<'a>(op: &BatchOp<'a>) -> Option<&'a [u8]> {
    match *op {
        BatchOp::Put { key, .. }
        | BatchOp::Delete { key, .. }
        | BatchOp::SingleDelete { key, .. }
        | BatchOp::Merge { key, .. }
        | BatchOp::BlobIndex { key, .. }
        | BatchOp::Entity { key, .. }
        | BatchOp::TimedPut { key, .. } => Some(key),
        _ => None,
    }
}

/// The current part of a batch.
struct Part<'a> {
    seq: SeqNum,
    empty: bool,
    keys: BTreeSet<(FamilyId, &'a [u8])>,
}

impl<'a> Part<'a> {
    /// The sequence of the next record.
    fn place(&mut self, family: FamilyId, key: Option<&'a [u8]>, at: usize) -> Result<SeqNum, Malformed> {
        if let Some(key) = key
            && !self.keys.insert((family, key))
        {
            self.end(at)?;
            self.keys.insert((family, key));
        }
        self.empty = false;
        Ok(self.seq)
    }

    fn end(&mut self, at: usize) -> Result<(), Malformed> {
        let what = "a sequence number over 56 bits";
        self.seq = self.seq.checked_add(1).ok_or(Malformed { field: "batch.sequence", at, what })?;
        self.empty = true;
        self.keys.clear();
        Ok(())
    }
}
