//! Every transition of the table: source × kind of error × what follows.

use super::*;
use ashlar_base::error::IoKind;
use ashlar_base::{Error, ErrorKind, FamilyId};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn error(kind: ErrorKind) -> Error {
    Error::new(kind, "a test")
}

const NO_SPACE: ErrorKind = ErrorKind::Io(IoKind::NoSpace);
const OTHER: ErrorKind = ErrorKind::Io(IoKind::Other);
const FILES: ErrorKind = ErrorKind::Io(IoKind::TooManyFiles);

fn sources() -> [Source; 9] {
    let f = FamilyId(1);
    [
        Source::Log,
        Source::LogRoom,
        Source::Manifest,
        Source::Current,
        Source::Panic,
        Source::Flush(f),
        Source::Compaction(f),
        Source::Purge,
        Source::Options,
    ]
}

#[test]
fn every_edge_in() {
    use Severity::{Corrupt, Fatal, Full, Hard, Soft};
    let table = [
        (NO_SPACE, [Hard, Full, Hard, Fatal, Fatal, Full, Soft, Soft, Soft]),
        (OTHER, [Hard, Soft, Hard, Fatal, Fatal, Soft, Soft, Soft, Soft]),
        (FILES, [Hard, Soft, Hard, Fatal, Fatal, Soft, Soft, Soft, Soft]),
        (ErrorKind::Corruption, [Corrupt; 9]),
    ];
    for (kind, expected) in table {
        for (source, severity) in sources().into_iter().zip(expected) {
            let health = HealthState::new(None);
            health.report(source, &error(kind), Duration::ZERO);
            assert_eq!(health.severity(), severity, "{source:?} {kind:?}");
            assert_eq!(health.check_writable().is_err(), severity >= Full);
            assert_eq!(health.check_working().is_err(), severity >= Hard);
            assert_eq!(health.state().cause.map(|e| e.kind()), Some(kind));
        }
    }
}

#[test]
fn every_edge_out() {
    for kind in [NO_SPACE, OTHER, ErrorKind::Corruption] {
        for source in sources() {
            let health = HealthState::new(None);
            health.report(source, &error(kind), Duration::ZERO);
            let ill = health.severity();
            health.succeeded(source);
            let after_success = if ill < Severity::Hard { Severity::Healthy } else { ill };
            assert_eq!(health.severity(), after_success, "{source:?} {kind:?}");
            health.resumed();
            let after_resume = if ill == Severity::Hard { Severity::Healthy } else { after_success };
            assert_eq!(health.severity(), after_resume, "{source:?} {kind:?}");
        }
    }
}

#[test]
fn a_quarantine_heals_what_failed_for_that_file() {
    let (met, other) = (Source::Compaction(FamilyId(1)), Source::Compaction(FamilyId(2)));
    let wrong = error(ErrorKind::Corruption).at_path(Path::new("/db/000012.sst"));
    let health = HealthState::new(None);
    health.report(met, &wrong, Duration::ZERO);
    assert!(health.check_mendable().is_ok());
    for (source, file) in [(other, "000012.sst"), (met, "000013.sst"), (met, "12.sst")] {
        health.file_removed(source, file);
        assert_eq!(health.severity(), Severity::Corrupt, "{source:?} {file}");
    }
    health.report(Source::Log, &error(OTHER), SECOND);
    assert_eq!(health.check_mendable().map_err(|e| e.kind()), Err(OTHER));
    health.file_removed(met, "000012.sst");
    assert_eq!(health.severity(), Severity::Hard);
    health.resumed();
    health.report(met, &error(OTHER).at_path(Path::new("/db/000012.sst")), SECOND);
    health.file_removed(met, "000012.sst");
    assert_eq!(health.severity(), Severity::Soft, "a read that fails is no damage");
}

#[test]
fn entries_do_not_heal_each_other() {
    let health = HealthState::new(None);
    let (one, two) = (FamilyId(1), FamilyId(2));
    health.report(Source::Flush(one), &error(OTHER), SECOND);
    health.report(Source::Compaction(one), &error(OTHER), 2 * SECOND);
    health.report(Source::Purge, &error(OTHER), Duration::ZERO);
    health.succeeded(Source::Flush(two));
    assert_eq!(health.failing().map(|f| f.since), Some(SECOND));
    health.succeeded(Source::Flush(one));
    assert_eq!(health.failing().map(|f| f.since), Some(2 * SECOND));
    health.succeeded(Source::Compaction(one));
    assert!(health.failing().is_none(), "writers never wait for a purge");
    assert_eq!(health.severity(), Severity::Soft);
    health.succeeded(Source::Purge);
    assert_eq!((health.severity(), health.failures()), (Severity::Healthy, 3));
    assert!(health.state().cause.is_none());
}

#[test]
fn an_entry_only_gets_worse() {
    let health = HealthState::new(None);
    let flush = Source::Flush(FamilyId(0));
    health.report(flush, &error(NO_SPACE), Duration::ZERO);
    health.report(flush, &error(OTHER), SECOND);
    assert_eq!(health.severity(), Severity::Full);
    assert_eq!(health.state().cause.map(|e| e.kind()), Some(NO_SPACE));
    health.report(flush, &error(ErrorKind::Corruption), SECOND);
    health.resumed();
    assert_eq!(health.severity(), Severity::Corrupt);
}

#[test]
fn pauses_double_up_to_a_bound() {
    let health = HealthState::new(None);
    let seconds = |kind| {
        let source = Source::Compaction(FamilyId(if kind == NO_SPACE { 1 } else { 2 }));
        (0..9).map(|_| health.report(source, &error(kind), Duration::ZERO).as_secs()).collect::<Vec<_>>()
    };
    assert_eq!(seconds(OTHER), [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    assert_eq!(seconds(NO_SPACE), [1, 2, 4, 8, 10, 10, 10, 10, 10]);
}

/// A refusal has the cause of a current error. An error that was cleared between two checks refuses nothing, and no
/// cause is invented for it.
#[test]
fn what_heals_meanwhile_refuses_nothing() {
    let health = HealthState::new(None);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20_000 {
                health.report(Source::Log, &error(OTHER), n * SECOND);
                health.resumed();
            }
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            for refused in [health.check_writable(), health.check_working()] {
                assert_eq!(refused.map_err(|e| e.kind()).err().unwrap_or(OTHER), OTHER);
            }
            let Health { severity, cause, .. } = health.state();
            assert_eq!(cause.map(|e| e.kind()), (severity == Severity::Hard).then_some(OTHER));
        }
    });
}
