//! Files in memory and entries by the handful.

use ashlar_base::{
    FamilyId, FileNumber, InternalIterator, InternalKey, InternalKeyBuf, Order, Result, RunCursor, SeqNum,
    Trailer, ValueType, Window,
};
use ashlar_cache::FramePool;
use ashlar_env::{Env, ReadFile};
use ashlar_format::compress::Compression;
use ashlar_table::{
    ReadHow, ReaderOptions, TableBuilder, TableIdentity, TableOptions, TableReader, TableSummary,
};
use std::path::Path;
use std::sync::Arc;

/// Owned entries: encoded internal key, value.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

pub fn key(user_key: &[u8], seq: u64, value_type: ValueType) -> InternalKeyBuf {
    InternalKeyBuf::new(user_key, Trailer::new(SeqNum::new(seq).unwrap(), value_type))
}

pub fn identity() -> TableIdentity {
    TableIdentity {
        db_id: "b568f073-d669-4e2c-93c8-14823c10d389".into(),
        session_id: "VMG8AAPICQFI0D3CFPWR".into(),
        number: FileNumber(9),
        family_id: FamilyId::DEFAULT,
        family_name: "default".into(),
        creation_time: 1_700_000_000,
        ..TableIdentity::default()
    }
}

/// Writes a table and returns its bytes.
pub fn write(options: &TableOptions, entries: &Entries) -> (Vec<u8>, TableSummary) {
    let env = Env::mem();
    let path = Path::new("/db/000009.sst");
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    let mut builder = TableBuilder::new(env.fs.create(path).unwrap(), options.clone(), identity()).unwrap();
    for (key, value) in entries {
        builder.add(InternalKey::decode(key).unwrap(), value).unwrap();
    }
    assert_eq!(builder.entries(), entries.len() as u64);
    let estimate = builder.file_size_estimate();
    let summary = builder.finish().unwrap();
    // The open block and the index count with their raw size.
    if options.compression == Compression::None {
        assert!(estimate.abs_diff(summary.size) < 4096 + summary.size / 4, "{estimate} {}", summary.size);
    }
    let file = env.fs.open_read(path).unwrap();
    let mut bytes = vec![0; file.len() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes.len() as u64, summary.size);
    (bytes, summary)
}

/// A file in memory with these bytes.
pub fn file(bytes: &[u8]) -> Arc<dyn ReadFile> {
    let env = Env::mem();
    let path = Path::new("/db/000009.sst");
    env.fs.create_dir_all(Path::new("/db")).unwrap();
    env.fs.create(path).unwrap().write_at(bytes, 0).unwrap();
    env.fs.open_read(path).unwrap()
}

pub fn open_with(bytes: &[u8], options: ReaderOptions) -> Result<Arc<TableReader>> {
    TableReader::open(file(bytes), bytes.len() as u64, options)
}

pub fn open(bytes: &[u8], order: Order) -> Result<Arc<TableReader>> {
    open_with(bytes, ReaderOptions::new(order, FramePool::new(1 << 20), FileNumber(9)))
}

/// All entries, front to back, through the pool.
pub fn forward(table: &Arc<TableReader>) -> Result<Entries> {
    let mut iter = table.iter(ReadHow::default());
    let mut entries = Vec::new();
    iter.first()?;
    while let Some(entry) = iter.entry() {
        entries.push((entry.key.encoded().to_vec(), entry.value.to_vec()));
        iter.next()?;
    }
    Ok(entries)
}

/// All entries, back to front, past the pool; in forward order.
pub fn backward(table: &Arc<TableReader>) -> Result<Entries> {
    let mut iter = table.iter(ReadHow { fill_cache: false, ..ReadHow::default() });
    let mut entries = Vec::new();
    iter.last()?;
    while let Some(entry) = iter.entry() {
        entries.push((entry.key.encoded().to_vec(), entry.value.to_vec()));
        iter.prev()?;
    }
    entries.reverse();
    Ok(entries)
}

/// What is left under a window cursor. Each window is read twice: the second time after the cursor went on.
pub fn drain(cursor: &mut dyn RunCursor) -> Result<Entries> {
    let content = |window: &Window| -> Entries {
        let entries = (0..window.len()).map(|i| window.entry(i).unwrap());
        entries.map(|entry| (entry.key.encoded().to_vec(), entry.value.to_vec())).collect()
    };
    let (mut window, mut passed) = (Window::new(), Window::new());
    let mut entries = Vec::new();
    while cursor.window(&mut window)? {
        assert!(entries.ends_with(&content(&passed)));
        entries.extend(content(&window));
        std::mem::swap(&mut window, &mut passed);
    }
    assert!(window.is_empty());
    Ok(entries)
}

/// All entries through the cursor of compaction.
pub fn windows(table: &Arc<TableReader>) -> Result<Entries> {
    let mut cursor = table.cursor(1 << 12);
    cursor.seek(None)?;
    drain(cursor.as_mut())
}
