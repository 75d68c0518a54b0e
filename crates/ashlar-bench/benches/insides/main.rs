//! `cargo xtask bench`: the insides of the engine, each measured by itself, beside the physical limit of what it does.
//!
//! 1. Times are measured on the machine ([`timed`]), instructions on an emulated processor ([`counted`]), which counts the
//!    same on a busy machine as on a quiet one.
//! 2. The counts that are committed (`instructions.txt`) are compared in `cargo xtask test` ([`check`]).
//! 3. The cases go through the engine's interfaces: a part that is rewritten keeps its case.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a case that cannot be measured ends the program"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "a program of the makers: it starts programs and reads their files"
)]

mod case;
mod check;
mod committed;
mod counted;
mod database;
mod files;
mod locks;
mod memory;
mod profile;
mod table;
mod timed;

use ashlar_env::Env;
use case::{Case, Place};
use comfy_table::{CellAlignment, Table, presets};
use counted::Counted;
use profile::Counts;
use std::process::ExitCode;
use table::CASES;

// As in the program `ashlar`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "\
usage: cargo xtask bench NAME...     measures these, or `all`
       cargo xtask bench --counts    compares the instructions of all with instructions.txt; REWRITE=1 rewrites them";

fn main() -> ExitCode {
    // `cargo bench` adds a word of its own.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => {
            list();
            Ok(())
        }
        ["--counts"] => committed::run(),
        [counted::CHILD, names] => chosen(&names.split(',').collect::<Vec<_>>())
            .map(|cases| at_a_place(true, |p| counted::child(&cases, p))),
        ["all"] => show(&CASES.iter().collect::<Vec<_>>(), false),
        names => chosen(names).and_then(|cases| show(&cases, true)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    println!("{HELP}\n");
    for case in CASES {
        println!("  {:<24} {}", case.name, case.text);
    }
}

fn chosen(names: &[&str]) -> Result<Vec<&'static Case>, String> {
    let one = |name: &&str| {
        CASES.iter().find(|case| case.name == *name).ok_or(format!("there is no {name}\n{HELP}"))
    };
    names.iter().map(one).collect()
}

/// Calls `work` with a folder that is removed afterwards.
fn at_a_place<T>(small: bool, work: impl FnOnce(&Place<'_>) -> T) -> T {
    let (env, dir) = (Env::os().unwrap(), tempfile::tempdir().unwrap());
    work(&Place { env: &env, dir: dir.path(), small })
}

/// Measures and prints; with `places`, also where the locked instructions are.
fn show(cases: &[&'static Case], places: bool) -> Result<(), String> {
    let timed = at_a_place(false, |place| timed::measure(cases, place));
    let counted = counted::of(cases);
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "case",
        "ns/op",
        "limit",
        "at most",
        "instructions/op",
        "locked/op",
        "minor faults/1000 op",
        "an operation",
    ]);
    for (index, (case, timed)) in cases.iter().zip(&timed).enumerate() {
        let count = |of: fn(&Counts) -> f64| match &counted {
            Ok(counted) => format!("{:.1}", of(&counted[index].profile.counts(counted[index].ops))),
            Err(_) => "-".to_owned(),
        };
        table.add_row([
            case.name.to_owned(),
            format!("{:.1}", timed.nanos),
            case.bounds.limit.to_string(),
            case.bounds.most.to_string(),
            count(|counts| counts.instructions),
            count(|counts| counts.locked),
            timed.faults.map_or("-".to_owned(), |faults| format!("{:.2}", faults * 1000.0)),
            case.text.to_owned(),
        ]);
    }
    for column in 1..7 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    println!("{table}");
    match counted {
        Ok(counted) => {
            println!("instructions: callgrind, all threads, user mode, on smaller data than the times");
            let shown = cases.iter().zip(&counted).filter(|_| places);
            shown.for_each(|(case, counted)| locked(case, counted));
        }
        Err(why) => println!("instructions are not countable here: {why}"),
    }
    Ok(())
}

/// Where the locked instructions of a case are: each may write a cache line that other threads use.
fn locked(case: &Case, counted: &Counted) {
    let mut functions: Vec<_> = counted.profile.locked.iter().collect();
    functions.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (function, count) in functions {
        let each = *count as f64 / counted.ops.max(1) as f64;
        if each >= 0.01 {
            println!("{}: {each:.2} locked/op in {function}", case.name);
        }
    }
}
