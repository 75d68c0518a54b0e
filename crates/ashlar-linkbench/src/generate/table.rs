//! Observed distributions: the share of nodes with at most so many links, reads or writes.
//!
//! 1. Without a data file the out-degree follows a table of 25 points; inside a bin the degree is log-uniform. That gives a mean
//!    of 4.24, where the original's file gives 4.097.
//! 2. A data file has the original's form: the name of a distribution, then pairs of a value and the percentage of nodes with at
//!    most that value. The file is the original program's and does not come with this one.

use super::floor;
use std::path::Path;

/// Percentages of nodes with at most this out-degree.
const DEGREES: [(u64, f64); 25] = [
    (0, 45.3316),
    (1, 77.4626),
    (2, 86.9581),
    (3, 91.9931),
    (4, 94.4508),
    (5, 95.8281),
    (7, 97.3201),
    (10, 98.3280),
    (15, 99.0269),
    (20, 99.3270),
    (30, 99.5569),
    (50, 99.7216),
    (100, 99.8314),
    (200, 99.8851),
    (500, 99.9275),
    (1000, 99.9507),
    (2000, 99.9694),
    (5000, 99.9875),
    (10_000, 99.9950),
    (20_000, 99.9985),
    (50_000, 99.999_81),
    (100_000, 99.999_96),
    (200_000, 99.999_99),
    (500_000, 99.999_999_3),
    (961_963, 100.0),
];

/// A cumulative distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Values and the part of nodes with at most that value, ascending; the last part is 1.
    points: Vec<(u64, f64)>,
    /// Whether values between two points occur.
    interpolated: bool,
}

/// The names of the distributions in a data file.
pub const NAMES: [&str; 5] = ["nlinks", "link_nreads", "link_nwrites", "node_nreads", "node_nwrites"];

impl Table {
    /// The out-degree without a data file.
    pub fn degrees() -> Table {
        Table {
            points: DEGREES.map(|(value, percent)| (value, percent / 100.0)).to_vec(),
            interpolated: true,
        }
    }

    /// The distribution `name` of a data file.
    ///
    /// # Errors
    /// The file cannot be read, lacks the distribution, or a pair is out of order; the text names file and line.
    pub fn read(path: &Path, name: &str) -> Result<Table, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("data_file {}: {e}", path.display()))?;
        Table::parse(&text, name, &path.display().to_string())
    }

    fn parse(text: &str, name: &str, file: &str) -> Result<Table, String> {
        let mut points: Vec<(u64, f64)> = Vec::new();
        let mut inside = false;
        for (line, number) in text.lines().zip(1_u64..) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let pair = match words[..] {
                [] => continue,
                [head] if NAMES.contains(&head) => {
                    inside = head == name;
                    continue;
                }
                [value, percent] => value.parse().ok().zip(percent.parse::<f64>().ok()),
                _ => None,
            };
            let (value, percent) =
                pair.ok_or_else(|| format!("{file}:{number}: \"{line}\" is not a value and a percentage"))?;
            if !inside {
                continue;
            }
            let rises =
                points.last().is_none_or(|(before, part)| *before < value && *part * 100.0 <= percent + 1e-9);
            if !rises || !(0.0..=100.000_1).contains(&percent) {
                return Err(format!(
                    "{file}:{number}: \"{line}\" does not follow the line before in ascending order"
                ));
            }
            points.push((value, percent / 100.0));
        }
        match points.last_mut() {
            Some(last) if last.1 > 0.999 => last.1 = 1.0,
            Some(_) => return Err(format!("{file}: {name} ends before 100 %")),
            None => return Err(format!("{file}: no distribution {name}")),
        }
        Ok(Table { points, interpolated: false })
    }

    /// The least value that the part `u` of all nodes does not exceed.
    pub fn at(&self, u: f64) -> u64 {
        let place = self.points.partition_point(|(_, part)| *part < u).min(self.points.len() - 1);
        let (value, part) = self.points[place];
        let Some((before, below)) = place.checked_sub(1).map(|place| self.points[place]) else {
            return value;
        };
        if !self.interpolated || value == before + 1 {
            return value;
        }
        let within = ((u - below) / (part - below)).clamp(0.0, 1.0);
        let (low, high) = ((before as f64).ln(), (value as f64).ln());
        floor((low + within * (high - low)).exp().ceil()).clamp(before + 1, value)
    }

    /// The value of the node at `rank` of `n`; rank 0 has the greatest.
    pub fn of_rank(&self, rank: u64, n: u64) -> u64 {
        self.at(1.0 - rank as f64 / n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean value of a node.
    fn mean(table: &Table) -> f64 {
        const PARTS: u32 = 1_000_000;
        let of = |part: u32| table.at((f64::from(part) + 0.5) / f64::from(PARTS)) as f64;
        (0..PARTS).map(of).sum::<f64>() / f64::from(PARTS)
    }

    #[test]
    fn the_table_has_its_points_and_its_mean() {
        let table = Table::degrees();
        for (value, percent) in DEGREES {
            let part = percent / 100.0;
            assert_eq!(table.at(part), value, "{percent}");
        }
        assert_eq!([0.0, 0.3, 0.454, 0.775, 1.0].map(|u| table.at(u)), [0, 0, 1, 2, 961_963]);
        assert_eq!((table.of_rank(0, 1000), table.of_rank(999, 1000)), (961_963, 0));
        assert!((mean(&table) - 4.24).abs() < 0.02, "{}", mean(&table));
    }

    #[test]
    fn a_data_file_is_read_by_the_name_of_its_distribution() {
        let text = "nlinks\n0 50\n2 75.5\n9 99.9999\n\nlink_nreads\n1 100\n";
        let table = Table::parse(text, "nlinks", "f").unwrap();
        assert_eq!([0.5, 0.51, 0.76, 1.0].map(|u| table.at(u)), [0, 2, 9, 9]);
        assert_eq!(Table::parse(text, "link_nreads", "f").unwrap().at(0.3), 1);
        let why = |text: &str| Table::parse(text, "nlinks", "f").unwrap_err();
        assert_eq!(why("link_nreads\n1 100\n"), "f: no distribution nlinks");
        assert_eq!(why("nlinks\n0 x\n"), "f:2: \"0 x\" is not a value and a percentage");
        assert_eq!(
            why("nlinks\n0 50\n5 40\n"),
            "f:3: \"5 40\" does not follow the line before in ascending order"
        );
        assert_eq!(why("nlinks\n0 50\n"), "f: nlinks ends before 100 %");
        assert!(Table::read(Path::new("no/file"), "nlinks").unwrap_err().starts_with("data_file no/file: "));
    }
}
