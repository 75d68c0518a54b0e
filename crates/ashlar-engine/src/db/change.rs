//! Changes of settings while the database is open.
//!
//! 1. A change is all or nothing: it is applied to a copy, checked, and installed whole. Changes run one after the
//!    other.
//! 2. A flush, a compaction or a write that has started keeps the settings it started with.
//! 3. The OPTIONS file is written after the change, outside every lock. If that fails, the change stays in force until
//!    the database is closed, and the failure is reported.

use super::Db;
use super::core::Core;
use super::schedule::widen;
use crate::column_family::Family;
use ashlar_base::{Error, Result};
use ashlar_options::{DbOptions, Group, Notice, Options, Together};
use std::sync::Arc;

impl Db {
    /// Changes settings of a family, by RocksDB's names, all or none. The new values apply to every write, flush and
    /// compaction that starts after the call. A notice explains why an accepted value has no effect.
    ///
    /// # Errors
    /// `InvalidArgument`: no such name or value, a value out of range, or a setting that cannot change while the
    /// database is open, or settings that RocksDB refuses together. `NotSupported`: the value asks for a feature that this
    /// engine lacks. `Shutdown`.
    pub fn set_options(&self, family: &Family, changes: &[(&str, &str)]) -> Result<Vec<Notice>> {
        self.core().check_outside("set_options()")?;
        self.core().change_family(family, changes)
    }

    /// Changes settings of the database, as [`Db::set_options`] changes those of a family.
    ///
    /// # Errors
    /// Those of [`Db::set_options`].
    pub fn set_db_options(&self, changes: &[(&str, &str)]) -> Result<Vec<Notice>> {
        self.core().check_outside("set_db_options()")?;
        self.core().change_database(changes)
    }
}

impl Core {
    fn change_family(self: &Arc<Self>, family: &Family, changes: &[(&str, &str)]) -> Result<Vec<Notice>> {
        let _claim = self.claim()?;
        self.health.check_working()?;
        self.check_live(family)?;
        let notices = {
            let _changing = self.changing.lock();
            let db = (*self.options()).clone();
            let level = db.format_level;
            let before = family.options();
            let mut options = Options { db, family: (*before).clone() };
            let notices = options.change(Group::Family, changes)?;
            options.family.validate(level)?;
            let Options { db, family: changed } = &options;
            Together { db, family: changed }.check_since(Together { db, family: &before })?;
            family.replace_options(options.family.at_level(level));
            self.committer.current().doubt();
            notices
        };
        self.settings_changed();
        Ok(notices)
    }

    fn change_database(self: &Arc<Self>, changes: &[(&str, &str)]) -> Result<Vec<Notice>> {
        let _claim = self.claim()?;
        self.health.check_working()?;
        let (notices, jobs, files, has_new_rate) = {
            let _changing = self.changing.lock();
            let before = self.options();
            let mut options = Options { db: (*before).clone(), ..Options::default() };
            let notices = options.change(Group::Database, changes)?;
            options.db.validate()?;
            let (jobs, files) = (options.db.max_background_jobs, options.db.max_open_files);
            if self.memory.resources().are_common() && jobs != before.max_background_jobs {
                let text = "max_background_jobs is set for a database that shares Resources";
                return Err(Error::invalid(text).hint("Give the threads to Resources::threads"));
            }
            let limit = |db: &DbOptions| (db.rate_limit_bytes, db.rate_limit_auto_tuned);
            let has_new_rate = limit(&before) != limit(&options.db);
            self.options.set(Arc::new(options.db));
            (notices, jobs, files, has_new_rate)
        };
        if has_new_rate {
            // Pauses were computed from the former rate.
            self.wake_jobs();
        }
        widen(&self.env, self.memory.resources(), jobs);
        self.tables.set_limit(files);
        self.settings_changed();
        Ok(notices)
    }

    /// Wakes every waiting thread so that it re-reads the settings, schedules the work that may be due, and writes the
    /// OPTIONS file.
    pub(super) fn settings_changed(self: &Arc<Self>) {
        self.update_pressure();
        self.renew_options();
        self.schedule();
        self.arm_timer();
        self.progress.notify();
    }
}
