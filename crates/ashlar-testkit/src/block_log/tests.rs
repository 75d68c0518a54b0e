//! Images of hand-made logs; the tests with a kernel are in `ashlar-stress`, whose program can be the other process.

use super::log::Recorder;
use super::*;
use crate::Rng;
use std::collections::BTreeSet;
use std::io::{Read, Seek};

const BYTES: usize = 16 * SECTOR;

/// Writes `sectors` from a number on, all of one byte; or flushes.
enum Step {
    Write { first: usize, sectors: usize, byte: u8 },
    Flush,
    FailedFlush,
}

fn recorded(steps: &[Step]) -> Log {
    let mut file = tempfile::tempfile().unwrap();
    let mut recorder = Recorder::new(file.try_clone().unwrap());
    for step in steps {
        match step {
            Step::Write { first, sectors, byte } => {
                recorder.write((first * SECTOR) as u64, &vec![*byte; sectors * SECTOR]).unwrap();
            }
            Step::Flush => recorder.flush().unwrap(),
            Step::FailedFlush => recorder.failed_flush().unwrap(),
        }
    }
    let mut bytes = vec![];
    file.rewind().unwrap();
    file.read_to_end(&mut bytes).unwrap();
    Log::parse(bytes, BYTES as u64).unwrap()
}

/// The bytes of the sectors, one each. A sector with two different bytes is an error.
fn sectors(image: &Image) -> Vec<u8> {
    let same = |sector: &[u8]| sector.iter().all(|byte| *byte == sector[0]);
    assert!(image.bytes.chunks(SECTOR).all(same), "sectors are never torn");
    image.bytes.chunks(SECTOR).map(|sector| sector[0]).collect()
}

fn three_and_two() -> Log {
    recorded(&[
        Step::Write { first: 0, sectors: 2, byte: 1 },
        Step::Flush,
        Step::Write { first: 1, sectors: 3, byte: 2 },
        Step::Write { first: 8, sectors: 8, byte: 3 },
        Step::FailedFlush,
        Step::Write { first: 1, sectors: 1, byte: 4 },
    ])
}

fn image(log: &Log, cut: usize, survivors: Survivors, seed: u64) -> Image {
    Replay::new(log, vec![0; BYTES]).cut(cut, survivors, &mut Rng::new(seed))
}

#[test]
fn all_survivors_are_the_device_and_none_is_the_last_flush() {
    let log = three_and_two();
    let all = image(&log, log.len(), Survivors::All, 0);
    assert_eq!(sectors(&all), [1, 4, 2, 2, 0, 0, 0, 0, 3, 3, 3, 3, 3, 3, 3, 3]);
    let none = image(&log, log.len(), Survivors::None, 0);
    assert_eq!(sectors(&none), [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((none.gone, none.torn), (3, 0), "a failed flush does not count");
}

#[test]
fn what_was_flushed_is_in_every_image_and_what_comes_later_in_none() {
    let log = three_and_two();
    for (survivors, seed) in Survivors::ALL.into_iter().flat_map(|s| (0..50).map(move |seed| (s, seed))) {
        let found = sectors(&image(&log, 3, survivors, seed));
        assert_eq!(found[0], 1, "{survivors:?}: flushed, and never written again");
        assert!([1, 2].contains(&found[1]) && !found.contains(&3), "{survivors:?}: {found:?}");
        assert!(image(&log, 2, survivors, seed).gone == 0, "nothing is behind the flush");
    }
    assert_eq!(sectors(&image(&log, 1, Survivors::None, 0)), [0; 16], "no flush yet");
}

#[test]
fn survivors_are_torn_reordered_and_left_out() {
    let log = three_and_two();
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let image = image(&log, log.len(), Survivors::Mixed, seed);
        let found = sectors(&image);
        let torn = found[8..].contains(&3) && found[8..].contains(&0);
        assert!(!torn || image.torn > 0);
        seen.insert((found[1], found[8..].contains(&3), torn));
    }
    for first in [1, 2, 4] {
        for last in [(false, false), (true, false), (true, true)] {
            assert!(seen.contains(&(first, last.0, last.1)), "{first} {last:?} in {seen:?}");
        }
    }
}

#[test]
fn in_order_is_a_prefix() {
    let log = three_and_two();
    let mut seen = BTreeSet::new();
    for seed in 0..200 {
        let found = sectors(&image(&log, log.len(), Survivors::InOrder, seed));
        let whole = found[1..4].iter().all(|byte| [2, 4].contains(byte));
        assert!(whole || !found.contains(&3), "a later write without the earlier one: {found:?}");
        seen.insert(found);
    }
    assert!(seen.len() > 4);
}

#[test]
fn a_replay_goes_from_cut_to_cut() {
    let log = three_and_two();
    let mut replay = Replay::new(&log, vec![0; BYTES]);
    for cut in 0..=log.len() {
        let image = replay.cut(cut, Survivors::All, &mut Rng::new(0));
        let fresh = self::image(&log, cut, Survivors::All, 0);
        assert_eq!(sectors(&image), sectors(&fresh), "{cut}");
    }
}
