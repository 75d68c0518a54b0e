//! The guard of mapped files: turns a SIGBUS in a registered range into a flag.
//!
//! The kernel sends SIGBUS to a thread that touches a mapped page which it cannot provide: another process cut the file,
//! or the device failed. One handler per process catches the signal. If the address is in a registered range, the handler
//! puts a page of memory over it, sets the range's flag and returns: the store then ends in memory, and its caller
//! reads the flag.
//!
//! 1. The handler is installed with the first range and stays. A signal for any other address goes to the handler that
//!    was there before, or has the default effect.
//! 2. The handler uses atomics, `mmap` and `sigaction` only, which are safe in a signal handler. It takes no lock, allocates
//!    nothing, and leaves `errno` as it is: `rustix` calls the kernel directly.
//! 3. An entry of the table is free (`start` 0), taken (1), or describes a range. `end` changes only while the entry is
//!    taken. The handler reads `start` on both sides of `end`, so it never combines two ranges.
//! 4. Registering checks that the handler is still the process's. Where another one was installed since, there are no more
//!    ranges.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{mem, ptr};

/// The most ranges at a time, of all databases of the process.
const RANGES: usize = 64;
/// Bytes of a page on x86-64.
pub(super) const PAGE: usize = 4096;

const FREE: usize = 0;
const TAKEN: usize = 1;

struct Entry {
    start: AtomicUsize,
    end: AtomicUsize,
    tripped: AtomicBool,
}

static TABLE: [Entry; RANGES] = [const {
    Entry { start: AtomicUsize::new(FREE), end: AtomicUsize::new(0), tripped: AtomicBool::new(false) }
}; RANGES];

/// What was installed for SIGBUS before; not set yet while the handler is being installed. `None`: the handler could not be
/// installed.
static FORMER: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// A registered range of addresses. Dropping it ends the guard: first unmap the range.
#[derive(Debug)]
pub(super) struct Guarded {
    entry: usize,
}

impl Guarded {
    /// Guards a mapping of whole pages. `None`: the table is full, or another handler has the signal.
    pub(super) fn new(addresses: Range<usize>) -> Option<Guarded> {
        if !is_installed() {
            return None;
        }
        let free = |entry: &Entry| {
            entry.start.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let entry = TABLE.iter().position(free)?;
        let of = TABLE.get(entry)?;
        of.tripped.store(false, Ordering::Relaxed);
        of.end.store(addresses.end, Ordering::Relaxed);
        of.start.store(addresses.start, Ordering::Release);
        Some(Guarded { entry })
    }

    /// Whether a page of the range was missing since the guard began.
    #[inline]
    pub(super) fn tripped(&self) -> bool {
        // Relaxed: the handler ran in this thread, or in one that passed the range on.
        TABLE.get(self.entry).is_none_or(|entry| entry.tripped.load(Ordering::Relaxed))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if let Some(entry) = TABLE.get(self.entry) {
            entry.start.store(FREE, Ordering::Release);
        }
    }
}

/// The range that has this address.
fn entry_of(address: usize) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| {
        let start = entry.start.load(Ordering::Acquire);
        let end = entry.end.load(Ordering::Acquire);
        start > TAKEN && (start..end).contains(&address) && entry.start.load(Ordering::Acquire) == start
    })
}

/// Whether the handler has the signal; the first call installs it.
fn is_installed() -> bool {
    FORMER.get_or_init(install).is_some() && current().is_some_and(|now| now.sa_sigaction == ours())
}

fn ours() -> libc::sighandler_t {
    on_sigbus as *const () as libc::sighandler_t
}

/// What is installed for SIGBUS.
fn current() -> Option<libc::sigaction> {
    // SAFETY: the structure is numbers and an optional pointer, for all of which zero is a value. Checked by: `piece::tests`.
    let mut now: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: asks only; the kernel writes to the structure given, which outlives the call. Checked by: as above.
    let asked = unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut now) };
    (asked == 0).then_some(now)
}

/// Installs the handler. Returns what was there.
fn install() -> Option<libc::sigaction> {
    // FORMER is set after this returns, so a signal in between waits for nothing and has the default effect.
    let former = current()?;
    let mut mine = former;
    mine.sa_sigaction = ours();
    mine.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the handler has the form that SA_SIGINFO asks for and lives as long as the program; it does only what a signal
    // handler may (the module's rule 2). The structure outlives the call. Checked by: `piece::tests`.
    let installed = unsafe { libc::sigaction(libc::SIGBUS, &raw const mine, ptr::null_mut()) };
    (installed == 0).then_some(former)
}

/// The handler.
extern "C" fn on_sigbus(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO, for the time of the call. Checked by:
    // `piece::tests`.
    let about = unsafe { &*info };
    // SAFETY: for a signal of the kernel the field is the address; for any other it is not used. Checked by: as above.
    let address = unsafe { about.si_addr() } as usize;
    let of_kernel = about.si_code > 0;
    if of_kernel
        && let Some(entry) = entry_of(address)
        && replace_page(address)
    {
        entry.tripped.store(true, Ordering::Relaxed);
        return;
    }
    pass_on(signal, info, context, of_kernel);
}

/// Puts a page of zeros over the one that has this address.
fn replace_page(address: usize) -> bool {
    let page = (address & !(PAGE - 1)) as *mut c_void;
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // SAFETY: the page belongs to a registered range, which is a mapping that only its piece uses, by raw stores. The piece is
    // alive: one of its stores, in this thread, caused the signal. A later unmapping of the range removes this page too.
    // Checked by: `piece::tests`.
    unsafe { mmap_anonymous(page, PAGE, access, flags) }.is_ok()
}

/// Does what would have happened without this handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void, of_kernel: bool) {
    let former = FORMER.get().copied().flatten();
    let handler = former.map_or(libc::SIG_DFL, |former| former.sa_sigaction);
    match former {
        Some(former) if handler != libc::SIG_DFL && handler != libc::SIG_IGN => {
            if former.sa_flags & libc::SA_SIGINFO == 0 {
                // SAFETY: without SA_SIGINFO the address is that of a function of this form. Checked by: `piece::tests`.
                let handler: extern "C" fn(c_int) = unsafe { mem::transmute(handler) };
                handler(signal);
            } else {
                // SAFETY: with SA_SIGINFO the address is that of a function of this form. Checked by: `piece::tests`.
                let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                    unsafe { mem::transmute(handler) };
                handler(signal, info, context);
            }
        }
        // The kernel lets no process ignore a fault.
        _ if handler == libc::SIG_IGN && !of_kernel => {}
        _ => {
            // SAFETY: the default effect of the signal, which ends the process. Checked by: `piece::tests`.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
            // SAFETY: the signal is blocked until the handler returns, and then ends the process. Checked by: as above.
            unsafe { libc::raise(signal) };
        }
    }
}
