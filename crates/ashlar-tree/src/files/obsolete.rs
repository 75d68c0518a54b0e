//! Finds the obsolete files of a directory. A pure function of names and numbers.
//!
//! 1. The function only names files whose names are spelled as a database spells them. Names such as `MANIFEST-1` and
//!    `9.sst` parse, but no program uses them for database files. Such a file may belong to the user and stays.
//! 2. The caller says which files are live, after making every version edit behind that durable.
//! 3. A file whose number is at or above the smallest pending number is being written, and stays.
//! 4. After an open that dropped the tail of a WAL file, a table or blob file that the MANIFEST does not name may
//!    belong to a write in that tail. After an unfinished repair, any unknown file may be a damaged original.
//!    [`Spared`] says which of these files move to `lost/` instead of being removed. A file in quarantine always moves.
//!
//! Source: RocksDB `db/db_impl/db_impl_files.cc` (`PurgeObsoleteFiles`).

use super::PendingOutputs;
use crate::version::VersionSet;
use ashlar_base::FileNumber;
use ashlar_base::planted::{Bug, planted};
use ashlar_format::filename::FileKind;
use std::collections::BTreeSet;

/// The number of OPTIONS files that are kept: the newest and the one before.
const OPTIONS_KEPT: usize = 2;

/// The files that a database needs in its directory.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Tables in any version that a reader may still use.
    pub tables: BTreeSet<FileNumber>,
    /// Blob files that the MANIFEST names.
    pub blobs: BTreeSet<FileNumber>,
    /// The smallest number of a file that is being written; `None` when nothing is.
    pub smallest_pending: Option<FileNumber>,
    /// WALs from this number on hold unflushed data. 0 keeps all.
    pub min_wal: FileNumber,
    /// WALs that are needed though they are below `min_wal` (LevelDB's previous log, a log that is still being read).
    pub wals: BTreeSet<FileNumber>,
    /// The MANIFEST that `CURRENT` names. 0 (no such MANIFEST yet, or in doubt) keeps all MANIFESTs.
    pub manifest: FileNumber,
    /// Which obsolete files move to `lost/`.
    pub spared: Spared,
    /// Tables, blob files, WAL files and OPTIONS files that move to `lost/` in any case.
    pub quarantined: BTreeSet<FileNumber>,
}

/// Which obsolete files move to `lost/` instead of being removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spared {
    /// Nothing.
    #[default]
    Nothing,
    /// Tables and blob files: the open dropped the tail of the MANIFEST or of a WAL file, and this is the first purge
    /// since.
    Orphans,
    /// Tables, blob files, WAL files and MANIFESTs.
    Everything,
}

impl Live {
    /// Whether the file may be one that is being written.
    pub(super) fn is_begun(&self, kind: FileKind) -> bool {
        let pending = |n: FileNumber| self.smallest_pending.is_some_and(|p| n >= p);
        match kind {
            FileKind::Table(n) | FileKind::LevelDbTable(n) => !self.tables.contains(&n) && pending(n),
            FileKind::Blob(n) => !self.blobs.contains(&n) && pending(n),
            _ => false,
        }
    }

    /// The files that `versions` needs now. Call it *before* listing the directory, so that a file that is begun or
    /// committed meanwhile counts as pending. Call [`VersionSet::may_unlink`] first.
    pub fn now(versions: &VersionSet, pending: &PendingOutputs, spared: Spared) -> Live {
        // The counter before the set: a number reserved in between is at or above one of the two.
        let next = versions.next_file_number();
        let pending = pending.smallest().filter(|_| !planted(Bug::PendingRemoved));
        let smallest_pending = Some(pending.map_or(next, |p| p.min(next)));
        let (tables, blobs) = versions.live_files();
        let prev_log = versions.db_facts().prev_log;
        Live {
            tables,
            blobs,
            smallest_pending,
            min_wal: if planted(Bug::LogRemovedEarly) { next } else { versions.min_wal() },
            wals: (prev_log.0 != 0).then_some(prev_log).into_iter().collect(),
            manifest: versions.manifest_number(),
            spared,
            quarantined: BTreeSet::new(),
        }
    }
}

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is removed.
    Remove,
    /// It is moved to the directory `lost`.
    Lose,
}

/// An obsolete file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obsolete {
    /// Its name as it stands in the directory.
    pub name: String,
    /// What the name says.
    pub kind: FileKind,
    /// What becomes of it.
    pub action: Action,
}

/// The files among `names` that are obsolete, in the order given.
pub fn find_obsolete<'a>(names: impl IntoIterator<Item = &'a str>, live: &Live) -> Vec<Obsolete> {
    let ours: Vec<(&str, FileKind)> =
        names.into_iter().filter_map(|name| Some((name, FileKind::parse_exact(name)?))).collect();
    let mut options: Vec<FileNumber> = ours
        .iter()
        .filter_map(|(_, kind)| if let FileKind::Options(n) = kind { Some(*n) } else { None })
        .collect();
    options.sort_unstable();
    let options_from = options.iter().rev().nth(OPTIONS_KEPT - 1).copied().unwrap_or_default();
    ours.into_iter()
        .filter_map(|(name, kind)| {
            let action = fate(kind, live, options_from)?;
            Some(Obsolete { name: name.to_string(), kind, action })
        })
        .collect()
}

/// `None`: it stays.
fn fate(kind: FileKind, live: &Live, options_from: FileNumber) -> Option<Action> {
    let pending = |n: FileNumber| live.smallest_pending.is_some_and(|p| n >= p);
    let unless = |spared| if live.spared >= spared { Action::Lose } else { Action::Remove };
    let replaced = unless(Spared::Everything);
    let orphan = |n| if live.quarantined.contains(&n) { Action::Lose } else { unless(Spared::Orphans) };
    match kind {
        _ if live.is_begun(kind) => None,
        FileKind::Table(n) | FileKind::LevelDbTable(n) => (!live.tables.contains(&n)).then(|| orphan(n)),
        FileKind::Blob(n) => (!live.blobs.contains(&n)).then(|| orphan(n)),
        FileKind::Wal(n) => {
            let action = if live.quarantined.contains(&n) { Action::Lose } else { replaced };
            (n < live.min_wal && !live.wals.contains(&n)).then_some(action)
        }
        FileKind::Manifest(n) => (n < live.manifest).then_some(replaced),
        FileKind::Options(n) if live.quarantined.contains(&n) => Some(Action::Lose),
        // Two newer OPTIONS files prove that no thread is writing this one any more.
        FileKind::Options(n) | FileKind::OptionsTemp(n) => (n < options_from).then_some(Action::Remove),
        FileKind::Temp(n) => (!pending(n) && n < live.manifest).then_some(Action::Remove),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(list: &[u64]) -> BTreeSet<FileNumber> {
        list.iter().copied().map(FileNumber).collect()
    }

    fn live() -> Live {
        Live {
            tables: numbers(&[10, 12]),
            blobs: numbers(&[11]),
            smallest_pending: Some(FileNumber(40)),
            min_wal: FileNumber(20),
            wals: numbers(&[18]),
            manifest: FileNumber(21),
            spared: Spared::Nothing,
            quarantined: BTreeSet::new(),
        }
    }

    fn removed(names: &[&str], live: &Live) -> Vec<String> {
        find_obsolete(names.iter().copied(), live).into_iter().map(|o| o.name).collect()
    }

    #[test]
    fn only_what_nothing_needs() {
        let names = [
            "000009.sst",
            "000010.sst",
            "000012.ldb",
            "000013.ldb",
            "000011.blob",
            "000014.blob",
            "000040.sst",
            "000041.blob",
            "000017.log",
            "000018.log",
            "000019.log",
            "000020.log",
            "000022.log",
            "MANIFEST-000005",
            "MANIFEST-000021",
            "MANIFEST-000030",
            "CURRENT",
            "IDENTITY",
            "LOCK",
            "LOG",
            "LOG.old.12",
            "000005.dbtmp",
            "000000.dbtmp",
            "000042.dbtmp",
            "METADB-000001",
            "COMPACTION_PROGRESS-3",
        ];
        assert_eq!(
            removed(&names, &live()),
            [
                "000009.sst",
                "000013.ldb",
                "000014.blob",
                "000017.log",
                "000019.log",
                "MANIFEST-000005",
                "000005.dbtmp",
                "000000.dbtmp"
            ]
        );
    }

    #[test]
    fn unknown_names_are_never_touched() {
        let names =
            ["9.sst.trash", "notes.txt", "lost", "9", "x.sst", "9.SST", ".000009.sst", "-9.sst", "archive"];
        assert_eq!(removed(&names, &live()), Vec::<String>::new());
    }

    #[test]
    fn names_that_no_database_spells_so_are_not_touched() {
        let names = ["9.sst", "10.sst", "MANIFEST-1", "1.dbtmp", "0000009.sst", "OPTIONS-1", "17.log"];
        assert_eq!(removed(&names, &live()), Vec::<String>::new());
    }

    #[test]
    fn two_options_files_stay() {
        let names =
            ["OPTIONS-000007", "OPTIONS-000030", "OPTIONS-000009", "OPTIONS-000008.dbtmp", "OPTIONS-1000000"];
        assert_eq!(removed(&names, &live()), ["OPTIONS-000007", "OPTIONS-000009", "OPTIONS-000008.dbtmp"]);
        assert_eq!(removed(&names[..1], &live()), Vec::<String>::new());
    }

    #[test]
    fn what_is_spared_is_moved() {
        use Action::{Lose, Remove};
        let names =
            ["000009.sst", "000014.blob", "000017.log", "MANIFEST-000005", "000005.dbtmp", "000010.sst"];
        for (spared, expected) in [
            (Spared::Nothing, [Remove, Remove, Remove, Remove, Remove]),
            (Spared::Orphans, [Lose, Lose, Remove, Remove, Remove]),
            (Spared::Everything, [Lose, Lose, Lose, Lose, Remove]),
        ] {
            let obsolete = find_obsolete(names, &Live { spared, ..live() });
            let fates: Vec<_> = obsolete.iter().map(|o| (&*o.name, o.action)).collect();
            assert_eq!(fates, names.into_iter().zip(expected).collect::<Vec<_>>(), "{spared:?}");
        }
    }

    #[test]
    fn what_is_in_quarantine_is_moved_when_nobody_needs_it() {
        use Action::{Lose, Remove};
        let names = ["000009.sst", "000010.sst", "000014.blob", "000015.sst", "000017.log", "000041.sst"];
        let live = Live { quarantined: numbers(&[9, 10, 14, 17, 41]), ..live() };
        let fates: Vec<_> = find_obsolete(names, &live).into_iter().map(|o| (o.name, o.action)).collect();
        let expected =
            [("000009.sst", Lose), ("000014.blob", Lose), ("000015.sst", Remove), ("000017.log", Lose)];
        assert_eq!(fates, expected.map(|(name, action)| (name.to_owned(), action)));
    }

    #[test]
    fn nothing_known_means_nothing_but_orphans() {
        // No MANIFEST number, no log number: nothing of that kind may go.
        let live = Live { smallest_pending: Some(FileNumber(0)), ..Live::default() };
        let names = ["000009.sst", "000017.log", "MANIFEST-000005", "000001.dbtmp", "000014.blob"];
        assert_eq!(removed(&names, &live), Vec::<String>::new());
    }
}
