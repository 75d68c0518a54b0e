//! Offset-value codes: the place of a user key behind a base key, as a number.
//!
//! ```text
//! | 2^32 - 1 - bytes shared with the base: 32 bits | what follows them: 9 bits |     smaller: nearer to the base
//! ```
//! 1. The keys are at or behind the base in the direction of the merge, byte by byte. Of two such keys the one with the smaller
//!    code is nearer to the base. It shares more bytes with the base, or goes on with a byte that comes sooner.
//! 2. If two keys have different codes, the code of the farther one is also its code with the nearer one as the base. If their
//!    codes are equal, the keys are equal up to and with the byte in the code.
//! 3. A key that equals the base has the code 0.
//!
//! Source: Graefe and Do, "Offset-value coding in database query processing", EDBT 2023.

use ashlar_base::key::Sharing;
use std::cmp::Ordering;

const SHARED: u64 = u32::MAX as u64;
const BITS: u32 = 9;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Code(u64);

/// Whether the keys of a merge rise or fall, byte by byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    Rising,
    Falling,
}

impl Course {
    /// The order of a key beside one that comes after it.
    #[inline]
    pub(super) fn before(self) -> Ordering {
        match self {
            Course::Rising => Ordering::Less,
            Course::Falling => Ordering::Greater,
        }
    }
}

impl Code {
    /// The code of the base.
    pub(super) const SAME: Code = Code(0);
    /// The code of keys whose place is not known.
    pub(super) const UNKNOWN: Code = Code(1);
    /// The code of a run without a further key, behind all keys.
    pub(super) const END: Code = Code(u64::MAX);

    /// The code of a key that shares `bytes` bytes with the base and goes on with `byte`; `None`: it ends there.
    #[inline]
    pub(super) fn new(course: Course, bytes: usize, byte: Option<u8>) -> Code {
        let value = byte.map_or(0, |byte| u64::from(byte) + 1);
        let value = match course {
            Course::Rising => value,
            Course::Falling => 0x101 - value,
        };
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Code((SHARED - u64::from(bytes)) << BITS | value)
    }

    /// The code of a key behind the one that it was compared with; `None`: it comes before that one.
    #[inline]
    pub(super) fn behind(course: Course, sharing: &Sharing) -> Option<Code> {
        match sharing.order {
            Ordering::Equal => Some(Code::SAME),
            order if order == course.before() => None,
            _ => Some(Code::new(course, sharing.bytes, sharing.byte)),
        }
    }

    /// The number of bytes that a key with this code shares with the base.
    #[inline]
    pub(super) fn bytes(self) -> usize {
        usize::try_from(SHARED - (self.0 >> BITS)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_keys_behind_a_base() {
        let mut keys: Vec<&[u8]> =
            vec![b"", b"\0", b"\0\0", b"a", b"a\0", b"a\xff", b"ab", b"abc", b"b", b"\xff", b"\xff\xff"];
        for course in [Course::Rising, Course::Falling] {
            keys.sort_unstable_by(|a, b| if course == Course::Rising { a.cmp(b) } else { b.cmp(a) });
            for (at, base) in keys.iter().enumerate() {
                let code = |key: &[u8]| Code::behind(course, &Sharing::of(base, key));
                assert!(keys[..at].iter().all(|key| code(key).is_none()));
                assert_eq!(code(base), Some(Code::SAME));
                for pair in keys[at..].windows(2) {
                    let (near, far) = (code(pair[0]).unwrap(), code(pair[1]).unwrap());
                    assert!(near <= far && far < Code::END, "{course:?} {base:?} {pair:?}");
                    if near < far {
                        assert_eq!(
                            Code::behind(course, &Sharing::of(pair[0], pair[1])),
                            Some(far),
                            "{base:?} {pair:?}"
                        );
                    } else {
                        assert!(Sharing::of(pair[0], pair[1]).bytes > far.bytes());
                    }
                }
            }
        }
    }
}
