//! Decodes an edit.

use super::fields::{file_number, internal_key, sequence, whole_slice};
use super::{BlobAddition, BlobGarbage, NewFile, VersionEdit, WalAddition, tag};
use ashlar_base::{Cursor, FamilyId, FileNumber, Level, Malformed};

impl VersionEdit {
    /// Reads an edit: the whole payload of one MANIFEST record. Of a scalar given twice the last one counts.
    ///
    /// # Errors
    /// `Malformed` with the offset in `payload`: an unknown tag that must be understood, or a field that does not
    /// decode.
    pub fn decode(payload: &[u8]) -> Result<VersionEdit, Malformed> {
        let mut edit = VersionEdit::default();
        let mut c = Cursor::new(payload);
        while !c.is_empty() {
            let start = c;
            let tag = c.varint32("edit tag")?;
            if !(edit.decode_scalar(tag, &mut c)?
                || edit.decode_files(tag, &mut c)?
                || edit.decode_extension(tag, &mut c)?)
            {
                return Err(start.malformed("edit tag", "unknown tag"));
            }
        }
        Ok(edit)
    }

    fn decode_scalar(&mut self, tag: u32, c: &mut Cursor<'_>) -> Result<bool, Malformed> {
        match tag {
            tag::COMPARATOR => self.comparator = Some(text(c, "edit.comparator")?),
            tag::LOG_NUMBER => self.log_number = Some(FileNumber(c.varint64("edit.log number")?)),
            tag::NEXT_FILE => self.next_file = Some(FileNumber(c.varint64("edit.next file")?)),
            tag::LAST_SEQUENCE => self.last_seq = Some(sequence(c, "edit.last sequence")?),
            tag::PREV_LOG_NUMBER => {
                self.prev_log_number = Some(FileNumber(c.varint64("edit.previous log number")?));
            }
            tag::MIN_LOG_TO_KEEP => {
                self.min_log_to_keep = Some(FileNumber(c.varint64("edit.min log to keep")?));
            }
            tag::FAMILY => self.family = FamilyId(c.varint32("edit.family")?),
            tag::FAMILY_ADD => self.family_add = Some(c.slice("edit.family name")?.to_vec()),
            tag::FAMILY_DROP => self.family_drop = true,
            tag::MAX_FAMILY => self.max_family = Some(FamilyId(c.varint32("edit.max family")?)),
            tag::ATOMIC_GROUP => self.atomic_group = Some(c.varint32("edit.atomic group")?),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn decode_files(&mut self, tag: u32, c: &mut Cursor<'_>) -> Result<bool, Malformed> {
        match tag {
            tag::COMPACT_CURSOR => {
                let level = level(c)?;
                self.compact_cursors.push((level, internal_key(c, "edit.compact cursor")?));
            }
            tag::DELETED_FILE => {
                let level = level(c)?;
                self.deleted.push((level, file_number(c, "edit.deleted file")?));
            }
            tag::NEW_FILE | tag::NEW_FILE_2 | tag::NEW_FILE_3 | tag::NEW_FILE_4 => {
                let level = level(c)?;
                let file = match tag {
                    tag::NEW_FILE => NewFile::decode_leveldb(c)?,
                    tag::NEW_FILE_2 => NewFile::decode_2(c)?,
                    tag::NEW_FILE_3 => NewFile::decode_3(c)?,
                    _ => NewFile::decode(c)?,
                };
                self.added.push((level, file));
            }
            tag::BLOB_ADDITION | tag::OLD_BLOB_ADDITION => self.blob_added.push(BlobAddition::decode(c)?),
            tag::BLOB_GARBAGE | tag::OLD_BLOB_GARBAGE => self.blob_garbage.push(BlobGarbage::decode(c)?),
            tag::OLD_WAL_ADDITION => self.wal_added.push(WalAddition::decode(c)?),
            tag::OLD_WAL_DELETION => {
                self.wal_deleted = Some(FileNumber(c.varint64("edit.WAL deletion")?));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The tags whose payload is a slice: known ones are looked into, unknown ones kept.
    fn decode_extension(&mut self, tag: u32, c: &mut Cursor<'_>) -> Result<bool, Malformed> {
        if tag & tag::IGNORABLE == 0 {
            return Ok(false);
        }
        let start = *c;
        let payload = c.slice("edit.extension")?;
        match tag {
            tag::DB_ID => {
                let id =
                    std::str::from_utf8(payload).map_err(|_| start.malformed("edit.db id", "not UTF-8"))?;
                self.db_id = Some(id.to_owned());
            }
            tag::FULL_HISTORY_TS_LOW => {
                if payload.is_empty() {
                    return Err(start.malformed("edit.full history timestamp", "empty"));
                }
                self.full_history_ts_low = Some(payload.to_vec());
            }
            tag::WAL_ADDITION => {
                self.wal_added.push(whole_slice(start, payload, "edit.WAL addition", WalAddition::decode)?);
            }
            tag::WAL_DELETION => {
                let number = |c: &mut Cursor<'_>| c.varint64("edit.WAL deletion").map(FileNumber);
                self.wal_deleted = Some(whole_slice(start, payload, "edit.WAL deletion", number)?);
            }
            tag::PERSIST_TIMESTAMPS => match payload {
                [byte] => self.persist_udt = Some(*byte == 1),
                _ => return Err(start.malformed("edit.persist timestamps", "not one byte")),
            },
            tag::COMPACTION_PROGRESS => self.compaction_progress = Some(payload.to_vec()),
            tag::LAST_MANIFEST_SIZE => {
                let size = |c: &mut Cursor<'_>| c.varint64("edit.last MANIFEST size");
                self.last_manifest_size = Some(whole_slice(start, payload, "edit.last MANIFEST size", size)?);
            }
            tag::BEGINNING => {
                let records = |c: &mut Cursor<'_>| c.fixed32("edit.beginning");
                self.beginning = Some(whole_slice(start, payload, "edit.beginning", records)?);
            }
            _ => self.ignored.push((tag, payload.to_vec())),
        }
        Ok(true)
    }
}

fn text(c: &mut Cursor<'_>, field: &'static str) -> Result<String, Malformed> {
    let start = *c;
    let bytes = c.slice(field)?;
    let text = std::str::from_utf8(bytes).map_err(|_| start.malformed(field, "not UTF-8"))?;
    Ok(text.to_owned())
}

fn level(c: &mut Cursor<'_>) -> Result<Level, Malformed> {
    let start = *c;
    let level = c.varint32("edit.level")?;
    u8::try_from(level).map(Level).map_err(|_| start.malformed("edit.level", "no level has this number"))
}
