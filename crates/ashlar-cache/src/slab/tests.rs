use super::*;
use crate::clock::Slots;

/// The owner is a table that is closed.
fn no_entry() -> Entry {
    Entry::new(&Slots::default(), 0)
}

/// Slabs in use, and the bytes of all pieces in use.
fn held_of(slabs: &Slabs) -> (usize, usize) {
    (slabs.in_use(), slabs.state.lock().taken)
}

fn put(slabs: &Arc<Slabs>, byte: u8, len: usize) -> Piece {
    slabs.put(vec![byte; len].split_at(len - len / 11), &no_entry(), None).unwrap()
}

#[test]
fn a_class_is_at_most_a_sixteenth_too_long() {
    for len in SHORTEST..=LONGEST {
        let class = class_of(len).unwrap();
        assert!(class >= len && class <= len + len / 16, "{len}: {class}");
        assert!(SLAB / class <= 128 && class_of(class) == Some(class));
    }
    assert_eq!((class_of(0), class_of(SHORTEST - 1), class_of(LONGEST + 1)), (None, None, None));
    let slabs = Slabs::new(SLACK);
    for len in [0, SHORTEST - 1, LONGEST + 1] {
        assert_eq!(slabs.put((&vec![1; len], &[]), &no_entry(), None).err(), Some(NoPiece::Never));
    }
}

#[test]
fn pieces_of_all_lengths_keep_apart() {
    let slabs = Slabs::new(1000);
    let step = if cfg!(miri) { 21_000 } else { 97 };
    let lens = || (SHORTEST..=LONGEST).step_by(step).chain([SHORTEST, LONGEST]);
    let mut held: Vec<(u8, usize, Piece)> = Vec::new();
    for round in 0..3 {
        for (i, len) in lens().enumerate() {
            let byte = u8::try_from((i * 7 + round) % 256).unwrap();
            held.push((byte, len, put(&slabs, byte, len)));
        }
        // Every third goes; the next round cuts from where it stood.
        let mut i = 0;
        held.retain(|_| {
            i += 1;
            i % 3 > 0
        });
        for (byte, len, piece) in &held {
            assert!(**piece == vec![*byte; *len]);
        }
    }
    drop(held);
    assert_eq!(held_of(&slabs), (0, 0));
}

/// Resident bytes of the first region, as the system tells by page.
#[cfg(all(target_os = "linux", not(miri)))]
#[allow(clippy::disallowed_methods)] // no file of a database
fn resident(slabs: &Slabs) -> usize {
    use std::os::unix::fs::FileExt;
    let start = slabs.state.lock().regions[0].as_ptr() as u64;
    let mut pages = vec![0; SLAB * PER_REGION / 4096 * 8];
    let map = std::fs::File::open("/proc/self/pagemap").unwrap();
    map.read_exact_at(&mut pages, start / 4096 * 8).unwrap();
    pages.chunks(8).filter(|page| page[7] & 0x80 != 0).count() * 4096
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn an_empty_slab_is_the_systems() {
    let slabs = Slabs::new(SLACK);
    let mut held: Vec<Piece> = (0..16).map(|i| put(&slabs, i, LONGEST)).collect();
    assert_eq!((held_of(&slabs), resident(&slabs)), ((4, 4 * SLAB), 4 * SLAB));
    held.drain(4..8);
    assert_eq!((held_of(&slabs), resident(&slabs)), ((3, 3 * SLAB), 3 * SLAB));
    held.push(put(&slabs, 77, LONGEST));
    assert_eq!(held.last().unwrap().slab(), 1, "the lowest slab with room first");
    assert_eq!(resident(&slabs), 3 * SLAB + LONGEST);
    assert!((0..4).chain(8..16).zip(&held).all(|(byte, piece)| **piece == vec![byte; LONGEST]));
}

#[test]
fn no_slab_is_begun_while_they_are_crowded() {
    let slabs = Slabs::new(1);
    let mut held: Vec<Piece> = (0..40).map(|i| put(&slabs, i, LONGEST)).collect();
    assert!(slabs.to_empty().is_none());
    // One piece stays in each of ten slabs.
    let mut i = 0;
    held.retain(|_| {
        i += 1;
        i % 4 == 0
    });
    assert_eq!(held_of(&slabs), (10, 10 * LONGEST));
    assert_eq!(slabs.put((&[1; SHORTEST], &[]), &no_entry(), None).err(), Some(NoPiece::Crowded));
    assert!(slabs.put((&[1; LONGEST], &[]), &no_entry(), None).is_ok(), "it fits into a slab that is begun");
    let (slab, owners) = slabs.to_empty().unwrap();
    assert_eq!(owners.len(), 1);
    let moved = slabs.put((&[1; LONGEST], &[]), &no_entry(), Some(slab)).unwrap();
    assert_ne!(moved.slab(), slab);
}

#[test]
fn pieces_outlive_who_cut_them() {
    let slabs = Slabs::new(SLACK);
    let piece = put(&slabs, 5, 5000);
    drop(slabs);
    let same = std::thread::scope(|scope| scope.spawn(|| *piece == [5; 5000]).join());
    assert!(same.unwrap());
}
