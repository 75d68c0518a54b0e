//! Fences against the plain search, over drawn files.

use super::*;
use crate::version::Version;
use crate::version::builder::tests::tables;
use ashlar_base::ext::comparator::Comparator;
use ashlar_base::{FileNumber, InternalKeyBuf, Level, SeqNum, ValueType, splitmix};
use ashlar_format::version_edit::NewFile;

/// By length, then by bytes.
#[derive(Debug)]
struct ByLength;

impl Comparator for ByLength {
    fn name(&self) -> &str {
        "by length"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(splitmix::next(&mut self.0) % bound as u64).unwrap()
    }

    /// Keys with a common beginning, equal words, and zeros at the end.
    fn key(&mut self, beginning: &[u8]) -> Vec<u8> {
        let mut key = beginning.to_vec();
        if self.below(3) == 0 {
            key.extend_from_slice(b"12345678");
        }
        for _ in 0..self.below(5) {
            key.push([0, 1, b'k', 0xff][self.below(4)]);
        }
        key
    }

    fn trailer(&mut self) -> Trailer {
        Trailer::new(SeqNum::new(self.below(5) as u64).unwrap(), ValueType::Put)
    }
}

/// A version with any files in level 0 and sorted, disjoint files in level 1. Some of these end in a range tombstone or
/// share a user key with the next one.
fn drawn(random: &mut Random, order: &Order, beginning: &[u8]) -> (Version, Vec<Vec<u8>>) {
    let mut bounds: Vec<InternalKeyBuf> = Vec::new();
    for _ in 0..random.below(24) {
        let key = random.key(beginning);
        let trailer = if random.below(4) == 0 { Trailer::RANGE_END } else { random.trailer() };
        bounds.push(InternalKeyBuf::new(&key, trailer));
    }
    bounds.sort_by(|a, b| order.compare_internal(a.as_key(), b.as_key()));
    bounds.dedup();
    let seqs = (SeqNum::ZERO, SeqNum::MAX);
    let mut number = 0;
    let mut file = |pair: &[InternalKeyBuf]| {
        number += 1;
        let bounds = (pair[0].clone(), pair[pair.len() - 1].clone());
        FileMeta::new(NewFile::new(FileNumber(number), 1, bounds, seqs))
    };
    let mut version = Version::empty(2, tables(order.clone()));
    version.levels[1] = bounds.chunks(2).map(&mut file).collect();
    version.levels[0] = bounds.windows(1 + random.below(4)).map(&mut file).collect();
    let keys = bounds.iter().map(|bound| bound.as_key().user_key().to_vec()).collect();
    (version, keys)
}

#[test]
fn fences_answer_as_whole_keys_do() {
    let mut random = Random(7);
    let mut found = 0;
    let orders = [Order::Bytewise, Order::ReverseBytewise, Order::Custom(Arc::new(ByLength))];
    for order in orders.iter().cycle().take(3000) {
        let beginning = [&b""[..], b"user", b"a longer beginning of all"][random.below(3)];
        let (version, mut keys) = drawn(&mut random, order, beginning);
        keys.extend((0..30).map(|_| random.key(beginning)));
        keys.extend((0..4).map(|_| random.key(b"")));
        for key in &keys {
            for seq in [SeqNum::ZERO, SeqNum::new(2).unwrap(), SeqNum::MAX] {
                let key = LookupKey::new(key, seq);
                let want = find_by_keys(order, version.level(Level(1)), &key).map(|file| file.number());
                let got = version.find_file(Level(1), &key).map(|file| file.number());
                assert_eq!(got, want, "{key:?} in {version:?}");
                found += usize::from(want.is_some());
            }
            let holds = |file: &&Arc<FileMeta>| file.holds(order, key);
            let want: Vec<_> = version.level(Level::ZERO).iter().filter(holds).map(|f| f.number()).collect();
            let got: Vec<_> = version.level_zero_of(key).map(|file| file.number()).collect();
            assert_eq!(got, want, "{key:?} in {version:?}");
        }
        assert_eq!(version.fences().is_empty(), matches!(order, Order::Custom(_)));
    }
    assert!(found > 1000, "{found}");
}
