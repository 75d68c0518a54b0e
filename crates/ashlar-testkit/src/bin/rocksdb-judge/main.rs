//! `rocksdb-judge --library PATH`: real RocksDB behind a line protocol (see `session.rs`), for tests; with LevelDB's library,
//! LevelDB (see `leveldb.rs`).
//!
//! A program of its own because RocksDB must not live in our process: its builds abort on failed assertions, and closing
//! any descriptor of a LOCK file would give up our own lock. A command without an end ends it too (`patience`).

#[macro_use]
mod functions;
mod capi;
mod leveldb;
mod patience;
mod session;

use std::io::{self, BufRead, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "usage: rocksdb-judge --library PATH-OF-LIBROCKSDB.SO|PATH-OF-LIBLEVELDB.SO [--longest MILLISECONDS-OF-A-COMMAND]\n\
Reads commands from standard input, one per line, and answers each with lines `= …` and a last line `ok …` or `error: …`.\n\
Commands: open, with, without, bulk, close, reopen, families, create, drop, put, delete, batch, flush, compact, get, dump, rdump, digest, probe, tables,\n\
verify, backup.";

/// The library that answers.
enum Judge {
    RocksDb(Box<session::Session>),
    LevelDb(leveldb::Session),
}

impl Judge {
    fn load(path: &Path) -> Result<Judge, String> {
        let library = capi::load(path)?;
        if leveldb::is_leveldb(&library) {
            return leveldb::Session::new(library).map(Judge::LevelDb);
        }
        let functions = capi::Functions::of(library)?;
        Ok(Judge::RocksDb(Box::new(session::Session::new(functions))))
    }

    /// Obeys one line and writes the whole answer. Fails only when the answer cannot be written.
    fn obey(&mut self, line: &str, out: &mut impl Write) -> io::Result<()> {
        let answer = match self {
            Judge::RocksDb(session) => session.answer(line, out),
            Judge::LevelDb(session) => session.answer(line, out),
        };
        match answer {
            Ok(word) if word.is_empty() => writeln!(out, "ok"),
            Ok(word) => writeln!(out, "ok {word}"),
            Err(text) => writeln!(out, "error: {}", text.replace('\n', " ")),
        }
    }
}

fn run() -> Result<(), String> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let (library, longest) = match args.as_slice() {
        [flag, library] if flag == "--library" => (library, u64::MAX),
        [flag, library, longest, millis] if flag == "--library" && longest == "--longest" => {
            (library, millis.to_str().and_then(|text| text.parse().ok()).ok_or(HELP)?)
        }
        _ => return Err(HELP.into()),
    };
    let mut judge = Judge::load(library.as_ref())?;
    let patience = patience::Patience::new(longest);
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "ok ready").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let done = patience.during(|| judge.obey(line.trim(), &mut out).and_then(|()| out.flush()));
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
