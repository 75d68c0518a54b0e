//! What is done to a database and its handles, drawn. Numbers of handles are taken modulo what there is: a list without some of
//! its acts is a list too.

use super::super::settings::Choice;
use super::options::Setting;
use super::shown::{Bounds, Move, Sorted};
use ashlar_testkit::Rng;
use ashlar_testkit::ops::{Change, Mix, Op, draw, draw_key};
use std::ops::Bound;

/// The families, with their orders. The last one is dropped and made again.
pub(super) const FAMILIES: [(&str, Sorted); 4] =
    [("default", Sorted::Up), ("back", Sorted::Down), ("own", Sorted::Own), ("one", Sorted::Up)];

/// The family that is dropped and made again.
pub(super) const DROPPED: &str = "one";

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Close,
    /// Every handle, snapshot and scan goes; cursors stay.
    Drop,
    Kill,
}

/// A call that describes what is read, in any order.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Family(usize),
    Snapshot(usize),
    Option(Setting),
}

/// What becomes of a scan.
#[derive(Clone, Debug)]
pub(super) enum Use {
    /// Entries from the front (`true`) and from the back; the scan is kept and goes on later.
    Ends(Vec<bool>),
    Cursor(Vec<Move>),
    Explain,
}

/// One act.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Write(Vec<Change>),
    Flush(usize),
    Compact(usize),
    Drive(usize),
    Snapshot,
    Release(usize),
    Scan {
        calls: Vec<Call>,
        bounds: Bounds,
        prefixes: Vec<Vec<u8>>,
        then: Use,
    },
    /// A cursor that is held moves.
    Move(usize, Vec<Move>),
    /// A scan that is held goes on.
    Go(usize, Vec<bool>),
    Get(Vec<Call>, Vec<u8>),
    DropFamily,
    CreateFamily,
    /// Tables of this family in this range are deleted, then what is left of it.
    DeleteFiles(usize, Vec<u8>, Vec<u8>),
    /// Handles that must be refused are handed to what changes something.
    Refused(usize),
    Reopen {
        choice: Choice,
        which: u64,
        end: End,
    },
    Second(SecondAct),
}

/// What is done to the second database.
#[derive(Clone, Debug)]
pub(super) enum SecondAct {
    Write(Vec<Change>),
    Flush(bool),
    Compact(bool),
    Snapshot,
    /// It is opened if it is closed, and closed or dropped if it is open.
    Turn(End),
    /// Handles of the first database are handed to the second one.
    Refused(usize),
}

/// What both databases share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) memory: u64,
    pub(super) rate: u64,
}

impl Share {
    /// Room for two databases and no third one, or for more.
    pub(super) fn draw(rng: &mut Rng) -> Share {
        let memory = *rng.pick(&[32 << 20, 48 << 20, 1 << 30]).unwrap_or(&(1 << 30));
        Share { memory, rate: *rng.pick(&[0, 64 << 10, 16 << 20, u64::MAX]).unwrap_or(&0) }
    }
}

/// Draws a list of acts.
pub(super) fn acts(rng: &mut Rng, first: &Choice, count: usize) -> Vec<Act> {
    let mix = Mix {
        families: FAMILIES.map(|(name, _)| name.to_owned()).to_vec(),
        max_value_bytes: *rng.pick(&[50, 2000, 12_000]).unwrap_or(&50),
        range_per_mille: 40,
        ..Mix::writes_only()
    };
    let writes = draw(rng.next_u64(), 2 * count, &mix).into_iter();
    let mut writes = writes.filter_map(|op| match op {
        Op::Write { changes, .. } => Some(changes),
        _ => None,
    });
    let mut choice = first.clone();
    let mut acts = vec![Act::CreateFamily];
    while acts.len() < count {
        acts.push(one(rng, &mut choice, &mut writes));
    }
    acts
}

fn one(rng: &mut Rng, choice: &mut Choice, writes: &mut impl Iterator<Item = Vec<Change>>) -> Act {
    match rng.below(1000) {
        0..350 => Act::Write(writes.next().unwrap_or_default()),
        350..450 => Act::Second(second(rng, writes)),
        450..480 => Act::Flush(rng.below(8)),
        480..495 => Act::Compact(rng.below(8)),
        495..520 => Act::Drive(rng.between(1, 6)),
        520..550 => Act::Snapshot,
        550..565 => Act::Release(rng.below(8)),
        565..720 => {
            let sorted = FAMILIES[rng.below(FAMILIES.len())].1;
            let prefixes = (0..rng.below(3)).map(|_| prefix(rng)).collect();
            Act::Scan { calls: calls(rng), bounds: bounds(rng, sorted), prefixes, then: uses(rng) }
        }
        720..850 => Act::Move(rng.below(8), moves(rng)),
        850..890 => Act::Go(rng.below(8), ends(rng)),
        890..930 => Act::Get(calls(rng), draw_key(rng)),
        930..937 => Act::DropFamily,
        937..950 => Act::CreateFamily,
        // Tables go only when all their keys are in the range.
        950..960 => Act::DeleteFiles(rng.below(8), Vec::new(), vec![0xff; 21]),
        960..965 => Act::DeleteFiles(rng.below(8), draw_key(rng), draw_key(rng)),
        965..985 => Act::Refused(rng.below(64)),
        _ => {
            *choice = choice.changed(rng);
            let which = *rng.pick(&[u64::MAX, 0, rng.clone().next_u64()]).unwrap_or(&0);
            let end = *rng.pick(&[End::Close, End::Drop, End::Kill]).unwrap_or(&End::Close);
            Act::Reopen { choice: choice.clone(), which, end }
        }
    }
}

fn second(rng: &mut Rng, writes: &mut impl Iterator<Item = Vec<Change>>) -> SecondAct {
    match rng.below(100) {
        0..60 => SecondAct::Write(writes.next().unwrap_or_default()),
        60..68 => SecondAct::Flush(rng.percent(50)),
        68..73 => SecondAct::Compact(rng.percent(50)),
        73..80 => SecondAct::Snapshot,
        80..90 => SecondAct::Turn(if rng.percent(50) { End::Close } else { End::Drop }),
        _ => SecondAct::Refused(rng.below(64)),
    }
}

fn calls(rng: &mut Rng) -> Vec<Call> {
    let call = |rng: &mut Rng| match rng.below(10) {
        0..4 => Call::Family(rng.below(16)),
        4..6 => Call::Snapshot(rng.below(16)),
        _ => Call::Option(Setting::draw(rng)),
    };
    (0..rng.below(5)).map(|_| call(rng)).collect()
}

fn prefix(rng: &mut Rng) -> Vec<u8> {
    let mut key = draw_key(rng);
    key.truncate(rng.below(5));
    key
}

/// Mostly in the order of a family, so that few scans are refused.
fn bounds(rng: &mut Rng, sorted: Sorted) -> Bounds {
    let bound = |rng: &mut Rng| match rng.below(5) {
        0..2 => Bound::Unbounded,
        2..4 => Bound::Included(draw_key(rng)),
        _ => Bound::Excluded(draw_key(rng)),
    };
    let (from, to) = (bound(rng), bound(rng));
    if rng.percent(90) && sorted.is_inverted(&(from.clone(), to.clone())) { (to, from) } else { (from, to) }
}

fn uses(rng: &mut Rng) -> Use {
    match rng.below(10) {
        0..4 => Use::Ends(ends(rng)),
        4..9 => Use::Cursor(moves(rng)),
        _ => Use::Explain,
    }
}

fn ends(rng: &mut Rng) -> Vec<bool> {
    let front = *rng.pick(&[0, 50, 50, 100]).unwrap_or(&50);
    (0..*rng.pick(&[3, 10, 400]).unwrap_or(&3)).map(|_| rng.percent(front)).collect()
}

fn moves(rng: &mut Rng) -> Vec<Move> {
    let steps = rng.percent(60);
    let one = |rng: &mut Rng| match rng.below(if steps { 20 } else { 8 }) {
        0 => Move::First,
        1 => Move::Last,
        2..4 => Move::Seek(draw_key(rng)),
        4..6 => Move::SeekForPrev(draw_key(rng)),
        n if n % 2 == 0 => Move::Next,
        _ => Move::Prev,
    };
    (0..rng.between(1, 12)).map(|_| one(rng)).collect()
}
