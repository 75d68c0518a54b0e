//! Reads of many keys, with the error of each.
//!
//! 1. Keys of one family are read together. An answer stands where its key stood.
//! 2. A key that cannot be read has its own error; the others have their values.
//! 3. A database reads the keys of several families at one moment. A transaction reads them as they are, as in RocksDB.
//! 4. A deadline that has passed is the error of each key, as in RocksDB. A read of one key finds in memory what it can.
//! 5. A transaction locks keys in their order. The first key that it cannot lock ends the call, and its error is that of each key.

use crate::calls::ReadOptions;
use crate::database::Database;
use crate::transaction::Txn;
use ashlardb::{ErrorKind, Family, FamilyId, Read, Result, View};
use std::collections::BTreeMap;

/// A key and its family; `None`: the family `default`.
pub type FamilyKey<'a> = (Option<&'a Family>, &'a [u8]);
/// The value of a key, or why it cannot be read.
pub type Found = Result<Option<View>>;

impl Database {
    /// The values of keys, all at one moment.
    ///
    /// # Errors
    /// Those that concern all keys: an option that no read keeps, a closed database, a deadline that has passed.
    pub fn multi_get_each(&self, options: &ReadOptions, keys: &[FamilyKey<'_>]) -> Result<Vec<Found>> {
        options.check_deadline(self)?;
        let together = |options: &ReadOptions, family, keys: &[&[u8]]| {
            options.of(&*self.family(family)?)?.multi_get_each(keys)
        };
        match of_one_family(keys) {
            Some(family) => together(options, family, &all(keys)),
            None => {
                let options = options.at_one_moment(self)?;
                Ok(by_family(keys, |family, keys| together(&options, family, keys)))
            }
        }
    }
}

impl Txn {
    /// The values that the transaction sees.
    ///
    /// # Errors
    /// Those that concern all keys: an option that no read keeps, a transaction that could not begin.
    pub fn multi_get_each(&self, options: &ReadOptions, keys: &[FamilyKey<'_>]) -> Result<Vec<Found>> {
        self.open()?;
        options.plain().map(drop)?;
        options.check_deadline(self.database())?;
        Ok(by_family(keys, |family, keys| self.reader(self.family(family), options)?.multi_get_each(keys)))
    }

    /// The values of keys that the transaction locks, one after the other.
    ///
    /// # Errors
    /// Those of [`Txn::get_for_update`], for the first key that cannot be locked. Keys before it stay locked, and keys behind it
    /// are not locked.
    pub fn multi_get_for_update_each(
        &self,
        options: &ReadOptions,
        keys: &[FamilyKey<'_>],
    ) -> Result<Vec<Found>> {
        let locked = |(family, key): &FamilyKey<'_>| match self.get_for_update(*family, options, key, true) {
            // The key is locked, and cannot be read.
            Err(e) if matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Io(_)) => Ok(Err(e)),
            found => found.map(Ok),
        };
        keys.iter().map(locked).collect()
    }
}

fn all<'a>(keys: &[FamilyKey<'a>]) -> Vec<&'a [u8]> {
    keys.iter().map(|(_, key)| *key).collect()
}

fn id(family: Option<&Family>) -> FamilyId {
    family.map_or(FamilyId::DEFAULT, Family::id)
}

/// The family of all keys; `None`: they have several.
fn of_one_family<'a>(keys: &[FamilyKey<'a>]) -> Option<Option<&'a Family>> {
    let (first, rest) = keys.split_first().map_or((None, keys), |((family, _), rest)| (*family, rest));
    rest.iter().all(|(family, _)| id(*family) == id(first)).then_some(first)
}

/// Reads the keys of each family together; an error of a whole read is that of each of its keys.
fn by_family<'a>(
    keys: &[FamilyKey<'a>],
    read: impl Fn(Option<&'a Family>, &[&[u8]]) -> Result<Vec<Found>>,
) -> Vec<Found> {
    let mut places: BTreeMap<FamilyId, (Option<&Family>, Vec<usize>)> = BTreeMap::new();
    for (at, (family, _)) in keys.iter().enumerate() {
        places.entry(id(*family)).or_insert_with(|| (*family, Vec::new())).1.push(at);
    }
    let mut found: Vec<Found> = keys.iter().map(|_| Ok(None)).collect();
    for (family, places) in places.into_values() {
        let of: Vec<&[u8]> = places.iter().filter_map(|at| keys.get(*at)).map(|(_, key)| *key).collect();
        let values = match read(family, &of) {
            Ok(values) => values,
            Err(e) => of.iter().map(|_| Err(e.clone())).collect(),
        };
        for (at, value) in places.into_iter().zip(values) {
            if let Some(place) = found.get_mut(at) {
                *place = value;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Mode;
    use crate::options::Options;
    use ashlardb::Write;

    /// RocksDB looks at the deadline before each key of a multi-get, and before each read of a file of a get.
    #[test]
    fn a_deadline_that_has_passed_is_the_error_of_a_read_of_many() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let (db, _) = Database::open(&options, dir.path(), Mode::Write, &[]).unwrap();
        db.default_family().put("a", "1").unwrap();
        let mut read = ReadOptions::default();
        read.change(|texts| texts.set("deadline", 1u64));
        let txn = Txn::begin(&db, Ok(ashlardb::TransactionOptions::new()), false);
        let keys = [(None, &b"a"[..])];
        for found in [db.multi_get_each(&read, &keys), txn.multi_get_each(&read, &keys)] {
            assert_eq!(found.unwrap_err().kind(), ErrorKind::TimedOut);
        }
        assert!(txn.get(None, &read, b"a").unwrap().is_some(), "the value is in a memtable");
        read.change(|texts| texts.set("deadline", u64::MAX / 2));
        assert!(db.multi_get_each(&read, &keys).unwrap()[0].is_ok());
    }

    #[test]
    fn the_first_key_that_cannot_be_locked_ends_the_call() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let (db, _) = Database::open(&options, dir.path(), Mode::Write, &[]).unwrap();
        db.default_family().put("a", "1").unwrap();
        let begin = || {
            let options = ashlardb::TransactionOptions::new().lock_timeout(std::time::Duration::ZERO);
            Txn::begin(&db, Ok(options), false)
        };
        let (first, second, third) = (begin(), begin(), begin());
        let (read, keys) = (ReadOptions::default(), [(None, &b"a"[..]), (None, b"b"), (None, b"c")]);
        first.get_for_update(None, &read, b"b", true).unwrap();
        let said = second.multi_get_for_update_each(&read, &keys).unwrap_err();
        assert_eq!(said.kind(), ErrorKind::TimedOut, "{said}");
        third.get_for_update(None, &read, b"c", true).unwrap();
        assert!(third.get_for_update(None, &read, b"a", true).is_err(), "the key before stays locked");
        drop(first);
        drop(third);
        let found = second.multi_get_for_update_each(&read, &keys).unwrap();
        assert!(matches!(&found[..], [Ok(Some(_)), Ok(None), Ok(None)]), "{found:?}");
    }

    #[test]
    fn an_answer_stands_where_its_key_stood() {
        let dir = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.texts.set("create_if_missing", true);
        let (db, _) = Database::open(&options, dir.path(), Mode::Write, &[]).unwrap();
        let other = db.create_family(&options, "other", None).unwrap();
        db.default_family().put("a", "1").unwrap();
        other.put("b", "2").unwrap();
        let keys: [FamilyKey<'_>; 4] =
            [(Some(&other), b"b"), (None, b"a"), (Some(&other), b"a"), (Some(db.default_family()), b"a")];
        let found = db.multi_get_each(&ReadOptions::default(), &keys).unwrap();
        let found: Vec<_> =
            found.into_iter().map(|value| value.unwrap().map(|value| value.to_vec())).collect();
        assert_eq!(found, [Some(b"2".to_vec()), Some(b"1".to_vec()), None, Some(b"1".to_vec())]);
        assert!(db.multi_get_each(&ReadOptions::default(), &[]).unwrap().is_empty());
    }
}
