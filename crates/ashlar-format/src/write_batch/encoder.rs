//! Building a batch: appends to one buffer, nothing else.

use super::{BATCH_HEADER, BatchOp, BatchReader, tag};
use ashlar_base::bytes::{put_slice, put_varint32};
use ashlar_base::{Cursor, Error, FamilyId, Malformed, Result, SeqNum};

/// The longest user key: its internal key must fit 32 bits.
const KEY_MAX: usize = u32::MAX as usize - 8;
/// The longest value.
const VALUE_MAX: usize = u32::MAX as usize;

/// Memory of a new batch: a put of an ordinary key and value fits without a second allocation.
const FIRST_BYTES: usize = 256;

/// Writes a batch. Every call is an append to one buffer, which [`BatchEncoder::clear`] keeps.
///
/// Deviates from a pure append in one point: a call answers `InvalidArgument`, and changes nothing, for keys and values
/// that the format cannot hold (4 GiB) and for the record that would overflow the 32-bit count. This is the door where
/// they are refused.
#[derive(Clone, Debug)]
pub struct BatchEncoder {
    bytes: Vec<u8>,
    count: u32,
    /// One for each data record, made of what was given before it was encoded; not stored.
    sums: Option<Vec<u64>>,
    /// Records before it are for the log alone, those behind it for memtables alone. `None`: all records are for both.
    split: Option<BatchMark>,
}

/// A state to return to: see [`BatchEncoder::mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchMark {
    len: usize,
    count: u32,
}

impl Default for BatchEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchEncoder {
    /// An empty batch: a header of twelve zero bytes.
    pub fn new() -> Self {
        let mut bytes = Vec::with_capacity(FIRST_BYTES);
        bytes.resize(BATCH_HEADER, 0);
        BatchEncoder { bytes, count: 0, sums: None, split: None }
    }

    /// An empty batch that remembers a checksum of each data record, for [`BatchEncoder::checked_reader`].
    pub fn protected() -> Self {
        BatchEncoder { sums: Some(Vec::new()), ..BatchEncoder::new() }
    }

    /// Takes over an encoded batch after looking at every record. Its sequence is dropped.
    ///
    /// # Errors
    /// `Malformed` when it does not decode or its count is wrong.
    pub fn from_encoded(encoded: &[u8]) -> Result<Self, Malformed> {
        let reader = BatchReader::new(encoded)?;
        reader.validate()?;
        let mut batch =
            BatchEncoder { bytes: encoded.to_vec(), count: reader.count(), sums: None, split: None };
        set_sequence(&mut batch.bytes, SeqNum::ZERO);
        Ok(batch)
    }

    /// Moves the batch out, memory included. What stays has not even a header: put a batch back before any other call.
    pub fn lend(&mut self) -> BatchEncoder {
        std::mem::replace(self, BatchEncoder { bytes: Vec::new(), count: 0, sums: None, split: None })
    }

    /// Drops all records, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.truncate(BATCH_HEADER);
        self.count = 0;
        self.split = None;
        self.cut_sums();
    }

    /// The number of data records.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of header and records.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// True when there is no record at all, neither data nor markers.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == BATCH_HEADER
    }

    /// The present state, for [`BatchEncoder::rollback_to`].
    pub fn mark(&self) -> BatchMark {
        BatchMark { len: self.bytes.len(), count: self.count }
    }

    /// Drops what was appended since `mark` was taken. A mark of a longer past state changes nothing.
    pub fn rollback_to(&mut self, mark: BatchMark) {
        if mark.len <= self.bytes.len() {
            self.bytes.truncate(mark.len);
            self.count = mark.count;
            self.cut_sums();
        }
    }

    /// The records so far, to go over them. The sequence is zero.
    pub fn reader(&self) -> BatchReader<'_> {
        let mut c = Cursor::new(&self.bytes);
        let skipped = c.bytes(BATCH_HEADER, "batch.header");
        debug_assert!(skipped.is_ok(), "a batch always has its header");
        BatchReader::unsequenced(self.count, c)
    }

    /// The records for memtables, after the records of a protected batch were compared with their checksums.
    ///
    /// # Errors
    /// `Corruption`: the batch is not what was put into it.
    #[inline]
    pub fn checked_reader(&self) -> Result<BatchReader<'_>> {
        let reader = self.reader();
        match &self.sums {
            Some(sums) if !agree(&reader, sums) => Err(changed()),
            _ => Ok(self.split.map_or(reader, |split| self.behind(split))),
        }
    }

    /// Puts sequence and count into the header and hands out the batch for the log.
    #[inline]
    pub fn finish(&mut self, seq: SeqNum) -> &[u8] {
        let BatchMark { len, count } = self.split.unwrap_or(self.mark());
        if let Some(header) = self.bytes.first_chunk_mut::<BATCH_HEADER>() {
            write_header(header, seq, count);
        }
        self.bytes.get(..len).unwrap_or_default()
    }

    #[cold]
    fn behind(&self, split: BatchMark) -> BatchReader<'_> {
        let mut c = Cursor::new(&self.bytes);
        let skipped = c.bytes(split.len, "batch.logged");
        debug_assert!(skipped.is_ok(), "a batch is cut at a record");
        BatchReader::unsequenced(self.count.saturating_sub(split.count), c)
    }

    /// Splits the batch here: the log gets the records so far and no memtable does, memtables get the later ones and the
    /// log does not. For the phases of a transaction: its data is logged when it is prepared, and inserted at the commit.
    pub fn split(&mut self) {
        self.split = Some(self.mark());
    }

    /// Whether memtables get other records than the log.
    #[inline]
    pub fn is_split(&self) -> bool {
        self.split.is_some()
    }

    /// The mark in front of the data of a prepared transaction, under the policy that writes committed data.
    pub fn begin_prepare(&mut self) {
        self.bytes.push(tag::BEGIN_PREPARE);
    }

    /// The mark behind the data of the prepared transaction `xid`.
    pub fn end_prepare(&mut self, xid: &[u8]) {
        self.bytes.push(tag::END_PREPARE);
        put_slice(&mut self.bytes, xid);
    }

    /// The mark that commits the prepared transaction `xid`.
    pub fn commit(&mut self, xid: &[u8]) {
        self.bytes.push(tag::COMMIT);
        put_slice(&mut self.bytes, xid);
    }

    /// The mark that gives the prepared transaction `xid` up.
    pub fn rollback(&mut self, xid: &[u8]) {
        self.bytes.push(tag::ROLLBACK);
        put_slice(&mut self.bytes, xid);
    }

    /// A value for a key.
    #[inline]
    pub fn put(&mut self, family: FamilyId, key: &[u8], value: &[u8]) -> Result<()> {
        self.admit(key.len(), value.len())?;
        self.protect(BatchOp::Put { family, key, value });
        self.start(family, tag::PUT, tag::FAMILY_PUT);
        put_slice(&mut self.bytes, key);
        put_slice(&mut self.bytes, value);
        Ok(())
    }

    /// A value for a key, with a time: see [`BatchOp::TimedPut`].
    pub fn timed_put(&mut self, family: FamilyId, key: &[u8], value: &[u8], write_time: u64) -> Result<()> {
        let packed = u32::try_from(value.len().saturating_add(size_of::<u64>())).map_err(|_| too_large())?;
        self.admit(key.len(), value.len())?;
        self.protect(BatchOp::TimedPut { family, key, value, write_time });
        self.start(family, tag::TIMED_PUT, tag::FAMILY_TIMED_PUT);
        put_slice(&mut self.bytes, key);
        put_varint32(&mut self.bytes, packed);
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(&write_time.to_le_bytes());
        Ok(())
    }

    /// A wide-column entity for a key, encoded (see [`crate::entity`]).
    pub fn entity(&mut self, family: FamilyId, key: &[u8], entity: &[u8]) -> Result<()> {
        self.admit(key.len(), entity.len())?;
        self.protect(BatchOp::Entity { family, key, entity });
        self.start(family, tag::ENTITY, tag::FAMILY_ENTITY);
        put_slice(&mut self.bytes, key);
        put_slice(&mut self.bytes, entity);
        Ok(())
    }

    /// Removes a key.
    #[inline]
    pub fn delete(&mut self, family: FamilyId, key: &[u8]) -> Result<()> {
        self.admit(key.len(), 0)?;
        self.protect(BatchOp::Delete { family, key });
        self.start(family, tag::DELETE, tag::FAMILY_DELETE);
        put_slice(&mut self.bytes, key);
        Ok(())
    }

    /// Removes a key that was put exactly once.
    pub fn single_delete(&mut self, family: FamilyId, key: &[u8]) -> Result<()> {
        self.admit(key.len(), 0)?;
        self.protect(BatchOp::SingleDelete { family, key });
        self.start(family, tag::SINGLE_DELETE, tag::FAMILY_SINGLE_DELETE);
        put_slice(&mut self.bytes, key);
        Ok(())
    }

    /// An operand for a key.
    pub fn merge(&mut self, family: FamilyId, key: &[u8], operand: &[u8]) -> Result<()> {
        self.admit(key.len(), operand.len())?;
        self.protect(BatchOp::Merge { family, key, value: operand });
        self.start(family, tag::MERGE, tag::FAMILY_MERGE);
        put_slice(&mut self.bytes, key);
        put_slice(&mut self.bytes, operand);
        Ok(())
    }

    /// Removes the keys from `begin` on, `end` excluded. The caller refuses `begin > end` by the family's comparator
    /// and drops the empty range: RocksDB cannot replay the one and miscounts the other.
    pub fn delete_range(&mut self, family: FamilyId, begin: &[u8], end: &[u8]) -> Result<()> {
        self.admit(begin.len().max(end.len()), 0)?;
        self.protect(BatchOp::DeleteRange { family, begin, end });
        self.start(family, tag::DELETE_RANGE, tag::FAMILY_DELETE_RANGE);
        put_slice(&mut self.bytes, begin);
        put_slice(&mut self.bytes, end);
        Ok(())
    }

    /// Bytes for readers of the log. Not counted as an operation.
    pub fn log_data(&mut self, blob: &[u8]) -> Result<()> {
        if blob.len() > VALUE_MAX {
            return Err(Error::invalid("log data of 4 GiB or more"));
        }
        self.bytes.push(tag::LOG_DATA);
        put_slice(&mut self.bytes, blob);
        Ok(())
    }

    /// Appends all records of `other`: one copy.
    ///
    /// # Errors
    /// `InvalidArgument` when the counts together overflow 32 bits; nothing is appended then.
    #[inline]
    pub fn append_records(&mut self, other: &BatchEncoder) -> Result<()> {
        let count = self.count.checked_add(other.count).ok_or_else(too_many)?;
        self.bytes.extend_from_slice(other.bytes.get(BATCH_HEADER..).unwrap_or_default());
        self.count = count;
        if let Some(sums) = &mut self.sums {
            match &other.sums {
                Some(others) => sums.extend_from_slice(others),
                None => sums
                    .extend(other.reader().iter().flatten().filter(BatchOp::is_counted).map(|op| op.sum())),
            }
        }
        Ok(())
    }

    #[inline]
    fn protect(&mut self, op: BatchOp<'_>) {
        if let Some(sums) = &mut self.sums {
            sums.push(op.sum());
        }
    }

    fn cut_sums(&mut self) {
        if let Some(sums) = &mut self.sums {
            sums.truncate(self.count as usize);
        }
    }

    #[inline]
    fn admit(&self, key_len: usize, value_len: usize) -> Result<()> {
        if key_len > KEY_MAX || value_len > VALUE_MAX {
            return Err(too_large());
        }
        if self.count == u32::MAX {
            return Err(too_many());
        }
        Ok(())
    }

    #[inline]
    fn start(&mut self, family: FamilyId, short: u8, long: u8) {
        self.count += 1;
        if family == FamilyId::DEFAULT {
            self.bytes.push(short);
        } else {
            self.bytes.push(long);
            put_varint32(&mut self.bytes, family.0);
        }
    }
}

/// Whether the data records of a batch are those of the checksums.
#[cold]
fn agree(reader: &BatchReader<'_>, sums: &[u64]) -> bool {
    let mut expected = sums.iter();
    let sound = reader.iter().all(|op| match op {
        Ok(op) if op.is_counted() => expected.next() == Some(&op.sum()),
        Ok(_) => true,
        Err(_) => false,
    });
    sound && expected.next().is_none()
}

#[cold]
fn changed() -> Error {
    Error::corruption("the batch has changed in memory since it was filled")
        .hint("Nothing of it was written: fill it again. Test the machine's memory")
}

#[cold]
fn too_large() -> Error {
    Error::invalid("key or value of 4 GiB or more")
}

#[cold]
fn too_many() -> Error {
    Error::invalid("more than 4294967295 operations in one batch").hint("Write smaller batches")
}

#[inline]
fn write_header(header: &mut [u8; BATCH_HEADER], seq: SeqNum, count: u32) {
    let both = u128::from(seq.get()) | u128::from(count) << 64;
    for (to, from) in header.iter_mut().zip(both.to_le_bytes()) {
        *to = from;
    }
}

/// Replaces the sequence in an encoded batch. Bytes too few for a sequence stay as they are.
#[inline]
pub fn set_sequence(encoded: &mut [u8], seq: SeqNum) {
    if let Some(field) = encoded.first_chunk_mut::<8>() {
        *field = seq.get().to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ErrorKind;

    fn protected() -> BatchEncoder {
        let mut batch = BatchEncoder::protected();
        let family = FamilyId(3);
        batch.put(FamilyId::DEFAULT, b"key", b"value").unwrap();
        batch.merge(family, b"", b"operand").unwrap();
        batch.delete(FamilyId::DEFAULT, b"gone").unwrap();
        batch.single_delete(family, b"once").unwrap();
        batch.delete_range(FamilyId::DEFAULT, b"a", b"b").unwrap();
        batch.entity(family, b"row", b"\x01\x00").unwrap();
        batch
    }

    #[test]
    fn every_flipped_bit_of_a_protected_batch_is_found() {
        let sound = protected();
        assert_eq!(sound.checked_reader().unwrap().iter().count(), 6);
        for bit in BATCH_HEADER * 8..sound.bytes.len() * 8 {
            let mut flipped = sound.clone();
            flipped.bytes[bit / 8] ^= 1 << (bit % 8);
            let found = flipped.checked_reader().err().map(|e| e.kind());
            assert_eq!(found, Some(ErrorKind::Corruption), "bit {bit}");
            flipped.sums = None;
            assert!(flipped.checked_reader().is_ok(), "nothing compares");
        }
        let mut short = sound.clone();
        short.bytes.truncate(sound.bytes.len() - 7);
        assert!(short.checked_reader().is_err(), "a record is missing");
    }

    #[test]
    fn a_split_batch_gives_its_parts_to_the_log_and_to_memtables() {
        let mut data = BatchEncoder::protected();
        data.put(FamilyId(1), b"k", b"v").unwrap();
        let mut prepare = BatchEncoder::protected();
        prepare.begin_prepare();
        prepare.append_records(&data).unwrap();
        prepare.end_prepare(b"x");
        prepare.split();
        assert_eq!(prepare.checked_reader().unwrap().iter().count(), 0);
        assert_eq!(prepare.checked_reader().unwrap().count(), 0, "it takes no sequence numbers");
        let seq = SeqNum::new(7).unwrap();
        let logged = prepare.finish(seq).to_vec();
        let reader = BatchReader::new(&logged).unwrap();
        assert_eq!((reader.seq(), reader.count(), reader.iter().flatten().count()), (seq, 1, 3));

        let mut commit = BatchEncoder::new();
        commit.commit(b"x");
        commit.split();
        commit.append_records(&data).unwrap();
        assert_eq!(commit.checked_reader().unwrap().count(), 1);
        let inserted: Vec<_> = commit.checked_reader().unwrap().iter().map(Result::unwrap).collect();
        assert_eq!(inserted, [BatchOp::Put { family: FamilyId(1), key: b"k", value: b"v" }]);
        let logged = commit.finish(seq).to_vec();
        let logged: Vec<_> = BatchReader::new(&logged).unwrap().iter().map(Result::unwrap).collect();
        assert_eq!(logged, [BatchOp::Commit { xid: b"x" }]);
        commit.clear();
        assert!(!commit.is_split());
    }

    #[test]
    fn checksums_follow_the_records() {
        let (mut batch, mark) = (protected(), protected().mark());
        batch.put(FamilyId(9), b"more", b"").unwrap();
        batch.log_data(b"aside").unwrap();
        batch.checked_reader().unwrap();
        batch.rollback_to(mark);
        batch.checked_reader().unwrap();
        let mut plain = BatchEncoder::new();
        plain.put(FamilyId(9), b"more", b"").unwrap();
        batch.append_records(&plain).unwrap();
        batch.append_records(&protected()).unwrap();
        assert_eq!(batch.checked_reader().unwrap().iter().count(), 13);
        batch.clear();
        batch.put(FamilyId::DEFAULT, b"again", b"").unwrap();
        batch.checked_reader().unwrap();
    }
}
