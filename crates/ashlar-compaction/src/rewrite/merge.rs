//! Merging sorted runs: a loser tree over prefix words.
//!
//! Every run shows its head as eight bytes of the user key, after a prefix that all keys share. If two words differ,
//! they decide; equal words need the full comparison. The tree has one loser per inner node; `tree[0]` is the winner. A
//! run that keeps winning is compared with the runner-up only, without touching the tree.
//!
//! 1. `heads[i]` describes entry `at` of run `i`'s window; an exhausted run has the largest word and loses every tie.
//! 2. Equal internal keys come out in the order of the runs: give the newest run first.
//! 3. `runner_up`, where known, is the smallest head except the winner's; only the winner moves, so it stays valid
//!    until the winner loses.
//!
//! Source: Knuth, The Art of Computer Programming 3, 5.4.1 (tree of losers).

use ashlar_base::ext::comparator::KeyOrder;
use ashlar_base::iter::{Entry, RunCursor, Window};
use ashlar_base::{Error, Result};

#[derive(Clone, Copy)]
struct Head {
    word: u64,
    done: bool,
}

struct Run {
    cursor: Box<dyn RunCursor>,
    window: Window,
    at: usize,
}

/// The entries of several runs in one order. Positioned on an entry or at the end.
pub struct Merge<C: KeyOrder> {
    order: C,
    skip: usize,
    runs: Vec<Run>,
    heads: Vec<Head>,
    tree: Vec<usize>,
    runner_up: Option<usize>,
    streak: u32,
}

/// After this many wins in a row the runner-up is determined.
const STREAK: u32 = 3;

impl<C: KeyOrder> Merge<C> {
    /// Merges `runs`, newest first, from the positions of their cursors. `skip` is the length of a prefix that all user
    /// keys share; 0 is always correct.
    ///
    /// # Errors
    /// Those of the cursors.
    pub fn new(order: C, skip: usize, runs: Vec<Box<dyn RunCursor>>) -> Result<Self> {
        let count = runs.len();
        let runs = runs.into_iter().map(|cursor| Run { cursor, window: Window::new(), at: 0 }).collect();
        let head = Head { word: u64::MAX, done: true };
        let mut merge = Merge {
            order,
            skip,
            runs,
            heads: vec![head; count],
            tree: vec![0; count.max(1)],
            runner_up: None,
            streak: 0,
        };
        for run in 0..count {
            merge.refill(run)?;
        }
        merge.build();
        Ok(merge)
    }

    /// The smallest entry not yet passed; `None` at the end.
    #[inline]
    pub fn entry(&self) -> Option<Entry<'_>> {
        let run = self.runs.get(self.winner())?;
        run.window.entry(run.at)
    }

    /// Passes the smallest entry.
    ///
    /// # Errors
    /// Those of the cursors; the merge must not be used afterwards.
    #[inline]
    pub fn advance(&mut self) -> Result<()> {
        let winner = self.winner();
        self.step(winner)?;
        if let Some(second) = self.runner_up {
            if self.before(winner, second) {
                return Ok(());
            }
            self.runner_up = None;
        }
        self.replay(winner);
        Ok(())
    }

    #[inline]
    fn winner(&self) -> usize {
        self.tree.first().copied().unwrap_or(0)
    }

    #[inline]
    fn step(&mut self, index: usize) -> Result<()> {
        let Some(run) = self.runs.get_mut(index) else { return Ok(()) };
        run.at += 1;
        match run.window.key(run.at) {
            Some(key) => {
                let word = self.order.word(key.user_key(), self.skip);
                if let Some(head) = self.heads.get_mut(index) {
                    *head = Head { word, done: false };
                }
                Ok(())
            }
            None => self.refill(index),
        }
    }

    #[cold]
    fn refill(&mut self, index: usize) -> Result<()> {
        let (Some(run), Some(head)) = (self.runs.get_mut(index), self.heads.get_mut(index)) else {
            return Ok(());
        };
        run.at = 0;
        *head = Head { word: u64::MAX, done: true };
        run.window.clear();
        if head_is_open(run)? {
            let entry = run.window.entry(0).ok_or_else(|| Error::corruption("a run holds a damaged key"))?;
            *head = Head { word: self.order.word(entry.key.user_key(), self.skip), done: false };
        }
        Ok(())
    }

    /// Whether run `a`'s head comes before run `b`'s.
    #[inline]
    fn before(&self, a: usize, b: usize) -> bool {
        let (Some(x), Some(y)) = (self.heads.get(a), self.heads.get(b)) else { return a < b };
        if x.word != y.word {
            return x.word < y.word;
        }
        if x.done || y.done {
            return !x.done;
        }
        self.before_by_key(a, b)
    }

    fn before_by_key(&self, a: usize, b: usize) -> bool {
        let entry = |i: usize| self.runs.get(i).and_then(|r| r.window.entry(r.at));
        let (Some(x), Some(y)) = (entry(a), entry(b)) else { return a < b };
        let ((kx, tx), (ky, ty)) = (x.key.split(), y.key.split());
        self.order.cmp(kx, ky).then_with(|| ty.cmp(&tx)).then(a.cmp(&b)).is_lt()
    }

    fn build(&mut self) {
        let count = self.runs.len();
        if count < 2 {
            return;
        }
        let mut winners: Vec<usize> = (0..2 * count).map(|node| node.saturating_sub(count)).collect();
        for node in (1..count).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let left_wins = self.before(left, right);
            winners[node] = if left_wins { left } else { right };
            self.tree[node] = if left_wins { right } else { left };
        }
        self.tree[0] = winners[1];
    }

    /// Replays the path of the winner's new head up to the root.
    #[inline]
    fn replay(&mut self, start: usize) {
        let mut winner = start;
        let mut node = (start + self.runs.len()) / 2;
        while node >= 1 {
            let Some(&loser) = self.tree.get(node) else { break };
            if self.before(loser, winner) {
                self.tree[node] = winner;
                winner = loser;
            }
            node /= 2;
        }
        self.tree[0] = winner;
        if winner != start {
            self.streak = 0;
            return;
        }
        self.streak += 1;
        if self.streak >= STREAK {
            self.streak = 0;
            self.runner_up = self.find_runner_up(winner);
        }
    }

    /// The second smallest head lost to the winner itself, so it is on the winner's path.
    fn find_runner_up(&self, winner: usize) -> Option<usize> {
        let mut second: Option<usize> = None;
        let mut node = (winner + self.runs.len()) / 2;
        while node >= 1 {
            let loser = self.tree.get(node).copied()?;
            second = match second {
                Some(best) if self.before(best, loser) => Some(best),
                _ => Some(loser),
            };
            node /= 2;
        }
        second
    }
}

/// Loads the next window. If a run returns an empty window and claims to have entries, it is asked again, so that a
/// head always has a key.
fn head_is_open(run: &mut Run) -> Result<bool> {
    while run.cursor.window(&mut run.window)? {
        if !run.window.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}
