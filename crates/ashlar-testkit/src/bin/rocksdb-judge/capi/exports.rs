//! One family exported, and made of an export, by RocksDB. 7.8.3 lacks the functions.

use super::{Database, Opaque};
use ashlar_testkit::judge::ExportedTable;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;

impl Database {
    /// Exports a family into a new directory. Returns the name of its comparator and its tables.
    pub fn export_family(&self, family: &str, dir: &CStr) -> Result<(String, Vec<ExportedTable>), String> {
        let (f, extra) = (&self.functions, &self.functions.extra);
        let family = self.family(family)?;
        let (make, export) = (extra.checkpoint_create()?, extra.export_family()?);
        // SAFETY: the database is live.
        let checkpoint = f.checked(|e| unsafe { make(self.db, e) })?;
        // SAFETY: checkpoint and family are live, the path is NUL-terminated.
        let exported = f.checked(|e| unsafe { export(checkpoint, family, dir.as_ptr(), e) });
        // SAFETY: made above, destroyed once.
        unsafe { (extra.checkpoint_destroy()?)(checkpoint) };
        let metadata = exported?;
        // SAFETY: the metadata is live; the name is a copy.
        let name = unsafe { (extra.metadata_comparator()?)(metadata) };
        // SAFETY: the library made a NUL-terminated text, which is left to the end of the process.
        let comparator = unsafe { text(name) };
        // SAFETY: the metadata is live; the list is a copy.
        let list = unsafe { (extra.metadata_files()?)(metadata) };
        // SAFETY: the list is live.
        let count = unsafe { (extra.live_files_count()?)(list) };
        let tables = (0..count).map(|at| self.table_of(list, at)).collect::<Result<Vec<_>, _>>();
        // SAFETY: live, and destroyed once.
        unsafe { (extra.live_files_destroy()?)(list) };
        // SAFETY: as above.
        unsafe { (extra.metadata_destroy()?)(metadata) };
        Ok((comparator, tables?))
    }

    /// Table `at` of a list, below its length.
    fn table_of(&self, list: Opaque, at: c_int) -> Result<ExportedTable, String> {
        let extra = &self.functions.extra;
        let (mut low, mut high) = (0, 0);
        // SAFETY: the list is live and the index below its length; so for those below.
        let dir = unsafe { (extra.live_file_dir()?)(list, at) };
        // SAFETY: as above.
        let name = unsafe { (extra.live_file_name()?)(list, at) };
        // SAFETY: as above.
        let level = unsafe { (extra.live_file_level()?)(list, at) };
        // SAFETY: as above.
        let size = unsafe { (extra.live_file_size()?)(list, at) };
        // SAFETY: as above.
        let oldest = unsafe { (extra.live_file_oldest()?)(list, at) };
        // SAFETY: as above.
        let newest = unsafe { (extra.live_file_newest()?)(list, at) };
        // SAFETY: as above; the length is written.
        let smallest = unsafe { (extra.live_file_smallest()?)(list, at, &mut low) };
        // SAFETY: as above.
        let largest = unsafe { (extra.live_file_largest()?)(list, at, &mut high) };
        // SAFETY: texts of the list are NUL-terminated and live as long as it.
        let dir = unsafe { text(dir) };
        // SAFETY: as above.
        let name = unsafe { text(name) };
        // SAFETY: keys of the list live as long as it, and have the written length.
        let smallest = unsafe { bytes(smallest, low) };
        // SAFETY: as above.
        let largest = unsafe { bytes(largest, high) };
        Ok(ExportedTable {
            level: u8::try_from(level).unwrap_or(u8::MAX),
            sequences: (oldest, newest),
            bytes: size as u64,
            path: PathBuf::from(dir + &name),
            keys: (smallest, largest),
        })
    }

    /// Makes a family of the tables of an export, with the options of the database.
    pub fn import_family(
        &mut self,
        name: &str,
        comparator: &str,
        tables: &[ExportedTable],
    ) -> Result<(), String> {
        let f = self.functions.clone();
        let extra = &f.extra;
        // SAFETY: a constructor. The list becomes part of the metadata.
        let list = unsafe { (extra.live_files_create()?)() };
        for table in tables {
            let file = self.live_file(name, table)?;
            // SAFETY: both are live; the list takes the file over.
            unsafe { (extra.live_files_add()?)(list, file) };
        }
        let (comparator, text, import) = (c_text(comparator)?, c_text(name)?, extra.import_family()?);
        // SAFETY: a constructor; destroyed below.
        let metadata = unsafe { (extra.metadata_create()?)() };
        // SAFETY: the metadata is live, the text NUL-terminated and copied.
        unsafe { (extra.metadata_set_comparator()?)(metadata, comparator.as_ptr()) };
        // SAFETY: both are live. The list is not used again: a release may take it over.
        unsafe { (extra.metadata_set_files()?)(metadata, list) };
        // SAFETY: a constructor; destroyed below.
        let how = unsafe { (extra.import_options()?)() };
        // SAFETY: database, options and metadata are live, the name is NUL-terminated.
        let made = f.checked(|e| unsafe { import(self.db, self.options, text.as_ptr(), how, metadata, e) });
        // SAFETY: made above, destroyed once.
        unsafe { (extra.import_options_destroy()?)(how) };
        // SAFETY: as above.
        unsafe { (extra.metadata_destroy()?)(metadata) };
        self.families.insert(name.to_owned(), made?);
        Ok(())
    }

    /// The table as an object of the library.
    fn live_file(&self, family: &str, table: &ExportedTable) -> Result<Opaque, String> {
        let extra = &self.functions.extra;
        let folder = table.path.parent().and_then(|dir| dir.to_str()).unwrap_or_default();
        let file = table.path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        let (family, dir, file) = (c_text(family)?, c_text(folder)?, c_text(&format!("/{file}"))?);
        let (smallest, largest) = (&table.keys.0, &table.keys.1);
        // SAFETY: a constructor; the caller gives the object to a list.
        let live = unsafe { (extra.live_file_create()?)() };
        // SAFETY: the object is live, the text NUL-terminated and copied; so for those below.
        unsafe { (extra.live_file_set_family()?)(live, family.as_ptr()) };
        // SAFETY: as above.
        unsafe { (extra.live_file_set_name()?)(live, file.as_ptr()) };
        // SAFETY: as above.
        unsafe { (extra.live_file_set_dir()?)(live, dir.as_ptr()) };
        // SAFETY: as above.
        unsafe { (extra.live_file_set_level()?)(live, c_int::from(table.level)) };
        let size = usize::try_from(table.bytes).unwrap_or_default();
        // SAFETY: as above.
        unsafe { (extra.live_file_set_size()?)(live, size) };
        // SAFETY: as above; the key goes with its length and is copied.
        unsafe { (extra.live_file_set_smallest()?)(live, smallest.as_ptr().cast(), smallest.len()) };
        // SAFETY: as above.
        unsafe { (extra.live_file_set_largest()?)(live, largest.as_ptr().cast(), largest.len()) };
        // SAFETY: as above.
        unsafe { (extra.live_file_set_oldest()?)(live, table.sequences.0) };
        // SAFETY: as above.
        unsafe { (extra.live_file_set_newest()?)(live, table.sequences.1) };
        Ok(live)
    }
}

fn c_text(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|e| e.to_string())
}

/// A text of the library.
///
/// # Safety
/// `text` is null or NUL-terminated, and live during the call.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A key of the library.
///
/// # Safety
/// `key` is null, or live during the call with `len` bytes.
unsafe fn bytes(key: *const c_char, len: usize) -> Vec<u8> {
    if key.is_null() {
        return Vec::new();
    }
    // SAFETY: by the caller.
    unsafe { std::slice::from_raw_parts(key.cast(), len) }.to_vec()
}
