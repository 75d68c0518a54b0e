//! The benchmarks by name, and what each comes to under given flags. Pure.

use crate::flags::Flags;
use crate::keys::KeyOrder;
use crate::store::WriteHow;
use ashlar_base::nearest::nearest;
use std::time::Duration;

/// What the threads of a benchmark do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Puts.
    Put(KeyOrder),
    /// Deletes.
    Delete(KeyOrder),
    /// Gets of random keys below [`Plan::keys`].
    Get,
    /// Walks over entries.
    Scan {
        /// From the last entry.
        backward: bool,
    },
    /// Seeks random keys, then steps.
    Seek,
    /// Waits for a whole compaction.
    Compact,
    /// Waits for a flush.
    Flush,
    /// Waits for background work.
    Wait,
    /// Prints the statistics of that name; not measured.
    Print(&'static str),
}

/// A benchmark with every number resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// What its threads do.
    pub work: Work,
    /// Needs an empty database.
    pub fresh: bool,
    /// Threads that are measured.
    pub threads: usize,
    /// One more thread puts random keys meanwhile; it is not measured.
    pub writer: bool,
    /// Operations per thread; `None`: only [`Plan::duration`] ends it.
    pub count: Option<u64>,
    /// How long it runs, when that decides.
    pub duration: Option<Duration>,
    /// Numbers of keys are below this.
    pub keys: u64,
    /// Numbers of the writer's keys are below this.
    pub writer_keys: u64,
    /// Entries per batch.
    pub batch: u64,
    /// How writes are done.
    pub how: WriteHow,
    /// Bytes of a key.
    pub key_size: usize,
    /// Bytes of a value.
    pub value_size: usize,
}

/// A row of the table of benchmarks.
struct Entry {
    name: &'static str,
    text: &'static str,
    work: Work,
    adjust: fn(&mut Plan, &Flags),
}

const fn entry(name: &'static str, text: &'static str, work: Work) -> Entry {
    Entry { name, text, work, adjust: |_, _| {} }
}

const SEQUENTIAL: KeyOrder = KeyOrder::Sequential;
const RANDOM: KeyOrder = KeyOrder::Random;

const ENTRIES: &[Entry] = &[
    Entry { adjust: fresh, ..entry("fillseq", "puts in key order, fresh database", Work::Put(SEQUENTIAL)) },
    Entry { adjust: fresh, ..entry("fillrandom", "puts of random keys, fresh database", Work::Put(RANDOM)) },
    Entry {
        adjust: |plan, flags| {
            fresh(plan, flags);
            plan.batch = 1000;
        },
        ..entry("fillbatch", "fillseq in batches of 1000", Work::Put(SEQUENTIAL))
    },
    Entry {
        adjust: |plan, flags| {
            fresh(plan, flags);
            plan.how.sync = true;
            if flags.writes < 0 {
                plan.count = plan.count.map(|_| (flags.num / 1000).max(1));
            }
        },
        ..entry("fillsync", "num/1000 puts of random keys, each synced, fresh database", Work::Put(RANDOM))
    },
    entry("overwrite", "puts of random keys, database as it is", Work::Put(RANDOM)),
    entry("readrandom", "gets of random keys", Work::Get),
    Entry {
        adjust: |plan, _| plan.key_size += 1,
        ..entry("readmissing", "gets of keys that are not there", Work::Get)
    },
    Entry {
        adjust: |plan, flags| plan.keys = flags.num.div_ceil(100),
        ..entry("readhot", "gets of random keys of the first hundredth", Work::Get)
    },
    entry("readseq", "a walk forward", Work::Scan { backward: false }),
    entry("readreverse", "a walk backward", Work::Scan { backward: true }),
    entry("seekrandom", "seeks of random keys, --seek_nexts steps after each", Work::Seek),
    Entry {
        adjust: |plan, _| plan.writer = true,
        ..entry("readwhilewriting", "readrandom while one more thread writes", Work::Get)
    },
    entry("deleteseq", "deletes in key order", Work::Delete(SEQUENTIAL)),
    entry("deleterandom", "deletes of random keys", Work::Delete(RANDOM)),
    Entry { adjust: once, ..entry("compact", "compacts everything", Work::Compact) },
    Entry { adjust: once, ..entry("flush", "flushes the memtables", Work::Flush) },
    Entry { adjust: once, ..entry("waitforcompaction", "waits for background work", Work::Wait) },
    entry("stats", "prints the engine's statistics", Work::Print("stats")),
    entry("levelstats", "prints files and sizes of the levels", Work::Print("levelstats")),
];

fn fresh(plan: &mut Plan, _: &Flags) {
    plan.fresh = true;
}

fn once(plan: &mut Plan, _: &Flags) {
    (plan.count, plan.duration, plan.threads) = (Some(1), None, 1);
}

impl Plan {
    /// The benchmark `name` under `flags`.
    ///
    /// # Errors
    /// A sentence for standard error, with all names and the nearest one.
    pub fn new(name: &str, flags: &Flags) -> Result<Plan, String> {
        let Some(entry) = ENTRIES.iter().find(|e| e.name == name) else { return Err(unknown(name)) };
        let count = match entry.work {
            Work::Put(_) => flags.writes,
            Work::Delete(_) => flags.deletes,
            _ => flags.reads,
        };
        let timed =
            !matches!(entry.work, Work::Put(SEQUENTIAL) | Work::Delete(SEQUENTIAL) | Work::Scan { .. });
        let duration = (timed && flags.duration > 0).then(|| Duration::from_secs(flags.duration));
        let mut plan = Plan {
            name: entry.name,
            work: entry.work,
            fresh: false,
            threads: size(flags.threads),
            writer: false,
            count: if duration.is_some() { None } else { Some(u64::try_from(count).unwrap_or(flags.num)) },
            duration,
            keys: flags.num,
            writer_keys: if flags.bgwriter_num > 0 { flags.bgwriter_num } else { flags.num },
            batch: flags.batch_size,
            how: WriteHow { sync: flags.sync, disable_wal: flags.disable_wal },
            key_size: size(flags.key_size),
            value_size: size(flags.value_size),
        };
        (entry.adjust)(&mut plan, flags);
        Ok(plan)
    }

    /// All of `flags.benchmarks`, in order.
    ///
    /// # Errors
    /// As [`Plan::new`], before anything runs.
    pub fn list(flags: &Flags) -> Result<Vec<Plan>, String> {
        let names = flags.benchmarks.split(',').map(str::trim).filter(|n| !n.is_empty());
        names.map(|name| Plan::new(name, flags)).collect()
    }

    /// Threads, the writer beside readers included.
    pub(crate) fn all_threads(&self) -> usize {
        self.threads + usize::from(self.writer)
    }

    /// Names and one line about each, for the help.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        ENTRIES.iter().map(|e| (e.name, e.text))
    }
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn unknown(name: &str) -> String {
    let names = || ENTRIES.iter().map(|e| e.name);
    let meant = nearest(name, names()).map(|m| format!(" (did you mean {m}?)")).unwrap_or_default();
    format!(
        "unknown benchmark '{name}'{meant}\nThe benchmarks are: {}",
        names().collect::<Vec<_>>().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: &str, change: impl FnOnce(&mut Flags)) -> Plan {
        let mut flags = Flags { num: 50_000, ..Flags::default() };
        change(&mut flags);
        Plan::new(name, &flags).unwrap()
    }

    #[test]
    fn counts_follow_their_flags() {
        assert_eq!(plan("fillseq", |_| {}).count, Some(50_000));
        assert_eq!(plan("fillseq", |f| f.writes = 7).count, Some(7));
        assert_eq!(plan("readrandom", |f| f.reads = 8).count, Some(8));
        assert_eq!(plan("deleteseq", |f| f.deletes = 9).count, Some(9));
        assert_eq!(plan("fillsync", |_| {}).count, Some(50));
        assert_eq!(plan("fillsync", |f| f.writes = 3).count, Some(3));
        assert_eq!(plan("compact", |f| f.threads = 4).count, Some(1));
    }

    #[test]
    fn duration_ends_random_work_only() {
        let timed = |name| plan(name, |f| f.duration = 5);
        for name in [
            "fillrandom",
            "overwrite",
            "readrandom",
            "seekrandom",
            "readwhilewriting",
            "deleterandom",
            "fillsync",
        ] {
            assert_eq!(
                (timed(name).count, timed(name).duration),
                (None, Some(Duration::from_secs(5))),
                "{name}"
            );
        }
        for name in ["fillseq", "readseq", "readreverse", "deleteseq"] {
            assert_eq!((timed(name).count, timed(name).duration), (Some(50_000), None), "{name}");
        }
        assert_eq!((timed("compact").count, timed("compact").duration), (Some(1), None));
    }

    #[test]
    fn each_has_its_own_shape() {
        assert!(["fillseq", "fillrandom", "fillsync", "fillbatch"].iter().all(|n| plan(n, |_| {}).fresh));
        assert!(!plan("overwrite", |_| {}).fresh);
        assert_eq!(plan("fillbatch", |_| {}).batch, 1000);
        assert_eq!(plan("readmissing", |_| {}).key_size, 17);
        assert_eq!(plan("readhot", |_| {}).keys, 500);
        assert!(plan("fillsync", |_| {}).how.sync && plan("readwhilewriting", |_| {}).writer);
        let with = plan("readwhilewriting", |f| (f.threads, f.bgwriter_num) = (3, 10));
        assert_eq!((with.threads, with.writer_keys, with.keys), (3, 10, 50_000));
    }

    #[test]
    fn lists_and_mistakes() {
        let flags = |names: &str| Flags { benchmarks: names.into(), ..Flags::default() };
        let names: Vec<_> =
            Plan::list(&flags("fillseq, readseq,,stats")).unwrap().iter().map(|p| p.name).collect();
        assert_eq!(names, ["fillseq", "readseq", "stats"]);
        let error = Plan::list(&flags("fillseq,fillsek")).unwrap_err();
        assert!(error.starts_with(
            "unknown benchmark 'fillsek' (did you mean fillseq?)\nThe benchmarks are: fillseq, fillrandom"
        ));
        assert!(Plan::new("FillSeq", &Flags::default()).is_err());
    }
}
