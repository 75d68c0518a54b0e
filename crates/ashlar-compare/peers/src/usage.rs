//! What the kernel counted for this process: `getrusage(2)`, with threads that have ended included.
//!
//! The crates that wrap system calls do not offer it, so it is declared here. Source: POSIX `sys/resource.h`, Linux
//! `include/uapi/linux/resource.h`.

use ashlar_report::record::Cpu;
use std::ffi::{c_int, c_long};

/// `struct rusage`, of which the fields that Linux fills have names.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Usage {
    user: [c_long; 2],
    system: [c_long; 2],
    max_rss: c_long,
    unused: [c_long; 3],
    minor_faults: c_long,
    major_faults: c_long,
    more_unused: [c_long; 6],
    voluntary_switches: c_long,
    involuntary_switches: c_long,
}

const RUSAGE_SELF: c_int = 0;

unsafe extern "C" {
    fn getrusage(who: c_int, usage: *mut Usage) -> c_int;
}

/// Processor time by mode, page faults and context switches of all threads since the process began; the rest is unknown.
pub fn usage() -> Cpu {
    let mut usage = Usage::default();
    // SAFETY: the kernel fills a live structure of the layout that it has on 64-bit Linux (checked below), and keeps no pointer.
    // Checked by: the test `faults_and_switches_are_counted`.
    if unsafe { getrusage(RUSAGE_SELF, &raw mut usage) } != 0 {
        return Cpu::default();
    }
    let count = |number: c_long| u64::try_from(number).ok();
    let seconds = |[seconds, micros]: [c_long; 2]| Some(seconds as f64 + micros as f64 / 1e6);
    Cpu {
        user_s: seconds(usage.user),
        sys_s: seconds(usage.system),
        minor_faults: count(usage.minor_faults),
        major_faults: count(usage.major_faults),
        vol_cs: count(usage.voluntary_switches),
        invol_cs: count(usage.involuntary_switches),
        ..Cpu::default()
    }
}

const _: () = assert!(size_of::<Usage>() == 144 || cfg!(target_pointer_width = "32"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_switches_are_counted() {
        // More than the allocator may have left of other tests.
        const PAGES: usize = 32_000;
        let before = usage();
        // A thread that has ended counts too.
        let thread = std::thread::spawn(|| {
            let mut memory = vec![0_u8; PAGES * 4096];
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            std::hint::black_box(memory);
            std::thread::sleep(std::time::Duration::from_millis(1));
        });
        thread.join().unwrap();
        let after = usage();
        let more = |of: fn(&Cpu) -> Option<u64>| of(&after).unwrap() - of(&before).unwrap();
        // Large pages make fewer faults.
        assert!(more(|cpu| cpu.minor_faults) >= 2, "{before:?} {after:?}");
        assert!(more(|cpu| cpu.vol_cs) >= 1, "{before:?} {after:?}");
        assert!(after.user_s.unwrap() + after.sys_s.unwrap() > 0.0 && after.invol_cs.is_some());
        assert!(after.major_faults.unwrap() < 1_000_000, "{after:?}");
    }
}
