//! The latencies of a phase as comma-separated values, for spreadsheets: a line per kind of operation, times in microseconds.

use ashlar_report::record::Latency;
use std::collections::BTreeMap;
use std::path::Path;

const HEAD: &str = "op,count,mean,p50,p75,p90,p95,p99,p99.9,p99.99,max";

/// The text of a file.
pub fn text(latencies: &BTreeMap<String, Latency>) -> String {
    let line = |(op, l): (&String, &Latency)| {
        let times = [l.mean, l.p50, l.p75, l.p90, l.p95, l.p99, l.p999, l.p9999, l.max];
        let times: String = times.iter().map(|time| format!(",{time:.1}")).collect();
        format!("{op},{}{times}\n", l.count)
    };
    format!("{HEAD}\n{}", latencies.iter().map(line).collect::<String>())
}

/// Writes the file of a row.
///
/// # Errors
/// The text names the file and the cause.
pub fn write(folder: &Path, name: &str, latencies: &BTreeMap<String, Latency>) -> Result<(), String> {
    let path = folder.join(format!("{name}.csv"));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text(latencies)))
        .map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_per_operation() {
        let latency = Latency { count: 3, mean: 1.25, p50: 1.0, p99: 9.0, max: 10.0, ..Latency::default() };
        let all = BTreeMap::from([("ADD_LINK".to_owned(), latency)]);
        assert_eq!(text(&all), format!("{HEAD}\nADD_LINK,3,1.2,1.0,0.0,0.0,0.0,9.0,0.0,0.0,10.0\n"));
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("below"), "row", &all).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("below/row.csv")).unwrap(), text(&all));
        assert!(write(Path::new("/proc/no"), "row", &all).unwrap_err().starts_with("/proc/no/row.csv: "));
    }
}
