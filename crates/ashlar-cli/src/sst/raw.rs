//! Writes the whole content of a table as text, in sst_dump's form, to a file in the same directory.
//!
//! ```text
//!   HEX    6B6579: 76            key: handle of a block, or value
//!   ASCII  k e y : v             the same, a blank after every byte, zero bytes as \0
//!   ------
//! ```
//! Source: RocksDB `table/block_based/block_based_table_reader.cc` (`DumpTable`), by its output.

use super::{properties, scan};
use crate::Done;
use crate::bytes_text::Hex;
use crate::outcome::Outcome;
use ashlar_base::bytes::put_slice;
use ashlar_base::{Error, InternalKey, Result};
use ashlar_env::Env;
use ashlar_format::table::{BlockHandle, Footer, MetaIndex, TableKind};
use ashlar_table::{Anatomy, DataPlace};
use std::io::Write;
use std::path::{Path, PathBuf};

const LINE: &str = "--------------------------------------\n";
const MAGIC: u64 = 0x88e2_41b7_85f4_cff7;

/// Writes `NAME_dump.txt` to the directory of the table.
pub(super) fn run(env: &Env, table: &Anatomy, out: &mut dyn Write) -> Done {
    if table.footer().kind == TableKind::LevelDb {
        return Err(Error::not_supported("--command=raw of a LevelDB table").into());
    }
    let path = name_of_dump(table.path());
    let mut text = Vec::new();
    let dumped = dump(table, &mut text);
    env.fs.create(&path)?.write_at(&text, 0)?;
    match dumped {
        Ok(()) => Ok(writeln!(out, "raw dump written to file {}", path.display())?),
        Err(e) => Err(Outcome::from(e)),
    }
}

/// The path of the dump: the table's path with another ending.
fn name_of_dump(table: &Path) -> PathBuf {
    let stem = table.file_stem().unwrap_or_default().to_string_lossy();
    table.with_file_name(format!("{stem}_dump.txt"))
}

fn dump(table: &Anatomy, text: &mut Vec<u8>) -> Result<()> {
    footer(table.footer(), text);
    metaindex(table, text);
    text.extend_from_slice(format!("Table Properties:\n{LINE}").as_bytes());
    for line in properties::lines(table.properties()?) {
        text.extend_from_slice(format!("  {line}\n").as_bytes());
    }
    text.extend_from_slice(b"  \n");
    let places = table.data_blocks()?;
    index(&places, text);
    dictionary(table, text)?;
    tombstones(table, text)?;
    places.iter().enumerate().try_for_each(|(i, place)| block(table, i + 1, place, text))?;
    summary(&places, text);
    Ok(())
}

fn footer(footer: &Footer, text: &mut Vec<u8>) {
    let mut lines = format!("Footer Details:\n{LINE}  metaindex handle: {}\n", handle(footer.metaindex));
    if let Some(index) = footer.index {
        lines += &format!("  index handle: {}\n", handle(index));
    }
    lines += &format!("  table_magic_number: {MAGIC}\n  format version: {}\n  \n", footer.version);
    text.extend_from_slice(lines.as_bytes());
}

fn metaindex(table: &Anatomy, text: &mut Vec<u8>) {
    let mut lines = format!("Metaindex Details:\n{LINE}");
    for (name, at) in table.meta().iter() {
        let word = match name {
            MetaIndex::PROPERTIES => "Properties block",
            MetaIndex::DICTIONARY => "Compression dictionary block",
            MetaIndex::RANGE_DELETIONS => "Range deletion block",
            MetaIndex::INDEX => "Index block",
            _ if name.starts_with(b"fullfilter.") || name.starts_with(b"partitionedfilter.") => {
                "Filter block"
            }
            _ => continue,
        };
        lines += &format!("  {word} handle: {}\n", handle(at));
    }
    text.extend_from_slice(lines.as_bytes());
    text.push(b'\n');
}

fn index(places: &[DataPlace], text: &mut Vec<u8>) {
    let head =
        format!("Index Details:\n{LINE}  Block key hex dump: Data block handle\n  Block key ascii\n\n");
    text.extend_from_slice(head.as_bytes());
    for place in places {
        let mut value = Vec::new();
        place.handle.encode(&mut value);
        if let Some(first_key) = &place.first_key {
            put_slice(&mut value, first_key);
        }
        let key = place.separator_user_key();
        text.extend_from_slice(format!("  HEX    {}: {}\n  ASCII  ", Hex(key), Hex(&value)).as_bytes());
        // Zero bytes stay unchanged here.
        key.iter().for_each(|byte| text.extend_from_slice(&[*byte, b' ']));
        text.extend_from_slice(b"\n  ------\n");
    }
    text.push(b'\n');
}

fn dictionary(table: &Anatomy, text: &mut Vec<u8>) -> Result<()> {
    let Some(handle) = table.meta().get(MetaIndex::DICTIONARY) else { return Ok(()) };
    let content = table.block(handle)?.content?;
    let head = format!("Compression Dictionary:\n{LINE}  size (bytes): {}\n\n", content.len());
    text.extend_from_slice(format!("{head}  HEX    {}\n\n", Hex(&content)).as_bytes());
    Ok(())
}

fn tombstones(table: &Anatomy, text: &mut Vec<u8>) -> Result<()> {
    if table.meta().get(MetaIndex::RANGE_DELETIONS).is_none() {
        return Ok(());
    }
    text.extend_from_slice(format!("Range deletions:\n{LINE}").as_bytes());
    scan::tombstones(table, |key, value| entry(key, value, text))?;
    text.push(b'\n');
    Ok(())
}

fn block(table: &Anatomy, ordinal: usize, place: &DataPlace, text: &mut Vec<u8>) -> Result<()> {
    let at = handle(place.handle);
    text.extend_from_slice(format!("Data Block # {ordinal} @ {at}\n{LINE}").as_bytes());
    let shown = table.block(place.handle)?.entries(|key, value| entry(key, value, text));
    text.push(b'\n');
    shown.map_err(|e| e.at(table.path(), place.handle.offset))
}

fn entry(key: &[u8], value: &[u8], text: &mut Vec<u8>) -> Result<()> {
    let key = InternalKey::decode(key).map_err(|e| e.into_error())?.user_key();
    text.extend_from_slice(format!("  HEX    {}: {}\n  ASCII  ", Hex(key), Hex(value)).as_bytes());
    spaced(key, text);
    text.extend_from_slice(b": ");
    spaced(value, text);
    text.extend_from_slice(b"\n  ------\n");
    Ok(())
}

fn spaced(bytes: &[u8], text: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            0 => text.extend_from_slice(b"\\0"),
            other => text.push(*other),
        }
        text.push(b' ');
    }
}

fn summary(places: &[DataPlace], text: &mut Vec<u8>) {
    let sizes = || places.iter().map(|place| place.handle.size);
    let mut lines = format!("Data Block Summary:\n{LINE}  # data blocks: {}\n", places.len());
    if let (Some(min), Some(max)) = (sizes().min(), sizes().max()) {
        let average = sizes().sum::<u64>() as f64 / places.len() as f64;
        lines += &format!("  min data block size: {min}\n  max data block size: {max}\n");
        lines += &format!("  avg data block size: {average:.6}\n");
    }
    text.extend_from_slice(lines.as_bytes());
}

/// A handle as the hexadecimal digits of its bytes.
fn handle(at: BlockHandle) -> String {
    let mut bytes = Vec::new();
    at.encode(&mut bytes);
    Hex(&bytes).to_string()
}
