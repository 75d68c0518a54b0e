//! Explains every block of a table: one line per block, in the order of the file.
//!
//! ```text
//! 1: data at 0, 69 bytes stored, 69 raw, NoCompression, checksum ok: 3 entries, 'blob1' seq 2 blob index .. 'inline' seq 1 put
//! gap at 400: 12 bytes that no handle leads to
//! ```

use crate::Done;
use crate::bytes_text::{counted, internal, quoted};
use crate::outcome::Outcome;
use ashlar_base::{InternalKey, Result};
use ashlar_format::block::{DataBlock, HashIndex, IndexCursor, is_separated};
use ashlar_format::table::{Footer, TableKind};
use ashlar_table::{Anatomy, BlockPlace, BlockRole, StoredBlock};
use std::io::Write;

/// Shows the blocks. Fails at the end if a block is damaged.
pub(super) fn run(table: &Anatomy, hex: bool, out: &mut dyn Write) -> Done {
    let (places, error) = table.places();
    let mut at = 0;
    let mut wrong = error.map(|e| e.to_string()).into_iter().collect::<Vec<_>>();
    for (ordinal, place) in places.iter().enumerate() {
        gap(&mut at, place.handle.offset, out)?;
        write!(out, "{}: {} at {}", ordinal + 1, role(&place.role), place.handle.offset)?;
        match table.block(place.handle) {
            Ok(block) => {
                writeln!(out, ", {}", words(table, place, &block, hex))?;
                wrong.extend(block.content.err().map(|e| e.to_string()));
                at = at.max(place.handle.end_with_trailer().unwrap_or(at));
            }
            Err(e) => {
                writeln!(out, ": cannot be read: {}", e.message())?;
                wrong.push(e.to_string());
            }
        }
    }
    gap(&mut at, table.footer_start(), out)?;
    writeln!(out, "footer at {}: {}", table.footer_start(), footer(table.footer()))?;
    if wrong.is_empty() { Ok(()) } else { Err(Outcome::Failed(wrong.join("\n"))) }
}

fn gap(at: &mut u64, next: u64, out: &mut dyn Write) -> Done {
    if next > *at {
        writeln!(out, "gap at {at}: {} that no handle leads to", counted(next - *at, "byte"))?;
    }
    *at = next.max(*at);
    Ok(())
}

fn footer(footer: &Footer) -> String {
    let context = match footer.checksum.base_context {
        0 => String::new(),
        context => format!(", base context {context:#010x}"),
    };
    match footer.kind {
        TableKind::LevelDb => "LevelDB, checksum Crc32c".to_owned(),
        TableKind::BlockBased => {
            format!("format version {}, checksum {:?}{context}", footer.version, footer.checksum.kind)
        }
    }
}

fn role(role: &BlockRole) -> String {
    let name = match role {
        BlockRole::Data => "data",
        BlockRole::Index => "index",
        BlockRole::IndexPartition => "index partition",
        BlockRole::Filter => "filter",
        BlockRole::FilterIndex => "filter index",
        BlockRole::FilterPartition => "filter partition",
        BlockRole::RangeDeletions => "range deletions",
        BlockRole::Dictionary => "compression dictionary",
        BlockRole::Properties => "properties",
        BlockRole::MetaIndex => "metaindex",
        BlockRole::Other(name) => return format!("meta block {}", name.escape_ascii()),
    };
    name.to_owned()
}

/// The text after the place of a block.
fn words(table: &Anatomy, place: &BlockPlace, block: &StoredBlock, hex: bool) -> String {
    let mut text = format!("{} stored", counted(place.handle.size, "byte"));
    if let Ok(content) = &block.content {
        text += &format!(", {} raw", content.len());
    }
    match block.compression_name(table.footer().kind) {
        Some(name) => text += &format!(", {name}"),
        None => text += &format!(", compression type {:#04x}", block.compression),
    }
    text += if block.checksum_holds { ", checksum ok" } else { ", CHECKSUM WRONG" };
    match (&block.content, contents(table, place, block, hex)) {
        (Ok(_), Ok(contents)) => text + &contents,
        (Ok(_), Err(e)) => format!("{text}, DOES NOT DECODE: {}", e.message()),
        (Err(e), _) if block.checksum_holds => format!("{text}, DOES NOT DECOMPRESS: {}", e.message()),
        (Err(_), _) => text,
    }
}

/// The content of a block, by the block's role.
fn contents(table: &Anatomy, place: &BlockPlace, block: &StoredBlock, hex: bool) -> Result<String> {
    let Ok(content) = &block.content else { return Ok(String::new()) };
    match place.role {
        BlockRole::Data | BlockRole::RangeDeletions => entries(block, content, hex),
        BlockRole::Index | BlockRole::IndexPartition => index(table, content, hex),
        BlockRole::FilterIndex | BlockRole::MetaIndex | BlockRole::Properties => {
            let parsed = DataBlock::parse(content).map_err(|e| e.into_error())?;
            Ok(format!(": {}", counted(parsed.restart_count() as u64, "restart point")))
        }
        _ => Ok(String::new()),
    }
}

fn entries(block: &StoredBlock, content: &[u8], hex: bool) -> Result<String> {
    let (mut count, mut first, mut last) = (0, None, None);
    block.entries(|key, _| {
        count += 1;
        if first.is_none() {
            first = Some(key.to_vec());
        }
        last = Some(key.to_vec());
        Ok(())
    })?;
    let mut text = format!(": {}", counted(count, "entry"));
    if let (Some(first), Some(last)) = (first, last) {
        let word =
            |key: &[u8]| InternalKey::decode(key).map(|key| internal(key, hex)).map_err(|e| e.into_error());
        text += &format!(", {} .. {}", word(&first)?, word(&last)?);
    }
    if is_separated(content) {
        text += ", keys and values apart";
    } else if HashIndex::of(content).is_some() {
        text += ", hash index";
    }
    Ok(text)
}

fn index(table: &Anatomy, content: &[u8], hex: bool) -> Result<String> {
    let format = match table.footer().kind {
        TableKind::LevelDb => Default::default(),
        TableKind::BlockBased => table.properties()?.index_entries().map_err(|e| e.into_error())?,
    };
    let parsed = DataBlock::parse(content).map_err(|e| e.into_error())?;
    let mut cursor = IndexCursor::new(format);
    let (mut count, mut last) = (0, Vec::new());
    cursor.first(&parsed).map_err(|e| e.into_error())?;
    while cursor.is_on_entry() {
        count += 1;
        last = cursor.key().to_vec();
        cursor.next(&parsed).map_err(|e| e.into_error())?;
    }
    let key = match InternalKey::decode(&last) {
        Ok(key) if !format.user_keys => internal(key, hex),
        _ => quoted(&last, hex),
    };
    Ok(format!(": {}, the last separator {key}", counted(count, "entry")))
}
