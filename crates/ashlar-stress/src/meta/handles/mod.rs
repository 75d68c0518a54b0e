//! What users hold of a database: scans that are described in any order and go from both ends, cursors that go any way,
//! snapshots, families. They stay open across writes, flushes, compactions, deletions of tables, drops of families, and
//! opens with other settings. Each shows what it saw when it was made, or is refused as documented.
//!
//! The database is used as users use it, through `ashlardb`, on a simulated machine. Families in three orders, a second
//! database whose handles must be refused. `--replay=handles-N` is case N.

mod acts;
mod shown;
mod world;

use super::settings::{Choice, DIMENSIONS};
use super::shrink::{Shrinks, shrink};
use crate::suite::{Report, guarded};
use acts::{Act, acts};
use ashlar_testkit::Rng;
use std::ops::Range;
use world::{Done, World};

/// Acts of a list.
const ACTS: usize = 400;

/// A list of acts under drawn settings.
#[derive(Clone, Debug)]
struct Case {
    choice: Choice,
    acts: Vec<Act>,
    seed: u64,
}

/// The case of a number.
pub(super) fn one(number: u64, choice: Choice, report: &mut Report) {
    let mut rng = Rng::new(!number);
    let acts = acts(&mut rng, &choice, ACTS);
    let case = Case { choice, acts, seed: number };
    match case.run() {
        Ok(Done { scans, moves, moves_later, refused, tables_deleted, reopens }) => {
            report.count("lists of handles", 1);
            report.count("scans described in any order", scans);
            report.count("moves of cursors", moves);
            report.count("moves of cursors after a reopen", moves_later);
            report.count("handles refused", refused);
            report.count("tables deleted by range", tables_deleted);
            report.count("reopens under handles", reopens);
        }
        Err(first) => {
            let small = shrink(case);
            let what = small.run().err().unwrap_or(first);
            let brief = |act: &Act| format!("{act:?}").chars().take(300).collect::<String>();
            let list: Vec<String> = small.acts.iter().take(30).map(brief).collect();
            let (words, list) = (small.choice.words(), list.join("\n"));
            let text = format!("{what}\nunder {words}, {} acts:\n{list}", small.acts.len());
            report.fail(format!("handles-{number}"), text);
        }
    }
}

impl Case {
    fn run(&self) -> Result<Done, String> {
        guarded(|| {
            let mut world = World::new(self.seed, &self.choice)?;
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
        (self.acts.len() + 1) * DIMENSIONS.len()
    }

    fn plainer(&self, part: usize) -> Option<Case> {
        let mut smaller = self.clone();
        let (act, dimension) = (part / DIMENSIONS.len(), part % DIMENSIONS.len());
        let choice = match smaller.acts.get_mut(act) {
            None => &mut smaller.choice,
            Some(Act::Reopen { choice, .. }) => choice,
            Some(_) => return None,
        };
        (std::mem::take(&mut choice.0[dimension]) != 0).then_some(smaller)
    }
}
