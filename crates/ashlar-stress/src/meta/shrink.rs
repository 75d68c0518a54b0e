//! Making a failing case small: first the operations, in ever smaller pieces (Zeller and Hildebrandt, ddmin), then the
//! settings, one by one back to their defaults, and the rewriting away.

use super::Case;
use super::rewrite::Rewrite;

/// Runs that it may cost.
const RUNS: usize = 400;

/// The smallest case found that still fails.
pub(super) fn shrink(mut case: Case) -> Case {
    let mut left = RUNS;
    let mut try_it = |smaller: Case, case: &mut Case| {
        if left == 0 {
            return false;
        }
        left -= 1;
        let fails = smaller.run().is_err();
        if fails {
            *case = smaller;
        }
        fails
    };
    let mut piece = case.ops.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < case.ops.len() {
            let mut smaller = case.clone();
            smaller.ops.drain(at..(at + piece).min(smaller.ops.len()));
            if !try_it(smaller, &mut case) {
                at += piece;
            }
        }
        piece /= 2;
    }
    for at in 0..case.choice.0.len() {
        if case.choice.0[at] != 0 {
            let mut smaller = case.clone();
            smaller.choice.0[at] = 0;
            try_it(smaller, &mut case);
        }
    }
    let smaller = Case { rewrite: Rewrite::Nothing, ..case.clone() };
    try_it(smaller, &mut case);
    case
}
