//! The consistency check: counts equal visible links, and links and lists have the same entries, in both directions.
//!
//! 1. A fan is the links of one type that go out of one node. It is consistent if its entries in `l` and in `i` are the same
//!    links, and its count is the number of visible ones.
//! 2. The whole graph is consistent if every fan is consistent, and no entry of `i` or `c` belongs to a fan without links. Every
//!    node is well-formed. Links and nodes are as many as the driver wrote. So a single lost entry of any space is found.
//! 3. The digests of all links, counts and nodes are those that the driver's changes add up to ([`Contents`]). So a batch that is
//!    lost whole is found too, even if it only rewrote a value.
//! 4. During the requests a fan is checked under its lock. Afterwards everything is checked.

use crate::config::Config;
use crate::digest::of_bytes;
use crate::kv::contents::Contents;
use crate::kv::layout;
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
    /// Adds a fault.
    pub fn add(&mut self, what: String) {
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
        let plural = if self.count == 1 { "" } else { "s" };
        (self.count > 0)
            .then(|| format!("{} fault{plural} ({} link lists were checked): {first}", self.count, self.fans))
    }
}

/// Rows that the driver knows to be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Links, hidden ones too.
    pub links: u64,
    /// Nodes.
    pub nodes: u64,
    /// The digests of everything. `None` after requests without atomicity, whose clients overwrite each other's changes.
    pub contents: Option<Contents>,
}

/// What a link looks like in both spaces.
pub type Seen = (Visibility, u64, u32, u64);

/// Checks one fan, which no client may write meanwhile.
///
/// # Errors
/// The engine's.
pub fn fan<C: Client>(client: &mut C, fan: Fan) -> Result<Faults> {
    Ok(one(client, fan)?.faults)
}

/// What the check of one fan found.
struct Checked {
    faults: Faults,
    /// Entries of `l`.
    links: u64,
    /// Whether there is a count.
    counted: bool,
    contents: Contents,
}

/// The name of a fan in messages.
pub fn name(fan: Fan) -> String {
    format!("node {}, type {}", fan.id1, fan.link_type)
}

fn one<C: Client>(client: &mut C, fan: Fan) -> Result<Checked> {
    let mut contents = Contents::default();
    let mut faults = Faults { fans: 1, ..Faults::default() };
    let mut links: BTreeMap<u64, Seen> = BTreeMap::new();
    let mut malformed = 0;
    let (from, to) = layout::fan_bounds(fan);
    client.scan(Bounds::forward(&from, &to), |key, value| {
        contents.add(key, value);
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
        client.scan(Bounds::forward(&from, &to), |key, value| {
            match layout::listed(key, value) {
                Some(link) if links.get(&link.id2) == Some(&seen(&link)) => drop(links.remove(&link.id2)),
                Some(link) => faults.add(format!(
                    "{}: the list entry of id2 {} has no link with the same visibility, time, version and data",
                    name(fan),
                    link.id2
                )),
                None => malformed += 1,
            }
            true
        })?;
    }
    if let Some(id2) = links.keys().next() {
        faults.add(format!("{}: {} links, such as id2 {id2}, are not in the list", name(fan), links.len()));
    }
    if malformed > 0 {
        faults.add(format!("{}: {malformed} malformed entries", name(fan)));
    }
    let (key, mut count) = (layout::count_key(fan), None);
    let counted = client.get(&key, |value| {
        contents.add(&key, value);
        count = layout::count(value);
    })?;
    let number = count.map_or(0, |count| count.count.into());
    if counted && count.is_none() {
        faults.add(format!("{}: the count is malformed", name(fan)));
    } else if number != visible {
        faults.add(format!("{}: the count is {number}, and {visible} links are visible", name(fan)));
    }
    Ok(Checked { faults, links: all, counted, contents })
}

/// What both spaces have of a link.
pub fn seen(link: &crate::model::Link<'_>) -> Seen {
    (link.visibility, link.time, link.version, of_bytes(link.data))
}

/// Reads every entry once, so that a cache that is large enough has them all.
///
/// # Errors
/// The engine's.
pub fn read_all<C: Client>(client: &mut C) -> Result<()> {
    for letter in [b'c', b'i', b'l', b'n'] {
        entries(client, letter, |_, value| {
            std::hint::black_box(of_bytes(value));
        })?;
    }
    Ok(())
}

/// Checks everything, while no client writes. `expected` is `None` where the driver does not know the rows.
///
/// # Errors
/// The engine's.
pub fn everything<C: Client>(client: &mut C, expected: Option<Expected>) -> Result<Faults> {
    let (mut faults, mut links, mut counts) = (Faults::default(), 0, 0);
    let mut contents = Contents::default();
    let mut fan = next_fan(client, None)?;
    while let Some(at) = fan {
        let found = one(client, at)?;
        faults = faults.and(found.faults);
        links += found.links;
        counts += u64::from(found.counted);
        contents = contents.and(found.contents);
        fan = next_fan(client, Some(at))?;
    }
    let listed = entries(client, b'i', |_, _| ())?;
    let all_counts = entries(client, b'c', |_, _| ())?;
    let mut malformed = 0;
    let nodes = entries(client, b'n', |key, value| {
        contents.add(key, value);
        malformed += u64::from(layout::node(value).is_none());
    })?;
    if malformed > 0 {
        faults.add(format!("{malformed} nodes are malformed"));
    }
    if listed != links {
        faults.add(format!("lists have {listed} entries, and there are {links} links"));
    }
    if all_counts != counts {
        faults.add(format!("{} counts belong to no link", all_counts.abs_diff(counts)));
    }
    against(&mut faults, expected, Found { links, nodes, contents });
    Ok(faults)
}

/// What a check of everything saw.
pub struct Found {
    /// Links, hidden ones too.
    pub links: u64,
    /// Nodes.
    pub nodes: u64,
    /// The digests.
    pub contents: Contents,
}

/// Compares the entries found with those expected, where those are known.
pub fn against(faults: &mut Faults, expected: Option<Expected>, found: Found) {
    let Some(expected) = expected else { return };
    compare(faults, expected.contents, found.contents);
    for (what, found, wanted) in
        [("links", found.links, expected.links), ("nodes", found.nodes, expected.nodes)]
    {
        if found != wanted {
            faults.add(format!("there are {found} {what}, and {wanted} were written"));
        }
    }
}

/// Compares digests; `None`: unknown.
fn compare(faults: &mut Faults, wanted: Option<Contents>, found: Contents) {
    let Some(wanted) = wanted else { return };
    for ((what, found), wanted) in
        ["links", "counts", "nodes"].iter().zip(found.numbers()).zip(wanted.numbers())
    {
        if found != wanted {
            faults.add(format!(
                "the {what} are not those that were written: a batch is lost or an entry is damaged"
            ));
        }
    }
}

/// The fan of the first link behind all links of `after`.
fn next_fan<C: Client>(client: &mut C, after: Option<Fan>) -> Result<Option<Fan>> {
    let (first, to) = layout::space(b'l');
    let behind = after.map(|fan| layout::fan_bounds(fan).1);
    let from = behind.as_ref().map_or(&first[..], |key| &key[..]);
    let mut fan = None;
    client.scan(Bounds::forward(from, &to), |key, _| {
        fan = layout::link_of_key(key).map(|(fan, _)| fan);
        false
    })?;
    Ok(fan)
}

/// Calls `see` with the entries of a space. Returns how many there are.
fn entries<C: Client>(client: &mut C, letter: u8, mut see: impl FnMut(&[u8], &[u8])) -> Result<u64> {
    let (from, to) = layout::space(letter);
    let mut count = 0;
    client.scan(Bounds::forward(&from, &to), |key, value| {
        see(key, value);
        count += 1;
        true
    })?;
    Ok(count)
}

/// The id behind the last node.
///
/// # Errors
/// The engine's.
pub fn next_node<C: Client>(client: &mut C, config: &Config) -> Result<u64> {
    let (from, to) = layout::space(b'n');
    let mut next = config.graph.end;
    client.scan(Bounds { reverse: true, ..Bounds::forward(&from, &to) }, |key, _| {
        let last = key.get(1..).and_then(|id| id.first_chunk()).map(|id| u64::from_be_bytes(*id));
        next = last.map_or(next, |last| next.max(last + 1));
        false
    })?;
    Ok(next)
}
