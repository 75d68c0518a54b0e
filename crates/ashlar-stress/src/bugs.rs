//! `rel bugs`: plants bugs of other systems one at a time; the suite of each bug must find it.
//!
//! Each bug runs in a separate process, because the process may hang or abort: first with the suite's quick form, then with
//! longer ones. A bug is found if that process fails. Only builds with the feature `planted` have the bugs
//! (`cargo xtask rel bugs` builds with it).

use ashlar_base::planted::Bug;
use ashlar_testkit::harm;
use ashlar_testkit::suite::{Budget, Harm, Length, Report};
use comfy_table::{Table, presets};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Tells a child process which mistake to make.
pub const VARIABLE: &str = "ASHLAR_PLANTED";
/// Names this program in a build with a scheduler under its threads, where the suite `shuttle` is.
pub const SCHEDULED: &str = "ASHLAR_SCHEDULED_REL";

/// The suite that has to find a mistake, and where it was made before: rows of the list of anchors, where there is one.
const OWED: &[(&[Bug], &str, &str)] = &[
    (&[Bug::CurrentDirUnsynced], "sim", "A04 RocksDB #10573"),
    (&[Bug::CurrentUnsynced], "sim", "A04 LevelDB"),
    (&[Bug::ManifestUnsynced], "sim", "A06 RocksDB 7.4"),
    (&[Bug::ManifestGoesOn], "sweep", "A20 RocksDB #6316"),
    (&[Bug::TableUnsynced, Bug::BlobUnsynced], "sim", "A06"),
    (&[Bug::TableDirUnsynced], "sim", "A05 RocksDB #5287"),
    (&[Bug::PlaceUnsynced], "sim", "tables in another directory"),
    (&[Bug::WriteUnsynced], "sim", "A30 RocksDB 9.3.0"),
    (&[Bug::LogDirUnsynced], "sim", "A05 mongo-rocks #35"),
    (&[Bug::HeaderBeforePayload], "sim", "a torn record in a mapped log"),
    (&[Bug::GuardUnread], "sweep", "a missing page beneath a store"),
    (&[Bug::SyncRetried], "sweep", "A07 fsyncgate"),
    (&[Bug::SyncUnconfirmed], "power", "ext4 of Linux 6.18, under any engine"),
    (&[Bug::OlderLogUnsynced], "sim", "A09 RocksDB #11149"),
    (&[Bug::FlushBeforeLogs], "sim", "A01 RocksDB #10560"),
    (&[Bug::LogNumberTooHigh], "sim", "A13 RocksDB #11148"),
    (&[Bug::LogRemovedEarly], "sim", "A19 RocksDB #9634"),
    (&[Bug::ReplayPastAHole], "sim", "A10 RocksDB #12488"),
    (&[Bug::LogReadErrorIsEnd], "sweep", "A18 RocksDB #6963"),
    (&[Bug::LogChecksumIgnored], "corrupt", "A08 LevelDB #251"),
    (&[Bug::HalfBatchReplayed], "sim", "A13 RocksDB #10773"),
    (&[Bug::FailedLogAcknowledged], "sweep", "publishing before the log"),
    (&[Bug::ReadErrorIsAbsence], "sweep", "A15 RocksDB 6.8.0"),
    (&[Bug::ReadErrorSkipsTable], "sweep", "A16 RocksDB 8.7.0"),
    (&[Bug::RangeDeletionsIgnored], "corrupt", "A17 RocksDB 6.0.0"),
    (&[Bug::BlockChecksumIgnored], "corrupt", "A37 Pebble d40d24140"),
    (&[Bug::OtherTableTaken], "corrupt", "A36 RocksDB 8.6.0"),
    (&[Bug::FilterSaysNo], "sim", "A26 RocksDB 9.5.0"),
    (&[Bug::SnapshotSeesNewer], "sim", "A26 Pebble #1947"),
    (&[Bug::SnapshotsForgotten], "sim", "A23 LevelDB #184"),
    (&[Bug::TombstoneDroppedEarly], "sim", "A23 RocksDB #2722"),
    (&[Bug::RangeTombstoneDroppedEarly], "sim", "A23 RocksDB 11.1.0"),
    (&[Bug::SingleDeleteAlone], "sim", "A25 Pebble 225d7c257"),
    (&[Bug::MergedTwice], "sim", "A24 RocksDB 6.15.0"),
    (&[Bug::KeyLostInRewrite], "sim", "A40 a processor that miscounts"),
    (&[Bug::SequenceZeroedEarly], "sim", "A39 RocksDB 6.10"),
    (&[Bug::FilterOverSnapshot], "filter", "RocksDB since 6.0: filters ignore snapshots"),
    (&[Bug::ViewNotKept], "filter", "RocksDB: no repeatable reads beside a filter"),
    (&[Bug::FilteredWithoutTombstone], "filter", "a skip of RocksDB's filters"),
    (&[Bug::GarbageCountedTwice], "sim", "blob files removed while linked"),
    (&[Bug::ScanEndsCross], "meta", "entries shown from both ends"),
    (&[Bug::NoPauseAfterFailure], "sweep", "A34 eleveldb #23"),
    (&[Bug::IngestedWithoutSequence], "sim", "an ingestion below a snapshot"),
    (&[Bug::IngestedBelowMemtables, Bug::IngestedTooDeep], "sim", "an ingestion below older entries"),
    (&[Bug::ImportedAboveWrites], "sim", "an import that keeps its numbers to itself"),
    (&[Bug::IngestedBeforeLogs], "sim", "an ingestion ahead of the log"),
    (&[Bug::IngestedDirUnsynced], "sim", "A05, of an ingestion"),
    (&[Bug::VisibleBeforeInserted], "shuttle", "publishing before the memtable"),
    (&[Bug::SnapshotTakenLate], "shuttle", "a snapshot beside a compaction"),
    (&[Bug::WakeUpLost], "shuttle", "a wake-up between look and sleep"),
    (&[Bug::OpenLeadUntold], "shuttle", "a lead that is left to a sleeping writer"),
    (&[Bug::CloseWaitsForNobody], "shuttle", "jobs behind a close"),
    (&[Bug::PendingRemoved], "shuttle", "a purge beside a flush"),
    (&[Bug::ConflictsIgnored], "txn", "validation left out"),
    (&[Bug::CheckedBeforeTheLead], "txn", "a write between check and commit"),
    (&[Bug::NewestWriteInMemoryOnly], "txn", "a write that was flushed"),
    (&[Bug::RangeDeletionIsNoWrite], "txn", "a key deleted with its range"),
    (&[Bug::NoSnapshotForTheCheck], "txn", "sequence numbers set to zero"),
    (&[Bug::SnapshotOfTheCheckTooNew], "txn", "a write between snapshot and lock"),
    (&[Bug::UpgradeBesideOthers, Bug::SharedBesideExclusive], "txn", "a lock that excludes nothing"),
    (&[Bug::RangeOverPoints, Bug::PointsInRanges], "txn", "locks of two kinds that do not meet"),
    (&[Bug::SavepointKeepsLocks], "txn", "locks of what was taken back"),
    (&[Bug::SavepointKeepsReads], "txn", "an index beside its batch"),
    (&[Bug::MergeBelowADeletion], "txn", "a deleted value in a sum"),
    (&[Bug::TurnShowsAKeyTwice], "txn", "a cursor that turns around"),
    (&[Bug::PreparedForgotten], "txn", "a prepared transaction lost with its log"),
    (&[Bug::CommitWithoutData], "txn", "a commit of nothing"),
    (&[Bug::RollbackLeavesALock], "txn", "a lock held by an ended transaction"),
    (&[Bug::LockReleasedEarly], "txn", "a lock released before the commit"),
    (&[Bug::PreparedCopyUnsynced], "sim", "a prepared transaction lost with its log"),
    (&[Bug::PreparedUnlocked], "sim", "a prepared transaction without locks"),
    (&[Bug::CopyWithoutLastLog], "sim", "a checkpoint without the last log"),
    (&[Bug::BackupDirUnsynced], "sim", "A05, of a backup"),
    (&[Bug::BehindForgotten], "sim", "deletions dropped above ingested files"),
    (&[Bug::FifoDropsLive], "meta", "FIFO dropping live data"),
    (&[Bug::LogsLookedAtOnce], "sim", "a secondary beside a flush"),
    (&[Bug::HalfBatchInAView], "sim", "A13, of a secondary"),
    (&[Bug::ViewLetsTablesGo], "sim", "a secondary beside a compaction"),
    (&[Bug::MergeRevives], "sim", "an expired value in a sum"),
    (&[Bug::RenewalForgotten], "sim", "a renewed value that a compaction drops"),
    (&[Bug::ExpiredEarly], "sim", "a live value that a compaction drops"),
    (&[Bug::OwnTtlForgotten], "sim", "a value with an end of its own"),
];

fn owed(bug: Bug) -> (&'static str, &'static str) {
    let row = OWED.iter().find(|(bugs, ..)| bugs.contains(&bug));
    row.map_or(("", ""), |(_, suite, anchor)| (suite, anchor))
}

/// Chooses the mistake of a child process, if this is one.
pub fn obey() {
    #[cfg(feature = "planted")]
    if let Some(name) = std::env::var_os(VARIABLE)
        && let Some((bug, _)) = Bug::ALL.iter().find(|(bug, _)| *format!("{bug:?}") == *name)
    {
        ashlar_base::planted::choose(*bug);
    }
}

/// How a suite took a mistake.
enum Taken {
    Caught(Duration, String),
    Missed(Duration),
}

/// Every mistake, or the one that `--replay` names. Each gets an even share of the time; quick is three minutes each, and five
/// for `power`, where the kernel and not the seed says what comes when.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("bugs", budget);
    if !cfg!(feature = "planted") {
        report.skip("this build has nothing planted: cargo xtask rel bugs");
        return report.done(budget);
    }
    let share = |suite: &str| match budget.length {
        Length::Quick => Duration::from_secs(if suite == "power" { 300 } else { 180 }),
        Length::For(time) => time / u32::try_from(Bug::ALL.len()).unwrap_or(1),
    };
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["bug", "made before", "suite", "caught after", "as"]);
    let wanted = |bug: Bug| budget.replay.as_ref().is_none_or(|name| *name == format!("{bug:?}"));
    for (bug, what) in Bug::ALL.iter().filter(|(bug, _)| wanted(*bug)) {
        let (suite, anchor) = owed(*bug);
        let Some(program) = program(suite) else {
            report.skip(format!(
                "bugs owed by {suite}: it is in another build; cargo xtask rel bugs makes both"
            ));
            continue;
        };
        report.count("planted", 1);
        let row = [format!("{bug:?}"), anchor.to_owned(), suite.to_owned()];
        let end = match hunt(&program, *bug, suite, share(suite)) {
            Taken::Caught(took, how) => {
                report.count("caught", 1);
                report.time("to catch", took);
                [format!("{:.1} s", took.as_secs_f64()), how]
            }
            Taken::Missed(took) => {
                let text = format!("{suite} does not find in {} s: {}", took.as_secs(), what.trim());
                report.fail_as(Harm::MissedBug, format!("{bug:?}"), text);
                ["MISSED".to_owned(), String::new()]
            }
        };
        eprintln!("{:<28} {:<8} {:<8} {}", row[0], suite, end[0], end[1]);
        table.add_row([row.to_vec(), end.to_vec()].concat());
    }
    report.table = table.to_string();
    report.done(budget)
}

/// The program that has the suite.
fn program(suite: &str) -> Option<PathBuf> {
    match (suite == "shuttle", cfg!(shuttle)) {
        (true, false) => std::env::var_os(SCHEDULED).map(PathBuf::from),
        (false, true) => None,
        _ => std::env::current_exe().ok(),
    }
}

/// Runs the suite with the mistake: its quick form, then with other seeds until the time is over.
fn hunt(program: &Path, bug: Bug, suite: &str, time: Duration) -> Taken {
    let began = Instant::now();
    let mut seed = 0;
    while began.elapsed() < time {
        let left = time.saturating_sub(began.elapsed());
        if let Some(how) = child(program, bug, suite, seed, left) {
            return Taken::Caught(began.elapsed(), how);
        }
        seed += 1000;
    }
    Taken::Missed(began.elapsed())
}

/// What made the process fail; `None` when it did not, or was not done in time.
fn child(program: &Path, bug: Bug, suite: &str, seed: u64, time: Duration) -> Option<String> {
    let mut command = Command::new(program);
    command.args([suite, "--first", &format!("--seed={seed}")]).env(VARIABLE, format!("{bug:?}"));
    command.env("RUST_BACKTRACE", "0").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let began = Instant::now();
    let (mut out, mut err) = (child.stdout.take()?, child.stderr.take()?);
    // Both pipes are read, so that the child never waits for us.
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = std::io::Read::read_to_string(&mut out, &mut text);
        text
    });
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = std::io::Read::read_to_string(&mut err, &mut text);
        text
    });
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if began.elapsed() > time + Duration::from_secs(90) => {
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => break None,
        }
    };
    let (text, errors) = (reader.join().unwrap_or_default(), errors.join().unwrap_or_default());
    let status = status?;
    if status.success() {
        return None;
    }
    let harm =
        Harm::ALL.iter().map(|harm| harm.name()).find(|name| text.lines().any(|l| l.starts_with(name)));
    let hang = errors.lines().any(|line| line.starts_with(harm::HANG));
    Some(if hang { Harm::Hang.name().to_owned() } else { harm.unwrap_or("the process died").to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_suite_of_this_program_owes_each_mistake() {
        const SUITES: [&str; 8] = ["sim", "sweep", "power", "corrupt", "meta", "filter", "txn", "shuttle"];
        for (bug, _) in Bug::ALL {
            let rows: Vec<_> = OWED.iter().filter(|(bugs, ..)| bugs.contains(bug)).collect();
            assert!(matches!(rows[..], [(_, suite, _)] if SUITES.contains(suite)), "{bug:?}: {rows:?}");
        }
    }
}
