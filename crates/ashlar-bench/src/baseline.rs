//! The default run: the benchmarks of LevelDB's page of 2011, and a table at the end.
//!
//! A million entries with 16-byte keys and 100-byte values that compress to half; 4 MB of cache and 4 MB of write buffer.
//! One thread writes, and only fillsync waits for the device.

use crate::flags::{Flags, Parsed};
use crate::stats::Measured;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, Table};

/// The benchmarks, with their descriptions in the table.
const LIST: &[(&str, &str)] = &[
    ("fillseq", "sequential writes"),
    ("fillsync", "synchronous random writes"),
    ("fillrandom", "random writes"),
    ("overwrite", "random writes over existing keys"),
    ("readrandom", "random reads, compactions still running"),
    ("readrandom", "random reads, again"),
    ("readseq", "sequential reads"),
    ("readreverse", "sequential reads backward"),
    ("compact", "whole compaction"),
    ("readrandom", "random reads, compacted"),
    ("readseq", "sequential reads, compacted"),
    ("readreverse", "sequential reads backward, compacted"),
];

const MEMORY: u64 = 4 << 20;

/// Turns a command line without `--benchmarks` into the baseline. Given flags stay.
pub(crate) fn fill(parsed: &mut Parsed) {
    let flags = &mut parsed.flags;
    flags.benchmarks = LIST.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(",");
    flags.cache_size.get_or_insert(MEMORY);
    flags.write_buffer_size.get_or_insert(MEMORY);
}

/// The results as a table, and the size of the database. The last full scan counts the entries.
pub(crate) fn report(results: &[Measured], flags: &Flags, bytes_on_disk: u64) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED);
    table.set_header(["benchmark", "what", "operations", "ops/s", "micros/op", "MB/s"]);
    for (i, m) in results.iter().enumerate() {
        let what = LIST.get(i).filter(|(name, _)| *name == m.name).map_or("", |(_, what)| what);
        table.add_row([
            m.name.clone(),
            what.to_owned(),
            grouped(m.operations as f64),
            grouped(m.ops_per_sec),
            format!("{:.3}", m.micros_per_op),
            m.mb_per_sec.map(|rate| format!("{rate:.1}")).unwrap_or_default(),
        ]);
    }
    table.column_iter_mut().skip(2).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
    let walked =
        results.iter().rev().find(|m| m.name == "readreverse").map_or(0, |m| m.operations / flags.threads);
    let mb = |bytes: f64| bytes / 1_048_576.0;
    let raw = walked as f64 * (flags.key_bytes() + flags.value_size) as f64;
    let (disk, raw, walked) = (mb(bytes_on_disk as f64), mb(raw), grouped(walked as f64));
    format!(
        "\n{table}\nDatabase: {disk:.1} MB on disk; {walked} entries are {raw:.1} MB of keys and values\n"
    )
}

/// A whole number with commas: `1,234,567`.
fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.trunc());
    let first = match digits.len() % 3 {
        0 => 3,
        n => n,
    };
    let (head, tail) = digits.split_at(first.min(digits.len()));
    let parts = tail.as_bytes().chunks(3).map(|part| String::from_utf8_lossy(part).into_owned());
    std::iter::once(head.to_owned()).chain(parts).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::parse;
    use crate::plan::Plan;
    use crate::stats::ThreadStats;

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in
            [(0.0, "0"), (12.9, "12"), (999.0, "999"), (1000.0, "1,000"), (1_234_567.8, "1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn what_was_given_stays() {
        let mut parsed = parse(&["--num=5000".into(), "--cache_size=1048576".into()]).unwrap();
        fill(&mut parsed);
        let flags = &parsed.flags;
        assert_eq!(
            (flags.num, flags.cache_size, flags.write_buffer_size),
            (5000, Some(1 << 20), Some(4 << 20))
        );
        assert_eq!(Plan::list(flags).unwrap().len(), LIST.len());
    }

    #[test]
    fn the_table_has_a_row_each() {
        let done = |name, done| Measured::new(name, ThreadStats { done, ..ThreadStats::default() });
        let results = [done("fillseq", 1_000_000), done("readreverse", 2_000_000)];
        let text = report(&results, &Flags { threads: 2, ..Flags::default() }, 1 << 20);
        assert!(text.contains("sequential writes") && text.contains("2,000,000"), "{text}");
        assert!(
            text.ends_with("Database: 1.0 MB on disk; 1,000,000 entries are 110.6 MB of keys and values\n"),
            "{text}"
        );
    }
}
