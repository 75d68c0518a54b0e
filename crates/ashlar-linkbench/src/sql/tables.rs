//! The tables of the original program, and how their rows become the keys and values of the key-value form.
//!
//! 1. `linktable` has the links. Its secondary index has every column, so that a list is read from the index alone.
//! 2. `metatable` is the driver's own: the marks of the load, and what the database must hold ([`crate::phase::kept`]).
//! 3. Load and check are the same as in the key-value form. Their entries become rows here. An entry of a list is no row of its own: the
//!    server keeps the secondary index.

use super::wire::{Param, Row};
use crate::kv::layout::{self, Bytes};
use crate::model::{Count, Fan, Link, Node, Visibility};
use ashlar_peers::client::{Change, Changes};
use ashlar_peers::engine::EngineName;
use ashlar_peers::peer::Result;
use std::fmt::Write;

/// The database.
pub const DATABASE: &str = "linkdb";

/// Bytes of statement text after which the rest goes into another statement.
const STATEMENT: usize = 4 << 20;

/// The statements that create the tables.
pub fn schema(engine: EngineName) -> Vec<String> {
    let (name, comment): (_, fn(&str) -> String) = match engine {
        // Each index has a column family of its own. That of the lists is in reverse order, because lists begin with the newest link.
        EngineName::Myrocks => ("ROCKSDB", |family| format!(" COMMENT '{family}'")),
        _ => ("InnoDB", |_| String::new()),
    };
    let of = |table: &str, columns: &str| {
        format!(
            "CREATE TABLE IF NOT EXISTS {table} ({columns}) ENGINE={name} DEFAULT CHARSET=latin1 COLLATE=latin1_bin"
        )
    };
    vec![
        format!("CREATE DATABASE IF NOT EXISTS {DATABASE} DEFAULT CHARACTER SET latin1 COLLATE latin1_bin"),
        format!("USE {DATABASE}"),
        of(
            "linktable",
            &format!(
                "id1 BIGINT UNSIGNED NOT NULL, id2 BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, \
                 visibility TINYINT NOT NULL, data VARCHAR(255) NOT NULL, time BIGINT UNSIGNED NOT NULL, \
                 version INT UNSIGNED NOT NULL, PRIMARY KEY (link_type, id1, id2){}, \
                 KEY id1_type (id1, link_type, visibility, time, id2, version, data){}",
                comment("cf_link_pk"),
                comment("rev:cf_link_id1_type")
            ),
        ),
        of(
            "counttable",
            &format!(
                "id BIGINT UNSIGNED NOT NULL, link_type BIGINT UNSIGNED NOT NULL, count INT UNSIGNED NOT NULL, \
                 time BIGINT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL, PRIMARY KEY (id, link_type){}",
                comment("cf_count_pk")
            ),
        ),
        of(
            "nodetable",
            &format!(
                "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, type INT UNSIGNED NOT NULL, \
                 version BIGINT UNSIGNED NOT NULL, time INT UNSIGNED NOT NULL, data MEDIUMTEXT NOT NULL, \
                 PRIMARY KEY (id){}",
                comment("cf_node_pk")
            ),
        ),
        of("metatable", "name VARBINARY(64) NOT NULL PRIMARY KEY, value VARBINARY(255) NOT NULL"),
    ]
}

/// Whether any table has a row: 0 or 1.
pub const HAS_ROWS: &str = "SELECT EXISTS (SELECT 1 FROM linktable) OR EXISTS (SELECT 1 FROM counttable) \
    OR EXISTS (SELECT 1 FROM nodetable) OR EXISTS (SELECT 1 FROM metatable)";

/// Columns of a link in the order that [`link`] reads.
pub const LINK: &str = "id1, link_type, id2, visibility, version, time, data";

/// The link in a row of the columns [`LINK`].
pub fn link<'a>(row: &'a Row<'_>) -> Option<Link<'a>> {
    Some(Link {
        fan: Fan { id1: row.number(0)?, link_type: row.number(1)? },
        id2: row.number(2)?,
        visibility: Visibility::of(u8::try_from(row.number(3)?).ok()?)?,
        version: u32::try_from(row.number(4)?).ok()?,
        time: row.number(5)?,
        data: row.bytes(6)?,
    })
}

/// The node in a row whose columns from `at` on are type, version, time and data.
pub fn node<'a>(row: &'a Row<'_>, at: usize) -> Option<Node<'a>> {
    Some(Node {
        node_type: u32::try_from(row.number(at)?).ok()?,
        version: row.number(at + 1)?,
        time: u32::try_from(row.number(at + 2)?).ok()?,
        data: row.bytes(at + 3)?,
    })
}

/// The count in a row whose columns from `at` on are count, time and version.
pub fn count(row: &Row<'_>, at: usize) -> Option<Count> {
    Some(Count {
        count: u32::try_from(row.number(at)?).ok()?,
        time: row.number(at + 1)?,
        version: row.number(at + 2)?,
    })
}

/// A row that has not the columns of its table.
pub fn malformed<T>(what: &str) -> Result<T> {
    Err(format!("a row of {what} has other columns than the schema"))
}

/// Writes the entry of a row. `None`: the row has other columns.
type Entry = fn(&Row<'_>, &mut Bytes, &mut Bytes) -> Option<()>;

/// A space of the key-value form as a question to the server: the statement, its parameters, and how a row becomes an entry.
pub struct Question<'a> {
    /// The statement.
    pub text: String,
    /// Its parameters.
    pub params: Vec<Param<'a>>,
    /// How a row becomes an entry.
    pub entry: Entry,
}

fn number(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
}

/// The columns of an index with which a key is compared, and the numbers of the key, as many as it has.
fn of_prefix<'a>(prefix: &[u8]) -> Option<(Vec<&'static str>, Vec<Param<'a>>)> {
    let columns: &[&'static str] = match prefix.first()? {
        b'l' => &["link_type", "id1", "id2"],
        b'i' => &["id1", "link_type"],
        b'c' => &["id", "link_type"],
        _ => &["id"],
    };
    let numbers: Vec<u64> = (0..columns.len()).map_while(|place| number(prefix, 1 + 8 * place)).collect();
    let mut named: Vec<&'static str> = columns[..numbers.len()].to_vec();
    let mut params: Vec<Param<'a>> = numbers.into_iter().map(Param::Number).collect();
    if let (b'i', Some(visibility)) = (prefix[0], prefix.get(17)) {
        named.push("visibility");
        params.push(Param::Number((*visibility).into()));
    }
    Some((named, params))
}

/// The question for every entry whose key begins with `prefix`: a letter and whole numbers. `None`: another key, or the driver's own.
pub fn question(prefix: &[u8]) -> Option<Question<'static>> {
    let (named, params) = of_prefix(prefix)?;
    let (table, columns, entry): (_, _, Entry) = match prefix[0] {
        b'l' => ("linktable FORCE INDEX (PRIMARY)", LINK, link_entry),
        b'i' => ("linktable FORCE INDEX (id1_type)", LINK, listed_entry),
        b'c' => ("counttable", "id, link_type, count, time, version", count_entry),
        b'n' => ("nodetable", "id, type, version, time, data", node_entry),
        _ => return None,
    };
    let conditions: Vec<String> = named.iter().map(|column| format!("{column} = ?")).collect();
    let conditions =
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    Some(Question { text: format!("SELECT {columns} FROM {table}{conditions}"), params, entry })
}

fn set(into: &mut Bytes, bytes: &[u8]) {
    into.clear();
    into.extend_from_slice(bytes);
}

fn link_entry(row: &Row<'_>, key: &mut Bytes, value: &mut Bytes) -> Option<()> {
    let link = link(row)?;
    set(key, &layout::link_key(link.fan, link.id2));
    layout::put_link(&link, value);
    Some(())
}

fn listed_entry(row: &Row<'_>, key: &mut Bytes, value: &mut Bytes) -> Option<()> {
    let link = link(row)?;
    set(key, &layout::list_key(link.fan, link.visibility, link.time, link.id2));
    layout::put_listed(&link, value);
    Some(())
}

fn count_entry(row: &Row<'_>, key: &mut Bytes, value: &mut Bytes) -> Option<()> {
    let fan = Fan { id1: row.number(0)?, link_type: row.number(1)? };
    set(key, &layout::count_key(fan));
    layout::put_count(&count(row, 2)?, value);
    Some(())
}

fn node_entry(row: &Row<'_>, key: &mut Bytes, value: &mut Bytes) -> Option<()> {
    set(key, &layout::node_key(row.number(0)?));
    layout::put_node(&node(row, 1)?, value);
    Some(())
}

/// The statements that write a batch of entries, with many rows each.
///
/// # Errors
/// The batch has a delete or a malformed entry: the phases that write entries have neither.
pub fn statements(changes: &Changes) -> Result<Vec<String>> {
    const HEADS: [&str; 4] = [
        "REPLACE INTO linktable (id1, link_type, id2, visibility, version, time, data) VALUES ",
        "REPLACE INTO counttable (id, link_type, count, time, version) VALUES ",
        "REPLACE INTO nodetable (id, type, version, time, data) VALUES ",
        "REPLACE INTO metatable (name, value) VALUES ",
    ];
    let (mut all, mut open) = (Vec::new(), HEADS.map(|_| String::new()));
    for change in changes.iter() {
        let Change::Put { key, value } = change else {
            return Err("the SQL form has no deletes of entries".to_owned());
        };
        let Some((table, row)) = row(key, value) else { return layout::malformed(key, value) };
        let Some(table) = table else { continue };
        let text = &mut open[table];
        text.push_str(if text.is_empty() { HEADS[table] } else { "," });
        text.push_str(&row);
        if text.len() > STATEMENT {
            all.push(std::mem::take(text));
        }
    }
    all.extend(open.into_iter().filter(|text| !text.is_empty()));
    Ok(all)
}

/// The row of an entry, and the place of its table. Without a place: the server keeps the entry itself.
fn row(key: &[u8], value: &[u8]) -> Option<(Option<usize>, String)> {
    match key.first()? {
        b'l' => {
            let (fan, id2) = layout::link_of_key(key)?;
            let Link { visibility, version, time, data, .. } = layout::link(fan, id2, value)?;
            let Fan { id1, link_type } = fan;
            let visibility = visibility.byte();
            let data = hex(data);
            Some((Some(0), format!("({id1},{link_type},{id2},{visibility},{version},{time},{data})")))
        }
        b'i' => Some((None, String::new())),
        b'c' => {
            let (id, link_type) = (number(key, 1)?, number(key, 9)?);
            let Count { count, time, version } = layout::count(value)?;
            Some((Some(1), format!("({id},{link_type},{count},{time},{version})")))
        }
        b'n' => {
            let Node { node_type, version, time, data } = layout::node(value)?;
            Some((Some(2), format!("({},{node_type},{version},{time},{})", number(key, 1)?, hex(data))))
        }
        _ => Some((Some(3), format!("({},{})", hex(key), hex(value)))),
    }
}

/// Bytes as a literal.
fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len() + 3);
    text.push_str("x'");
    for byte in bytes {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAN: Fan = Fan { id1: 7, link_type: 9 };

    #[test]
    fn entries_become_rows() {
        let (mut changes, mut value) = (Changes::new(), Vec::new());
        let link =
            Link { fan: FAN, id2: 8, visibility: Visibility::Visible, version: 1, time: 2, data: b"a'" };
        layout::put_link(&link, &mut value);
        changes.put(&layout::link_key(FAN, 8), &value);
        layout::put_listed(&link, &mut value);
        changes.put(&layout::list_key(FAN, link.visibility, 2, 8), &value);
        changes.put(&layout::link_key(FAN, 10), &[0; 13]);
        changes.put(b"mload", b"x");
        assert_eq!(
            statements(&changes).unwrap(),
            [
                "REPLACE INTO linktable (id1, link_type, id2, visibility, version, time, data) VALUES (7,9,8,1,1,2,x'6127'),(7,9,10,0,0,0,x'')",
                "REPLACE INTO metatable (name, value) VALUES (x'6d6c6f6164',x'78')",
            ]
        );
        changes.delete(b"mload");
        assert!(statements(&changes).is_err());
        let mut bad = Changes::new();
        bad.put(&layout::link_key(FAN, 8), b"short");
        assert!(statements(&bad).unwrap_err().contains("too short"));
    }

    #[test]
    fn a_prefix_is_a_condition() {
        let of = |prefix: &[u8]| question(prefix).map(|question| (question.text, question.params.len()));
        let text = |prefix: &[u8]| of(prefix).unwrap().0.split_once(" FROM ").unwrap().1.to_owned();
        assert_eq!(text(b"n"), "nodetable");
        let (fan, _) = layout::fan_bounds(FAN);
        assert_eq!(text(&fan), "linktable FORCE INDEX (PRIMARY) WHERE link_type = ? AND id1 = ?");
        let (list, _) = layout::list_bounds(FAN, Visibility::Hidden, u64::MAX);
        assert_eq!(
            text(&list[..18]),
            "linktable FORCE INDEX (id1_type) WHERE id1 = ? AND link_type = ? AND visibility = ?"
        );
        assert_eq!((of(b"m"), of(b"")), (None, None));
    }
}
