//! Figures of the documents whose experiments are repeated. They were measured on other machines in other years, so they are
//! shown beside the new figures and never compared with them.
//!
//! Tab-separated tables, as printed there; `-` if the document has no figure.
//!
//! | file | document |
//! |---|---|
//! | `s0` | RocksDB and LevelDB on flash, 2013/14 |
//! | `s1` | RocksJava on flash, 2014 |
//! | `s2` | RocksDB 6.10 on NVMe, June 2020 (`benchmark.sh`) |
//! | `s3` | LevelDB beside SQLite3 and Kyoto TreeDB, July 2011 |
//! | `s4` | Linkbench in MongoDB with WiredTiger and RocksDB, 2015 |

use crate::record::Published;

const S0: &str = include_str!("history/s0.tsv");
const S1: &str = include_str!("history/s1.tsv");
const S2: &str = include_str!("history/s2.tsv");
const S3: &str = include_str!("history/s3.tsv");
const S4: &str = include_str!("history/s4.tsv");

/// The machines of the documents.
const MACHINES: [(&str, &str); 5] = [
    ("s0", "2013/14: 24 threads of X5650 2.67 GHz, 144 GB, two FusionIO cards, 1 billion keys"),
    ("s1", "2014: 40 threads of E5-2660 v2 2.20 GHz, 144 GB, Fusion-io, Java 7, 1 billion keys"),
    ("s2", "2020: 8 threads, 32 GB, NVMe (m5d.2xlarge), RocksDB 6.10, 900 million keys"),
    ("s3", "2011: X5650 2.67 GHz, 12 GB, SATA disk 7200 rpm, 1 million keys"),
    (
        "s4",
        "2015: 24 threads, 144 GB, SSD, MongoDB 3.2 in front, 12 clients, 50 million nodes (device: 250 million, 40 GB)",
    ),
];

/// A tab-separated table.
struct Table<'a> {
    head: Vec<&'a str>,
    rows: Vec<Vec<&'a str>>,
}

impl<'a> Table<'a> {
    fn parse(text: &'a str) -> Table<'a> {
        let mut lines = text.lines().map(|line| line.split('\t').collect::<Vec<_>>());
        Table { head: lines.next().unwrap_or_default(), rows: lines.collect() }
    }

    /// A cell that is not empty.
    fn cell(&self, row: &[&'a str], column: &str) -> Option<&'a str> {
        let index = self.head.iter().position(|name| *name == column)?;
        row.get(index).copied().filter(|cell| *cell != "-")
    }

    fn row(&self, wanted: &[(&str, &str)]) -> Option<&Vec<&'a str>> {
        self.rows.iter().find(|row| wanted.iter().all(|(name, is)| self.cell(row, name) == Some(is)))
    }
}

/// The figure of the document of `experiment` for this row and engine.
pub fn published(experiment: &str, row: &str, engine: &str) -> Option<Published> {
    let machine = MACHINES.iter().find(|(name, _)| *name == experiment)?.1.to_owned();
    let (text, per_sec) = match experiment {
        "s0" => {
            let table = Table::parse(S0);
            let found = table.row(&[("row", row), ("engine", engine)])?;
            (table.cell(found, "text")?, table.cell(found, "ops/sec").and_then(number))
        }
        "s1" => {
            let table = Table::parse(S1);
            let found = table.row(&[("row", row)]).filter(|_| engine == "rocksdb")?;
            let (micros, mib) = (table.cell(found, "micros/op")?, table.cell(found, "MB/s")?);
            let text = format!("{micros} micros/op, {mib} MB/s");
            return Some(Published { text, per_sec: number(micros).map(|micros| 1e6 / micros), machine });
        }
        "s2" => {
            let (test, variant) = row.split_once('-').unwrap_or((row, "8K"));
            let table = Table::parse(S2);
            let found = table.row(&[("test", test), ("variant", variant)]).filter(|_| engine == "rocksdb")?;
            let text = table.cell(found, "ops/sec")?;
            (text, number(text))
        }
        "s4" => {
            let (text, oplog) = linkbench(row, engine)?;
            let (text, per_sec) = (format!("{text} (oplog {oplog})"), number(text));
            return Some(Published { text, per_sec, machine });
        }
        _ => {
            let table = Table::parse(S3);
            let column = ["leveldb", "treedb", "sqlite"].into_iter().find(|name| engine.starts_with(name))?;
            let text = table.cell(table.row(&[("row", row)])?, column)?;
            (text, number(text))
        }
    };
    Some(Published { text: text.to_owned(), per_sec, machine })
}

/// Operations per second of Linkbench, and whether MongoDB wrote its oplog: "off" for the load that fits the cache, which has
/// both; "on" for all others. The document has rows of twelve clients; the nearest rows here have sixteen.
fn linkbench(row: &str, engine: &str) -> Option<(&'static str, &'static str)> {
    let (phase, id) = match row {
        "cached-load" => ("load", "cached"),
        "device-load" => ("load", "ssd"),
        "cached-16" => ("query", "cached 2"),
        "device-16" => ("query", "ssd 2"),
        _ => return None,
    };
    let setup = match engine {
        "wiredtiger" => "wt.320",
        "rocksdb" => "rx.320",
        _ => return None,
    };
    let table = Table::parse(S4);
    let is = |row: &[&'static str], column, wanted| table.cell(row, column) == Some(wanted);
    let found = table.rows.iter().find(|row| {
        let of_setup = table.cell(row, "setup").is_some_and(|known| known.starts_with(setup));
        of_setup && is(row, "phase", phase) && is(row, "id", id)
    })?;
    let off = table.cell(found, "setup").is_some_and(|setup| setup.ends_with(".op0"));
    Some((table.cell(found, "ops")?, if off { "off" } else { "on" }))
}

/// The line of the document of 2020 for a row of `benchmark.sh`, without the names of test and variant.
pub fn benchmark<const N: usize>(row: &str) -> Option<[&'static str; N]> {
    let (test, variant) = row.split_once('-')?;
    let table = Table::parse(S2);
    let found = table.row(&[("test", test), ("variant", variant)])?;
    found.get(2..)?.try_into().ok()
}

/// The description of a row of the LevelDB page.
pub fn title(experiment: &str, row: &str) -> Option<&'static str> {
    let table = match experiment {
        "s0" => Table::parse(S0),
        "s3" => Table::parse(S3),
        _ => return None,
    };
    table.cell(table.row(&[("row", row)])?, "title")
}

/// The number at the beginning of `1,060 (1.17x)`.
fn number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests;
