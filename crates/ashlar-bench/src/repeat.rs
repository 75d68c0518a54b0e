//! Repeats a benchmark: `name[X5]` runs five times, `name[W2-X5]` twice more before that, unmeasured.
//!
//! After the last run, prints the average with a 95 % interval, and the median:
//! ```text
//! fillseq [AVG    3 runs] : 402847 (± 1203) ops/sec;   44.6 (± 0.1) MB/sec
//! fillseq [MEDIAN 3 runs] : 402900 ops/sec;   44.6 MB/sec
//! fillseq [CI95   3 runs] : (401644, 404050) ops/sec
//! ```

use crate::stats::Measured;
use std::fmt::Write as _;

/// The number of runs of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Measured runs.
    pub measured: u32,
    /// Unmeasured runs before the measured ones.
    pub warm_ups: u32,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat { measured: 1, warm_ups: 0 }
    }
}

impl Repeat {
    /// Takes the suffix off a name.
    ///
    /// # Errors
    /// A sentence: the text between the brackets is invalid.
    pub fn split(name: &str) -> Result<(&str, Repeat), String> {
        let Some((base, rest)) = name.split_once('[') else { return Ok((name, Repeat::default())) };
        let wrong = || format!("ERROR: {name}: repetitions read [X5], [W2] or [W2-X5]");
        let inside = rest.strip_suffix(']').ok_or_else(wrong)?;
        let mut repeat = Repeat::default();
        for part in inside.split('-') {
            let (kind, number) = part.split_at_checked(1).ok_or_else(wrong)?;
            let number: u32 = number.parse().map_err(|_| wrong())?;
            match kind {
                "X" | "x" if number > 0 => repeat.measured = number,
                "W" | "w" => repeat.warm_ups = number,
                _ => return Err(wrong()),
            }
        }
        Ok((base, repeat))
    }
}

/// The lines after several runs; no lines after a single run. With `interval_only`, only the 95 % interval.
pub(crate) fn summary(runs: &[Measured], interval_only: bool) -> String {
    let mut text = String::new();
    let [first, _, ..] = runs else { return text };
    let ops = Spread::of(runs.iter().map(|r| r.ops_per_sec));
    let bytes = runs.iter().all(|r| r.mb_per_sec.is_some());
    let mb = bytes.then(|| Spread::of(runs.iter().filter_map(|r| r.mb_per_sec)));
    let (name, n) = (&first.name, runs.len());
    let also = |text: fn(&Spread) -> String| mb.as_ref().map(text).unwrap_or_default();
    // Writing to a String cannot fail.
    if !interval_only {
        let _ = writeln!(
            text,
            "{name} [AVG    {n} runs] : {:.0} (\u{b1} {:.0}) ops/sec{}",
            ops.mean,
            ops.interval,
            also(|mb| format!("; {:6.1} (\u{b1} {:.1}) MB/sec", mb.mean, mb.interval))
        );
        let _ = writeln!(
            text,
            "{name} [MEDIAN {n} runs] : {:.0} ops/sec{}",
            ops.median,
            also(|mb| format!("; {:6.1} MB/sec", mb.median))
        );
    }
    let _ = writeln!(
        text,
        "{name} [CI95   {n} runs] : ({:.0}, {:.0}) ops/sec",
        ops.mean - ops.interval,
        ops.mean + ops.interval
    );
    text
}

struct Spread {
    mean: f64,
    median: f64,
    /// Half of the 95 % interval: 1.96 sample deviations over the root of the count.
    interval: f64,
}

impl Spread {
    /// Needs at least two values.
    fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { at(middle) } else { (at(middle - 1) + at(middle)) / 2.0 };
        Spread { mean, median, interval: 1.96 * (variance / count).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::ThreadStats;

    #[test]
    fn suffixes() {
        let split = |name| Repeat::split(name).map(|(base, r)| (base.to_owned(), r.measured, r.warm_ups));
        assert_eq!(split("fillseq"), Ok(("fillseq".into(), 1, 0)));
        assert_eq!(split("fillseq[X5]"), Ok(("fillseq".into(), 5, 0)));
        assert_eq!(split("fillseq[W2-X3]"), Ok(("fillseq".into(), 3, 2)));
        assert_eq!(split("fillseq[X2-W1]"), Ok(("fillseq".into(), 2, 1)));
        for wrong in ["f[", "f[X]", "f[X0]", "f[Y2]", "f[X2", "f[]", "f[Xé]"] {
            assert!(split(wrong).unwrap_err().contains("[W2-X5]"), "{wrong}");
        }
    }

    #[test]
    fn averages_and_medians() {
        let run = |ops| Measured {
            ops_per_sec: ops,
            mb_per_sec: Some(ops / 10.0),
            ..Measured::new("x", ThreadStats::default())
        };
        assert_eq!(summary(&[run(1.0)], false), "");
        let text = summary(&[run(100.0), run(300.0), run(200.0)], false);
        assert_eq!(
            text,
            "x [AVG    3 runs] : 200 (\u{b1} 113) ops/sec;   20.0 (\u{b1} 11.3) MB/sec\n\
             x [MEDIAN 3 runs] : 200 ops/sec;   20.0 MB/sec\n\
             x [CI95   3 runs] : (87, 313) ops/sec\n"
        );
        let alone = summary(&[run(100.0), run(300.0), run(200.0)], true);
        assert_eq!(alone, "x [CI95   3 runs] : (87, 313) ops/sec\n");
        let bare = Measured { mb_per_sec: None, ..run(100.0) };
        assert!(summary(&[bare.clone(), bare], false).contains("[MEDIAN 2 runs] : 100 ops/sec\n"));
    }
}
