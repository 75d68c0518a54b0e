//! Lists of operations that mean the same.

use crate::sim::plan::Step;
use ashlar_testkit::{Change, Op, Rng};

/// How a list is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rewrite {
    /// As it is.
    Nothing,
    /// Before each put of a key that is never deleted singly: a delete of it.
    DeleteBeforePut,
    /// A batch in two.
    SplitBatches,
    /// A deletion of a range twice.
    RangesTwice,
    /// Scans in both directions.
    ScansBothWays,
    /// Flushes anywhere.
    Flushes,
    /// Compactions anywhere.
    Compactions,
    /// Orderly reopens anywhere, where no snapshot is held: those end with the handle.
    Reopens,
    /// Background work anywhere.
    Background,
    /// Writes wait for the device; a store ingests some of those.
    Synced,
}

const ALL: [Rewrite; 10] = [
    Rewrite::Nothing,
    Rewrite::DeleteBeforePut,
    Rewrite::SplitBatches,
    Rewrite::RangesTwice,
    Rewrite::ScansBothWays,
    Rewrite::Flushes,
    Rewrite::Compactions,
    Rewrite::Reopens,
    Rewrite::Background,
    Rewrite::Synced,
];

impl Rewrite {
    pub(super) fn draw(rng: &mut Rng) -> Rewrite {
        *rng.pick(&ALL).unwrap_or(&Rewrite::Nothing)
    }

    /// What is done for one operation.
    pub(super) fn steps(self, op: &Op, rng: &mut Rng) -> Vec<Step> {
        let mut ops = vec![op.clone()];
        let anywhere = rng.percent(15);
        match (self, op) {
            (Rewrite::DeleteBeforePut, Op::Write { changes, sync }) => {
                ops = vec![Op::Write {
                    changes: changes.iter().flat_map(deleted_before).collect(),
                    sync: *sync,
                }];
            }
            (Rewrite::SplitBatches, Op::Write { changes, sync }) => {
                let (a, b) = changes.split_at(changes.len() / 2);
                ops = [a, b].map(|part| Op::Write { changes: part.to_vec(), sync: *sync }).to_vec();
            }
            (Rewrite::RangesTwice, Op::Write { changes, sync }) => {
                let twice =
                    |c: &Change| vec![c.clone(); 1 + usize::from(matches!(c, Change::DeleteRange { .. }))];
                ops = vec![Op::Write { changes: changes.iter().flat_map(twice).collect(), sync: *sync }];
            }
            (Rewrite::Synced, Op::Write { changes, .. }) => {
                ops = vec![Op::Write { changes: changes.clone(), sync: true }];
            }
            (Rewrite::ScansBothWays, Op::Scan { family, from, to, reverse, at }) => {
                let (family, from, to) = (family.clone(), from.clone(), to.clone());
                ops.push(Op::Scan { family, from, to, reverse: !reverse, at: *at });
            }
            (Rewrite::Flushes, _) if anywhere => ops.push(Op::Flush { family: "default".to_owned() }),
            (Rewrite::Compactions, _) if anywhere => ops.push(Op::Compact { family: "one".to_owned() }),
            (Rewrite::Reopens, _) if anywhere => ops.push(Op::Reopen),
            _ => {}
        }
        let mut steps: Vec<Step> = ops.into_iter().map(Step::Op).collect();
        if self == Rewrite::Background && anywhere {
            steps.push(if rng.percent(20) { Step::Idle } else { Step::Drive(rng.between(1, 5)) });
        }
        steps
    }
}

/// A delete and the put. Keys that are deleted singly may be put once only, and nothing else.
fn deleted_before(change: &Change) -> Vec<Change> {
    match change {
        Change::Put { family, key, .. } if !key.starts_with(b"once/") => {
            vec![Change::Delete { family: family.clone(), key: key.clone() }, change.clone()]
        }
        _ => vec![change.clone()],
    }
}
