//! The info log: `LOG` in the database's directory, and former logs as `LOG.old.<microseconds since 1970>`.
//!
//! 1. A thread puts its lines into a queue under a lock. If no thread is writing, it takes the file and writes the
//!    queue out with no lock held. So lines keep their order, and a logging thread never waits for another thread's
//!    write.
//! 2. A line that cannot be written is left out; the next written line says how many were left out.
//! 3. A new file is begun when the current one is full or old enough, and at every open; a limited number of former
//!    files is kept.
//!
//! Source: RocksDB `logging/auto_roll_logger.cc`, `file/filename.cc` (`InfoLogFileName`).

use crate::lines::line_start;
use ashlar_base::Result;
use ashlar_env::{Env, Fs, WriteFile};
use ashlar_format::filename::FileKind;
use ashlar_options::{InfoLogLevel, InfoLogOptions};
use ashlar_sync::{Mutex, Rank, Signal, Waited};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The largest queue for a slow file in bytes; further lines are left out.
const QUEUE_BYTES: usize = 1 << 20;

/// How long a close waits for a thread that writes lines.
const CLOSE_WAITS: Duration = Duration::from_secs(10);

/// An open info log.
pub struct InfoLog {
    options: InfoLogOptions,
    path: PathBuf,
    header: String,
    shared: Mutex<Shared>,
    /// A thread has ended its writing.
    written: Signal,
}

struct Shared {
    queue: String,
    /// `None` while a thread writes.
    file: Option<LogFile>,
    left_out: u64,
    closed: bool,
}

/// The current file; none after a failure.
#[derive(Default)]
struct LogFile {
    file: Option<Arc<dyn WriteFile>>,
    len: u64,
    opened_micros: u64,
}

impl InfoLog {
    /// Creates the directory of an info log outside the database directory, and returns `env` with that directory held.
    /// After an error there is no info log.
    pub fn hold_elsewhere(env: Env, options: &InfoLogOptions) -> Env {
        if !options.enabled || options.dir.is_empty() {
            return env;
        }
        let dir = Path::new(&options.dir);
        match env.fs.create_dir_all(dir).and_then(|()| env.fs.hold(dir)) {
            Ok(fs) => Env { fs, ..env },
            Err(_) => env,
        }
    }

    /// Begins the log of a database in `dir`, with `header` at the beginning of each of its files. Failures are not
    /// reported: the log leaves lines out.
    pub fn open(env: &Env, dir: &Path, options: &InfoLogOptions, header: &str) -> Option<InfoLog> {
        if !options.enabled {
            return None;
        }
        let path = if options.dir.is_empty() {
            dir.join(FileKind::InfoLog.name())
        } else {
            Path::new(&options.dir).join(name_elsewhere(dir))
        };
        let shared =
            Shared { queue: String::new(), file: Some(LogFile::default()), left_out: 0, closed: false };
        let log = InfoLog {
            options: options.clone(),
            path,
            header: header.to_owned(),
            shared: Mutex::new(Rank::Leaf, shared),
            written: Signal::new(None),
        };
        log.drain(env);
        Some(log)
    }

    /// Whether lines of that level are written.
    pub fn takes(&self, level: InfoLogLevel) -> bool {
        level >= self.options.level
    }

    /// Writes a line.
    pub fn write(&self, env: &Env, level: InfoLogLevel, text: &str) {
        self.push(env, &(line_start(env.clock.unix_micros(), level) + text + "\n"));
    }

    /// Writes each text as a line.
    pub fn write_lines(&self, env: &Env, level: InfoLogLevel, texts: &[String]) {
        let start = line_start(env.clock.unix_micros(), level);
        self.push(env, &texts.iter().map(|text| format!("{start}{text}\n")).collect::<String>());
    }

    fn push(&self, env: &Env, lines: &str) {
        {
            let mut shared = self.shared.lock();
            if shared.closed {
                return;
            }
            if shared.queue.len() + lines.len() > QUEUE_BYTES {
                shared.left_out += lines.lines().count() as u64;
                return;
            }
            shared.queue.push_str(lines);
        }
        self.drain(env);
    }

    /// Stops writing, because another process may own the directory after this call. Waits for a thread that writes, ten seconds at
    /// most, so that a device that hangs holds no close. The caller holds no lock.
    pub fn close(&self) {
        loop {
            let seen = self.written.seen();
            let is_idle = {
                let mut shared = self.shared.lock();
                shared.closed = true;
                shared.file.is_some()
            };
            if is_idle || self.written.wait(seen, Some(CLOSE_WAITS)) != Waited::Notified {
                return;
            }
        }
    }

    /// Writes the queue out, unless another thread is writing; that thread then writes the new lines too.
    fn drain(&self, env: &Env) {
        let Some(mut file) = self.shared.lock().file.take() else { return };
        loop {
            let (lines, left_out) = {
                let mut shared = self.shared.lock();
                (std::mem::take(&mut shared.queue), std::mem::take(&mut shared.left_out))
            };
            let lost = self.write_out(env, &mut file, &lines, left_out);
            let mut shared = self.shared.lock();
            shared.left_out += lost;
            if lost > 0 {
                shared.left_out += std::mem::take(&mut shared.queue).lines().count() as u64;
            }
            if shared.queue.is_empty() {
                shared.file = Some(file);
                drop(shared);
                self.written.notify();
                return;
            }
        }
    }

    /// Writes `lines`. Returns how many lines were left out.
    fn write_out(&self, env: &Env, file: &mut LogFile, lines: &str, left_out: u64) -> u64 {
        let now = env.clock.unix_micros();
        let mut text = String::new();
        if self.is_due(file, now) {
            match self.begin_file(&*env.fs, now) {
                Ok(fresh) => *file = LogFile { file: Some(fresh), len: 0, opened_micros: now },
                Err(_) => *file = LogFile::default(),
            }
            for line in self.header.lines() {
                text += &(line_start(now, InfoLogLevel::Header) + line + "\n");
            }
        }
        if left_out > 0 {
            text += &format!("{}{left_out} lines were left out\n", line_start(now, InfoLogLevel::Warn));
        }
        text += lines;
        let written = file.file.as_ref().is_some_and(|f| f.write_at(text.as_bytes(), file.len).is_ok());
        if written {
            file.len += text.len() as u64;
            return 0;
        }
        // The next line begins a new file.
        *file = LogFile::default();
        left_out + lines.lines().count() as u64
    }

    fn is_due(&self, file: &LogFile, now: u64) -> bool {
        let o = &self.options;
        let age = now.saturating_sub(file.opened_micros) / 1_000_000;
        file.file.is_none()
            || o.file_bytes_max > 0 && file.len >= o.file_bytes_max
            || o.file_secs_max > 0 && age >= o.file_secs_max
    }

    /// Renames the current file to its former name, and creates a new one.
    fn begin_file(&self, fs: &dyn Fs, now: u64) -> Result<Arc<dyn WriteFile>> {
        let name = self.path.file_name().and_then(|n| n.to_str()).unwrap_or("LOG").to_owned();
        let dir = self.path.parent().unwrap_or(Path::new(""));
        if fs.metadata(&self.path)?.is_some() {
            let mut micros = now;
            while fs.metadata(&dir.join(format!("{name}.old.{micros}")))?.is_some() {
                micros += 1;
            }
            fs.rename(&self.path, &dir.join(format!("{name}.old.{micros}")))?;
        }
        let fresh = fs.create(&self.path)?;
        let before = format!("{name}.old.");
        let mut former: Vec<(u64, String)> = fs
            .list(dir)?
            .into_iter()
            .filter_map(|e| Some((e.name.strip_prefix(&before)?.parse().ok()?, e.name.clone())))
            .collect();
        former.sort_unstable();
        let surplus = (former.len() + 1).saturating_sub(self.options.files_kept.max(1));
        for (_, name) in former.into_iter().take(surplus) {
            // The default limit applies to this engine's files only: RocksDB's files are removed only if the
            // directory's or the caller's settings set a limit.
            let by_default = self.options.files_kept == InfoLogOptions::default().files_kept;
            if !by_default || is_ours(fs, &dir.join(&name)) {
                fs.remove(&dir.join(name))?;
            }
        }
        Ok(fresh)
    }
}

/// Whether the header of a log names this engine.
fn is_ours(fs: &dyn Fs, path: &Path) -> bool {
    let head = || -> Result<Vec<u8>> {
        let file = fs.open_read(path)?;
        let mut head = vec![0; usize::try_from(file.len().min(256)).unwrap_or(0)];
        file.read_exact_at(&mut head, 0)?;
        Ok(head)
    };
    head().is_ok_and(|head| String::from_utf8_lossy(&head).contains("AshlarDB"))
}

/// The name of a log outside the database directory: the absolute path of `dir` with `_` for every character that is no
/// letter or digit, then `_LOG`.
fn name_elsewhere(dir: &Path) -> String {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_path_buf());
    let path = absolute.to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '_' };
    path.trim_start_matches('/').chars().map(plain).collect::<String>() + "_LOG"
}

#[cfg(test)]
#[path = "info_log_tests.rs"]
mod tests;
