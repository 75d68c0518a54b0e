//! LevelDB's page of July 2011: one thread, 16-byte keys, 100-byte values, 4 MB of memory in all.
//!
//! Four million bytes are 2 + 2 for engines with a memtable (one memtable and the cache), and one cache for the others. Reads
//! come as on the page, straight after the load, and once more after everything was settled.

use super::{CACHE_FLOOR, Session, Size, settings};
use crate::job::{Step, TreeState, Workload};
use ashlar_peers::settings::Settings;
use ashlar_report::history;

const KEYS: u64 = 1_000_000;
const LARGE_VALUE: usize = 100_000;

pub fn sessions(size: Size) -> Vec<Session> {
    let page = Page { size, keys: size.of(KEYS / 10, KEYS, KEYS * 10) };
    let none = |s: Settings| Settings { codec: "none".into(), ..s };
    let (base, plain) = (page.memory(1, 1), none(page.memory(1, 1)));
    let (writes, reads) = (page.memory(60, 4), page.memory(4, 60));
    let large = Settings { value_bytes: LARGE_VALUE, ..base.clone() };
    let sync = Settings { sync: true, ..base.clone() };
    // A floor is a floor in every size.
    let floor = Settings { cache_bytes: CACHE_FLOOR * u64::from(size.parts()), ..base.clone() };
    vec![
        page.session(&base, [page.fill("1C", true), page.scan("1A"), page.scan("1A-settled")]),
        page.session(&base, [page.fill("1D", false), page.get("1B"), page.get("1B-settled")]),
        page.session(&floor, [page.fill("1C-floor", true), page.scan("1A-floor")]),
        page.session(&floor, [page.fill("1D-floor", false), page.get("1B-floor")]),
        page.session(&large, [Step { ops: page.keys / 1000, ..page.fill("2A-seq", true) }]),
        page.session(&large, [Step { ops: page.keys / 1000, ..page.fill("2A-rand", false) }]),
        page.session(&base, [Step { batch: 1000, ..page.fill("2B-seq", true) }]),
        page.session(&base, [Step { batch: 1000, ..page.fill("2B-rand", false) }]),
        page.session(&floor, [Step { batch: 1000, ..page.fill("2B-rand-floor", false) }]),
        page.session(&sync, [Step { ops: page.keys / 100, ..page.fill("2C-seq", true) }]),
        page.session(&sync, [Step { ops: page.keys / 100, ..page.fill("2C-rand", false) }]),
        page.session(&plain, [page.fill("2D-seq", true), page.scan("3B-seq")]),
        page.session(&plain, [page.fill("2D-rand", false), page.get("3B-rand")]),
        page.session(&writes, [page.fill("2E-seq", true)]),
        page.session(&writes, [page.fill("2E-rand", false)]),
        page.session(&reads, [load(page.fill("load-seq", true)), page.scan("3A-seq")]),
        page.session(&reads, [load(page.fill("load-rand", false)), page.get("3A-rand")]),
    ]
}

fn load(step: Step) -> Step {
    Step { measured: false, ..step }
}

struct Page {
    size: Size,
    keys: u64,
}

impl Page {
    /// Memtable and cache in parts of 2 MB at the page's size.
    fn memory(&self, memtable: u64, cache: u64) -> Settings {
        let part = self.size.of(200_000, 2_000_000, 20_000_000);
        settings(self.keys, [16, 100], cache * part, memtable * part)
    }

    fn session<const N: usize>(&self, s: &Settings, steps: [Step; N]) -> Session {
        let puts = steps[0].ops;
        let data_bytes = puts * (s.key_bytes + s.value_bytes) as u64;
        Session { settings: Settings { data_bytes, ..s.clone() }, keys: puts, steps: steps.to_vec() }
    }

    fn step(&self, row: &str, workload: Workload, ops: u64) -> Step {
        let (name, what) = match row.rsplit_once('-') {
            Some((name, "settled")) => (name, ", settled"),
            Some((name, "floor")) => (name, ", cache_floor"),
            _ => (row, ""),
        };
        let title = history::title("s3", name).unwrap_or(name);
        Step {
            title: format!("{title}{what}"),
            seconds: self.size.of(0.5, 60.0, 600.0),
            tree: if what == ", settled" { TreeState::Idle } else { TreeState::Loaded },
            ..Step::new(row, workload, ops)
        }
    }

    fn fill(&self, row: &str, in_order: bool) -> Step {
        let workload = if in_order { Workload::Fillseq } else { Workload::Fillrandom };
        self.step(row, workload, self.keys)
    }

    fn scan(&self, row: &str) -> Step {
        self.step(row, Workload::Readseq, self.keys)
    }

    fn get(&self, row: &str) -> Step {
        self.step(row, Workload::Readrandom, self.keys.min(KEYS))
    }
}
