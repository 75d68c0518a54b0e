//! Tag 8202: how far a compaction came before it was interrupted. Only in the files `COMPACTION_PROGRESS-N`.
//!
//! ```text
//! progress: { tag: varint32, slice }* 01       2 next internal key   3 records read: varint64   4 outputs   5 the same of
//!                                              the level in front of the last
//! outputs:  { tag: varint32, slice }* 01       2 files: count: varint32, count * slice { 103, level -1, new file }
//!                                              3 records written: varint64
//! ```
//! 1. An unknown tag with bit 0x10000 may be passed over, and is kept; any other is damage.
//!
//! Source: RocksDB `db/version_edit.h` (`SubcompactionProgress`), `db/version_edit.cc`.

use super::fields::{CustomFields, internal_key, put_custom, whole_slice};
use super::{NewFile, tag};
use ashlar_base::bytes::{put_slice, put_varint32, put_varint64};
use ashlar_base::{Cursor, InternalKeyBuf, Malformed};

const END: u32 = 1;
const NEXT_KEY: u32 = 2;
const INPUT_RECORDS: u32 = 3;
const OUTPUT: u32 = 4;
const PROXIMAL: u32 = 5;
const FILES: u32 = 2;
const OUTPUT_RECORDS: u32 = 3;
/// An unknown tag with this bit may be passed over.
const IGNORABLE: u32 = 0x1_0000;
/// The level of files that are in no level yet: -1 in 32 bits.
const NO_LEVEL: u32 = u32::MAX;

/// What a compaction, or one of its parts, has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompactionProgress {
    /// Where it goes on; `None` = at the start.
    pub next_key: Option<InternalKeyBuf>,
    /// Entries read.
    pub input_records: u64,
    /// What it wrote for its output level.
    pub output: Option<OutputProgress>,
    /// What it wrote for the level in front of the last.
    pub proximal: Option<OutputProgress>,
    /// Unknown fields.
    pub ignored: CustomFields,
}

/// The tables written for one level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputProgress {
    /// The tables, finished.
    pub files: Vec<NewFile>,
    /// Entries written.
    pub records: u64,
    /// Unknown fields.
    pub ignored: CustomFields,
}

/// Reads `{ tag, slice }* 01`, handing each field to `known`, which says whether it knows the tag.
fn fields(
    c: &mut Cursor<'_>,
    mut known: impl FnMut(u32, Cursor<'_>, &[u8]) -> Result<bool, Malformed>,
) -> Result<CustomFields, Malformed> {
    let mut ignored = CustomFields::new();
    loop {
        let start = *c;
        let tag = c.varint32("progress.tag")?;
        if tag == END {
            return Ok(ignored);
        }
        let at = *c;
        let field = c.slice("progress.field")?;
        if !known(tag, at, field)? {
            if tag & IGNORABLE == 0 {
                return Err(start.malformed("progress.tag", "unknown tag"));
            }
            ignored.push((tag, field.to_vec()));
        }
    }
}

impl CompactionProgress {
    /// Reads the payload of the tag, [`super::VersionEdit::compaction_progress`].
    ///
    /// # Errors
    /// `Malformed`: an unknown tag that must be understood, or a field that does not decode.
    pub fn decode(payload: &[u8]) -> Result<CompactionProgress, Malformed> {
        let mut progress = CompactionProgress::default();
        let mut c = Cursor::new(payload);
        progress.ignored = fields(&mut c, |tag, at, field| {
            match tag {
                // The key is the whole field: reading it again as a slice keeps its checks.
                NEXT_KEY => progress.next_key = Some(internal_key(&mut { at }, "progress.next key")?),
                INPUT_RECORDS => {
                    let name = "progress.input records";
                    progress.input_records = whole_slice(at, field, name, |c| c.varint64(name))?;
                }
                OUTPUT => {
                    let name = "progress.output";
                    progress.output = Some(whole_slice(at, field, name, OutputProgress::decode)?);
                }
                PROXIMAL => {
                    let name = "progress.proximal output";
                    progress.proximal = Some(whole_slice(at, field, name, OutputProgress::decode)?);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        c.finish("progress")?;
        Ok(progress)
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        if let Some(key) = &self.next_key {
            put_varint32(out, NEXT_KEY);
            put_slice(out, key.as_key().encoded());
        }
        put_count(out, INPUT_RECORDS, self.input_records);
        for (tag, level) in [(OUTPUT, &self.output), (PROXIMAL, &self.proximal)] {
            if let Some(level) = level {
                let mut field = Vec::new();
                level.encode(&mut field);
                put_varint32(out, tag);
                put_slice(out, &field);
            }
        }
        put_custom(out, &self.ignored);
        put_varint32(out, END);
    }
}

impl OutputProgress {
    fn decode(c: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let mut level = OutputProgress::default();
        level.ignored = fields(c, |tag, at, field| {
            match tag {
                FILES => level.files = whole_slice(at, field, "progress.files", decode_files)?,
                OUTPUT_RECORDS => {
                    let name = "progress.output records";
                    level.records = whole_slice(at, field, name, |c| c.varint64(name))?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(level)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let mut files = Vec::new();
        put_varint32(&mut files, u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        for file in &self.files {
            let mut record = Vec::new();
            put_varint32(&mut record, tag::NEW_FILE_4);
            put_varint32(&mut record, NO_LEVEL);
            file.encode(&mut record);
            put_slice(&mut files, &record);
        }
        put_varint32(out, FILES);
        put_slice(out, &files);
        put_count(out, OUTPUT_RECORDS, self.records);
        put_custom(out, &self.ignored);
        put_varint32(out, END);
    }
}

fn decode_files(c: &mut Cursor<'_>) -> Result<Vec<NewFile>, Malformed> {
    let start = *c;
    let count = c.varint32("progress.files")? as usize;
    if count > c.rest().len() {
        return Err(start.malformed("progress.files", "more files than bytes"));
    }
    let mut files = Vec::new();
    for _ in 0..count {
        let at = *c;
        let record = c.slice("progress.file")?;
        files.push(whole_slice(at, record, "progress.file", decode_file)?);
    }
    Ok(files)
}

fn decode_file(c: &mut Cursor<'_>) -> Result<NewFile, Malformed> {
    let start = *c;
    if c.varint32("progress.file tag")? != tag::NEW_FILE_4 {
        return Err(start.malformed("progress.file tag", "not a new file"));
    }
    let start = *c;
    if c.varint32("progress.file level")? != NO_LEVEL {
        return Err(start.malformed("progress.file level", "a file in a level"));
    }
    NewFile::decode(c)
}

fn put_count(out: &mut Vec<u8>, tag: u32, count: u64) {
    let mut field = Vec::new();
    put_varint64(&mut field, count);
    put_varint32(out, tag);
    put_slice(out, &field);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::{FileNumber, SeqNum, Trailer, ValueType};

    fn file(number: u64) -> NewFile {
        let seq = SeqNum::new(7).unwrap();
        let key = |k: &[u8]| InternalKeyBuf::new(k, Trailer::new(seq, ValueType::Put));
        let mut file = NewFile::new(FileNumber(number), 1000, (key(b"a"), key(b"m")), (seq, seq));
        file.oldest_ancestor_time = Some(1_700_000_000);
        file
    }

    fn sample() -> CompactionProgress {
        let seq = SeqNum::new(300).unwrap();
        CompactionProgress {
            next_key: Some(InternalKeyBuf::new(b"next", Trailer::new(seq, ValueType::Delete))),
            input_records: 1 << 40,
            output: Some(OutputProgress {
                files: vec![file(12), file(13)],
                records: 500,
                ignored: vec![(IGNORABLE | 9, b"later".to_vec())],
            }),
            proximal: Some(OutputProgress::default()),
            ignored: vec![(IGNORABLE, Vec::new())],
        }
    }

    #[test]
    fn comes_out_as_it_went_in() {
        for progress in [sample(), CompactionProgress::default()] {
            let mut bytes = Vec::new();
            progress.encode(&mut bytes);
            assert_eq!(CompactionProgress::decode(&bytes), Ok(progress));
        }
        // The layout by hand: nothing but three records read.
        let plain = CompactionProgress::decode(&[3, 1, 3, 1]).unwrap();
        assert_eq!(plain, CompactionProgress { input_records: 3, ..CompactionProgress::default() });
        let files = CompactionProgress::decode(&[3, 1, 0, 4, 8, 2, 1, 0, 3, 1, 9, 1, 1, 1]);
        assert!(files.is_err(), "a byte behind the level's end");
        let files = CompactionProgress::decode(&[3, 1, 0, 4, 7, 2, 1, 0, 3, 1, 9, 1, 1]).unwrap();
        assert_eq!(files.output.unwrap().records, 9);
    }

    #[test]
    fn cuts_and_lies_are_refused() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        for cut in 0..bytes.len() {
            assert!(CompactionProgress::decode(&bytes[..cut]).is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x41;
            let _ = CompactionProgress::decode(&flipped);
        }
        let what = |bytes: &[u8]| CompactionProgress::decode(bytes).unwrap_err().what;
        assert_eq!(what(&[9, 0, 1]), "unknown tag");
        assert_eq!(what(&[1, 0]), "trailing bytes");
        assert_eq!(what(&[4, 9, 2, 5, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 1]), "more files than bytes");
        assert_eq!(what(&[4, 6, 2, 3, 1, 1, 100, 1, 1]), "not a new file");
        assert_eq!(what(&[4, 7, 2, 4, 1, 2, 103, 0, 1, 1]), "a file in a level");
        assert_eq!(what(&[2, 3, 1, 2, 3, 1]), "shorter than eight bytes");
    }
}
