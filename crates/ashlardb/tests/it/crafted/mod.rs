//! Files with right checksums over wrong contents: each is opened, read both ways, checked, repaired and read again in a
//! process of its own, whose memory and time are limited.

mod counts;
mod kit;
mod numbers;
mod order;
mod sizes;
mod tombstones;
mod values;

use crate::child::Limited;
use ashlardb::{Damage, Db, Env, Read as _, Result, Write as _};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// What became of a crafted directory, step by step. A step that failed says why. The last step is the peak of memory.
#[derive(Debug)]
pub struct Verdict(Vec<(String, String)>);

/// The memory that the steps together may take, in bytes, and their time. The process without a database takes about
/// 10 MB. The time leaves room for a busy machine.
const MEMORY: u64 = 256 << 20;
const TIME: Duration = Duration::from_secs(240);
/// What a process may ever ask for, in bytes of address space. The block cache is reserved, not touched.
const ADDRESSES: u64 = 12 << 30;

impl Verdict {
    /// What a step said.
    pub fn of(&self, step: &str) -> &str {
        let found = self.0.iter().find(|(name, _)| name == step);
        found.map_or_else(|| panic!("no step {step} in {self:#?}"), |(_, said)| said)
    }
}

/// Runs all steps on the directory.
pub fn judge(dir: &Path) -> Verdict {
    judge_within(dir, ADDRESSES, MEMORY)
}

/// [`judge`] with other limits: address space and memory, both in bytes.
pub fn judge_within(dir: &Path, addresses: u64, memory: u64) -> Verdict {
    let said = Limited { addresses, time: TIME }.run(&format!("crafted\t{}", dir.to_str().unwrap()));
    let steps = said.lines().filter_map(|line| line.split_once('\t')).map(|(a, b)| (a.into(), b.into()));
    let verdict = Verdict(steps.collect());
    let peak: u64 = verdict.of("peak").parse().unwrap();
    assert!(peak <= memory, "{verdict:#?}");
    verdict
}

/// The steps, in a child.
pub fn steps(dir: &Path) -> String {
    let mut said = String::new();
    let mut step = |name: &str, act: &dyn Fn() -> Result<String>| {
        let outcome = act().unwrap_or_else(|e| format!("{:?}: {e}", e.kind()));
        writeln!(said, "{name}\t{}", outcome.replace(['\n', '\t'], " ")).unwrap();
    };
    let read_only = || Db::open_read_only(dir);
    step("forward", &|| read_only().and_then(|db| scan(&db, false)));
    step("backward", &|| read_only().and_then(|db| scan(&db, true)));
    step("get", &|| Ok(format!("{:?}", read_only()?.get(b"k")?.map(|value| value.len()))));
    step("check", &|| check(dir));
    step("write", &|| {
        let db = Db::open(dir)?;
        db.put(b"new", b"v")?;
        db.flush()?;
        db.close()?;
        Ok("fine".to_owned())
    });
    step("repair", &|| {
        Db::builder(dir).repair(|_| {})?;
        Ok("fine".to_owned())
    });
    step("after", &|| {
        let db = Db::open(dir)?;
        db.put(b"new", b"v")?;
        let found = scan(&db, false)?;
        db.close()?;
        Ok(found)
    });
    step("check after", &|| check(dir));
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    let peak = peak.map_or(0, |kib| kib.trim().parse::<u64>().unwrap() * 1024);
    writeln!(said, "peak\t{peak}").unwrap();
    said
}

/// The number of entries.
fn scan(db: &Db, backward: bool) -> Result<String> {
    let (mut scan, mut count) = (db.scan(..), 0_u64);
    while let Some(entry) = if backward { scan.next_back() } else { scan.next() } {
        entry?;
        count += 1;
    }
    Ok(format!("{count} entries"))
}

fn check(dir: &Path) -> Result<String> {
    let report = ashlardb::check_database(&Env::os()?, dir, &mut |_| {})?;
    let told = |word: &str, first: Option<&Damage>| first.map(|damage| format!("{word}: {damage}"));
    let said = told("damage", report.damages.first())
        .or_else(|| report.unchecked.first().map(|what| format!("unchecked: {what}")));
    Ok(said.unwrap_or_else(|| "sound".to_owned()))
}
