//! The tailing cursor: a cursor over a family that shows what is written after its creation.
//!
//! 1. Each call that positions the cursor moves to the newest state of the family: `first`, `last` and the seeks. Steps stay in
//!    that state until they meet its end.
//! 2. At the end, `next` moves to the newest state, and shows the first key behind the last shown one. Off the end it does the
//!    same again. Where the positioning call found no entry, `next` repeats that call.
//! 3. `prev` stays in the state of the last positioning. Off the beginning, and after an error, the cursor stays off the end
//!    until it is positioned.
//! 4. While nothing was written, the end costs two loads. While the family has the same memtables and tables, a move to the
//!    newest state costs a few loads and the seek ([`DbIter::renew`]).
//! 5. The cursor knows the database by [`Follow`] only. That keeps no database open: after a close every move to the newest state
//!    answers `Shutdown`. A dropped family has no newer state than that of its drop.
//!
//! Source: RocksDB `db/forward_iterator.cc` for the idea, which also shows some new keys between two steps and has no `prev`.

use super::{DbIter, TableFilter};
use crate::super_version::SuperVersion;
use ashlar_base::{Result, SeqNum};
use ashlar_options::ReadTier;
use ashlar_tree::columns::Columns;
use std::fmt;
use std::sync::Arc;

/// The newest state of a family.
pub trait Follow: Send {
    /// The state that a cursor made by this call would read.
    ///
    /// # Errors
    /// Those of a new cursor.
    fn newest(&self) -> Result<State>;
}

/// What a cursor reads.
pub struct State {
    /// The memtables and tables.
    pub from: Arc<SuperVersion>,
    /// The sequence number of the read.
    pub seq: SeqNum,
    /// Which of them are asked.
    pub tier: ReadTier,
}

/// Where `next` goes on from off the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resume {
    /// Nowhere: the cursor stays off the end.
    Nowhere,
    /// The first key.
    First,
    /// The first key at or after `place`.
    At,
    /// The first key behind `place`.
    Behind,
}

/// A cursor that follows the writes to a family; see the module. The calls have the errors of [`DbIter`], and `Shutdown`.
pub struct TailingIter {
    follow: Box<dyn Follow>,
    cursor: DbIter,
    resume: Resume,
    place: Vec<u8>,
}

impl TailingIter {
    /// A cursor that goes on from `cursor`, which is new. `follow`: the state of the same family.
    pub fn new(cursor: DbIter, follow: Box<dyn Follow>) -> TailingIter {
        TailingIter { follow, cursor, resume: Resume::Nowhere, place: Vec::new() }
    }

    /// [`DbIter::filter_tables`], also for later states.
    pub fn filter_tables(&mut self, filter: TableFilter) {
        self.cursor.filter_tables(filter);
    }

    /// Moves to the first key of the newest state.
    ///
    /// # Errors
    /// See the type.
    pub fn first(&mut self) -> Result<()> {
        self.position(Resume::First, DbIter::first)
    }

    /// Moves to the last key of the newest state.
    ///
    /// # Errors
    /// See the type.
    pub fn last(&mut self) -> Result<()> {
        self.position(Resume::First, DbIter::last)
    }

    /// Moves to the first key at or after `key` in the newest state.
    ///
    /// # Errors
    /// See the type.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        replace(&mut self.place, key);
        self.position(Resume::At, |cursor| cursor.seek(key))
    }

    /// Moves to the last key at or before `key` in the newest state.
    ///
    /// # Errors
    /// See the type.
    pub fn seek_for_prev(&mut self, key: &[u8]) -> Result<()> {
        self.position(Resume::Nowhere, |cursor| cursor.seek_for_prev(key))
    }

    /// Moves to the next key. At the end, and off it, looks for newer keys.
    ///
    /// # Errors
    /// See the type.
    #[allow(clippy::should_implement_trait, reason = "a cursor lends its entries")]
    pub fn next(&mut self) -> Result<()> {
        if let Some(key) = self.cursor.key() {
            replace(&mut self.place, key);
            self.resume = Resume::Nowhere;
            self.cursor.next()?;
            self.resume = Resume::Behind;
            if self.cursor.is_valid() {
                return Ok(());
            }
        }
        self.go_on()
    }

    /// Moves to the previous key. Off the end the cursor stays there.
    ///
    /// # Errors
    /// See the type.
    pub fn prev(&mut self) -> Result<()> {
        if self.cursor.is_valid() {
            self.resume = Resume::Nowhere;
            self.cursor.prev()?;
        }
        Ok(())
    }

    /// The key under the cursor; `None` off the end.
    #[inline]
    pub fn key(&self) -> Option<&[u8]> {
        self.cursor.key()
    }

    /// Key and value under the cursor; `None` off the end.
    #[inline]
    pub fn entry(&self) -> Option<(&[u8], &[u8])> {
        self.cursor.entry()
    }

    /// The columns of the entry under the cursor.
    ///
    /// # Errors
    /// As [`DbIter::columns`].
    pub fn columns(&self) -> Result<Option<Columns>> {
        self.cursor.columns()
    }

    /// The cursor over the state that is shown.
    pub fn shown(&self) -> &DbIter {
        &self.cursor
    }

    fn position(&mut self, resume: Resume, act: impl FnOnce(&mut DbIter) -> Result<()>) -> Result<()> {
        self.resume = Resume::Nowhere;
        self.renew()?;
        act(&mut self.cursor)?;
        self.resume = resume;
        Ok(())
    }

    /// Moves to the newest state, off the end. Returns whether the state is another one than before.
    fn renew(&mut self) -> Result<bool> {
        self.cursor.end();
        let State { from, seq, tier } = self.follow.newest()?;
        let changed = !self.cursor.reads(&from, seq);
        self.cursor.renew(from, seq, tier)?;
        Ok(changed)
    }

    /// Off the end of one state: goes on in the newest one.
    #[cold]
    fn go_on(&mut self) -> Result<()> {
        let resume = std::mem::replace(&mut self.resume, Resume::Nowhere);
        if resume == Resume::Nowhere {
            return Ok(());
        }
        let changed = self.renew()?;
        match resume {
            _ if !changed => {}
            Resume::First => self.cursor.first()?,
            Resume::At => self.cursor.seek(&self.place)?,
            Resume::Nowhere | Resume::Behind => {
                self.cursor.seek(&self.place)?;
                if self.cursor.is_on(&self.place) {
                    self.cursor.next()?;
                }
            }
        }
        self.resume = resume;
        Ok(())
    }
}

fn replace(buffer: &mut Vec<u8>, with: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(with);
}

impl fmt::Debug for TailingIter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TailingIter { cursor, resume, .. } = self;
        f.debug_struct("TailingIter").field("cursor", cursor).field("resume", resume).finish_non_exhaustive()
    }
}
