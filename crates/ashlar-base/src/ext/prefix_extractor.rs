//! Prefix extractors: which part of a key filters also know, so that a scan of one prefix skips tables without it.
//!
//! 1. A key outside of the domain has no prefix, and filters hold nothing for it.
//! 2. A scan may ask a filter for a prefix only if every key of its range has that prefix ([`PrefixExtractor::of_range`]).
//!    So an answer is never wrong, whatever extractor a table was written with.
//! 3. Tables record the name of their extractor. A reader makes the extractor from the name.
//!
//! Source: RocksDB `util/slice.cc` (names and domains).

/// A rule that takes the prefix of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixExtractor {
    /// The first bytes, this many. Shorter keys are outside of the domain.
    Fixed(usize),
    /// The first bytes, at most this many. Every key is in the domain.
    Capped(usize),
    /// The whole key.
    Noop,
}

/// The forms of a name: as tables and OPTIONS files hold it, and as option strings may give it.
const FIXED: [&str; 3] = ["rocksdb.FixedPrefix.", "rocksdb.FixedPrefix:", "fixed:"];
const CAPPED: [&str; 3] = ["rocksdb.CappedPrefix.", "rocksdb.CappedPrefix:", "capped:"];
const NOOP: &str = "rocksdb.Noop";

impl PrefixExtractor {
    /// The extractor of a name; `None` for another name.
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
        }
    }

    /// The prefix of a user key; `None` outside of the domain.
    pub fn prefix<'k>(&self, user_key: &'k [u8]) -> Option<&'k [u8]> {
        match self {
            PrefixExtractor::Fixed(len) => user_key.get(..*len),
            PrefixExtractor::Capped(len) => Some(user_key.get(..*len).unwrap_or(user_key)),
            PrefixExtractor::Noop => Some(user_key),
        }
    }

    /// The prefix of every key from `lower` up to `upper`, in ascending order of bytes; `None` if the keys of that range may
    /// have several prefixes, or none. `closed`: the range includes `upper`.
    pub fn of_range<'k>(&self, lower: &'k [u8], upper: &[u8], closed: bool) -> Option<&'k [u8]> {
        let len = match self {
            PrefixExtractor::Fixed(len) | PrefixExtractor::Capped(len) => *len,
            PrefixExtractor::Noop => return (closed && lower == upper).then_some(lower),
        };
        let prefix = lower.get(..len).filter(|prefix| !prefix.is_empty())?;
        (upper.starts_with(prefix) || !closed && is_successor(prefix, upper)).then_some(prefix)
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
            assert_eq!(PrefixExtractor::parse(stored), Some(extractor));
        }
        for wrong in
            ["", "nullptr", "fixed:", "fixed:-1", "rocksdb.FixedPrefix", "mine", "fixed:99999999999999999999"]
        {
            assert_eq!(PrefixExtractor::parse(wrong), None, "{wrong}");
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
