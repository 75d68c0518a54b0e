//! What many families cost beside RocksDB: to create, to keep idle, to write to, to close and to open.
//!
//! Both engines do the same, in a process of their own:
//! 1. They create the families of a row, one by one, or together if there are more than [`ONE_BY_ONE`], and one more. AshlarDB creates
//!    them together in an open, RocksDB by its call for several.
//! 2. They put some entries into each family, one family after the other for each key, and then [`TURN`] entries into each. The second
//!    part is the time of a put; RocksDB's is not known, because the judge takes longer than RocksDB.
//! 3. They close the database and open it with all families.

use super::MIB;
use comfy_table::{CellAlignment, Table, presets};
use std::time::{Duration, Instant};

/// The most families that are created one by one: each of them writes the OPTIONS file with all.
pub(super) const ONE_BY_ONE: u32 = 1000;
/// Puts into one family before the next one has its turn.
pub(super) const TURN: u32 = 20;
/// Bytes of a value.
pub(super) const VALUE: u32 = 100;

/// What families cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// Nanoseconds to create one, on average.
    pub(super) create: u64,
    /// Nanoseconds to create one more, at the end.
    pub(super) one_more: u64,
    /// Bytes of anonymous memory that an idle one takes.
    pub(super) idle: u64,
    /// Nanoseconds of a put; 0: not known.
    pub(super) put: u64,
    /// Nanoseconds to close the database.
    pub(super) close: u64,
    /// Nanoseconds to open the database with all of them.
    pub(super) open: u64,
}

impl Cost {
    pub(super) fn line(&self) -> String {
        let Cost { create, one_more, idle, put, close, open } = self;
        format!("COST {create} {one_more} {idle} {put} {close} {open}")
    }

    /// The cost in what a child printed.
    pub(super) fn find(text: &str) -> Option<Cost> {
        let line = text.lines().find_map(|line| line.strip_prefix("COST "))?;
        let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [create, one_more, idle, put, close, open] = numbers[..] else { return None };
        Some(Cost { create, one_more, idle, put, close, open })
    }
}

/// Nanoseconds since `began`.
pub(super) fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Runs `work` and returns its nanoseconds.
///
/// # Errors
/// Those of `work`.
pub(super) fn timed<E>(work: impl FnOnce() -> Result<(), E>) -> Result<u64, E> {
    let began = Instant::now();
    work().map(|()| since(began))
}

/// The costs of the engines, a line for each, as a table.
pub(super) fn table(engines: &[(&str, Cost)]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header("engine|create µs|one more ms|idle KiB|put µs|close s|open s".split('|'));
    for (engine, cost) in engines {
        let time = |nanos: u64, unit: Duration| match nanos {
            0 => "-".to_owned(),
            nanos => format!("{:.2}", nanos as f64 / unit.as_nanos() as f64),
        };
        table.add_row([
            (*engine).to_owned(),
            time(cost.create, Duration::from_micros(1)),
            time(cost.one_more, Duration::from_millis(1)),
            format!("{:.1}", cost.idle as f64 / (MIB as f64 / 1024.0)),
            time(cost.put, Duration::from_micros(1)),
            time(cost.close, Duration::from_secs(1)),
            time(cost.open, Duration::from_secs(1)),
        ]);
    }
    for column in table.column_iter_mut().filter(|column| column.index != 0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_as_they_were_printed() {
        let cost = Cost { create: 1500, one_more: 2, idle: 10_240, put: 4, close: 5, open: 6 };
        assert_eq!(Cost::find(&format!("PEAK x\n{}\nROW a=1", cost.line())), Some(cost));
        assert_eq!(Cost::find("ROW a=1"), None);
        let shown = table(&[("AshlarDB", cost)]);
        assert!(shown.contains("1.50") && shown.contains("10.0"), "{shown}");
    }
}
