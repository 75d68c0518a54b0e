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
    let why = graph.count(FAN).unwrap_err();
    assert!(why.starts_with("count 0x630000000000000005") && why.contains("the value of 5 bytes"), "{why}");
    assert!(graph.add_link(&link(1, 1)).is_err());
}

/// A client of transactions that meets so many conflicts, and whose rollbacks fail if asked.
struct Conflicts<'a> {
    memory: &'a Memory,
    left: u32,
    stuck: bool,
}

impl Client for Conflicts<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        (&mut &*self.memory).get(key, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        (&mut &*self.memory).scan(bounds, see)
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        (&mut &*self.memory).apply(changes)
    }

    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn get_for_update(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        self.get(key, see)
    }

    fn commit(&mut self, changes: &Changes) -> Result<()> {
        if self.left > 0 {
            self.left -= 1;
            return Err(format!("{CONFLICT}try again"));
        }
        self.apply(changes)
    }

    fn rollback(&mut self) -> Result<()> {
        if self.stuck { Err("the rollback failed".to_owned()) } else { Ok(()) }
    }
}

#[test]
fn a_transaction_is_tried_again_and_gives_up() {
    let (memory, locks) = (Memory::default(), Locks::default());
    let graph = |left, stuck| Graph::new(Conflicts { memory: &memory, left, stuck }, &locks, Mode::Txn);
    let mut few = graph(5, false);
    assert_eq!((few.add_link(&link(1, 10)), few.conflicts), (Ok(Added::Inserted), 5));
    assert_eq!(few.count(FAN).unwrap().map(|count| count.count), Some(1), "the change was made once");
    let mut many = graph(TRIES, false);
    assert_eq!(
        (many.add_link(&link(2, 10)), many.conflicts),
        (Err(format!("{CONFLICT}try again")), TRIES as u64 - 1)
    );
    let why = graph(1, true).add_link(&link(3, 10)).unwrap_err();
    assert!(why.starts_with(CONFLICT), "the first error, not that of the rollback: {why}");
}

/// Other clients that hold the locks of the driver do not stop a client without atomicity.
#[test]
fn without_atomicity_no_lock_is_taken() {
    let (memory, locks) = (Memory::default(), Locks::default());
    let (done, ended) = std::sync::mpsc::channel();
    let held = (locks.fan(FAN), locks.node(1));
    std::thread::scope(|scope| {
        let mut graph = Graph::new(&memory, &locks, Mode::None);
        scope.spawn(move || {
            let node = Node { node_type: NODE_TYPE, version: 1, time: 3, data: b"n" };
            let all = [graph.add_link(&link(1, 10)).is_ok(), graph.delete_link(FAN, 1, 20) == Ok(true)];
            let nodes = [graph.add_node(1, &node).is_ok(), graph.update_node(1, &node) == Ok(true)];
            done.send((all, nodes)).unwrap();
        });
        let waited = ended.recv_timeout(Duration::from_secs(60));
        // The thread would wait for ever, and this one for it.
        drop(held);
        assert_eq!(waited, Ok(([true; 2], [true; 2])));
    });
}
