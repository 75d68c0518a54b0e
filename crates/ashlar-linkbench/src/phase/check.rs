//! The consistency check: counts equal visible links, and links and lists have the same entries, in both directions.
//!
//! 1. A fan is consistent if its entries in `l` and in `i` are the same links, and its count is the number of visible ones.
//! 2. The whole graph is consistent if every fan is consistent, and no entry of `i` or `c` belongs to a fan without links. Links
//!    and nodes are as many as the driver wrote. So a single lost entry of any space is found.
//! 3. During the requests a fan is checked under its lock. Afterwards everything is checked.

use crate::config::Config;
use crate::generate::graph::Generators;
use crate::kv::{Graph, layout};
use crate::model::{Fan, Visibility};
use ashlar_peers::client::{Bounds, Client};
use ashlar_peers::peer::Result;
use std::collections::BTreeMap;

/// Faults that are described; the others are counted.
const DESCRIBED: usize = 5;

/// What checks found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Fans that were checked.
    pub fans: u64,
    /// Faults.
    pub count: u64,
    /// The first ones, in words.
    pub first: Vec<String>,
}

impl Faults {
    fn add(&mut self, what: String) {
        self.count += 1;
        if self.first.len() < DESCRIBED {
            self.first.push(what);
        }
    }

    /// Both together.
    pub fn and(mut self, other: Faults) -> Faults {
        self.fans += other.fans;
        self.count += other.count;
        let room = DESCRIBED.saturating_sub(self.first.len());
        self.first.extend(other.first.into_iter().take(room));
        self
    }

    /// Why a record is void. `None`: nothing is wrong.
    pub fn why(&self) -> Option<String> {
        let first = self.first.join("; ");
        (self.count > 0)
            .then(|| format!("inconsistent in {} places of {} fans: {first}", self.count, self.fans))
    }
}

/// Rows that the driver knows to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Links, hidden ones too.
    pub links: u64,
    /// Nodes.
    pub nodes: u64,
}

impl Expected {
    /// After the load of `config`.
    pub fn after_load(config: &Config, generators: &Generators) -> Option<Expected> {
        if config.graph.random_id2 > 0 {
            return None;
        }
        let of = |id| (0..config.graph.types).map(move |place| generators.degrees.of_type(id, place));
        let links = (config.graph.first..config.graph.end).flat_map(of).sum();
        Some(Expected { links, nodes: if config.nodes { config.ids() } else { 0 } })
    }
}

/// What a link looks like in both spaces.
type Seen = (Visibility, u64, u32, u64);

/// Checks one fan, whose lock no other client may take meanwhile.
///
/// # Errors
/// The engine's.
pub fn fan_under_lock<C: Client>(graph: &mut Graph<'_, C>, fan: Fan) -> Result<Faults> {
    let locks = graph.locks();
    let held = locks.fan(fan);
    let (faults, ..) = one(graph, fan)?;
    drop(held);
    Ok(faults)
}

/// Checks one fan. Also returns its entries in `l`, and whether it has a count.
fn one<C: Client>(graph: &mut Graph<'_, C>, fan: Fan) -> Result<(Faults, u64, bool)> {
    let mut faults = Faults { fans: 1, ..Faults::default() };
    let mut links: BTreeMap<u64, Seen> = BTreeMap::new();
    let mut malformed = 0;
    let (from, to) = layout::fan_bounds(fan);
    graph.client().scan(Bounds::forward(&from, &to), |key, value| {
        let link = layout::link_of_key(key).and_then(|(fan, id2)| layout::link(fan, id2, value));
        match link {
            Some(link) => drop(links.insert(link.id2, seen(&link))),
            None => malformed += 1,
        }
        true
    })?;
    let all = links.len() as u64;
    let visible = links.values().filter(|link| link.0 == Visibility::Visible).count() as u64;
    for visibility in [Visibility::Hidden, Visibility::Visible] {
        let (from, to) = layout::list_bounds(fan, visibility, u64::MAX);
        graph.client().scan(Bounds::forward(&from, &to), |key, value| {
            match layout::listed(key, value) {
                Some(link) if links.get(&link.id2) == Some(&seen(&link)) => drop(links.remove(&link.id2)),
                Some(link) => faults.add(format!("{fan:?}: the list has {} as no link is", link.id2)),
                None => malformed += 1,
            }
            true
        })?;
    }
    if let Some(id2) = links.keys().next() {
        faults.add(format!("{fan:?}: {} links such as {id2} are not in the list", links.len()));
    }
    if malformed > 0 {
        faults.add(format!("{fan:?}: {malformed} malformed entries"));
    }
    let count = graph.count(fan)?;
    let counted = count.map_or(0, |count| count.count.into());
    if counted != visible {
        faults.add(format!("{fan:?}: the count is {counted}, and {visible} links are visible"));
    }
    Ok((faults, all, count.is_some()))
}

fn seen(link: &crate::model::Link<'_>) -> Seen {
    (link.visibility, link.time, link.version, super::Sums::of_bytes(link.data))
}

/// Checks everything, while no client writes. `expected` is `None` where the driver does not know the rows.
///
/// # Errors
/// The engine's.
pub fn everything<C: Client>(graph: &mut Graph<'_, C>, expected: Option<Expected>) -> Result<Faults> {
    let (mut faults, mut links, mut counts) = (Faults::default(), 0, 0);
    let mut fan = next_fan(graph, None)?;
    while let Some(at) = fan {
        let (found, of_fan, counted) = one(graph, at)?;
        faults = faults.and(found);
        links += of_fan;
        counts += u64::from(counted);
        fan = next_fan(graph, Some(at))?;
    }
    let mut rows = |letter| entries(graph, letter);
    let (listed, all_counts, nodes) = (rows(b'i')?, rows(b'c')?, rows(b'n')?);
    if listed != links {
        faults.add(format!("lists have {listed} entries, and there are {links} links"));
    }
    if all_counts != counts {
        faults.add(format!("{} counts belong to no link", all_counts.abs_diff(counts)));
    }
    if let Some(expected) = expected {
        for (what, found, wanted) in [("links", links, expected.links), ("nodes", nodes, expected.nodes)] {
            if found != wanted {
                faults.add(format!("there are {found} {what}, and {wanted} were written"));
            }
        }
    }
    Ok(faults)
}

/// The fan of the first link behind all links of `after`.
fn next_fan<C: Client>(graph: &mut Graph<'_, C>, after: Option<Fan>) -> Result<Option<Fan>> {
    let (first, to) = layout::space(b'l');
    let behind = after.map(|fan| layout::fan_bounds(fan).1);
    let from = behind.as_ref().map_or(&first[..], |key| &key[..]);
    let mut fan = None;
    graph.client().scan(Bounds::forward(from, &to), |key, _| {
        fan = layout::link_of_key(key).map(|(fan, _)| fan);
        false
    })?;
    Ok(fan)
}

/// The entries of a space.
fn entries<C: Client>(graph: &mut Graph<'_, C>, letter: u8) -> Result<u64> {
    let (from, to) = layout::space(letter);
    let mut count = 0;
    graph.client().scan(Bounds::forward(&from, &to), |_, _| {
        count += 1;
        true
    })?;
    Ok(count)
}

/// The id behind the last node.
///
/// # Errors
/// The engine's.
pub fn next_node<C: Client>(graph: &mut Graph<'_, C>, config: &Config) -> Result<u64> {
    let (from, to) = layout::space(b'n');
    let mut next = config.graph.end;
    graph.client().scan(Bounds { reverse: true, ..Bounds::forward(&from, &to) }, |key, _| {
        let last = key.get(1..).and_then(|id| id.first_chunk()).map(|id| u64::from_be_bytes(*id));
        next = last.map_or(next, |last| next.max(last + 1));
        false
    })?;
    Ok(next)
}
