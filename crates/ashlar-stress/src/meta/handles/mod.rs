//! The handles of users: scans with any builder calls and from both ends, cursors in both directions, snapshots, families.
//! They stay open across writes, flushes, compactions, deletions of tables, drops of families, and opens with other settings.
//! Each shows the state at its creation, or is refused as documented.
//!
//! The database is used as users use it, through `ashlardb`, on a simulated machine. Families in three orders.
//! `--replay=handles-N` is case N. Drawn too:
//!
//! 1. The options of every read (see `options`). A read shows what its tier has, or ends with the error of one of its options.
//! 2. A second database (see `second`), which writes, reads, closes and opens in turns with the first one. In most cases both
//!    share `Resources`: a memory cap for two databases or for more, and no, a low, a high or the highest rate limit. Threads
//!    are not drawn: the simulated machine runs the jobs.

mod acts;
mod options;
mod second;
mod shown;
mod world;

use super::settings::{Choice, DIMENSIONS};
use super::shrink::{Shrinks, shrink};
use acts::{Act, Share, acts};
use ashlar_testkit::Rng;
use ashlar_testkit::suite::{Report, guarded};
use std::ops::Range;
use world::{Done, World};

/// Acts of a list.
const ACTS: usize = 400;

/// A list of acts under drawn settings.
#[derive(Clone, Debug)]
struct Case {
    choice: Choice,
    /// What the two databases share.
    share: Option<Share>,
    acts: Vec<Act>,
    seed: u64,
}

/// The case of a number.
pub(super) fn one(number: u64, choice: Choice, report: &mut Report) {
    let mut rng = Rng::new(!number);
    let acts = acts(&mut rng, &choice, ACTS);
    let share = rng.percent(60).then(|| Share::draw(&mut rng));
    let case = Case { choice, share, acts, seed: number };
    report.count("lists over shared resources", u64::from(share.is_some()));
    match case.run() {
        Ok(Done {
            scans,
            moves,
            moves_later,
            refused,
            tables_deleted,
            reopens,
            parts,
            given_up,
            second,
            turns,
        }) => {
            report.count("lists of handles", 1);
            report.count("scans described in any order", scans);
            report.count("moves of cursors", moves);
            report.count("moves of cursors after a reopen", moves_later);
            report.count("handles refused", refused);
            report.count("tables deleted by range", tables_deleted);
            report.count("reopens under handles", reopens);
            report.count("scans of a part", parts);
            report.count("reads given up as their options say", given_up);
            report.count("acts on the second database", second);
            report.count("opens and closes of the second database", turns);
        }
        Err(first) => {
            let small = shrink(case);
            let what = small.run().err().unwrap_or(first);
            let brief = |act: &Act| format!("{act:?}").chars().take(300).collect::<String>();
            let list: Vec<String> = small.acts.iter().take(30).map(brief).collect();
            let (words, list) = (small.choice.words(), list.join("\n"));
            let text =
                format!("{what}\nunder {words}, {:?}, {} acts:\n{list}", small.share, small.acts.len());
            report.fail(format!("handles-{number}"), text);
        }
    }
}

impl Case {
    fn run(&self) -> Result<Done, String> {
        guarded(|| {
            let mut world = World::new(self.seed, &self.choice, self.share)?;
            for (at, act) in self.acts.iter().enumerate() {
                world.act(act).map_err(|e| format!("act {at}: {e}"))?;
            }
            world.compare().map_err(|e| format!("at the end: {e}"))?;
            Ok(world.done)
        })
    }
}

impl Shrinks for Case {
    fn fails(&self) -> bool {
        self.run().is_err()
    }

    fn operations(&self) -> usize {
        self.acts.len()
    }

    fn without(&self, operations: Range<usize>) -> Case {
        let mut smaller = self.clone();
        smaller.acts.drain(operations);
        smaller
    }

    fn parts(&self) -> usize {
        (self.acts.len() + 1) * DIMENSIONS.len() + 1
    }

    fn plainer(&self, part: usize) -> Option<Case> {
        let mut smaller = self.clone();
        let (act, dimension) = (part / DIMENSIONS.len(), part % DIMENSIONS.len());
        let choice = match smaller.acts.get_mut(act) {
            None if act > self.acts.len() => {
                smaller.share.take()?;
                return Some(smaller);
            }
            None => &mut smaller.choice,
            Some(Act::Reopen { choice, .. }) => choice,
            Some(_) => return None,
        };
        (std::mem::take(&mut choice.0[dimension]) != 0).then_some(smaller)
    }
}
