//! What `jdb_bench` prints: the line of the document, and the line of details behind it.

use ashlar_report::record::Status;

/// The figures of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    /// Operations.
    pub done: u64,
    /// Reads that found their entry; `None` for writes.
    pub found: Option<u64>,
    /// Tasks that finished, of all tasks.
    pub finished: [u64; 2],
    /// Seconds of the wall.
    pub seconds: f64,
    /// Processor time of the JVM.
    pub cpu_seconds: f64,
    /// Bytes of the keys and values that were put or found.
    pub bytes: u64,
    /// The peak of resident memory in KiB.
    pub peak_kib: Option<u64>,
    /// Puts of the writer beside the readers.
    pub puts_beside: u64,
}

impl Measured {
    /// Operations per second.
    pub fn per_sec(&self) -> f64 {
        self.done as f64 / self.seconds.max(1e-9)
    }

    /// Whether the figures count, where so many operations were asked for.
    pub fn status(&self, operations: u64) -> Status {
        let [finished, tasks] = self.finished;
        let why = if finished != tasks {
            format!("{finished} of {tasks} tasks finished")
        } else if self.done != operations {
            format!("{} of {operations} operations were done", self.done)
        } else if let Some(found) = self.found.filter(|found| *found != self.done) {
            format!("{found} of {} entries were found", self.done)
        } else {
            return Status::Ok;
        };
        Status::Void { why }
    }
}

/// The figures of the first workload in what the program printed.
pub fn parse(lines: &[String]) -> Option<Measured> {
    let (result, details) =
        lines.iter().zip(lines.iter().skip(1)).find(|(line, _)| line.contains(" task(s) finished."))?;
    let mut measured = result_of(result)?;
    for word in details.split_once(" details: ")?.1.split_whitespace() {
        let (name, value) = word.split_once('=')?;
        match name {
            "seconds" => measured.seconds = value.parse().ok()?,
            "cpu_seconds" => measured.cpu_seconds = value.parse().ok()?,
            "bytes" => measured.bytes = value.parse().ok()?,
            "peak_kib" => measured.peak_kib = value.parse().ok(),
            "puts_beside" => measured.puts_beside = value.parse().ok()?,
            _ => {}
        }
    }
    Some(measured)
}

/// `fillseq          :     2.48233 micros/op;  311.2 MB/s; 1000000000 ops done;  1 / 1 task(s) finished.`
fn result_of(line: &str) -> Option<Measured> {
    let parts: Vec<&str> = line.split_once(" : ")?.1.split(';').map(str::trim).collect();
    let [_, _, count, tasks] = parts[..] else { return None };
    let [finished, all] = pair(tasks.strip_suffix(" task(s) finished.")?)?;
    let (found, done) = match count.strip_suffix(" ops done") {
        Some(done) => (None, done.parse().ok()?),
        None => {
            let [found, done] = pair(count.strip_suffix(" found")?)?;
            (Some(found), done)
        }
    };
    Some(Measured { done, found, finished: [finished, all], ..Measured::default() })
}

fn pair(text: &str) -> Option<[u64; 2]> {
    let (one, other) = text.split_once(" / ")?;
    Some([one.trim().parse().ok()?, other.trim().parse().ok()?])
}

/// The file of the native half that the JVM had mapped.
pub fn native_half(lines: &[String]) -> Option<&str> {
    lines.iter().find_map(|line| line.strip_prefix("Native half:")).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn the_lines_of_the_document_are_read() {
        let said = "Native half:     /x/librocksdbjni.so\n\
            readrandom       :     7.67180 micros/op;  101.4 MB/s; 1000000000 / 1000000000 found;  32 / 32 task(s) finished.\n\
            readrandom       details: seconds=2.500000 cpu_seconds=4.000000 bytes=816 peak_kib=-1 puts_beside=7\n";
        let measured = parse(&lines(said)).unwrap();
        assert_eq!(
            (measured.done, measured.found, measured.finished),
            (1_000_000_000, Some(1_000_000_000), [32, 32])
        );
        assert_eq!(
            (measured.seconds, measured.cpu_seconds, measured.peak_kib, measured.puts_beside),
            (2.5, 4.0, None, 7)
        );
        assert_eq!(measured.status(1_000_000_000), Status::Ok);
        assert_eq!(native_half(&lines(said)), Some("/x/librocksdbjni.so"));
        let fill = result_of(
            "fillseq          :     2.48233 micros/op;  311.2 MB/s; 1000000000 ops done;  1 / 1 task(s) finished.",
        );
        assert_eq!(fill.map(|fill| (fill.done, fill.found)), Some((1_000_000_000, None)));
        assert_eq!(parse(&lines("readrandom : nothing")), None);
    }

    #[test]
    fn figures_of_lost_entries_do_not_count() {
        let measured = Measured { done: 10, found: Some(9), finished: [1, 1], ..Measured::default() };
        let why = |measured: &Measured, operations| measured.status(operations).text();
        assert_eq!(why(&measured, 10), "void: 9 of 10 entries were found");
        assert_eq!(why(&measured, 11), "void: 10 of 11 operations were done");
        assert_eq!(why(&Measured { finished: [0, 1], ..measured }, 10), "void: 0 of 1 tasks finished");
    }
}
