//! The file of records: a [`Header`] first, then a [`Record`] a line. A file may hold several runs, each with its header.

use super::{Record, SCHEMA};
use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// The first line of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The id of the run.
    pub run_id: String,
    /// The start of the run: `2026-01-31T12:00:00Z`.
    pub time: String,
    /// Version of the measuring program.
    pub suite_version: String,
    /// The commit of the program, if known.
    pub suite_commit: Option<String>,
    /// The command line.
    pub command: String,
    /// The machine.
    pub machine: Machine,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Line {
    /// About the machine.
    Machine(Box<Header>),
    /// About a run.
    Run(Box<Record>),
}

impl Line {
    /// The line, without its newline.
    pub fn text(&self) -> String {
        // The keys are strings and there are no cycles, so serialisation cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The content of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// The headers, in order; the last one is shown.
    pub headers: Vec<Header>,
    /// All records, in order.
    pub records: Vec<Record>,
}

/// Reads a file. A last line without a newline is from an interrupted run, and is left out.
///
/// # Errors
/// A line is not a record of this schema; the text names the line and the reason.
pub fn parse(text: &str) -> Result<Run, String> {
    let mut run = Run::default();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let whole = line.ends_with('\n');
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str::<Line>(line) {
            Ok(Line::Machine(header)) => run.headers.push(known(header.schema, index).map(|()| *header)?),
            Ok(Line::Run(record)) => run.records.push(known(record.schema, index).map(|()| *record)?),
            Err(_) if !whole => {}
            Err(e) => return Err(format!("line {}: {e}", index + 1)),
        }
    }
    Ok(run)
}

fn known(schema: u32, index: usize) -> Result<(), String> {
    if schema == SCHEMA {
        return Ok(());
    }
    Err(format!("line {}: schema {schema}, and this program reads {SCHEMA}", index + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Latency, Ops, Status};

    #[test]
    fn a_file_comes_back() {
        let header = Header { schema: SCHEMA, run_id: "r".into(), ..Header::default() };
        let mut record = Record::without_figures("x", Status::NotHere { why: "no library".into() });
        let text = format!("{}\n", Line::Machine(Box::new(header.clone())).text());
        let text = format!("{text}{}\n", Line::Run(Box::new(record.clone())).text());
        record.ops = Some(Ops { total: 1, ..Ops::default() });
        record.status = Status::Ok;
        let text = format!("{text}{}\n", Line::Run(Box::new(record.clone())).text());
        let run = parse(&text).unwrap();
        assert_eq!(run.headers, [header]);
        assert_eq!(run.records.len(), 2);
        assert_eq!(run.records[1], record);
        assert_eq!(run.records[0].status.text(), "not here: no library");
        assert!(!run.records[0].counts() && run.records[1].counts());
        assert!(text.contains("\"total\":1") && text.contains("\"ops\":null"), "{text}");
    }

    #[test]
    fn read_amplification_from_the_systems_counts() {
        let mut record = Record { ops: Some(Ops { total: 4, ..Ops::default() }), ..Record::default() };
        (record.io_end.syscr, record.io_end.proc_rchar) = (Some(6), Some(8192));
        assert_eq!((record.read_calls(), record.read_kib()), (None, None), "writes");
        record.ops = record.ops.map(|ops| Ops { found: Some(4), ..ops });
        assert_eq!((record.read_calls(), record.read_kib()), (Some(1.5), Some(2.0)));
        record.amp.ra_sys = Some(0.0);
        assert_eq!(record.read_calls(), Some(0.0), "what was measured is not replaced");
    }

    #[test]
    fn write_calls_say_nothing_of_mapped_writes() {
        let of = |engine: &str| {
            let mut record = Record::without_figures(engine, Status::Ok);
            record.amp.wa_proc = Some(0.19);
            record.written()
        };
        assert_eq!(["lmdb", "treedb"].map(of), [Some(0.19), None]);
    }

    #[test]
    fn a_percentile_needs_ten_longer_waits() {
        let p999 = |count| Latency { count, p999: 7.0, ..Latency::default() }.percentile(0.001, 7.0);
        assert_eq!([0, 9_999, 10_000].map(p999), [None, None, Some(7.0)]);
    }

    #[test]
    fn a_broken_off_run_is_read_and_others_refused() {
        let line = Line::Run(Box::new(Record { schema: SCHEMA, ..Record::default() })).text();
        let cut = format!("{line}\n{}", &line[..40]);
        assert_eq!(parse(&cut).unwrap().records.len(), 1);
        let why = parse(&format!("{line}\n{{}}\n")).unwrap_err();
        assert!(why.starts_with("line 2: "), "{why}");
        let newer = line.replace("\"schema\":1", "\"schema\":9");
        assert_eq!(parse(&newer).unwrap_err(), "line 1: schema 9, and this program reads 1");
    }
}
