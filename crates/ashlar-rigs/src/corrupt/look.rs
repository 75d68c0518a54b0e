//! Determines the outcome for a damaged directory: opens it, reads it in every way, verifies, compacts, and reads again.

use super::subject::{DIR, Files, KEYS, Subject, key, machine, open};
use ashlar_base::ErrorKind;
use ashlar_base::error::IoKind;
use ashlar_engine::Db;
use ashlar_options::ReadOptions;
use ashlar_read::iter::KeyBounds;
use ashlar_testkit::KeyValue;
use std::collections::BTreeMap;
use std::path::Path;

pub(super) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// The outcomes of damage, a letter each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    /// The open fails.
    Refused,
    /// A read fails; what other reads say is right.
    ReadError,
    /// All reads are right, and a verification finds the damage.
    OnlyVerify,
    /// A shorter history, and the report says so.
    CutReported,
    /// A shorter history without a word: what is there could have been all.
    CutSilently,
    /// The same answers, and the report names the dropped or rewritten files.
    IdenticalReported,
    /// Nothing to be seen.
    Identical,
}

impl Outcome {
    pub(super) const ALL: [Outcome; 7] = [
        Outcome::Refused,
        Outcome::ReadError,
        Outcome::OnlyVerify,
        Outcome::CutReported,
        Outcome::CutSilently,
        Outcome::IdenticalReported,
        Outcome::Identical,
    ];

    pub(super) fn words(self) -> &'static str {
        match self {
            Outcome::Refused => "open refused",
            Outcome::ReadError => "read refused",
            Outcome::OnlyVerify => "found by verification",
            Outcome::CutReported => "cut and reported",
            Outcome::CutSilently => "cut without a word",
            Outcome::IdenticalReported => "same and reported",
            Outcome::Identical => "same",
        }
    }

    pub(super) fn letter(self) -> char {
        match self {
            Outcome::Refused => 'E',
            Outcome::ReadError => 'e',
            Outcome::OnlyVerify => 'v',
            Outcome::CutReported => 'T',
            Outcome::CutSilently => 't',
            Outcome::IdenticalReported => 'R',
            Outcome::Identical => '=',
        }
    }
}

/// An outcome, and which state of the history is shown, where all reads work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    pub(super) past: Option<usize>,
}

impl Subject {
    /// The files of the directory when these have other bytes, or (`None`) are gone.
    pub(super) fn damaged(&self, damage: &[(String, Option<Vec<u8>>)]) -> Files {
        let mut files = self.files.clone();
        for (name, bytes) in damage {
            match bytes {
                Some(bytes) => drop(files.insert(name.clone(), bytes.clone())),
                None => drop(files.remove(name)),
            }
        }
        files
    }

    /// The outcome for the damaged directory.
    pub(super) fn outcome(&self, damage: &[(String, Option<Vec<u8>>)]) -> Result<Outcome, String> {
        self.seen(damage).map(|seen| seen.outcome)
    }

    /// [`Subject::outcome`], with the state.
    pub(super) fn seen(&self, damage: &[(String, Option<Vec<u8>>)]) -> Result<Seen, String> {
        let no_state = |outcome| Seen { outcome, past: None };
        let env = machine(1);
        let put = |files: &Files| -> ashlar_base::Result<()> {
            env.fs.create_dir_all(Path::new(DIR))?;
            files
                .iter()
                .try_for_each(|(name, bytes)| env.fs.create(&Path::new(DIR).join(name))?.write_at(bytes, 0))
        };
        put(&self.damaged(damage)).map_err(|e| e.to_string())?;
        let db = match open(&env, self.level) {
            Ok(db) => db,
            Err(e) => return refusal(&e).map(no_state),
        };
        let seen = See::all(&db)?;
        let last = self.last();
        let Some(state) = seen.state else {
            if !seen.right(&last) {
                return Err("wrong answers beside errors".to_owned());
            }
            compacted(&db, &last)?;
            return Ok(no_state(Outcome::ReadError));
        };
        let clean = db.recovery().is_clean();
        let tail_dropped = db.recovery().tail_dropped();
        let sound = db.verify_checksums(|_| ()).is_ok();
        compacted(&db, &state)?;
        let Some(past) = self.history.iter().rposition(|past| *past == state) else {
            return Err("a state that never was".to_owned());
        };
        let outcome = match (state == last, sound, clean) {
            (true, false, _) => Outcome::OnlyVerify,
            (true, true, false) => Outcome::IdenticalReported,
            (true, true, true) => Outcome::Identical,
            (false, ..) if tail_dropped => Outcome::CutReported,
            (false, ..) if past >= self.flushed => Outcome::CutSilently,
            (false, ..) => return Err(format!("silent: back at batch {past} without a word")),
        };
        Ok(Seen { outcome, past: Some(past) })
    }
}

/// A refusal must be for damage, not for a machine that fails.
fn refusal(e: &ashlar_base::Error) -> Result<Outcome, String> {
    match e.kind() {
        ErrorKind::Corruption | ErrorKind::NotSupported | ErrorKind::Io(IoKind::NotFound) => {
            Ok(Outcome::Refused)
        }
        _ => Err(format!("refused, but not for damage: {e}")),
    }
}

/// A compaction over damage fails, or changes no answer.
fn compacted(db: &Db, state: &State) -> Result<(), String> {
    let family = db.family("default").ok_or("no default family")?;
    let done = db.compact_range(&family, None, None);
    let seen = See::all(db).map_err(|e| format!("compacted ({}): {e}", done.is_ok()))?;
    match seen.state {
        Some(now) if now == *state => Ok(()),
        Some(_) => Err(format!("a compaction ({}) changed the answers", done.is_ok())),
        None if seen.right(state) => Ok(()),
        None => Err("wrong answers beside errors after a compaction".to_owned()),
    }
}

/// What reading shows.
struct See {
    /// Everything, when every way to read it worked and agreed.
    state: Option<State>,
    /// What was shown before an error.
    shown: Vec<KeyValue>,
    /// Keys that were got, with the answer.
    got: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl See {
    /// Scans both ways and gets every key.
    fn all(db: &Db) -> Result<See, String> {
        let (forwards, forwards_whole) = scan(db, false);
        let (mut backwards, backwards_whole) = scan(db, true);
        backwards.reverse();
        let family = db.family("default").ok_or("no default family")?;
        let (mut got, mut failed) = (Vec::new(), 0);
        for key in (0..KEYS).map(key) {
            match db.get(&family, &key, ReadOptions::default()) {
                Ok(value) => got.push((key, value.map(|value| value.into_vec()))),
                Err(_) => failed += 1,
            }
        }
        if !forwards_whole || !backwards_whole || failed > 0 {
            let shown = [forwards, backwards].concat();
            return Ok(See { state: None, shown, got });
        }
        let state: State = forwards.iter().cloned().collect();
        if forwards != backwards || state.len() != forwards.len() {
            return Err("scans differ".to_owned());
        }
        match got.iter().find(|(key, value)| state.get(key) != value.as_ref()) {
            Some((key, _)) => Err(format!("{}: get says otherwise than the scans", key.escape_ascii())),
            None => Ok(See { state: Some(state), shown: Vec::new(), got }),
        }
    }

    /// Nothing shown is wrong.
    fn right(&self, known: &State) -> bool {
        self.shown.iter().all(|(key, value)| known.get(key) == Some(value))
            && self.got.iter().all(|(key, value)| known.get(key) == value.as_ref())
    }
}

/// The entries in one direction, and whether it came to the end.
fn scan(db: &Db, reverse: bool) -> (Vec<KeyValue>, bool) {
    let mut all = Vec::new();
    let Some(family) = db.family("default") else { return (all, false) };
    let Ok(mut iter) = db.iter(&family, KeyBounds::default(), ReadOptions::default()) else {
        return (all, false);
    };
    let mut moved = if reverse { iter.last() } else { iter.first() };
    while moved.is_ok() {
        let Some((key, value)) = iter.entry() else { return (all, true) };
        all.push((key.to_vec(), value.to_vec()));
        moved = if reverse { iter.prev() } else { iter.next() };
    }
    (all, false)
}
