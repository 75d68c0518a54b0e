//! `rel report`: makes one table of many reports.

use ashlar_testkit::suite::{Harm, Report};
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;

/// Reads reports, a line of JSON each, in the order they were written.
///
/// # Errors
/// The line that is no report.
pub fn parse(text: &str) -> Result<Vec<Report>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))).collect()
}

/// One report per suite, of all that there are of it.
pub fn merge(reports: &[Report]) -> Vec<Report> {
    let mut merged: BTreeMap<&str, Report> = BTreeMap::new();
    for report in reports {
        let sum = merged.entry(&report.suite).or_insert_with(|| Report {
            suite: report.suite.clone(),
            seed: report.seed,
            ..Report::default()
        });
        sum.absorb(report.clone());
    }
    merged.into_values().collect()
}

/// The table: a row per suite of `suites`, those that were not run among them, and the sums below.
pub fn table(suites: &[&str], reports: &[Report]) -> String {
    let merged = merge(reports);
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    let harms = Harm::ALL.map(|harm| harm.name().to_owned());
    table.set_header([["suite", "seconds", "done"].map(String::from).to_vec(), harms.to_vec()].concat());
    let mut sums = [0; Harm::ALL.len()];
    for suite in suites {
        let Some(report) = merged.iter().find(|report| report.suite == *suite) else {
            table.add_row([(*suite).to_owned(), "-".into(), "not run".into()]);
            continue;
        };
        let found = Harm::ALL.map(|harm| report.found(harm));
        sums.iter_mut().zip(found).for_each(|(sum, n)| *sum += n);
        let begin = [report.suite.clone(), format!("{:.0}", report.seconds), wrapped(&report.done_list())];
        table.add_row([begin.to_vec(), found.map(|n| n.to_string()).to_vec()].concat());
    }
    let end =
        ["all".to_owned(), format!("{:.0}", merged.iter().map(|r| r.seconds).sum::<f64>()), String::new()];
    table.add_row([end.to_vec(), sums.map(|n| n.to_string()).to_vec()].concat());
    for column in table.column_iter_mut().filter(|column| column.index != 0 && column.index != 2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut text = table.to_string();
    for report in &merged {
        for why in &report.skipped {
            text += &format!("\nskipped in {}: {why}", report.suite);
        }
        for failure in &report.failures {
            let (suite, replay) = (&report.suite, &failure.replay);
            text += &format!("\n{} (rel {suite} --replay={replay}): {}", failure.harm.name(), failure.what);
        }
    }
    text
}

/// Three figures a line.
fn wrapped(figures: &[String]) -> String {
    figures.chunks(3).map(|line| line.join(", ")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_testkit::suite::Budget;

    #[test]
    fn reports_of_one_suite_are_one_row_and_missing_ones_are_named() {
        let mut first = Report::new("sim", &Budget::quick());
        first.count("crashes", 2);
        first.fail("7", "panic: oh");
        let text = format!("{}\n", serde_json::to_string(&first).unwrap()).repeat(2);
        let reports = parse(&text).unwrap();
        let merged = merge(&reports);
        assert_eq!((merged.len(), merged[0].figures["crashes"], merged[0].failures.len()), (1, 4, 2));
        let table = table(&["sim", "sweep"], &reports);
        assert!(table.contains("not run") && table.contains("4 crashes") && table.contains("--replay=7"));
        assert!(parse("no json").is_err());
    }
}
