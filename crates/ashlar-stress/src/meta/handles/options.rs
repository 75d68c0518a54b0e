//! The options of a read, drawn, and the answers that they allow. On a sound database, options change what a read costs and when
//! it gives up. Only its tier changes what it shows.

use super::shown::Part;
use ashlar_testkit::Rng;
use ashlardb::{BusyKind, Error, ErrorKind, ReadOptions, ReadTier, Result};
use std::time::{Duration, SystemTime};

/// A deadline or a time for one read of a file that no case reaches.
const AGES: Duration = Duration::from_secs(1 << 40);

/// An option and its value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Setting {
    FillCache(bool),
    VerifyChecksums(bool),
    Tier(ReadTier),
    /// So long after now. `None`: before 1970.
    Deadline(Option<Duration>),
    IoTimeout(Duration),
}

impl Setting {
    pub(super) fn draw(rng: &mut Rng) -> Setting {
        use ReadTier::{All, BlockCache, Memtable, Persisted};
        let (short, yes) = (Duration::from_micros(1), rng.percent(50));
        let deadlines = [None, Some(Duration::ZERO), Some(short), Some(AGES)];
        match rng.below(6) {
            0 => Setting::FillCache(yes),
            1 => Setting::VerifyChecksums(yes),
            2 | 3 => {
                Setting::Tier(*rng.pick(&[All, BlockCache, BlockCache, Persisted, Memtable]).unwrap_or(&All))
            }
            4 => Setting::Deadline(*rng.pick(&deadlines).unwrap_or(&None)),
            // Zero is refused.
            _ if rng.percent(10) => Setting::IoTimeout(Duration::ZERO),
            _ => Setting::IoTimeout(*rng.pick(&[short, AGES, Duration::MAX]).unwrap_or(&short)),
        }
    }
}

/// The options of one read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Options {
    pub(super) given: ReadOptions,
    tier: ReadTier,
    deadline: bool,
    io_timeout: bool,
    /// Every read with them is refused.
    pub(super) refused: bool,
}

impl Options {
    pub(super) fn set(&mut self, setting: Setting, now: SystemTime) {
        let given = self.given;
        self.given = match setting {
            Setting::FillCache(yes) => given.fill_cache(yes),
            Setting::VerifyChecksums(yes) => given.verify_checksums(yes),
            Setting::Tier(tier) => {
                self.tier = tier;
                given.read_tier(tier)
            }
            Setting::Deadline(after) => {
                self.deadline = after.is_none_or(|after| after < AGES);
                let before_1970 = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
                given.deadline(after.map_or(before_1970, |after| now + after))
            }
            Setting::IoTimeout(each) => {
                (self.io_timeout, self.refused) = (each < AGES, each.is_zero());
                given.io_timeout(each)
            }
        };
    }

    /// Whether a read may end with this error, because of its options.
    pub(super) fn allow(&self, e: &Error) -> bool {
        match e.kind() {
            ErrorKind::Busy(BusyKind::NotCached) => self.tier == ReadTier::BlockCache,
            ErrorKind::TimedOut => self.deadline || self.io_timeout,
            _ => false,
        }
    }

    /// The answer of a read, or `None` where it ended as its options allow.
    pub(super) fn taken<T>(&self, answer: Result<T>) -> Result<Option<T>> {
        match answer {
            Err(e) if self.allow(&e) => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// What the read shows. `unlogged`: the open has seen a write without the log.
    pub(super) fn part(&self, unlogged: bool) -> Part {
        match self.tier {
            ReadTier::Memtable => Part::Memtables,
            ReadTier::Persisted if unlogged => Part::Tables,
            _ => Part::All,
        }
    }
}
