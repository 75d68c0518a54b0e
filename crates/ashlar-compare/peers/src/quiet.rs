//! Checks that the machine was quiet during a run.
//!
//! A noisy machine voids a published experiment. For `smoke` and for a custom selection it is only a note.

use crate::stop::Stop;
use ashlar_report::record::{Record, Status};
use std::time::{Duration, Instant, SystemTime};

/// Ticks of `/proc` in a second.
const TICKS: f64 = 100.0;
/// Part of the machine's processors that others may use.
const OTHERS: f64 = 0.05;
/// The percentage of time in which a process may wait for storage before the start, and the longest wait for that.
const PRESSURE: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(60);
/// The greatest difference of the wall clock and the steady clock.
const STEP: Duration = Duration::from_millis(250);

/// The machine's counters at one moment. `None`: the machine does not count this.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Ticks of programs, all of them.
    programs: Option<u64>,
    /// Ticks that another guest of the same host took.
    stolen: Option<u64>,
    /// Ticks of this program, and of its children that have ended.
    own: Option<u64>,
    swapped: Option<u64>,
    throttled: Option<u64>,
}

impl Counts {
    fn now() -> Counts {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let (stat, own) = (read("/proc/stat"), read("/proc/self/stat"));
        let vm = read("/proc/vmstat");
        let cpu = |which: &[usize]| sum(stat.as_deref()?.lines().next()?, which);
        // The name of a program may contain blanks, so the fields are counted from the end of the name.
        let own = own.as_deref().and_then(|text| sum(text.rsplit_once(')')?.1, &[11, 13]));
        let swaps = |text: &str| ["pswpin ", "pswpout "].map(|name| line(text, name)).into_iter().sum();
        let throttled = read("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count");
        Counts {
            programs: cpu(&[1, 2]),
            stolen: cpu(&[8]),
            own,
            swapped: vm.as_deref().and_then(swaps),
            throttled: throttled.and_then(|text| text.trim().parse().ok()),
        }
    }
}

/// The sum of the words at these places.
fn sum(line: &str, which: &[usize]) -> Option<u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    which.iter().map(|&place| words.get(place)?.parse::<u64>().ok()).sum()
}

fn line(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

/// A run that is being watched.
#[derive(Debug)]
pub struct Watch {
    at: Instant,
    wall: SystemTime,
    counts: Counts,
}

impl Watch {
    /// Starts to watch now.
    pub fn begin() -> Watch {
        Watch { at: Instant::now(), wall: SystemTime::now(), counts: Counts::now() }
    }

    /// The disturbances so far.
    pub fn disturbed(&self) -> Vec<String> {
        let wall = self.wall.elapsed().unwrap_or_default();
        let steady = self.at.elapsed();
        let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let mut what = between(&self.counts, &Counts::now(), steady.as_secs_f64(), processors);
        if wall.abs_diff(steady) > STEP {
            what.push("the clock was set".to_owned());
        }
        what
    }
}

/// Waits, up to a limit, until no process waits for storage any more: a build or a copy may have just ended.
pub fn wait(stop: &Stop) {
    let begun = Instant::now();
    let busy = || pressure().is_some_and(|percent| percent > PRESSURE);
    if busy() {
        eprintln!("storage is busy: waiting, {} s at most", PATIENCE.as_secs());
    }
    while busy() && begun.elapsed() < PATIENCE && !stop.asked() {
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The percentage of the last ten seconds in which a process waited for storage. `None`: the system does not count this.
fn pressure() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/pressure/io").ok()?;
    text.split_once("avg10=")?.1.split(' ').next()?.parse().ok()
}

fn between(then: &Counts, now: &Counts, seconds: f64, processors: f64) -> Vec<String> {
    let more = |of: fn(&Counts) -> Option<u64>| Some(of(now)?.saturating_sub(of(then)?));
    let part = |ticks: u64| ticks as f64 / TICKS / seconds.max(0.01) / processors;
    let others = more(|c| c.programs).zip(more(|c| c.own)).map(|(all, own)| all.saturating_sub(own));
    let shares = [("other programs used", others), ("other guests took", more(|c| c.stolen))];
    let mut what: Vec<String> = shares
        .into_iter()
        .filter_map(|(what, ticks)| Some((what, part(ticks?))))
        .filter(|(_, part)| *part > OTHERS)
        .map(|(what, part)| format!("{what} {:.0} % of the processors", part * 100.0))
        .collect();
    let counts =
        [("pages were swapped", more(|c| c.swapped)), ("the processor was throttled", more(|c| c.throttled))];
    what.extend(
        counts.into_iter().filter(|(_, n)| n.is_some_and(|n| n > 0)).map(|(text, _)| text.to_owned()),
    );
    what
}

/// Adds the disturbances to a record. A `quoted` record becomes void.
pub fn mark(record: &mut Record, disturbed: &[String], quoted: bool) {
    if disturbed.is_empty() {
        return;
    }
    let why = disturbed.join("; ");
    if quoted && record.status == Status::Ok {
        record.status = Status::Void { why: why.clone() };
    }
    record.params.options.insert("disturbed".into(), why);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_do_is_seen() {
        let then = Counts {
            programs: Some(1000),
            stolen: Some(0),
            own: Some(500),
            swapped: Some(7),
            throttled: None,
        };
        let quiet = Counts { programs: Some(2000), own: Some(1495), ..then };
        assert_eq!(between(&then, &quiet, 10.0, 1.0), [""; 0]);
        let busy =
            Counts { programs: Some(2000), own: Some(1400), stolen: Some(60), swapped: Some(8), ..then };
        assert_eq!(
            between(&then, &busy, 10.0, 1.0),
            [
                "other programs used 10 % of the processors",
                "other guests took 6 % of the processors",
                "pages were swapped"
            ]
        );
        let half = Counts { programs: Some(2000), own: Some(1420), ..then };
        assert_eq!(between(&then, &half, 10.0, 2.0), [""; 0], "a part of all processors");
        assert_eq!(between(&Counts::default(), &busy, 10.0, 1.0), [""; 0], "unknown is no disturbance");
        let now = Counts::now();
        assert!(now.programs.is_some() && now.own.is_some(), "{now:?}");
    }

    #[test]
    fn only_what_may_be_quoted_is_void() {
        let of = |quoted| {
            let mut record = Record::default();
            mark(&mut record, &["the clock was set".to_owned()], quoted);
            (record.status.text(), record.params.options["disturbed"].clone())
        };
        assert_eq!(of(true), ("void: the clock was set".into(), "the clock was set".into()));
        assert_eq!(of(false), (String::new(), "the clock was set".into()));
    }
}
