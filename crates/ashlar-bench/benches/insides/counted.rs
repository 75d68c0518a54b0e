//! Instructions of an operation, and how many of them lock a cache line, counted by valgrind's callgrind.
//!
//! The program runs itself in valgrind ([`child`]). Callgrind sets its counts to zero when [`counted_round`] begins and writes
//! them down when it ends, by address of each instruction. So only the round counts, with all threads, in user mode.
//! The emulated processor has no AVX-512, whatever the machine has: code that chooses its form when it runs takes the same form
//! on every machine with AVX2.

use crate::case::{Bench, Case, Place};
use crate::locks::Program;
use crate::profile::Profile;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;

/// The word that begins the command line of the program in valgrind.
pub const CHILD: &str = "--child";

/// In valgrind: one round of each case after two that do not count, and a line with the operations of that round.
pub fn child(cases: &[&Case], place: &Place<'_>) {
    for case in cases {
        let mut bench = (case.make)(place);
        for _ in 0..2 {
            bench.fresh();
            bench.round();
        }
        bench.fresh();
        println!("{}", counted_round(&mut *bench));
    }
}

/// Valgrind looks for the name of this function.
#[inline(never)]
fn counted_round(bench: &mut dyn Bench) -> u64 {
    black_box(bench.round())
}

/// A counted round.
pub struct Counted {
    pub ops: u64,
    pub profile: Profile,
}

/// Counts a round of each of `cases`, in their order. Each runs in a process of its own: the threads of a database go on
/// for a while after it is closed, and would count for the next case.
///
/// # Errors
/// Why they cannot be counted here.
pub fn of(cases: &[&Case]) -> Result<Vec<Counted>, String> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Err("callgrind's profile is read on x86-64 Linux only".into());
    }
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let code = std::fs::read(&program).ok().and_then(Program::parse).ok_or("the program is no ELF file")?;
    cases.iter().map(|case| one(case, &program, &code)).collect()
}

fn one(case: &Case, program: &Path, code: &Program) -> Result<Counted, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let out = dir.path().join("out");
    let mut command = Command::new("valgrind");
    command.args(["--quiet", "--tool=callgrind", "--dump-instr=yes", "--dump-line=no"]);
    command.args(["--compress-pos=no", "--compress-strings=no"]);
    command.args(["--zero-before=*::counted_round", "--dump-after=*::counted_round"]);
    command.arg(format!("--callgrind-out-file={}", out.display())).arg(program).args([CHILD, case.name]);
    let done = command.output().map_err(|e| format!("valgrind: {e} (apt-get install valgrind)"))?;
    if !done.status.success() {
        return Err(format!("valgrind: {}: {}", done.status, String::from_utf8_lossy(&done.stderr)));
    }
    let text = String::from_utf8_lossy(&done.stdout);
    let ops = text.lines().find_map(|line| line.parse().ok());
    let ops = ops.ok_or_else(|| format!("{} printed no number of operations", case.name))?;
    Ok(Counted { ops, profile: read(&out.with_extension("1"), program, code)? })
}

fn read(out: &Path, program: &Path, code: &Program) -> Result<Profile, String> {
    let text = std::fs::read_to_string(out).map_err(|e| format!("{}: {e}", out.display()))?;
    Ok(Profile::parse(&text, &program.to_string_lossy(), |address| code.locks(address)))
}
