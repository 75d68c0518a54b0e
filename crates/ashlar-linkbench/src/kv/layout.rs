//! The graph as keys and values of an ordered key-value engine. Integers are big-endian, so that byte order is their order.
//!
//! | space | key | value |
//! |---|---|---|
//! | `n` node | id 8 | type 4, version 8, time 4, data |
//! | `l` link | type 8, id1 8, id2 8 | visibility 1, version 4, time 8, data |
//! | `i` list | id1 8, type 8, visibility 1, ¬time 8, id2 8 | version 4, data |
//! | `c` count | id 8, type 8 | count 4, time 8, version 8 |
//! | `m` driver | name | id 8, or a mark of the load |
//!
//! 1. The letter of the space is the first byte of a key: every engine gets the same keys in one tree.
//! 2. ¬time is the complement of the time: a forward scan of the list finds the newest link first.
//! 3. An entry of `i` stands for exactly one entry of `l`, with the same visibility, time, version and data.

use crate::model::{Count, Fan, Link, Node, Visibility};

/// Bytes of a key of `l`.
pub const LINK_KEY: usize = 25;
/// Bytes of the part of a key of `i` that names fan and visibility.
const FAN: usize = 18;

/// A key or a value that was written in place, or read.
pub type Bytes = Vec<u8>;

/// The value of an entry does not have the form of its space.
pub fn malformed<T>(key: &[u8], value: &[u8]) -> Result<T, String> {
    let name = match key.first() {
        Some(b'n') => "node",
        Some(b'l') => "link",
        Some(b'i') => "list entry",
        Some(b'c') => "count",
        _ => "entry",
    };
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let length = value.len();
    Err(format!("{name} 0x{digits}: the value of {length} bytes is too short or has an unknown visibility"))
}

/// The key of a node.
pub fn node_key(id: u64) -> [u8; 9] {
    let mut key = [b'n'; 9];
    key[1..].copy_from_slice(&id.to_be_bytes());
    key
}

/// The key of a link.
pub fn link_key(fan: Fan, id2: u64) -> [u8; LINK_KEY] {
    let mut key = [b'l'; LINK_KEY];
    key[1..9].copy_from_slice(&fan.link_type.to_be_bytes());
    key[9..17].copy_from_slice(&fan.id1.to_be_bytes());
    key[17..].copy_from_slice(&id2.to_be_bytes());
    key
}

/// The key of a link in the list of its fan.
pub fn list_key(fan: Fan, visibility: Visibility, time: u64, id2: u64) -> [u8; 34] {
    let mut key = [b'i'; 34];
    key[..FAN].copy_from_slice(&list_prefix(fan, visibility));
    key[FAN..26].copy_from_slice(&(!time).to_be_bytes());
    key[26..].copy_from_slice(&id2.to_be_bytes());
    key
}

fn list_prefix(fan: Fan, visibility: Visibility) -> [u8; FAN] {
    let mut prefix = [b'i'; FAN];
    prefix[1..9].copy_from_slice(&fan.id1.to_be_bytes());
    prefix[9..17].copy_from_slice(&fan.link_type.to_be_bytes());
    prefix[17] = visibility.byte();
    prefix
}

/// The first key of the list of a fan that is not newer than `time`, and the key behind the list.
pub fn list_bounds(fan: Fan, visibility: Visibility, time: u64) -> ([u8; 34], [u8; FAN]) {
    (list_key(fan, visibility, time, 0), successor(list_prefix(fan, visibility)))
}

/// The bounds of all links of a fan in `l`.
pub fn fan_bounds(fan: Fan) -> ([u8; 17], [u8; 17]) {
    let mut from = [b'l'; 17];
    from.copy_from_slice(&link_key(fan, 0)[..17]);
    (from, successor(from))
}

/// The key of a count.
pub fn count_key(fan: Fan) -> [u8; 17] {
    let mut key = [b'c'; 17];
    key[1..9].copy_from_slice(&fan.id1.to_be_bytes());
    key[9..].copy_from_slice(&fan.link_type.to_be_bytes());
    key
}

/// The fan in a key of `c`.
pub fn fan_of_count(key: &[u8]) -> Option<Fan> {
    let fan = Fan { id1: u64_at(key, 1)?, link_type: u64_at(key, 9)? };
    (key.len() == 17 && key[0] == b'c').then_some(fan)
}

/// The bounds of a whole space.
pub fn space(letter: u8) -> ([u8; 1], [u8; 1]) {
    ([letter], [letter + 1])
}

/// The key behind every key that begins with `prefix`. The letters of the spaces are below 255, so there is one.
fn successor<const N: usize>(mut prefix: [u8; N]) -> [u8; N] {
    for byte in prefix.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            break;
        }
    }
    prefix
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_be_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_be_bytes)
}

/// Writes the value of a node.
pub fn put_node(node: &Node<'_>, into: &mut Bytes) {
    into.clear();
    into.extend_from_slice(&node.node_type.to_be_bytes());
    into.extend_from_slice(&node.version.to_be_bytes());
    into.extend_from_slice(&node.time.to_be_bytes());
    into.extend_from_slice(node.data);
}

/// Reads the value of a node.
pub fn node(value: &[u8]) -> Option<Node<'_>> {
    Some(Node {
        node_type: u32_at(value, 0)?,
        version: u64_at(value, 4)?,
        time: u32_at(value, 12)?,
        data: value.get(16..)?,
    })
}

/// Writes the value of a link in `l`.
pub fn put_link(link: &Link<'_>, into: &mut Bytes) {
    into.clear();
    into.push(link.visibility.byte());
    into.extend_from_slice(&link.version.to_be_bytes());
    into.extend_from_slice(&link.time.to_be_bytes());
    into.extend_from_slice(link.data);
}

/// Reads the value of a link in `l`.
pub fn link(fan: Fan, id2: u64, value: &[u8]) -> Option<Link<'_>> {
    Some(Link {
        fan,
        id2,
        visibility: Visibility::of(*value.first()?)?,
        version: u32_at(value, 1)?,
        time: u64_at(value, 5)?,
        data: value.get(13..)?,
    })
}

/// Fan and other end in a key of `l`.
pub fn link_of_key(key: &[u8]) -> Option<(Fan, u64)> {
    let fan = Fan { link_type: u64_at(key, 1)?, id1: u64_at(key, 9)? };
    (key.len() == LINK_KEY && key[0] == b'l').then_some((fan, u64_at(key, 17)?))
}

/// Writes the value of a link in its list.
pub fn put_listed(link: &Link<'_>, into: &mut Bytes) {
    into.clear();
    into.extend_from_slice(&link.version.to_be_bytes());
    into.extend_from_slice(link.data);
}

/// Reads an entry of a list.
pub fn listed<'a>(key: &[u8], value: &'a [u8]) -> Option<Link<'a>> {
    Some(Link {
        fan: Fan { id1: u64_at(key, 1)?, link_type: u64_at(key, 9)? },
        visibility: Visibility::of(*key.get(17)?)?,
        time: !u64_at(key, FAN)?,
        id2: u64_at(key, 26)?,
        version: u32_at(value, 0)?,
        data: value.get(4..)?,
    })
}

/// Writes the value of a count.
pub fn put_count(count: &Count, into: &mut Bytes) {
    into.clear();
    into.extend_from_slice(&count.count.to_be_bytes());
    into.extend_from_slice(&count.time.to_be_bytes());
    into.extend_from_slice(&count.version.to_be_bytes());
}

/// Reads the value of a count.
pub fn count(value: &[u8]) -> Option<Count> {
    Some(Count { count: u32_at(value, 0)?, time: u64_at(value, 4)?, version: u64_at(value, 12)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link<'static> = Link {
        fan: Fan { id1: 7, link_type: 123_456_789 },
        id2: 9,
        visibility: Visibility::Visible,
        version: 3,
        time: 1_700_000_000_123,
        data: b"data",
    };

    #[test]
    fn entries_come_back() {
        let mut bytes = Vec::new();
        put_link(&LINK, &mut bytes);
        let (fan, id2) = link_of_key(&link_key(LINK.fan, LINK.id2)).unwrap();
        assert_eq!(link(fan, id2, &bytes), Some(LINK));
        put_listed(&LINK, &mut bytes);
        assert_eq!(listed(&list_key(LINK.fan, LINK.visibility, LINK.time, LINK.id2), &bytes), Some(LINK));
        let node_of = Node { node_type: 2048, version: 1, time: 5, data: b"x" };
        put_node(&node_of, &mut bytes);
        assert_eq!(node(&bytes), Some(node_of));
        let count_of = Count { count: 4, time: 5, version: 6 };
        put_count(&count_of, &mut bytes);
        assert_eq!(
            (count(&bytes), count(&bytes[1..]), node(b"short"), link(fan, id2, b"\x07")),
            (Some(count_of), None, None, None)
        );
    }

    #[test]
    fn a_list_is_in_order_of_time_newest_first_and_has_its_bounds() {
        let key = |time, id2| list_key(LINK.fan, Visibility::Visible, time, id2);
        assert!(key(9, 0) < key(8, u64::MAX) && key(8, 1) < key(8, 2));
        let (from, to) = list_bounds(LINK.fan, Visibility::Visible, u64::MAX);
        let within = |key: &[u8]| &from[..] <= key && key < &to[..];
        assert!(within(&key(u64::MAX, 0)) && within(&key(0, u64::MAX)));
        assert!(!within(&list_key(LINK.fan, Visibility::Hidden, 5, 5)));
        let other = Fan { link_type: LINK.fan.link_type + 1, ..LINK.fan };
        assert!(!within(&list_key(other, Visibility::Visible, 5, 5)));
        let (from, _) = list_bounds(LINK.fan, Visibility::Visible, 8);
        assert!(key(9, 7) < from && from <= key(8, 0));
    }

    #[test]
    fn a_fan_has_its_links_and_no_others() {
        let (from, to) = fan_bounds(Fan { id1: 255, link_type: 1 });
        let within = |id1, id2| {
            let key = link_key(Fan { id1, link_type: 1 }, id2);
            from[..] <= key[..] && key[..] < to[..]
        };
        assert!(within(255, 0) && within(255, u64::MAX) && !within(256, 0) && !within(254, u64::MAX));
    }
}
