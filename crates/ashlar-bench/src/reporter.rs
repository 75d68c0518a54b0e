//! The file of intervals: the operations of all threads in each interval.
//!
//! ```text
//! secs_elapsed,interval_qps
//! 1,40213
//! ```
//! The next benchmark replaces the file. Threads that are not measured count too, as in db_bench.

use ashlar_base::Result;
use ashlar_env::{Fs, WriteFile};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Writes a line per interval.
pub(crate) struct Reporter {
    file: Arc<dyn WriteFile>,
    at: u64,
    every: Duration,
    start: Duration,
    lines: u32,
    last_total: u64,
}

impl Reporter {
    /// Creates the file, and replaces an old one.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn new(fs: &dyn Fs, path: &Path, every: Duration, now: Duration) -> Result<Reporter> {
        let file = fs.create(path)?;
        let mut reporter = Reporter { file, at: 0, every, start: now, lines: 0, last_total: 0 };
        reporter.write("secs_elapsed,interval_qps\n")?;
        Ok(reporter)
    }

    /// The time until the next line is due.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        (self.start + self.every * (self.lines + 1)).saturating_sub(now)
    }

    /// Writes the lines that are due. `total` is the number of operations so far.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn tell(&mut self, now: Duration, total: u64) -> Result<()> {
        if !self.left(now).is_zero() {
            return Ok(());
        }
        self.lines =
            u32::try_from((now - self.start).as_nanos() / self.every.as_nanos().max(1)).unwrap_or(u32::MAX);
        let done = total.saturating_sub(self.last_total);
        self.last_total = total;
        let rate = done as f64 / self.every.as_secs_f64();
        let seconds = (self.every * self.lines).as_secs();
        self.write(&format!("{seconds},{rate:.0}\n"))
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.file.write_at(text.as_bytes(), self.at)?;
        self.at += text.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_env::Env;

    #[test]
    fn a_line_per_interval() {
        let env = Env::mem();
        let path = Path::new("/report.csv");
        let second = Duration::from_secs(1);
        for _ in 0..2 {
            let mut reporter = Reporter::new(&*env.fs, path, second, second).unwrap();
            reporter.tell(second * 3 / 2, 50).unwrap();
            assert_eq!(reporter.left(second * 3 / 2), second / 2);
            reporter.tell(second * 2, 100).unwrap();
            reporter.tell(second * 3, 350).unwrap();
        }
        let file = env.fs.open_read(path).unwrap();
        let mut text = vec![0; 200];
        let len = file.read_at(&mut text, 0).unwrap();
        assert_eq!(String::from_utf8_lossy(&text[..len]), "secs_elapsed,interval_qps\n1,100\n2,250\n");
    }
}
