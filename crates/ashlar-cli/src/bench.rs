//! `ashlar bench`: hands the words on to the benchmark, which has its own command line. Under the name `db_bench` the header
//! begins as RocksDB's does, because scripts read the version there.

mod page;

use crate::Done;
use crate::outcome::Outcome;
use ashlar_bench::{Ashlar, Failure, Place};
use ashlardb::Env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Runs `ashlar bench` with the arguments `words`. `title` is the program's name in the help.
pub(crate) fn run(words: &[OsString], title: Option<&str>) -> Done {
    let words: Vec<String> = words.iter().map(|w| w.to_string_lossy().into_owned()).collect();
    let env = Env::os()?;
    let engine = Ashlar::new(env.clone());
    let temporary = std::env::temp_dir();
    let place = Place {
        engine: &engine,
        env: &env,
        temporary: &temporary,
        title,
        show_progress: io::stderr().is_terminal(),
    };
    let done =
        ashlar_bench::run(&words, &place, &mut io::stdout().lock()).map_err(|failure| match failure {
            Failure::Usage(text) => Outcome::Failed(text),
            Failure::Engine(benchmark, e) => Outcome::Failed(format!("{benchmark}: {e}")),
            Failure::Output(e) => e.into(),
        })?;
    match &done.flags.report {
        Some(path) => Ok(page::write(&env, Path::new(path), &done, &words)?),
        None => Ok(()),
    }
}
