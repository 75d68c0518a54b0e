//! What a user may ask of background work: compactions of his choice, a pause, an end.

use crate::range::{KeyRange, Keys};
use crate::{Db, Family, RepairReport, Result};
use ashlar_base::{FileNumber, Level};
pub use ashlar_engine::LiveFile;
pub use ashlar_options::CompactRangeOptions;

impl Db {
    /// [`Family::compact_range`] of the default family.
    ///
    /// # Errors
    /// As there.
    pub fn compact_range(&self, range: impl KeyRange, options: CompactRangeOptions) -> Result<()> {
        self.default_family().compact_range(range, options)
    }

    /// Lets no new background work begin, and waits until what is under way has ended. Calls add up: each wants a
    /// [`Db::continue_background_work`]. Meanwhile writers go on until the memtables are full. [`Db::flush`], requests for a
    /// compaction, and [`Db::wait_for_background`] with work due are answered `Aborted`; so are [`Db::create_family`] and
    /// [`Db::drop_family`] while a writer waits.
    ///
    /// # Errors
    /// The cause, when what is under way cannot end. Nothing is paused then.
    pub fn pause_background_work(&self) -> Result<()> {
        self.engine().pause_background_work()
    }

    /// Takes one [`Db::pause_background_work`] back.
    ///
    /// # Errors
    /// `InvalidArgument`: there was none.
    pub fn continue_background_work(&self) -> Result<()> {
        self.engine().continue_background_work()
    }

    /// Ends the compactions under way and lets none begin; flushes go on. What they wrote is removed, what they read stays.
    /// Waits until none is left. Calls add up: each wants a [`Db::resume_compactions`].
    ///
    /// # Errors
    /// The cause, when the database is in an error state.
    pub fn abort_compactions(&self) -> Result<()> {
        self.engine().abort_compactions()
    }

    /// Takes one [`Db::abort_compactions`] back.
    ///
    /// # Errors
    /// `InvalidArgument`: there was none.
    pub fn resume_compactions(&self) -> Result<()> {
        self.engine().resume_compactions()
    }

    /// Takes a damaged table or blob file out of the open database, by the name that accounts of damage give it
    /// (`000012.sst`, `000013.blob`): what can be read of it takes its place, and the original goes to `lost/` as soon as no
    /// reader holds it. The account names the keys whose newest versions are lost. Compactions that had stopped for the
    /// damage begin again, and writes resume.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no such file, or nothing in it is damaged. `Busy`: a compaction works on it, or on a table
    /// that may point into it. `Io`: it could not be read or replaced. Nothing is given up then.
    pub fn quarantine(&self, file: &str) -> Result<RepairReport> {
        self.engine().quarantine(file)
    }

    /// Waits until no background work is under way or due.
    ///
    /// # Errors
    /// What keeps failing. `Aborted`: work is due, and background work is paused. `Shutdown`.
    pub fn wait_for_background(&self) -> Result<()> {
        self.engine().wait_for_background()
    }
}

impl Family {
    /// Writes what the family has in memory to a table and waits for it; with `atomic_flush` all families in one step.
    ///
    /// # Errors
    /// As [`Db::flush`].
    pub fn flush(&self) -> Result<()> {
        self.db.engine().flush(std::slice::from_ref(&self.inner))
    }

    /// Compacts the keys of `range`, and no more than the keys at its ends besides, down to the deepest level that has some.
    /// Waits for it.
    ///
    /// ```
    /// # use ashlardb::prelude::*;
    /// # use ashlardb::CompactRangeOptions;
    /// # fn main() -> ashlardb::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Db::open(dir.path().join("db"))?;
    /// let log = db.create_family("log")?;
    /// log.delete_range("2024", "2025")?;
    /// log.compact_range("2024".."2025", CompactRangeOptions::default())?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Io`, `Corruption`: a table could not be read or written. `Aborted`: by [`Db::abort_compactions`], or background
    /// work is paused. `InvalidArgument`: the family was dropped, the range begins behind its end, the target level does not exist, or levels on the way to it are not empty.
    pub fn compact_range(&self, range: impl KeyRange, options: CompactRangeOptions) -> Result<()> {
        let keys = Keys::of(&range);
        keys.check(&self.inner.options().order)?;
        let (begin, end) = (keys.lower.as_deref(), keys.upper.as_deref());
        self.db.engine().compact_range_with(&self.inner, begin, end, options)
    }

    /// Compacts tables, by the numbers in their names, into level `output`, with those that have to come along. At most
    /// `max_subcompactions` jobs share the work; 0: as the database has it. Waits for it.
    ///
    /// # Errors
    /// `InvalidArgument`: a table that is not there (any more) or is deeper than `output`, or no such level. Else as
    /// [`Family::compact_range`].
    pub fn compact_files(&self, numbers: &[u64], output: u8, max_subcompactions: usize) -> Result<()> {
        let numbers: Vec<FileNumber> = numbers.iter().map(|n| FileNumber(*n)).collect();
        self.db.engine().compact_files(&self.inner, &numbers, Level(output), max_subcompactions)
    }

    /// The family's tables at this moment: by level, in level 0 the newest first, below by key.
    ///
    /// # Errors
    /// `Shutdown`.
    pub fn live_files(&self) -> Result<Vec<LiveFile>> {
        self.db.engine().live_files(&self.inner)
    }
}
