//! A MariaDB server of one engine's process: its directory, its settings, its start and its end.
//!
//! 1. Everything of the server lies in a folder of the directory of the run: data, temporary files, socket, log. The server listens
//!    on the socket only. The folder is closed to other users; the directory, which may be the user's own, keeps its mode.
//! 2. The server ends with the process that started it, however that process ends. This takes the program `setpriv` of util-linux.
//!    Without `setpriv` only the driver ends the server of a killed process, by ending its process group; a killed driver can leave one.
//! 3. The data directory is created beside its place and then renamed, so that an interrupted creation leaves none.

use super::wire::{Connection, Fault};
use ashlar_peers::engine::EngineName;
use ashlar_peers::peer::Result;
use ashlar_peers::place;
use ashlar_peers::settings::Settings;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a server may take to start, and to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long after a broken connection the server may take to be seen as ended.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest path of a Unix socket, without the zero byte at its end.
const SOCKET_PATH: usize = 107;
/// Lines of the log that a message shows.
const SHOWN: usize = 5;

const MIB: u64 = 1 << 20;
/// Bytes of a page of InnoDB and of a block of MyRocks.
pub const PAGE: u64 = 16 << 10;
/// InnoDB's buffer pool has at least this many bytes.
const POOL: u64 = 5 * MIB;

/// A server.
#[derive(Debug)]
pub struct Server {
    child: Mutex<Option<Child>>,
    socket: PathBuf,
    log: PathBuf,
    options: Vec<String>,
}

/// The folder of the server in the directory of a run.
pub fn home(dir: &Path) -> PathBuf {
    dir.join("server")
}

/// The options of the server that belong to `engine`. Those of the paths are not among them.
fn options(engine: EngineName, settings: &Settings) -> Vec<String> {
    // 2: the log is written to the operating system at each commit, and synchronised once a second. 1: a commit waits for the device.
    let flush = if settings.sync { 1 } else { 2 };
    let mut all = vec![
        "skip-networking".to_owned(),
        "skip-log-bin".to_owned(),
        "skip-name-resolve".to_owned(),
        "performance-schema=OFF".to_owned(),
        "character-set-server=latin1".to_owned(),
        "collation-server=latin1_bin".to_owned(),
        "transaction-isolation=READ-COMMITTED".to_owned(),
        "max-allowed-packet=64M".to_owned(),
        "query-cache-type=OFF".to_owned(),
        format!("max-connections={}", 2 * settings.clients + 20),
    ];
    if engine == EngineName::Myrocks {
        let codec = match settings.codec.as_str() {
            "none" => "kNoCompression",
            "lz4" => "kLZ4Compression",
            "zlib" => "kZlibCompression",
            "zstd" => "kZSTD",
            _ => "kSnappyCompression",
        };
        let mut family = format!(
            "write_buffer_size={};max_write_buffer_number={};compression={codec};block_based_table_factory={{filter_policy=bloomfilter:{}:false;block_size={PAGE}}}",
            settings.write_buffer_bytes,
            settings.write_buffers.max(2),
            settings.filter_bits
        );
        for (name, bytes) in [
            ("target_file_size_base", settings.file_bytes),
            ("max_bytes_for_level_base", settings.base_bytes),
        ] {
            if let Some(bytes) = bytes {
                family += &format!(";{name}={bytes}");
            }
        }
        all.extend([
            "skip-innodb".to_owned(),
            "plugin-load-add=ha_rocksdb.so".to_owned(),
            "default-storage-engine=ROCKSDB".to_owned(),
            format!("rocksdb-block-cache-size={}", settings.cache_bytes),
            // The families share the memory of the memtables, as the one family of the other engines has it.
            format!("rocksdb-db-write-buffer-size={}", settings.memory_bytes() - settings.cache_bytes),
            format!("rocksdb-flush-log-at-trx-commit={flush}"),
            format!("rocksdb-default-cf-options={family}"),
        ]);
    } else {
        all.extend([
            "default-storage-engine=InnoDB".to_owned(),
            format!("innodb-buffer-pool-size={}", settings.cache_bytes.max(POOL)),
            format!("innodb-log-file-size={}", log_bytes(settings)),
            format!("innodb-flush-log-at-trx-commit={flush}"),
            // Reads and writes go through the operating system's cache, as those of the other engines.
            "innodb-flush-method=fsync".to_owned(),
            "innodb-page-size=16K".to_owned(),
            // MiB by which the file of the undo log grows. With the default of 64 a small graph would seem to take much space.
            "innodb-autoextend-increment=1".to_owned(),
        ]);
    }
    all
}

/// Bytes of InnoDB's log: as much as the data, so that no write waits for a checkpoint that a larger log would have made later.
fn log_bytes(settings: &Settings) -> u64 {
    (settings.data_bytes / MIB).clamp(16, 1024) * MIB
}

impl Server {
    /// Starts `program`, MariaDB's server, on the data below `dir`. Creates the data if there are none.
    ///
    /// # Errors
    /// The data cannot be created, or the server does not start: with the last lines of its log.
    pub fn start(engine: EngineName, dir: &Path, settings: &Settings, program: &Path) -> Result<Server> {
        let said = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
        let dir = &home(dir);
        std::fs::create_dir_all(dir).map_err(|e| said(dir, e))?;
        // The user of the server has no password, so that no other user may reach the socket.
        std::fs::set_permissions(dir, PermissionsExt::from_mode(0o700)).map_err(|e| said(dir, e))?;
        let dir = dir.canonicalize().map_err(|e| said(dir, e))?;
        let (socket, log) = (dir.join("server.sock"), dir.join("error.log"));
        if socket.as_os_str().len() > SOCKET_PATH {
            let why = "a Unix socket cannot have so long a path: give a shorter --dir";
            return Err(format!("{}: {why}", socket.display()));
        }
        let (data, temporary) = (dir.join("data"), dir.join("tmp"));
        std::fs::create_dir_all(&temporary).map_err(|e| said(&temporary, e))?;
        if !data.exists() {
            create(&dir, &data, settings, program)?;
        }
        let options = options(engine, settings);
        let mut command = dies_with_parent(program);
        command.arg("--no-defaults").args(as_user()).arg(format!("--datadir={}", data.display()));
        command.arg(format!("--socket={}", socket.display())).arg(format!("--log-error={}", log.display()));
        command.arg(format!("--pid-file={}", dir.join("server.pid").display()));
        command.arg(format!("--tmpdir={}", temporary.display()));
        command.args(options.iter().map(|option| format!("--{option}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|e| said(program, e))?;
        let server = Server { child: Mutex::new(Some(child)), socket, log, options };
        server.wait_until_it_answers()?;
        Ok(server)
    }

    fn wait_until_it_answers(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begun.elapsed()).max(PAUSE);
            match Connection::open(&self.socket, left) {
                Ok(_) => return Ok(()),
                Err(Fault::Refused { code, text }) => {
                    return Err(format!("the server refuses its first client: {text} ({code})"));
                }
                Err(Fault::Lost(_)) => {}
            }
            if let Some(status) = self.ended() {
                return Err(format!("the server did not start: {status}; {}", last_lines(&self.log)));
            }
            if begun.elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(format!("the server did not start in {seconds} s; {}", last_lines(&self.log)));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// A new connection.
    ///
    /// # Errors
    /// The server has ended, or refuses.
    pub fn connect(&self) -> Result<Connection> {
        Connection::open(&self.socket, PATIENCE).map_err(|fault| self.explained(&fault))
    }

    /// The options that it was started with.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// The number of its process.
    pub fn process(&self) -> Option<u32> {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.as_ref().map(Child::id)
    }

    /// The text of a fault. If the server has ended, with the end of its log.
    pub fn explained(&self, fault: &Fault) -> String {
        if let Fault::Lost(_) = fault {
            let begun = Instant::now();
            while begun.elapsed() < LAST_WORDS {
                if let Some(status) = self.ended() {
                    return format!("the server ended ({status}); {}", last_lines(&self.log));
                }
                std::thread::sleep(PAUSE);
            }
        }
        fault.to_string()
    }

    /// Its status, if it has ended.
    fn ended(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock().unwrap_or_else(PoisonError::into_inner);
        child.as_mut().and_then(|child| child.try_wait().ok().flatten())
    }

    /// Ends the server, and waits until it has written everything.
    ///
    /// # Errors
    /// It does not end, or fails.
    pub fn stop(self) -> Result<()> {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut child) = child else { return Ok(()) };
        // A server that has ended already is seen below.
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        let begun = Instant::now();
        loop {
            match child.try_wait().map_err(|e| e.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => {
                    return Err(format!("the server ended ({status}); {}", last_lines(&self.log)));
                }
                None if begun.elapsed() > PATIENCE => {
                    kill(&mut child);
                    let seconds = PATIENCE.as_secs();
                    return Err(format!("the server did not end in {seconds} s; {}", last_lines(&self.log)));
                }
                None => std::thread::sleep(PAUSE),
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let child = self.child.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut child) = child {
            kill(&mut child);
        }
    }
}

/// Ends a server at once. One that has ended already is only waited for.
fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The superuser must say that the server may run as the superuser.
fn as_user() -> Option<&'static str> {
    rustix::process::geteuid().is_root().then_some("--user=root")
}

/// The command `program`, which the system kills when its parent ends, if `setpriv` is there to ask the system for that.
fn dies_with_parent(program: &Path) -> Command {
    match place::program("setpriv") {
        Some(tool) => {
            let mut command = Command::new(tool);
            command.args(["--pdeathsig", "KILL", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// The tool that creates data directories: that of the same installation, or another one.
fn creator(program: &Path) -> Result<PathBuf> {
    const TOOL: &str = "mariadb-install-db";
    let beside = program.parent().and_then(Path::parent).map(|prefix| prefix.join("bin").join(TOOL));
    let found = beside.filter(|tool| tool.is_file()).or_else(|| place::program(TOOL));
    found.ok_or_else(|| format!("no program {TOOL}: apt-get install mariadb-server"))
}

/// Creates the data directory with the system's own tables.
fn create(dir: &Path, data: &Path, settings: &Settings, program: &Path) -> Result<()> {
    let beside = dir.join("data.new");
    // What an interrupted creation left.
    let _ = std::fs::remove_dir_all(&beside);
    let tool = creator(program)?;
    let log = dir.join("create.log");
    let said = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let out = File::create(&log).map_err(|e| said(&log, e))?;
    let errors = out.try_clone().map_err(|e| said(&log, e))?;
    let mut command = dies_with_parent(&tool);
    command.arg("--no-defaults").args(as_user()).arg(format!("--datadir={}", beside.display()));
    command.arg(format!("--tmpdir={}", dir.join("tmp").display()));
    command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    command.args(["--skip-name-resolve", "--innodb-page-size=16K"]);
    command.arg(format!("--innodb-log-file-size={}", log_bytes(settings)));
    let status = command.stdin(Stdio::null()).stdout(out).stderr(errors).status();
    let status = status.map_err(|e| said(&tool, e))?;
    if !status.success() {
        return Err(format!("{} failed: {status}; {}", tool.display(), last_lines(&log)));
    }
    std::fs::rename(&beside, data).map_err(|e| said(data, e))
}

/// The last lines of a log, in one line.
fn last_lines(log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    if last.is_empty() { format!("{name} is empty") } else { format!("{name} ends: {}", last.join(" | ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_other_engines() {
        let settings = Settings {
            cache_bytes: 8 * MIB,
            write_buffer_bytes: MIB,
            write_buffers: 3,
            file_bytes: Some(MIB),
            clients: 16,
            ..Settings::default()
        };
        let has = |engine, settings: &Settings, option: &str| {
            let all = options(engine, settings);
            assert!(all.iter().any(|given| given.contains(option)), "{option}: {all:?}");
        };
        for option in ["buffer-pool-size=8388608", "trx-commit=2", "flush-method=fsync", "max-connections=52"]
        {
            has(EngineName::Innodb, &settings, option);
        }
        for option in [
            "block-cache-size=8388608",
            "db-write-buffer-size=3145728",
            "trx-commit=2",
            "compression=kSnappyCompression",
            "bloomfilter:10:false",
            "target_file_size_base=1048576",
        ] {
            has(EngineName::Myrocks, &settings, option);
        }
        for engine in [EngineName::Innodb, EngineName::Myrocks] {
            has(engine, &Settings { sync: true, ..settings.clone() }, "trx-commit=1");
            has(engine, &settings, "skip-networking");
        }
    }

    #[test]
    fn a_path_that_no_socket_can_have_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("d".repeat(100));
        let why = Server::start(EngineName::Innodb, &deep, &Settings::default(), Path::new("/bin/false"));
        assert!(why.as_ref().is_err_and(|why| why.contains("give a shorter --dir")), "{why:?}");
        // Only the server's folder is closed to other users.
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let usual = dir.path().join("usual");
        std::fs::create_dir(&usual).unwrap();
        assert_eq!((mode(&deep), mode(&home(&deep))), (mode(&usual), 0o700));
    }

    #[test]
    fn the_end_of_a_log_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("error.log");
        assert_eq!(last_lines(&log), "error.log is empty");
        std::fs::write(&log, "one\ntwo\n\nthree\nfour\nfive\nb\u{e4}d\n").unwrap();
        assert_eq!(last_lines(&log), "error.log ends: two | three | four | five | b\u{e4}d");
    }
}
