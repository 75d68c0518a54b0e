//! The load phase: nodes in order by one thread, links and counts of chunks of ids by the loaders, from the highest chunk down.
//!
//! 1. Links, counts and nodes go in batches of 1024. A link is two entries: its own, and its place in the list.
//! 2. A chunk has a random stream of its own, so its entries do not depend on the thread that loads it.
//! 3. The batch that ends a chunk also marks the chunk as loaded, with its numbers of rows and their digests. An interrupted load
//!    goes on with the chunks without a mark; a chunk that is loaded again gets the same entries.
//! 4. The database keeps a fingerprint of the configuration. A load of another configuration is refused, and so are requests on
//!    a database whose load has not ended.
//! 5. The batch that ends the load also writes the rows that must be there ([`Kept`]).

use super::NOW;
use super::check::Expected;
use super::kept::Kept;
use crate::config::{Config, LINK_DATA_END, NODE_DATA_END};
use crate::generate::graph::Generators;
use crate::generate::payload::{Payload, length};
use crate::kv::contents::Contents;
use crate::kv::layout;
use crate::model::{Count, Fan, Link, NODE_TYPE, Node, Visibility};
use ashlar_bench::Random;
use ashlar_peers::client::{Changes, Client};
use ashlar_peers::meter::{Kinds, Meter};
use ashlar_peers::peer::Result;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

/// Rows of a batch.
const BATCH: usize = 1024;

/// Milliseconds over which the times of loaded links are spread: 49.7 days.
const SPREAD: u64 = 1 << 32;

/// Random streams of the node loader; those of chunks count from 0.
const NODES_STREAM: u64 = u64::MAX;

/// A batch of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// Nodes.
    Nodes,
    /// Links.
    Links,
    /// Counts.
    Counts,
}

impl Kinds for Bulk {
    const ALL: &'static [Bulk] = &[Bulk::Nodes, Bulk::Links, Bulk::Counts];

    fn place(self) -> usize {
        self as usize
    }

    fn text(self) -> &'static str {
        match self {
            Bulk::Nodes => "LOAD_NODE_BULK",
            Bulk::Links => "LOAD_LINKS_BULK",
            Bulk::Counts => "LOAD_COUNTS_BULK",
        }
    }
}

/// What was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Nodes.
    pub nodes: u64,
    /// Links.
    pub links: u64,
    /// Counts.
    pub counts: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Digests.
    pub contents: Contents,
}

/// Which part of a load this process did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it: the database was empty.
    All,
    /// The rest of an interrupted load.
    Rest,
    /// Nothing: the load had ended before.
    Nothing,
}

/// A load that has ended.
#[derive(Clone, Debug)]
pub struct Load {
    /// What this process did.
    pub part: Part,
    /// What this process wrote.
    pub loaded: Loaded,
    /// Times of its batches.
    pub meter: Meter<Bulk>,
}

impl Loaded {
    /// Both together.
    pub fn and(self, other: Loaded) -> Loaded {
        Loaded {
            nodes: self.nodes + other.nodes,
            links: self.links + other.links,
            counts: self.counts + other.counts,
            bytes: self.bytes + other.bytes,
            contents: self.contents.and(other.contents),
        }
    }

    /// Rows of all tables.
    pub fn rows(self) -> u64 {
        self.nodes + self.links + self.counts
    }
}

/// The state of a load in its database: the fingerprint of the configuration, and 1 when the load has ended.
const STATE: &[u8] = b"mload";

fn chunk_key(chunk: u64) -> Vec<u8> {
    [&b"mchunk"[..], &chunk.to_be_bytes()].concat()
}

const NODES_KEY: &[u8] = b"mnodes";

/// The form of a loaded graph. It changes with the generators, the layout and the digests, so that kept databases of an earlier form
/// are refused.
const FORM: u32 = 3;

/// A digest of everything that decides what the load writes.
fn fingerprint(config: &Config) -> u64 {
    let text = format!(
        "{FORM} {:?} {} {} {} {}",
        config.graph, config.chunk, config.nodes, config.load_seed, config.as_java
    );
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What a database says about its load: `None` before the first one, else whether it has ended.
fn state<C: Client>(client: &mut C, config: &Config) -> Result<Option<bool>> {
    let mut found = Vec::new();
    if !client.get(STATE, |value| found.extend_from_slice(value))? {
        return Ok(None);
    }
    if found.first_chunk::<8>() != Some(&fingerprint(config).to_be_bytes()) {
        return Err("the directory has the load of another configuration: give an empty directory".to_owned());
    }
    Ok(Some(found.get(8) == Some(&1)))
}

/// Writes the state, and with the last one the rows of the whole graph.
fn set_state<C: Client>(client: &mut C, config: &Config, ended: Option<Loaded>) -> Result<()> {
    let mut changes = Changes::new();
    let value = [&fingerprint(config).to_be_bytes()[..], &[u8::from(ended.is_some())]].concat();
    changes.put(STATE, &value);
    if let Some(Loaded { links, nodes, contents, .. }) = ended {
        Kept { phases: 0, rows: Some(Expected { links, nodes, contents: Some(contents) }) }.put(&mut changes);
    }
    client.apply(&changes)
}

/// Bytes of numbers, in the value of a mark.
fn mark<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// The numbers in the value of a mark. `None`: no such mark, or another form.
fn marked<C: Client, const N: usize>(client: &mut C, key: &[u8]) -> Result<Option<[u64; N]>> {
    let mut found = None;
    client.get(key, |value| {
        let numbers: Vec<u64> =
            value.as_chunks::<8>().0.iter().map(|bytes| u64::from_be_bytes(*bytes)).collect();
        found = numbers.try_into().ok();
    })?;
    Ok(found)
}

/// Refuses a database whose load has not ended.
///
/// # Errors
/// There is no load, an interrupted one, or one of another configuration.
pub fn must_be_whole<C: Client>(client: &mut C, config: &Config) -> Result<()> {
    match state(client, config)? {
        Some(true) => Ok(()),
        Some(false) => Err("the load was interrupted: load again, which goes on where it ended".to_owned()),
        None => Err("the directory has no graph: load one first".to_owned()),
    }
}

/// Loads the graph through `clients`, one for each loader and a last one for the nodes. Goes on where an interrupted load ended,
/// and does nothing after a whole one. Counts rows in `progress`.
///
/// # Errors
/// The first error of an engine; the other loaders then end too.
pub fn load<C: Client>(
    config: &Config,
    generators: &Generators,
    mut clients: Vec<C>,
    progress: &AtomicU64,
) -> Result<Load> {
    let Some(first) = clients.first_mut() else { return Err("a load needs a client".to_owned()) };
    let part = match state(first, config)? {
        Some(true) => {
            return Ok(Load { part: Part::Nothing, loaded: Loaded::default(), meter: Meter::new(0.0) });
        }
        Some(false) => Part::Rest,
        None => Part::All,
    };
    set_state(first, config, None)?;
    let shared = Shared {
        config,
        generators,
        left: AtomicU64::new(config.ids().div_ceil(config.chunk)),
        failed: AtomicBool::new(false),
        progress,
    };
    let for_nodes = clients.len() - 1;
    let done: Vec<Result<Loader<'_, C>>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (place, client) in clients.into_iter().enumerate() {
            let shared = &shared;
            threads.push(scope.spawn(move || {
                let mut loader = Loader::new(shared, client);
                let _guard = FailsOnPanic(shared);
                let done = if place == for_nodes { loader.nodes() } else { loader.chunks() };
                shared.failed.fetch_or(done.is_err(), Ordering::Relaxed);
                done.map(|()| loader)
            }));
        }
        let panicked = |_| Err("a loader panicked".to_owned());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let loaders = done.into_iter().collect::<Result<Vec<_>>>()?;
    let (mut loaded, mut before) = (Loaded::default(), Loaded::default());
    let (mut meter, mut last) = (None::<Meter<Bulk>>, None);
    for loader in loaders {
        loaded = loaded.and(loader.loaded);
        before = before.and(loader.before);
        meter = Some(match meter {
            Some(others) => others.and(loader.meter),
            None => loader.meter,
        });
        last = Some(loader.client);
    }
    if let Some(mut client) = last {
        set_state(&mut client, config, Some(loaded.and(before)))?;
    }
    Ok(Load { part, loaded, meter: meter.unwrap_or_else(|| Meter::new(0.0)) })
}

/// Tells the other loaders to end when its thread panics.
struct FailsOnPanic<'a>(&'a Shared<'a>);

impl Drop for FailsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.failed.store(true, Ordering::Relaxed);
        }
    }
}

/// What the loaders share.
struct Shared<'a> {
    config: &'a Config,
    generators: &'a Generators,
    /// Chunks that no loader has taken.
    left: AtomicU64,
    /// Whether a loader met an error.
    failed: AtomicBool,
    /// Rows so far.
    progress: &'a AtomicU64,
}

impl Shared<'_> {
    fn go_on(&self) -> bool {
        // The flag protects no other data: a loader that sees it late writes a batch more.
        !self.failed.load(Ordering::Relaxed)
    }
}

/// One thread.
struct Loader<'a, C> {
    shared: &'a Shared<'a>,
    client: C,
    links: Changes,
    counts: Changes,
    value: Vec<u8>,
    loaded: Loaded,
    /// What an interrupted load had written.
    before: Loaded,
    meter: Meter<Bulk>,
}

impl<'a, C: Client> Loader<'a, C> {
    fn new(shared: &'a Shared<'a>, client: C) -> Loader<'a, C> {
        let mut meter = Meter::new(0.0);
        meter.begin();
        let (links, counts) = (Changes::new(), Changes::new());
        let (loaded, before) = (Loaded::default(), Loaded::default());
        Loader { shared, client, links, counts, value: Vec::new(), loaded, before, meter }
    }

    /// Takes chunks until none is left.
    fn chunks(&mut self) -> Result<()> {
        let take = |left: u64| left.checked_sub(1);
        let left = &self.shared.left;
        while let Ok(before) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            let chunk = before - 1;
            match marked(&mut self.client, &chunk_key(chunk))? {
                Some([links, counts, of_links, of_counts]) => {
                    let contents = Contents { links: of_links, counts: of_counts, nodes: 0 };
                    self.before = self.before.and(Loaded { links, counts, contents, ..Loaded::default() });
                }
                None => self.chunk(chunk)?,
            }
            if !self.shared.go_on() {
                break;
            }
        }
        Ok(())
    }

    fn chunk(&mut self, chunk: u64) -> Result<()> {
        let config = self.shared.config;
        let others = std::mem::take(&mut self.loaded);
        let mut random = Random::new(config.load_seed, chunk);
        let mut payload = Payload::new(config.graph.shapes[0], &mut random);
        let from = config.graph.first + chunk * config.chunk;
        for id1 in from..(from + config.chunk).min(config.graph.end) {
            for place in 0..config.graph.types {
                let fan = self.shared.generators.fan(id1, place);
                let links = self.shared.generators.degrees.of_type(id1, place);
                self.fan(fan, links, &mut payload, &mut random)?;
            }
        }
        self.write(Bulk::Links)?;
        let Loaded { links, counts, contents, .. } = self.loaded;
        self.counts.put(&chunk_key(chunk), &mark([links, counts, contents.links, contents.counts]));
        self.write(Bulk::Counts)?;
        self.loaded = self.loaded.and(others);
        Ok(())
    }

    fn fan(&mut self, fan: Fan, links: u64, payload: &mut Payload, random: &mut Random) -> Result<()> {
        let (mut newest, mut different) = (0, std::collections::BTreeSet::new());
        for place in 0..links {
            let id2 = self.shared.generators.loaded_end(fan.id1, place, random);
            let time = NOW - SPREAD - 1 + random.below(SPREAD);
            let bytes = length(self.shared.config.graph.link_bytes, LINK_DATA_END, random);
            let data = payload.next(bytes, random);
            // Random ends may repeat; the first link of an end stays.
            if self.shared.config.graph.random_id2 > 0 && !different.insert(id2) {
                continue;
            }
            newest = newest.max(time);
            let link = Link { fan, id2, visibility: Visibility::Visible, version: 0, time, data };
            layout::put_link(&link, &mut self.value);
            let key = layout::link_key(fan, id2);
            self.links.put(&key, &self.value);
            self.loaded.contents.add(&key, &self.value);
            layout::put_listed(&link, &mut self.value);
            self.links.put(&layout::list_key(fan, link.visibility, time, id2), &self.value);
            self.loaded.links += 1;
            if self.links.len() >= 2 * BATCH {
                self.write(Bulk::Links)?;
            }
        }
        if links > 0 {
            let count = if self.shared.config.graph.random_id2 > 0 { different.len() as u64 } else { links };
            let count = Count { count: u32::try_from(count).unwrap_or(u32::MAX), time: newest, version: 0 };
            layout::put_count(&count, &mut self.value);
            let key = layout::count_key(fan);
            self.counts.put(&key, &self.value);
            self.loaded.contents.add(&key, &self.value);
            self.loaded.counts += 1;
            if self.counts.len() >= BATCH {
                self.write(Bulk::Counts)?;
            }
        }
        Ok(())
    }

    /// All nodes in order.
    fn nodes(&mut self) -> Result<()> {
        let config = self.shared.config;
        if !config.nodes {
            return Ok(());
        }
        let before: Option<[u64; 2]> = marked(&mut self.client, NODES_KEY)?;
        let [mut next, nodes] = before.unwrap_or([config.graph.first, 0]);
        self.before.nodes = next.saturating_sub(config.graph.first);
        self.before.contents.nodes = nodes;
        while next < config.graph.end && self.shared.go_on() {
            // A batch has a random stream of its own, as a chunk does.
            let mut random = Random::new(config.load_seed ^ NODES_STREAM, next);
            let mut payload = Payload::new(config.graph.shapes[2], &mut random);
            let end = (next + BATCH as u64).min(config.graph.end);
            for id in next..end {
                let bytes = length(config.graph.node_bytes, NODE_DATA_END, &mut random);
                let time = u32::try_from(NOW / 1000).unwrap_or(u32::MAX);
                let data = payload.next(bytes, &mut random);
                layout::put_node(&Node { node_type: NODE_TYPE, version: 1, time, data }, &mut self.value);
                let key = layout::node_key(id);
                self.links.put(&key, &self.value);
                self.loaded.contents.add(&key, &self.value);
            }
            let all = self.before.contents.and(self.loaded.contents).nodes;
            self.links.put(NODES_KEY, &mark([end, all]));
            self.loaded.nodes += end - next;
            self.write(Bulk::Nodes)?;
            next = end;
        }
        Ok(())
    }

    fn write(&mut self, what: Bulk) -> Result<()> {
        let changes = if what == Bulk::Counts { &mut self.counts } else { &mut self.links };
        if changes.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        self.client.apply(changes)?;
        self.meter.ended_due(what, begun);
        self.loaded.bytes += changes.bytes();
        // A link is two entries. A count for people: nothing depends on it.
        let rows = if what == Bulk::Links { changes.len() / 2 } else { changes.len() };
        self.shared.progress.fetch_add(rows as u64, Ordering::Relaxed);
        changes.clear();
        Ok(())
    }
}
