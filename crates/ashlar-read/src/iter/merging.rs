//! Merges many runs: a tournament of cursors, which the run with the smallest key wins (the largest when going backward).
//!
//! 1. The winner of the tournament is the run whose entry is next. The merge stands on that entry. Match `n` is between the winners of
//!    matches `2n` and `2n + 1`, and match 1 is the last one. Numbers from the number of runs on stand for the runs themselves.
//!    A seat knows the run that lost the match of its number. A step of the winner repeats the matches on its way only.
//! 2. Going forward, every run stands on its first entry at or after the winner's entry. Going backward, it stands on its
//!    last entry at or before it. So a change of direction moves every run except the winner to the other side of the
//!    winner's key.
//! 3. When internal keys are equal, the run with the smaller index, which is newer, comes first in both directions.
//! 4. The [code](Code) of a run that lost a match has the key of the run that won as its base. The code of the winner has the key
//!    from which the merge came. So most matches compare two numbers, and the merge knows whether a step stayed on a user key.
//!    In a custom order all codes are unknown, and matches compare keys.
//! 5. A run without an entry has the code [`Code::END`]. If the winner has it, the merge is off the end.
//! 6. After an error the merge is off the end until it is positioned again.
//!
//! Source: RocksDB `table/merging_iterator.cc` (idea of the direction change).

mod shadowed;

use super::code::{Code, Course};
use super::{ReadState, Run, RunContext};
use crate::visibility::{EntryKind, entry_kind, is_visible};
use ashlar_base::key::Sharing;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Direction, Entry, InternalKey, Order, Result, SeqNum};
use std::cmp::Ordering;
use std::path::PathBuf;

/// See the module.
pub struct MergingIter {
    order: Order,
    runs: Vec<Run>,
    seats: Vec<Seat>,
    winner: usize,
    direction: Direction,
    /// The course of the keys in this direction; `None` in a custom order.
    course: Option<Course>,
}

/// What the tournament knows of the run and of the match with one number.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// The code of the run.
    code: Code,
    /// The run that lost the match.
    loser: usize,
    /// The run that won the match, while all matches are played.
    winner: usize,
}

/// Where a step has moved the merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stepped {
    /// Off the end.
    Off,
    /// To another entry of the same user key.
    Same,
    /// To a user key that comes later in the direction of the merge.
    Later,
    /// To a key that is out of order: the run is damaged.
    Misplaced,
    /// To any entry. In a custom order the merge knows no more.
    Unknown,
}

impl MergingIter {
    /// A merge of `runs`, the newest first. It starts off the end.
    pub(crate) fn new(order: Order, runs: Vec<Run>) -> Self {
        let seats = vec![Seat { code: Code::END, loser: 0, winner: 0 }; runs.len()];
        MergingIter { order, runs, seats, winner: 0, direction: Direction::Forward, course: None }
    }

    /// The direction of the last move.
    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether a step says if it stayed on a user key.
    #[inline]
    pub(crate) fn knows_keys(&self) -> bool {
        self.course.is_some()
    }

    /// The file of the current entry, if the entry is in a file.
    pub(crate) fn path(&self, state: &ReadState) -> Option<PathBuf> {
        self.root()?.path(state)
    }

    /// Gives up the runs without dropping them.
    pub(crate) fn forget(&mut self) {
        self.stop();
        std::mem::forget(std::mem::take(&mut self.runs));
    }

    /// Leaves the merge off the end.
    #[cold]
    fn stop(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.code = Code::END);
    }

    #[inline]
    fn code(&self, run: usize) -> Code {
        self.seats.get(run).map_or(Code::END, |seat| seat.code)
    }

    #[inline]
    fn set_code(&mut self, run: usize, code: Code) {
        if let Some(seat) = self.seats.get_mut(run) {
            seat.code = code;
        }
    }

    /// The winner; `None` off the end.
    #[inline]
    fn root(&self) -> Option<&Run> {
        if self.code(self.winner) == Code::END { None } else { self.runs.get(self.winner) }
    }

    /// The entry under the cursor; `None` off the end.
    #[inline]
    pub(crate) fn entry(&self) -> Option<Entry<'_>> {
        self.root()?.entry()
    }

    /// The key of that entry.
    #[inline]
    pub(crate) fn key(&self) -> Option<InternalKey<'_>> {
        self.root()?.key()
    }

    /// Bytes of the current blocks of all runs.
    pub(crate) fn block_bytes(&self) -> usize {
        self.runs.iter().map(Run::block_bytes).sum()
    }

    /// Bytes of the runs' copies of keys.
    pub(crate) fn key_bytes(&self) -> usize {
        self.runs.iter().map(Run::key_bytes).sum()
    }

    /// Plays a match of two runs whose codes have the same base. Returns the winner, and the loser, whose code then has the winner's
    /// key as its base.
    #[inline]
    fn play(&mut self, a: usize, b: usize) -> (usize, usize) {
        match self.code(a).cmp(&self.code(b)) {
            Ordering::Less => (a, b),
            Ordering::Greater => (b, a),
            Ordering::Equal => self.play_off(a, b),
        }
    }

    /// A match of two runs with equal codes: compares the bytes behind those that the codes cover.
    #[inline(never)]
    fn play_off(&mut self, a: usize, b: usize) -> (usize, usize) {
        let code = self.code(a);
        let key = |run: usize| self.runs.get(run).and_then(Run::key).map(InternalKey::split);
        let (Some((key_a, trailer_a)), Some((key_b, trailer_b))) = (key(a), key(b)) else { return (a, b) };
        let (user_order, codes) = match self.course {
            None => (ordered(self.order.compare(key_a, key_b), self.direction), [code; 2]),
            Some(_) if code == Code::SAME => (Ordering::Equal, [code; 2]),
            Some(course) => {
                let known = code.bytes();
                let [rest_a, rest_b] = [key_a, key_b].map(|key| key.get(known..).unwrap_or_default());
                let sharing = Sharing::behind(known, rest_a, rest_b);
                let behind = |key: &[u8]| Code::new(course, sharing.bytes, key.get(sharing.bytes).copied());
                match sharing.order {
                    Ordering::Equal => (Ordering::Equal, [Code::SAME; 2]),
                    order if order == course.before() => (Ordering::Greater, [behind(key_a), code]),
                    _ => (Ordering::Less, [code, behind(key_b)]),
                }
            }
        };
        // Newer versions of a key have larger trailers, and come first.
        let trailers = || ordered(trailer_b.cmp(&trailer_a), self.direction);
        let (winner, loser, loser_code) = match user_order.then_with(trailers).then(a.cmp(&b)) {
            Ordering::Greater => (b, a, codes[0]),
            _ => (a, b, codes[1]),
        };
        self.set_code(loser, loser_code);
        (winner, loser)
    }

    /// Plays all matches. All codes have the same base before.
    fn play_all(&mut self) {
        let count = self.runs.len();
        for at in (1..count).rev() {
            let of = |at: usize| self.seats.get(at).map_or_else(|| at - count, |seat| seat.winner);
            let (winner, loser) = self.play(of(2 * at), of(2 * at + 1));
            if let Some(seat) = self.seats.get_mut(at) {
                (seat.winner, seat.loser) = (winner, loser);
            }
        }
        self.winner = self.seats.get(1).map_or(0, |seat| seat.winner);
    }

    /// Repeats the matches of the winner.
    #[inline]
    fn play_again(&mut self) {
        let (mut winner, mut at) = (self.winner, (self.winner + self.runs.len()) / 2);
        while at > 0 {
            let other = self.seats.get(at).map_or(winner, |seat| seat.loser);
            let (won, lost) = self.play(winner, other);
            if let Some(seat) = self.seats.get_mut(at) {
                seat.loser = lost;
            }
            (winner, at) = (won, at / 2);
        }
        self.winner = winner;
    }

    /// The runs that lost a match to the winner. One of them is the next winner if the winner has no further entry.
    fn beaten(&self) -> impl Iterator<Item = usize> {
        let first = (self.winner + self.runs.len()) / 2;
        let matches = std::iter::successors(Some(first), |at| Some(at / 2)).take_while(|at| *at > 0);
        let losers = matches.filter_map(|at| self.seats.get(at).map(|seat| seat.loser));
        losers.filter(|run| self.code(*run) != Code::END)
    }

    /// The user key of the run that would win without the winner.
    fn second_key(&self) -> Option<&[u8]> {
        let keys = self.beaten().filter_map(|run| Some((self.code(run), self.runs.get(run)?.key()?)));
        let compare = |a: InternalKey<'_>, b| ordered(self.order.compare_internal(a, b), self.direction);
        keys.min_by(|a, b| a.0.cmp(&b.0).then_with(|| compare(a.1, b.1))).map(|(_, key)| key.user_key())
    }

    /// Plays from the beginning, after moves of any runs.
    fn restart(&mut self) {
        let MergingIter { runs, seats, course, .. } = self;
        for (seat, run) in seats.iter_mut().zip(&*runs) {
            seat.code = match (run.key(), *course) {
                (None, _) => Code::END,
                (Some(_), None) => Code::UNKNOWN,
                (Some(key), Some(course)) => Code::new(course, 0, key.user_key().first().copied()),
            };
        }
        self.play_all();
    }

    /// Positions every run by `place` and plays.
    fn position(
        &mut self,
        direction: Direction,
        mut place: impl FnMut(&mut Run) -> Result<()>,
    ) -> Result<()> {
        self.stop();
        self.direction = direction;
        self.course = match (&self.order, direction) {
            (Order::Custom(_), _) => None,
            (Order::Bytewise, Direction::Forward) | (Order::ReverseBytewise, Direction::Backward) => {
                Some(Course::Rising)
            }
            _ => Some(Course::Falling),
        };
        for run in &mut self.runs {
            place(run)?;
        }
        self.restart();
        Ok(())
    }

    /// Moves to the first entry at or after `target`.
    ///
    /// # Errors
    /// As opening and reading a table; so every move.
    pub(crate) fn seek(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        let _step = perf::time(Metric::SeekInternalSeekTime);
        self.stop();
        // Each part in all runs, so that the runs wait for memory together.
        self.runs.iter_mut().try_for_each(|run| run.seek_begin(cx, target))?;
        self.runs.iter_mut().try_for_each(|run| run.seek_pin(cx))?;
        self.runs.iter_mut().for_each(|run| run.seek_start(cx, target));
        self.position(Direction::Forward, |run| run.seek_finish(cx, target))
    }

    /// Moves to the last entry at or before `target`.
    pub(crate) fn seek_for_prev(&mut self, cx: &mut RunContext, target: InternalKey<'_>) -> Result<()> {
        let _step = perf::time(Metric::SeekInternalSeekTime);
        self.position(Direction::Backward, |run| run.seek_for_prev(cx, target))
    }

    /// Moves to the first entry.
    pub(crate) fn first(&mut self, cx: &mut RunContext) -> Result<()> {
        self.position(Direction::Forward, |run| run.first(cx))
    }

    /// Moves to the last entry.
    pub(crate) fn last(&mut self, cx: &mut RunContext) -> Result<()> {
        self.position(Direction::Backward, |run| run.last(cx))
    }

    /// Moves one entry on. Off the end it stays there.
    #[inline]
    pub(crate) fn next(&mut self, cx: &mut RunContext) -> Result<Stepped> {
        match self.direction {
            Direction::Forward => self.advance(|run| run.next_sharing(cx)),
            Direction::Backward => self.turn(cx, Direction::Forward),
        }
    }

    /// Going forward over one run: moves one entry on if that entry is plain for a read at `seq`
    /// ([`TableCursor::step_plain`](ashlar_table::TableCursor::step_plain)). Returns the length of user key and value. `None`: the
    /// merge has not moved.
    #[inline]
    pub(crate) fn next_plain(&mut self, seq: SeqNum) -> Option<usize> {
        let ([run], Direction::Forward) = (&mut self.runs[..], self.direction) else { return None };
        let file = run.in_file_mut()?;
        file.step_plain(&self.order, seq).then(|| file.shown_len())
    }

    /// Going backward over one run: moves one entry back if that entry is decoded, and plain for a read at `seq`
    /// ([`TableCursor::step_back_plain`](ashlar_table::TableCursor::step_back_plain)). The current entry must be the newest one
    /// of its key. Returns the length of user key and value. `None`: the merge has not moved.
    #[inline]
    pub(crate) fn prev_plain(&mut self, seq: SeqNum) -> Option<usize> {
        let ([run], Direction::Backward) = (&mut self.runs[..], self.direction) else { return None };
        let file = run.in_file_mut()?;
        file.step_back_plain(&self.order, seq).then(|| file.shown_len())
    }

    /// Moves one entry back. Off the end it stays there.
    #[inline]
    pub(crate) fn prev(&mut self, cx: &mut RunContext) -> Result<Stepped> {
        match self.direction {
            Direction::Backward => self.advance(|run| run.prev_sharing(cx)),
            Direction::Forward => self.turn(cx, Direction::Backward),
        }
    }

    /// Moves the winner by `step`.
    #[inline]
    fn advance(&mut self, step: impl FnOnce(&mut Run) -> Result<Option<Sharing>>) -> Result<Stepped> {
        if self.code(self.winner) == Code::END {
            return Ok(Stepped::Off);
        }
        let Some(run) = self.runs.get_mut(self.winner) else { return Ok(Stepped::Off) };
        let sharing = match step(run) {
            Ok(Some(sharing)) => sharing,
            Ok(None) => return Ok(self.move_on(Code::END)),
            Err(e) => {
                self.stop();
                return Err(e);
            }
        };
        let Some(course) = self.course else { return Ok(self.move_on(Code::UNKNOWN)) };
        Ok(Code::behind(course, &sharing).map_or(Stepped::Misplaced, |code| self.move_on(code)))
    }

    /// Plays with a new code of the winner.
    #[inline]
    fn move_on(&mut self, code: Code) -> Stepped {
        self.set_code(self.winner, code);
        if self.runs.len() > 1 {
            self.play_again();
        }
        match self.code(self.winner) {
            Code::END => Stepped::Off,
            Code::SAME => Stepped::Same,
            Code::UNKNOWN => Stepped::Unknown,
            _ => Stepped::Later,
        }
    }

    /// Going backward: whether the next entry is known to be of an earlier user key, so that this entry is the newest one
    /// of its key.
    #[inline]
    pub(crate) fn is_newest(&self) -> bool {
        let (Some(root), Direction::Backward) = (self.root(), self.direction) else { return false };
        let (Some(file), Some(key)) = (root.in_file(), root.key()) else { return false };
        match self.course {
            Some(course) => {
                let before = file.sharing_before().and_then(|sharing| Code::behind(course, &sharing));
                before.is_some_and(|code| code != Code::SAME)
                    && self.beaten().all(|run| self.code(run) != Code::SAME)
            }
            None => {
                let is_before = |other: &[u8]| self.order.compare(other, key.user_key()).is_lt();
                file.user_key_before().is_some_and(is_before) && self.second_key().is_none_or(is_before)
            }
        }
    }

    /// Moves every run except the winner to the other side of the winner's key, and the winner past its key.
    #[cold]
    fn turn(&mut self, cx: &mut RunContext, direction: Direction) -> Result<Stepped> {
        let Some(key) = self.key() else { return Ok(Stepped::Off) };
        let turn = key.to_buf();
        let order = self.order.clone();
        let at = turn.as_key();
        self.position(direction, |run| {
            match direction {
                Direction::Forward => run.seek(cx, at)?,
                Direction::Backward => run.seek_for_prev(cx, at)?,
            }
            let is_root = run.key().is_some_and(|key| order.compare_internal(key, at) == Ordering::Equal);
            match direction {
                _ if !is_root => Ok(()),
                Direction::Forward => run.next_sharing(cx).map(drop),
                Direction::Backward => run.prev_sharing(cx).map(drop),
            }
        })?;
        Ok(if self.root().is_some() { Stepped::Unknown } else { Stepped::Off })
    }

    /// Going forward: moves each run older than `run` that is before `to` on to `to`, and returns whether there was one. The winner
    /// may be one of them.
    #[cold]
    pub(crate) fn pass_forward(
        &mut self,
        cx: &mut RunContext,
        run: usize,
        to: InternalKey<'_>,
    ) -> Result<bool> {
        debug_assert_eq!(self.direction, Direction::Forward);
        self.pass(run, |order, run| match run.key() {
            Some(key) if order.compare_internal(key, to) == Ordering::Less => Some(run.seek(cx, to)),
            _ => None,
        })
    }

    /// Going backward: moves each run older than `run` that is after `to` back to `to`, or before it, and returns whether there was one.
    #[cold]
    pub(crate) fn pass_backward(
        &mut self,
        cx: &mut RunContext,
        run: usize,
        to: InternalKey<'_>,
    ) -> Result<bool> {
        debug_assert_eq!(self.direction, Direction::Backward);
        self.pass(run, |order, run| match run.key() {
            Some(key) if order.compare_internal(key, to) == Ordering::Greater => {
                Some(run.seek_for_prev(cx, to))
            }
            _ => None,
        })
    }

    /// Going forward, if the winner is on a deletion that a read at `seq` sees: moves it to a later deletion, if all entries of
    /// the merge up to there are such deletions in the winner's run, of user keys before `upper`. Returns the number of entries
    /// that it passed one by one; `None`: the merge has not moved. A key of another run ends the move, because the winner may not
    /// pass it.
    #[cold]
    pub(crate) fn pass_deletions(
        &mut self,
        cx: &mut RunContext,
        seq: SeqNum,
        upper: Option<&[u8]>,
    ) -> Result<Option<usize>> {
        debug_assert_eq!(self.direction, Direction::Forward);
        let Some(key) = self.key().filter(|key| deletes(*key, seq)) else { return Ok(None) };
        if self.root().and_then(Run::in_file).is_none() {
            return Ok(None);
        }
        let order = &self.order;
        let limit = match (self.second_key(), upper) {
            (Some(next), Some(upper)) if order.compare(upper, next).is_lt() => Some(upper),
            (next, upper) => next.or(upper),
        };
        if limit.is_some_and(|limit| order.compare(key.user_key(), limit).is_ge()) {
            return Ok(None);
        }
        let limit = limit.map(<[u8]>::to_vec);
        let root = self.runs.get_mut(self.winner);
        let passed = root.map_or(Ok(0), |root| root.pass_deletions(cx, seq, limit.as_deref()));
        if passed.is_err() {
            self.stop();
        } else {
            self.restart();
        }
        passed.map(Some)
    }

    /// Calls `step` for each run older than `run`, and returns whether some run was moved. `step` returns `None` if it did not move the
    /// run.
    fn pass(
        &mut self,
        run: usize,
        mut step: impl FnMut(&Order, &mut Run) -> Option<Result<()>>,
    ) -> Result<bool> {
        let mut moved = false;
        for run in self.runs.iter_mut().skip(run + 1) {
            match step(&self.order, run) {
                None => {}
                Some(Ok(())) => moved = true,
                Some(Err(e)) => {
                    self.stop();
                    return Err(e);
                }
            }
        }
        if moved {
            self.restart();
        }
        Ok(moved)
    }
}

/// Whether the entry of `key` is a deletion that a read at `seq` sees.
#[inline]
fn deletes(key: InternalKey<'_>, seq: SeqNum) -> bool {
    let (user_key, trailer) = key.split();
    is_visible(trailer, seq) && matches!(entry_kind(trailer, user_key), Ok(EntryKind::Deleted))
}

/// An order of keys in the direction of the merge.
#[inline]
fn ordered(order: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => order,
        Direction::Backward => order.reverse(),
    }
}
