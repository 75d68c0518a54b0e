//! Checks with `strace` that an engine waits for the device when it should, and only then.
//!
//! Traces two short runs that differ only in the number of puts, so that open and close cancel out. Counts the calls that
//! wait: `fsync`, `fdatasync`, `msync`, `sync_file_range`, and writes to files opened with `O_DSYNC` or `O_SYNC`. With
//! synchronous puts, each further put adds at least one such call; otherwise puts add fewer. Values are short, so that no
//! memtable fills: a flush would wait too.

use super::{Matrix, process};
use crate::job::{Job, Step, Workload};
use ashlar_peers::settings::Settings;
use ashlar_report::record::{Record, Status};
use std::collections::BTreeSet;
use std::process::Command;

const CALLS: &str =
    "trace=fsync,fdatasync,msync,sync_file_range,openat,write,writev,pwrite64,pwritev,pwritev2";
const FEW: u64 = 20;
const MORE: u64 = 84;
const VALUE_BYTES: usize = 100;

/// The result of the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Whether each put should wait.
    pub synchronous: bool,
    /// The number of waits and of puts, or the reason why they could not be counted.
    pub seen: Result<(u64, u64), String>,
}

impl Checked {
    /// In words.
    pub fn text(&self) -> String {
        let puts = if self.synchronous { "synchronous puts" } else { "puts that need not wait" };
        match &self.seen {
            Ok((waits, count)) => format!("{waits} waits for the device in {count} {puts}"),
            Err(why) => format!("not checked: {why}"),
        }
    }

    /// Adds the result to a record. The figures of an engine that did not behave as requested are void.
    pub fn mark(&self, record: &mut Record) {
        record.params.options.insert("durability".into(), self.text());
        if record.status != Status::Ok {
            return;
        }
        let what = match self.seen {
            Ok((waits, puts)) if self.synchronous && waits < puts => "not synchronous",
            Ok((waits, puts)) if !self.synchronous && waits >= puts => "synchronous, which was not asked for",
            _ => return,
        };
        record.status = Status::Void { why: format!("{what}: {}", self.text()) };
    }
}

/// Traces the engine of `job`, opened as there.
pub fn check(matrix: &Matrix, job: &Job) -> Checked {
    let counted = |puts: u64| {
        let step = Step::new("probe", Workload::Fillseq, puts);
        let value_bytes = job.settings.value_bytes.min(VALUE_BYTES);
        let settings = Settings { value_bytes, ..job.settings.clone() };
        let small = Job { settings, steps: vec![step], keys: puts, probe: true, ..job.clone() };
        waits(matrix, &small)
    };
    let more = |few: u64| Ok((counted(MORE)?.saturating_sub(few), MORE - FEW));
    Checked { synchronous: job.settings.sync, seen: counted(FEW).and_then(more) }
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

/// Counts the calls that wait: syncs, and writes through a descriptor that was opened with `O_SYNC` or `O_DSYNC`. The same
/// file may also be open without these flags. A call that another thread interrupted has two lines and counts once.
fn count(trace: &str) -> u64 {
    let mut waiting = BTreeSet::new();
    let mut interrupted = BTreeSet::new();
    let mut count = 0;
    for line in trace.lines() {
        let (thread, call) = line.trim_start().split_once(' ').unwrap_or((line, ""));
        let call = call.trim_start();
        if let Some(end) = call.strip_prefix("<... openat resumed>") {
            let always = interrupted.remove(thread);
            waiting.extend(end.rsplit_once("= ").map(|(_, file)| file).filter(|_| always));
            continue;
        }
        let Some((name, arguments)) = call.split_once('(') else { continue };
        let file = arguments.split_once('>').map(|(file, _)| file);
        let always = arguments.contains("O_DSYNC") || arguments.contains("O_SYNC");
        match name {
            "openat" if !always => {}
            "openat" if arguments.ends_with("<unfinished ...>") => drop(interrupted.insert(thread)),
            "openat" => waiting.extend(arguments.rsplit_once("= ").map(|(_, file)| file)),
            "fsync" | "fdatasync" | "msync" | "sync_file_range" => count += 1,
            _ => count += u64::from(file.is_some_and(|file| waiting.contains(format!("{file}>").as_str()))),
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_once() {
        let trace = "12 fdatasync(3</d/log>)   = 0\n13 fsync(4</d/x> <unfinished ...>\n\
                     12 msync(0x7f, 4096, MS_SYNC) = 0\n13 <... fsync resumed>)   = 0\n12 +++ exited with 0 +++\n\
                     12 openat(AT_FDCWD</>, \"/d/0.log\", O_RDWR|O_CREAT|O_DSYNC, 0644) = 6</d/0.log>\n\
                     12 openat(AT_FDCWD</>, \"/d/0.log\", O_RDWR) = 8</d/0.log>\n\
                     12 openat(AT_FDCWD</>, \"/d/1.sst\", O_RDWR|O_CREAT, 0644) = 7</d/1.sst>\n\
                     12 openat(AT_FDCWD</>, \"/d/2\", O_WRONLY|O_SYNC <unfinished ...>\n\
                     13 <... openat resumed>) = 9</d/3>\n12 <... openat resumed>) = 5</d/2>\n\
                     12 pwrite64(6</d/0.log>, \"}\"..., 141, 8) = 141\n12 write(7</d/1.sst>, \"a\"..., 9) = 9\n\
                     12 pwrite64(8</d/0.log>, \"}\"..., 141, 8) = 141\n12 write(9</d/3>, \"a\"..., 9) = 9\n\
                     13 write(5</d/2>, \"b\"..., 9) = 9\n";
        assert_eq!(count(trace), 5);
    }

    #[test]
    fn an_engine_that_does_the_other_thing_is_void() {
        let of = |synchronous, seen: Result<(u64, u64), String>| {
            let mut record = Record::default();
            Checked { synchronous, seen }.mark(&mut record);
            (record.status.text(), record.params.options["durability"].clone())
        };
        assert_eq!(of(true, Ok((64, 64))).0, "");
        assert_eq!(
            of(false, Ok((2, 64))),
            (String::new(), "2 waits for the device in 64 puts that need not wait".into())
        );
        assert_eq!(of(true, Err("no strace".into())), (String::new(), "not checked: no strace".into()));
        assert_eq!(
            of(true, Ok((3, 64))).0,
            "void: not synchronous: 3 waits for the device in 64 synchronous puts"
        );
        assert_eq!(
            of(false, Ok((64, 64))).0,
            "void: synchronous, which was not asked for: 64 waits for the device in 64 puts that need not wait"
        );
    }
}
