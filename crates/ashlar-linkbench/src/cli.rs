//! The command line.

use crate::config::Config;
use crate::drive::Plan;
use crate::job::{Job, Source, Step};
use crate::kv::Mode;
use crate::size::{Case, Size};
use ashlar_peers::engine::{EngineName, Spoilt, refuse};
use ashlar_peers::settings::{Settings, Transactions};
use ashlar_peers::shown::Shown;
use ashlar_peers::stop::Stop;
use ashlar_report::summary::LINKBENCH;
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Files of a sized run that names none.
const PAGE: &str = "linkbench.html";
const MARKDOWN: &str = "linkbench.md";

/// Properties that the rows of a size set, with the option that stands for them.
const OF_ROWS: [(&str, &str); 5] = [
    ("requesters", ": use --clients"),
    ("requestrate", ": use --rate"),
    ("requests", ""),
    ("maxtime", ""),
    ("warmup_time", ""),
];

/// Bytes of cache of a run with a property file.
const CACHE: u64 = 64 << 20;

/// Linkbench: loads a social graph into AshlarDB and other engines, runs the ten operations of the original program on it, and
/// checks that counts and links agree.
///
/// RocksDB comes from `cargo xtask setup`, the other engines from `cargo xtask peers`. A missing engine is reported with the
/// reason. innodb and myrocks are tables of a MariaDB server that the program starts and ends. Every engine gets the same
/// operations in a process of its own.
#[derive(Debug, Parser)]
#[command(name = "ashlar-linkbench", version)]
pub struct Cli {
    /// Size of the graph and of the memory of every engine
    #[arg(long, value_enum, conflicts_with = "config")]
    size: Option<Size>,
    /// A property file of the original program, instead of a size
    #[arg(short = 'c', long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where relative file names in the property file start [default: LINKBENCH_HOME, or the working directory]
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// Overrides a property: -D maxid1=1001
    #[arg(short = 'D', value_name = "KEY=VALUE")]
    define: Vec<String>,
    /// Follow the words of the configuration where the original program does not
    #[arg(long)]
    intended: bool,
    /// With a property file: only load, and keep the database in --keep
    #[arg(short = 'l', requires = "config", requires = "keep")]
    load_only: bool,
    /// With a property file: only run requests on the database in --keep
    #[arg(short = 'r', requires = "config", requires = "keep", conflicts_with = "load_only")]
    requests_only: bool,
    /// The directory of the database of one engine, which is kept. A load that was interrupted goes on there
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Engines, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// Cases, separated by commas: cached (data fits the cache, which is filled before each row), device (it does not, and memory is limited)
    #[arg(long, value_enum, value_delimiter = ',', default_value = "cached", conflicts_with = "config")]
    cases: Vec<Case>,
    /// Numbers of clients, separated by commas, a row for each. With a property file its `requesters` count
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024), default_value = "1,4,16",
        conflicts_with = "config")]
    clients: Vec<u32>,
    /// Operations a second of the rate-limited row; 0: no such row [default: 1000 for smoke, else 2000]. With a property file its
    /// `requestrate` counts
    #[arg(long, conflicts_with = "config")]
    rate: Option<f64>,
    /// How writes are atomic: batch (one batch per operation under the driver's locks), txn (transactions of the engine, where
    /// they are driven), none (counts may drift)
    #[arg(long, value_enum, default_value = "batch")]
    mode: Mode,
    /// Every write waits for the device
    #[arg(long)]
    sync: bool,
    /// Repetitions [default: 3; 1 for smoke and with a property file]
    #[arg(long)]
    reps: Option<u32>,
    /// Directory of the databases, which are removed after use [default: the directory for temporary files]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// File to which the records are appended, one line of JSON each
    #[arg(long)]
    json: Option<PathBuf>,
    /// Folder for the latencies of each row as comma-separated values
    #[arg(long = "csvstats", value_name = "DIR")]
    csv: Option<PathBuf>,
    /// The pages [default of a sized run: linkbench.html and linkbench.md]
    #[command(flatten)]
    shown: Shown,
    /// RocksDB's shared object [default: the one that `cargo xtask setup` recorded]
    #[arg(long, value_name = "FILE")]
    rocksdb: Option<PathBuf>,
    /// A memory control group that is delegated to this user: rows that limit memory run in groups below it
    #[arg(long, value_name = "DIR")]
    memory_group: Option<PathBuf>,
    /// Seconds after which a process is ended
    #[arg(long, default_value_t = 3600)]
    timeout: u64,
    /// Other programs may use the processors meanwhile: figures stay valid, and say so
    #[arg(long)]
    busy: bool,
    /// The job of this process (internal)
    #[arg(long, hide = true)]
    pub child: Option<String>,
}

impl Cli {
    /// The runs to do.
    ///
    /// # Errors
    /// A property file cannot be read or is wrong, or options do not go together.
    pub fn plan(&self) -> Result<Plan, String> {
        let home = self.home.clone().or_else(|| std::env::var_os("LINKBENCH_HOME").map(PathBuf::from));
        let cases = match (&self.config, self.size) {
            (Some(file), _) => vec![self.of_file(file.clone(), home.unwrap_or_default())?],
            (None, size) => self.of_size(size.unwrap_or(Size::Smoke))?,
        };
        let all = || EngineName::ALL.into_iter().chain(EngineName::SERVERS).collect();
        let engines = if self.engines.is_empty() { all() } else { self.engines.clone() };
        refuse(&engines, Spoilt::Clients)?;
        let reps = self
            .reps
            .unwrap_or_else(|| if self.config.is_some() { 1 } else { self.size.map_or(1, Size::reps) });
        if self.keep.is_some() && (engines.len(), cases.len(), reps) != (1, 1, 1) {
            return Err("--keep has the database of one engine: give --engines NAME, one case and --reps 1"
                .to_owned());
        }
        let default = self.size.is_some() && self.shown.nothing();
        let shown = if default { Shown::of(PAGE, MARKDOWN) } else { self.shown.clone() };
        Ok(Plan {
            cases,
            engines,
            reps,
            dir: self.dir.clone().unwrap_or_else(std::env::temp_dir),
            keep: self.keep.clone(),
            csv: self.csv.clone(),
            json: self.json.clone(),
            shown,
            rocksdb: self.rocksdb.clone(),
            memory_group: self.memory_group.clone(),
            timeout: Duration::from_secs(self.timeout),
            busy: self.busy,
            stop: Stop::default(),
        })
    }

    fn job(&self, source: Source, settings: Settings, case: &str, steps: Vec<Step>) -> Result<Job, String> {
        let config = source.config()?;
        let experiment = self.experiment(&config);
        let transactions = (self.mode == Mode::Txn).then_some(Transactions::Pessimistic);
        Ok(Job {
            experiment,
            engine: EngineName::Ashlardb,
            shared_object: None,
            dir: String::new(),
            group: None,
            settings: Settings { sync: self.sync, transactions, seed: config.request_seed, ..settings },
            source,
            size: self.config.is_none().then(|| self.size.unwrap_or(Size::Smoke).text().to_owned()),
            case: case.to_owned(),
            mode: self.mode,
            loads: !self.requests_only,
            warm: case == Case::Cached.text(),
            steps,
            define: self.define.clone(),
        })
    }

    /// The experiment's name in records. Rows are compared, and repetitions averaged, only within one name. So the name has what
    /// changes the work: the mode, whether writes wait for the device, the user's own rate, and a digest of the user's own configuration.
    fn experiment(&self, config: &Config) -> String {
        let custom = self.config.is_some() || !self.define.is_empty();
        let usual = self.size.unwrap_or(Size::Smoke).rate();
        let rate = self.rate.filter(|rate| *rate > 0.0 && *rate != usual);
        let parts = [
            (self.mode != Mode::Batch).then(|| self.mode.text().to_owned()),
            self.sync.then(|| "sync".to_owned()),
            self.intended.then(|| "intended".to_owned()),
            // Dots separate the parts. With 0 there is no row of a rate.
            rate.map(|rate| format!("rate-{}", rate.to_string().replace('.', "_"))),
            custom.then(|| format!("custom-{:08x}", config.digest >> 32)),
        ];
        parts.into_iter().flatten().fold(LINKBENCH.to_owned(), |name, part| name + "." + &part)
    }

    fn of_size(&self, size: Size) -> Result<Vec<Job>, String> {
        for (name, option) in OF_ROWS {
            let given =
                self.define.iter().find(|text| text.split('=').next().is_some_and(|key| key.trim() == name));
            if let Some(text) = given {
                return Err(format!(
                    "-D {text}: a size sets {name} for each of its rows{option}; or give a property file with -c"
                ));
            }
        }
        let overrides = size.properties().into_iter().chain(self.define.clone()).collect();
        let source = Source { overrides, as_java: !self.intended, ..Source::default() };
        let job = |case: &Case| {
            let steps = size.steps(*case, &self.clients, self.rate);
            self.job(source.clone(), size.settings(*case), case.text(), steps)
        };
        self.cases.iter().map(job).collect()
    }

    fn of_file(&self, file: PathBuf, home: PathBuf) -> Result<Job, String> {
        let source =
            Source { file: Some(file), home, overrides: self.define.clone(), as_java: !self.intended };
        let config = source.config()?;
        if !self.load_only && config.requests == u64::MAX && config.seconds <= 0.0 {
            return Err(format!(
                "{}: neither requests nor maxtime is given, so the requests would never end",
                source.file.unwrap_or_default().display()
            ));
        }
        let step = Step {
            row: "requests".to_owned(),
            title: "requests".to_owned(),
            clients: config.requesters,
            requests: config.requests,
            seconds: config.seconds,
            rate: config.rate * f64::from(config.requesters),
        };
        let settings = Settings { cache_bytes: CACHE, data_bytes: config.ids() * 700, ..Settings::default() };
        let steps = if self.load_only { Vec::new() } else { vec![step] };
        self.job(source, settings, "file", steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(args: &[&str]) -> Result<Plan, String> {
        let args = ["ashlar-linkbench"].iter().chain(args);
        Cli::try_parse_from(args).map_err(|e| e.to_string())?.plan()
    }

    #[test]
    fn a_size_is_a_job_per_case() {
        let plan = plan(&["--size", "quarter", "--cases", "cached,device", "--clients", "1,4"]).unwrap();
        assert_eq!((plan.reps, plan.engines.len(), plan.cases.len()), (3, 14, 2));
        let rows: Vec<_> = plan.cases[1].steps.iter().map(|step| step.row.as_str()).collect();
        assert_eq!(rows, ["device-1", "device-4", "device-rate"]);
        assert_eq!(plan.cases[0].load_row(), "cached-load");
    }

    /// Rows of one name are averaged on the page.
    #[test]
    fn what_does_other_work_has_another_name() {
        let name = |args: &[&str]| plan(args).unwrap().cases[0].experiment.clone();
        assert_eq!((name(&[]), name(&["--cases", "device"])), ("s4".to_owned(), "s4".to_owned()));
        assert_eq!(name(&["--mode", "txn", "--sync", "--intended"]), "s4.txn.sync.intended");
        assert_eq!(name(&["--rate", "500"]), "s4.rate-500");
        assert_eq!(name(&["--rate", "0.5"]), "s4.rate-0_5", "a dot would begin another part");
        assert_eq!((name(&["--rate", "0"]), name(&["--rate", "1000"])), ("s4".to_owned(), "s4".to_owned()));
        assert_eq!(name(&["--size", "quarter", "--rate", "1000"]), "s4.rate-1000");
        let (a, b) = (name(&["-D", "link_datasize=9"]), name(&["-D", "link_datasize=10"]));
        assert!(a.starts_with("s4.custom-") && b.starts_with("s4.custom-") && a != b, "{a} {b}");
        let seed = &plan(&["-D", "request_random_seed=7"]).unwrap().cases[0];
        assert_eq!(
            (seed.settings.seed, seed.described()["overrides"].as_str()),
            (7, "request_random_seed=7")
        );
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        assert!(plan(&["--keep", "x"]).unwrap_err().contains("one engine"));
        assert!(plan(&["-l"]).unwrap_err().contains("--config"));
        assert!(plan(&["--engines", "ashlardb,test-losing"]).is_ok());
        for spoilt in ["test-slow", "test-careless", "test-forgetful"] {
            let why = plan(&["--engines", &format!("ashlardb,{spoilt}")]).unwrap_err();
            assert!(why.starts_with(&format!("{spoilt} ")), "{why}");
        }
        assert!(plan(&["-D", "maxid1=0"]).unwrap_err().starts_with("-D: maxid1 = 0: must be from 1 to "));
        let why = plan(&["-D", "requests=5"]).unwrap_err();
        assert!(why.starts_with("-D requests=5: a size sets requests for each of its rows"), "{why}");
        assert!(plan(&["-D", "requesters = 5"]).unwrap_err().contains("use --clients"));
        for option in [["--clients", "1"], ["--rate", "5"]] {
            assert!(
                plan(&[&["-c", "/no/file"][..], &option].concat()).unwrap_err().contains("cannot be used")
            );
        }
        assert!(plan(&["-c", "/no/file"]).unwrap_err().starts_with("/no/file: "));
    }
}
