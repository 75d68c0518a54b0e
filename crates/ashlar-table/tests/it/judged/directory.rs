//! A database directory around tables: RocksDB has no other way to be asked about one by its C functions.

use super::combinations::{Combination, entries};
use crate::fixture::{Entries, identity};
use ashlar_base::{FileNumber, InternalKey, Level, SeqNum};
use ashlar_env::Env;
use ashlar_format::filename::{FileKind, current_content};
use ashlar_format::filter::FilterForm;
use ashlar_format::log_record::{Framing, encode_record};
use ashlar_format::table::{Footer, MetaIndex};
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_table::{TableBuilder, TableIdentity, unique_id_bytes};
use std::path::Path;

pub struct Written {
    pub name: String,
    pub what: String,
    pub entries: Entries,
}

impl Written {
    /// What a reader sees.
    pub fn visible(&self) -> Entries {
        let mut seen = Vec::new();
        let mut visible = Entries::new();
        for (key, value) in &self.entries {
            let (user_key, trailer) = InternalKey::decode(key).unwrap().split();
            if seen != user_key && trailer.type_byte() == 1 {
                visible.push((user_key.to_vec(), value.clone()));
            }
            seen = user_key.to_vec();
        }
        visible
    }
}

pub struct Directory {
    folder: tempfile::TempDir,
    env: Env,
    edit: VersionEdit,
    pub tables: Vec<Written>,
}

impl Directory {
    pub fn new() -> Self {
        let edit = VersionEdit {
            comparator: Some("leveldb.BytewiseComparator".into()),
            log_number: Some(FileNumber(0)),
            last_seq: SeqNum::new(1_000_000),
            ..VersionEdit::default()
        };
        Directory { folder: tempfile::tempdir().unwrap(), env: Env::os().unwrap(), edit, tables: Vec::new() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        self.env.fs.create(&self.path().join(name)).unwrap().write_at(bytes, 0).unwrap();
    }

    /// Writes a table of that shape.
    pub fn add(&mut self, combination: &Combination) {
        let entries = entries(self.tables.len());
        let number = FileNumber(10 + self.tables.len() as u64);
        let name = FileKind::Table(number).name();
        let file = self.env.fs.create(&self.path().join(&name)).unwrap();
        let identity = TableIdentity { number, ..identity() };
        let unique_id = unique_id_bytes(&identity.db_id, &identity.session_id, number.0);
        let mut builder = TableBuilder::new(file, combination.options.clone(), identity).unwrap();
        for (key, value) in &entries {
            builder.add(InternalKey::decode(key).unwrap(), value).unwrap();
        }
        let made = builder.finish().unwrap();
        let seqs = (made.smallest_seq, made.largest_seq);
        let mut file = NewFile::new(number, made.size, (made.smallest, made.largest), seqs);
        (file.unique_id, file.tail_size) = (Some(unique_id), made.tail_size);
        self.edit.add_file(Level(6), file);
        self.tables.push(Written { name, what: combination.what(), entries });
    }

    /// Takes every bit out of the filter, or of all its partitions, of the one table, and makes the checksums right.
    pub fn blank_filter(&mut self) {
        let path = self.path().join(&self.tables[0].name);
        let file = self.env.fs.open_read(&path).unwrap();
        let mut bytes = vec![0; file.len() as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        let (footer, _) = Footer::decode(&bytes[bytes.len() - Footer::LEN..], bytes.len() as u64).unwrap();
        let start = footer.metaindex.offset as usize;
        let meta = MetaIndex::decode(&bytes[start..start + footer.metaindex.size as usize]).unwrap();
        let place = meta.filter().unwrap();
        let (mut from, end) = match meta.get(MetaIndex::FULL_FILTER) {
            Some(whole) => (whole.offset as usize, (whole.offset + whole.size) as usize + 5),
            // Partitions stand before their index, behind the data.
            None => (bytes_of_data(&bytes, &meta, &footer), place.handle.offset as usize),
        };
        while from < end {
            let len = (1..=end - from - 5).find(|len| {
                let stored = &bytes[from..from + len + 5];
                footer.checksum.verify(from as u64, stored).is_ok()
                    && !matches!(FilterForm::decode(&stored[..*len]), FilterForm::Everything(_))
            });
            let len = len.expect("a filter block ends somewhere");
            bytes[from..from + len - 5].fill(0);
            let trailer = footer.checksum.trailer(from as u64, &bytes[from..from + len], 0);
            bytes[from + len..from + len + 5].copy_from_slice(&trailer);
            from += len + 5;
        }
        let name = self.tables[0].name.clone();
        self.put(&name, &bytes);
    }

    /// Writes MANIFEST and CURRENT.
    pub fn finish(&mut self) {
        self.edit.next_file = Some(FileNumber(100 + self.tables.len() as u64));
        let mut log = Vec::new();
        encode_record(&mut log, Framing::Legacy, 0, 0, &self.edit.to_bytes());
        self.put(&FileKind::Manifest(FileNumber(5)).name(), &log);
        self.put("CURRENT", current_content(FileNumber(5)).as_bytes());
        self.put("IDENTITY", identity().db_id.as_bytes());
    }
}

fn bytes_of_data(bytes: &[u8], meta: &MetaIndex, footer: &Footer) -> usize {
    let place = meta.get(MetaIndex::PROPERTIES).unwrap();
    let stored = &bytes[place.offset as usize..][..place.size as usize + 5];
    let (block, _) = footer.checksum.verify(place.offset, stored).unwrap();
    ashlar_format::table::Properties::decode(block).unwrap().tail_start_offset.unwrap() as usize
}
