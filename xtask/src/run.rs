//! Running programs: output seen or kept, time limited, none left behind.

use crate::project;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
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

/// Runs a program line by line: each line of output and error goes to `log` and to `each`. What it started does not outlive
/// it, nor us.
///
/// # Errors
/// It cannot be started, fails, or takes longer than `limit`; then it is killed with everything it started.
pub fn watched(
    command: &Command,
    log: &std::path::Path,
    limit: Duration,
    mut each: impl FnMut(&str),
) -> Result<(), String> {
    let mut file = std::fs::File::create(log).map_err(|e| format!("{}: {e}", log.display()))?;
    let (reader, writer) = std::io::pipe().map_err(|e| e.to_string())?;
    let second = writer.try_clone().map_err(|e| e.to_string())?;
    let mut command = leashed(command);
    command.stdout(writer).stderr(second);
    let mut child = command.spawn().map_err(|e| format!("cannot start: {e}"))?;
    let leash = child.stdin.take();
    // It still holds our ends of the pipe; without them the reader sees its end when the child ends.
    drop(command);
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
                drop(leash);
                let _ = child.wait();
                return Err(format!("not done after {} s: killed", limit.as_secs()));
            }
        }
    }
    let ended = child.wait();
    drop(leash);
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(status.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// The command in a process group of its own, which is killed when the pipe on its standard input ends: when we drop it, or
/// die. The program itself sees no input.
fn leashed(command: &Command) -> Command {
    const GUARD: &str =
        r#"exec 3<&0 </dev/null; (cat <&3; kill -9 0) >/dev/null 2>&1 & exec 3<&-; exec "$0" "$@""#;
    let mut shell = Command::new("sh");
    shell.args(["-c", GUARD]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.current_dir(project::root()).stdin(Stdio::piped()).process_group(0);
    shell
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
    fn nothing_outlives_who_started_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 100 & echo $!; wait"]);
        let mut child = leashed(&command).stdout(Stdio::piped()).spawn().expect("a shell");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        let grandchild = std::path::Path::new("/proc").join(line.trim()).join("stat");
        let runs = || std::fs::read_to_string(&grandchild).is_ok_and(|stat| !stat.contains(") Z "));
        assert!(runs());
        drop(child.stdin.take());
        assert!(!child.wait().expect("a child").success());
        let start = Instant::now();
        while runs() && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!runs(), "{line}");
    }

    #[test]
    fn what_is_started_sees_our_environment_and_no_input() {
        let log = std::env::temp_dir().join(format!("xtask-run-{}.log", std::process::id()));
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo $1 $NAME", "sh", "a word"]).env("NAME", "value");
        let mut lines = Vec::new();
        let done = watched(&command, &log, Duration::from_secs(20), |line| lines.push(line.to_owned()));
        std::fs::remove_file(&log).expect("the log was written");
        assert_eq!((done, lines), (Ok(()), vec!["a word value".to_owned()]));
    }

    #[test]
    fn what_takes_too_long_is_killed_with_its_children() {
        let start = Instant::now();
        let (done, lines) = shell("echo begun; sleep 100 & sleep 100", Duration::from_millis(300));
        assert!(done.unwrap_err().contains("killed") && lines == ["begun"]);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}
