//! The operating system's counters for this process.
//!
//! Processor time comes from the process and thread clocks, bytes and calls from `/proc/self/io`, memory from
//! `/proc/self/status`, page faults and context switches from `getrusage` (the module `usage`). What a machine does not count is
//! `None`.

use crate::usage::usage;
use ashlar_report::record::{Cpu, Io, Memory};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// Counters at one moment.
#[derive(Clone, Debug)]
pub struct Moment {
    at: Instant,
    process: Duration,
    thread: Duration,
    io: Io,
    usage: Cpu,
}

/// The differences of the counters between two moments.
#[derive(Clone, Debug, Default)]
pub struct Passed {
    /// Seconds of wall time.
    pub seconds: f64,
    /// Processor seconds of all threads.
    pub cpu: f64,
    /// Processor seconds of the calling thread.
    pub cpu_thread: f64,
    /// Bytes and calls.
    pub io: Io,
    /// Context switches, page faults, and processor time by mode, of all threads; the rest of it is unknown.
    pub usage: Cpu,
}

impl Moment {
    /// The counters now.
    pub fn now() -> Moment {
        Moment {
            at: Instant::now(),
            process: clock(ClockId::ProcessCPUTime),
            thread: clock(ClockId::ThreadCPUTime),
            io: io(),
            usage: Cpu { machine_cs: machine_switches(), ..usage() },
        }
    }

    /// The differences from this moment to `later`.
    pub fn until(&self, later: &Moment) -> Passed {
        let more = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        let io = |of: fn(&Io) -> Option<u64>| more(of(&later.io), of(&self.io));
        let cpu = |of: fn(&Cpu) -> Option<u64>| more(of(&later.usage), of(&self.usage));
        let time = |of: fn(&Cpu) -> Option<f64>| Some((of(&later.usage)? - of(&self.usage)?).max(0.0));
        Passed {
            seconds: (later.at - self.at).as_secs_f64(),
            cpu: later.process.saturating_sub(self.process).as_secs_f64(),
            cpu_thread: later.thread.saturating_sub(self.thread).as_secs_f64(),
            io: Io {
                proc_wchar: io(|io| io.proc_wchar),
                proc_rchar: io(|io| io.proc_rchar),
                proc_write: io(|io| io.proc_write),
                proc_read: io(|io| io.proc_read),
                syscw: io(|io| io.syscw),
                syscr: io(|io| io.syscr),
                ..Io::default()
            },
            usage: Cpu {
                minor_faults: cpu(|cpu| cpu.minor_faults),
                major_faults: cpu(|cpu| cpu.major_faults),
                vol_cs: cpu(|cpu| cpu.vol_cs),
                invol_cs: cpu(|cpu| cpu.invol_cs),
                machine_cs: cpu(|cpu| cpu.machine_cs),
                user_s: time(|cpu| cpu.user_s),
                sys_s: time(|cpu| cpu.sys_s),
                ..Cpu::default()
            },
        }
    }
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

fn io() -> Io {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let field = |name| field(&text, name);
    let cancelled = field("cancelled_write_bytes:").unwrap_or(0);
    Io {
        proc_wchar: field("wchar:"),
        proc_rchar: field("rchar:"),
        proc_write: field("write_bytes:").map(|bytes| bytes.saturating_sub(cancelled)),
        proc_read: field("read_bytes:"),
        syscw: field("syscw:"),
        syscr: field("syscr:"),
        ..Io::default()
    }
}

/// Context switches of the whole machine since it started.
fn machine_switches() -> Option<u64> {
    std::fs::read_to_string("/proc/stat").ok().and_then(|text| field(&text, "ctxt"))
}

/// Bytes given to write calls since the process began; 0 where the system does not count them.
pub fn written() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    field(&text, "wchar:").unwrap_or(0)
}

/// Resident now and at most since [`forget_peak`], in bytes.
pub fn memory() -> Memory {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name| field(&text, name).map(|kib| kib * 1024);
    Memory { rss_peak: bytes("VmHWM:"), rss: bytes("VmRSS:"), file: bytes("RssFile:"), ..Memory::default() }
}

/// Resets the peak to the resident bytes now. If the system cannot do this, the peak is that of the process.
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
        assert!(passed.io.proc_wchar.unwrap() >= 1 << 20 && passed.io.syscw.unwrap() >= 1, "{passed:?}");
        assert!(passed.seconds > 0.0 && passed.cpu > 0.0 && passed.cpu_thread > 0.0, "{passed:?}");
        assert!(passed.usage.machine_cs.is_some() && passed.usage.vol_cs.is_some(), "{passed:?}");
        assert!(passed.usage.minor_faults.is_some() && passed.usage.user_s.is_some(), "{passed:?}");
    }

    #[test]
    fn fields_are_found() {
        assert_eq!(field("Name: x\nVmHWM:\t  12 kB\n", "VmHWM:"), Some(12));
        assert_eq!(field("a: 1", "b:"), None);
        let memory = memory();
        assert!(
            memory.rss_peak.unwrap() >= memory.rss.unwrap() && memory.rss.unwrap() > 1 << 20,
            "{memory:?}"
        );
    }
}
