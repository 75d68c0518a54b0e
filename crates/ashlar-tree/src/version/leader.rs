//! The leader of the commit queue: plans the queued requests, makes their records durable, and installs the versions.
//! It holds no lock meanwhile.
//!
//! `commit` has the rules.

use super::manifest::Manifest;
use super::plan::{State, plan, stamp};
use super::queue::{CommitResult, Install, ManifestState, Ticket};
use super::snapshot::snapshot;
use super::{SwitchFailure, VersionSet};
use ashlar_base::planted::{Bug, planted};
use ashlar_base::{Error, ErrorKind, FamilyId, FileNumber, Result};
use ashlar_format::version_edit::VersionEdit;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// The leader, which holds the manifest state. If it is dropped without putting the state back (a panic), every commit
/// fails, now and later.
pub(super) struct Leader<'a> {
    set: &'a VersionSet,
    manifest_state: Option<Box<ManifestState>>,
    unanswered: Vec<u64>,
}

/// A request whose records are planned.
struct Planned {
    id: u64,
    touched: BTreeSet<FamilyId>,
    /// The state with this request and those before it, and without those behind it: its install shows readers no later change.
    after: State,
    install: Install,
}

impl<'a> Leader<'a> {
    pub(super) fn new(
        set: &'a VersionSet,
        manifest_state: Box<ManifestState>,
        tickets: &VecDeque<Ticket>,
    ) -> Self {
        Leader {
            set,
            manifest_state: Some(manifest_state),
            unanswered: tickets.iter().map(|t| t.id).collect(),
        }
    }

    pub(super) fn work(mut self, tickets: VecDeque<Ticket>, bound: u64) {
        let Some(manifest_state) = self.manifest_state.as_deref_mut() else { return };
        let (mut answers, mut records, mut planned) = (Vec::new(), Vec::new(), Vec::<Planned>::new());
        for Ticket { id, request, install } in tickets {
            if let Some(e) = &manifest_state.fatal {
                answers.push((id, Err(e.clone())));
                continue;
            }
            let mut after = planned.last().map_or(&manifest_state.state, |before| &before.after).clone();
            match plan(&mut after, request) {
                Ok(plan) => {
                    records.extend(plan.records);
                    planned.push(Planned { id, touched: plan.touched, after, install });
                }
                Err(e) => answers.push((id, Err(e))),
            }
        }
        if !planned.is_empty() {
            match self.set.write(manifest_state, records, bound) {
                Ok(()) => {
                    for Planned { id, touched, after, install } in planned {
                        manifest_state.state = after;
                        self.set.publish(manifest_state);
                        let families: Vec<_> = touched
                            .iter()
                            .filter_map(|f| manifest_state.state.families.get(f))
                            .map(Arc::clone)
                            .collect();
                        install(&families);
                        answers.push((id, Ok(families)));
                    }
                }
                Err(e) => answers.extend(planned.into_iter().map(|p| (p.id, Err(e.clone())))),
            }
        }
        self.put_back(answers);
    }

    fn put_back(&mut self, answers: Vec<(u64, CommitResult)>) {
        let mut queue = self.set.queue.lock();
        queue.answers.extend(answers);
        queue.manifest_state = self.manifest_state.take();
        drop(queue);
        self.set.signal.notify();
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        if let Some(manifest_state) = &mut self.manifest_state {
            let e = Error::new(ErrorKind::Aborted, "a MANIFEST commit panicked");
            manifest_state.manifest = None;
            manifest_state.fatal = Some(e.clone());
            self.set.published.write().fatal = Some(e.clone());
            let answers = self.unanswered.iter().map(|id| (*id, Err(e.clone()))).collect();
            self.put_back(answers);
        }
    }
}

impl VersionSet {
    /// Appends the records. If the MANIFEST is too large or has failed, starts a new one: first a snapshot of the state before
    /// the records, then the records.
    fn write(
        &self,
        manifest_state: &mut ManifestState,
        mut records: Vec<VersionEdit>,
        bound: u64,
    ) -> Result<()> {
        if self.next_file_number() >= FileNumber::MAX {
            return Err(Error::not_supported("all file numbers are used: nothing more can be written")
                .hint("Close the database and run a repair, which gives out lower numbers"));
        }
        let fits = manifest_state.manifest.take().filter(|m| !m.is_large(bound));
        let last_seq = self.last_sequence();
        if let Some(manifest) = fits {
            self.raise_last_sequence(stamp(&mut records, self.next_file_number(), last_seq));
            if records.is_empty() {
                manifest_state.manifest = Some(manifest);
                return Ok(());
            }
            // On failure the MANIFEST is dropped here: it is never appended to again.
            if let Err(e) = manifest.append(&records) {
                self.published.write().doubtful = true;
                manifest_state.manifest = Some(manifest).filter(|_| planted(Bug::ManifestGoesOn));
                return Err(e);
            }
            self.published.write().manifest_bytes = Some(manifest.bytes());
            manifest_state.manifest = Some(manifest);
            return Ok(());
        }
        let number = self.new_file_number();
        if records.is_empty() {
            records.push(VersionEdit { prev_log_number: Some(FileNumber(0)), ..VersionEdit::default() });
        }
        if let Some(first) =
            records.first_mut().filter(|_| manifest_state.state.db.max_family != FamilyId::DEFAULT)
        {
            first.max_family = first.max_family.or(Some(manifest_state.state.db.max_family));
        }
        self.raise_last_sequence(stamp(&mut records, self.next_file_number(), last_seq));
        let written = (self.level, self.has_id);
        let mut all = snapshot(&manifest_state.state.db, &manifest_state.state.families, last_seq, written);
        all.append(&mut records);
        match Manifest::start(&self.env.fs, &self.dir, number, all) {
            Ok(manifest) => {
                let mut published = self.published.write();
                published.manifest = manifest.number();
                published.manifest_bytes = Some(manifest.bytes());
                published.doubtful = false;
                manifest_state.manifest = Some(manifest);
                Ok(())
            }
            Err(SwitchFailure::Before(e)) => Err(e),
            Err(SwitchFailure::Unknown(e)) => {
                let e = e.hint("Close the database and open it again");
                manifest_state.fatal = Some(e.clone());
                self.published.write().fatal = Some(e.clone());
                Err(e)
            }
        }
    }

    fn publish(&self, manifest_state: &ManifestState) {
        let mut published = self.published.write();
        for family in manifest_state.state.families.values() {
            let known = published.state.families.get(&family.id);
            if known.is_none_or(|k| !Arc::ptr_eq(&k.version, &family.version)) {
                published.versions.push(Arc::downgrade(&family.version));
            }
        }
        let old = std::mem::replace(&mut published.state, manifest_state.state.clone());
        drop(published);
        // Dropped without the lock, because dropping a version closes files.
        drop(old);
    }
}
