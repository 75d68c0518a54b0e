//! Whether an engine waits for the device when it is told to: what it really called, seen by `strace`.
//!
//! Two short runs that differ only in the number of synchronous puts are traced. The calls that wait (`fsync`, `fdatasync`,
//! `msync`, `sync_file_range`, and writes to files opened with `O_DSYNC` or `O_SYNC`) must grow by one for each further put at
//! least; opening and closing cancel out.

use super::{Matrix, process};
use crate::job::{Job, Step, Workload};
use ashlar_report::record::{Record, Status};
use std::collections::BTreeSet;
use std::process::Command;

const CALLS: &str =
    "trace=fsync,fdatasync,msync,sync_file_range,openat,write,writev,pwrite64,pwritev,pwritev2";
const FEW: u64 = 20;
const MORE: u64 = 84;

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// So many waits for so many synchronous puts.
    Waits(u64, u64),
    /// Why it could not be seen.
    NotChecked(String),
}

impl Checked {
    /// In words.
    pub fn text(&self) -> String {
        match self {
            Checked::Waits(waits, puts) => format!("{waits} waits for the device in {puts} synchronous puts"),
            Checked::NotChecked(why) => format!("not checked: {why}"),
        }
    }

    /// Notes it in a record of a synchronous row; a figure of an engine that did not wait is void.
    pub fn mark(&self, record: &mut Record) {
        record.params.options.insert("durability".into(), self.text());
        if let Checked::Waits(waits, puts) = self
            && waits < puts
            && record.status == Status::Ok
        {
            record.status = Status::Void { why: format!("not synchronous: {}", self.text()) };
        }
    }
}

/// Traces the engine of `job`, opened as there.
pub fn check(matrix: &Matrix, job: &Job) -> Checked {
    let counted = |puts: u64| {
        let step = Step::new("probe", Workload::Fillseq, puts);
        let small = Job { steps: vec![step], keys: puts, probe: true, ..job.clone() };
        waits(matrix, &small)
    };
    match counted(FEW).and_then(|few| Ok((few, counted(MORE)?))) {
        Ok((few, more)) => Checked::Waits(more.saturating_sub(few), MORE - FEW),
        Err(why) => Checked::NotChecked(why),
    }
}

fn waits(matrix: &Matrix, job: &Job) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let trace = matrix.dir.join(format!("ashlar-compare-trace-{}", std::process::id()));
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-s", "1", "-e", CALLS, "-o"]);
    command.arg(&trace).arg(program);
    let done = process::watched(matrix, job, command);
    let text = std::fs::read_to_string(&trace);
    // A trace that was never begun cannot be removed.
    let _ = std::fs::remove_file(&trace);
    done.map_err(|status| format!("strace: {}", status.text()))?;
    Ok(count(&text.map_err(|e| e.to_string())?))
}

/// Calls that wait: syncs, and writes to a file that was opened to wait with every write. A call that another thread
/// interrupted stands on two lines and counts once.
fn count(trace: &str) -> u64 {
    let waits_always = |line: &&str| line.contains("O_DSYNC") || line.contains("O_SYNC");
    let opened = trace.lines().filter(|line| line.contains("openat(")).filter(waits_always);
    let files: BTreeSet<&str> = opened.filter_map(|line| file(line.split('"').nth(1)?)).collect();
    let waits = |line: &&str| {
        let Some((before, arguments)) = line.split_once('(') else { return false };
        match before.split_whitespace().last() {
            Some("fsync" | "fdatasync" | "msync" | "sync_file_range") => true,
            Some("write" | "pwrite64" | "pwritev" | "pwritev2" | "writev") => {
                let path = arguments.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
                path.and_then(|(path, _)| file(path)).is_some_and(|name| files.contains(name))
            }
            _ => false,
        }
    };
    trace.lines().filter(waits).count() as u64
}

/// The name without its folder.
fn file(path: &str) -> Option<&str> {
    path.rsplit('/').next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_once() {
        let trace = "12 fdatasync(3</d/log>)   = 0\n13 fsync(4</d/x> <unfinished ...>\n\
                     12 msync(0x7f, 4096, MS_SYNC) = 0\n13 <... fsync resumed>)   = 0\n12 +++ exited with 0 +++\n\
                     12 openat(AT_FDCWD</>, \"/d/0.log\", O_RDWR|O_CREAT|O_DSYNC, 0644) = 6</d/0.log>\n\
                     12 openat(AT_FDCWD</>, \"/d/1.sst\", O_RDWR|O_CREAT, 0644) = 7</d/1.sst>\n\
                     12 pwrite64(6</d/0.log>, \"}\"..., 141, 8) = 141\n12 write(7</d/1.sst>, \"a\"..., 9) = 9\n";
        assert_eq!(count(trace), 4);
    }

    #[test]
    fn an_engine_that_does_not_wait_is_void() {
        let mut record = Record::default();
        Checked::Waits(64, 64).mark(&mut record);
        Checked::NotChecked("no strace".into()).mark(&mut record);
        assert_eq!(record.status, Status::Ok);
        assert_eq!(record.params.options["durability"], "not checked: no strace");
        Checked::Waits(3, 64).mark(&mut record);
        let text = record.status.text();
        assert_eq!(text, "void: not synchronous: 3 waits for the device in 64 synchronous puts");
    }
}
