//! Checked handles: with `ASHLARDB_CHECK_HANDLES=1` in the environment, a wrong pointer for an object ends the process with a
//! message, before anything uses the pointer.
//!
//! 1. Each object that a call returns or lends is known by its address, with its kind. A pointer is wrong if no object of that
//!    kind is there, or if it was freed before.
//! 2. The memory of a freed object stays reserved until 65,536 more objects are freed. So no later object has the address
//!    meanwhile, and a late use is noticed.
//! 3. Objects without content have no address of their own, and are not checked.
//! 4. Without the variable, a use of an object pays for one load and one branch.

use std::alloc::{Layout, dealloc};
use std::any::type_name;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The variable of the environment.
pub const VARIABLE: &str = "ASHLARDB_CHECK_HANDLES";

/// How many freed objects keep their memory.
const RESERVED: usize = 1 << 16;

const OFF: u8 = 1;
const ON: u8 = 2;

/// [`OFF`], [`ON`], or 0 before the first call.
static MODE: AtomicU8 = AtomicU8::new(0);

static KNOWN: Mutex<Known> = Mutex::new(Known { objects: BTreeMap::new(), freed: VecDeque::new() });

thread_local! {
    /// The function that the thread is in.
    static FUNCTION: Cell<&'static str> = const { Cell::new("a call") };
}

/// The objects of the process.
struct Known {
    /// By address. An object and its first part have one address.
    objects: BTreeMap<usize, Vec<(&'static str, State)>>,
    /// The memory of freed objects, oldest first.
    freed: VecDeque<(usize, Layout)>,
}

/// What is known of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The caller has it, and frees it.
    Made,
    /// Another object has it.
    Lent,
    /// It is gone.
    Freed,
}

/// Whether handles are checked.
#[inline]
pub fn is_on() -> bool {
    match MODE.load(Ordering::Relaxed) {
        OFF => false,
        ON => true,
        _ => decide(),
    }
}

#[cold]
fn decide() -> bool {
    let on = std::env::var_os(VARIABLE).is_some_and(|value| value == "1");
    MODE.store(if on { ON } else { OFF }, Ordering::Relaxed);
    on
}

fn known() -> MutexGuard<'static, Known> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread enters a function of C.
#[inline]
pub fn enter(function: &'static str) {
    if is_on() {
        FUNCTION.set(function);
    }
}

/// A call returns a new object.
pub fn made<T>(object: *const T) {
    if size_of::<T>() > 0 {
        // What was at the address is gone.
        known().objects.insert(object.addr(), vec![(type_name::<T>(), State::Made)]);
    }
}

/// A call lends an object.
pub fn lent<T>(object: *const T) {
    if size_of::<T>() > 0 {
        let mut known = known();
        let there = known.objects.entry(object.addr()).or_default();
        there.retain(|(kind, _)| *kind != type_name::<T>());
        there.push((type_name::<T>(), State::Lent));
    }
}

/// A call uses an object, which is the parameter `name`. Ends the process if it is not.
pub fn used<T>(object: *const T, name: &str) {
    if size_of::<T>() > 0 {
        check::<T>(&known(), object.addr(), name, "used");
    }
}

/// A call takes an object of a box, which is the parameter `name`. Ends the process if it is not, or if the object is lent.
///
/// # Safety
/// The object, if it is one, is a box that nothing uses from now on.
pub unsafe fn taken<T>(object: *mut T, name: &str) -> Box<T> {
    if size_of::<T>() == 0 {
        // SAFETY: as for this function.
        return unsafe { Box::from_raw(object) };
    }
    let mut known = known();
    if check::<T>(&known, object.addr(), name, "freed") == State::Lent {
        wrong(
            &known,
            name,
            object.addr(),
            &format!("belongs to another object, which frees it: {}", kind_of::<T>()),
        );
    }
    let (from, layout) = (object.addr(), Layout::new::<T>());
    for (_, there) in known.objects.range_mut(from..from.saturating_add(layout.size())) {
        there.iter_mut().for_each(|(_, state)| *state = State::Freed);
    }
    known.freed.push_back((object.expose_provenance(), layout));
    // SAFETY: as for this function. The memory is not used as the object again.
    let object = Box::new(unsafe { object.read() });
    while known.freed.len() > RESERVED {
        let Some((oldest, layout)) = known.freed.pop_front() else { break };
        let all: Vec<usize> =
            known.objects.range(oldest..oldest.saturating_add(layout.size())).map(|(at, _)| *at).collect();
        for at in all {
            known.objects.remove(&at);
        }
        // SAFETY: the memory of a box of that layout, whose content was moved out.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(oldest), layout) };
    }
    object
}

/// What is known of the object of that kind at the address. Ends the process if the address has no such object, or a freed one.
fn check<T>(known: &Known, address: usize, name: &str, done: &str) -> State {
    let there = known.objects.get(&address).map_or(&[][..], Vec::as_slice);
    match there.iter().find(|(kind, _)| *kind == type_name::<T>()) {
        Some((_, State::Freed)) => {
            wrong(known, name, address, &format!("is {done} after it was freed: {}", kind_of::<T>()))
        }
        Some((_, state)) => *state,
        None => match there.last() {
            Some((kind, _)) => {
                let (kind, wanted) = (crate::exports::kind_in_c(kind), kind_of::<T>());
                wrong(known, name, address, &format!("is of another kind: {kind} where {wanted} belongs"))
            }
            None => wrong(known, name, address, &format!("is no object of this library: {}", kind_of::<T>())),
        },
    }
}

/// The name in C of a kind of objects.
fn kind_of<T>() -> &'static str {
    crate::exports::kind_in_c(type_name::<T>())
}

/// Says what is wrong, and ends the process.
fn wrong(_: &Known, name: &str, address: usize, what: &str) -> ! {
    let function = FUNCTION.get();
    // Nothing is left to do if the message cannot be written.
    let _ = writeln!(
        std::io::stderr(),
        "AshlarDB: {function}: the parameter {name} ({address:#x}) {what}. {VARIABLE}=1 ends the program here"
    );
    std::process::abort();
}
