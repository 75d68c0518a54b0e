//! Mixed work beside 64 cursors for a given time: the curve of its memory must be flat.
//!
//! `rel limits --hostile --replay=mixed-64-cursors@64 --time=30m` is half an hour of the row. The child prints a line `AT …` for
//! each point of the curve. The first five minutes fill caches. A curve is flat if the last third of the points after them has no more
//! memory than the first third, but for a twentieth and `SLACK`.

use super::MIB;
use super::gauge::resident;
use ashlardb::prelude::*;
use ashlardb::{Cursor, MemoryReport};
use comfy_table::{CellAlignment, Table, presets};
use std::time::{Duration, Instant};

/// The name of the row.
pub(super) const NAME: &str = "mixed-64-cursors";

/// The cursors that stand open.
const CURSORS: usize = 64;
/// The points of a curve.
const POINTS: u32 = 60;
/// Moves of a cursor, after which another one takes its place.
const MOVES: usize = 1000;
/// The milliseconds in which memory may grow: cursors keep the first memtables until they have made their moves.
const BEGINNING: u64 = 300_000;
/// The milliseconds of a whole curve.
pub(super) const LONG: u64 = 2 * BEGINNING;
/// What a flat curve may grow beside a twentieth of its height.
const SLACK: u64 = 2 * MIB;

/// One point of the curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    millis: u64,
    rss: u64,
    anon: u64,
    named: u64,
    held: u64,
    operations: u64,
}

impl Point {
    fn now(began: Instant, report: &MemoryReport, operations: u64) -> Point {
        let (rss, anon) = resident("self").unwrap_or_default();
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Point { millis, rss, anon, named: report.total(), held: report.held_by_readers(), operations }
    }

    fn line(&self) -> String {
        let Point { millis, rss, anon, named, held, operations } = self;
        format!("AT {millis} {rss} {anon} {named} {held} {operations}")
    }

    fn parse(line: &str) -> Option<Point> {
        let numbers: Vec<u64> =
            line.strip_prefix("AT ")?.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [millis, rss, anon, named, held, operations] = numbers[..] else { return None };
        Some(Point { millis, rss, anon, named, held, operations })
    }
}

/// The curve in what a child printed.
pub(super) fn curve(text: &str) -> Vec<Point> {
    text.lines().filter_map(Point::parse).collect()
}

/// The curve as a table.
pub(super) fn table(curve: &[Point]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header("seconds|resident MiB|anonymous|named|held by readers|operations a second".split('|'));
    let mut before = Point::default();
    for point in curve {
        let mib = |bytes: u64| format!("{:.1}", bytes as f64 / MIB as f64);
        let took = (point.millis - before.millis).max(1) as f64 / 1000.0;
        let rate = (point.operations - before.operations) as f64 / took;
        table.add_row([
            format!("{:.0}", point.millis as f64 / 1000.0),
            mib(point.rss),
            mib(point.anon),
            mib(point.named),
            mib(point.held),
            format!("{rate:.0}"),
        ]);
        before = *point;
    }
    table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    table.to_string()
}

/// Why a curve is not flat; `None`: it is flat, or too short to say.
pub(super) fn slope(curve: &[Point]) -> Option<String> {
    let mean = |points: &[Point]| points.iter().map(|p| p.anon).sum::<u64>() / points.len().max(1) as u64;
    if curve.last().is_none_or(|point| point.millis < LONG) {
        return None;
    }
    let late = &curve[curve.partition_point(|point| point.millis < BEGINNING)..];
    let third = late.len() / 3;
    if third == 0 {
        return Some(format!("{} points are too few for a curve", late.len()));
    }
    let (before, after) = (mean(&late[..third]), mean(&late[late.len() - third..]));
    let grows = after > before + before / 20 + SLACK;
    grows.then(|| format!("anonymous memory grows from {} to {} MiB", before / MIB, after / MIB))
}

/// The work: puts, gets, merges, deletions, range deletions and scans over `keys` keys for `time`.
pub(super) struct Mixed<'a> {
    pub(super) db: &'a Db,
    pub(super) keys: usize,
    pub(super) time: Duration,
    /// Whether a write was done or may be refused.
    pub(super) accept: &'a dyn Fn(ashlardb::Result<()>) -> Result<(), String>,
}

impl Mixed<'_> {
    /// # Errors
    /// The first operation that fails.
    pub(super) fn run(
        &self,
        name: impl Fn(usize) -> [u8; 16],
        mut draw: impl FnMut(usize) -> usize,
    ) -> Result<(), String> {
        let text = |e: ashlardb::Error| e.to_string();
        let began = Instant::now();
        let open = |key: usize| -> ashlardb::Result<Cursor> {
            let mut cursor = self.db.scan(..).cursor()?;
            cursor.seek(name(key))?;
            Ok(cursor)
        };
        let mut cursors = Vec::new();
        for at in 0..CURSORS {
            cursors.push((open(at * self.keys / CURSORS).map_err(text)?, at * MOVES / CURSORS));
        }
        let mut value = vec![0; 1000];
        let (mut operations, mut next) = (0, self.time / POINTS);
        while began.elapsed() < self.time {
            let key = draw(self.keys);
            value.chunks_mut(8).for_each(|piece| {
                piece.copy_from_slice(&(draw(usize::MAX) as u64).to_le_bytes()[..piece.len()]);
            });
            let done = match draw(100) {
                0..40 => self.db.put(name(key), &value),
                40..45 => self.db.merge(name(key), &value[..20]),
                45..50 => self.db.delete(name(key)),
                50 => self.db.delete_range(name(key), name(key + 20)),
                51..90 => self.db.get(name(key)).map(drop),
                _ => {
                    let (cursor, moves) = &mut cursors[key % CURSORS];
                    *moves += 1;
                    let is_over = cursor.next().map_err(text)?.is_none() || *moves > MOVES;
                    if is_over {
                        (*cursor, *moves) = (open(key).map_err(text)?, 0);
                    }
                    Ok(())
                }
            };
            (self.accept)(done)?;
            operations += 1;
            if began.elapsed() >= next {
                println!("{}", Point::now(began, &self.db.memory_report(), operations).line());
                next += self.time / POINTS;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_read_as_it_was_printed() {
        let point = Point { millis: 1, rss: 2, anon: 3, named: 4, held: 5, operations: 6 };
        assert_eq!(curve(&format!("PEAK x\n{}\nROW a=1", point.line())), [point]);
    }

    #[test]
    fn a_curve_that_rises_is_not_flat() {
        let at = |n: u64, anon: u64| Point { millis: n * 10_000, anon: anon * MIB, ..Point::default() };
        let flat: Vec<_> = (0..64).map(|n| at(n, 60 + n % 3)).collect();
        assert_eq!(slope(&flat), None);
        let rising: Vec<_> = (0..64).map(|n| at(n, 60 + n / 2)).collect();
        assert!(slope(&rising).is_some());
        assert!(table(&rising).contains("91"));
    }
}
