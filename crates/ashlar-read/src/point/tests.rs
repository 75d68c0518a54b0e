//! Point reads against the model that the cursors are tested with.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use super::{MayExist, View, get, may_exist, multi_get, newest_sequence};
use crate::iter::tests::{Diet, Family, RANGE_DELETIONS, Random, orders};
use ashlar_base::{ErrorKind, LookupKey, Order, Result, SeqNum, ValueType};
use ashlar_options::{ReadOptions, ReadTier};
use std::collections::BTreeMap;
use std::sync::Arc;

#[test]
fn gets_find_what_the_model_has() {
    for (seed, order) in (1..9).flat_map(|seed| orders().map(|order| (seed, order))) {
        let mut random = Random::new(seed);
        let common = [0, 0, 0, 7, 0, 239, 300, 1200][seed as usize % 8];
        let family = Family::of_diet(order, [Diet::Plain, Diet::Rich][seed as usize % 2]);
        let mut family = family.with_common_prefix(common);
        let from = family.spread(&mut random);
        for _ in 0..30 {
            let seq = SeqNum::new(random.below(family.history.len() + 2) as u64).unwrap();
            let want: BTreeMap<_, _> = family.seen(seq).into_iter().collect();
            let keys: Vec<_> = family.history.iter().map(|e| e.key.clone()).chain([random.key()]).collect();
            for key in keys {
                let got = get(&from, &LookupKey::new(&key, seq), &ReadOptions::default()).unwrap();
                assert_eq!(
                    got.as_deref(),
                    want.get(&key).map(Vec::as_slice),
                    "{} at {seq}",
                    key.escape_ascii()
                );
            }
        }
    }
}

#[test]
fn many_keys_at_once_are_read_as_one_by_one() {
    for (seed, order) in (1..9).flat_map(|seed| orders().map(|order| (seed, order))) {
        let mut random = Random::new(seed);
        let mut family = Family::of_diet(order, [Diet::Plain, Diet::Rich][seed as usize % 2]);
        let from = family.spread(&mut random);
        for _ in 0..10 {
            let seq = SeqNum::new(random.below(family.history.len() + 2) as u64).unwrap();
            let keys: Vec<_> = family.history.iter().map(|e| e.key.clone()).chain([random.key()]).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let many = multi_get(&from, seq, &keys, &ReadOptions::default()).unwrap();
            assert_eq!(many.len(), keys.len());
            for (key, got) in keys.iter().zip(many) {
                let one = get(&from, &LookupKey::new(key, seq), &ReadOptions::default()).unwrap();
                assert_eq!(got.unwrap().as_deref(), one.as_deref(), "{} at {seq}", key.escape_ascii());
                match may_exist(&from, &LookupKey::new(key, seq), &ReadOptions::default()).unwrap() {
                    MayExist::No => assert!(one.is_none(), "{} at {seq}", key.escape_ascii()),
                    MayExist::Maybe => {}
                    MayExist::Value(value) => assert_eq!(one.as_deref(), Some(&*value)),
                }
            }
        }
    }
}

/// The keys of one batch fail each for itself: some of them need a file that the read may not use.
#[test]
fn a_batch_without_files_fails_for_the_same_keys_as_gets() {
    let (mut refused, mut answered) = (0, 0);
    for (seed, order) in (1..9).flat_map(|seed| orders().map(|order| (seed, order))) {
        let mut random = Random::new(seed);
        let mut family = Family::of_diet(order, [Diet::Plain, Diet::Rich][seed as usize % 2]);
        let from = family.spread(&mut random);
        let keys: Vec<_> = family.history.iter().map(|e| e.key.clone()).collect();
        for key in keys.iter().step_by(7) {
            get(&from, &LookupKey::new(key, SeqNum::MAX), &ReadOptions::default()).unwrap();
        }
        for tier in [ReadTier::BlockCache, ReadTier::Memtable] {
            let options = ReadOptions { tier, ..ReadOptions::default() };
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            let many = multi_get(&from, SeqNum::MAX, &keys, &options).unwrap();
            for (key, got) in keys.iter().zip(many) {
                let one = get(&from, &LookupKey::new(key, SeqNum::MAX), &options);
                let plain = |found: Result<Option<View>>| found.map_err(|e| e.kind());
                let (one, got) = (plain(one), plain(got));
                *(if one.is_err() { &mut refused } else { &mut answered }) += 1;
                assert_eq!(got, one, "{} {tier:?}", key.escape_ascii());
            }
        }
    }
    assert!(refused > 100 && answered > 100, "{refused} {answered}");
}

#[test]
fn range_tombstones_hide_older_sources_only() {
    let mut family = Family::new(Order::Bytewise);
    family.write(b"B".to_vec(), ValueType::Put);
    family.write(b"k06x".to_vec(), ValueType::Put);
    let own = family.tables(&family.history.clone(), 2).remove(0);
    let table = family.foreign_table(RANGE_DELETIONS);
    let read = |levels, key: &[u8]| {
        let found = get(&family.holding(levels), &LookupKey::new(key, SeqNum::MAX), &ReadOptions::default());
        found.map(|v| v.is_some()).map_err(|e| e.kind())
    };
    let above = vec![vec![], vec![Arc::clone(&table)], vec![Arc::clone(&own)]];
    assert_eq!(read(above.clone(), b"k06x"), Ok(false));
    assert_eq!(read(above.clone(), b"B"), Ok(true));
    assert_eq!(read(above, b"ctr"), Err(ErrorKind::InvalidArgument), "operands without an operator");
    let beneath = vec![vec![own], vec![table]];
    assert_eq!(read(beneath.clone(), b"k06x"), Ok(true), "newer than anything that table can say");
    assert_eq!(read(beneath, b"zzz"), Ok(false));
}

#[test]
fn unserved_types_name_key_and_file() {
    let mut family = Family::new(Order::Bytewise);
    family.write(b"k".to_vec(), ValueType::Put);
    family.write(b"k".to_vec(), ValueType::DeleteWithTimestamp);
    let files = family.tables(&family.history.clone(), 2);
    let from = family.holding(vec![files]);
    let read = |seq| get(&from, &LookupKey::new(b"k", SeqNum::new(seq).unwrap()), &ReadOptions::default());
    let e = read(2).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotSupported);
    assert!(
        e.to_string().contains("timestamps: key 'k' at sequence 2") && e.to_string().contains("000001.sst"),
        "{e}"
    );
    assert!(read(1).unwrap().is_some() && read(0).unwrap().is_none());
    family.lose_files();
    assert!(read(1).is_ok(), "open files are read on");
}

/// Memtables, level 0 and deeper levels, with range deletions: the newest write after each moment is that of the history.
#[test]
fn the_newest_write_after_a_moment_is_found_in_memtables_and_tables() {
    let (mut found, mut none) = (0, 0);
    for (seed, order) in (1..7).flat_map(|seed| orders().map(|order| (seed, order))) {
        let mut random = Random::new(seed);
        let mut family = Family::of_diet(order.clone(), [Diet::Plain, Diet::Rich][seed as usize % 2]);
        let from = family.spread(&mut random);
        let keys: Vec<_> = family.history.iter().map(|e| e.key.clone()).chain([random.key()]).collect();
        for key in keys {
            let writes = |e: &&crate::iter::tests::Written| match e.trailer.value_type() {
                Some(ValueType::RangeDelete) => {
                    order.compare(&e.key, &key).is_le() && order.compare(&key, &e.value).is_lt()
                }
                _ => e.key == key,
            };
            let newest = family.history.iter().filter(writes).map(|e| e.trailer.seq()).max();
            for since in [0, random.below(family.history.len() + 2), family.history.len()] {
                let since = SeqNum::new(since as u64).unwrap();
                let want = newest.filter(|newest| *newest > since);
                let got = newest_sequence(&from, &key, since, &ReadOptions::default()).unwrap();
                assert_eq!(got, want, "{} since {since}", key.escape_ascii());
                *(if got.is_some() { &mut found } else { &mut none }) += 1;
            }
        }
    }
    assert!(found > 1000 && none > 1000, "{found} {none}");
}
