//! A table that enters a level: tags 7, 100, 102 and 103.
//!
//! ```text
//! 103: level | number | size | smallest: slice | largest: slice | smallest seq | largest seq | custom fields | 01
//! ```
//! 1. Custom fields are written in RocksDB's order, unknown ones last.
//! 2. Fields that one release always writes and another leaves out are options: presence survives a round trip.

use super::fields::{CustomFields, file_number, internal_key, put_custom, put_text, sequence, whole_slice};
use ashlar_base::bytes::{put_slice, put_varint32, put_varint64};
use ashlar_base::{Cursor, FileNumber, InternalKeyBuf, Malformed, SeqNum};

/// The custom tags.
mod custom {
    pub const END: u32 = 1;
    pub const NEED_COMPACTION: u32 = 2;
    pub const MIN_LOG_TO_KEEP: u32 = 3;
    pub const OLDEST_BLOB_FILE: u32 = 4;
    pub const OLDEST_ANCESTOR_TIME: u32 = 5;
    pub const FILE_CREATION_TIME: u32 = 6;
    pub const CHECKSUM: u32 = 7;
    pub const CHECKSUM_FUNCTION: u32 = 8;
    pub const TEMPERATURE: u32 = 9;
    pub const MIN_TIMESTAMP: u32 = 10;
    pub const MAX_TIMESTAMP: u32 = 11;
    pub const UNIQUE_ID: u32 = 12;
    pub const EPOCH: u32 = 13;
    pub const RANGE_DELETION_SIZE: u32 = 14;
    pub const TAIL_SIZE: u32 = 15;
    pub const TIMESTAMPS_PERSISTED: u32 = 16;
    pub const OPEN_METADATA: u32 = 17;
    /// A tag with this bit must be understood.
    pub const MANDATORY: u32 = 0x40;
    pub const PATH_ID: u32 = 0x41;
}

/// A table as the MANIFEST describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// Its number; at most 62 bits.
    pub number: FileNumber,
    /// Its length in bytes.
    pub size: u64,
    /// The first internal key, range tombstones included.
    pub smallest: InternalKeyBuf,
    /// The last internal key, range tombstones included; the end of one is a key of type range deletion.
    pub largest: InternalKeyBuf,
    /// The lowest sequence in it.
    pub smallest_seq: SeqNum,
    /// The highest sequence in it.
    pub largest_seq: SeqNum,
    /// Read from tag 7 (LevelDB): both sequences are unknown and zero here, and custom fields are not written.
    /// The caller that knows the sequences sets them and clears this.
    pub sequences_unknown: bool,
    /// Which of the database's directories it is in: 0 to 3.
    pub path_id: u8,
    /// Order of arrival among the tables of a family, from 1; 0 = unknown, not written.
    pub epoch: u64,
    /// Write time of the oldest entry, seconds since 1970; 0 = unknown. RocksDB always writes it.
    pub oldest_ancestor_time: Option<u64>,
    /// When the file was made, seconds since 1970; 0 = unknown. RocksDB always writes it.
    pub file_creation_time: Option<u64>,
    /// The checksum of the whole file.
    pub checksum: Option<Vec<u8>>,
    /// The function of the checksum. Without a checksum, 7.8 writes `Unknown` and an empty checksum.
    pub checksum_function: Option<Vec<u8>>,
    /// 0 unknown, 4 hot, 8 warm, 10 cool, 12 cold, 16 ice.
    pub temperature: u8,
    /// A table properties collector requested a compaction.
    pub need_compaction: bool,
    /// The old place of an edit's `min_log_to_keep`, in the first new file of a snapshot.
    pub min_log_to_keep: Option<FileNumber>,
    /// The oldest blob file it points to; 0 = none.
    pub oldest_blob_file: FileNumber,
    /// The unique id, as RocksDB derives it from the table's properties. RocksDB verifies it when it opens the table.
    pub unique_id: Option<[u8; 16]>,
    /// Estimated bytes that its range tombstones delete below.
    pub range_deletion_size: u64,
    /// Bytes from the end of the data blocks to the end of the file; 0 = unknown.
    pub tail_size: u64,
    /// The smallest user timestamp; empty = none.
    pub min_timestamp: Vec<u8>,
    /// The largest user timestamp; empty = none.
    pub max_timestamp: Vec<u8>,
    /// False when user timestamps were cut off keys and boundaries.
    pub timestamps_persisted: bool,
    /// Opaque metadata for opening the file; empty = none.
    pub open_metadata: Vec<u8>,
    /// Unknown custom fields.
    pub ignored: CustomFields,
}

impl NewFile {
    /// A table with its fixed fields; everything else is at the value that is not written.
    pub fn new(
        number: FileNumber,
        size: u64,
        (smallest, largest): (InternalKeyBuf, InternalKeyBuf),
        (smallest_seq, largest_seq): (SeqNum, SeqNum),
    ) -> Self {
        NewFile {
            number,
            size,
            smallest,
            largest,
            smallest_seq,
            largest_seq,
            sequences_unknown: false,
            path_id: 0,
            epoch: 0,
            oldest_ancestor_time: None,
            file_creation_time: None,
            checksum: None,
            checksum_function: None,
            temperature: 0,
            need_compaction: false,
            min_log_to_keep: None,
            oldest_blob_file: FileNumber(0),
            unique_id: None,
            range_deletion_size: 0,
            tail_size: 0,
            min_timestamp: Vec::new(),
            max_timestamp: Vec::new(),
            timestamps_persisted: true,
            open_metadata: Vec::new(),
            ignored: Vec::new(),
        }
    }

    /// Reads tag 7, after the level.
    pub(super) fn decode_leveldb(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let number = file_number(c, "new file.number")?;
        let size = c.varint64("new file.size")?;
        let keys = boundaries(c)?;
        let mut file = NewFile::new(number, size, keys, (SeqNum::ZERO, SeqNum::ZERO));
        file.sequences_unknown = true;
        Ok(file)
    }

    /// Reads tag 100, after the level.
    pub(super) fn decode_2(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let number = file_number(c, "new file.number")?;
        Self::decode_fixed(c, number)
    }

    /// Reads tag 102, after the level.
    pub(super) fn decode_3(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let number = file_number(c, "new file.number")?;
        let start = *c;
        let path_id = u8::try_from(c.varint32("new file.path id")?).unwrap_or(u8::MAX);
        let path_id = checked_path_id(start, path_id)?;
        Ok(NewFile { path_id, ..Self::decode_fixed(c, number)? })
    }

    fn decode_fixed(c: &mut Cursor<'_>, number: FileNumber) -> Result<Self, Malformed> {
        let size = c.varint64("new file.size")?;
        let keys = boundaries(c)?;
        let smallest_seq = sequence(c, "new file.smallest sequence")?;
        let largest_seq = sequence(c, "new file.largest sequence")?;
        Ok(NewFile::new(number, size, keys, (smallest_seq, largest_seq)))
    }

    /// Reads tag 103, after the level.
    pub(super) fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut file = Self::decode_2(c)?;
        loop {
            let start = *c;
            let tag = c.varint32("new file.custom tag")?;
            if tag == custom::END {
                return Ok(file);
            }
            let at_field = *c;
            let field = c.slice("new file.custom field")?;
            if !(file.decode_text(tag, at_field, field)? || file.decode_number(tag, at_field, field)?) {
                if tag & custom::MANDATORY != 0 {
                    return Err(start.malformed("new file.custom tag", "unknown tag"));
                }
                file.ignored.push((tag, field.to_vec()));
            }
        }
    }

    fn decode_number(&mut self, tag: u32, at: Cursor<'_>, field: &[u8]) -> Result<bool, Malformed> {
        let varint = |name| whole_slice(at, field, name, |c| c.varint64(name));
        match tag {
            custom::OLDEST_BLOB_FILE => {
                self.oldest_blob_file = FileNumber(varint("new file.oldest blob file")?)
            }
            custom::OLDEST_ANCESTOR_TIME => {
                self.oldest_ancestor_time = Some(varint("new file.oldest ancestor time")?);
            }
            custom::FILE_CREATION_TIME => self.file_creation_time = Some(varint("new file.creation time")?),
            custom::EPOCH => self.epoch = varint("new file.epoch")?,
            custom::RANGE_DELETION_SIZE => self.range_deletion_size = varint("new file.range deletion size")?,
            custom::TAIL_SIZE => self.tail_size = varint("new file.tail size")?,
            custom::MIN_LOG_TO_KEEP => {
                let name = "new file.min log to keep";
                let number = whole_slice(at, field, name, |c| c.fixed64(name))?;
                self.min_log_to_keep = Some(FileNumber(number));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn decode_text(&mut self, tag: u32, at: Cursor<'_>, field: &[u8]) -> Result<bool, Malformed> {
        let byte = |name| whole_slice(at, field, name, |c| c.u8(name));
        match tag {
            custom::NEED_COMPACTION => self.need_compaction = byte("new file.need compaction")? == 1,
            custom::CHECKSUM => self.checksum = Some(field.to_vec()),
            custom::CHECKSUM_FUNCTION => self.checksum_function = Some(field.to_vec()),
            custom::TEMPERATURE => self.temperature = byte("new file.temperature")?,
            custom::MIN_TIMESTAMP => self.min_timestamp = field.to_vec(),
            custom::MAX_TIMESTAMP => self.max_timestamp = field.to_vec(),
            custom::UNIQUE_ID => {
                let name = "new file.unique id";
                self.unique_id = Some(whole_slice(at, field, name, |c| c.array(name))?);
            }
            custom::TIMESTAMPS_PERSISTED => {
                self.timestamps_persisted = byte("new file.timestamps persisted")? == 1;
            }
            custom::OPEN_METADATA => self.open_metadata = field.to_vec(),
            custom::PATH_ID => self.path_id = checked_path_id(at, byte("new file.path id")?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends everything after the level, in the form of tag 103, or of tag 7 when the sequences are unknown.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.number.0);
        put_varint64(out, self.size);
        put_slice(out, self.smallest.as_key().encoded());
        put_slice(out, self.largest.as_key().encoded());
        if self.sequences_unknown {
            return;
        }
        put_varint64(out, self.smallest_seq.get());
        put_varint64(out, self.largest_seq.get());
        put_number(out, custom::OLDEST_ANCESTOR_TIME, self.oldest_ancestor_time);
        put_number(out, custom::FILE_CREATION_TIME, self.file_creation_time);
        put_number(out, custom::EPOCH, nonzero(self.epoch));
        put_text(out, custom::CHECKSUM, self.checksum.as_deref());
        put_text(out, custom::CHECKSUM_FUNCTION, self.checksum_function.as_deref());
        put_text(out, custom::PATH_ID, (self.path_id != 0).then_some(&[self.path_id]));
        put_text(out, custom::TEMPERATURE, (self.temperature != 0).then_some(&[self.temperature]));
        put_text(out, custom::NEED_COMPACTION, self.need_compaction.then_some(&[1]));
        let min_log = self.min_log_to_keep.map(|n| n.0.to_le_bytes());
        put_text(out, custom::MIN_LOG_TO_KEEP, min_log.as_ref().map(|b| b.as_slice()));
        put_number(out, custom::OLDEST_BLOB_FILE, nonzero(self.oldest_blob_file.0));
        put_text(out, custom::UNIQUE_ID, self.unique_id.as_ref().map(|b| b.as_slice()));
        put_number(out, custom::RANGE_DELETION_SIZE, nonzero(self.range_deletion_size));
        put_number(out, custom::TAIL_SIZE, nonzero(self.tail_size));
        put_text(out, custom::MIN_TIMESTAMP, nonempty(&self.min_timestamp));
        put_text(out, custom::MAX_TIMESTAMP, nonempty(&self.max_timestamp));
        put_text(out, custom::TIMESTAMPS_PERSISTED, (!self.timestamps_persisted).then_some(&[0]));
        put_text(out, custom::OPEN_METADATA, nonempty(&self.open_metadata));
        put_custom(out, &self.ignored);
        put_varint32(out, custom::END);
    }
}

fn nonzero(value: u64) -> Option<u64> {
    (value != 0).then_some(value)
}

fn nonempty(bytes: &[u8]) -> Option<&[u8]> {
    (!bytes.is_empty()).then_some(bytes)
}

fn put_number(out: &mut Vec<u8>, tag: u32, value: Option<u64>) {
    if let Some(value) = value {
        put_varint32(out, tag);
        put_varint32(out, u32::try_from(ashlar_base::bytes::varint_len(value)).unwrap_or(0));
        put_varint64(out, value);
    }
}

fn checked_path_id(at: Cursor<'_>, path_id: u8) -> Result<u8, Malformed> {
    if path_id > 3 { Err(at.malformed("new file.path id", "over 3")) } else { Ok(path_id) }
}

fn boundaries(c: &mut Cursor<'_>) -> Result<(InternalKeyBuf, InternalKeyBuf), Malformed> {
    Ok((internal_key(c, "new file.smallest")?, internal_key(c, "new file.largest")?))
}
