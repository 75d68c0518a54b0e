//! The ten operations as statements, as the original program has them.
//!
//! 1. Adding a link is one transaction. Inserting an existing link changes its visibility only. The number of changed rows says
//!    what the insert found: 1 a new link, 2 a hidden one, 0 a visible one. An existing link is then rewritten, and a count changes if a
//!    link appeared.
//! 2. Hiding a link locks and reads its row first. A hidden or missing link ends the transaction.
//! 3. Statements that could use either index of the links name the one to use. Left to choose, the server reads a whole list for a few
//!    of its links, or locks it for an update of one.
//! 4. Operations on nodes and all reads are one statement each, which is a transaction of its own.
//! 5. A transaction that meets a deadlock, or waits too long for a lock, runs again.

use super::peer::Handle;
use super::tables;
use super::wire::{Connection, Done, Fault, Param, Row};
use crate::config::Config;
use crate::kv::{Added, Listing, layout};
use crate::model::{Count, Fan, Link, NODE_TYPE, Node, Visibility};
use crate::phase::bulk;
use crate::phase::check::{Expected, Faults};
use crate::store::{Store, Tally};
use ashlar_peers::peer::Result;
use std::time::Duration;

/// How often a transaction that meets conflicts runs, how many of these runs follow at once, and the pause between the others.
const TRIES: u32 = 1000;
const TRIES_AT_ONCE: u32 = 3;
const PAUSE: Duration = Duration::from_millis(1);

const ADD_LINK: &str = "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) \
    VALUES (?, ?, ?, ?, ?, ?, ?) ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)";
const REWRITE_LINK: &str = "UPDATE linktable FORCE INDEX (PRIMARY) SET visibility = ?, data = ?, time = ?, version = ? \
    WHERE id1 = ? AND id2 = ? AND link_type = ?";
const ADD_TO_COUNT: &str = "INSERT INTO counttable (id, link_type, count, time, version) VALUES (?, ?, 1, ?, 0) \
    ON DUPLICATE KEY UPDATE count = count + 1, version = version + 1, time = VALUES(time)";
const TAKE_FROM_COUNT: &str = "INSERT INTO counttable (id, link_type, count, time, version) VALUES (?, ?, 0, ?, 0) \
    ON DUPLICATE KEY UPDATE count = IF(count = 0, 0, count - 1), version = version + 1, time = VALUES(time)";
const LOCK_LINK: &str =
    "SELECT visibility, LENGTH(data) FROM linktable WHERE id1 = ? AND id2 = ? AND link_type = ? FOR UPDATE";
const HIDE_LINK: &str =
    "UPDATE linktable FORCE INDEX (PRIMARY) SET visibility = 0 WHERE id1 = ? AND id2 = ? AND link_type = ?";
const COUNT: &str = "SELECT count, time, version FROM counttable WHERE id = ? AND link_type = ?";
const GET_NODE: &str = "SELECT type, version, time, data FROM nodetable WHERE id = ? AND type = ?";
const ADD_NODE: &str = "INSERT INTO nodetable (type, version, time, data) VALUES (?, ?, ?, ?)";
const UPDATE_NODE: &str = "UPDATE nodetable SET version = ?, time = ?, data = ? WHERE id = ? AND type = ?";
const DELETE_NODE: &str = "DELETE FROM nodetable WHERE id = ? AND type = ?";

/// Bytes of the entries that the key-value form writes besides data.
const LINK_BYTES: u64 = layout::LINK_KEY as u64 + 13;
const PLACE_BYTES: u64 = 34;
const LISTED_BYTES: u64 = PLACE_BYTES + 4;
const COUNT_BYTES: u64 = 17 + 20;
const NODE_KEY: u64 = 9;
const NODE_BYTES: u64 = NODE_KEY + 16;

type Answer<T> = std::result::Result<T, Fault>;

/// The graph in tables.
pub struct Tables<'a> {
    handle: Handle<'a>,
    written: u64,
    conflicts: u64,
}

impl<'a> Tables<'a> {
    /// The graph through a client.
    pub fn new(handle: Handle<'a>) -> Tables<'a> {
        Tables { handle, written: 0, conflicts: 0 }
    }

    /// Runs `statements` until they meet no conflict, at most [`TRIES`] times.
    fn again<T>(&mut self, mut statements: impl FnMut(&mut Handle<'a>) -> Answer<T>) -> Result<T> {
        let mut tries = 1;
        loop {
            match statements(&mut self.handle) {
                Ok(value) => return Ok(value),
                Err(fault) if fault.is_conflict() && tries < TRIES => {
                    self.conflicts += 1;
                    // At once at first; then pauses, in which the other transaction can end.
                    if tries > TRIES_AT_ONCE {
                        std::thread::sleep(PAUSE);
                    }
                    tries += 1;
                }
                Err(fault) => return Err(self.handle.server().explained(&fault)),
            }
        }
    }

    /// Runs `statements` as one transaction.
    fn atomically<T>(&mut self, mut statements: impl FnMut(&mut Connection) -> Answer<T>) -> Result<T> {
        self.again(|handle| {
            let done = statements(&mut handle.atomic);
            let done = done.and_then(|value| handle.atomic.run("COMMIT").map(|_| value));
            if done.is_err() {
                // After a lost connection this fails too, and the first fault counts.
                let _ = handle.atomic.run("ROLLBACK");
            }
            done
        })
    }

    /// Executes one statement that is a transaction of its own.
    fn alone(&mut self, text: &str, params: &[Param<'_>], mut see: impl FnMut(&Row<'_>)) -> Result<Done> {
        self.again(|handle| handle.plain.select(text, params, &mut see))
    }
}

fn number(number: impl Into<u64>) -> Param<'static> {
    Param::Number(number.into())
}

/// The parameters of a link's key.
fn key(fan: Fan, id2: u64) -> [Param<'static>; 3] {
    [number(fan.id1), number(id2), number(fan.link_type)]
}

fn add(connection: &mut Connection, link: &Link<'_>) -> Answer<Added> {
    let Link { fan, id2, visibility, version, time, data } = *link;
    let [id1, id2, link_type] = key(fan, id2);
    let (visible, data, version) = (number(visibility.byte()), Param::Bytes(data), number(version));
    let time = number(time);
    let values = [id1, id2, link_type, visible, data, time, version];
    let found = match connection.select(ADD_LINK, &values, |_| ())?.changed {
        1 => Added::Inserted,
        0 => Added::Rewritten,
        _ => Added::Shown,
    };
    if found != Added::Rewritten {
        connection.select(ADD_TO_COUNT, &[id1, link_type, time], |_| ())?;
    }
    if found != Added::Inserted {
        connection.select(REWRITE_LINK, &[visible, data, time, version, id1, id2, link_type], |_| ())?;
    }
    Ok(found)
}

/// The bytes of the link's data, if it was visible and is hidden now.
fn hide(connection: &mut Connection, fan: Fan, id2: u64, now: u64) -> Answer<Result<Option<u64>>> {
    let (mut found, mut whole) = (None, true);
    connection.select(LOCK_LINK, &key(fan, id2), |row| {
        found = row.number(0).zip(row.number(1));
        whole = found.is_some();
    })?;
    if !whole {
        return Ok(tables::malformed("linktable"));
    }
    let Some((1, bytes)) = found else { return Ok(Ok(None)) };
    connection.select(HIDE_LINK, &key(fan, id2), |_| ())?;
    let count = [number(fan.id1), number(fan.link_type), number(now)];
    connection.select(TAKE_FROM_COUNT, &count, |_| ())?;
    Ok(Ok(Some(bytes)))
}

impl<'a> Store for Tables<'a> {
    type Client = Handle<'a>;

    fn client(&mut self) -> &mut Handle<'a> {
        &mut self.handle
    }

    fn tally(&self) -> Tally {
        Tally { written: self.written, conflicts: self.conflicts, contents: None }
    }

    fn add_link(&mut self, link: &Link<'_>) -> Result<Added> {
        let found = self.atomically(|connection| add(connection, link))?;
        self.written += LINK_BYTES + LISTED_BYTES + 2 * link.data.len() as u64;
        self.written += if found == Added::Inserted { 0 } else { PLACE_BYTES };
        self.written += if found == Added::Rewritten { 0 } else { COUNT_BYTES };
        Ok(found)
    }

    fn delete_link(&mut self, fan: Fan, id2: u64, now: u64) -> Result<bool> {
        let hidden = self.atomically(|connection| hide(connection, fan, id2, now))??;
        let Some(bytes) = hidden else { return Ok(false) };
        self.written += LINK_BYTES + LISTED_BYTES + 2 * bytes + PLACE_BYTES + COUNT_BYTES;
        Ok(true)
    }

    fn count(&mut self, fan: Fan) -> Result<Option<Count>> {
        let (mut count, mut whole) = (None, true);
        self.alone(COUNT, &[number(fan.id1), number(fan.link_type)], |row| {
            count = tables::count(row, 0);
            whole = count.is_some();
        })?;
        if whole { Ok(count) } else { tables::malformed("counttable") }
    }

    fn multiget(&mut self, fan: Fan, ids: &[u64], mut see: impl FnMut(&Link<'_>)) -> Result<()> {
        let places = vec!["?"; ids.len()].join(",");
        let text = format!(
            "SELECT {} FROM linktable FORCE INDEX (PRIMARY) WHERE id1 = ? AND link_type = ? AND id2 IN ({places})",
            tables::LINK
        );
        let fan_of = [number(fan.id1), number(fan.link_type)];
        let params: Vec<Param<'_>> = fan_of.into_iter().chain(ids.iter().map(|id| number(*id))).collect();
        let (mut found, mut whole) = (Vec::new(), true);
        self.alone(&text, &params, |row| match tables::link(row) {
            // The server chooses the order.
            Some(link) => {
                found.push((link.id2, link.visibility, link.version, link.time, link.data.to_vec()))
            }
            None => whole = false,
        })?;
        for id in ids {
            let of_id = found.iter().find(|(id2, ..)| id2 == id);
            if let Some((id2, visibility, version, time, data)) = of_id {
                let (id2, visibility, version, time) = (*id2, *visibility, *version, *time);
                see(&Link { fan, id2, visibility, version, time, data });
            }
        }
        if whole { Ok(()) } else { tables::malformed("linktable") }
    }

    fn list(&mut self, listing: &Listing, mut see: impl FnMut(&Link<'_>)) -> Result<usize> {
        let text = format!(
            "SELECT {} FROM linktable FORCE INDEX (id1_type) WHERE id1 = ? AND link_type = ? AND time >= 0 AND time <= ? \
             AND visibility = {} ORDER BY time DESC LIMIT ?, ?",
            tables::LINK,
            Visibility::Visible.byte()
        );
        let params = [
            number(listing.fan.id1),
            number(listing.fan.link_type),
            number(listing.time),
            number(listing.offset as u64),
            number(listing.limit as u64),
        ];
        let (mut seen, mut whole) = (0, true);
        self.alone(&text, &params, |row| match tables::link(row) {
            Some(link) => {
                see(&link);
                seen += 1;
            }
            None => whole = false,
        })?;
        if whole { Ok(seen) } else { tables::malformed("linktable") }
    }

    fn get_node(&mut self, id: u64, see: impl FnOnce(&Node<'_>)) -> Result<bool> {
        let (mut see, mut found, mut whole) = (Some(see), false, true);
        self.alone(GET_NODE, &[number(id), number(NODE_TYPE)], |row| match tables::node(row, 0) {
            Some(node) => {
                found = true;
                see.take().into_iter().for_each(|see| see(&node));
            }
            None => whole = false,
        })?;
        if whole { Ok(found) } else { tables::malformed("nodetable") }
    }

    /// The server numbers the nodes.
    fn add_node(&mut self, _: u64, node: &Node<'_>) -> Result<()> {
        let params =
            [number(node.node_type), number(node.version), number(node.time), Param::Bytes(node.data)];
        self.alone(ADD_NODE, &params, |_| ())?;
        self.written += NODE_BYTES + node.data.len() as u64;
        Ok(())
    }

    fn update_node(&mut self, id: u64, node: &Node<'_>) -> Result<bool> {
        let set = [number(node.version), number(node.time), Param::Bytes(node.data)];
        let params = [set[0], set[1], set[2], number(id), number(node.node_type)];
        let found = self.alone(UPDATE_NODE, &params, |_| ())?.changed > 0;
        self.written += if found { NODE_BYTES + node.data.len() as u64 } else { 0 };
        Ok(found)
    }

    fn delete_node(&mut self, id: u64) -> Result<bool> {
        let found = self.alone(DELETE_NODE, &[number(id), number(NODE_TYPE)], |_| ())?.changed > 0;
        self.written += if found { NODE_KEY } else { 0 };
        Ok(found)
    }

    /// Not used: the server numbers the nodes.
    fn next_node(&mut self, config: &Config) -> Result<u64> {
        Ok(config.graph.end)
    }

    fn check_everything(&mut self, expected: Option<Expected>) -> Result<Faults> {
        bulk::everything(&mut self.handle, expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    /// The visibility of the link comes as text.
    #[test]
    fn a_malformed_row_is_no_missing_link() {
        let column = |column_type: u8| [&[0; 6 + 1 + 2 + 4][..], &[column_type]].concat();
        let (text, number, end) = (253, 8, vec![0xfe]);
        // The greeting, the login, the prepared statement of 2 columns and 3 parameters with 4 + 3 descriptions, its rows.
        let mut packets = vec![vec![10], vec![0, 0], vec![0, 1, 0, 0, 0, 2, 0, 3, 0]];
        packets.extend((0..7).map(|_| end.clone()));
        packets.extend([vec![2], column(text), column(number), end.clone()]);
        packets.extend([[&[0, 0, 1, b'1'][..], &5_u64.to_le_bytes()].concat(), end]);
        let framed = |packet: &Vec<u8>| {
            let [length, ..] = packet.len().to_le_bytes();
            [&[length, 0, 0, 0][..], packet].concat()
        };
        let sent = packets.iter().map(framed).collect::<Vec<_>>().concat();
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(&sent).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        });
        let mut connection = Connection::open(&socket, Duration::from_secs(60)).unwrap();
        let hidden = hide(&mut connection, Fan { id1: 7, link_type: 9 }, 8, 0).unwrap();
        assert_eq!(hidden, tables::malformed("linktable"));
        drop(connection);
        server.join().unwrap();
    }
}
