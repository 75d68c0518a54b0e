//! `multi_get` and `key_may_exist`.
//!
//! `multi_get` searches its keys in ascending order, each as [`get`](super::get()) does. Every table remembers the
//! block of the preceding search, and every level the file, so neighbouring keys need no index search and no cache
//! lookup. The keys must strictly ascend, because a search may have passed the newest version of its own key. So a
//! repeated key gets the answer of the first one. When a custom order calls different keys equal, the search starts
//! again for the second key.

use super::get::{Near, Search};
use crate::point::{MayExist, View};
use crate::super_version::SuperVersion;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::stats::{Distribution, Statistics, Ticker};
use ashlar_base::{LookupKey, Result, SeqNum};
use ashlar_options::ReadOptions;

/// The values of `keys` for a read at `seq`, in the order of `keys`.
///
/// # Errors
/// `InvalidArgument`: an option that no read can keep; for every key, a custom order that contradicts itself on `keys`. Per key, as [`get`](super::get()).
/// # Cost
/// Takes each block from the cache, or reads it, about once. Sorts the keys once.
pub fn multi_get(
    from: &SuperVersion,
    seq: SeqNum,
    keys: &[&[u8]],
    options: &ReadOptions,
) -> Result<Vec<Result<Option<View>>>> {
    let how = options.how(from.version.tables().clock())?;
    let statistics = from.version.tables().statistics();
    let _time = statistics.and_then(|s| s.time(Distribution::DbMultigetMicros));
    let order = &from.version.order;
    let mut sorted: Vec<usize> = (0..keys.len()).collect();
    let key = |at: usize| keys.get(at).copied().unwrap_or_default();
    order.sort_by(&mut sorted, |a, b| order.compare(key(*a), key(*b)));
    if let Err(e) = order.check_sorted(sorted.iter().map(|at| key(*at))) {
        return keys.iter().map(|_| Err(e.clone())).collect();
    }
    let mut near = Near::default();
    let mut values: Vec<Result<Option<View>>> = keys.iter().map(|_| Ok(None)).collect();
    let mut before: Option<usize> = None;
    for at in sorted {
        let found = match before.filter(|b| order.compare(key(*b), key(at)).is_eq()) {
            Some(b) if key(b) == key(at) => values.get(b).cloned().unwrap_or(Ok(None)),
            same_place => {
                if same_place.is_some() {
                    near = Near::default();
                }
                Search::new(&LookupKey::new(key(at), seq), (&how, options.tier)).near(&mut near).run(from)
            }
        };
        if let Some(value) = values.get_mut(at) {
            *value = found;
        }
        before = Some(at);
    }
    if let Some(statistics) = statistics {
        count(statistics, &values);
    }
    Ok(values)
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
