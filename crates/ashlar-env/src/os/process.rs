//! Detects a fork: the child has the memory of its parent, but neither its threads nor its locks.
//!
//! 1. One word of the process is in a page that the kernel fills with zeros in a forked child (`MADV_WIPEONFORK`). A
//!    value of [`Process`] holds the word's number. In a child, one relaxed load shows that the value belongs to the
//!    parent.
//! 2. The first [`Process::current`] in a child puts a new number into the word. The counter for it is in ordinary
//!    memory, which the child inherits, so no descendant ever sees the number of an ancestor.
//! 3. Where the kernel has no such pages (Linux before 4.14), each check asks for the process id instead, which is a
//!    system call.

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use rustix::process::getpid;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that created the value.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// `None`: `number` is a process id.
    word: Option<&'static AtomicU32>,
    number: u32,
}

static WORD: OnceLock<Option<&'static AtomicU32>> = OnceLock::new();
static LAST: AtomicU32 = AtomicU32::new(0);

impl Process {
    /// The calling process.
    pub fn current() -> Process {
        let word = *WORD.get_or_init(wiped_word);
        let number = word.map_or_else(pid, number_in);
        Process { word, number }
    }

    /// Whether the calling process is this one, and not a forked child of it.
    #[inline]
    pub fn is_current(&self) -> bool {
        match self.word {
            // Relaxed: the word changes between processes only, and nothing is published through it.
            Some(word) => word.load(Ordering::Relaxed) == self.number,
            None => pid() == self.number,
        }
    }
}

/// The number of this process. The first call gives it one.
fn number_in(word: &AtomicU32) -> u32 {
    let next = match word.load(Ordering::Relaxed) {
        0 => LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1),
        number => return number,
    };
    word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|there| there, |_| next)
}

#[cold]
fn pid() -> u32 {
    getpid().as_raw_nonzero().get().unsigned_abs()
}

/// A word in a page of its own that a child finds zero. `None`: the kernel has no such pages.
fn wiped_word() -> Option<&'static AtomicU32> {
    if cfg!(miri) {
        return None;
    }
    // A mapping is always whole pages.
    let bytes = size_of::<AtomicU32>();
    // SAFETY: a new anonymous mapping at an address that the kernel chooses: no memory of the process is touched. Checked by:
    // `a_forked_child_is_another_process`.
    let page = unsafe {
        mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let page = page.ok()?;
    // SAFETY: the range is the mapping just made, to which nothing refers yet. What the advice changes, the contents in a
    // child, is zero there before any code of the child runs. Checked by: as above.
    unsafe { madvise(page, bytes, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the mapping starts with a page, so the word is aligned and in bounds; it is zero at first and in a child,
    // which is a valid value. It is never unmapped, and reached through this reference alone. Checked by: as above.
    Some(unsafe { AtomicU32::from_ptr(page.cast()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_is_another_process() {
        let parent = Process::current();
        assert!(parent.is_current() && Process::current().number == parent.number);
        let said = ashlar_testkit::fork::child(|| {
            let forked = !parent.is_current();
            let child = Process::current();
            let grandchild = ashlar_testkit::fork::child(|| {
                format!("{} {}", child.is_current(), Process::current().is_current())
            });
            format!("{forked} {} {} {grandchild:?}", child.is_current(), parent.is_current())
        });
        assert_eq!(said.as_deref(), Ok("true true false Ok(\"false true\")"));
        assert!(parent.is_current());
    }

    #[test]
    fn without_such_pages_the_process_id_tells() {
        let parent = Process { word: None, number: pid() };
        assert!(parent.is_current());
        let said = ashlar_testkit::fork::child(|| parent.is_current().to_string());
        assert_eq!(said.as_deref(), Ok("false"));
    }
}
