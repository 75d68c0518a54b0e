//! Starts the process of an engine, watches it, and ends it when it takes too long.

use crate::engine::EngineName;
use crate::memory::Group;
use crate::settings::Settings;
use crate::stop::Stop;
use ashlar_bench::say;
use ashlar_report::record::Status;
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The beginning of an engine's message for a feature that it lacks.
pub const NOT_OFFERED: &str = "not offered: ";

/// The message of a process that failed without output.
pub fn failed(why: String) -> Status {
    Status::Failed { why, last_output: String::new() }
}

/// When a process is ended before it ends by itself.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The time limit of the process.
    pub timeout: Duration,
    /// Whether the run should end early.
    pub stop: &'a Stop,
}

/// A process that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The lines that it printed, those of a failed process too.
    pub lines: Vec<String>,
    /// Why it failed: by itself, because it took too long or was interrupted, or because the engine lacks a feature.
    pub outcome: Result<(), Status>,
}

/// Runs `command` with the JSON `job` as its last arguments, in a process group of its own. Returns the printed lines.
///
/// # Errors
/// The process failed, took too long or was interrupted, or the engine does not offer what the job needs.
pub fn watched(limits: Limits<'_>, job: &str, command: Command) -> Result<Vec<String>, Status> {
    let ended = followed(limits, job, command);
    ended.outcome.map(|()| ended.lines)
}

/// As [`watched`], but also returns the lines of a process that failed.
pub fn followed(limits: Limits<'_>, job: &str, mut command: Command) -> Ended {
    command.arg("--child").arg(job);
    ended(limits, command)
}

/// Runs any `command` in a process group of its own until it ends or a limit ends the group.
pub fn ended(limits: Limits<'_>, mut command: Command) -> Ended {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(e) => {
            return Ended { lines: Vec::new(), outcome: Err(failed(format!("cannot start {program}: {e}"))) };
        }
    };
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let reader = std::thread::spawn(move || lines(out, |_| false));
    let complaints = std::thread::spawn(move || lines(errors, shown).join("\n"));
    let ended = wait(&mut child, limits);
    let lines = reader.join().unwrap_or_default();
    let last_output = tail(&complaints.join().unwrap_or_default());
    let outcome = match ended {
        Err(why) => Err(failed(why)),
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(_) if limits.stop.asked() => Err(Status::Failed { why: "interrupted".into(), last_output }),
        Ok(None) => {
            let why = format!("took longer than {} s and was ended", limits.timeout.as_secs());
            Err(Status::Timeout { why, last_output })
        }
        Ok(Some(status)) => Err(unsuccessful(status, last_output)),
    };
    Ended { lines, outcome }
}

/// The lines of a pipe until its end, without those that `taken` accepts. Bytes that are no UTF-8 are replaced: a reader that
/// ended early would break the pipe.
fn lines(pipe: Option<impl Read>, taken: impl Fn(&str) -> bool) -> Vec<String> {
    let Some(pipe) = pipe else { return Vec::new() };
    let lines = BufReader::new(pipe).split(b'\n').map_while(Result::ok);
    let text = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    text.filter(|line| !taken(line)).collect()
}

/// Asks the system to kill this process when its parent ends. The process is in a group of its own, so an interrupt of the
/// parent alone would leave it at work.
pub fn end_with_parent() {
    // A system that refuses leaves the process as it was.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
}

/// Milliseconds after which this program's allocator, mimalloc, gives freed memory back. Its own default is a second. With that, a load
/// of Linkbench took 150 MiB instead of 62 to 81.
const PURGE_DELAY: &str = "10";

/// This program again, as the process of `engine`: RocksDB with jemalloc if `jemalloc` and if it is installed.
///
/// # Errors
/// The path of this program is unknown.
pub fn command(engine: EngineName, jemalloc: bool) -> Result<Command, Status> {
    let mut command = Command::new(std::env::current_exe().map_err(|e| failed(e.to_string()))?);
    command.env("MIMALLOC_PURGE_DELAY", PURGE_DELAY);
    if engine == EngineName::Rocksdb
        && jemalloc
        && let Some(path) = shared_jemalloc()
    {
        command.env("LD_PRELOAD", path);
    }
    Ok(command)
}

/// The memory control group of a process whose settings limit memory, below `parent`.
///
/// # Errors
/// The group cannot be made.
pub fn group(settings: &Settings, parent: Option<&Path>) -> Result<Option<Group>, Status> {
    settings.memory_limit_bytes.and(parent).map(Group::below).transpose().map_err(failed)
}

/// The beginning of a line on standard error that is meant for people, at once.
pub const PROGRESS: &str = "progress: ";

/// Shows a line of progress. False: it is another line.
fn shown(line: &str) -> bool {
    let progress = line.strip_prefix(PROGRESS);
    progress.into_iter().for_each(say::line);
    progress.is_some()
}

/// Distinguishes an engine without the feature from one that fails.
fn unsuccessful(status: ExitStatus, last_output: String) -> Status {
    let last = last_output.lines().last().unwrap_or_default();
    match last.split_once(NOT_OFFERED) {
        Some((_, why)) => Status::NotHere { why: format!("{NOT_OFFERED}{why}") },
        None => Status::Failed { why: status.to_string(), last_output },
    }
}

/// The last lines of the output of a process.
fn tail(said: &str) -> String {
    let lines: Vec<&str> = said.trim().lines().collect();
    lines[lines.len().saturating_sub(5)..].join("\n")
}

/// The exit status. `None`: the process was ended, because it took too long or the run was interrupted.
fn wait(child: &mut Child, limits: Limits<'_>) -> Result<Option<ExitStatus>, String> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(Some(status));
        }
        if start.elapsed() > limits.timeout || limits.stop.asked() {
            end(child)?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Kills the process group. A tracer leaves its program behind, stopped, if it alone is killed: the program then holds
/// the pipes open for ever.
fn end(child: &mut Child) -> Result<(), String> {
    kill_process_group(Pid::from_child(child), Signal::KILL).map_err(|e| e.to_string())?;
    child.wait().map(drop).map_err(|e| e.to_string())
}

/// How often the removal of a directory is tried.
const TRIES: u32 = 20;

/// The directory of one run, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory in `parent`; its name begins with that of the program.
    ///
    /// # Errors
    /// A text that says why it cannot be created.
    pub fn new(parent: &Path, program: &str, engine: EngineName) -> Result<Scratch, String> {
        let unique = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos());
        let name = format!("{program}-{}-{}-{unique}", engine.text(), std::process::id());
        let path = parent.join(name);
        std::fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Scratch(path))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A server that the system is ending may still write. Files that cannot be removed stay in the directory for temporary files.
        for _ in 0..TRIES {
            let _ = std::fs::remove_dir_all(&self.0);
            if !self.0.exists() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

/// jemalloc's shared object, at the places that distributions use.
fn shared_jemalloc() -> Option<&'static str> {
    ["/usr/lib/x86_64-linux-gnu/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2", "/usr/lib/libjemalloc.so.2"]
        .into_iter()
        .find(|path| Path::new(path).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// As a tracer that is interrupted before its program has begun leaves it.
    #[test]
    fn a_program_behind_the_process_ends_with_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 50 & wait"]);
        let begun = Instant::now();
        let limits = Limits { timeout: Duration::from_secs(1), stop: &Stop::default() };
        let ended = watched(limits, "", command);
        assert!(matches!(ended, Err(Status::Timeout { .. })), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(40), "the pipe stayed open");
    }

    #[test]
    fn lines_of_a_failed_process_are_kept_whatever_their_bytes() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; printf 'tw\\377o\\n'; printf 'b\\377d\\nlast\\n' >&2; exit 3"]);
        let limits = Limits { timeout: Duration::from_secs(60), stop: &Stop::default() };
        let ended = followed(limits, "", command);
        assert_eq!(ended.lines, ["one", "tw\u{fffd}o"]);
        let last_output = "b\u{fffd}d\nlast".to_owned();
        assert_eq!(ended.outcome, Err(Status::Failed { why: "exit status: 3".into(), last_output }));
    }

    #[test]
    fn what_is_not_offered_is_no_failure() {
        let status = ExitStatus::from_raw(256);
        let of = |said: &str| unsuccessful(status, tail(said));
        let why = "not offered: no log".to_owned();
        assert_eq!(of("noise\nashlar-compare: not offered: no log\n"), Status::NotHere { why });
        let crashed = of("one\ntwo\nthree\nfour\nfive\nsix\n");
        let last_output = "two\nthree\nfour\nfive\nsix".into();
        assert_eq!(crashed, Status::Failed { why: "exit status: 1".into(), last_output });
    }
}
