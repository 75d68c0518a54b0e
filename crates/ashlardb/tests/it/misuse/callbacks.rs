//! A comparator, a merge operator, a compaction filter and a listener that do what a test tells them.

use ashlardb::{
    Builder, CompactionFilter, Comparator, Db, Decision, Event, EventListener, MergeOperator, Result,
};
use std::cmp::Ordering as Order;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

type Act = Box<dyn FnMut(Option<&Db>) + Send>;

/// What a callback does when it is called, and the handle that it uses.
#[derive(Default)]
pub(super) struct Trap {
    armed: AtomicBool,
    act: Mutex<Option<Act>>,
    db: Mutex<Option<Db>>,
}

impl fmt::Debug for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Trap")
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trap {
    /// The next call does `act`, and only that one.
    pub(super) fn once(&self, act: impl FnMut(Option<&Db>) + Send + 'static) {
        *lock(&self.act) = Some(Box::new(act));
        self.armed.store(true, Ordering::SeqCst);
    }

    /// The next call panics.
    pub(super) fn panics(&self) {
        self.once(|_| panic!("on purpose"));
    }

    /// The next call panics, and so does what that panic carries, when it is dropped.
    pub(super) fn panics_twice(&self) {
        self.once(|_| std::panic::panic_any(PanicsWhenDropped));
    }

    /// The handle for the act.
    pub(super) fn holds(&self, db: Option<Db>) {
        let before = std::mem::replace(&mut *lock(&self.db), db);
        drop(before);
    }

    /// Whether the act has been done.
    pub(super) fn is_sprung(&self) -> bool {
        !self.armed.load(Ordering::SeqCst)
    }

    fn call(&self) {
        if self.armed.swap(false, Ordering::SeqCst) {
            let act = lock(&self.act).take();
            // No lock of the test is held while the database is called.
            let db = lock(&self.db).clone();
            if let Some(mut act) = act {
                act(db.as_ref());
            }
        }
    }
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic!("on purpose, while dropped");
    }
}

/// Byte order. The trap is sprung by a comparison with a key that begins with `trap`.
#[derive(Debug)]
struct Compares(Arc<Trap>);

impl Comparator for Compares {
    fn name(&self) -> &str {
        "Trapped"
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Order {
        if a.starts_with(b"trap") || b.starts_with(b"trap") {
            self.0.call();
        }
        a.cmp(b)
    }
}

/// The last operand. Every call springs the trap.
#[derive(Debug)]
struct Merges(Arc<Trap>);

impl MergeOperator for Merges {
    fn name(&self) -> &str {
        "Trapped"
    }

    fn full_merge(&self, _: &[u8], _: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>> {
        self.0.call();
        Ok(operands.last().map(|last| last.to_vec()).unwrap_or_default())
    }
}

/// Keeps everything. Every call springs the trap.
#[derive(Debug)]
struct Filters(Arc<Trap>);

impl CompactionFilter for Filters {
    fn name(&self) -> &str {
        "Trapped"
    }

    fn filter(&self, _: &[u8], _: &[u8]) -> Decision {
        self.0.call();
        Decision::Keep
    }
}

/// Springs the trap at the events of one name.
struct Hears(Arc<Trap>, &'static str);

impl EventListener for Hears {
    fn on_event(&self, event: &Event) {
        if event.name() == self.1 {
            self.0.call();
        }
    }
}

/// Which callback has the trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callback {
    Comparator,
    MergeOperator,
    CompactionFilter,
    /// Of the events of that name.
    Listener(&'static str),
}

/// The settings of a database whose callback springs `trap`. Nothing is compacted unless a test asks.
pub(super) fn trapped(dir: &Path, callback: Callback, trap: &Arc<Trap>) -> Builder {
    let builder = Db::builder(dir).options("disable_auto_compactions=true");
    let trap = Arc::clone(trap);
    match callback {
        Callback::Comparator => builder.default_family(|f| f.comparator(Arc::new(Compares(trap)))),
        Callback::MergeOperator => builder.default_family(|f| f.merge_operator(Arc::new(Merges(trap)))),
        Callback::CompactionFilter => {
            builder.default_family(|f| f.compaction_filter(Arc::new(Filters(trap))))
        }
        Callback::Listener(name) => builder.listener(Arc::new(Hears(trap, name))),
    }
}
