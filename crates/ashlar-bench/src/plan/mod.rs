//! Resolves the name of a benchmark and the flags to a plan. Pure.

mod ranges;
mod table;

use crate::access::Access;
use crate::flags::Flags;
use crate::keys::{KeyMaker, KeyOrder, KeyShape};
use crate::lengths;
use crate::repeat::Repeat;
use crate::store::WriteHow;
use ashlar_base::nearest::nearest;
pub(crate) use ranges::Ranges;
use std::time::Duration;
use table::ENTRIES;

/// What the threads of a benchmark do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Puts.
    Put(KeyOrder),
    /// Deletes.
    Delete(KeyOrder),
    /// Merges of random keys.
    Merge,
    /// Gets of random keys below [`Plan::keys`].
    Get,
    /// Gets of [`Plan::batch`] random keys at once.
    MultiGet,
    /// A get and a put of the same key.
    Update,
    /// In every hundred operations: [`Plan::percent`] gets, then puts.
    ReadWrite,
    /// Gets and merges; [`Plan::percent`] of the operations are merges.
    ReadMerge,
    /// Scans over entries.
    Scan {
        /// Whether the scan goes backward from the last entry.
        backward: bool,
    },
    /// Transactions that add an amount to a random key of each of several sets.
    Transactions,
    /// Seeks random keys, then steps.
    Seek,
    /// Seeks ascending keys with one cursor.
    SeekOrdered,
    /// Unmeasured puts in key order, then seeks of the same keys in order.
    PutThenSeek,
    /// Creates a cursor and drops it.
    NewCursor,
    /// A function over a block in memory, without a database.
    Micro(Micro),
    /// Compacts the tables of this level into the next one, and waits.
    CompactLevel(u8),
    /// Reads every file and checks it.
    Verify,
    /// Compares every file with its recorded checksum.
    VerifyFiles,
    /// Asks for the size of the range between two random keys.
    ApproximateSize,
    /// Compacts everything, and waits.
    Compact,
    /// Flushes, and waits.
    Flush,
    /// Waits for background work.
    Wait,
    /// Resets the statistics to zero; not measured.
    ResetStats,
    /// Prints the statistics of these names; not measured.
    Print(&'static [&'static str]),
}

/// A function that is measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Micro {
    /// CRC-32C.
    Crc32c,
    /// XXH32.
    XxHash,
    /// XXH64.
    XxHash64,
    /// XXH3, 64 bits.
    Xxh3,
    /// Compression by this codec; `None`: that of `--compression_type`.
    Compress(Option<&'static str>),
    /// Decompression by this codec.
    Uncompress(Option<&'static str>),
    /// A thousand loads of one pointer.
    AcquireLoad,
}

/// The work of one more thread beside the measured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// There is no further thread.
    Nothing,
    /// Puts random keys.
    Writer,
    /// Merges into random keys.
    Merger,
    /// Scans all entries in order, again and again.
    Scanner,
}

/// A benchmark with every number resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The name.
    pub name: &'static str,
    /// The work of the measured threads.
    pub work: Work,
    /// Whether the benchmark needs an empty database.
    pub fresh: bool,
    /// The number of measured threads.
    pub threads: usize,
    /// The work of one more, unmeasured thread.
    pub beside: Beside,
    /// Operations per thread; `None`: only [`Plan::duration`] ends it.
    pub count: Option<u64>,
    /// The run time, if it ends the benchmark.
    pub duration: Option<Duration>,
    /// Upper bound of the key numbers, excluded.
    pub keys: u64,
    /// Upper bound of the writer's key numbers, excluded.
    pub writer_keys: u64,
    /// The distribution of random numbers.
    pub access: Access,
    /// Entries per batch.
    pub batch: u64,
    /// The percentage of gets or merges in a mix.
    pub percent: u64,
    /// The keys of a transaction, each in a set of its own.
    pub(crate) sets: u64,
    /// Range tombstones among puts.
    pub(crate) ranges: Option<Ranges>,
    /// The settings of writes.
    pub how: WriteHow,
    /// The shape of keys.
    pub shape: KeyShape,
    /// Bytes of a key, for the shapes without a fixed length.
    pub key_size: usize,
    /// Whether reads use keys that are never written.
    pub missing: bool,
    /// Bytes of the prefix of a key, and the number of prefixes. 0: no prefix.
    pub prefix: (usize, u64),
    /// The lengths of values.
    pub lengths: lengths::Kind,
    /// The number of runs.
    pub repeat: Repeat,
}

impl Plan {
    /// Resolves the benchmark `name`, which may end in `[X3-W1]`, under `flags`.
    ///
    /// # Errors
    /// A sentence for standard error, with all names and the nearest one.
    pub fn new(name: &str, flags: &Flags) -> Result<Plan, String> {
        let (name, repeat) = Repeat::split(name)?;
        let Some(entry) = ENTRIES.iter().find(|e| e.name == name) else { return Err(unknown(name)) };
        let count = match entry.work {
            Work::Put(_)
            | Work::PutThenSeek
            | Work::Merge
            | Work::Update
            | Work::ReadWrite
            | Work::ReadMerge
            | Work::Transactions => flags.writes,
            Work::Delete(_) => flags.deletes,
            _ => flags.reads,
        };
        let counted = match entry.work {
            Work::Put(order) | Work::Delete(order) => order != KeyOrder::Random,
            Work::Scan { .. } | Work::PutThenSeek | Work::Micro(_) => true,
            _ => false,
        };
        let duration = (!counted && flags.duration > 0).then(|| Duration::from_secs(flags.duration));
        let mut plan = Plan {
            name: entry.name,
            work: entry.work,
            fresh: false,
            threads: size(flags.threads),
            beside: Beside::Nothing,
            count: if duration.is_some() { None } else { Some(u64::try_from(count).unwrap_or(flags.num)) },
            duration,
            keys: flags.num,
            writer_keys: if flags.bgwriter_num > 0 { flags.bgwriter_num } else { flags.num },
            access: access(flags)?,
            batch: flags.batch_size,
            percent: 0,
            sets: flags.transaction_sets,
            ranges: Ranges::of(flags)?,
            how: WriteHow { sync: flags.sync, disable_wal: flags.disable_wal },
            shape: flags.key_shape,
            key_size: size(flags.key_size),
            missing: false,
            prefix: prefix(flags),
            lengths: lengths_of(flags)?,
            repeat,
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

    /// The number of threads, the unmeasured one included.
    pub(crate) fn all_threads(&self) -> usize {
        self.threads + usize::from(self.beside != Beside::Nothing)
    }

    /// True for the ones that read the database, beside a writer too.
    pub(crate) fn reads(&self) -> bool {
        matches!(self.work, Work::Get | Work::MultiGet | Work::Scan { .. } | Work::Seek | Work::SeekOrdered)
    }

    /// True when the tree is afterwards as it was before.
    pub(crate) fn only_reads(&self) -> bool {
        self.reads() && matches!(self.beside, Beside::Nothing | Beside::Scanner)
    }

    /// The maker of the keys that reads use.
    pub(crate) fn maker(&self) -> KeyMaker {
        let maker = KeyMaker::shaped(self.shape, self.key_size).prefixed(self.prefix.0, self.prefix.1);
        if self.missing { maker.missing() } else { maker }
    }

    /// The names with one line about each, for the help.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        ENTRIES.iter().map(|e| (e.name, e.text))
    }
}

fn size(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn prefix(flags: &Flags) -> (usize, u64) {
    match flags.num.checked_div(flags.keys_per_prefix) {
        Some(prefixes) => (size(flags.prefix_size), prefixes.max(1)),
        None => (0, 0),
    }
}

fn access(flags: &Flags) -> Result<Access, String> {
    if flags.read_random_exp_range > 0.0 {
        return Ok(Access::Exponential { range: flags.read_random_exp_range });
    }
    match flags.key_distribution.as_str() {
        "uniform" => Ok(Access::Uniform),
        "zipfian" => Ok(Access::Zipfian { theta: flags.zipfian_theta }),
        other => Err(format!("ERROR: key_distribution {other:?}: there are uniform and zipfian")),
    }
}

fn lengths_of(flags: &Flags) -> Result<lengths::Kind, String> {
    let (least, most) = (size(flags.value_size_min), size(flags.value_size_max));
    match flags.value_size_distribution_type.as_str() {
        "fixed" => Ok(lengths::Kind::Fixed(size(flags.value_size))),
        _ if least > most => Err(format!("ERROR: value_size_min is {least}, above value_size_max, {most}")),
        "uniform" => Ok(lengths::Kind::Uniform(least, most)),
        "normal" => Ok(lengths::Kind::Normal(least, most)),
        other => {
            Err(format!("ERROR: value_size_distribution_type {other:?}: there are fixed, uniform and normal"))
        }
    }
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
        for name in ["fillseq", "filluniquerandom", "readseq", "readreverse", "deleteseq"] {
            assert_eq!((timed(name).count, timed(name).duration), (Some(50_000), None), "{name}");
        }
        assert_eq!((timed("compact").count, timed("compact").duration), (Some(1), None));
    }

    #[test]
    fn each_has_its_own_shape() {
        assert!(["fillseq", "fillrandom", "fillsync", "fillbatch"].iter().all(|n| plan(n, |_| {}).fresh));
        assert!(!plan("overwrite", |_| {}).fresh);
        assert_eq!(plan("fillbatch", |_| {}).batch, 1000);
        assert!(plan("readmissing", |_| {}).missing);
        assert_eq!(plan("readhot", |_| {}).keys, 500);
        assert!(plan("fillsync", |_| {}).how.sync);
        assert_eq!(plan("readwhilewriting", |_| {}).beside, Beside::Writer);
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
        let refused = |change: fn(&mut Flags)| {
            let mut flags = Flags::default();
            change(&mut flags);
            Plan::new("fillseq", &flags).unwrap_err()
        };
        assert!(refused(|f| f.key_distribution = "even".into()).contains("uniform and zipfian"));
        assert!(
            refused(|f| f.value_size_distribution_type = "odd".into()).contains("fixed, uniform and normal")
        );
        assert!(
            refused(|f| {
                f.value_size_distribution_type = "normal".into();
                (f.value_size_min, f.value_size_max) = (9, 8);
            })
            .contains("above value_size_max")
        );
    }
}
