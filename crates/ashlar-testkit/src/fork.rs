//! Real forks, for tests of what a child may do with what it inherits.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// A child that takes longer hangs.
const LONGEST: Duration = Duration::from_secs(20);

unsafe extern "C" {
    fn fork() -> i32;
    fn _exit(status: i32) -> !;
}

/// Runs `work` in a forked child, and answers what it said. The child ends without the handlers of an exit. Other threads of
/// the caller do not exist there, so `work` does best to print nothing and to wait for no lock.
///
/// # Errors
/// The child panicked, was killed, or did not end; it is killed then.
pub fn child(work: impl FnOnce() -> String) -> Result<String, String> {
    let said = tempfile::NamedTempFile::new().map_err(|e| e.to_string())?;
    // SAFETY: the call has no arguments. The child runs on a copy of the memory; what it must not do is said above, and its
    // allocator is usable: the C library prepares it. Checked by: `what_a_child_says_is_heard`.
    let pid = unsafe { fork() };
    if pid == 0 {
        let status = say(work, said.path());
        // SAFETY: ends the process without unwinding, so that nothing of the parent's stack is dropped twice. Checked by: as
        // above.
        unsafe { _exit(status) }
    }
    let pid = Pid::from_raw(pid).filter(|_| pid > 0).ok_or("the system makes no process")?;
    wait(pid)?;
    std::fs::read_to_string(said.path()).map_err(|e| e.to_string())
}

fn say(work: impl FnOnce() -> String, to: &Path) -> i32 {
    let said = catch_unwind(AssertUnwindSafe(work)).ok();
    said.and_then(|said| std::fs::write(to, said).ok()).map_or(1, |()| 0)
}

fn wait(pid: Pid) -> Result<(), String> {
    let start = Instant::now();
    loop {
        match waitpid(Some(pid), WaitOptions::NOHANG).map_err(|e| e.to_string())? {
            Some((_, status)) if status.exit_status() == Some(0) => return Ok(()),
            Some((_, status)) => return Err(format!("the child ended with {status:?}")),
            None if start.elapsed() < LONGEST => std::thread::sleep(Duration::from_millis(2)),
            None => {
                let _ = kill_process(pid, Signal::KILL);
                let _ = waitpid(Some(pid), WaitOptions::empty());
                return Err(format!("the child did not end within {LONGEST:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_child_says_is_heard() {
        let mut here = 1;
        let said = child(|| {
            here += 1;
            here.to_string()
        });
        assert_eq!((said.as_deref(), here), (Ok("2"), 1));
        assert!(child(|| std::panic::resume_unwind(Box::new(0))).is_err());
    }
}
