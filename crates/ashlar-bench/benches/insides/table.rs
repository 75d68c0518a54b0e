//! The cases by name.

use crate::case::{Bounds, Case};
use crate::{database, files, memory};

const fn bounds(limit: u32, most: u32) -> Bounds {
    Bounds { limit, most }
}

/// All of them, in the order in which they are printed.
pub const CASES: &[Case] = &[
    Case {
        name: "put_without_log",
        text: "a put of ascending keys: commit 20, memtable 40",
        bounds: bounds(60, 140),
        make: database::put_without_log,
    },
    Case {
        name: "append_plain",
        text: "pwrite of 141 bytes to a file that grows",
        bounds: bounds(270, 450),
        make: files::plain,
    },
    Case {
        name: "append_fallocated",
        text: "the same into reserved space",
        bounds: bounds(270, 450),
        make: files::fallocated,
    },
    Case {
        name: "append_zeroed",
        text: "the same over zeros",
        bounds: bounds(270, 450),
        make: files::zeroed,
    },
    Case {
        name: "memtable_insert_random",
        text: "an insert of a drawn key",
        bounds: bounds(250, 450),
        make: memory::insert_random,
    },
    Case {
        name: "memtable_insert_seq",
        text: "an insert of ascending keys",
        bounds: bounds(40, 80),
        make: memory::insert_in_order,
    },
    Case {
        name: "memtable_get_hit",
        text: "a get of a key in a memtable of 400,000",
        bounds: bounds(450, 600),
        make: memory::get_hit,
    },
    Case {
        name: "memtable_get_miss",
        text: "a get of a key that is not there",
        bounds: bounds(60, 90),
        make: memory::get_miss,
    },
    Case {
        name: "get_cached",
        text: "a get through the engine, block in the cache: hit 10, fences 20, block 15",
        bounds: bounds(45, 95),
        make: database::get_cached,
    },
    Case {
        name: "get_page_cache",
        text: "a get whose block the operating system has",
        bounds: bounds(1200, 1600),
        make: database::get_from_page_cache,
    },
    Case {
        name: "multi_get",
        text: "a key of a batch of 64, blocks in the cache",
        bounds: bounds(250, 600),
        make: database::multi_get,
    },
    Case {
        name: "fences",
        text: "the table of a level of 256 that may hold a key",
        bounds: bounds(20, 40),
        make: memory::fences,
    },
    Case {
        name: "filters",
        text: "eight filters, cold, asked by one hash",
        bounds: bounds(320, 450),
        make: memory::filters,
    },
    Case {
        name: "block_seek_cold",
        text: "a seek in one of 30,000 blocks of 4 KiB",
        bounds: bounds(250, 320),
        make: memory::seek_cold,
    },
    Case {
        name: "block_seek_hot",
        text: "a seek in one of four blocks",
        bounds: bounds(15, 30),
        make: memory::seek_hot,
    },
    Case { name: "xxh3_4k", text: "XXH3 of 4 KiB", bounds: bounds(65, 130), make: memory::xxh3 },
    Case { name: "crc32c_4k", text: "CRC-32C of 4 KiB", bounds: bounds(130, 200), make: memory::crc },
    Case {
        name: "next",
        text: "a step forward, one run in the cache",
        bounds: bounds(20, 45),
        make: database::next,
    },
    Case { name: "prev", text: "a step backward", bounds: bounds(25, 50), make: database::prev },
    Case {
        name: "seek_3_runs",
        text: "a cursor made, and a seek over three runs in the cache",
        bounds: bounds(1000, 2400),
        make: database::seek,
    },
    Case {
        name: "pass_deleted",
        text: "a deleted key that a step passes, in a table, with nothing below",
        bounds: bounds(5, 20),
        make: database::pass_deleted,
    },
    Case {
        name: "pass_deleted_values",
        text: "a deleted key that a step passes, in the memtable, with its value in a table",
        bounds: bounds(40, 100),
        make: database::pass_deleted_values,
    },
    Case {
        name: "get_counter",
        text: "a get that combines 50 operands in the memtable and a sum in a table",
        bounds: bounds(1500, 6000),
        make: database::get_counter,
    },
    Case {
        name: "rewrite_none",
        text: "an entry of a compaction of three runs",
        bounds: bounds(70, 150),
        make: database::rewrite_plain,
    },
    Case {
        name: "rewrite_lz4",
        text: "the same, with LZ4",
        bounds: bounds(140, 220),
        make: database::rewrite_lz4,
    },
];
