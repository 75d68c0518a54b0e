//! What the operating system counted for this process.
//!
//! Processor time comes from the process and thread clocks, bytes from `/proc/self/io`, memory from `/proc/self/status`.
//! A machine without `/proc` counts zero bytes; its record says `null` there.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    process: Duration,
    thread: Duration,
    io: Option<Io>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Io {
    /// Bytes given to write calls.
    wchar: u64,
    /// Bytes of pages dirtied, less what was thrown away before it was written.
    write_bytes: u64,
}

/// What happened between two moments.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    /// Seconds on the wall.
    pub seconds: f64,
    /// Processor seconds of all threads.
    pub cpu: f64,
    /// Processor seconds of the thread that asked both times.
    pub cpu_thread: f64,
    /// Bytes given to write calls.
    pub wchar: Option<u64>,
    /// Bytes of pages dirtied.
    pub write_bytes: Option<u64>,
}

impl Moment {
    /// Now.
    pub fn now() -> Moment {
        Moment {
            at: Instant::now(),
            process: clock(ClockId::ProcessCPUTime),
            thread: clock(ClockId::ThreadCPUTime),
            io: io(),
        }
    }

    /// From this moment to `later`.
    pub fn until(&self, later: &Moment) -> Passed {
        let io = |of: fn(&Io) -> u64| Some(of(later.io.as_ref()?).saturating_sub(of(self.io.as_ref()?)));
        Passed {
            seconds: (later.at - self.at).as_secs_f64(),
            cpu: later.process.saturating_sub(self.process).as_secs_f64(),
            cpu_thread: later.thread.saturating_sub(self.thread).as_secs_f64(),
            wchar: io(|io| io.wchar),
            write_bytes: io(|io| io.write_bytes),
        }
    }
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

fn io() -> Option<Io> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let field = |name| field(&text, name);
    Some(Io {
        wchar: field("wchar:")?,
        write_bytes: field("write_bytes:")?.saturating_sub(field("cancelled_write_bytes:")?),
    })
}

/// The most memory that was resident since [`forget_peak`], in bytes.
pub fn peak_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    field(&text, "VmHWM:").map(|kib| kib * 1024)
}

/// Begins the peak anew at what is resident now. Where it cannot, the peak is that of the process.
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line[name.len()..].split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        let before = Moment::now();
        std::fs::write(dir.path().join("f"), vec![1_u8; 1 << 20]).unwrap();
        let passed = before.until(&Moment::now());
        assert!(passed.wchar.unwrap() >= 1 << 20, "{passed:?}");
        assert!(passed.seconds > 0.0 && passed.cpu > 0.0 && passed.cpu_thread > 0.0, "{passed:?}");
    }

    #[test]
    fn fields_are_found() {
        assert_eq!(field("Name: x\nVmHWM:\t  12 kB\n", "VmHWM:"), Some(12));
        assert_eq!(field("a: 1", "b:"), None);
        assert!(peak_memory().unwrap() > 1 << 20);
    }
}
