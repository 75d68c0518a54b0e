//! Reading a batch record by record.

use super::BatchOp;
use ashlar_base::{Cursor, Malformed, SeqNum};

/// An encoded batch whose header was read. Copyable; borrows the bytes.
#[derive(Clone, Copy, Debug)]
pub struct BatchReader<'a> {
    seq: SeqNum,
    count: u32,
    records: Cursor<'a>,
}

impl<'a> BatchReader<'a> {
    /// Reads the header; the records are looked at by [`BatchReader::iter`].
    ///
    /// # Errors
    /// `Malformed` for fewer than twelve bytes or a sequence above 56 bits.
    pub fn new(encoded: &'a [u8]) -> Result<Self, Malformed> {
        let mut c = Cursor::new(encoded);
        let wide = c.malformed("batch.sequence", "over 56 bits");
        let seq = SeqNum::new(c.fixed64("batch.sequence")?).ok_or(wide)?;
        let count = c.fixed32("batch.count")?;
        Ok(BatchReader { seq, count, records: c })
    }

    /// A batch that has no sequence yet.
    pub(super) fn unsequenced(count: u32, records: Cursor<'a>) -> Self {
        BatchReader { seq: SeqNum::ZERO, count, records }
    }

    /// The sequence of the first data record.
    pub fn seq(&self) -> SeqNum {
        self.seq
    }

    /// The number of data records, as the header says.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Goes over the records. Errors carry offsets into the encoded batch.
    pub fn iter(&self) -> BatchIter<'a> {
        BatchIter { rest: self.records, declared: self.count, seen: 0, ended: false }
    }

    /// Goes over all records once and drops them: proves that later passes cannot fail.
    ///
    /// # Errors
    /// The first `Malformed` of [`BatchReader::iter`].
    pub fn validate(&self) -> Result<(), Malformed> {
        self.iter().try_for_each(|op| op.map(drop))
    }
}

impl<'a> IntoIterator for BatchReader<'a> {
    type Item = Result<BatchOp<'a>, Malformed>;
    type IntoIter = BatchIter<'a>;

    fn into_iter(self) -> BatchIter<'a> {
        self.iter()
    }
}

/// The records of a batch in order. The last item is an error when a record does not decode, or when the number of
/// data records is not what the header says; nothing follows an error.
#[derive(Clone, Debug)]
pub struct BatchIter<'a> {
    rest: Cursor<'a>,
    declared: u32,
    seen: u32,
    ended: bool,
}

impl BatchIter<'_> {
    /// Where the next record begins in the encoded batch.
    pub fn position(&self) -> usize {
        self.rest.position()
    }
}

impl<'a> Iterator for BatchIter<'a> {
    type Item = Result<BatchOp<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if self.rest.is_empty() {
            self.ended = true;
            return (self.seen != self.declared)
                .then(|| Err(self.rest.malformed("batch.count", "wrong count")));
        }
        let start = self.rest;
        let op = BatchOp::decode(&mut self.rest).and_then(|op| {
            if op.is_counted() {
                if self.seen == self.declared {
                    return Err(start.malformed("batch.count", "wrong count"));
                }
                self.seen += 1;
            }
            Ok(op)
        });
        self.ended = op.is_err();
        Some(op)
    }
}
