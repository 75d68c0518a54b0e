//! Which entries range tombstones hide from one cursor.
//!
//! [`Mask`] collects tombstones: those of memtables at once, those of a table when its run's cursor enters the table. It
//! answers for one key at a time, and remembers the window of keys around the key in which the answer stays the same, so
//! most steps cost two comparisons.
//!
//! 1. Before a cursor shows a key within the bounds of a table, the cursor of that level has entered the table: it
//!    passes the table on the way to its first entry at or behind the key, even if the table has no such entry. So
//!    every tombstone that could hide the key has been collected.
//! 2. As long as no tombstone was collected, an answer costs one load.
//! 3. No border of a fragment and no bound of a table lies inside the window.
//! 4. Runs are ordered by age, the newest first. In a range that a run's tombstone covers, every entry of the following
//!    runs is older than the tombstone, so a cursor may skip these entries.

use super::Bounds;
use ashlar_base::range_del::FragmentedTombstones;
use ashlar_base::{InternalKeyBuf, Order, SeqNum, Trailer};
use std::cmp::Ordering;
use std::sync::Arc;

/// The tombstones of a memtable or of a table.
#[derive(Debug)]
struct Source {
    tombstones: Arc<FragmentedTombstones>,
    /// `None`: the tombstones apply to every key.
    bounds: Option<Bounds>,
    /// The cursor's run that holds the tombstones.
    run: usize,
}

/// One end of a window: a key, and whether it belongs to the window. `None`: no end.
type Edge<'a> = Option<(&'a [u8], bool)>;

/// What one source says about a key, and around it.
struct Covering<'a> {
    newest: Option<SeqNum>,
    from: Edge<'a>,
    to: Edge<'a>,
}

impl Source {
    fn ask(&self, order: &Order, user_key: &[u8], read_seq: SeqNum) -> Covering<'_> {
        let (mut from, mut to): (Edge<'_>, Edge<'_>) = (None, None);
        if let Some(b) = &self.bounds {
            match b.side(order, user_key) {
                Ordering::Less => return Covering { newest: None, from, to: Some((&b.smallest, false)) },
                Ordering::Greater => {
                    return Covering { newest: None, from: Some((&b.largest, b.exclusive)), to };
                }
                Ordering::Equal => {
                    (from, to) = (Some((&b.smallest[..], true)), Some((&b.largest[..], !b.exclusive)));
                }
            }
        }
        let piece = |at| self.tombstones.fragment(at);
        let mut newest = None;
        match self.tombstones.find(user_key) {
            Ok(at) => {
                if let Some(f) = piece(at) {
                    newest = f.newest(read_seq);
                    from = later(order, from, Some((f.begin, true)));
                    to = earlier(order, to, Some((f.end, false)));
                }
            }
            Err(at) => {
                let before = at.checked_sub(1).and_then(piece);
                from = later(order, from, before.map(|f| (f.end, true)));
                to = earlier(order, to, piece(at).map(|f| (f.begin, false)));
            }
        }
        Covering { newest, from, to }
    }
}

/// The tighter of two lower edges.
fn later<'a>(order: &Order, a: Edge<'a>, b: Edge<'a>) -> Edge<'a> {
    match (a, b) {
        (Some(x), Some(y)) => {
            let by_key = order.compare(x.0, y.0);
            // Without its key a window begins later.
            Some(if by_key.then(y.1.cmp(&x.1)) == Ordering::Less { y } else { x })
        }
        (a, b) => a.or(b),
    }
}

/// The tighter of two upper edges.
fn earlier<'a>(order: &Order, a: Edge<'a>, b: Edge<'a>) -> Edge<'a> {
    match (a, b) {
        (Some(x), Some(y)) => {
            let by_key = order.compare(x.0, y.0);
            Some(if by_key.then(x.1.cmp(&y.1)) == Ordering::Greater { y } else { x })
        }
        (a, b) => a.or(b),
    }
}

/// The answer of all sources, and the window in which it holds.
#[derive(Debug, Default)]
struct Window {
    newest: Option<SeqNum>,
    /// The newest run with a tombstone over the window.
    run: Option<usize>,
    from: Option<(Vec<u8>, bool)>,
    to: Option<(Vec<u8>, bool)>,
}

impl Window {
    fn holds(&self, order: &Order, user_key: &[u8]) -> bool {
        let above = self.from.as_ref().is_none_or(|(from, included)| match order.compare(from, user_key) {
            Ordering::Less => true,
            Ordering::Equal => *included,
            Ordering::Greater => false,
        });
        above
            && self.to.as_ref().is_none_or(|(to, included)| match order.compare(user_key, to) {
                Ordering::Less => true,
                Ordering::Equal => *included,
                Ordering::Greater => false,
            })
    }
}

/// A covered range of keys. `None`: no end.
#[derive(Debug)]
pub struct Stretch {
    pub(crate) run: usize,
    pub(crate) forward: Option<InternalKeyBuf>,
    pub(crate) backward: Option<InternalKeyBuf>,
}

/// See the module.
#[derive(Debug)]
pub struct Mask {
    order: Order,
    read_seq: SeqNum,
    /// The tombstones that the cursor has met so far.
    sources: Vec<Source>,
    window: Option<Window>,
}

impl Mask {
    /// The mask of a read at `read_seq`.
    pub(crate) fn new(order: Order, read_seq: SeqNum) -> Self {
        Mask { order, read_seq, sources: Vec::new(), window: None }
    }

    /// Adds tombstones of a run that apply within `bounds`.
    #[cold]
    pub(crate) fn add(&mut self, tombstones: Arc<FragmentedTombstones>, bounds: Option<Bounds>, run: usize) {
        self.sources.push(Source { tombstones, bounds, run });
        self.window = None;
    }

    /// Reads at `read_seq` from here on.
    pub(crate) fn read_at(&mut self, read_seq: SeqNum) {
        self.read_seq = read_seq;
        self.window = None;
    }

    /// Whether there are no tombstones.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether a tombstone hides an entry of `user_key` with sequence `seq`, and with it every older one.
    #[inline]
    pub(crate) fn hides(&mut self, user_key: &[u8], seq: SeqNum) -> bool {
        !self.sources.is_empty() && self.newest_over(user_key).is_some_and(|newest| newest > seq)
    }

    /// If a range tombstone covers `user_key` (the key of the preceding call), returns how far a cursor may skip: the
    /// newest run that holds the tombstone (older runs may be skipped), the first internal key after the covered range,
    /// and the last one before it.
    pub(crate) fn stretch(&self, user_key: &[u8]) -> Option<Stretch> {
        let window = self.window.as_ref().filter(|w| w.holds(&self.order, user_key))?;
        let key = |(key, _): &(Vec<u8>, bool), trailer| InternalKeyBuf::new(key, trailer);
        Some(Stretch {
            run: window.run?,
            // An end inside the window has covered versions too. The cursor need not skip them.
            forward: window.to.as_ref().map(|to| key(to, Trailer::FIRST)),
            backward: window
                .from
                .as_ref()
                .map(|from| key(from, if from.1 { Trailer::FIRST } else { Trailer::LAST })),
        })
    }

    fn newest_over(&mut self, user_key: &[u8]) -> Option<SeqNum> {
        match &self.window {
            Some(window) if window.holds(&self.order, user_key) => window.newest,
            _ => self.look(user_key),
        }
    }

    fn look(&mut self, user_key: &[u8]) -> Option<SeqNum> {
        let order = &self.order;
        let mut all = Covering { newest: None, from: None, to: None };
        let mut run: Option<usize> = None;
        for source in &self.sources {
            let one = source.ask(order, user_key, self.read_seq);
            if one.newest.is_some() {
                run = Some(run.map_or(source.run, |run| run.min(source.run)));
            }
            all = Covering {
                newest: all.newest.max(one.newest),
                from: later(order, all.from, one.from),
                to: earlier(order, all.to, one.to),
            };
        }
        let window = self.window.get_or_insert_default();
        (window.newest, window.run) = (all.newest, run);
        set(&mut window.from, all.from);
        set(&mut window.to, all.to);
        all.newest
    }
}

fn set(edge: &mut Option<(Vec<u8>, bool)>, to: Edge<'_>) {
    match to {
        None => *edge = None,
        Some((key, included)) => {
            let (buffer, flag) = edge.get_or_insert_default();
            buffer.clear();
            buffer.extend_from_slice(key);
            *flag = included;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::ValueType;
    use ashlar_base::range_del::RangeTombstone;

    struct Draw(u64);

    impl Draw {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n
        }
        fn key(&mut self) -> Vec<u8> {
            vec![b'a' + (self.below(16) & 0xff) as u8]
        }
    }

    /// A source in two forms: cut to its bounds, and as stored.
    type Plain = (Vec<RangeTombstone>, Option<(Vec<u8>, Vec<u8>, bool)>);

    fn source(order: &Order, draw: &mut Draw) -> Plain {
        let tombstones = (0..draw.below(4)).map(|_| {
            let seq = SeqNum::new(1 + draw.below(9)).unwrap();
            RangeTombstone { begin: draw.key(), end: draw.key(), seq }
        });
        let tombstones = tombstones.collect();
        let (a, b) = (draw.key(), draw.key());
        let (smallest, largest) = if order.compare(&a, &b).is_le() { (a, b) } else { (b, a) };
        (tombstones, (draw.below(3) > 0).then_some((smallest, largest, draw.below(2) == 0)))
    }

    fn in_force(order: &Order, plain: &Plain, key: &[u8]) -> bool {
        plain.1.as_ref().is_none_or(|(smallest, largest, exclusive)| {
            order.compare(smallest, key).is_le()
                && (order.compare(key, largest).is_lt() || (!exclusive && key == &largest[..]))
        })
    }

    #[test]
    fn hides_what_the_plain_form_hides() {
        let mut draw = Draw(3);
        for round in 0..400 {
            let order = if round % 2 == 0 { Order::Bytewise } else { Order::ReverseBytewise };
            let read = SeqNum::new(draw.below(10)).unwrap();
            let mut mask = Mask::new(order.clone(), read);
            let mut plain = Vec::new();
            for _ in 0..60 {
                if draw.below(12) == 0 {
                    let new = source(&order, &mut draw);
                    let bounds = new.1.as_ref().map(|(smallest, largest, exclusive)| {
                        let point = Trailer::new(SeqNum::ZERO, ValueType::Put);
                        let end = if *exclusive { Trailer::RANGE_END } else { point };
                        let largest = InternalKeyBuf::new(largest, end);
                        Bounds::new(InternalKeyBuf::new(smallest, point).as_key(), largest.as_key())
                    });
                    mask.add(Arc::new(FragmentedTombstones::new(&order, &new.0)), bounds, plain.len());
                    plain.push(new);
                }
                let (key, seq) = (draw.key(), SeqNum::new(draw.below(10)).unwrap());
                let covers = |t: &RangeTombstone| {
                    t.seq <= read
                        && t.seq > seq
                        && order.compare(&t.begin, &key).is_le()
                        && order.compare(&key, &t.end).is_lt()
                };
                let want = plain.iter().any(|p| in_force(&order, p, &key) && p.0.iter().any(covers));
                assert_eq!(mask.hides(&key, seq), want, "{plain:?} {key:?} {seq} at {read}");
            }
        }
    }
}
