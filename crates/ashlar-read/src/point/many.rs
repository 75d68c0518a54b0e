//! `multi_get` and `key_may_exist`.
//!
//! `multi_get` sorts its keys and searches sixteen at a time: see [`Stage`]. Neighbours then share files and blocks. A
//! repeated key gets the answer of the first one.

use super::get::Search;
use super::stage::{STAGE, Stage};
use crate::point::{MayExist, View};
use crate::super_version::SuperVersion;
use ashlar_base::ext::comparator::{BytewiseOrder, KeyOrder, ReverseBytewiseOrder};
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{LookupKey, Order, Result, SeqNum};
use ashlar_options::ReadOptions;

/// The values of `keys` for a read at `seq`, in the order of `keys`.
///
/// # Errors
/// `InvalidArgument`: an option that no read can keep; for every key, a custom order that contradicts itself on `keys`. Per key, as [`get`](super::get()).
/// # Cost
/// Takes each block from the cache, or reads it, about once. Sorts the keys once. Pins up to sixteen blocks at a time.
pub fn multi_get(
    from: &SuperVersion,
    seq: SeqNum,
    keys: &[&[u8]],
    options: &ReadOptions,
) -> Result<Vec<Result<Option<View>>>> {
    let how = options.how(from.version.tables().clock())?;
    let statistics = from.version.tables().statistics();
    let _time = statistics.and_then(|s| s.time(Distribution::DbMultigetMicros));
    let sorted = match sorted(&from.version.order, keys) {
        Ok(sorted) => sorted,
        Err(e) => return Ok(keys.iter().map(|_| Err(e.clone())).collect()),
    };
    let mut values: Vec<Result<Option<View>>> = keys.iter().map(|_| Ok(None)).collect();
    let mut repeated: Vec<(usize, usize)> = Vec::new();
    let mut stage = Stage::new(&how, keys.len().min(STAGE));
    let mut before: Option<(usize, &[u8])> = None;
    for at in sorted {
        let key = keys.get(at).copied().unwrap_or_default();
        match before {
            Some((first, same)) if same == key => repeated.push((at, first)),
            _ => {
                stage.add(at, Search::new(&LookupKey::new(key, seq), (&how, options.tier)));
                before = Some((at, key));
            }
        }
        if stage.is_full() {
            stage.run(from, options.tier, &mut values);
        }
    }
    stage.run(from, options.tier, &mut values);
    for (at, first) in repeated {
        let same = values.get(first).cloned().unwrap_or(Ok(None));
        if let Some(value) = values.get_mut(at) {
            *value = same;
        }
    }
    if let Some(statistics) = statistics {
        count(statistics, &values);
    }
    Ok(values)
}

/// The positions of `keys` in the order of the keys.
///
/// # Errors
/// `InvalidArgument`: a custom order that contradicts itself.
fn sorted(order: &Order, keys: &[&[u8]]) -> Result<Vec<usize>> {
    match order {
        Order::Bytewise => Ok(sorted_by_words(&BytewiseOrder, keys)),
        Order::ReverseBytewise => Ok(sorted_by_words(&ReverseBytewiseOrder, keys)),
        Order::Custom(_) => {
            let key = |at: &usize| keys.get(*at).copied().unwrap_or_default();
            let mut sorted: Vec<usize> = (0..keys.len()).collect();
            order.sort_by(&mut sorted, |a, b| order.compare(key(a), key(b)));
            order.check_sorted(sorted.iter().map(key))?;
            Ok(sorted)
        }
    }
}

/// Sorts by the word after the prefix that all keys share, and by whole keys where words are equal.
fn sorted_by_words<C: KeyOrder>(order: &C, keys: &[&[u8]]) -> Vec<usize> {
    let first = keys.first().copied().unwrap_or_default();
    let shared = |key: &&[u8]| first.iter().zip(*key).take_while(|(a, b)| a == b).count();
    let prefix = keys.iter().skip(1).map(shared).min().unwrap_or(0);
    let mut words: Vec<(u64, usize)> =
        keys.iter().enumerate().map(|(at, key)| (order.word(key, prefix), at)).collect();
    let key = |at: usize| keys.get(at).copied().unwrap_or_default();
    words.sort_unstable_by(|(a, at), (b, other)| a.cmp(b).then_with(|| order.cmp(key(*at), key(*other))));
    words.into_iter().map(|(_, at)| at).collect()
}

fn count(statistics: &Statistics, values: &[Result<Option<View>>]) {
    let found = values.iter().flatten().flatten();
    let (number, bytes) = found.fold((0, 0), |(n, bytes), view| (n + 1, bytes + view.len() as u64));
    perf::add(Metric::MultigetReadBytes, bytes);
    statistics.tick(Ticker::NumberMultigetGet);
    statistics.add(Ticker::NumberMultigetKeysRead, values.len() as u64);
    statistics.add(Ticker::NumberMultigetKeysFound, number);
    statistics.add(Ticker::NumberMultigetBytesRead, bytes);
    statistics.measure(Distribution::BytesPerMultiget, bytes);
}

/// Whether the key may have a value for a read at `key.seq`.
///
/// # Errors
/// `Corruption`, `Io`: a table cannot be opened. `TimedOut`: not within the limits of the read. `InvalidArgument`: an option
/// that no read can keep.
/// # Cost
/// As much as [`get`](super::get()) without its data blocks.
pub fn may_exist(from: &SuperVersion, key: &LookupKey<'_>, options: &ReadOptions) -> Result<MayExist> {
    let how = options.how(from.version.tables().clock())?;
    Search::new(key, (&how, options.tier)).may_exist(from)
}
