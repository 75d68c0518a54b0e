//! One record of a batch.

use super::tag;
use ashlar_base::checksum::xxh3_64_with_seed;
use ashlar_base::{Cursor, FamilyId, Malformed, ValueType};

/// One record of a batch. Keys, values and ids borrow from the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchOp<'a> {
    /// A value for a key.
    Put {
        /// Where.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Removes a key.
    Delete {
        /// Where.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
    },
    /// Removes a key that was put exactly once.
    SingleDelete {
        /// Where.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
    },
    /// An operand for a key.
    Merge {
        /// Where.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The operand.
        value: &'a [u8],
    },
    /// Removes the keys from `begin` on, `end` excluded. Whether they are in order is not looked at here.
    DeleteRange {
        /// Where.
        family: FamilyId,
        /// The first user key to go.
        begin: &'a [u8],
        /// The first one to stay.
        end: &'a [u8],
    },
    /// A key whose value is in a blob file.
    BlobIndex {
        /// Where.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The encoded index.
        index: &'a [u8],
    },
    /// A wide-column entity.
    Entity {
        /// Where.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The encoded entity.
        entity: &'a [u8],
    },
    /// A value with the time it was written.
    TimedPut {
        /// Where.
        family: FamilyId,
        /// The user key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
        /// Seconds since 1970.
        write_time: u64,
    },
    /// Bytes for readers of the log; not stored in the database.
    LogData(&'a [u8]),
    /// A prepared transaction begins (write-committed policy).
    BeginPrepare,
    /// A prepared transaction begins (write-prepared policy).
    BeginPersistedPrepare,
    /// A part of a transaction that was not prepared begins (write-unprepared policy).
    BeginUnprepare,
    /// A prepared transaction ends.
    EndPrepare {
        /// Its name.
        xid: &'a [u8],
    },
    /// A prepared transaction is committed.
    Commit {
        /// Its name.
        xid: &'a [u8],
    },
    /// A prepared transaction is committed with a timestamp for all its keys.
    CommitWithTimestamp {
        /// The timestamp.
        timestamp: &'a [u8],
        /// Its name.
        xid: &'a [u8],
    },
    /// A prepared transaction is given up.
    Rollback {
        /// Its name.
        xid: &'a [u8],
    },
    /// Nothing. Batches of a transaction database begin with it.
    Noop,
}

impl<'a> BatchOp<'a> {
    /// True for data: it counts, and takes a sequence number.
    #[inline]
    pub fn is_counted(&self) -> bool {
        self.value_type().is_some()
    }

    /// The type of the entry it becomes in a memtable (in a family without timestamps); `None` for markers and log
    /// data.
    #[inline]
    pub fn value_type(&self) -> Option<ValueType> {
        Some(match self {
            BatchOp::Put { .. } => ValueType::Put,
            BatchOp::Delete { .. } => ValueType::Delete,
            BatchOp::SingleDelete { .. } => ValueType::SingleDelete,
            BatchOp::Merge { .. } => ValueType::Merge,
            BatchOp::DeleteRange { .. } => ValueType::RangeDelete,
            BatchOp::BlobIndex { .. } => ValueType::BlobIndex,
            BatchOp::Entity { .. } => ValueType::Entity,
            BatchOp::TimedPut { .. } => ValueType::TimedPut,
            _ => return None,
        })
    }

    /// The entry of a data record in a memtable: type, key and value; of a range deletion, the begin and the end of the range. The
    /// write time of a put is left out: it only decides the storage tier of the value, and AshlarDB has one tier.
    #[inline]
    pub fn entry(&self) -> Option<(ValueType, &'a [u8], &'a [u8])> {
        Some(match *self {
            BatchOp::Put { key, value, .. } | BatchOp::TimedPut { key, value, .. } => {
                (ValueType::Put, key, value)
            }
            BatchOp::Delete { key, .. } => (ValueType::Delete, key, &[]),
            BatchOp::SingleDelete { key, .. } => (ValueType::SingleDelete, key, &[]),
            BatchOp::Merge { key, value, .. } => (ValueType::Merge, key, value),
            BatchOp::BlobIndex { key, index, .. } => (ValueType::BlobIndex, key, index),
            BatchOp::Entity { key, entity, .. } => (ValueType::Entity, key, entity),
            BatchOp::DeleteRange { begin, end, .. } => (ValueType::RangeDelete, begin, end),
            _ => return None,
        })
    }

    /// The column family of a data record.
    #[inline]
    pub fn family(&self) -> Option<FamilyId> {
        match *self {
            BatchOp::Put { family, .. }
            | BatchOp::Delete { family, .. }
            | BatchOp::SingleDelete { family, .. }
            | BatchOp::Merge { family, .. }
            | BatchOp::DeleteRange { family, .. }
            | BatchOp::BlobIndex { family, .. }
            | BatchOp::Entity { family, .. }
            | BatchOp::TimedPut { family, .. } => Some(family),
            _ => None,
        }
    }

    /// The key of a data record; of a range deletion, the key where the range begins.
    pub fn key(&self) -> Option<&'a [u8]> {
        match *self {
            BatchOp::Put { key, .. }
            | BatchOp::Delete { key, .. }
            | BatchOp::SingleDelete { key, .. }
            | BatchOp::Merge { key, .. }
            | BatchOp::DeleteRange { begin: key, .. }
            | BatchOp::BlobIndex { key, .. }
            | BatchOp::Entity { key, .. }
            | BatchOp::TimedPut { key, .. } => Some(key),
            _ => None,
        }
    }

    /// A checksum of a data record: family, type, key, value and time.
    pub(super) fn sum(&self) -> u64 {
        let (_, key, value) = self.entry().unwrap_or((ValueType::Put, &[], &[]));
        let family = self.family().map_or(0, |family| u64::from(family.0));
        let seed = family << 8 | self.value_type().map_or(u64::from(u8::MAX), |t| t as u64);
        let time = if let BatchOp::TimedPut { write_time, .. } = *self { write_time } else { 0 };
        xxh3_64_with_seed(value, xxh3_64_with_seed(key, seed)) ^ time
    }

    /// Reads one record: tag and payload.
    #[inline]
    pub(super) fn decode(c: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let start = *c;
        let tag = c.u8("batch tag")?;
        let family = match tag {
            tag::FAMILY_DELETE
            | tag::FAMILY_PUT
            | tag::FAMILY_MERGE
            | tag::FAMILY_SINGLE_DELETE
            | tag::FAMILY_DELETE_RANGE
            | tag::FAMILY_BLOB_INDEX
            | tag::FAMILY_ENTITY
            | tag::FAMILY_TIMED_PUT => FamilyId(c.varint32("batch family")?),
            _ => FamilyId::DEFAULT,
        };
        Ok(match tag {
            tag::PUT | tag::FAMILY_PUT => {
                BatchOp::Put { family, key: c.slice("put.key")?, value: c.slice("put.value")? }
            }
            tag::DELETE | tag::FAMILY_DELETE => BatchOp::Delete { family, key: c.slice("delete.key")? },
            tag::SINGLE_DELETE | tag::FAMILY_SINGLE_DELETE => {
                BatchOp::SingleDelete { family, key: c.slice("single delete.key")? }
            }
            tag::MERGE | tag::FAMILY_MERGE => {
                BatchOp::Merge { family, key: c.slice("merge.key")?, value: c.slice("merge.operand")? }
            }
            tag::DELETE_RANGE | tag::FAMILY_DELETE_RANGE => BatchOp::DeleteRange {
                family,
                begin: c.slice("delete range.begin")?,
                end: c.slice("delete range.end")?,
            },
            tag::BLOB_INDEX | tag::FAMILY_BLOB_INDEX => BatchOp::BlobIndex {
                family,
                key: c.slice("blob index.key")?,
                index: c.slice("blob index.index")?,
            },
            tag::ENTITY | tag::FAMILY_ENTITY => {
                BatchOp::Entity { family, key: c.slice("entity.key")?, entity: c.slice("entity.columns")? }
            }
            tag::TIMED_PUT | tag::FAMILY_TIMED_PUT => timed_put(c, family)?,
            _ => return Self::decode_marker(tag, start, c),
        })
    }

    fn decode_marker(tag: u8, start: Cursor<'a>, c: &mut Cursor<'a>) -> Result<Self, Malformed> {
        Ok(match tag {
            tag::LOG_DATA => BatchOp::LogData(c.slice("log data")?),
            tag::BEGIN_PREPARE => BatchOp::BeginPrepare,
            tag::BEGIN_PERSISTED_PREPARE => BatchOp::BeginPersistedPrepare,
            tag::BEGIN_UNPREPARE => BatchOp::BeginUnprepare,
            tag::END_PREPARE => BatchOp::EndPrepare { xid: c.slice("end prepare.xid")? },
            tag::COMMIT => BatchOp::Commit { xid: c.slice("commit.xid")? },
            tag::COMMIT_WITH_TIMESTAMP => BatchOp::CommitWithTimestamp {
                timestamp: c.slice("commit.timestamp")?,
                xid: c.slice("commit.xid")?,
            },
            tag::ROLLBACK => BatchOp::Rollback { xid: c.slice("rollback.xid")? },
            tag::NOOP => BatchOp::Noop,
            _ => return Err(start.malformed("batch tag", "unknown tag")),
        })
    }
}

fn timed_put<'a>(c: &mut Cursor<'a>, family: FamilyId) -> Result<BatchOp<'a>, Malformed> {
    let key = c.slice("timed put.key")?;
    let start = *c;
    let packed = c.slice("timed put.value")?;
    let (value, time) = packed
        .split_last_chunk::<8>()
        .ok_or_else(|| start.malformed("timed put.value", "shorter than its write time"))?;
    Ok(BatchOp::TimedPut { family, key, value, write_time: u64::from_le_bytes(*time) })
}
