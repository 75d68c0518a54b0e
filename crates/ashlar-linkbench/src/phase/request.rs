//! The request phase: requesters that draw operations, run them, and time them.
//!
//! 1. An operation is drawn before its clock starts, and before it is due: id, other ends and data are not part of its latency.
//! 2. With a rate, the gaps between due times are exponential. A latency then counts from the due time, so a stalled engine is
//!    charged for the operations that wait. Every operation that is due before the end of the row is done and counted, however
//!    late; a row that takes [`PATIENCE`] times its length is ended, and void.
//! 3. What a requester draws depends on its seed alone, except for continued lists. So every engine gets the same operations. The
//!    warm-up draws from a stream of its own, because its number of operations depends on the engine.
//! 4. Every [`CHECKED`] operations a requester checks the links around its last link write, under their lock: one node and type
//!    with at most [`CHECKED_LINKS`] loaded links, because other writers of that node wait meanwhile. Rows with a rate are checked
//!    after they ended: a check would delay operations that are due. So are rows of transactions, whose writers take no locks of the
//!    driver.
//! 5. One requester also keeps the digests of its first [`COMPARED`] operations, which the clock does not end. So engines can be
//!    compared even if one does more operations in a row than another.

use super::check::Faults;
use super::history::History;
use super::kept::Changed;
use super::{NOW, Sums};
use crate::config::{Config, LINK_DATA_END, NODE_DATA_END};
use crate::digest;
use crate::generate::access::{Blend, Source};
use crate::generate::graph::{Generators, Owner};
use crate::generate::payload::{Payload, length};
use crate::kv::contents::Contents;
use crate::kv::{Added, Listing, Mode};
use crate::mix::Op;
use crate::model::{FIRST_LINK_TYPE, Fan, LIST_LIMIT, Link, NODE_TYPE, Node, Visibility};
use crate::store::{Store, Tally};
use ashlar_bench::Random;
use ashlar_peers::meter::{Kinds, Meter, wait_until};
use ashlar_peers::peer::Result;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Operations of a requester between two checks.
pub const CHECKED: u64 = 1024;

/// The most loaded links of a node and type that are checked during the requests.
pub const CHECKED_LINKS: u64 = 1000;

/// The operations whose digests are compared between engines in a row that the clock ends.
pub const COMPARED: u64 = 5000;

/// How many times its length a row with a rate may take.
const PATIENCE: f64 = 2.0;

/// Operations after which a progress line may be due.
const NOTED: u64 = 64;

/// How the driver distinguishes random streams of a requester: by the phase, and within it the warm-up.
const STREAMS: u64 = 1 << 32;
const WARM_UP: u64 = 1 << 31;

/// What requesters share.
#[derive(Debug)]
pub struct Shared<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The generators, of which each requester takes a copy.
    pub generators: &'a Generators,
    /// The id of the next new node.
    pub next_node: AtomicU64,
    /// Operations so far, for progress.
    pub done: AtomicU64,
    /// How writes are atomic.
    pub mode: Mode,
}

/// What one or several requesters did.
#[derive(Clone, Debug)]
pub struct Done {
    /// The times.
    pub meter: Meter<Op>,
    /// Operations, warm-up left out.
    pub ops: u64,
    /// Reads that found an entry.
    pub found: u64,
    /// Links that lists returned.
    pub listed: u64,
    /// Links that are new.
    pub inserted: u64,
    /// Nodes that are new, less those that were removed.
    pub nodes: i64,
    /// Bytes of keys and values written.
    pub written: u64,
    /// The difference of the digests of the database. `None`: unknown.
    pub contents: Option<Contents>,
    /// Digests.
    pub sums: Sums,
    /// Digests of the first [`COMPARED`] operations of a single requester.
    pub first: Option<Sums>,
    /// Operations that failed.
    pub failed: u64,
    /// The first failure.
    pub failure: Option<String>,
    /// What the checks saw.
    pub faults: Faults,
    /// Transactions that met a conflict and ran again.
    pub conflicts: u64,
    /// Whether the clock ended it.
    pub cut: bool,
    /// With a rate: how late the last operation of the slowest requester ended.
    pub late: Duration,
    /// With a rate: whether a requester gave up operations that were due.
    pub gave_up: bool,
    /// With a rate, or in transactions: the nodes and types that are to be checked afterwards.
    pub unchecked: Vec<Fan>,
}

impl Done {
    /// Nothing yet.
    pub fn new(seconds: f64) -> Done {
        Done {
            meter: Meter::new(seconds),
            ops: 0,
            found: 0,
            listed: 0,
            inserted: 0,
            nodes: 0,
            written: 0,
            contents: Some(Contents::default()),
            sums: Sums::default(),
            first: None,
            failed: 0,
            failure: None,
            faults: Faults::default(),
            conflicts: 0,
            cut: false,
            late: Duration::ZERO,
            gave_up: false,
            unchecked: Vec::new(),
        }
    }

    /// What the phase changed. `None`: unknown, because an operation failed and may have been applied nevertheless.
    pub fn changed(&self, mode: Mode) -> Option<Changed> {
        let contents = self.contents.filter(|_| mode != Mode::None);
        (self.failed == 0).then_some(Changed { links: self.inserted, nodes: self.nodes, contents })
    }

    /// Two requesters together.
    pub fn and(self, other: Done) -> Done {
        Done {
            meter: self.meter.and(other.meter),
            ops: self.ops + other.ops,
            found: self.found + other.found,
            listed: self.listed + other.listed,
            inserted: self.inserted + other.inserted,
            nodes: self.nodes + other.nodes,
            written: self.written + other.written,
            contents: self.contents.zip(other.contents).map(|(one, two)| one.and(two)),
            sums: Sums {
                asked: self.sums.asked.wrapping_add(other.sums.asked),
                read: self.sums.read.wrapping_add(other.sums.read),
            },
            first: None,
            failed: self.failed + other.failed,
            failure: self.failure.or(other.failure),
            faults: self.faults.and(other.faults),
            conflicts: self.conflicts + other.conflicts,
            cut: self.cut || other.cut,
            late: self.late.max(other.late),
            gave_up: self.gave_up || other.gave_up,
            unchecked: [self.unchecked, other.unchecked].concat(),
        }
    }
}

/// A drawn operation.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    op: Op,
    fan: Fan,
    id2: u64,
    listing: Listing,
}

/// One requester.
pub struct Requester<'a, S> {
    shared: &'a Shared<'a>,
    graph: S,
    owner: Owner,
    /// The number of the stream of the measured operations.
    stream: u64,
    random: Random,
    link_reads: Blend,
    link_writes: Blend,
    nodes: [Source; 3],
    payloads: [Payload; 4],
    data: Vec<u8>,
    ends: Vec<u64>,
    history: History,
    /// Operations since the beginning: the requester's clock.
    clock: u64,
    /// The node and type of the last link write that may be checked.
    written: Option<Fan>,
    done: Done,
}

impl<'a, S: Store> Requester<'a, S> {
    /// Requester number `own` of the phase number `phase`.
    pub fn new(shared: &'a Shared<'a>, graph: S, own: u64, phase: u64) -> Requester<'a, S> {
        let config = shared.config;
        let stream = phase * STREAMS + own;
        let mut random = Random::new(config.request_seed, stream);
        let payloads = config.graph.shapes.map(|shape| Payload::new(shape, &mut random));
        let generators = shared.generators;
        Requester {
            shared,
            graph,
            owner: Owner { number: own, of: config.requesters.into() },
            stream,
            random,
            link_reads: generators.link_reads.clone(),
            link_writes: generators.link_writes.clone(),
            nodes: generators.nodes.clone(),
            payloads,
            data: Vec::new(),
            ends: Vec::new(),
            history: History::default(),
            clock: phase * STREAMS,
            written: None,
            done: Done::new(config.seconds),
        }
    }

    /// Does operations for `warmup_time`. They change the database, and are in no figure.
    pub fn warm_up(&mut self) {
        let time = Duration::from_secs_f64(self.shared.config.warmup);
        if time.is_zero() {
            return;
        }
        let measured = std::mem::replace(
            &mut self.random,
            Random::new(self.shared.config.request_seed, self.stream + WARM_UP),
        );
        let end = Instant::now() + time;
        while Instant::now() < end {
            let drawn = self.draw();
            let answer = self.perform(&drawn);
            if !self.accept(answer) {
                break;
            }
        }
        // What the warm-up changed stays in the numbers that the check at the end needs.
        let Done { inserted, nodes, failed, failure, .. } = self.done.clone();
        self.done = Done { inserted, nodes, failed, failure, ..Done::new(self.shared.config.seconds) };
        self.random = measured;
    }

    /// Runs until the number of requests, the time, or too many failures end it.
    pub fn run(mut self) -> Done {
        let config = self.shared.config;
        let before = self.graph.tally();
        if config.rate > 0.0 {
            self.run_paced(config.rate);
        } else {
            self.run_closed();
        }
        self.done.cut = self.done.ops < config.requests;
        let Tally { written, conflicts, contents } = self.graph.tally();
        self.done.written = written - before.written;
        self.done.conflicts = conflicts - before.conflicts;
        self.done.contents = contents;
        self.done
    }

    /// One operation after the other, as fast as they go.
    fn run_closed(&mut self) {
        let config = self.shared.config;
        let compared = if config.requesters == 1 { COMPARED.min(config.requests) } else { 0 };
        self.done.meter.begin();
        while self.done.ops < config.requests && (!self.done.meter.over() || self.done.ops < compared) {
            let drawn = self.draw();
            if !self.timed(&drawn, None) {
                break;
            }
            if self.done.ops == compared {
                self.done.first = Some(self.done.sums);
            }
            if self.check_is_due() {
                match self.shared.mode {
                    Mode::Batch => self.check(),
                    Mode::Txn => self.check_later(),
                    // Counts may drift.
                    Mode::None => {}
                }
            }
        }
    }

    /// Each operation when it is due, or as soon as the one before has ended.
    fn run_paced(&mut self, rate: f64) {
        let config = self.shared.config;
        let start = self.done.meter.begin_paced(rate * f64::from(config.requesters));
        let length = (config.seconds > 0.0).then(|| Duration::from_secs_f64(config.seconds));
        let mut due = start;
        while self.done.ops < config.requests {
            due += Duration::from_secs_f64(-(1.0 - self.random.unit()).ln() / rate);
            if length.is_some_and(|length| due >= start + length) {
                break;
            }
            if length.is_some_and(|length| start.elapsed() >= length.mul_f64(PATIENCE)) {
                self.done.gave_up = true;
                break;
            }
            let drawn = self.draw();
            wait_until(due);
            let goes_on = self.timed(&drawn, Some(due));
            self.done.late = due.elapsed();
            if !goes_on {
                break;
            }
            if self.check_is_due() && self.shared.mode != Mode::None {
                self.check_later();
            }
        }
    }

    /// Performs and times an operation, from `due` or from now. False: too many failures.
    fn timed(&mut self, drawn: &Drawn, due: Option<Instant>) -> bool {
        let begun = due.unwrap_or_else(Instant::now);
        let answer = self.perform(drawn);
        self.done.meter.ended_due(drawn.op, begun);
        self.done.ops += 1;
        if self.done.ops.is_multiple_of(NOTED) {
            self.shared.done.fetch_add(NOTED, Ordering::Relaxed);
        }
        self.accept(answer)
    }

    fn check_is_due(&self) -> bool {
        self.done.ops.is_multiple_of(CHECKED)
    }

    /// Checks the links around the last link write. This is not part of a latency.
    fn check(&mut self) {
        let Some(fan) = self.written.take() else { return };
        match self.graph.check_fan(fan) {
            Ok(faults) => self.done.faults = std::mem::take(&mut self.done.faults).and(faults),
            Err(why) => drop(self.accept(Err(why))),
        }
    }

    /// Notes the links around the last link write for a check after the row.
    fn check_later(&mut self) {
        self.done.unchecked.extend(self.written.take());
    }

    /// False: too many failures.
    fn accept(&mut self, answer: Result<()>) -> bool {
        let Err(why) = answer else { return true };
        self.done.failed += 1;
        self.done.failure.get_or_insert(why);
        self.shared.config.max_failed.is_none_or(|most| self.done.failed <= most)
    }

    fn draw(&mut self) -> Drawn {
        let op = self.shared.config.mix.at(self.random.unit() * 100.0);
        let place = self.random.below(self.shared.config.graph.types);
        let id1 = match op {
            Op::AddLink | Op::DeleteLink | Op::UpdateLink => self.link_writes.next(&mut self.random),
            Op::CountLink | Op::MultigetLink | Op::GetLinksList => self.link_reads.next(&mut self.random),
            Op::GetNode => self.nodes[0].next(&mut self.random),
            Op::UpdateNode => self.nodes[1].next(&mut self.random),
            Op::DeleteNode => self.nodes[2].next(&mut self.random),
            Op::AddNode => self.shared.config.graph.first,
        };
        let fan = self.shared.generators.fan(id1, place);
        let mut listing = Listing { fan, time: u64::MAX, offset: 0, limit: LIST_LIMIT };
        let mut id2 = 0;
        let end = |random: &mut Random, exists| self.shared.generators.end(fan, exists, self.owner, random);
        match op {
            Op::AddLink => id2 = end(&mut self.random, 0.05),
            Op::DeleteLink | Op::UpdateLink => id2 = end(&mut self.random, 0.9),
            Op::MultigetLink => {
                let many = self.shared.config.multiget.map_or(1, |of| of.next(&mut self.random));
                self.shared.generators.ends(fan, many, self.owner, &mut self.random, &mut self.ends);
            }
            Op::GetLinksList if self.random.unit() * 100.0 < self.shared.config.history => {
                listing = self.history.next(&mut self.random).unwrap_or(listing);
            }
            _ => {}
        }
        self.fill(op);
        let kind = op.place() as u64;
        let numbers = [kind, id1, place, id2, digest::of_bytes(&self.data)];
        self.done.sums.asked = self.done.sums.asked.wrapping_add(digest::fold(self.owner.number, &numbers));
        Drawn { op, fan, id2, listing }
    }

    /// Makes the data of an operation that writes some.
    fn fill(&mut self, op: Op) {
        let graph = &self.shared.config.graph;
        let (shape, median, end) = match op {
            Op::AddLink => (0, graph.link_bytes, LINK_DATA_END),
            Op::UpdateLink => (1, graph.link_bytes, LINK_DATA_END),
            Op::AddNode => (2, graph.node_bytes, NODE_DATA_END),
            Op::UpdateNode => (3, graph.node_bytes, NODE_DATA_END),
            _ => return self.data.clear(),
        };
        let bytes = length(median, end, &mut self.random);
        self.data.clear();
        self.data.extend_from_slice(self.payloads[shape].next(bytes, &mut self.random));
    }

    fn perform(&mut self, drawn: &Drawn) -> Result<()> {
        self.clock += 1;
        let now = NOW + self.clock;
        let Drawn { op, fan, id2, listing } = *drawn;
        if matches!(op, Op::AddLink | Op::DeleteLink | Op::UpdateLink)
            && self.shared.generators.loaded_links(fan) <= CHECKED_LINKS
        {
            self.written = Some(fan);
        }
        match op {
            Op::AddLink | Op::UpdateLink => {
                let (visibility, data) = (Visibility::Visible, &self.data[..]);
                let added =
                    self.graph.add_link(&Link { fan, id2, visibility, version: 0, time: now, data })?;
                self.done.inserted += u64::from(added == Added::Inserted);
            }
            Op::DeleteLink => drop(self.graph.delete_link(fan, id2, now)?),
            Op::CountLink => {
                let count = self.graph.count(fan)?;
                self.saw(&[count.map_or(0, |count| count.count.into())], count.is_some());
            }
            Op::MultigetLink => self.multiget(fan)?,
            Op::GetLinksList => self.list(&listing)?,
            Op::GetNode => {
                let mut sum = 0;
                let found = self.graph.get_node(fan.id1, |node| sum = digest::of_bytes(node.data))?;
                self.saw(&[sum], found);
            }
            Op::AddNode | Op::UpdateNode => self.write_node(op, fan.id1, now)?,
            Op::DeleteNode => self.done.nodes -= i64::from(self.graph.delete_node(fan.id1)?),
        }
        Ok(())
    }

    fn saw(&mut self, numbers: &[u64], found: bool) {
        self.done.found += u64::from(found);
        self.done.sums.read = digest::fold(self.done.sums.read, numbers);
    }

    fn write_node(&mut self, op: Op, id: u64, now: u64) -> Result<()> {
        let time = u32::try_from(now / 1000).unwrap_or(u32::MAX);
        let version = if op == Op::AddNode { 1 } else { 2 };
        let node = Node { node_type: NODE_TYPE, version, time, data: &self.data };
        if op == Op::AddNode {
            // A count: nothing else depends on its order.
            let id = self.shared.next_node.fetch_add(1, Ordering::Relaxed);
            self.graph.add_node(id, &node)?;
            self.done.nodes += 1;
        } else {
            self.graph.update_node(id, &node)?;
        }
        Ok(())
    }

    fn multiget(&mut self, fan: Fan) -> Result<()> {
        let (mut sum, mut found) = (fan.link_type - FIRST_LINK_TYPE, false);
        self.graph.multiget(fan, &self.ends, |link| {
            found = true;
            sum = digest::fold(sum, &[link.id2, link.time, digest::of_bytes(link.data)]);
        })?;
        self.saw(&[sum], found);
        Ok(())
    }

    fn list(&mut self, listing: &Listing) -> Result<()> {
        let (mut sum, mut oldest) = (0, 0);
        let seen = self.graph.list(listing, |link| {
            oldest = link.time;
            sum = digest::fold(sum, &[link.id2, link.time, digest::of_bytes(link.data)]);
        })?;
        self.history.note(listing, seen, oldest, &mut self.random);
        self.done.listed += seen as u64;
        self.saw(&[sum], seen > 0);
        Ok(())
    }
}
