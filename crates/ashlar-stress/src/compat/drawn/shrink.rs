//! Minimises a failing case: first the rounds, then the history, so that the many later attempts are short. Then it removes
//! all settings at once, groups of settings, and single ones.

use super::options_file::OptionsFile;
use super::plan::{Plan, Setting, Step, Turn};
use super::rounds::play;
use ashlar_testkit::ops::BulkKind;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Runs and time that one case may cost.
const RUNS: usize = 60;
const LONGEST: Duration = Duration::from_secs(15);

struct Shrinker<'a> {
    kind: &'a str,
    defaults: &'a OptionsFile,
    best: Plan,
    left: usize,
    end: Instant,
}

/// The smallest case found that still shows a finding of `kind`.
pub(super) fn shrink(plan: Plan, kind: &str, defaults: &OptionsFile) -> Plan {
    let mut shrinker = Shrinker { kind, defaults, best: plan, left: RUNS, end: Instant::now() + LONGEST };
    shrinker.rounds();
    shrinker.steps();
    shrinker.settings();
    shrinker.families();
    shrinker.best
}

impl Shrinker<'_> {
    fn try_it(&mut self, plan: Plan) -> bool {
        if self.left == 0 || Instant::now() > self.end || plan == self.best {
            return false;
        }
        self.left -= 1;
        let fails = play(&plan, self.defaults).findings.iter().any(|finding| finding.kind == self.kind);
        if fails {
            self.best = plan;
        }
        fails
    }

    fn rounds(&mut self) {
        while self.best.rounds.len() > 1 {
            let mut plan = self.best.clone();
            plan.rounds.pop();
            if !self.try_it(plan) {
                break;
            }
        }
        if self.best.rounds.len() > 1 {
            let mut plan = self.best.clone();
            plan.rounds.remove(0);
            self.try_it(plan);
        }
        for at in 0..self.best.rounds.len() {
            let mut plan = self.best.clone();
            if let Some((ours, theirs)) = plan.rounds.get_mut(at) {
                ours.steps.clear();
                theirs.steps.clear();
            }
            self.try_it(plan);
        }
    }

    /// How many settings there are, and one out of all lists.
    fn count(&self) -> usize {
        self.best.db.len() + self.best.families.iter().map(|family| family.settings.len()).sum::<usize>()
    }

    fn settings(&mut self) {
        let mut piece = self.count();
        while piece > 0 {
            let mut at = 0;
            while at < self.count() {
                let plan = without(&self.best, at, at + piece);
                if !self.try_it(plan) {
                    at += piece;
                }
            }
            piece /= 2;
        }
    }

    fn families(&mut self) {
        for at in (0..self.best.families.len()).rev() {
            let mut plan = self.best.clone();
            if plan.families.get(at).is_none_or(|family| family.name == "default") {
                continue;
            }
            plan.families.remove(at);
            self.try_it(plan);
        }
        let plan = Plan { reads: Vec::new(), ..self.best.clone() };
        self.try_it(plan);
        let plan = Plan { wrapper: String::new(), ..self.best.clone() };
        self.try_it(plan);
    }

    fn steps(&mut self) {
        for at in (0..self.best.history.len()).rev() {
            let mut plan = self.best.clone();
            plan.history.remove(at);
            self.try_it(plan);
        }
        for at in 0..self.best.history.len() {
            loop {
                let mut plan = self.best.clone();
                let Some(Step::Bulk(bulk)) = plan.history.get_mut(at) else { break };
                bulk.count /= 2;
                if bulk.count == 0 || !self.try_it(plan) {
                    break;
                }
            }
        }
    }
}

/// A plan in which nothing but the settings of these names is left, and the visit that may lose them.
pub(super) fn only(plan: &Plan, names: &BTreeSet<String>, stored: bool) -> Plan {
    let mut plan = plan.clone();
    let own = |settings: &mut Vec<Setting>| {
        settings.retain(|setting| setting.name.split('.').any(|part| names.contains(part)));
    };
    own(&mut plan.db);
    plan.families.iter_mut().for_each(|family| own(&mut family.settings));
    plan.families.retain(|family| family.name == "default" || !family.settings.is_empty());
    plan.history = vec![Step::Close];
    plan.rounds.truncate(1);
    for (ours, theirs) in &mut plan.rounds {
        *ours = Turn { stored, killed: false, steps: Vec::new() };
        *theirs = Turn { stored: false, killed: false, steps: Vec::new() };
    }
    plan
}

/// The plan without the settings of these places, counted through all lists.
fn without(plan: &Plan, from: usize, to: usize) -> Plan {
    let mut plan = plan.clone();
    let mut at = 0;
    let merges =
        plan.history.iter().any(|step| matches!(step, Step::Bulk(bulk) if bulk.kind == BulkKind::Merge));
    let mut keep = |setting: &Setting| {
        at += 1;
        // Without its operator, RocksDB refuses a merge that is in the log by then.
        !(from..to).contains(&(at - 1)) || merges && setting.name == "merge_operator"
    };
    plan.db.retain(&mut keep);
    for family in &mut plan.families {
        family.settings.retain(&mut keep);
    }
    plan
}
