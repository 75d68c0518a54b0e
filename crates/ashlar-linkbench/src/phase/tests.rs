use super::bulk;
use super::check::{self, Faults};
use super::kept::Kept;
use super::load::{Load, Loaded, Part, load, must_be_whole};
use super::request::{COMPARED, Done, Requester, Shared};
use crate::config::Config;
use crate::generate::graph::Generators;
use crate::kv::memory::Memory;
use crate::kv::{Graph, Locks, Mode};
use crate::mix::Op;
use ashlar_peers::client::{Bounds, Changes, Client};
use ashlar_peers::meter::Kinds;
use ashlar_peers::peer::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SMALL: [&str; 3] = ["maxid1=3001", "nlinks_cap=300", "loader_chunk_size=128"];

fn config(more: &[&str]) -> Config {
    let overrides: Vec<String> = SMALL.iter().chain(more).map(|text| (*text).to_owned()).collect();
    Config::builtin(&overrides, true).unwrap()
}

fn all_or_rest(config: &Config, memory: &Memory, loaders: usize) -> Load {
    load(config, &Generators::new(config), vec![memory; loaders + 1], &AtomicU64::new(0)).unwrap()
}

fn loaded(config: &Config, memory: &Memory, loaders: usize) -> Loaded {
    all_or_rest(config, memory, loaders).loaded
}

fn requested(config: &Config, memory: &Memory, mode: Mode) -> Done {
    let (generators, locks) = (Generators::new(config), Locks::default());
    let next_node = check::next_node(&mut &*memory, config).unwrap();
    let shared = Shared {
        config,
        generators: &generators,
        next_node: AtomicU64::new(next_node),
        done: AtomicU64::new(0),
        mode,
    };
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..config.requesters)
            .map(|own| {
                let requester = Requester::new(&shared, Graph::new(memory, &locks, mode), own.into(), 1);
                scope.spawn(move || requester.run())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    all.into_iter().reduce(Done::and).unwrap()
}

/// The check after a load and the requests `done`.
fn checked(memory: &Memory, done: &Done, mode: Mode) -> Faults {
    let expected = Kept::read(&mut &*memory).unwrap().after(done.changed(mode)).rows;
    assert!(expected.is_some(), "the load knows its rows");
    check::everything(&mut &*memory, expected).unwrap()
}

#[test]
fn a_load_is_whole_and_does_not_depend_on_its_threads() {
    let config = config(&[]);
    let (one, four) = (Memory::default(), Memory::default());
    let rows = loaded(&config, &one, 1);
    assert_eq!(rows, loaded(&config, &four, 4));
    assert!(*one.entries() == *four.entries());
    let degrees = Generators::new(&config).degrees;
    let links = (1..=3000).map(|id| degrees.of_type(id, 0) + degrees.of_type(id, 1)).sum::<u64>();
    assert_eq!((rows.links, rows.nodes), (links, 3000));
    assert!(rows.links > 6000 && rows.counts > 2000, "{rows:?}");
    let faults = checked(&one, &Done::new(0.0), Mode::Batch);
    assert_eq!((faults.count, faults.fans), (0, rows.counts), "{faults:?}");
    let again = all_or_rest(&config, &one, 1);
    assert_eq!((again.part, again.loaded), (Part::Nothing, Loaded::default()), "it is not loaded again");
}

/// A client that fails from a certain batch on.
struct Failing<'a>(&'a Memory, &'a AtomicU64);

impl Client for Failing<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        (&mut &*self.0).get(key, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        (&mut &*self.0).scan(bounds, see)
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        let left = self.1.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map_err(|_| "No space left on device".to_owned())?;
        (&mut &*self.0).apply(changes)
    }
}

#[test]
fn an_interrupted_load_goes_on_where_it_ended() {
    let config = config(&[]);
    let whole = Memory::default();
    let rows = loaded(&config, &whole, 2);
    let memory = Memory::default();
    assert!(must_be_whole(&mut &memory, &config).unwrap_err().contains("no graph"));
    let left = AtomicU64::new(30);
    let generators = Generators::new(&config);
    let clients = (0..3).map(|_| Failing(&memory, &left)).collect();
    let why = load(&config, &generators, clients, &AtomicU64::new(0)).unwrap_err();
    assert_eq!(why, "No space left on device");
    assert!(must_be_whole(&mut &memory, &config).unwrap_err().contains("interrupted"));
    let Load { part, loaded: rest, .. } = all_or_rest(&config, &memory, 2);
    assert!(part == Part::Rest && rest.links < rows.links && rest.links > 0, "{rest:?}");
    assert!(*memory.entries() == *whole.entries(), "the numbers and digests of the whole load too");
    must_be_whole(&mut &memory, &config).unwrap();
    let other = Config { load_seed: 9, ..config };
    assert!(must_be_whole(&mut &memory, &other).unwrap_err().contains("another configuration"));
    assert!(load(&other, &generators, vec![&memory], &AtomicU64::new(0)).is_err());
}

#[test]
fn requests_of_several_clients_keep_the_graph_consistent() {
    let config = config(&["requesters=4", "requests=6000"]);
    let memory = Memory::default();
    loaded(&config, &memory, 1);
    let done = requested(&config, &memory, Mode::Batch);
    assert_eq!((done.ops, done.failed, done.cut), (24_000, 0, false), "{:?}", done.failure);
    assert!(done.inserted > 1500 && done.faults.fans == 4 * 5 && done.faults.count == 0, "{:?}", done.faults);
    let faults = checked(&memory, &done, Mode::Batch);
    assert_eq!(faults.why(), None);
    let latencies = done.meter.latencies();
    assert_eq!(latencies.len(), Op::ALL.len());
    let share = latencies["GET_LINKS_LIST"].count as f64 / 24_000.0;
    assert!((share - 0.507).abs() < 0.02, "{share}");
}

#[test]
fn the_same_seed_does_the_same() {
    let of = |seed: &str| {
        let config = config(&["requests=3000", seed]);
        let memory = Memory::default();
        loaded(&config, &memory, 2);
        let done = requested(&config, &memory, Mode::Batch);
        (done.sums, done.found, memory.entries().clone())
    };
    let first = of("request_random_seed=1");
    assert!(first == of("request_random_seed=1"));
    assert_ne!(first.0, of("request_random_seed=2").0);
    assert!(first.0.asked != 0 && first.0.read != 0 && first.1 > 0);
}

/// One entry of all that a load writes is lost: the check finds it, whichever space it belongs to.
#[test]
fn one_lost_entry_of_a_load_is_found() {
    let config = config(&[]);
    for (letter, wanted) in [
        (b'l', "6302 links, and 6303 were written"),
        (b'i', "not in the list"),
        (b'c', "the count is 0"),
        (b'n', "nodes"),
    ] {
        let memory = Memory::losing(letter, 777);
        let rows = loaded(&config, &memory, 1);
        let why = checked(&memory, &Done::new(0.0), Mode::Batch).why().unwrap();
        assert!(why.contains(wanted), "{}: {why}", char::from(letter));
        assert!(rows.links > 6000, "one of {}", rows.links);
    }
}

#[test]
fn one_lost_link_of_the_requests_is_found() {
    let config = config(&["requests=8000"]);
    for (letter, wanted) in [(b'l', "list"), (b'i', "not in the list"), (b'c', "the count is")] {
        let memory = Memory::default();
        let rows = loaded(&config, &memory, 1);
        let losing = Memory::losing(letter, 200);
        losing.entries().clone_from(&*memory.entries());
        let done = requested(&config, &losing, Mode::Batch);
        let why = checked(&losing, &done, Mode::Batch).why();
        assert!(why.as_ref().is_some_and(|why| why.contains(wanted)), "{letter} of {rows:?}: {why:?}");
    }
}

#[test]
fn failures_are_counted_and_too_many_end_a_requester() {
    let config = config(&["requests=5000", "max_failed_requests=10"]);
    let memory = Memory::default();
    loaded(&config, &memory, 1);
    let (generators, locks, left) = (Generators::new(&config), Locks::default(), AtomicU64::new(50));
    let shared = Shared {
        config: &config,
        generators: &generators,
        next_node: AtomicU64::new(config.graph.end),
        done: AtomicU64::new(0),
        mode: Mode::Batch,
    };
    let graph = Graph::new(Failing(&memory, &left), &locks, Mode::Batch);
    let done = Requester::new(&shared, graph, 0, 1).run();
    assert_eq!((done.failed, done.failure.as_deref(), done.cut), (11, Some("No space left on device"), true));
}

/// A client whose first scan takes a while.
struct Stalling<'a>(&'a Memory, &'a AtomicU64);

const STALL: Duration = Duration::from_millis(200);

impl Client for Stalling<'_> {
    fn get(&mut self, key: &[u8], see: impl FnOnce(&[u8])) -> Result<bool> {
        (&mut &*self.0).get(key, see)
    }

    fn scan(&mut self, bounds: Bounds<'_>, see: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        if self.1.fetch_add(1, Ordering::Relaxed) == 0 {
            std::thread::sleep(STALL);
        }
        (&mut &*self.0).scan(bounds, see)
    }

    fn apply(&mut self, changes: &Changes) -> Result<()> {
        (&mut &*self.0).apply(changes)
    }
}

fn paced(config: &Config, memory: &Memory) -> Done {
    let (generators, locks, scans) = (Generators::new(config), Locks::default(), AtomicU64::new(0));
    let shared = Shared {
        config,
        generators: &generators,
        next_node: AtomicU64::new(config.graph.end),
        done: AtomicU64::new(0),
        mode: Mode::Batch,
    };
    let graph = Graph::new(Stalling(memory, &scans), &locks, Mode::Batch);
    Requester::new(&shared, graph, 0, 1).run()
}

/// During a stall of 200 ms at 1000 operations a second about 200 become due. Their latencies begin when they were due, so those
/// of the first 150 ms wait 50 ms or more.
#[test]
fn latencies_count_from_when_an_operation_was_due() {
    let config = config(&["requests=600", "requestrate=1000"]);
    let memory = Memory::default();
    loaded(&config, &memory, 1);
    let done = paced(&config, &memory);
    assert_eq!((done.ops, done.gave_up, done.cut), (600, false, false));
    let latencies = done.meter.latencies();
    assert!(latencies.values().all(|latency| latency.rate == Some(1000.0)), "{latencies:?}");
    // A third of the operations are late, so the slowest quarter is.
    let late = &latencies["GET_LINKS_LIST"];
    assert!(late.p75 > 20_000.0 && late.max >= 200_000.0, "{late:?}");
    let seconds = done.meter.elapsed().as_secs_f64();
    // The sum of 600 exponential gaps has a deviation of 0.025 s. A busy machine makes it longer.
    assert!(seconds > 0.45, "{seconds}");
}

/// The row lasts 180 ms; the stall begins at once and lasts 200 ms. Every operation that was due in the row is done afterwards.
#[test]
fn operations_that_are_due_when_the_row_ends_are_done() {
    let config = config(&["requestrate=1000", "maxtime=0.18"]);
    let memory = Memory::default();
    loaded(&config, &memory, 1);
    let done = paced(&config, &memory);
    assert!(done.late > Duration::from_millis(5) || done.gave_up, "{:?}", done.late);
    assert!(done.ops > 110 && done.ops < 260, "about 180: {}", done.ops);
    assert!(done.cut && done.faults.count == 0);
}

/// A batch that is lost whole leaves counts, links and lists consistent with each other: only the digests show it.
#[test]
fn one_lost_batch_of_each_operation_is_found() {
    for (op, share) in [
        (Op::AddLink, 0),
        (Op::DeleteLink, 1),
        (Op::UpdateLink, 2),
        (Op::AddNode, 7),
        (Op::UpdateNode, 8),
        (Op::DeleteNode, 9),
    ] {
        let shares: Vec<String> = Op::ALL
            .iter()
            .map(|of| format!("{}={}", of.property(), if of.place() == share { 100 } else { 0 }))
            .collect();
        let more: Vec<&str> = ["requests=400"].into_iter().chain(shares.iter().map(String::as_str)).collect();
        let config = config(&more);
        let memory = Memory::default();
        loaded(&config, &memory, 1);
        let losing = Memory::losing_a_batch(50);
        losing.entries().clone_from(&*memory.entries());
        let whole = requested(&config, &memory, Mode::Batch);
        assert_eq!(checked(&memory, &whole, Mode::Batch).why(), None, "{op:?}");
        let done = requested(&config, &losing, Mode::Batch);
        let why = checked(&losing, &done, Mode::Batch).why();
        assert!(
            why.as_ref().is_some_and(|why| why.contains("not those that were written")),
            "{op:?}: {why:?}"
        );
    }
}

/// A row that the clock ends at once still does the operations that are compared between engines.
#[test]
fn one_client_does_the_compared_operations_however_short_the_row() {
    let memory = Memory::default();
    loaded(&config(&[]), &memory, 1);
    let whole = config(&["requests=5000"]);
    let short = config(&["maxtime=0.000001"]);
    let other = Memory::default();
    other.entries().clone_from(&*memory.entries());
    let (all, cut) = (requested(&whole, &memory, Mode::Batch), requested(&short, &other, Mode::Batch));
    assert_eq!((cut.ops, cut.cut, all.cut), (COMPARED, true, false));
    assert_eq!(cut.first, Some(all.sums));
}

/// The check of an engine that reads each space once finds what the other check finds.
#[test]
fn the_check_in_bulk_finds_a_lost_entry_of_each_space_and_a_lost_batch() {
    let config = config(&["requests=3000"]);
    let found = |memory: &Memory, batch: Option<u64>| {
        loaded(&config, memory, 1);
        let losing = Memory::losing_a_batch(batch.unwrap_or(u64::MAX));
        losing.entries().clone_from(&*memory.entries());
        let done = requested(&config, &losing, Mode::Batch);
        let expected = Kept::read(&mut &losing).unwrap().after(done.changed(Mode::Batch)).rows;
        let faults = bulk::everything(&mut &losing, expected).unwrap();
        let other = check::everything(&mut &losing, expected).unwrap();
        assert_eq!((faults.count > 0, faults.fans), (other.count > 0, other.fans), "{faults:?} {other:?}");
        faults.count
    };
    assert_eq!(found(&Memory::default(), None), 0);
    for letter in [b'l', b'i', b'c', b'n'] {
        assert!(found(&Memory::losing(letter, 700), None) > 0, "{}", char::from(letter));
    }
    assert!(found(&Memory::default(), Some(40)) > 0);
}
