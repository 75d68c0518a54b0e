//! The first line of a file of records: where and when, and the order in which engines take turns.

use crate::device;
use crate::engine::EngineName;
use ashlar_report::machine::Machine;
use ashlar_report::record::{Header, SCHEMA};
use std::path::Path;
use std::process::Command;

/// The header of a run of `program`, whose databases are in `dir`. Measures the device, which takes about two seconds.
pub fn header(program: &str, dir: &Path) -> Header {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let commit = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "HEAD"]).output();
    let commit = commit.ok().filter(|out| out.status.success());
    Header {
        schema: SCHEMA,
        run_id: format!("{:x}-{:x}", now.as_micros(), std::process::id()),
        time: ashlar_bench::utc(u64::try_from(now.as_micros()).unwrap_or(0)),
        suite_version: env!("CARGO_PKG_VERSION").to_owned(),
        suite_commit: commit.map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned()),
        command: [program.to_owned()]
            .into_iter()
            .chain(std::env::args().skip(1))
            .collect::<Vec<_>>()
            .join(" "),
        machine: Machine {
            disk: device::measure(dir),
            ..Machine::read(dir, &|path| std::fs::read_to_string(path).ok())
        },
    }
}

/// The engines of repetition `rep`: forwards and backwards in turn.
pub fn turns(engines: &[EngineName], rep: u32) -> Vec<EngineName> {
    let mut turn = engines.to_vec();
    if rep.is_multiple_of(2) {
        turn.reverse();
    }
    turn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_take_turns() {
        let (a, b) = (EngineName::Ashlardb, EngineName::Rocksdb);
        let order: Vec<_> = (1..=4).flat_map(|rep| turns(&[a, b], rep)).collect();
        assert_eq!(order, [a, b, b, a, a, b, b, a]);
    }
}
