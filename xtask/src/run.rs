//! Running programs: output seen or kept, time limited.

use crate::project;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Runs a program in the workspace with the terminal as its own.
pub fn plain(program: &str, args: &[&str]) -> Result<(), String> {
    let status = Command::new(program).args(args).current_dir(project::root()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{program} {}: {status}", args.join(" "))),
        Err(e) => Err(format!("cannot run {program}: {e}")),
    }
}

/// Runs a program and answers what it printed; `None` when it is not there or failed.
pub fn quiet(program: &str, args: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(args).current_dir(project::root()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program line by line: each line of output and error goes to `log` and to `each`.
///
/// # Errors
/// It cannot be started, fails, or takes longer than `limit`; then it is killed with everything it started.
pub fn watched(
    command: &mut Command,
    log: &std::path::Path,
    limit: Duration,
    mut each: impl FnMut(&str),
) -> Result<(), String> {
    let mut file = std::fs::File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let (reader, writer) = std::io::pipe().map_err(|e| e.to_string())?;
    let second = writer.try_clone().map_err(|e| e.to_string())?;
    command.current_dir(project::root()).stdin(Stdio::null()).stdout(writer).stderr(second).process_group(0);
    let mut child = command.spawn().map_err(|e| format!("cannot start: {e}"))?;
    // The command still holds our ends of the pipe; without them the reader sees its end when the child ends.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let (send, receive) = mpsc::channel();
    let start = Instant::now();
    std::thread::spawn(move || {
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                break;
            }
        }
    });
    loop {
        match receive.recv_timeout(limit.saturating_sub(start.elapsed())) {
            Ok(line) => {
                writeln!(file, "{line}").map_err(|e| format!("{}: {e}", log.display()))?;
                each(&line);
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                kill_group(&mut child);
                return Err(format!("not done after {} s: killed", limit.as_secs()));
            }
        }
    }
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

fn kill_group(child: &mut Child) {
    // The child leads a process group of its own, so this reaches the test programs that cargo started, nothing else.
    let _ = Command::new("kill").args(["-9", "--", &format!("-{}", child.id())]).status();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> (Result<(), String>, Vec<String>) {
        let name = format!("xtask-run-{}-{}.log", std::process::id(), script.len());
        let log = std::env::temp_dir().join(name);
        let mut lines = Vec::new();
        let done =
            watched(Command::new("sh").args(["-c", script]), &log, limit, |line| lines.push(line.to_owned()));
        std::fs::remove_file(&log).expect("the log was written");
        (done, lines)
    }

    #[test]
    fn both_outputs_are_seen_and_the_status_counts() {
        let (done, mut lines) = shell("echo out; echo err >&2", Duration::from_secs(20));
        lines.sort();
        assert_eq!((done, lines), (Ok(()), vec!["err".to_owned(), "out".to_owned()]));
        assert!(shell("exit 3", Duration::from_secs(20)).0.unwrap_err().contains('3'));
    }

    #[test]
    fn what_takes_too_long_is_killed_with_its_children() {
        let start = Instant::now();
        let (done, lines) = shell("echo begun; sleep 100 & sleep 100", Duration::from_millis(300));
        assert!(done.unwrap_err().contains("killed") && lines == ["begun"]);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
