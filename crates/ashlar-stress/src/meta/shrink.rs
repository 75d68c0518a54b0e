//! Making a failing case small: first the operations, in ever smaller pieces (Zeller and Hildebrandt, ddmin), then whatever
//! else the case can do without.

use std::ops::Range;

/// Runs that it may cost.
const RUNS: usize = 400;

/// A case that can be made smaller.
pub(super) trait Shrinks: Clone {
    /// Whether it fails still.
    fn fails(&self) -> bool;
    /// How many operations it has.
    fn operations(&self) -> usize;
    /// The case without some of its operations.
    fn without(&self, operations: Range<usize>) -> Self;
    /// How many other parts have a default.
    fn parts(&self) -> usize;
    /// The case with one of these parts at its default; `None`: it is there already.
    fn plainer(&self, part: usize) -> Option<Self>;
}

/// The smallest case found that still fails.
pub(super) fn shrink<C: Shrinks>(mut case: C) -> C {
    let mut left = RUNS;
    let mut try_it = |smaller: C, case: &mut C| {
        if left == 0 {
            return false;
        }
        left -= 1;
        let fails = smaller.fails();
        if fails {
            *case = smaller;
        }
        fails
    };
    let mut piece = case.operations() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < case.operations() {
            let smaller = case.without(at..(at + piece).min(case.operations()));
            if !try_it(smaller, &mut case) {
                at += piece;
            }
        }
        piece /= 2;
    }
    for part in 0..case.parts() {
        if let Some(smaller) = case.plainer(part) {
            try_it(smaller, &mut case);
        }
    }
    case
}
