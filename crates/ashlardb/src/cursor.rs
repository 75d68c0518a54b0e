//! Cursors: a position in a key range that moves in both directions.

use crate::overlay::Walk;
use crate::{Columns, Result};
use ashlar_engine::column_family::Family;
use ashlar_read::iter::CursorPins;
use std::sync::Arc;

/// The key and value at a cursor's position, borrowed until the cursor moves.
pub type Lent<'a> = (&'a [u8], &'a [u8]);

/// A position in a family: on an entry, or off the end. Each call that moves the cursor returns its new entry, or `None` when
/// it is off the end.
///
/// After an error, or a panic in a callback, the cursor is off the end until [`Cursor::first`], [`Cursor::last`] or a seek. A
/// loop that goes on after such a panic must begin with one of these calls. A cursor still works after the database is closed or its family dropped. The next open of the directory removes replaced files. An older cursor that
/// needs one then answers `Io(NotFound)` for a table, and `Corruption` for a blob file.
///
/// It shows one moment. A [tailing cursor](crate::Scan::tailing) shows later writes too.
///
/// ```
/// # use ashlardb::{Db, Read, Write};
/// # fn main() -> ashlardb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Db::open(dir.path().join("db"))?;
/// # for key in ["a", "b", "c"] { db.put(key, "")?; }
/// let mut cursor = db.scan("a"..="b").cursor()?;
/// let mut keys = 0;
/// while let Some((key, value)) = cursor.next()? {   // no copy of the entry
///     keys += 1;
///     println!("{}: {} bytes", key.escape_ascii(), value.len());
/// }
/// assert_eq!(keys, 2);
/// # Ok(())
/// # }
/// ```
pub struct Cursor {
    inner: Walk,
    /// No call has moved the cursor yet.
    fresh: bool,
    // The engine's family, not the handle of this crate: a cursor keeps no database open.
    family: Arc<Family>,
}

impl Cursor {
    pub(crate) fn new(inner: Walk, family: Arc<Family>) -> Self {
        Cursor { inner, fresh: true, family }
    }

    /// Moves to the first entry.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table cannot be read.
    pub fn first(&mut self) -> Result<Option<Lent<'_>>> {
        self.fresh = false;
        self.inner.first()?;
        Ok(self.entry())
    }

    /// Moves to the last entry.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn last(&mut self) -> Result<Option<Lent<'_>>> {
        self.fresh = false;
        self.inner.last()?;
        Ok(self.entry())
    }

    /// Moves to the first entry at or after `key`.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Lent<'_>>> {
        self.fresh = false;
        self.inner.seek(key.as_ref())?;
        Ok(self.entry())
    }

    /// Moves to the last entry at or before `key`.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    pub fn seek_for_prev(&mut self, key: impl AsRef<[u8]>) -> Result<Option<Lent<'_>>> {
        self.fresh = false;
        self.inner.seek_for_prev(key.as_ref())?;
        Ok(self.entry())
    }

    /// Moves to the next entry; a new cursor moves to the first. Off the end it stays there, unless it is a tailing one.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    #[allow(clippy::should_implement_trait)] // a cursor lends its entries; `Scan` is the iterator
    #[inline]
    pub fn next(&mut self) -> Result<Option<Lent<'_>>> {
        if std::mem::replace(&mut self.fresh, false) {
            self.inner.first()?;
        } else {
            self.inner.next()?;
        }
        Ok(self.entry())
    }

    /// Moves to the previous entry; a new cursor moves to the last. Off the end it stays there.
    ///
    /// # Errors
    /// As [`Cursor::first`].
    #[inline]
    pub fn prev(&mut self) -> Result<Option<Lent<'_>>> {
        if std::mem::replace(&mut self.fresh, false) {
            self.inner.last()?;
        } else {
            self.inner.prev()?;
        }
        Ok(self.entry())
    }

    /// The current key and value; `None` off the end.
    #[inline]
    pub fn entry(&self) -> Option<Lent<'_>> {
        self.inner.entry()
    }

    /// The columns of the current entry; a plain value is one column with the empty name. `None` off the end.
    ///
    /// # Errors
    /// `Corruption`, `Io`: the entity, or a blob file that it points to, cannot be read.
    pub fn columns(&self) -> Result<Option<Columns>> {
        self.inner.columns()
    }

    /// The memory and files that the cursor keeps alive: flushed memtables, replaced files, and its current blocks. If they are
    /// large, drop the cursor and open a new one at the same key.
    pub fn pins(&self) -> CursorPins {
        self.family.pins_of(self.inner.below())
    }
}

impl std::fmt::Debug for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.entry() {
            Some((key, _)) => write!(f, "Cursor(on {})", key.escape_ascii()),
            None => f.write_str("Cursor(off the end)"),
        }
    }
}
