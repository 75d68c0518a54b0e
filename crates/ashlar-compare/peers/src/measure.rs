//! The operating system's counters for this process.
//!
//! Processor time comes from the process and thread clocks, bytes and calls from `/proc/self/io`, memory from
//! `/proc/self/status`, page faults and context switches from `getrusage` (the module `usage`). What a machine does not count is
//! `None`.
//!
//! An engine may be a server beside this process ([`beside`]). Then the counters are the sums of both processes, and context switches
//! are unknown: the system counts them per thread and forgets those of threads that have ended.

use crate::usage::usage;
use ashlar_report::record::{Cpu, Io, Memory};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The process whose counters are added; 0: none.
static BESIDE: AtomicU32 = AtomicU32::new(0);

/// From now on, adds the counters of `process`, a server that this process started. `None`: of no other process.
pub fn beside(process: Option<u32>) {
    // The number protects no other data.
    BESIDE.store(process.unwrap_or(0), Ordering::Relaxed);
}

/// The text of a file of the system about the process beside this one. `None`: there is no such process, or it has ended.
fn of_beside(file: &str) -> Option<String> {
    let process = BESIDE.load(Ordering::Relaxed);
    (process != 0).then(|| std::fs::read_to_string(format!("/proc/{process}/{file}")).ok()).flatten()
}

/// Ticks of `/proc` in a second.
const TICKS: f64 = 100.0;

/// Processor time and page faults of a process, from its file `stat`.
fn of_stat(text: &str) -> Option<Cpu> {
    // The name of a program may contain blanks, so the fields are counted from the end of the name.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Cpu {
        minor_faults: number(7),
        major_faults: number(9),
        user_s: number(11).map(|ticks| ticks as f64 / TICKS),
        sys_s: number(12).map(|ticks| ticks as f64 / TICKS),
        ..Cpu::default()
    })
}

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
        let mut process = clock(ClockId::ProcessCPUTime);
        let mut usage = Cpu { machine_cs: machine_switches(), ..usage() };
        if let Some(server) = of_beside("stat").as_deref().and_then(of_stat) {
            let seconds = server.user_s.unwrap_or(0.0) + server.sys_s.unwrap_or(0.0);
            process += Duration::from_secs_f64(seconds);
            usage = Cpu {
                minor_faults: sum(usage.minor_faults, server.minor_faults),
                major_faults: sum(usage.major_faults, server.major_faults),
                user_s: usage.user_s.zip(server.user_s).map(|(a, b)| a + b),
                sys_s: usage.sys_s.zip(server.sys_s).map(|(a, b)| a + b),
                vol_cs: None,
                invol_cs: None,
                ..usage
            };
        }
        Moment { at: Instant::now(), process, thread: clock(ClockId::ThreadCPUTime), io: io(), usage }
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

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

fn io() -> Io {
    let own = of_io(&std::fs::read_to_string("/proc/self/io").unwrap_or_default());
    let Some(server) = of_beside("io").map(|text| of_io(&text)) else { return own };
    Io {
        proc_wchar: sum(own.proc_wchar, server.proc_wchar),
        proc_rchar: sum(own.proc_rchar, server.proc_rchar),
        proc_write: sum(own.proc_write, server.proc_write),
        proc_read: sum(own.proc_read, server.proc_read),
        syscw: sum(own.syscw, server.syscw),
        syscr: sum(own.syscr, server.syscr),
        ..Io::default()
    }
}

fn of_io(text: &str) -> Io {
    let field = |name| field(text, name);
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
    io().proc_wchar.unwrap_or(0)
}

/// Resident now and at most since [`forget_peak`], in bytes.
pub fn memory() -> Memory {
    let own = of_status(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    let Some(server) = of_beside("status").map(|text| of_status(&text)) else { return own };
    Memory {
        rss_peak: sum(own.rss_peak, server.rss_peak),
        rss: sum(own.rss, server.rss),
        file: sum(own.file, server.file),
        ..Memory::default()
    }
}

fn of_status(text: &str) -> Memory {
    let bytes = |name| field(text, name).map(|kib| kib * 1024);
    Memory { rss_peak: bytes("VmHWM:"), rss: bytes("VmRSS:"), file: bytes("RssFile:"), ..Memory::default() }
}

/// Resets the peak to the resident bytes now. If the system cannot do this, the peak is that of the process.
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let process = BESIDE.load(Ordering::Relaxed);
    if process != 0 {
        let _ = std::fs::write(format!("/proc/{process}/clear_refs"), "5");
    }
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

    /// Another process stands in for the server. The parts are compared, because a test beside this one counts on its own process only.
    #[test]
    fn the_counters_of_a_server_are_found() {
        let stat = "7 (a (strange) name) S 1 7 7 0 -1 4194560 11 0 3 0 250 50 0 0 20 0 1 0";
        let cpu = of_stat(stat).unwrap();
        assert_eq!((cpu.minor_faults, cpu.major_faults), (Some(11), Some(3)));
        assert_eq!((cpu.user_s, cpu.sys_s, cpu.vol_cs), (Some(2.5), Some(0.5), None));
        assert!(of_stat("nothing").is_none());
        let io = of_io("rchar: 5\nwchar: 6\nwrite_bytes: 9\ncancelled_write_bytes: 4\n");
        assert_eq!((io.proc_rchar, io.proc_wchar, io.proc_write), (Some(5), Some(6), Some(5)));
        assert_eq!((sum(Some(1), Some(2)), sum(None, Some(2))), (Some(3), None));
    }
}
