//! The valid contents after a kill: a prefix of every writer's list that contains all acknowledged operations.

use super::plan::Plan;
use ashlar_testkit::oracle::State;
use ashlar_testkit::{Model, Op};

/// The lists of all writers, as far as they may have come.
#[derive(Clone, Debug)]
pub(super) struct Histories {
    writers: Vec<Model>,
    /// Sequence numbers given out that no recovered operation has.
    gap: u64,
    /// The last round's writers wait for an acknowledgement of many operations, so that more than one may be in doubt.
    in_strides: bool,
}

impl Histories {
    pub(super) fn new(writers: usize) -> Histories {
        Histories { writers: vec![Model::new(); writers], gap: 0, in_strides: false }
    }

    /// Adds a round: the writers came at least as far as `floors`. Answers how many writes were acknowledged.
    pub(super) fn follow(&mut self, plan: &Plan, round: u64, stride: u64, floors: &[u64]) -> u64 {
        for ((writer, model), floor) in self.writers.iter_mut().enumerate().zip(floors) {
            for (at, op) in (0..floor + stride).zip(plan.list(round, writer)) {
                let Op::Write { changes, .. } = op else { continue };
                let number = model.apply(&changes);
                if at < *floor {
                    model.acknowledge(number);
                }
            }
        }
        self.in_strides = stride > 1;
        floors.iter().sum()
    }

    /// Cuts every list at the last operation that `state` contains. If at most one operation per writer is in doubt, the
    /// store's `sequence` must equal that of the cuts. So a later write to the same key cannot hide a gap.
    ///
    /// # Errors
    /// A text that says what is lost or wrong.
    pub(super) fn settle(&mut self, state: &State, sequence: u64) -> Result<(), String> {
        let mut cuts = Vec::new();
        for (writer, model) in self.writers.iter().enumerate() {
            let own = of_writer(state, writer);
            let cut = model.match_prefix(&own).map_err(|e| format!("writer {writer}: {e}"))?;
            // Operations in doubt may have changed nothing: then the cuts before them show this state too.
            let before = (model.floor()..cut).rev().take_while(|before| model.cut(*before) == own);
            cuts.push(std::iter::once(cut).chain(before).collect::<Vec<_>>());
        }
        let mut found = None;
        for choice in choices(&cuts) {
            let mut writers = self.writers.clone();
            for (model, cut) in writers.iter_mut().zip(choice) {
                model.truncate(cut);
            }
            let counted: u64 = writers.iter().map(Model::sequence).sum();
            if self.in_strides && sequence >= counted {
                (self.writers, self.gap) = (writers, sequence - counted);
                return Ok(());
            }
            if counted + self.gap == sequence {
                self.writers = writers;
                return Ok(());
            }
            found.get_or_insert(counted);
        }
        Err(format!(
            "the sequence is {sequence}, but what was recovered counts {found:?} and {} others",
            self.gap
        ))
    }
}

fn of_writer(state: &State, writer: usize) -> State {
    let names: Vec<String> = state.names().map(str::to_owned).collect();
    State::of(names.into_iter().map(|name| {
        let own = state.entries(&name).into_iter().filter(|(key, _)| Plan::writer_of(key) == Some(writer));
        let own = own.collect();
        (name, own)
    }))
}

/// One cut per writer, in every combination.
fn choices(cuts: &[Vec<usize>]) -> Vec<Vec<usize>> {
    cuts.iter().fold(vec![Vec::new()], |choices, cuts| {
        choices
            .iter()
            .flat_map(|chosen| cuts.iter().map(|cut| [chosen.as_slice(), &[*cut]].concat()))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content after two writers reached 40 and 25, each with an applied operation in doubt.
    fn left(plan: &Plan, without: Option<usize>) -> (State, u64) {
        let (mut state, mut sequence) = (State::default(), 0);
        for (writer, count) in [(0, 41), (1, 26)] {
            for (at, op) in plan.list(0, writer).take(count).enumerate() {
                let Op::Write { changes, .. } = op else { continue };
                if writer == 0 && without == Some(at) {
                    continue;
                }
                state.apply(&changes);
                sequence += changes.len() as u64;
            }
        }
        (state, sequence)
    }

    fn settled(plan: &Plan, floors: &[u64], (state, sequence): (State, u64)) -> Result<(), String> {
        let mut histories = Histories::new(2);
        histories.follow(plan, 0, 1, floors);
        histories.settle(&state, sequence)
    }

    #[test]
    fn a_hole_and_a_loss_are_found() {
        let mut plan = Plan::draw(2);
        plan.writers = 2;
        settled(&plan, &[40, 25], left(&plan, None)).expect("whole");
        let lost = settled(&plan, &[45, 25], left(&plan, None)).expect_err("too short");
        assert!(lost.contains("LOST WRITE"), "{lost}");
        for hole in [0, 10, 20, 30] {
            assert!(settled(&plan, &[40, 25], left(&plan, Some(hole))).is_err(), "a hole at {hole}");
        }
    }
}
