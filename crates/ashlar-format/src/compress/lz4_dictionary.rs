//! Decodes LZ4 blocks that refer to a dictionary. Nearly all blocks have none and use the faster decoder of `lz4_flex`.
//! Its own support of dictionaries is not used, because a second copy of that decoder costs the first its inlining.
//!
//! ```text
//! sequence: | token: u8 | literal length: u8 * | literals | distance: u16 LE | match length: u8 * |
//! token: high half literal length, low half match length - 4; 15 = more bytes follow, each added, up to one below 255
//! ```
//! 1. The last sequence ends after its literals.
//! 2. A match begins at most 65535 bytes back, in the output so far, or in the dictionary as if it preceded the output.
//!
//! Source: the LZ4 block format description (`lz4_Block_format.md`).

use ashlar_base::Malformed;
use ashlar_base::bytes::Cursor;

const MIN_MATCH: usize = 4;

/// Fills `raw` exactly.
#[cold]
pub(super) fn decode(stream: &[u8], dictionary: &[u8], raw: &mut [u8]) -> Result<(), Malformed> {
    let overrun = || Malformed { field: "compressed block", at: 0, what: "not an LZ4 block of its length" };
    let (mut c, mut made) = (Cursor::new(stream), 0_usize);
    loop {
        let token = c.u8("compressed block")?;
        let literals = length(&mut c, token >> 4)?;
        let literals = c.bytes(literals, "compressed block")?;
        let to = raw.get_mut(made..made + literals.len()).ok_or_else(overrun)?;
        to.copy_from_slice(literals);
        made += literals.len();
        if c.is_empty() {
            return if made == raw.len() { Ok(()) } else { Err(overrun()) };
        }
        let distance = usize::from(c.fixed16("compressed block")?);
        let mut len = length(&mut c, token & 15)?.saturating_add(MIN_MATCH);
        if distance == 0 || len > raw.len() - made {
            return Err(overrun());
        }
        if distance > made {
            let behind = distance - made;
            let start = dictionary.len().checked_sub(behind).ok_or_else(overrun)?;
            let piece = dictionary.get(start..start + behind.min(len)).unwrap_or_default();
            raw.get_mut(made..made + piece.len()).ok_or_else(overrun)?.copy_from_slice(piece);
            made += piece.len();
            len -= piece.len();
        }
        // A match may reach into what it makes itself.
        for at in made..made + len {
            let byte = raw.get(at - distance).copied().ok_or_else(overrun)?;
            *raw.get_mut(at).ok_or_else(overrun)? = byte;
        }
        made += len;
    }
}

fn length(c: &mut Cursor<'_>, nibble: u8) -> Result<usize, Malformed> {
    let mut len = usize::from(nibble);
    if nibble == 15 {
        loop {
            let more = c.u8("compressed block")?;
            len = len.saturating_add(usize::from(more));
            if more != 255 {
                break;
            }
        }
    }
    Ok(len)
}
