//! The check of everything for engines that answer a question slowly: it reads every space once, in any order.
//!
//! It finds what [`super::check::everything`] finds. Links and list entries of a fan are compared by the sums of their digests, and so a
//! message names the fan and not the link.

use super::check::{Expected, Faults, Found, against, name, seen};
use crate::digest::fold;
use crate::kv::contents::Contents;
use crate::kv::layout;
use crate::model::{Fan, Link, Visibility};
use ashlar_peers::client::{Bounds, Client};
use ashlar_peers::peer::Result;
use std::collections::BTreeMap;

/// What the spaces have of one fan.
#[derive(Clone, Copy, Debug, Default)]
struct OfFan {
    /// Entries of `l`, the visible ones among them, and their digests.
    links: [u64; 3],
    /// The same of `i`.
    listed: [u64; 3],
    count: Option<u64>,
}

/// Sees an entry. `None`: the entry is malformed.
type See<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Option<()>;

fn add(to: &mut [u64; 3], link: &Link<'_>) {
    let (visibility, time, version, data) = seen(link);
    let visible = u64::from(visibility == Visibility::Visible);
    let digest = fold(visible, &[link.id2, time, version.into(), data]);
    *to = [to[0] + 1, to[1] + visible, to[2].wrapping_add(digest)];
}

/// Checks everything, while no client writes. `expected` is `None` where the driver does not know the rows.
///
/// # Errors
/// The engine's.
pub fn everything<C: Client>(client: &mut C, expected: Option<Expected>) -> Result<Faults> {
    let (mut fans, mut contents) = (BTreeMap::<Fan, OfFan>::new(), Contents::default());
    let (mut malformed, mut nodes) = (0_u64, 0);
    let mut space = |letter: u8, see: See<'_>| {
        let (from, to) = layout::space(letter);
        client.scan(Bounds::forward(&from, &to), |key, value| {
            malformed += u64::from(see(key, value).is_none());
            true
        })
    };
    space(b'l', &mut |key, value| {
        contents.add(key, value);
        let (fan, id2) = layout::link_of_key(key)?;
        add(&mut fans.entry(fan).or_default().links, &layout::link(fan, id2, value)?);
        Some(())
    })?;
    space(b'i', &mut |key, value| {
        let link = layout::listed(key, value)?;
        add(&mut fans.entry(link.fan).or_default().listed, &link);
        Some(())
    })?;
    space(b'c', &mut |key, value| {
        contents.add(key, value);
        let count = layout::count(value)?;
        fans.entry(layout::fan_of_count(key)?).or_default().count = Some(count.count.into());
        Some(())
    })?;
    space(b'n', &mut |key, value| {
        contents.add(key, value);
        nodes += 1;
        layout::node(value).map(drop)
    })?;
    Ok(judged(&fans, malformed, expected, nodes, contents))
}

fn judged(
    fans: &BTreeMap<Fan, OfFan>,
    malformed: u64,
    expected: Option<Expected>,
    nodes: u64,
    contents: Contents,
) -> Faults {
    let (mut faults, mut links) = (Faults::default(), 0);
    if malformed > 0 {
        faults.add(format!("{malformed} malformed entries"));
    }
    for (fan, of) in fans {
        let [all, visible, _] = of.links;
        links += all;
        faults.fans += u64::from(all > 0);
        if of.links != of.listed {
            let [listed, ..] = of.listed;
            faults.add(format!("{}: {all} links and {listed} list entries differ", name(*fan)));
        }
        let number = of.count.unwrap_or(0);
        if number != visible {
            faults.add(format!("{}: the count is {number}, and {visible} links are visible", name(*fan)));
        } else if all == 0 && of.count.is_some() {
            faults.add(format!("{}: the count belongs to no link", name(*fan)));
        }
    }
    against(&mut faults, expected, Found { links, nodes, contents });
    faults
}
