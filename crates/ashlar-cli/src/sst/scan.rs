//! Reads entries in the order of the index, within bounds.
//!
//! `--to` and `--prefix` end the scan of a table at the first key beyond them in byte order, as in sst_dump. `--from`
//! follows the comparator of the table if that is a built-in one.

use super::{EntryForm, SstArguments};
use crate::Done;
use crate::bytes_text::{Hex, parse_bytes};
use crate::outcome::Outcome;
use ashlar_base::{Error, InternalKey, Order, Result};
use ashlar_table::Anatomy;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

/// The bounds of a scan, and the number of entries still to read.
#[derive(Clone, Debug)]
pub(super) struct Range {
    from: Vec<u8>,
    to: Vec<u8>,
    prefix: Vec<u8>,
    /// `None`: all.
    left: Option<u64>,
}

impl Range {
    pub(super) fn new(arguments: &SstArguments) -> std::result::Result<Range, Outcome> {
        let key = |flag: &Option<OsString>| match flag.as_deref() {
            Some(text) => parse_bytes(text.as_bytes(), arguments.input_key_hex).map_err(Outcome::Usage),
            None => Ok(Vec::new()),
        };
        let prefix = key(&arguments.prefix)?;
        let from = if prefix.is_empty() { key(&arguments.from)? } else { prefix.clone() };
        let left = (arguments.read_num > 0).then_some(arguments.read_num);
        Ok(Range { from, to: key(&arguments.to)?, prefix, left })
    }

    /// The line with the bounds.
    pub(super) fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "from [{}] to [{}]", Hex(&self.from), Hex(&self.to))
    }

    /// Whether the requested number of entries has been read.
    pub(super) fn is_used_up(&self) -> bool {
        self.left == Some(0)
    }

    fn is_before(&self, order: &Order, user_key: &[u8]) -> bool {
        !self.from.is_empty() && order.compare(user_key, &self.from).is_lt()
    }

    fn is_behind(&self, user_key: &[u8]) -> bool {
        (!self.to.is_empty() && user_key >= self.to.as_slice()) || !user_key.starts_with(&self.prefix)
    }
}

/// Why the walk over a table stopped before its end.
enum Stop {
    /// The range or the number of entries is exhausted.
    Enough,
    /// The output failed.
    Output(io::Error),
}

/// Reads the entries in `range`, and prints them when the command is `scan`.
pub(super) fn run(table: &Anatomy, range: &mut Range, arguments: &SstArguments, out: &mut dyn Write) -> Done {
    let shown = arguments.command == super::SstCommand::Scan;
    let hex = arguments.output_hex;
    let form =
        EntryForm { key_hex: hex, value_hex: hex, blob_places: arguments.decode_blob_index, columns: false };
    let properties = table.properties()?;
    let order = properties.comparator.as_deref().and_then(Order::by_name).unwrap_or_default();
    let global_seq = properties.global_seqno.filter(|seq| *seq != 0);
    for place in table.data_blocks()? {
        if range.is_before(&order, place.separator_user_key()) {
            continue;
        }
        let mut stop = None;
        let at_block = |e: Error| e.at(table.path(), place.handle.offset);
        let walked = table.block(place.handle)?.entries(|key, value| {
            if stop.is_some() {
                return Ok(());
            }
            let (user_key, trailer) = InternalKey::decode(key).map_err(|e| e.into_error())?.split();
            if range.is_before(&order, user_key) {
                return Ok(());
            }
            if range.is_behind(user_key) || range.is_used_up() {
                stop = Some(Stop::Enough);
                return Ok(());
            }
            range.left = range.left.map(|left| left.saturating_sub(1));
            if shown {
                let seq = global_seq.unwrap_or(trailer.seq().get());
                let line = form.print((user_key, seq, trailer), value, out);
                stop = line.err().map(Stop::Output);
            }
            Ok(())
        });
        walked.map_err(at_block)?;
        match stop {
            None => {}
            Some(Stop::Enough) => return Ok(()),
            Some(Stop::Output(e)) => return Err(e.into()),
        }
    }
    Ok(())
}

/// All range tombstones of a table, as stored.
pub(super) fn tombstones(table: &Anatomy, mut each: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
    use ashlar_format::table::MetaIndex;
    let Some(handle) = table.meta().get(MetaIndex::RANGE_DELETIONS) else { return Ok(()) };
    table.block(handle)?.entries(&mut each).map_err(|e| e.at(table.path(), handle.offset))
}
