//! Directories with drawn settings: RocksDB makes them, and they pass between it and us (see [`super`]).
//!
//! 1. Settings come from RocksDB's whole table: every name that it writes into an OPTIONS file (`table`), with values at and
//!    beyond their bounds. If RocksDB refuses the settings, the case is counted and repeated with fewer settings.
//! 2. RocksDB's reading gives the expected content. AshlarDB's content is compared with it, and RocksDB's again after every
//!    visit of AshlarDB. Aborts and hangs of RocksDB are counted separately.
//! 3. An OPTIONS file of AshlarDB keeps every value of the preceding file, or the report of the open names the setting.
//! 4. A refusal by AshlarDB is counted by its reason, if nothing has changed in the directory.
//!
//! Each kind of finding is minimised and printed once.

mod coverage;
mod directory;
mod draw;
mod options_file;
mod ours;
mod plan;
mod rounds;
mod shrink;
mod table;
mod theirs;
mod words;

use ashlar_testkit::judge::Opening;
use ashlar_testkit::suite::{Budget, Length, Report, Watchdog, guarded};
use ashlar_testkit::{Judge, JudgeVersion, Rng};
use coverage::Coverage;
use options_file::OptionsFile;
use plan::Plan;
use rounds::{Finding, Outcome, play};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use table::Table;

/// Lines that once failed, each a few tenths of a second.
const REGRESSIONS: &[&str] = &[
    "11.8.1 | db recycle_log_file_num=4 | family default | do bulk put default 0 5000 120 0, kill",
    "11.8.1 | db recycle_log_file_num=1;avoid_flush_during_shutdown=true;wal_recovery_mode=kSkipAnyCorruptedRecords \
     | family default | do bulk put default 0 5000 20 0, close",
    "11.8.1 | db recycle_log_file_num=2 | family default | family one | do bulk put default 0 2000 100 1, \
     bulk put one 0 2000 100 2, flush one, bulk put one 0 2000 100 3, flush one, bulk put default 5 500 100 4, kill",
    "11.8.1 | db allow_mmap_reads=true | family default table_factory=PlainTable;prefix_extractor=rocksdb.FixedPrefix.3 \
     | do bulk put default 0 100 40 1, flush default, bulk put default 0 100 40 2, kill \
     | ours default kill: bulk put default 0 10 10 1 | theirs original close: ",
    "11.8.1 | family default table.user_defined_index_factory=trie_index;table.use_udi_as_primary_index=true \
     | do bulk put default 0 100 40 1, flush default, kill | ours default kill: | theirs original close: ",
    "11.8.1 | family default | with ttl 864000 | do bulk put default 0 100 40 1, flush default, kill \
     | ours default kill: bulk put default 0 10 10 1 | theirs original close: ",
    "11.8.1 | db allow_concurrent_memtable_write=false | family default \
     comparator=leveldb.BytewiseComparator.u64ts;persist_user_defined_timestamps=false \
     | do bulk put default 0 1000 40 1, flush default, kill | ours default kill: | theirs original close: ",
    "11.8.1 | family default | with transactions | do bulk put default 0 100 40 1, bulk prepared default 5 10 20 3, kill \
     | ours default kill: bulk put default 0 10 10 1 | theirs original close: ",
    "11.8.1 | family default hard_pending_compaction_bytes_limit=0 | do bulk put default 0 10 20 1, kill \
     | ours default kill: bulk put default 0 10 20 2 | theirs original close: ",
    "11.8.1 | family default | family one disallow_memtable_writes=true | do close \
     | ours default kill: bulk put one 0 10 40 1 | theirs original close: ",
    "11.8.1 | family default | with transactions prepared | do bulk put default 0 20 40 3, kill",
    "11.8.1 | family default \
     compression=kZSTD;compression_opts.max_dict_bytes=4096;compression_opts.zstd_max_train_bytes=65536 \
     | do bulk put default 0 5000 100 1, flush default, close",
    "11.8.1 | db optimize_manifest_for_recovery=true;wal_dir=@/wal | family default | do close \
     | ours stored kill: | theirs original close: | ours stored kill: | theirs original kill: ",
    "11.8.1 | db wal_dir=@/wal | family default | with transactions unprepared | do bulk put default 847 8 20 47469 \
     | ours default kill: | theirs original kill: ",
    "11.8.1 | family default table.user_defined_index_factory=trie_index;table.fail_if_no_udi_on_open=true \
     | do bulk delete default 216 1 0 55766 | ours default close: | theirs stored kill: ",
    "11.8.1 | db reuse_manifest_on_open=true | family default comparator=leveldb.BytewiseComparator.u64ts \
     | do flush default | ours default close: | theirs original close: ",
    "7.8.3 | family default comparator=leveldb.BytewiseComparator.u64ts;write_buffer_size=65536 \
     | do bulk put default 2620 1250 500 35773, flush default, compact default, close",
    "11.8.1 | db allow_concurrent_memtable_write=false | family default enable_blob_direct_write=true;enable_blob_files=true \
     | do bulk ingest default 1780 1 40 13387, bulk put default 2909 1 120 3586 | ours stored kill: \
     | theirs stored close: ",
    "11.8.1 | db allow_concurrent_memtable_write=false | family default enable_blob_direct_write=true;enable_blob_files=true \
     | do bulk put default 0 100 40 1, kill, bulk put default 0 10 40 1, kill \
     | ours default kill: bulk put default 0 10 10 1 | theirs original kill: ",
    "11.8.1 | family default cf_paths=@/c0:100000,@/c1:1000000000 | do bulk put default 2589 1 1 63771, kill, \
     bulk ingest default 1014 1 40 81295, bulk put default 2409 1 1 80298, flush default, bulk put default 10000 1 120 7735 \
     | ours stored close: bulk delete_range default 1961 3 0 68983, flush default, bulk entity default 486 5 40 36117, \
     compact default | theirs stored close: ",
    "7.8.3 | db wal_dir=@/db/wal | family default max_bytes_for_level_multiplier_additional= \
     | do bulk put default 10000 1 20 54627 | ours default close:  | theirs original close: ",
    "7.8.3 | db wal_dir=@/wal | family default max_bytes_for_level_multiplier_additional= \
     | do bulk put default 10000 1 40 84154 | ours stored kill:  | theirs original close: ",
    "11.8.1 | db info_log_level=WARN_LEVEL;wal_dir=@/wal | family default | do bulk put default 0 100 40 1, kill \
     | ours stored kill: | theirs original kill: ",
];
/// Cases of a quick run that are drawn, each of one round.
const CASES: u64 = 4;
/// How often settings that RocksDB refuses are taken out.
const TRIES: usize = 25;

/// A release, and what it writes into an OPTIONS file without settings.
struct Defaults {
    version: JudgeVersion,
    file: OptionsFile,
    table: Table,
}

/// How the kinds of findings begin that are values lost from OPTIONS files.
const LOSS: &str = "option lost, ";
/// Cases of one kind that are made small: contents that are lost can be lost in many ways.
const MOST_OF_A_KIND: usize = 3;

/// The state that all cases share.
struct Run<'a> {
    quick: bool,
    watchdog: &'a Watchdog,
    began: Instant,
    tables: Vec<Defaults>,
    coverage: Mutex<Coverage>,
    /// The kinds of printed findings, and how often each occurred.
    kinds: Mutex<BTreeMap<String, u64>>,
    /// Those kinds with the names of the settings that were left when the case was small.
    told: Mutex<Vec<(String, BTreeSet<String>)>>,
}

/// The lines that once failed, then cases from seeds.
pub(super) fn run(budget: &Budget, report: &mut Report, watchdog: &Watchdog) {
    let mut tables = Vec::new();
    for version in JudgeVersion::ALL {
        match defaults(version) {
            Ok(defaults) => tables.push(defaults),
            Err(why) => report.skip(format!("settings drawn for {}: {why}", version.name())),
        }
    }
    let coverage = Mutex::new(Coverage::default());
    let told = Mutex::default();
    let quick = budget.length == Length::Quick && budget.replay.is_none();
    let (began, kinds) = (Instant::now(), Mutex::default());
    let run = Run { quick, watchdog, told, began, tables, coverage, kinds };
    if let Some(line) = budget.replay.as_deref().filter(|line| line.contains('|')) {
        let _case = watchdog.begins(line);
        match line.parse::<Plan>() {
            Ok(plan) => match run.tables.iter().find(|own| own.version == plan.version) {
                Some(own) => run.told(&play(&plan, &own.file), &plan, own, false, report),
                None => report.skip(format!("no {}", plan.version.name())),
            },
            Err(why) => report.fail(line, why),
        }
        return;
    }
    if run.tables.is_empty() {
        return;
    }
    if budget.replay.is_none() {
        run.regressions(report);
    }
    let seeds = match (budget.replayed("drawn-"), budget.length) {
        (Some(seed), _) => seed..seed + 1,
        (None, Length::Quick) => budget.seed..budget.seed + CASES,
        (None, Length::For(_)) => budget.seed..u64::MAX,
    };
    budget.each(seeds, report, |seed, piece| {
        let _case = watchdog.begins(format!("drawn-{seed}"));
        let played = guarded(|| run.case(seed, piece).map_err(|e| e.to_string()));
        if let Err(e) = played {
            piece.fail(format!("drawn-{seed}"), e);
        }
    });
    for (what, n) in locked(&run.coverage).figures() {
        report.count(what, n);
    }
    let names = run.tables.iter().map(|own| own.table.db.len() + own.table.family.len()).max();
    report.count("option names", names.unwrap_or(0) as u64);
    for (kind, n) in &*locked(&run.kinds) {
        report.count(&format!("times found: {kind}"), *n);
    }
}

fn defaults(version: JudgeVersion) -> Result<Defaults, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let mut judge = Judge::spawn(version).map_err(|e| e.to_string())?;
    let words = ["without", "with read fill_cache", "without"];
    let newer = |e| format!("{e}: run `cargo xtask setup` for a newer judge");
    words.iter().try_for_each(|words| judge.prepare(words)).map_err(newer)?;
    judge.open(dir.path(), Opening::Create, "paranoid_file_checks=false").map_err(|e| e.to_string())?;
    let file = OptionsFile::newest(dir.path()).ok_or("RocksDB wrote no OPTIONS file")?;
    Ok(Defaults { version, table: Table::of(&file), file })
}

impl Run<'_> {
    fn regressions(&self, report: &mut Report) {
        for line in REGRESSIONS {
            let _case = self.watchdog.begins(line);
            let plan = match line.parse::<Plan>() {
                Ok(plan) => plan,
                Err(why) => return report.fail(*line, why),
            };
            if let Some(own) = self.tables.iter().find(|own| own.version == plan.version) {
                self.told(&play(&plan, &own.file), &plan, own, false, report);
                report.count("lines that once failed", 1);
            }
        }
    }

    fn case(&self, seed: u64, report: &mut Report) -> Result<(), String> {
        let mut rng = Rng::new(seed ^ 0x5eed);
        // A fifth of the cases by the older release, where both are.
        let at = if self.tables.len() > 1 && !seed.is_multiple_of(5) { 1 } else { 0 };
        let Some(own) = self.tables.get(at) else { return Ok(()) };
        let mut plan = draw::draw(seed, own.version, &own.table);
        plan.drop_what_rocksdb_loses();
        if self.quick {
            plan.rounds.truncate(1);
        }
        for _ in 0..TRIES {
            let outcome = play(&plan, &own.file);
            if let Some(why) = &outcome.skip {
                report.skip(why.clone());
                return Ok(());
            }
            self.told(&outcome, &plan, own, true, report);
            let Some(why) = &outcome.refused else { return Ok(()) };
            if !without_named(&mut plan, why) {
                thin_out(&mut plan, &mut rng);
            }
            plan.drop_what_rocksdb_loses();
        }
        report.count("cases given up: RocksDB refuses them all", 1);
        Ok(())
    }

    /// Counts what happened, and tells each kind of finding once.
    fn told(&self, outcome: &Outcome, plan: &Plan, own: &Defaults, shrunk: bool, report: &mut Report) {
        for (what, n) in &outcome.counts {
            report.count(what, *n);
        }
        if outcome.made {
            locked(&self.coverage).add(plan);
        }
        let (losses, others): (Vec<&Finding>, Vec<&Finding>) =
            outcome.findings.iter().partition(|finding| finding.kind.starts_with(LOSS));
        self.told_losses(&losses, plan, own, report);
        for finding in others {
            if self.is_known(&finding.kind, plan) {
                continue;
            }
            let since = self.began.elapsed();
            let _case = self.watchdog.begins(format!("'{plan}'"));
            let small =
                if shrunk { shrink::shrink(plan.clone(), &finding.kind, &own.file) } else { plan.clone() };
            let names = names(&small);
            let one = (finding.kind.clone(), names);
            if locked(&self.told).contains(&one) {
                continue;
            }
            locked(&self.told).push(one);
            let again = play(&small, &own.file).findings.into_iter().find(|other| other.kind == finding.kind);
            let what = again.map_or_else(|| finding.what.clone(), |other| other.what);
            tell(&finding.kind, &what, &small, since);
            report.fail(format!("'{small}'"), format!("{}: {what}", finding.kind));
        }
    }

    /// Values of OPTIONS files that are lost, in one small case together.
    fn told_losses(&self, losses: &[&Finding], plan: &Plan, own: &Defaults, report: &mut Report) {
        for mode in ["stored", "default"] {
            let start = format!("{LOSS}{mode}: ");
            let of_mode = losses.iter().filter(|finding| finding.kind.starts_with(&start));
            let new: Vec<&&Finding> = of_mode.filter(|finding| !self.is_known(&finding.kind, plan)).collect();
            if new.is_empty() {
                continue;
            }
            let since = self.began.elapsed();
            let names: BTreeSet<String> =
                new.iter().map(|finding| finding.kind.trim_start_matches(&start).to_owned()).collect();
            let small = shrink::only(plan, &names, mode == "stored");
            let _case = self.watchdog.begins(format!("'{small}'"));
            let again = play(&small, &own.file).findings;
            for finding in new {
                let shown = again.iter().any(|other| other.kind == finding.kind);
                let case = if shown { &small } else { plan };
                locked(&self.told).push((finding.kind.clone(), BTreeSet::new()));
                tell(&finding.kind, &finding.what, case, since);
                report.fail(format!("'{case}'"), finding.what.clone());
            }
        }
    }

    /// Counts a finding. A finding is known if its kind has been printed for a subset of its settings. Most kinds are
    /// minimised once.
    fn is_known(&self, kind: &str, plan: &Plan) -> bool {
        let names = names(plan);
        let mut kinds = locked(&self.kinds);
        let times = kinds.entry(kind.to_owned()).or_default();
        *times += 1;
        let told = locked(&self.told);
        let same: Vec<_> = told.iter().filter(|(own, _)| own == kind).collect();
        same.len() >= MOST_OF_A_KIND || same.iter().any(|(_, own)| own.is_subset(&names))
    }
}

fn names(plan: &Plan) -> BTreeSet<String> {
    let of_families = plan.families.iter().flat_map(|family| &family.settings);
    plan.db.iter().chain(of_families).map(|setting| setting.name.clone()).collect()
}

/// Says a finding as soon as it is small: long runs are watched.
fn tell(kind: &str, what: &str, plan: &Plan, since: Duration) {
    let what: String = what.chars().take(600).collect();
    eprintln!("FOUND after {:.0} s: {kind}\n  {what}\n  --replay='{plan}'", since.as_secs_f64());
}

/// Leaves the settings out that RocksDB names in its refusal; false if it names none. Of a list of settings that belong
/// together only the last named goes, as one less may be enough.
fn without_named(plan: &mut Plan, why: &str) -> bool {
    let all = plan.families.iter().flat_map(|family| &family.settings).chain(&plan.db);
    let place = |name: &str| {
        let group = name.starts_with("table.") && why.contains("block_based_table_factory");
        let own = name.rsplit('.').next().unwrap_or(name);
        if group { Some(why.len()) } else { options_file::place_of(own, why) }
    };
    let named = all.filter_map(|setting| Some((place(&setting.name)?, setting.name.clone()))).max();
    let Some((_, name)) = named else { return false };
    let keep = |setting: &plan::Setting| setting.name != name;
    plan.db.retain(keep);
    plan.families.iter_mut().for_each(|family| family.settings.retain(keep));
    true
}

/// Leaves about a third of the settings out.
fn thin_out(plan: &mut Plan, rng: &mut Rng) {
    plan.db.retain(|_| !rng.percent(35));
    for family in &mut plan.families {
        family.settings.retain(|_| !rng.percent(35));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
