//! Runs the same work for any time, and checks that nothing grows.
//!
//! A child process overwrites the same keys, in rounds (`work`). Between two rounds nothing is pinned and every file is live.
//! Then the process counts its resources. After the first quarter, the warm-up, these may not grow:
//!
//! | counted | may be more in the last quarter than in the second |
//! |---|---|
//! | memory that is resident | 8 MiB, and a MiB for every hour |
//! | threads | 2: those of background jobs come and go |
//! | descriptors, but for those of live tables | 4 |
//! | bytes in tables, blob files, logs and MANIFESTs | as much again, and 16 MiB: short runs end while the tree still takes shape |

pub(crate) mod work;

use ashlar_testkit::children::answer;
use ashlar_testkit::suite::{Budget, Harm, Length, Report, Watchdog, guarded};
use comfy_table::{Table, presets};
use std::time::Duration;

/// How long the quick form works.
const QUICK: Duration = Duration::from_secs(3);
/// What the child may take beside its time: the first open, the last round and its close.
const PATIENCE: Duration = Duration::from_secs(120);

/// What is counted: its name, and how much more of it there may be, given the second quarter's and the hours.
type Series = (&'static str, fn(f64, f64) -> f64);

const SERIES: [Series; 4] = [
    ("KiB resident", |_, hours| 8.0 * 1024.0 + 1024.0 * hours),
    ("threads", |_, _| 2.0),
    ("descriptors", |_, _| 4.0),
    ("KiB in files", |before, _| before + 16.0 * 1024.0),
];

/// What a process had between two rounds.
#[derive(Clone, Copy, Debug)]
struct Sample {
    seconds: f64,
    counts: [f64; SERIES.len()],
}

impl Sample {
    fn parse(line: &str) -> Result<Sample, String> {
        let numbers: Result<Vec<f64>, _> = line.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok([millis, counts @ ..]) if counts.len() == SERIES.len() => {
                let mut sample = Sample { seconds: millis / 1000.0, counts: [0.0; SERIES.len()] };
                sample.counts.copy_from_slice(counts);
                Ok(sample)
            }
            _ => Err(format!("no sample: {line}")),
        }
    }
}

/// Works until the time is over; `--replay=SEED` does what that seed did.
pub fn run(budget: &Budget) -> Report {
    let mut report = Report::new("soak", budget);
    let seed = budget.replayed("").unwrap_or(budget.seed);
    let time = match budget.length {
        Length::Quick => QUICK,
        Length::For(time) => time,
    };
    let watchdog = Watchdog::new("soak", time + PATIENCE);
    let _case = watchdog.begins(seed);
    let done = guarded(|| {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let role = ["soak", &dir.path().to_string_lossy(), &seed.to_string(), &time.as_secs().to_string()];
        answer(budget, &role)?.lines().map(Sample::parse).collect::<Result<Vec<_>, _>>()
    });
    drop(watchdog);
    match done {
        Ok(samples) => judge(&samples, seed, &mut report),
        Err(e) => report.fail(seed.to_string(), e),
    }
    report.done(budget)
}

fn judge(samples: &[Sample], seed: u64, report: &mut Report) {
    report.count("rounds", samples.len() as u64);
    let quarter = samples.len() / 4;
    if quarter == 0 {
        return report.fail(seed.to_string(), format!("{} rounds have no quarters", samples.len()));
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["", "at first", "second quarter", "last quarter", "an hour"]);
    for (at, (name, allowance)) in SERIES.into_iter().enumerate() {
        let most = |samples: &[Sample]| samples.iter().map(|sample| sample.counts[at]).fold(0.0, f64::max);
        let (before, after) = (most(&samples[quarter..2 * quarter]), most(&samples[3 * quarter..]));
        let warm = &samples[quarter..];
        let hours = warm.last().map_or(0.0, |last| last.seconds - warm[0].seconds) / 3600.0;
        let first = samples[0].counts[at];
        let numbers = [first, before, after].map(|count| format!("{count:.0}"));
        table.add_row([&[name.to_owned()], &numbers[..], &[format!("{:+.0}", slope(warm, at))]].concat());
        if after > before + allowance(before, hours) {
            let what = format!("{name}: {before:.0} in the second quarter, {after:.0} in the last");
            report.fail_as(Harm::WrongAnswer, seed.to_string(), what);
        }
    }
    report.table = table.to_string();
}

/// How much more an hour: the straight line that fits best.
fn slope(samples: &[Sample], at: usize) -> f64 {
    let count = samples.len() as f64;
    let mean = |of: &dyn Fn(&Sample) -> f64| samples.iter().map(of).sum::<f64>() / count;
    let (time, value) = (mean(&|sample| sample.seconds), mean(&|sample| sample.counts[at]));
    let both = mean(&|sample| (sample.seconds - time) * (sample.counts[at] - value));
    let spread = mean(&|sample| (sample.seconds - time).powi(2));
    if spread > 0.0 { both / spread * 3600.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(resident: impl Fn(f64) -> f64) -> Report {
        let mut report = Report::new("soak", &Budget::quick());
        let lines = (0..=480_u32).map(|minute| {
            let at = f64::from(minute);
            format!("{} {} 7 12 {}", at * 60_000.0, resident(at), 9000 + minute % 7 * 1000)
        });
        let samples: Vec<Sample> = lines.map(|line| Sample::parse(&line).unwrap()).collect();
        assert!((slope(&samples, 0) - (resident(480.0) - resident(0.0)) / 8.0).abs() < 1.0);
        judge(&samples, 0, &mut report);
        report
    }

    #[test]
    fn what_grows_is_found() {
        assert!(judged(|_| 50_000.0).failures.is_empty());
        // 8 hours, of which half lie between the quarters.
        let leak = judged(|minute| 50_000.0 + minute * 60.0);
        assert!(leak.failures.len() == 1 && leak.failures[0].what.starts_with("KiB resident"), "{leak}");
        assert!(Sample::parse("1 2 3").is_err());
    }
}
