//! The parsed index of a table: it names the block that may hold a key.
//!
//! One separator per block, in one flat buffer: `last key of block i <= separator i < first key of block i + 1`.
//! 1. Separators ascend; [`IndexParts::finish`] refuses others.
//! 2. In the internal form a separator has a trailer; in the user-key form all versions of a user key are in one block.
//! 3. Under an order with words, all separators share `prefix`, and `words[i]` is the word of separator i after the
//!    prefix.
//! 4. Separators with equal words are a group. All separators of a group share `depths[i]` bytes, and `deep_words[i]` is the word
//!    after these. So a search among keys that begin alike, such as URLs, compares few whole keys.

use ashlar_base::bytes::common_prefix;
use ashlar_base::ext::comparator::{BytewiseOrder, CustomOrder, KeyOrder, ReverseBytewiseOrder};
use ashlar_base::{Order, Trailer};
use ashlar_cache::Pages;
use ashlar_format::table::BlockHandle;
use std::cmp::Ordering;

/// An index that is being read.
#[derive(Debug, Default)]
pub(crate) struct IndexParts {
    keys: Vec<u8>,
    ends: Vec<u32>,
    trailers: Vec<Trailer>,
    handles: Vec<BlockHandle>,
}

impl IndexParts {
    /// The number of blocks so far.
    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Appends a block. `None` for the trailer in the user-key form. False when the index has grown past 4 GiB.
    #[must_use]
    pub(crate) fn push(&mut self, user_key: &[u8], trailer: Option<Trailer>, handle: BlockHandle) -> bool {
        self.keys.extend_from_slice(user_key);
        let Ok(end) = u32::try_from(self.keys.len()) else { return false };
        self.ends.push(end);
        self.trailers.extend(trailer);
        self.handles.push(handle);
        self.ends.len() < u32::MAX as usize
    }

    /// Returns the index, or the number of the first block whose separator is not above the preceding one.
    pub(crate) fn finish(self, order: Order, internal: bool) -> Result<FlatIndex, usize> {
        let mut index = FlatIndex {
            keys: self.keys.into(),
            ends: self.ends.into(),
            trailers: internal.then(|| self.trailers.into()),
            handles: self.handles.into(),
            prefix_len: 0,
            words: Pages::default(),
            depths: Pages::default(),
            deep_words: Pages::default(),
            order: order.clone(),
        };
        match order {
            Order::Bytewise => index.check_and_speed(&BytewiseOrder)?,
            Order::ReverseBytewise => index.check_and_speed(&ReverseBytewiseOrder)?,
            Order::Custom(custom) => index.check_and_speed(&CustomOrder(custom))?,
        }
        Ok(index)
    }
}

/// Separators and handles of all data blocks, in order. A block's name is its ordinal.
#[derive(Debug)]
pub(crate) struct FlatIndex {
    keys: Pages<u8>,
    ends: Pages<u32>,
    trailers: Option<Pages<Trailer>>,
    handles: Pages<BlockHandle>,
    prefix_len: usize,
    words: Pages<u64>,
    /// Empty if no word occurs twice.
    depths: Pages<u32>,
    deep_words: Pages<u64>,
    order: Order,
}

impl FlatIndex {
    /// Number of data blocks.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.handles.len()).unwrap_or(u32::MAX)
    }

    /// The memory of the index in bytes.
    pub(crate) fn memory(&self) -> usize {
        let per_block = size_of::<u32>() + size_of::<BlockHandle>() + size_of::<u64>() + size_of::<Trailer>();
        let deep = self.depths.len() * (size_of::<u32>() + size_of::<u64>());
        self.keys.len() + self.handles.len() * per_block + deep
    }

    /// The handle of a block.
    #[inline]
    pub(crate) fn handle(&self, ordinal: u32) -> Option<BlockHandle> {
        self.handles.get(ordinal as usize).copied()
    }

    /// The user key of a block's separator; empty past the end.
    #[inline]
    pub(crate) fn user_key(&self, ordinal: u32) -> &[u8] {
        self.separator(ordinal as usize)
    }

    /// Whether all blocks of this index are before those of `next` in the file.
    pub(crate) fn ends_before(&self, next: &FlatIndex) -> bool {
        match (self.handles.last(), next.handles.first()) {
            (Some(last), Some(first)) => last.offset.saturating_add(last.size) <= first.offset,
            _ => true,
        }
    }

    /// True when separator `at` is not above separator `their` of another index of the same form.
    pub(crate) fn separator_is_at_most(&self, at: u32, other: &FlatIndex, their: u32) -> bool {
        let (at, their) = (at as usize, their as usize);
        let trailer = |index: &FlatIndex, at| index.trailers.as_deref().and_then(|t| t.get(at)).copied();
        let by_user_key = self.order.compare(self.separator(at), other.separator(their));
        // Among equal user keys the larger trailer comes first.
        by_user_key.then_with(|| trailer(other, their).cmp(&trailer(self, at))).is_le()
    }

    /// The first block that may hold an entry at or after the given internal key; [`FlatIndex::len`] when none may.
    #[inline]
    pub(crate) fn find(&self, user_key: &[u8], trailer: Trailer) -> u32 {
        let at = match &self.order {
            Order::Bytewise => self.find_by(&BytewiseOrder, user_key, trailer),
            Order::ReverseBytewise => self.find_by(&ReverseBytewiseOrder, user_key, trailer),
            Order::Custom(custom) => self.find_by(&CustomOrder(custom.clone()), user_key, trailer),
        };
        u32::try_from(at).unwrap_or(u32::MAX)
    }

    fn separator(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        self.ends.get(at).and_then(|end| self.keys.get(start..*end as usize)).unwrap_or(&[])
    }

    /// Compares separator `at` with the key.
    fn compare<C: KeyOrder>(&self, order: &C, at: usize, user_key: &[u8], trailer: Trailer) -> Ordering {
        let by_user_key = order.cmp(self.separator(at), user_key);
        match self.trailers.as_deref().and_then(|t| t.get(at)) {
            Some(own) => by_user_key.then_with(|| trailer.cmp(own)),
            None => by_user_key,
        }
    }

    fn find_by<C: KeyOrder>(&self, order: &C, user_key: &[u8], trailer: Trailer) -> usize {
        let (mut low, mut high) = (0, self.handles.len());
        if C::WORDS && high > 0 {
            let prefix = self.keys.get(..self.prefix_len).unwrap_or(&[]);
            if !user_key.starts_with(prefix) {
                // The first byte that differs from the prefix decides against all separators alike.
                return if order.cmp(self.separator(0), user_key).is_lt() { high } else { 0 };
            }
            (low, high) = of_word(&self.words, 0, order.word(user_key, self.prefix_len));
            if let Some(depth) = self.depths.get(low)
                && high - low > 1
            {
                let depth = *depth as usize;
                let group = self.separator(low);
                if !group.get(..depth).is_some_and(|shared| user_key.starts_with(shared)) {
                    return if order.cmp(group, user_key).is_lt() { high } else { low };
                }
                let words = self.deep_words.get(low..high).unwrap_or_default();
                (low, high) = of_word(words, low, order.word(user_key, depth));
            }
        }
        while low < high {
            let middle = low.midpoint(high);
            match self.compare(order, middle, user_key, trailer) {
                Ordering::Less => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    fn check_and_speed<C: KeyOrder>(&mut self, order: &C) -> Result<(), usize> {
        for at in 1..self.handles.len() {
            let trailer = self.trailers.as_deref().and_then(|t| t.get(at)).copied();
            let ascends = self.compare(order, at - 1, self.separator(at), trailer.unwrap_or(Trailer::LAST));
            if ascends.is_gt() || (ascends.is_eq() && self.trailers.is_some()) {
                return Err(at);
            }
        }
        if C::WORDS && !self.handles.is_empty() {
            let (first, last) = (self.separator(0), self.separator(self.handles.len() - 1));
            self.prefix_len = common_prefix(first, last);
            self.words =
                (0..self.handles.len()).map(|at| order.word(self.separator(at), self.prefix_len)).collect();
            self.find_groups(order);
        }
        Ok(())
    }

    fn find_groups<C: KeyOrder>(&mut self, order: &C) {
        let mut depths = Vec::with_capacity(self.words.len());
        for group in self.words.chunk_by(|a, b| a == b) {
            let first = depths.len();
            let ends = [first, first + group.len() - 1].map(|at| self.separator(at));
            let depth = u32::try_from(common_prefix(ends[0], ends[1])).unwrap_or(u32::MAX);
            depths.extend(std::iter::repeat_n(depth, group.len()));
        }
        if self.words.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
            let deep = |(at, depth): (usize, &u32)| order.word(self.separator(at), *depth as usize);
            self.deep_words = depths.iter().enumerate().map(deep).collect();
            self.depths = depths.into();
        }
    }
}

/// The places from `first` on of `words` where `word` is, or where it would be. The words ascend.
#[inline(always)]
fn of_word(words: &[u64], first: usize, word: u64) -> (usize, usize) {
    let low = words.partition_point(|w| *w < word);
    let same = words.get(low..).unwrap_or_default();
    let count = match same.iter().take(8).take_while(|w| **w == word).count() {
        8 => same.partition_point(|w| *w <= word),
        few => few,
    };
    (first + low, first + low + count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_base::SeqNum;
    use ashlar_base::ValueType;

    fn handle(i: usize) -> BlockHandle {
        BlockHandle { offset: i as u64 * 100, size: 95 }
    }

    fn put(seq: u64) -> Trailer {
        Trailer::new(SeqNum::new(seq).unwrap(), ValueType::Put)
    }

    #[test]
    fn finds_what_a_scan_finds() {
        let sets: [&[&str]; 5] = [
            &["a"],
            &["", "a", "b"],
            &["pre", "prefix", "prefix00000001", "prefix00000002", "prefix1"],
            &["user:aaaaaaaa1", "user:aaaaaaaa2", "user:aaaaaaaa2x", "user:b", "user:b\0"],
            &[],
        ];
        let probes = [
            "",
            "a",
            "aa",
            "pre",
            "prefiw",
            "prefix",
            "prefix0000000",
            "prefix00000001x",
            "q",
            "user:aaaaaaaa2",
        ];
        for set in sets {
            for reverse in [false, true] {
                let order = if reverse { Order::ReverseBytewise } else { Order::Bytewise };
                let mut keys = set.to_vec();
                keys.sort_by(|a, b| order.compare(a.as_bytes(), b.as_bytes()));
                for internal in [false, true] {
                    let mut parts = IndexParts::default();
                    for (i, key) in keys.iter().enumerate() {
                        assert!(parts.push(key.as_bytes(), internal.then(|| put(5)), handle(i)));
                    }
                    let index = parts.finish(order.clone(), internal).unwrap();
                    for probe in probes.iter().chain(&keys) {
                        for trailer in [put(4), put(5), put(6)] {
                            let scan = keys.iter().position(|k| {
                                let c = order.compare(k.as_bytes(), probe.as_bytes());
                                if internal {
                                    c.then_with(|| trailer.cmp(&put(5))).is_ge()
                                } else {
                                    c.is_ge()
                                }
                            });
                            assert_eq!(
                                index.find(probe.as_bytes(), trailer) as usize,
                                scan.unwrap_or(keys.len()),
                                "{probe:?} {trailer:?} in {keys:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn many_separators_with_one_word() {
        let mut parts = IndexParts::default();
        for i in 0..100 {
            assert!(parts.push(format!("a00000000{i:03}").as_bytes(), None, handle(i)));
        }
        assert!(parts.push(b"b", None, handle(100)));
        let index = parts.finish(Order::Bytewise, false).unwrap();
        for i in 0..100 {
            assert_eq!(index.find(format!("a00000000{i:03}").as_bytes(), Trailer::FIRST), i);
            assert_eq!(index.find(format!("a00000000{i:03}x").as_bytes(), Trailer::FIRST), i + 1);
        }
        assert_eq!(index.find(b"c", Trailer::FIRST), 101);
    }

    /// Hosts with many pages each, and keys around them: each search among groups finds what a scan finds.
    #[test]
    fn groups_of_separators_that_begin_alike() {
        let mut keys: Vec<String> = Vec::new();
        for host in 0..7 {
            let pages = [0, 1, 2, 40, 3, 1, 9][host];
            keys.extend((0..pages).map(|page| format!("https://host-{host}.org/item/{:05}/view", page * 7)));
        }
        keys.extend(["https://host-3.org/item/00007/view/a".into(), "https://host-3.org".into()]);
        for order in [Order::Bytewise, Order::ReverseBytewise] {
            keys.sort_by(|a, b| order.compare(a.as_bytes(), b.as_bytes()));
            let mut parts = IndexParts::default();
            for (i, key) in keys.iter().enumerate() {
                assert!(parts.push(key.as_bytes(), None, handle(i)));
            }
            let index = parts.finish(order.clone(), false).unwrap();
            assert_eq!(index.depths.len(), keys.len());
            for key in &keys {
                for cut in 0..=key.len() {
                    for more in
                        ["", "\0", "0", "zz", "\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}\u{7f}"]
                    {
                        let probe = format!("{}{more}", &key[..cut]);
                        let scan =
                            keys.iter().position(|k| order.compare(k.as_bytes(), probe.as_bytes()).is_ge());
                        let found = index.find(probe.as_bytes(), Trailer::FIRST) as usize;
                        assert_eq!(found, scan.unwrap_or(keys.len()), "{probe:?} in {order:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn refuses_disorder() {
        let mut parts = IndexParts::default();
        for key in ["a", "c", "b"] {
            assert!(parts.push(key.as_bytes(), Some(put(1)), handle(0)));
        }
        assert_eq!(parts.finish(Order::Bytewise, true).unwrap_err(), 2);
        let mut parts = IndexParts::default();
        for seq in [5, 5] {
            assert!(parts.push(b"a", Some(put(seq)), handle(0)));
        }
        assert_eq!(parts.finish(Order::Bytewise, true).unwrap_err(), 1);
    }
}
