//! A family while its files are checked, and the blob references in its tables that may be wrong.

use super::report::{KEYS_NAMED, KeySpan};
use crate::version::Version;
use ashlar_base::{Error, FileNumber};
use ashlar_env::Fs;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// A family whose files are checked.
pub(super) struct Family<'a> {
    pub(super) fs: &'a dyn Fs,
    pub(super) dir: &'a Path,
    pub(super) name: &'a str,
    pub(super) version: &'a Version,
    pub(super) suspects: Suspects,
}

impl<'a> Family<'a> {
    pub(super) fn new(fs: &'a dyn Fs, dir: &'a Path, name: &'a str, version: &'a Version) -> Family<'a> {
        Family { fs, dir, name, version, suspects: Suspects::default() }
    }
}

/// A cause, and the keys it hits.
pub(super) type Wrong = (Error, Vec<KeySpan>);

/// References that may be wrong, by blob file and table.
#[derive(Default)]
pub(super) struct Suspects(RefCell<BTreeMap<FileNumber, BTreeMap<String, Wrong>>>);

impl Suspects {
    /// Adds an entry whose reference may be wrong because of `e`.
    pub(super) fn add(&self, blob: FileNumber, table: String, e: Error, key: &[u8]) {
        let mut all = self.0.borrow_mut();
        let (_, keys) = all.entry(blob).or_default().entry(table).or_insert_with(|| (e, Vec::new()));
        name(keys, key);
    }

    /// The references into one blob file, by table.
    pub(super) fn of(&self, blob: FileNumber) -> BTreeMap<String, Wrong> {
        self.0.borrow_mut().remove(&blob).unwrap_or_default()
    }
}

/// Adds a key to those that are named, up to [`KEYS_NAMED`].
pub(super) fn name(keys: &mut Vec<KeySpan>, key: &[u8]) {
    if keys.len() < KEYS_NAMED {
        keys.push(KeySpan::key(key));
    }
}
