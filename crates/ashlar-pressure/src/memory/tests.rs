//! The limits of memtables by the cap, of one database and of two, and what is refused.

use super::*;

fn memory(memory_bytes: u64, db_write_buffer_bytes: u64) -> Memory {
    let options = DbOptions { memory_bytes, db_write_buffer_bytes, ..DbOptions::default() };
    Memory::new(&Resources::alone(&options, None), &options).unwrap()
}

#[test]
fn limits_of_memtables_follow_the_cap() {
    assert_eq!(memory(128 << 20, 0).active_max(0), 16 << 20);
    assert_eq!(memory(128 << 20, 16 << 20).active_max(0), 8 << 20);
    let small = memory(64 << 20, 32 << 20);
    let _tables = small.budget().charge(MemoryUse::Tables, 40 << 20);
    assert_eq!(small.active_max(0), (22 << 20) / 3, "what tables and the log leave");
    let _more = small.budget().charge(MemoryUse::Tables, 40 << 20);
    assert_eq!(small.active_max(0), ACTIVE_MIN);
}

#[test]
fn of_two_databases_each_keeps_its_part() {
    let (both, options) = (Resources::new(128 << 20), DbOptions::default());
    let a = Memory::new(&both, &options).unwrap();
    assert_eq!(a.memtables_max(), 32 << 20, "alone");
    let of_a = a.account().charge(MemoryUse::Memtables, 30 << 20);
    let b = Memory::new(&both, &options).unwrap();
    assert_eq!((a.memtables_max(), b.memtables_max()), (32 << 20, 16 << 20));
    assert!(!a.memtables_full() && !b.memtables_full());
    let of_b = b.account().charge(MemoryUse::Memtables, 15 << 20);
    assert!(a.memtables_full() && !b.memtables_full(), "the part of b is not taken by a");
    assert_eq!(a.memtables_max(), 17 << 20);
    drop(of_a);
    assert_eq!((a.memtables_max(), b.memtables_max()), (17 << 20, 32 << 20));
    b.leave();
    drop((of_b, b));
    assert_eq!((a.memtables_max(), both.databases()), (32 << 20, 1));
    assert_eq!(both.budget().total(), LOG_BUFFER_BYTES, "of a");
}

#[test]
fn only_what_readers_hold_refuses_writers() {
    let memory = memory(128 << 20, 64 << 20);
    let active = memory.account().charge(MemoryUse::Memtables, 32 << 20);
    assert!(!memory.memtables_full() && !memory.is_scarce(32 << 20));
    let tables = memory.budget().charge(MemoryUse::Tables, 200 << 20);
    assert!(!memory.is_scarce(32 << 20), "large indexes do not stop writers");
    drop(tables);
    let held = memory.account().charge(MemoryUse::Memtables, 80 << 20);
    assert!(memory.memtables_full() && !memory.is_scarce(32 << 20), "small ones still fit");
    held.grow(44 << 20);
    assert!(memory.is_scarce(32 << 20));
    let refused = memory.refusal(124 << 20, 3).expect("readers hold it");
    assert_eq!(refused.kind(), ErrorKind::Busy(BusyKind::Memory));
    assert!(refused.to_string().contains("3 cursors and views hold 130023424 bytes"), "{refused}");
    assert!(memory.refusal(124 << 20, 0).is_none(), "no reader holds anything");
    assert!(memory.refusal(1 << 20, 1).is_none(), "a reader holds little");
    drop((active, held));
    assert!(!memory.is_scarce(0));
}

#[test]
fn many_small_memtables_are_switched_together() {
    let sizes = |sizes: &[usize]| sizes.iter().copied().zip((0..).map(FamilyId)).collect::<Vec<_>>();
    let ids = |ids: &[u32]| ids.iter().copied().map(FamilyId).collect::<Vec<_>>();
    assert_eq!(largest(sizes(&[10, 70, 20]), 12), ids(&[1]));
    assert_eq!(largest(sizes(&[4, 4, 5, 4, 4]), 9), ids(&[2, 0]));
    assert_eq!(largest(sizes(&[4, 5]), 0), ids(&[1]));
    assert_eq!(largest(Vec::new(), 9), []);
    assert_eq!(largest(sizes(&[4; 10_000]), 40_000 / 8).len(), 1250);
}
