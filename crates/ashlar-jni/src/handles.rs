//! The objects behind the numbers that Java keeps as native handles.
//!
//! 1. A handle is a number of a slot and of its generation, never an address. A closed object's slot gets a new generation, so a
//!    stale handle finds nothing: its call answers an error and touches no memory.
//! 2. An object is counted. A call in another thread keeps the object until that call ends, also while it is being closed.
//! 3. A lookup takes only the lock of its slot, and holds the lock for the copy of a reference.
//! 4. Slots are never returned to the system; a slot has 48 bytes. A slot of which all generations are used stays empty.
//!
//! ```text
//! | generation: 31 bits | slot + 1: 32 bits |     0 is null
//! ```

use ashlardb::{Error, Result};
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// A kind of objects.
pub trait Object: Any + Send + Sync {
    /// The Java class, for error texts.
    const NAME: &'static str;
}

type Kept = Arc<dyn Any + Send + Sync>;

#[derive(Default)]
struct Slot {
    generation: u32,
    object: Option<(Kept, &'static str)>,
}

/// The slots of the first block; each block has twice as many as the one before.
const FIRST: usize = 1024;
/// Blocks: enough for 2^31 slots.
const BLOCKS: usize = 21;
static SLOTS: [OnceLock<Box<[RwLock<Slot>]>>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];

/// Free slots, and the number of slots that were ever used.
static FREE: Mutex<(Vec<usize>, usize)> = Mutex::new((Vec::new(), 0));
/// The last generation. A slot that has had it is not used again, because another object would get a handle of an earlier one.
const LAST_GENERATION: u32 = 0x7fff_ffff;

/// The block of a slot, and its place there.
fn place(slot: usize) -> (usize, usize) {
    let block = usize::try_from((slot / FIRST + 1).ilog2()).unwrap_or(0);
    (block, slot - FIRST * ((1 << block) - 1))
}

fn slot(at: usize) -> Option<&'static RwLock<Slot>> {
    let (block, place) = place(at);
    SLOTS.get(block)?.get()?.get(place)
}

fn parts(handle: i64) -> Option<(usize, u32)> {
    let number = u64::try_from(handle).ok()?;
    let slot = usize::try_from(number & u64::from(u32::MAX)).ok()?.checked_sub(1)?;
    Some((slot, u32::try_from(number >> 32).ok()?))
}

/// Keeps an object until [`close`]; answers its handle.
///
/// # Errors
/// `Busy(Memory)`: the process has 2^31 objects.
pub fn keep<T: Object>(object: T) -> Result<i64> {
    keep_shared(Arc::new(object))
}

/// Keeps an object that others refer to.
///
/// # Errors
/// As [`keep`].
pub fn keep_shared<T: Object>(object: Arc<T>) -> Result<i64> {
    let full = || Error::new(ashlardb::ErrorKind::Busy(ashlardb::BusyKind::Memory), "too many objects");
    let at = {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.0.pop().unwrap_or_else(|| {
            free.1 += 1;
            free.1 - 1
        })
    };
    let (block, _) = place(at);
    let slots = SLOTS.get(block).ok_or_else(full)?;
    slots.get_or_init(|| (0..FIRST << block).map(|_| RwLock::default()).collect());
    let slot = slot(at).ok_or_else(full)?;
    let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
    slot.generation += 1;
    slot.object = Some((object, T::NAME));
    let number = i64::try_from(at + 1).map_err(|_| full())?;
    Ok((i64::from(slot.generation) << 32) | number)
}

#[cold]
fn stale(handle: i64, wanted: &str) -> Error {
    let what = if handle == 0 { "is null" } else { "was closed, or never was one" };
    Error::invalid(format!("the native handle of a {wanted} {what}"))
        .hint("Use an object only between its creation and its close()")
}

/// The object of a handle.
///
/// # Errors
/// `InvalidArgument`: the object was closed, or is of another kind.
pub fn get<T: Object>(handle: i64) -> Result<Arc<T>> {
    let found = parts(handle).and_then(|(at, generation)| {
        let slot = slot(at)?.read().unwrap_or_else(PoisonError::into_inner);
        let object = slot.object.as_ref().filter(|_| slot.generation == generation)?;
        Some((Arc::clone(&object.0), object.1))
    });
    let (object, name) = found.ok_or_else(|| stale(handle, T::NAME))?;
    object.downcast().map_err(|_| Error::invalid(format!("a {name} where a {} is needed", T::NAME)))
}

/// The object of a handle; 0 stands for none.
///
/// # Errors
/// As [`get`].
pub fn get_if<T: Object>(handle: i64) -> Result<Option<Arc<T>>> {
    if handle == 0 { Ok(None) } else { get(handle).map(Some) }
}

/// Releases a handle. The object is dropped when the last running call that uses it returns. A handle that is closed already is
/// left alone.
pub fn close(handle: i64) {
    let Some((at, generation)) = parts(handle) else { return };
    let Some(found) = slot(at) else { return };
    let object = {
        let mut slot = found.write().unwrap_or_else(PoisonError::into_inner);
        if slot.generation != generation {
            return;
        }
        slot.object.take()
    };
    if object.is_some() && generation < LAST_GENERATION {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(at);
    }
    // Outside the locks: the end of an object may do much, and close others.
    drop(object);
}

/// A handle that Java does not own: it is closed when this value is dropped, so it ends with the object that lends it.
#[derive(Debug)]
pub struct Lent(i64);

impl Lent {
    /// Keeps an object as long as this value.
    ///
    /// # Errors
    /// As [`keep`].
    pub fn new<T: Object>(object: T) -> Result<Lent> {
        keep(object).map(Lent)
    }

    /// The handle.
    pub fn handle(&self) -> i64 {
        self.0
    }

    /// The handle, which Java owns from now on.
    pub fn given(self) -> i64 {
        std::mem::ManuallyDrop::new(self).0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        close(self.0);
    }
}

/// How many objects of each kind are open: a report of leaks.
pub fn open_objects() -> BTreeMap<&'static str, usize> {
    let used = FREE.lock().unwrap_or_else(PoisonError::into_inner).1;
    let mut counts = BTreeMap::new();
    for slot in (0..used).filter_map(slot) {
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, name)) = &slot.object {
            *counts.entry(*name).or_default() += 1;
        }
    }
    counts
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::*;

    struct Number(u32);
    impl Object for Number {
        const NAME: &'static str = "Number";
    }
    struct Text;
    impl Object for Text {
        const NAME: &'static str = "Text";
    }

    #[test]
    fn a_stale_handle_finds_nothing() {
        let first = keep(Number(1)).unwrap();
        assert_eq!(get::<Number>(first).unwrap().0, 1);
        let wrong = get::<Text>(first).err().unwrap().to_string();
        assert_eq!(wrong, "Invalid argument: a Number where a Text is needed");
        let used = get::<Number>(first).unwrap();
        close(first);
        close(first);
        assert_eq!(used.0, 1, "a running call keeps the object");
        let said = get::<Number>(first).err().unwrap().to_string();
        assert!(said.contains("was closed"), "{said}");
        let second = keep(Number(2)).unwrap();
        assert_ne!(first, second, "a slot in use again has another handle");
        assert!(get::<Number>(0).is_err() && get_if::<Number>(0).unwrap().is_none());
        assert!(get::<Number>(-1).is_err() && get::<Number>(i64::MAX).is_err());
        close(second);
    }

    #[test]
    fn slots_lie_in_blocks_that_double() {
        assert_eq!([0, 1023, 1024, 3071, 3072].map(place), [(0, 0), (0, 1023), (1, 0), (1, 2047), (2, 0)]);
        let handles: Vec<i64> = (0..3000).map(|n| keep(Number(n)).unwrap()).collect();
        assert!(handles.iter().zip(0..).all(|(handle, n)| get::<Number>(*handle).unwrap().0 == n));
        assert!(open_objects()["Number"] >= 3000);
        handles.into_iter().for_each(close);
    }
}
