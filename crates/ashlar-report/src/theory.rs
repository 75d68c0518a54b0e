//! The theory of amplification: pure functions, and their values for a run.
//!
//! Source: the articles on read, write and space amplification of B-trees and log-structured merge trees by Mark Callaghan
//! (2015); their worked values are the tests. Sizes are bytes; results are factors or counts.

use crate::record::Record;

mod table;

pub use table::{CALCULATIONS, Calculation, answer, help};

/// Write amplification of a B-tree: the page is written back once for `changes` rows of it, and each row goes to the log.
pub fn btree_wa(page: f64, row: f64, changes: f64) -> f64 {
    (page + changes * row) / (changes * row)
}

/// Write amplification of leveled compaction: log, flush, into the first level, and `per_level` for each of the `levels`
/// below that.
pub fn lsm_wa(levels: f64, per_level: f64) -> f64 {
    3.0 + levels * per_level
}

/// Write amplification of tiered compaction: log, flush, and once for each further tier.
pub fn tiered_wa(tiers: f64) -> f64 {
    2.0 + (tiers - 1.0)
}

/// Space of a B-tree whose pages are full to this part.
pub fn btree_space(fill: f64) -> f64 {
    1.0 / fill
}

/// Space of a row with its `meta` bytes of bookkeeping.
pub fn btree_row_overhead(row: f64, meta: f64) -> f64 {
    (row + meta) / row
}

/// A page of `packed` bytes after its codec, in a slot of fixed size: the slot's bytes per packed byte.
pub fn page_compress_space(packed: f64, slot: f64) -> f64 {
    slot / packed
}

/// The slot's bytes that nothing uses.
pub fn page_compress_wasted(packed: f64, slot: f64) -> f64 {
    slot - packed
}

/// Space of leveled compaction: each level may hold outdated entries of the one below, which is `fanout` times as large.
pub fn leveled_space(fanout: f64) -> f64 {
    fanout / (fanout - 1.0)
}

/// Part of the data that lies in the last level.
pub fn leveled_last_share(fanout: f64) -> f64 {
    (fanout - 1.0) / fanout
}

/// Space of tiered compaction, whose largest run is about half of all; while that is merged, its size more.
pub const TIERED_SPACE: f64 = 2.0;

/// Comparisons that find one of `keys` keys.
pub fn cmp_point(keys: f64) -> f64 {
    keys.log2().ceil()
}

/// Comparisons of a range of `rows` rows.
pub fn cmp_range(keys: f64, rows: f64) -> f64 {
    cmp_point(keys) + rows
}

/// Reads of storage that find a key when all but the last level is in memory: of a B-tree and of leveled compaction alike.
pub const DISK_POINT: f64 = 1.0;

/// Reads of storage of a range of `rows` rows, on average.
pub fn disk_range(rows: f64, rows_per_block: f64) -> f64 {
    1.0 + (rows - 1.0) / rows_per_block
}

/// The same when the first row is the last of its block.
pub fn disk_range_worst(rows: f64, rows_per_block: f64) -> f64 {
    ((rows - 1.0) / rows_per_block).ceil() + 1.0
}

/// Memory that keeps all but the last level's blocks: a key and a pointer per block, and for a log-structured merge tree the
/// filters of all but the last level (`filter_bits` per key for `filter_keys` keys).
pub fn cache_need(blocks: f64, key: f64, pointer: f64, filter_keys: f64, filter_bits: f64) -> f64 {
    blocks * (key + pointer) + filter_keys * filter_bits / 8.0
}

/// The amount of data that this memory serves with one read per point query.
pub fn capacity_ratio(data: f64, cache_need: f64) -> f64 {
    data / cache_need
}

/// The data structure of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Pages that are updated in place or copied.
    BTree,
    /// Levels, each some times as large as the one above.
    Leveled,
}

/// The data structure of each known engine.
pub fn shape(engine: &str) -> Option<Shape> {
    let is = |names: &[&str]| names.iter().any(|name| engine.starts_with(name));
    if is(&["wiredtiger-lsm", "ashlar", "rocksdb", "leveldb", "fjall", "tidesdb"]) {
        return Some(Shape::Leveled);
    }
    is(&["wiredtiger", "sqlite", "lmdb", "redb", "treedb", "kyoto", "libmdbx", "canopydb"])
        .then_some(Shape::BTree)
}

/// How a log-structured merge tree merges its runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// One run per level below level 0.
    Leveled,
    /// As many runs per tier as the ratio of sizes.
    Tiered,
}

/// What the owner of a log-structured merge tree can choose.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// How runs are merged.
    pub style: Style,
    /// The size of a level or tier divided by that of the one above.
    pub ratio: f64,
    /// Bytes in a table per byte of the user's.
    pub stored: f64,
    /// Bytes of a memtable.
    pub memtable: f64,
}

/// What a choice costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trade {
    /// Bytes written per byte of the user's, the log included.
    pub write: f64,
    /// Bytes stored per live byte.
    pub space: f64,
    /// Sorted runs that a seek looks at; `None` if not known.
    pub runs: Option<f64>,
}

/// Tables of level 0 when their compaction begins.
const LEVEL0_RUNS: f64 = 4.0;

impl Choice {
    /// What this choice costs with `data` live bytes that were put in random order.
    pub fn trade(&self, data: f64) -> Trade {
        // A whole power of the ratio is not one level more by rounding.
        let levels = ((data * self.stored / self.memtable).max(1.0).log(self.ratio) - 1e-9).ceil().max(1.0);
        let (tree, space, runs) = match self.style {
            Style::Leveled => {
                let tree = lsm_wa(levels - 1.0, PER_LEVEL / FANOUT * self.ratio) - 1.0;
                (tree, leveled_space(self.ratio), LEVEL0_RUNS + levels)
            }
            // The last tier is one run, about as large as all above it; each tier above has as many runs as the ratio.
            Style::Tiered => (tiered_wa(levels + 1.0) - 1.0, TIERED_SPACE, levels * self.ratio + 1.0),
        };
        Trade { write: 1.0 + tree * self.stored, space: space * self.stored, runs: Some(runs) }
    }
}

/// The expected amplification of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// Write amplification; `None` for reads.
    pub wa: Option<f64>,
    /// Space amplification.
    pub sa: f64,
}

/// Bytes that a level is rewritten with for each of its own: what the articles saw of a fan-out of 10.
const PER_LEVEL: f64 = 7.0;
/// A B-tree after random inserts.
const FILL: f64 = 2.0 / 3.0;
const FANOUT: f64 = 10.0;
const PAGE: f64 = 4096.0;

/// The load of Linkbench writes four kinds of entries, each in the order of its ids, in large batches. It is neither a fill in key order nor one
/// of random keys, so no formula covers it.
const LINKBENCH_LOAD: &str = "linkbench-load";

/// What theory says of this run, from its settings and, for levels, how many are populated. `None` for engines whose shape
/// is not known, for the load of Linkbench, and for runs without figures.
///
/// 1. A fill in key order moves files and fills pages to the end: log and data are written once.
/// 2. Without a log one write less.
/// 3. Codecs make both smaller by the part of an entry that they take away; a B-tree's pages are as large as before.
pub fn predicted(record: &Record) -> Option<Predicted> {
    let (shape, params, ops) = (shape(&record.engine.name)?, &record.params, record.ops.as_ref()?);
    if record.workload == LINKBENCH_LOAD {
        return None;
    }
    let writes = ops.found.is_none();
    let row = match params.key_bytes {
        // Entries of many lengths: their mean.
        0 => ops.user_bytes as f64 / ops.total.max(1) as f64,
        key => (key + params.value_bytes) as f64,
    };
    if row <= 0.0 {
        return None;
    }
    let in_order = record.workload.contains("seq");
    let log = if params.durability == "nolog" { 0.0 } else { 1.0 };
    let (tree, sa) = match shape {
        Shape::BTree if in_order => (1.0, 1.0),
        Shape::BTree => {
            let page = params.block_bytes.map_or(PAGE, |bytes| bytes as f64);
            (btree_wa(page, row, 1.0) - 1.0, btree_space(FILL))
        }
        Shape::Leveled if in_order => (stored(record, row), stored(record, row)),
        Shape::Leveled => {
            let below = record.engine_counters.levels.iter().skip(1).filter(|&&tables| tables > 0).count();
            let tree = match below {
                0 => 1.0,
                levels => lsm_wa((levels - 1) as f64, PER_LEVEL) - 1.0,
            };
            (tree * stored(record, row), leveled_space(FANOUT) * stored(record, row))
        }
    };
    Some(Predicted { wa: writes.then_some(log + tree), sa })
}

/// Bytes in a table per byte of the user's.
fn stored(record: &Record, row: f64) -> f64 {
    let params = &record.params;
    match (params.codec.as_deref(), params.compress_ratio) {
        (None | Some("none"), _) | (_, None) => 1.0,
        (_, Some(ratio)) => (params.key_bytes as f64 + params.value_bytes as f64 * ratio) / row,
    }
}

#[cfg(test)]
mod tests;
