//! Passes deleted keys together with the entries that their deletions hide.
//!
//! A queue's head is a long row of deletions in one run, over their values in other runs. A tournament would be played for each entry.
//! Instead, the run of the deletions leads: the other runs step past each deleted key, and one comparison for each of them shows whether
//! the next deletion still comes first.

use super::super::code::{Code, Course};
use super::{MergingIter, Run, RunContext, deletes};
use ashlar_base::{Direction, Order, Result, SeqNum};
use std::cmp::Ordering;

/// With more runs the tournament is better.
const RUNS_MAX: usize = 8;
/// A run with more older entries of one key is left to the caller, which can seek past them.
const VERSIONS_MAX: usize = 8;

/// What was passed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shadowed {
    /// Deleted keys.
    pub(crate) keys: usize,
    /// Their deletions and the entries that these hide.
    pub(crate) entries: usize,
    /// A run is damaged: its keys are out of order.
    pub(crate) misplaced: bool,
}

impl MergingIter {
    /// Going forward, if the winner is on a deletion that a read at `seq` sees: passes it and the entries that it hides. Goes on as long
    /// as the next entry of the merge is such a deletion of the same run, of a user key before `upper`. Copies the last deleted key to
    /// `last`; older entries of that key may be left.
    ///
    /// # Errors
    /// As [`MergingIter::next`].
    #[cold]
    pub(crate) fn pass_shadowed(
        &mut self,
        cx: &mut RunContext,
        seq: SeqNum,
        upper: Option<&[u8]>,
        last: &mut Vec<u8>,
    ) -> Result<Shadowed> {
        debug_assert_eq!(self.direction, Direction::Forward);
        let mut passed = Shadowed::default();
        let Some(course) = self.course.filter(|_| (2..=RUNS_MAX).contains(&self.runs.len())) else {
            return Ok(passed);
        };
        if self.root().is_none() {
            return Ok(passed);
        }
        let (newer, rest) = self.runs.split_at_mut(self.winner);
        let Some((leader, older)) = rest.split_first_mut() else { return Ok(passed) };
        let mut lead = Lead { order: &self.order, course, leader, newer, older, last };
        let done = lead.pass(cx, (seq, upper), &mut passed);
        if done.is_err() {
            self.stop();
        } else {
            self.restart();
        }
        done.map(|()| passed)
    }
}

/// The run of the deletions, and the other runs.
struct Lead<'a> {
    order: &'a Order,
    course: Course,
    leader: &'a mut Run,
    newer: &'a mut [Run],
    older: &'a mut [Run],
    last: &'a mut Vec<u8>,
}

/// What is known of another run.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// On a later key than the leader, or off the end.
    Later,
    /// On an older entry of the leader's key.
    Same,
    /// It has left the key that the leader leaves too, with this code.
    Left(Code),
}

type Places = [Place; RUNS_MAX];

/// How a run has left a key.
enum Left {
    /// To a later key with this code behind the old one; [`Code::END`]: off the end.
    To(Code),
    /// The run is still on an entry of the key.
    Not,
    /// The next key is out of order.
    Misplaced,
}

impl Lead<'_> {
    fn pass(
        &mut self,
        cx: &mut RunContext,
        (seq, upper): (SeqNum, Option<&[u8]>),
        passed: &mut Shadowed,
    ) -> Result<()> {
        let mut places = [Place::Later; RUNS_MAX];
        let mut leads = self.leads(Code::UNKNOWN, &mut places);
        while let Some(key) = self.leader.key().filter(|key| leads && deletes(*key, seq)) {
            let user_key = key.user_key();
            if upper.is_some_and(|upper| self.order.compare(user_key, upper).is_ge()) {
                break;
            }
            self.last.clear();
            self.last.extend_from_slice(user_key);
            for (run, place) in self.newer.iter_mut().chain(self.older.iter_mut()).zip(&mut places) {
                if matches!(place, Place::Same) {
                    let Left::To(code) = leave(run, self.course, cx, passed)? else { return Ok(()) };
                    *place = Place::Left(code);
                }
            }
            passed.keys += 1;
            let Left::To(code) = leave(self.leader, self.course, cx, passed)? else { break };
            leads = self.leads(code, &mut places);
        }
        Ok(())
    }

    /// Whether the leader's entry, which has `code`, is the next one of the merge. Learns where the other runs are beside it.
    fn leads(&self, code: Code, places: &mut Places) -> bool {
        let Some(next) = self.leader.key() else { return false };
        for (run, place) in self.newer.iter().chain(&*self.older).zip(places) {
            let order = match (*place, run.key()) {
                // Both codes have one base.
                (Place::Left(other), _) if other != code => code.cmp(&other),
                (_, None) => Ordering::Less,
                (_, Some(key)) => match self.order.compare(next.user_key(), key.user_key()) {
                    // Newer versions of a key have larger trailers.
                    Ordering::Equal if key.trailer() < next.trailer() => Ordering::Equal,
                    Ordering::Equal => Ordering::Greater,
                    order => order,
                },
            };
            *place = match order {
                Ordering::Less => Place::Later,
                Ordering::Equal => Place::Same,
                Ordering::Greater => return false,
            };
        }
        true
    }
}

/// Moves `run` past its entries of the key on which it stands.
fn leave(run: &mut Run, course: Course, cx: &mut RunContext, passed: &mut Shadowed) -> Result<Left> {
    for _ in 0..VERSIONS_MAX {
        passed.entries += 1;
        let Some(sharing) = run.next_sharing(cx)? else { return Ok(Left::To(Code::END)) };
        match Code::behind(course, &sharing) {
            None => {
                passed.misplaced = true;
                return Ok(Left::Misplaced);
            }
            Some(Code::SAME) => {}
            Some(code) => return Ok(Left::To(code)),
        }
    }
    Ok(Left::Not)
}
