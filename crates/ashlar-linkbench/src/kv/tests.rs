use super::memory::Memory;
use super::*;
use crate::model::{FIRST_LINK_TYPE, LIST_LIMIT, NODE_TYPE};

const FAN: Fan = Fan { id1: 5, link_type: FIRST_LINK_TYPE };

fn link(id2: u64, time: u64) -> Link<'static> {
    Link { fan: FAN, id2, visibility: Visibility::Visible, version: 0, time, data: b"d" }
}

fn listed<C: Client>(graph: &mut Graph<'_, C>, time: u64, offset: usize, limit: usize) -> Vec<u64> {
    let mut ids = Vec::new();
    let seen = graph.list(&Listing { fan: FAN, time, offset, limit }, |link| ids.push(link.id2)).unwrap();
    assert_eq!(seen, ids.len());
    ids
}

/// The outcomes of the specification, one after the other.
#[test]
fn links_are_inserted_rewritten_hidden_and_shown() {
    for mode in [Mode::Batch, Mode::None] {
        let (memory, locks) = (Memory::default(), Locks::default());
        let mut graph = Graph::new(&memory, &locks, mode);
        let count = |graph: &mut Graph<'_, &Memory>| graph.count(FAN).unwrap();
        assert_eq!((count(&mut graph), graph.delete_link(FAN, 1, 9)), (None, Ok(false)));
        assert_eq!(graph.add_link(&link(1, 10)), Ok(Added::Inserted));
        assert_eq!(graph.add_link(&link(2, 20)), Ok(Added::Inserted));
        assert_eq!(count(&mut graph), Some(Count { count: 2, time: 20, version: 1 }));
        assert_eq!(graph.add_link(&link(1, 30)), Ok(Added::Rewritten));
        assert_eq!(
            count(&mut graph),
            Some(Count { count: 2, time: 20, version: 1 }),
            "no change of the count"
        );
        assert_eq!(listed(&mut graph, u64::MAX, 0, LIST_LIMIT), [1, 2], "newest first");
        assert_eq!(graph.delete_link(FAN, 1, 40), Ok(true));
        assert_eq!(graph.delete_link(FAN, 1, 41), Ok(false), "hidden already");
        assert_eq!(count(&mut graph), Some(Count { count: 1, time: 40, version: 2 }));
        assert_eq!(listed(&mut graph, u64::MAX, 0, LIST_LIMIT), [2]);
        assert_eq!(graph.add_link(&link(1, 50)), Ok(Added::Shown));
        assert_eq!(count(&mut graph), Some(Count { count: 2, time: 50, version: 3 }));
        assert_eq!(memory.entries().len(), 2 + 2 + 1, "no old place stays: {:?}", memory.entries());
        let mut seen = Vec::new();
        graph.multiget(FAN, &[2, 3, 1], |link| seen.push((link.id2, link.time))).unwrap();
        assert_eq!(seen, [(2, 20), (1, 50)]);
        assert!(graph.written > 0);
    }
}

#[test]
fn a_list_has_a_time_an_offset_and_a_limit() {
    let (memory, locks) = (Memory::default(), Locks::default());
    let mut graph = Graph::new(&memory, &locks, Mode::Batch);
    (1..=5).for_each(|id2| drop(graph.add_link(&link(id2, 10 * id2))));
    assert_eq!(listed(&mut graph, u64::MAX, 0, 3), [5, 4, 3]);
    assert_eq!(listed(&mut graph, 30, 0, 9), [3, 2, 1]);
    assert_eq!(listed(&mut graph, 30, 1, 1), [2]);
    assert_eq!(listed(&mut graph, 9, 0, 9), [0; 0]);
}

#[test]
fn nodes_say_whether_they_were_there() {
    let (memory, locks) = (Memory::default(), Locks::default());
    let mut graph = Graph::new(&memory, &locks, Mode::Batch);
    let node = |version| Node { node_type: NODE_TYPE, version, time: 3, data: b"n" };
    assert_eq!((graph.update_node(1, &node(2)), graph.delete_node(1)), (Ok(false), Ok(false)));
    graph.add_node(1, &node(1)).unwrap();
    assert_eq!(graph.update_node(1, &node(2)), Ok(true));
    assert_eq!(graph.get_node(1, |found| assert_eq!(*found, node(2))), Ok(true));
    assert_eq!((graph.delete_node(1), graph.get_node(1, |_| ())), (Ok(true), Ok(false)));
}

#[test]
fn a_malformed_entry_is_an_error() {
    let (memory, locks) = (Memory::default(), Locks::default());
    memory.entries().insert(layout::count_key(FAN).to_vec(), b"short".to_vec());
    let mut graph = Graph::new(&memory, &locks, Mode::Batch);
    assert_eq!(graph.count(FAN).unwrap_err(), "an entry of c has a malformed part of 5 bytes");
    assert!(graph.add_link(&link(1, 1)).is_err());
}
