//! A whole run: the header, the benchmarks one after the other, the table.
//!
//! 1. A new database replaces the old one at the start and before every benchmark that needs an empty one. With
//!    `--use_existing_db`, those benchmarks are skipped instead.
//! 2. All names are resolved before the first benchmark runs.

use crate::flags::{Flags, Parsed, TreeState, help, parse, with_files};
use crate::plan::{Plan, Work};
use crate::repeat::summary;
use crate::runner::Runner;
use crate::say;
use crate::stats::Measured;
use crate::store::{Engine, Store};
use crate::temporary::{TemporaryDir, bytes_in};
use crate::transactions::verify;
use crate::values::Values;
use crate::{baseline, header, json};
use ashlar_base::Error;
use ashlar_env::Env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a run ended early.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong; a text for standard error.
    Usage(String),
    /// The engine failed in this benchmark.
    Engine(&'static str, Error),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        Failure::Output(e)
    }
}

/// The surroundings of a run.
pub struct Place<'a> {
    /// The engine to measure.
    pub engine: &'a dyn Engine,
    /// The clock and files of the benchmark itself.
    pub env: &'a Env,
    /// The directory of temporary databases.
    pub temporary: &'a Path,
    /// The engine's name in the header, for scripts that look for a name. `None`: the engine's own name.
    pub title: Option<&'a str>,
    /// Whether to show progress on standard error.
    pub show_progress: bool,
}

/// The result of a run.
#[derive(Debug, Default)]
pub struct Done {
    /// The flags.
    pub flags: Flags,
    /// The seed.
    pub seed: u64,
    /// Each measured benchmark, in order; each repetition separately.
    pub measured: Vec<(Plan, Measured)>,
}

/// Runs the command line `words` (without the program's name), printing to `out`.
///
/// # Errors
/// [`Failure`]; the results before it have been printed.
pub fn run(words: &[String], place: &Place<'_>, out: &mut dyn Write) -> Result<Done, Failure> {
    let words = with_files(words, &|path| text_of(place.env, path)).map_err(Failure::Usage)?;
    let mut parsed = parse(&words).map_err(Failure::Usage)?;
    if parsed.help {
        write!(out, "{}", help_text())?;
        return Ok(Done::default());
    }
    if parsed.version {
        let (name, version) = place.engine.describe();
        writeln!(out, "{name} version {version}")?;
        return Ok(Done::default());
    }
    parsed.warnings.iter().for_each(|warning| say::line(warning));
    let in_table = !parsed.given.contains("benchmarks");
    if in_table {
        baseline::fill(&mut parsed);
    }
    let plans = Plan::list(&parsed.flags).map_err(Failure::Usage)?;
    let seed = seed(&parsed, place, out)?;
    write!(out, "{}", header::environment(place.title, place.engine.describe(), place.env))?;
    write!(out, "{}", header::settings(&parsed.flags))?;
    let temporary;
    let dir = match &parsed.flags.db {
        Some(dir) => PathBuf::from(dir),
        None => {
            temporary =
                TemporaryDir::new(place.env, place.temporary).map_err(|e| Failure::Engine("open", e))?;
            temporary.path().to_path_buf()
        }
    };
    let mut session = Session { place, flags: &parsed.flags, dir: &dir, store: None, settled: false };
    let results = session.all(&plans, seed, out)?;
    session.end(out)?;
    if in_table {
        let size = bytes_in(&*place.env.fs, &dir).map_err(|e| Failure::Engine("close", e))?;
        let results: Vec<Measured> = results.iter().map(|(_, measured)| measured.clone()).collect();
        write!(out, "{}", baseline::report(&results, &parsed.flags, size))?;
    }
    out.flush()?;
    Ok(Done { flags: parsed.flags, seed, measured: results })
}

/// A file as text.
fn text_of(env: &Env, path: &str) -> Result<String, String> {
    let read = || {
        let file = env.fs.open_read(Path::new(path))?;
        let mut bytes = vec![0; usize::try_from(file.len()).unwrap_or(0)];
        file.read_exact_at(&mut bytes, 0).map(|()| bytes)
    };
    String::from_utf8(read().map_err(|e: Error| e.to_string())?).map_err(|e| e.to_string())
}

fn seed(parsed: &Parsed, place: &Place<'_>, out: &mut dyn Write) -> io::Result<u64> {
    if parsed.flags.seed != 0 {
        return Ok(parsed.flags.seed);
    }
    let seed = place.env.clock.unix_micros();
    writeln!(out, "Set seed to {seed} because --seed was 0")?;
    Ok(seed)
}

struct Session<'a> {
    place: &'a Place<'a>,
    flags: &'a Flags,
    dir: &'a Path,
    store: Option<Box<dyn Store>>,
    /// Nothing was written since everything was compacted.
    settled: bool,
}

impl Session<'_> {
    fn all(
        &mut self,
        plans: &[Plan],
        seed: u64,
        out: &mut dyn Write,
    ) -> Result<Vec<(Plan, Measured)>, Failure> {
        let largest = plans.iter().map(|plan| plan.lengths.longest()).max().unwrap_or(0);
        let runner = Runner {
            clock: &*self.place.env.clock,
            fs: &*self.place.env.fs,
            ticks: self.place.env.ticks(),
            flags: self.flags,
            seed,
            values: Values::new(seed, self.flags.compression_ratio, largest),
            show_progress: self.place.show_progress,
        };
        self.reopen("open")?;
        let mut results = Vec::new();
        let mut stream = 0;
        for plan in plans {
            if plan.fresh && self.flags.use_existing_db {
                writeln!(out, "{:<12} : skipped (--use_existing_db is true)", plan.name)?;
                continue;
            }
            if let Work::Print(names) = plan.work {
                print(self.store()?, names, out)?;
                continue;
            }
            if plan.work == Work::ResetStats {
                self.store()?.reset_statistics().map_err(|e| Failure::Engine(plan.name, e))?;
                continue;
            }
            let mut runs = Vec::new();
            for run in 0..plan.repeat.warm_ups + plan.repeat.measured {
                if plan.fresh {
                    self.reopen(plan.name)?;
                }
                self.settle(plan)?;
                let measured = self.one(&runner, plan, stream, out)?;
                stream += plan.all_threads() as u64;
                if run >= plan.repeat.warm_ups {
                    write!(out, "{measured}")?;
                    self.verify(plan, out)?;
                    out.flush()?;
                    self.append(plan, &measured)?;
                    runs.push(measured);
                }
            }
            write!(out, "{}", summary(&runs, self.flags.confidence_interval_only))?;
            results.extend(runs.into_iter().map(|measured| (plan.clone(), measured)));
        }
        Ok(results)
    }

    /// Makes the tree that reads are to find; notes that the others change it.
    fn settle(&mut self, plan: &Plan) -> Result<(), Failure> {
        if self.flags.tree_state == TreeState::Settled && plan.reads() && !self.settled {
            let store = self.store()?;
            store
                .compact()
                .and_then(|()| store.wait_for_background())
                .map_err(|e| Failure::Engine(plan.name, e))?;
            self.settled = true;
        }
        self.settled &= plan.only_reads();
        Ok(())
    }

    /// One run of one benchmark.
    fn one(
        &self,
        runner: &Runner<'_>,
        plan: &Plan,
        stream: u64,
        out: &mut dyn Write,
    ) -> Result<Measured, Failure> {
        let store = self.store()?;
        writeln!(out, "DB path: [{}]", self.dir.display())?;
        out.flush()?;
        let measured = runner.run(plan, store, stream).map_err(|e| Failure::Engine(plan.name, e))?;
        // A short run has no interval, so the statistics are printed at its end.
        if self.flags.stats_per_interval > 0
            && let Some(text) = store.property("stats")
        {
            say::line(text.trim_end());
        }
        Ok(measured)
    }

    /// Checks what the transactions of `plan` left.
    fn verify(&self, plan: &Plan, out: &mut dyn Write) -> Result<(), Failure> {
        let store = self.store()?;
        if plan.work == Work::Transactions && store.has_transactions() {
            verify(store, plan.sets).map_err(|e| Failure::Engine(plan.name, e))?;
            writeln!(out, "RandomTransactionVerify Success.")?;
        }
        Ok(())
    }

    /// Appends a line of JSON, if `--json` is given.
    fn append(&self, plan: &Plan, measured: &Measured) -> Result<(), Failure> {
        let Some(path) = &self.flags.json else { return Ok(()) };
        let line = json::line(&self.place.engine.describe(), plan, measured);
        let (fs, path) = (&self.place.env.fs, Path::new(path));
        let appended = fs.metadata(path).and_then(|there| {
            let (file, at) = match there {
                Some(there) => (fs.open_write(path)?, there.len),
                None => (fs.create(path)?, 0),
            };
            file.write_at(line.as_bytes(), at)
        });
        appended.map_err(|e| Failure::Engine(plan.name, e))
    }

    fn store(&self) -> Result<&dyn Store, Failure> {
        let closed = || Failure::Engine("open", Error::closed());
        self.store.as_deref().ok_or_else(closed)
    }

    /// Opens the database: a new one, or the existing one with `--use_existing_db`.
    fn reopen(&mut self, during: &'static str) -> Result<(), Failure> {
        let failed = |e| Failure::Engine(during, e);
        if let Some(open) = self.store.take() {
            open.close().map_err(failed)?;
        }
        if !self.flags.use_existing_db {
            self.place.engine.destroy(self.dir, self.flags).map_err(failed)?;
        }
        let store =
            self.place.engine.open(self.dir, self.flags, !self.flags.use_existing_db).map_err(failed)?;
        self.store = Some(store);
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.flags.statistics {
            let text = self.store()?.property("options-statistics").unwrap_or_default();
            writeln!(out, "STATISTICS:\n{}", text.trim_end())?;
        }
        match self.store.take() {
            Some(open) => open.close().map_err(|e| Failure::Engine("close", e)),
            None => Ok(()),
        }
    }
}

/// The texts of these statistics. A single one is printed without its name.
fn print(store: &dyn Store, names: &[&str], out: &mut dyn Write) -> io::Result<()> {
    for name in names {
        let text = store.property(name).unwrap_or_else(|| format!("{name}: not available"));
        match names {
            [_] => writeln!(out, "\n{}\n", text.trim_end())?,
            _ => writeln!(out, "rocksdb.{name}: {}", text.trim_end())?,
        }
    }
    Ok(())
}

fn help_text() -> String {
    let names = Plan::names().map(|(name, text)| format!("  {name:<22} {text}\n")).collect::<String>();
    format!(
        "\
Measures the engine with db_bench's workloads, flags and lines.

usage: ashlar bench [--name=value]...

  ashlar bench
      LevelDB's page of 2011: a million entries, a temporary database, a table at the end
  ashlar bench --num=100000
      the same with fewer entries
  ashlar bench --benchmarks=fillrandom,readrandom,stats --threads=4 --histogram=1
      what is named, in this order
  ashlar bench --benchmarks=fillrandom,readrandom[X3] --histogram=1 --report=page.html
      the same as a page with drawings: rates, course over time, latencies, the machine
  ashlar bench --benchmarks=readseq --use_existing_db=1 --db=DIRECTORY
      on a database that is there
  ashlar bench --benchmarks=fillrandom,readrandom,seekrandom --tree_state=settled
      reads of a tree that was compacted whole; without the flag, of the tree that the load leaves
  ashlar bench --benchmarks=fillrandom,readrandom[W1-X5] --key_shape=uuid --key_distribution=zipfian
      reads once to warm up and five times measured, with average and median; few keys are hot

Without --use_existing_db=1 a database in --db is REMOVED first.

Benchmarks:
{names}
Flags (--name=value, --name value, --switch, --noswitch):
{}",
        help()
    )
}
