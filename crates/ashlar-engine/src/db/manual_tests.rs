//! Compactions on request, beside other compactions and writers.

use super::super::Db;
use crate::batch::WriteBatch;
use crate::column_family::Family;
use ashlar_base::{ErrorKind, Level};
use ashlar_env::{Clock as _, Env, OsClock};
use ashlar_options::{
    CompactFilesOptions, CompactRangeOptions, CompactionStyle, DbOptions, Event, EventListener,
    FamilyOptions, ReadOptions, WriteOptions,
};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Notes why compactions begin. Each waits until the test lets it go on, or has dropped its end.
#[derive(Debug)]
struct Held(Mutex<(Sender<&'static str>, Receiver<()>)>);

impl EventListener for Held {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionBegin(compaction) = event {
            let ends = self.0.lock().unwrap();
            let _ = ends.0.send(compaction.reason);
            let _ = ends.1.recv();
        }
    }
}

/// Once it is armed, holds the next compaction into a level until the test lets it go on.
#[derive(Debug, Default)]
struct HoldsOne(Mutex<Option<(Level, Receiver<()>)>>);

impl HoldsOne {
    fn arm(&self, into: Level) -> Sender<()> {
        let (go_on, wait) = channel();
        *self.0.lock().unwrap() = Some((into, wait));
        go_on
    }

    fn is_armed(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }
}

impl EventListener for HoldsOne {
    fn on_event(&self, event: &Event) {
        if let Event::CompactionBegin(compaction) = event {
            let armed = self.0.lock().unwrap().take_if(|(into, _)| *into == compaction.output_level);
            let _ = armed.map(|(_, wait)| wait.recv());
        }
    }
}

fn opened(listener: Arc<dyn EventListener>) -> Db {
    let mut options = DbOptions { max_background_jobs: 8, ..DbOptions::default() };
    options.listeners.add(listener);
    let mut family = FamilyOptions::default();
    family.compaction.l0_trigger = 2;
    (family.compaction.l0_slowdown, family.compaction.l0_stop) = (8, 8);
    Db::open(Env::mem(), Path::new("/db"), options, Vec::new(), family).unwrap()
}

fn write_table(db: &Db, family: &Arc<Family>, key: &[u8], value: &[u8]) {
    let mut batch = WriteBatch::new();
    batch.put(family.id(), key, value).unwrap();
    db.write(&mut batch, WriteOptions::default()).unwrap();
    db.flush(std::slice::from_ref(family)).unwrap();
}

/// Waits until `what` holds, for `longest` at most. Returns whether it holds.
fn holds_within(longest: Duration, what: impl Fn() -> bool) -> bool {
    let clock = OsClock::new();
    while !what() && clock.now() < longest {
        clock.sleep(Duration::from_millis(1));
    }
    what()
}

fn wait_for(what: impl Fn() -> bool) -> bool {
    holds_within(Duration::from_secs(20), what)
}

/// Regression: while a request waited for a long compaction of its tables, one other compaction passed, and then writers stood still.
#[test]
fn writers_go_on_while_a_request_waits_for_another_compaction() {
    let listener = Arc::new(HoldsOne::default());
    let db = opened(listener.clone());
    let family = db.family("default").unwrap();
    write_table(&db, &family, b"a", b"");
    db.compact_range(&family, None, None).unwrap();
    let find = || {
        let state = db.core().state();
        let levels = state.families.get(family.id()).unwrap().version.levels.clone();
        levels.iter().zip(0..).find_map(|(files, level)| Some((files.first()?.number(), Level(level))))
    };
    let (number, level) = find().unwrap();
    let go_on = listener.arm(level);
    std::thread::scope(|scope| {
        let files =
            scope.spawn(|| db.compact_files(&family, &[number], level, CompactFilesOptions::default()));
        assert!(wait_for(|| !listener.is_armed()));
        let request = scope.spawn(|| db.compact_range(&family, Some(b"a"), Some(b"b")));
        let waits = || db.core().state().families.get(family.id()).unwrap().waiting_requests > 0;
        assert!(wait_for(waits));
        let writer = scope.spawn(|| (0..40).for_each(|_| write_table(&db, &family, b"x", b"")));
        let went_on = wait_for(|| writer.is_finished());
        go_on.send(()).unwrap();
        files.join().unwrap().unwrap();
        request.join().unwrap().unwrap();
        writer.join().unwrap();
        assert!(went_on, "writers stood still until the other compaction ended");
    });
    db.close().unwrap();
}

/// Regression: a compaction of newer tables ended below the level to which the old ones moved up, and reads found the old value.
#[test]
fn no_newer_table_comes_to_lie_below_tables_that_move_up() {
    let listener = Arc::new(HoldsOne::default());
    let db = opened(listener.clone());
    let mut options = FamilyOptions::default();
    (options.compaction.style, options.compaction.l0_trigger) = (CompactionStyle::Universal, 2);
    let family = db.create_family("universal", options).unwrap();
    write_table(&db, &family, b"a", b"1");
    db.compact_range(&family, None, None).unwrap();
    let mut up = CompactRangeOptions::default();
    up.target_level = Some(Level(2));
    let go_on = listener.arm(Level(2));
    std::thread::scope(|scope| {
        let request = scope.spawn(|| db.compact_range_with(&family, None, None, up));
        assert!(wait_for(|| !listener.is_armed()));
        write_table(&db, &family, b"a", b"2");
        write_table(&db, &family, b"a", b"3");
        let moved = || {
            let state = db.core().state();
            let levels = &state.families.get(family.id()).unwrap().version.levels;
            levels.iter().take(6).skip(1).any(|files| !files.is_empty())
        };
        let was_moved = holds_within(Duration::from_millis(300), moved);
        go_on.send(()).unwrap();
        request.join().unwrap().unwrap();
        assert!(!was_moved, "newer tables are below level 2");
    });
    db.wait_for_background().unwrap();
    let value = db.get(&family, b"a", ReadOptions::default()).unwrap();
    assert_eq!(value.as_deref(), Some(&b"3"[..]));
    db.close().unwrap();
}

/// Regression: the request answered that compactions were aborted, or that all was done.
#[test]
fn a_request_in_vain_names_the_dropped_family() {
    let listener = Arc::new(HoldsOne::default());
    let db = opened(listener.clone());
    let family = db.create_family("gone", FamilyOptions::default()).unwrap();
    write_table(&db, &family, b"a", b"1");
    write_table(&db, &family, b"a", b"2");
    let go_on = listener.arm(Level(6));
    std::thread::scope(|scope| {
        let request = scope.spawn(|| db.compact_range(&family, None, None));
        assert!(wait_for(|| !listener.is_armed()));
        db.drop_family(&family).unwrap();
        go_on.send(()).unwrap();
        let refused = request.join().unwrap().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
        assert!(refused.to_string().contains("gone"), "{refused}");
    });
    db.close().unwrap();
}

/// Regression: under writes, level 0 had its next compaction claimed whenever one ended, and the request ran after the writes.
#[test]
fn a_request_goes_before_the_next_compaction_of_its_family() {
    let ((tell, begun), (go_on, wait)) = (channel(), channel());
    let db = opened(Arc::new(Held(Mutex::new((tell, wait)))));
    let family = db.family("default").unwrap();
    let table = |value: &[u8]| write_table(&db, &family, b"key", value);
    let own = |reason: &str| reason.contains("anual");
    table(b"1");
    table(b"2");
    assert!(!own(begun.recv().unwrap()), "two tables are due");
    std::thread::scope(|scope| {
        let go_on = go_on;
        let request = scope.spawn(|| db.compact_range(&family, None, None));
        let core = db.core();
        while core.state().families.get(family.id()).unwrap().waiting_requests == 0 {
            std::thread::yield_now();
        }
        // Further compactions are due meanwhile.
        (0..4).for_each(|_| table(b"3"));
        go_on.send(()).unwrap();
        let next = begun.recv().unwrap();
        assert!(own(next), "the next compaction is {next}");
        assert_eq!(core.state().families.get(family.id()).unwrap().waiting_requests, 0);
        drop(go_on);
        request.join().unwrap().unwrap();
    });
    db.close().unwrap();
}
