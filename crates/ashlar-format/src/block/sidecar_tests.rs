//! Searches with a sidecar against searches without, in sound and in damaged blocks.

#![allow(clippy::cast_possible_truncation)]

use super::*;
use crate::block::lookup::tests::{Random, block, by_cursor, orders};
use crate::block::{BlockBuilder, BlockCursor, InBlock};
use ashlar_base::{InternalKeyBuf, SeqNum, Trailer, ValueType};

fn sidecar_of(bytes: &[u8], order: &Order) -> Vec<u8> {
    SidecarBuilder::default().build(&DataBlock::parse(bytes).unwrap(), order).to_vec()
}

/// A block with one version of each key.
fn block_of(keys: &[Vec<u8>], order: &Order, value: usize) -> Vec<u8> {
    let mut keys = keys.to_vec();
    keys.sort_by(|a, b| order.compare(a, b));
    keys.dedup();
    let mut builder = BlockBuilder::new(16);
    for key in &keys {
        let trailer = Trailer::new(SeqNum::new(7).unwrap(), ValueType::Put);
        builder.add(InternalKeyBuf::new(key, trailer).as_key().encoded(), &vec![7; value]);
    }
    builder.finish().to_vec()
}

/// Looks each key up, and seeks it and steps on from there, with and without the sidecar.
fn compare(bytes: &[u8], sidecar: &[u8], order: &Order, keys: &[Vec<u8>]) {
    let plain = DataBlock::parse(bytes).unwrap();
    let with = plain.with_sidecar(sidecar);
    for key in keys {
        for seq in [SeqNum::ZERO, SeqNum::new(150).unwrap(), SeqNum::MAX] {
            let trailer = Trailer::seek(seq);
            let want = by_cursor(&plain, order, key, trailer);
            let found = with.look_up(None, order, key, trailer);
            assert!(found == want || found == Ok(InBlock::Unsettled), "{key:?}: {found:?}, not {want:?}");
            let (mut a, mut b) = (BlockCursor::default(), BlockCursor::default());
            assert_eq!(a.seek_key(&with, order, key, trailer), b.seek_key(&plain, order, key, trailer));
            for _ in 0..3 {
                assert_eq!((a.key(), a.value_range()), (b.key(), b.value_range()), "{key:?}");
                assert_eq!(a.next(&with), b.next(&plain));
            }
            assert_eq!((a.prev(&with), a.key()), (b.prev(&plain), b.key()));
        }
    }
}

#[test]
fn searches_with_and_without_a_sidecar_agree() {
    let mut random = Random(3);
    let mut there = 0;
    for order in orders().iter().cycle().take(2000) {
        let (mut keys, bytes) = block(&mut random, order);
        let sidecar = sidecar_of(&bytes, order);
        there += usize::from(!sidecar.is_empty());
        keys.extend((0..20).map(|_| random.key()));
        compare(&bytes, &sidecar, order, &keys);
    }
    assert!(there > 300, "{there} blocks with a sidecar");
}

#[test]
fn keys_that_end_where_others_have_zeros() {
    let mut random = Random(6);
    let mut there = 0;
    for order in orders().iter().cycle().take(4000) {
        let mut key = || -> Vec<u8> {
            (0..random.below(7)).map(|_| [0, 0, b'a', 0xff][random.below(4) as usize]).collect()
        };
        let keys: Vec<_> = (0..30).map(|_| key()).collect();
        let absent: Vec<_> = (0..30).map(|_| key()).collect();
        let bytes = block_of(&keys, order, 60 + random.below(60) as usize);
        let sidecar = sidecar_of(&bytes, order);
        there += usize::from(!sidecar.is_empty());
        compare(&bytes, &sidecar, order, &[keys, absent].concat());
    }
    assert!(there > 2000, "{there} blocks with a sidecar");
}

/// A key, the same key with a zero behind it, and the search for the key in the reverse order.
#[test]
fn a_key_is_not_the_one_with_zeros_behind_it() {
    let keys = [&b"b"[..], b"a\0b", b"a\0", b"A"].map(<[u8]>::to_vec);
    let bytes = block_of(&keys, &Order::ReverseBytewise, 100);
    let sidecar = sidecar_of(&bytes, &Order::ReverseBytewise);
    assert!(!sidecar.is_empty());
    compare(&bytes, &sidecar, &Order::ReverseBytewise, &[b"a".to_vec()]);
}

#[test]
fn keys_of_each_usual_form_have_a_sidecar() {
    let decimal = |n: u32| format!("{:016}", n * 37).into_bytes();
    let binary = |n: u32| u64::from(n * 37).to_be_bytes().to_vec();
    let url = |n: u32| format!("https://example.org/{:03}/page?of={}", n * 7, n * 31).into_bytes();
    let long = |n: u32| [vec![b'p'; 290], format!("{:08}", n * 37).into_bytes()].concat();
    let mixed = |n: u32| format!("{}", n * 37).into_bytes();
    type Form<'a> = &'a dyn Fn(u32) -> Vec<u8>;
    let forms: [(Form<'_>, usize, u32); 5] =
        [(&decimal, 100, 32), (&binary, 20, 120), (&url, 100, 30), (&long, 100, 30), (&mixed, 10, 150)];
    for (form, value, count) in forms {
        for order in orders() {
            let keys: Vec<_> = (100..100 + count).map(form).collect();
            let bytes = block_of(&keys, &order, value);
            let sidecar = sidecar_of(&bytes, &order);
            assert!(!sidecar.is_empty() && sidecar.len() <= Sidecar::most(bytes.len()), "{}", sidecar.len());
            let near = keys.iter().flat_map(|key| {
                let (mut less, mut more) = (key.clone(), key.clone());
                less.pop();
                more.push(0);
                [key.clone(), less, more]
            });
            let mut asked: Vec<_> = near.collect();
            asked.extend((0..400).map(form));
            compare(&bytes, &sidecar, &order, &asked);
        }
    }
}

#[test]
fn words_that_repeat_are_one_point() {
    // The eight bytes behind the common prefix tell three keys in four apart from none of their neighbours.
    let key = |n: u32| format!("{:08}{}", n / 4, n % 4).into_bytes();
    let keys: Vec<_> = (0..40).map(key).chain([b"x".to_vec(), vec![]]).collect();
    for order in orders() {
        let bytes = block_of(&keys, &order, 100);
        let sidecar = sidecar_of(&bytes, &order);
        let words = Sidecar::of(&sidecar).unwrap().words;
        assert!((9..=12).contains(&words.len()), "{} points", words.len());
        compare(&bytes, &sidecar, &order, &keys);
    }
}

#[test]
fn only_ascending_blocks_that_decode_have_one() {
    let keys: Vec<_> = (0..30).map(|n| format!("key{n:05}").into_bytes()).collect();
    let bytes = block_of(&keys, &Order::Bytewise, 100);
    assert!(!sidecar_of(&bytes, &Order::Bytewise).is_empty());
    assert!(sidecar_of(&bytes, &Order::ReverseBytewise).is_empty(), "of the other order");
    let mut random = Random(4);
    let (mut without, mut with) = (0, 0);
    for _ in 0..3000 {
        let mut bytes = bytes.clone();
        let at = random.below(bytes.len() as u64 - 40) as usize;
        bytes[at] = random.below(256) as u8;
        if DataBlock::parse(&bytes).is_err() {
            continue;
        }
        let sidecar = sidecar_of(&bytes, &Order::Bytewise);
        *if sidecar.is_empty() { &mut without } else { &mut with } += 1;
        compare(&bytes, &sidecar, &Order::Bytewise, &keys);
    }
    assert!(without > 50 && with > 200, "{without} {with}");
}

#[test]
fn a_sidecar_of_other_bytes_harms_nothing() {
    let mut random = Random(5);
    let keys: Vec<_> = (0..30).map(|n| format!("key{n:05}").into_bytes()).collect();
    let bytes = block_of(&keys, &Order::Bytewise, 100);
    let good = sidecar_of(&bytes, &Order::Bytewise);
    for _ in 0..2000 {
        let mut sidecar = good.clone();
        sidecar.truncate(random.below(good.len() as u64 + 1) as usize);
        for _ in 0..random.below(20) {
            let at = random.below(good.len() as u64) as usize;
            sidecar.get_mut(at).map(|byte| *byte = random.below(256) as u8).unwrap_or_default();
        }
        let block = DataBlock::parse(&bytes).unwrap().with_sidecar(&sidecar);
        for key in keys.iter().take(8) {
            let trailer = Trailer::seek(SeqNum::MAX);
            let _ = block.look_up(None, &Order::Bytewise, key, trailer);
            let mut cursor = BlockCursor::default();
            while cursor.seek_key(&block, &Order::Bytewise, key, trailer).is_ok() && cursor.is_on_entry() {
                if cursor.next(&block).is_err() || cursor.prev(&block).is_err() || random.below(3) > 0 {
                    break;
                }
            }
        }
    }
}
