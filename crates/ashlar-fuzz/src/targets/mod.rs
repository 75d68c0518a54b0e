//! The decoders, each with real inputs to damage.
//!
//! A decoder may refuse, and says why. What it accepts is looked at further: every entry is visited in both directions,
//! and what was decoded from encoded bytes must come out equal when it is encoded and decoded again.

mod anatomy;
mod beside;
mod blocks;
mod directory;
mod logs;
mod names;
mod table;
mod values;

use crate::sst::{blocks as taken_apart, fix_table};
use crate::{corpus, records};
use ashlar_testkit::mutate::{damaged, fix_log, fix_nothing};

/// How an input went: accepted, or why not.
pub type Outcome = Result<(), String>;

/// How inputs are damaged.
#[derive(Clone, Copy)]
pub enum Damage {
    /// Anywhere, then checksums are put right by this.
    Bytes(fn(&mut [u8])),
    /// By a function that knows what the input is: from the corpus and a seed.
    Own(fn(&[Vec<u8>], u64) -> Vec<u8>),
}

/// A decoder under test.
pub struct Target {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it decodes.
    pub what: &'static str,
    /// Real inputs.
    pub real: fn() -> Vec<Vec<u8>>,
    /// What is done to them.
    pub damage: Damage,
    /// Decodes and checks; must return.
    pub decode: fn(&[u8]) -> Outcome,
}

impl Target {
    /// Real inputs, and the ones kept in `corpus/`.
    pub fn corpus(&self) -> Vec<Vec<u8>> {
        [(self.real)(), corpus::kept(self.name)].concat()
    }

    /// The input of a seed.
    pub fn draw(&self, corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
        match self.damage {
            Damage::Bytes(fix) => damaged(corpus, seed, fix),
            Damage::Own(draw) => draw(corpus, seed),
        }
    }
}

const fn target(
    name: &'static str,
    what: &'static str,
    real: fn() -> Vec<Vec<u8>>,
    fix: fn(&mut [u8]),
    decode: fn(&[u8]) -> Outcome,
) -> Target {
    Target { name, what, real, damage: Damage::Bytes(fix), decode }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    target("cursor", "numbers and slices", names::noise, fix_nothing, values::cursor),
    target("log", "physical records of logs and MANIFESTs", logs::files, fix_log, logs::physical),
    target(
        "log_stretches",
        "logs, stretch by stretch, as tools explain them",
        logs::files,
        fix_log,
        logs::stretches,
    ),
    target("log_meta", "payloads of the records that are no data", logs::metas, fix_nothing, logs::meta),
    target("log_reader", "logs, in every recovery mode", logs::files, fix_log, logs::reader),
    target(
        "write_batch",
        "write batches",
        || records::payloads(&corpus::logs()),
        fix_nothing,
        logs::write_batch,
    ),
    target(
        "version_edit",
        "version edits",
        || records::payloads(&corpus::manifests()),
        fix_nothing,
        logs::version_edit,
    ),
    target("manifest", "whole MANIFESTs, replayed", corpus::manifests, fix_log, logs::manifest),
    target("current", "CURRENT and IDENTITY", names::small_files, fix_nothing, names::current),
    target("filename", "names of files", names::names, fix_nothing, names::filename),
    target("options_file", "OPTIONS files", names::options, fix_nothing, names::options_file),
    target("backup_meta", "meta files of backups", names::backup_metas, fix_nothing, names::backup_meta),
    target("footer", "footers of tables", || taken_apart().tails, fix_nothing, blocks::footer),
    target("meta_index", "metaindex blocks", || taken_apart().meta, fix_nothing, blocks::meta_index),
    target("properties", "properties blocks", || taken_apart().properties, fix_nothing, blocks::properties),
    target("index_block", "index blocks, in every form", || taken_apart().index, fix_nothing, blocks::index),
    target(
        "data_block",
        "data blocks, plain and separated",
        || taken_apart().data,
        fix_nothing,
        blocks::data,
    ),
    target(
        "any_block",
        "all blocks, read as every kind of block",
        blocks::all,
        fix_nothing,
        blocks::every_format,
    ),
    target("filter", "filter blocks", || taken_apart().filters, fix_nothing, blocks::filter),
    target(
        "decompress",
        "stored blocks of every codec",
        || taken_apart().stored,
        fix_nothing,
        values::stored,
    ),
    target("blob", "blob files and indexes", values::blobs, fix_nothing, values::blob),
    target(
        "entity",
        "wide-column entities and value suffixes",
        values::entities,
        fix_nothing,
        values::entity,
    ),
    target("blob_file", "blob files, opened", beside::blob_files, beside::fix_blob_file, beside::blob_file),
    target("every_filter", "filters of every kind", beside::filters, fix_nothing, beside::every_filter),
    target("timestamp", "keys with timestamps", beside::stamped_keys, fix_nothing, beside::timestamp),
    target(
        "progress",
        "how far compactions came",
        beside::progress,
        fix_nothing,
        beside::compaction_progress,
    ),
    target("table", "whole tables", table::tables, fix_table, table::table),
    target("anatomy", "tables taken apart", table::tables, fix_table, anatomy::anatomy),
    Target {
        name: "open_mutated_dir",
        what: "whole directories: opened, read, compacted, opened again",
        real: directory::archives,
        damage: Damage::Own(directory::draw),
        decode: directory::open,
    },
];
