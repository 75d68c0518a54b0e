//! Prefix extractors: which part of a key filters also know, so that a scan of one prefix skips tables without it.
//!
//! 1. A key outside of the domain has no prefix, and filters hold nothing for it.
//! 2. A scan may ask a filter for a prefix only if every key of its range has that prefix ([`PrefixExtractor::of_range`]).
//!    So an answer is never wrong, whatever extractor a table was written with.
//! 3. Tables record the name of their extractor. A reader makes a built-in extractor from the name. It asks an extractor of
//!    the user's own only if the names are equal.
//! 4. A user's extractor that panics, or that answers more bytes than the key has, fails for that key. A reader then asks no
//!    filter for the prefix, and a writer makes its table without prefixes.
//!
//! Source: RocksDB `util/slice.cc` (names and domains).

use crate::panics::contained;
use std::fmt;
use std::sync::Arc;

/// A user's rule that takes the prefix of a key. It must call no database, and must always answer the same for the same bytes.
pub trait PrefixTransform: Send + Sync + fmt::Debug {
    /// The name, which tables and OPTIONS files store. It must not be empty or equal the name of a built-in extractor. A rule
    /// that takes other prefixes needs another name: by the name alone a reader trusts the filter of a table.
    fn name(&self) -> &str;

    /// The length of the prefix of `key`, in bytes, at most that of the key. `None`: the key is outside of the domain.
    fn prefix_len(&self, key: &[u8]) -> Option<usize>;

    /// Whether every key that begins with the bytes `prefix` has this prefix. Only then does a scan of several keys skip the
    /// tables without it. For example, if prefixes end at the first `:`, the answer for `user:` is yes. The default is no.
    fn is_prefix_of_all(&self, prefix: &[u8]) -> bool {
        let _ = prefix;
        false
    }
}

/// A user's extractor gave no usable answer for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtractorFailed;

/// A rule that takes the prefix of a key.
#[derive(Clone, Debug)]
pub enum PrefixExtractor {
    /// The first bytes, this many. Shorter keys are outside of the domain.
    Fixed(usize),
    /// The first bytes, at most this many. Every key is in the domain.
    Capped(usize),
    /// The whole key.
    Noop,
    /// A rule of the user's own.
    Custom(Arc<dyn PrefixTransform>),
}

/// The forms of a name: as tables and OPTIONS files hold it, and as option strings may give it.
const FIXED: [&str; 3] = ["rocksdb.FixedPrefix.", "rocksdb.FixedPrefix:", "fixed:"];
const CAPPED: [&str; 3] = ["rocksdb.CappedPrefix.", "rocksdb.CappedPrefix:", "capped:"];
const NOOP: &str = "rocksdb.Noop";

impl PrefixExtractor {
    /// The built-in extractor of a name; `None` for another name.
    pub fn parse(name: &str) -> Option<PrefixExtractor> {
        let behind = |heads: &[&str]| heads.iter().find_map(|head| name.strip_prefix(head)?.parse().ok());
        match name {
            NOOP | "noop" => Some(PrefixExtractor::Noop),
            _ => behind(&FIXED)
                .map(PrefixExtractor::Fixed)
                .or_else(|| behind(&CAPPED).map(PrefixExtractor::Capped)),
        }
    }

    /// The name that tables and OPTIONS files hold.
    pub fn name(&self) -> String {
        match self {
            PrefixExtractor::Fixed(len) => format!("{}{len}", FIXED[0]),
            PrefixExtractor::Capped(len) => format!("{}{len}", CAPPED[0]),
            PrefixExtractor::Noop => NOOP.to_owned(),
            PrefixExtractor::Custom(own) => contained(|| own.name().to_owned()).unwrap_or_default(),
        }
    }

    /// Whether this is a user's extractor whose name another extractor has.
    pub fn borrows_built_in_name(&self) -> bool {
        let name = self.name();
        matches!(self, PrefixExtractor::Custom(_)) && (name == "nullptr" || Self::parse(&name).is_some())
    }

    /// The prefix of a user key; `None` outside of the domain, and where the extractor fails.
    #[inline]
    pub fn prefix<'k>(&self, user_key: &'k [u8]) -> Option<&'k [u8]> {
        match self {
            PrefixExtractor::Fixed(len) => user_key.get(..*len),
            PrefixExtractor::Capped(len) => Some(user_key.get(..*len).unwrap_or(user_key)),
            PrefixExtractor::Noop => Some(user_key),
            PrefixExtractor::Custom(own) => taken(&**own, user_key).ok().flatten(),
        }
    }

    /// [`PrefixExtractor::prefix`], for a writer of filters.
    ///
    /// # Errors
    /// The extractor failed: the filter cannot answer for prefixes.
    #[inline]
    pub fn try_prefix<'k>(&self, user_key: &'k [u8]) -> Result<Option<&'k [u8]>, ExtractorFailed> {
        match self {
            PrefixExtractor::Custom(own) => taken(&**own, user_key),
            built_in => Ok(built_in.prefix(user_key)),
        }
    }

    /// The prefix of every key from `lower` up to `upper`, in ascending order of bytes; `None` if the keys of that range may
    /// have several prefixes, or none. `closed`: the range includes `upper`.
    pub fn of_range<'k>(&self, lower: &'k [u8], upper: &[u8], closed: bool) -> Option<&'k [u8]> {
        let len = match self {
            PrefixExtractor::Fixed(len) | PrefixExtractor::Capped(len) => *len,
            PrefixExtractor::Noop => return (closed && lower == upper).then_some(lower),
            PrefixExtractor::Custom(own) => {
                let prefix = self.prefix(lower)?;
                if closed && lower == upper {
                    return Some(prefix);
                }
                contained(|| own.is_prefix_of_all(prefix)).filter(|all| *all)?;
                prefix.len()
            }
        };
        let prefix = lower.get(..len).filter(|prefix| !prefix.is_empty())?;
        (upper.starts_with(prefix) || !closed && is_successor(prefix, upper)).then_some(prefix)
    }
}

/// The prefix that a user's rule takes.
fn taken<'k>(own: &dyn PrefixTransform, user_key: &'k [u8]) -> Result<Option<&'k [u8]>, ExtractorFailed> {
    match contained(|| own.prefix_len(user_key)).ok_or(ExtractorFailed)? {
        Some(len) => user_key.get(..len).map(Some).ok_or(ExtractorFailed),
        None => Ok(None),
    }
}

/// Whether `key` is the first key behind all keys that begin with `prefix`.
fn is_successor(prefix: &[u8], key: &[u8]) -> bool {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX);
    let Some((last, head)) = kept.and_then(|at| prefix.get(..=at)).and_then(<[u8]>::split_last) else {
        return false;
    };
    key.split_last() == Some((&(last + 1), head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for (given, stored) in [
            ("fixed:4", "rocksdb.FixedPrefix.4"),
            ("capped:12", "rocksdb.CappedPrefix.12"),
            ("noop", "rocksdb.Noop"),
            ("rocksdb.FixedPrefix.0", "rocksdb.FixedPrefix.0"),
        ] {
            let extractor = PrefixExtractor::parse(given).unwrap();
            assert_eq!(extractor.name(), stored);
            let parsed = PrefixExtractor::parse(stored).map(|parsed| parsed.name());
            assert_eq!(parsed.as_deref(), Some(stored));
        }
        for wrong in
            ["", "nullptr", "fixed:", "fixed:-1", "rocksdb.FixedPrefix", "mine", "fixed:99999999999999999999"]
        {
            assert!(PrefixExtractor::parse(wrong).is_none(), "{wrong}");
        }
    }

    /// Prefixes end behind the first `:`. A key with `!` makes the rule panic, one with `?` gets too long a prefix.
    #[derive(Debug)]
    struct Colon(&'static str);

    impl PrefixTransform for Colon {
        fn name(&self) -> &str {
            self.0
        }
        fn prefix_len(&self, key: &[u8]) -> Option<usize> {
            assert!(!key.contains(&b'!'), "on purpose");
            if key.contains(&b'?') {
                return Some(key.len() + 1);
            }
            Some(key.iter().position(|byte| *byte == b':')? + 1)
        }
        fn is_prefix_of_all(&self, prefix: &[u8]) -> bool {
            assert_ne!(prefix, b"bad:", "on purpose");
            prefix.ends_with(b":")
        }
    }

    #[test]
    fn a_users_rule_fails_for_single_keys() {
        let own = PrefixExtractor::Custom(Arc::new(Colon("test.Colon")));
        assert_eq!(own.name(), "test.Colon");
        assert_eq!(own.try_prefix(b"a:1"), Ok(Some(&b"a:"[..])));
        assert_eq!(own.try_prefix(b"a"), Ok(None));
        for wrong in [&b"a:!"[..], b"a:?"] {
            assert_eq!(own.try_prefix(wrong), Err(ExtractorFailed));
            assert_eq!(own.prefix(wrong), None);
            assert_eq!(own.of_range(wrong, wrong, true), None);
        }
        assert_eq!(own.of_range(b"a:1", b"a:2", true), Some(&b"a:"[..]));
        assert_eq!(own.of_range(b"a:", b"a;", false), Some(&b"a:"[..]));
        assert_eq!(own.of_range(b"a:", b"a;", true), None);
        assert_eq!(own.of_range(b"bad:1", b"bad:2", true), None, "a panic means no prefix");
        assert_eq!(own.of_range(b"bad:1", b"bad:1", true), Some(&b"bad:"[..]));
        assert!(!own.borrows_built_in_name());
        for name in ["rocksdb.Noop", "nullptr", "rocksdb.FixedPrefix.3"] {
            assert!(PrefixExtractor::Custom(Arc::new(Colon(name))).borrows_built_in_name(), "{name}");
        }
    }

    /// Short keys over a small alphabet: all keys of a range have the prefix that `of_range` answers for it.
    #[test]
    fn all_keys_of_a_range_have_its_prefix() {
        let alphabet = [0, 1, 254, 255];
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        for from in 0..=alphabet.iter().map(|_| 0).len() + 80 {
            let longer = keys.get(from).filter(|key| key.len() < 3).cloned();
            keys.extend(
                longer.iter().flat_map(|key| alphabet.map(|byte| [key.as_slice(), &[byte]].concat())),
            );
        }
        keys.sort();
        let mut said = 0;
        for extractor in
            [1, 2].into_iter().flat_map(|n| [PrefixExtractor::Fixed(n), PrefixExtractor::Capped(n)])
        {
            for (lower, upper) in keys.iter().flat_map(|lower| keys.iter().map(move |upper| (lower, upper))) {
                for closed in [false, true] {
                    let Some(prefix) = extractor.of_range(lower, upper, closed) else { continue };
                    said += 1;
                    let inside = |key: &&Vec<u8>| *key >= lower && (*key < upper || closed && *key == upper);
                    for key in keys.iter().filter(inside) {
                        assert_eq!(
                            extractor.prefix(key),
                            Some(prefix),
                            "{lower:?}..{upper:?} {closed} {extractor:?}"
                        );
                    }
                }
            }
        }
        assert!(said > 1000, "{said}");
        let fixed = PrefixExtractor::Fixed(2);
        assert_eq!(fixed.of_range(b"ab1", b"ac", false), Some(&b"ab"[..]));
        assert_eq!(fixed.of_range(b"a\xff", b"b", false), Some(&b"a\xff"[..]));
        assert_eq!(fixed.of_range(b"ab", b"ac", true), None);
        assert_eq!(fixed.of_range(b"a", b"b", false), None);
        assert_eq!(fixed.of_range(b"\xff\xff", b"\xff\xff\x01", false), Some(&b"\xff\xff"[..]));
        assert_eq!(PrefixExtractor::Noop.of_range(b"k", b"k", true), Some(&b"k"[..]));
    }
}
