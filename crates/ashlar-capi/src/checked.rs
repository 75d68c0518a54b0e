//! Checked handles: with `ASHLARDB_CHECK_HANDLES=1` in the environment, a wrong pointer for an object ends the process with a
//! message, before anything uses the pointer.
//!
//! 1. Each object that a call returns or lends is known by its address, with its kind. A pointer is wrong if no object of that
//!    kind is there, or if the object was freed before.
//! 2. The memory of a freed object stays reserved until 65,536 more objects are freed. Until then no new object can get the
//!    address, so a use after free is detected.
//! 3. An object that a call lends is known until its owner is freed, until `rocksdb_free` frees it, or until the callback that
//!    got the object returns.
//! 4. Objects without content have no address of their own, and are not checked.
//! 5. Without the variable, a use of an object pays for one load and one branch.

use std::alloc::{Layout, dealloc};
use std::any::{TypeId, type_name};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::marker::PhantomData;
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

static KNOWN: Mutex<Known> =
    Mutex::new(Known { objects: BTreeMap::new(), lent_by: BTreeMap::new(), freed: VecDeque::new() });

/// The names in C of kinds of objects.
type Kinds = fn(TypeId) -> Option<&'static str>;

thread_local! {
    /// The function that the thread is in, and the names of kinds in that function's header.
    static FUNCTION: Cell<(&'static str, Kinds)> = const { Cell::new(("a call", crate::exports::kind_in_c)) };
}

/// The objects of the process.
struct Known {
    /// By address. An object and its first part have one address.
    objects: BTreeMap<usize, Vec<Object>>,
    /// The addresses of lent objects, by the address of the owner.
    lent_by: BTreeMap<usize, Vec<usize>>,
    /// The memory of freed objects, oldest first.
    freed: VecDeque<(usize, Layout)>,
}

/// An object at an address.
struct Object {
    kind: Kind,
    state: State,
    /// The addresses of the objects that lend this one: each lists it in [`Known::lent_by`].
    owners: Vec<usize>,
}

impl Object {
    fn new(kind: Kind, state: State) -> Object {
        Object { kind, state, owners: Vec::new() }
    }
}

/// A kind of objects: its type, and the name in Rust for messages.
#[derive(Clone, Copy)]
struct Kind {
    of: TypeId,
    name: &'static str,
}

impl Kind {
    fn of<T: 'static>() -> Kind {
        Kind { of: TypeId::of::<T>(), name: type_name::<T>() }
    }

    /// The name in the header of the running function.
    fn in_c(self) -> &'static str {
        let (_, kinds) = FUNCTION.get();
        kinds(self.of).or_else(|| crate::exports::kind_in_c(self.of)).unwrap_or(self.name)
    }
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

/// A function of C that the thread is in. At the end the thread is in the function before, such as the one that called a callback.
#[must_use]
#[derive(Debug)]
pub struct Entered(Option<(&'static str, Kinds)>);

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            FUNCTION.set(before);
        }
    }
}

/// The thread enters a function of RocksDB's header.
#[inline]
pub fn enter(function: &'static str) -> Entered {
    enter_of(function, crate::exports::kind_in_c)
}

/// The thread enters a function of a header with these names of kinds.
#[inline]
pub fn enter_of(function: &'static str, kinds: Kinds) -> Entered {
    Entered(is_on().then(|| FUNCTION.replace((function, kinds))))
}

impl Known {
    /// Takes note of a lent object. An object that the caller has made already stays the caller's.
    fn lend(&mut self, address: usize, kind: Kind, owner: Option<usize>) {
        let there = self.objects.entry(address).or_default();
        let at = there.iter().position(|object| object.kind.of == kind.of).unwrap_or_else(|| {
            there.push(Object::new(kind, State::Lent));
            there.len() - 1
        });
        let Some(object) = there.get_mut(at).filter(|object| object.state != State::Made) else { return };
        object.state = State::Lent;
        let Some(owner) = owner.filter(|owner| !object.owners.contains(owner)) else { return };
        object.owners.push(owner);
        self.lent_by.entry(owner).or_default().push(address);
    }

    /// The addresses of everything that the object at an address has lent, also through objects that it lent.
    fn take_lent_by(&mut self, owner: usize) -> Vec<usize> {
        let (mut all, mut next) = (Vec::new(), vec![owner]);
        while let Some(owner) = next.pop() {
            let lent = self.lent_by.remove(&owner).unwrap_or_default();
            next.extend(&lent);
            all.extend(lent);
        }
        all
    }

    /// Takes objects at an address from the lists of their owners. Otherwise the end of an owner would end a later object that got
    /// the same address.
    fn take_back(&mut self, address: usize, objects: &[Object]) {
        for owner in objects.iter().flat_map(|object| &object.owners) {
            if let Some(lent) = self.lent_by.get_mut(owner) {
                lent.retain(|at| *at != address);
                if lent.is_empty() {
                    self.lent_by.remove(owner);
                }
            }
        }
    }

    /// A call returns a new object at an address. What was there is gone.
    fn make(&mut self, address: usize, kind: Kind) {
        let before = self.objects.insert(address, vec![Object::new(kind, State::Made)]);
        self.take_back(address, &before.unwrap_or_default());
        for lent in self.lent_by.remove(&address).unwrap_or_default() {
            let there = self.objects.get_mut(&lent).map_or(&mut [][..], Vec::as_mut_slice);
            there.iter_mut().for_each(|object| object.owners.retain(|owner| *owner != address));
        }
    }

    /// The memory of a freed object goes back to the allocator. The objects that were at its addresses are forgotten.
    fn release(&mut self, from: usize, layout: Layout) {
        let within = self.objects.range(from..from.saturating_add(layout.size()));
        let all: Vec<usize> = within.map(|(at, _)| *at).collect();
        for at in all {
            let before = self.objects.remove(&at);
            self.take_back(at, &before.unwrap_or_default());
        }
    }

    /// Forgets what was lent at an address, and what that object has lent.
    fn forget(&mut self, address: usize) {
        let mut all = self.take_lent_by(address);
        all.push(address);
        for address in all {
            let Some(there) = self.objects.remove(&address) else { continue };
            let (lent, rest): (Vec<_>, Vec<_>) =
                there.into_iter().partition(|object| object.state == State::Lent);
            self.take_back(address, &lent);
            if !rest.is_empty() {
                self.objects.insert(address, rest);
            }
        }
    }

    /// Frees the object at an address, with everything that is inside it. What it has lent is known no longer.
    fn free(&mut self, address: usize, layout: Layout) {
        for lent in self.take_lent_by(address) {
            self.forget(lent);
        }
        for (_, there) in self.objects.range_mut(address..address.saturating_add(layout.size())) {
            there.iter_mut().for_each(|object| object.state = State::Freed);
        }
    }
}

/// A call returns a new object.
pub fn made<T: 'static>(object: *const T) {
    if size_of::<T>() > 0 {
        known().make(object.addr(), Kind::of::<T>());
    }
}

/// A call lends an object of `owner`, which is known until the owner is freed.
pub fn lent<T: 'static, O>(object: *const T, owner: *const O) {
    if size_of::<T>() > 0 {
        known().lend(object.addr(), Kind::of::<T>(), Some(owner.addr()));
    }
}

/// Memory of an object that a call lent is freed.
pub fn forget<T>(object: *const T) {
    if is_on() && !object.is_null() {
        known().forget(object.addr());
    }
}

/// An object that a callback may use until it returns.
#[derive(Debug)]
pub struct Shown<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<'a, T: 'static> Shown<'a, T> {
    /// Lends the object.
    pub(crate) fn new(object: *mut T) -> Shown<'a, T> {
        if is_on() && size_of::<T>() > 0 {
            known().lend(object.addr(), Kind::of::<T>(), None);
        }
        Shown(object, PhantomData)
    }

    /// The pointer for the callback.
    pub fn pointer(&self) -> *mut T {
        self.0
    }
}

impl<T> Drop for Shown<'_, T> {
    fn drop(&mut self) {
        forget(self.0);
    }
}

/// Checks that `object`, passed as the parameter `name`, is a live object of type `T`. Aborts the process if not.
pub fn used<T: 'static>(object: *const T, name: &str) {
    if size_of::<T>() > 0 {
        check::<T>(&known(), object.addr(), name, "used");
    }
}

/// Takes a boxed object, passed as the parameter `name`, back from the caller. Aborts the process if the object is not live, or if
/// another object owns it.
///
/// # Safety
/// The object, if it is one, is a box that nothing uses from now on.
pub unsafe fn taken<T: 'static>(object: *mut T, name: &str) -> Box<T> {
    if size_of::<T>() == 0 {
        // SAFETY: as for this function.
        return unsafe { Box::from_raw(object) };
    }
    let mut known = known();
    let (from, layout) = (object.addr(), Layout::new::<T>());
    if check::<T>(&known, from, name, "freed") == State::Lent {
        wrong(name, from, &format!("belongs to another object, which frees it: {}", Kind::of::<T>().in_c()));
    }
    known.free(from, layout);
    known.freed.push_back((object.expose_provenance(), layout));
    // SAFETY: as for this function. The memory is not used as the object again.
    let object = Box::new(unsafe { object.read() });
    while known.freed.len() > RESERVED {
        let Some((oldest, layout)) = known.freed.pop_front() else { break };
        known.release(oldest, layout);
        // SAFETY: the memory of a box of that layout, whose content was moved out.
        unsafe { dealloc(std::ptr::with_exposed_provenance_mut(oldest), layout) };
    }
    object
}

/// What is known of the object of that kind at the address. Aborts the process if the address has no such object, or a freed one.
fn check<T: 'static>(known: &Known, address: usize, name: &str, done: &str) -> State {
    let there = known.objects.get(&address).map_or(&[][..], Vec::as_slice);
    let wanted = Kind::of::<T>();
    match there.iter().find(|object| object.kind.of == wanted.of) {
        Some(Object { state: State::Freed, .. }) => {
            wrong(name, address, &format!("is {done} after it was freed: {}", wanted.in_c()))
        }
        Some(object) => object.state,
        None => match there.last() {
            Some(object) => {
                let (kind, wanted) = (object.kind.in_c(), wanted.in_c());
                wrong(name, address, &format!("is of another kind: {kind} where {wanted} belongs"))
            }
            None => wrong(name, address, &format!("is no object of this library: {}", wanted.in_c())),
        },
    }
}

/// Prints what is wrong, and aborts the process.
fn wrong(name: &str, address: usize, what: &str) -> ! {
    let (function, _) = FUNCTION.get();
    // Nothing is left to do if the message cannot be written.
    let _ = writeln!(
        std::io::stderr(),
        "AshlarDB: {function}: the parameter {name} ({address:#x}) {what}. {VARIABLE}=1 ends the program here"
    );
    std::process::abort();
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: usize = 0x1000;
    const OTHER: usize = 0x2000;
    const PLACE: usize = 0x3000;
    const CHILD: usize = 0x4000;

    fn nothing() -> Known {
        Known { objects: BTreeMap::new(), lent_by: BTreeMap::new(), freed: VecDeque::new() }
    }

    fn owners() -> Known {
        let mut known = nothing();
        known.make(OWNER, Kind::of::<u32>());
        known.make(OTHER, Kind::of::<u32>());
        known
    }

    /// `rocksdb_free` frees a lent object, and `malloc` gives its address to an object of another owner.
    #[test]
    fn the_end_of_an_owner_leaves_a_later_object_at_the_same_address() {
        let mut known = owners();
        known.lend(PLACE, Kind::of::<u64>(), Some(OWNER));
        known.forget(PLACE);
        known.lend(PLACE, Kind::of::<u64>(), Some(OTHER));
        known.free(OWNER, Layout::new::<u32>());
        assert!(check::<u64>(&known, PLACE, "place", "used") == State::Lent);
        known.free(OTHER, Layout::new::<u32>());
        assert!(!known.objects.contains_key(&PLACE) && known.lent_by.is_empty());
    }

    #[test]
    fn the_end_of_an_owner_leaves_what_a_later_object_at_the_same_address_lends() {
        let mut known = owners();
        known.lend(PLACE, Kind::of::<u64>(), Some(OWNER));
        known.forget(PLACE);
        known.make(PLACE, Kind::of::<u32>());
        known.lend(CHILD, Kind::of::<u64>(), Some(PLACE));
        known.free(OWNER, Layout::new::<u32>());
        assert!(check::<u64>(&known, CHILD, "child", "used") == State::Lent);
        known.free(PLACE, Layout::new::<u32>());
        assert!(!known.objects.contains_key(&CHILD) && known.lent_by.is_empty());
    }

    /// An owner that is gone without a call has lent an object, which the next object at the owner's address lends again.
    #[test]
    fn an_object_is_lent_again_by_a_new_owner_at_the_same_address() {
        let mut known = owners();
        known.lend(CHILD, Kind::of::<u64>(), Some(OWNER));
        known.make(OWNER, Kind::of::<u32>());
        known.lend(CHILD, Kind::of::<u64>(), Some(OWNER));
        known.free(OWNER, Layout::new::<u32>());
        assert!(!known.objects.contains_key(&CHILD) && known.lent_by.is_empty());
        assert!(check::<u32>(&known, OTHER, "other", "used") == State::Made);
    }

    #[test]
    fn the_memory_of_a_freed_object_is_known_no_longer() {
        let mut known = owners();
        known.lend(OTHER, Kind::of::<u64>(), Some(OWNER));
        known.free(OTHER, Layout::new::<u32>());
        known.release(OTHER, Layout::new::<u32>());
        assert!(!known.objects.contains_key(&OTHER) && known.lent_by.is_empty());
    }
}
