//! `rocksdb-judge --library PATH`: real RocksDB behind a line protocol (see `session.rs`), for tests.
//!
//! A program of its own because RocksDB must not live in our process: its builds abort on failed assertions, and closing
//! any descriptor of a LOCK file would give up our own lock. A command without an end ends it too (`patience`).

mod capi;
mod patience;
mod session;

use std::io::{BufRead, BufWriter, Write};
use std::process::ExitCode;

const HELP: &str = "usage: rocksdb-judge --library PATH-OF-LIBROCKSDB.SO [--longest MILLISECONDS-OF-A-COMMAND]\n\
Reads commands from standard input, one per line, and answers each with lines `= …` and a last line `ok …` or `error: …`.\n\
Commands: open, with, without, bulk, close, reopen, families, create, drop, put, delete, batch, flush, compact, get, dump, rdump, digest, probe, tables,\n\
verify.";

fn run() -> Result<(), String> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let (library, longest) = match args.as_slice() {
        [flag, library] if flag == "--library" => (library, u64::MAX),
        [flag, library, longest, millis] if flag == "--library" && longest == "--longest" => {
            (library, millis.to_str().and_then(|text| text.parse().ok()).ok_or(HELP)?)
        }
        _ => return Err(HELP.into()),
    };
    let functions = capi::Functions::load(library.as_ref())?;
    let mut session = session::Session::new(functions);
    let patience = patience::Patience::new(longest);
    let mut out = BufWriter::new(std::io::stdout().lock());
    writeln!(out, "ok ready").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let done = patience.during(|| session.obey(line.trim(), &mut out).and_then(|()| out.flush()));
        done.map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::from(2)
        }
    }
}
