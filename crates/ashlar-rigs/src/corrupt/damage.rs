//! The nine kinds of damage.

use super::parts::{Part, Piece, pieces};
use super::subject::Subject;
use ashlar_testkit::Rng;

/// A column of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// Some bits of one byte.
    Flip,
    /// From somewhere to the end of the page or of the piece: zeros.
    Zero,
    /// The file ends inside a piece.
    CutInside,
    /// The file ends where a piece begins.
    CutAtBoundary,
    /// Bytes behind the end.
    Junk,
    /// No such file.
    Missing,
    /// The file of another database of the same content.
    Other,
    /// The file of that kind of an earlier time.
    Older,
    /// Two pieces change places.
    Swapped,
}

impl Kind {
    pub(super) const ALL: [Kind; 9] = [
        Kind::Flip,
        Kind::Zero,
        Kind::CutInside,
        Kind::CutAtBoundary,
        Kind::Junk,
        Kind::Missing,
        Kind::Other,
        Kind::Older,
        Kind::Swapped,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Flip => "bit flip",
            Kind::Zero => "zero page",
            Kind::CutInside => "cut inside",
            Kind::CutAtBoundary => "cut at boundary",
            Kind::Junk => "junk behind",
            Kind::Missing => "missing",
            Kind::Other => "other's file",
            Kind::Older => "older file",
            Kind::Swapped => "swapped",
        }
    }
}

/// Files and what becomes of them; `None`: removed.
pub(super) type Damage = Vec<(String, Option<Vec<u8>>)>;

const PAGE: usize = 4096;

/// Damage of that kind, drawn; `None` where it cannot be done or changes nothing.
pub(super) fn draw(
    subject: &Subject,
    twin: &Subject,
    part: Part,
    kind: Kind,
    rng: &mut Rng,
) -> Result<Option<Damage>, String> {
    let Some(name) = part.file(&subject.files).cloned() else { return Ok(None) };
    let good = &subject.files[&name];
    let pieces = pieces(part, good).map_err(|e| format!("{}: {e}", part.name()))?;
    // In a log or MANIFEST what stands at the end is another matter than the rest: it is drawn as often.
    let piece = if rng.percent(25) { pieces.last() } else { rng.pick(&pieces) };
    let Some(piece) = piece.copied() else { return Ok(None) };
    let bad = match kind {
        Kind::Flip if piece.from < piece.to => {
            let mut bytes = good.clone();
            let pattern = *rng.pick(&[1, 2, 4, 8, 16, 32, 64, 128, 255]).unwrap_or(&255);
            bytes[rng.between(piece.from, piece.to - 1)] ^= pattern;
            bytes
        }
        Kind::Zero if piece.from < piece.to => {
            let from = if rng.percent(50) { piece.from } else { rng.between(piece.from, piece.to - 1) };
            let to = piece.to.min((from / PAGE + 1) * PAGE);
            let mut bytes = good.clone();
            bytes[from..to].fill(0);
            bytes
        }
        Kind::CutInside if piece.to - piece.from > 1 => {
            good[..rng.between(piece.from + 1, piece.to - 1)].to_vec()
        }
        Kind::CutAtBoundary => good[..piece.from].to_vec(),
        Kind::Junk => {
            let junk = rng.between(1, 300);
            [good.as_slice(), &rng.bytes(junk)].concat()
        }
        Kind::Missing => return Ok(Some(vec![(name, None)])),
        Kind::Other => match part.file(&twin.files) {
            Some(other) => twin.files[other].clone(),
            None => return Ok(None),
        },
        Kind::Older => return Ok(older(subject, part, name)),
        Kind::Swapped => match swapped(good, &pieces, rng) {
            Some(bytes) => bytes,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok((bad != *good).then(|| vec![(name, Some(bad))]))
}

/// An older CURRENT comes with the MANIFEST that it names.
fn older(subject: &Subject, part: Part, name: String) -> Option<Damage> {
    let bytes = subject.older.get(part.file(&subject.older)?)?.clone();
    let mut damage = Damage::new();
    if part == Part::Current {
        let manifest = Part::Manifest.file(&subject.older)?;
        damage.push((manifest.clone(), subject.older.get(manifest).cloned()));
    }
    if bytes == subject.files[&name] {
        return None;
    }
    damage.push((name, Some(bytes)));
    Some(damage)
}

/// Two pieces of equal length where there are such, neighbours otherwise.
fn swapped(good: &[u8], pieces: &[Piece], rng: &mut Rng) -> Option<Vec<u8>> {
    if pieces.len() < 2 {
        return None;
    }
    let first = rng.below(pieces.len() - 1);
    let a = pieces[first];
    let equal = pieces[first + 1..].iter().find(|b| b.to - b.from == a.to - a.from);
    let b = *equal.unwrap_or(&pieces[first + 1]);
    let bytes =
        [&good[..a.from], &good[b.from..b.to], &good[a.to..b.from], &good[a.from..a.to], &good[b.to..]];
    Some(bytes.concat())
}
