//! Limits the memory of a process for caches, the page cache included, so that reads of a larger database reach the
//! device.
//!
//! 1. `--memory-group` names a memory control group, of cgroup v1 or v2, that is delegated to this program. The driver
//!    creates a group below it for each process. The process enters its group before it opens a file, so that the page
//!    cache of its files is charged to the group.
//! 2. During a measured step the group has just the limit, the engine's memtables, [`EngineName::own_bytes`], and the memory of the oracle.
//!    The program has 64 MiB in addition, and 2 MiB for each of its threads: a smaller experiment has a smaller limit, but as many
//!    threads. At other times the group is large enough for the oracle to grow.
//! 3. Without such a group there is no limit, and the record says so: its regime follows from the machine's memory.

use crate::engine::EngineName;
use crate::settings::Settings;
use ashlar_report::record::{Params, Record};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM_BYTES: u64 = 64 << 20;
/// What a thread that reads or writes takes: its stack, and the pages that an allocator keeps for it.
const THREAD_BYTES: u64 = 2 << 20;
/// The oracle's map, per key.
pub const ORACLE_BYTES: u64 = 160;

/// A control group of one process; removed when dropped, after its process has ended.
#[derive(Debug)]
pub struct Group(PathBuf);

impl Group {
    /// Creates a group below `parent`.
    ///
    /// # Errors
    /// A text that says why the group cannot be created.
    pub fn below(parent: &Path) -> Result<Group, String> {
        let said =
            |path: &Path, e: std::io::Error| format!("no memory control group: {}: {e}", path.display());
        let handed_down = parent.join("cgroup.subtree_control");
        if handed_down.exists() {
            fs::write(&handed_down, "+memory").map_err(|e| said(&handed_down, e))?;
        }
        let unique = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let unique = unique.map_or(0, |since| since.as_nanos());
        let path = parent.join(format!("ashlar-{}-{unique}", std::process::id()));
        fs::create_dir(&path).map_err(|e| said(&path, e))?;
        Ok(Group(path))
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The rest of the page cache moves to the parent group. A group that cannot be removed is empty and harmless.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Sets the limit. A group above the limit drops page cache; pages under writeback take a moment.
fn hold(group: &Path, bytes: u64) -> Result<(), String> {
    let old = group.join("memory.limit_in_bytes");
    let file = if old.exists() { old } else { group.join("memory.max") };
    let mut tried = Ok(());
    for _ in 0..20 {
        tried = fs::write(&file, bytes.to_string());
        if tried.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    tried.map_err(|e| format!("{} to {bytes}: {e}", file.display()))
}

/// The group of this process, and the memory in it that does not belong to the engine.
#[derive(Debug)]
pub struct Held {
    group: Option<PathBuf>,
    /// The limit on the engine's caches and the page cache of its files.
    limit: Option<u64>,
    /// The memory that the engine and the program need besides, and the oracle at most.
    beside: u64,
    oracle_most: u64,
    oracle: u64,
}

impl Held {
    /// Enters `group`, if there is one and `settings` have a limit. The oracle holds up to `keys` keys, and a step has up to `threads`
    /// threads.
    ///
    /// # Errors
    /// The process cannot enter.
    pub fn enter(
        engine: EngineName,
        settings: &Settings,
        (keys, threads): (u64, u32),
        group: Option<&Path>,
    ) -> Result<Held, String> {
        let group = group.map(Path::to_path_buf);
        let held = Held {
            group: group.filter(|_| settings.memory_limit_bytes.is_some()),
            limit: settings.memory_limit_bytes,
            beside: settings.write_buffer_bytes * u64::from(settings.write_buffers)
                + PROGRAM_BYTES
                + THREAD_BYTES * u64::from(threads)
                + engine.own_bytes(),
            oracle_most: keys * ORACLE_BYTES,
            oracle: 0,
        };
        held.hold(held.oracle_most)?;
        if let Some(group) = &held.group {
            let file = group.join("cgroup.procs");
            fs::write(&file, "0").map_err(|e| format!("{}: {e}", file.display()))?;
        }
        Ok(held)
    }

    fn hold(&self, oracle: u64) -> Result<(), String> {
        match (&self.group, self.limit) {
            (Some(group), Some(limit)) => hold(group, limit + self.beside + oracle),
            _ => Ok(()),
        }
    }

    /// Runs the measured work with the tight limit.
    ///
    /// # Errors
    /// Those of `work`, or the limit cannot be set.
    pub fn tight<T>(&self, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        self.hold(self.oracle)?;
        let done = work();
        self.hold(self.oracle.max(self.oracle_most))?;
        done
    }

    /// Sets the bytes of the oracle.
    pub fn set_oracle(&mut self, bytes: u64) {
        self.oracle = bytes;
    }

    /// Adds the limit to a record, and whether the database fits the engine's cache (`mem`), memory (`os`) or neither (`io`).
    pub fn note(&self, record: &mut Record) {
        let params = &mut record.params;
        let method = if self.group.is_some() { "cgroup" } else { "none" };
        params.limit_method = Some(method.to_owned());
        if self.group.is_none() && params.memory_limit_bytes.take().is_some() {
            let why = "not held: no --memory-group was given".to_owned();
            params.options.insert("memory limit".into(), why);
        }
        if let Some(disk) = record.space.du {
            regime(params, disk);
        }
    }
}

fn regime(params: &mut Params, disk: u64) {
    let cache = params.cache_bytes.unwrap_or(0);
    let Some(memory) = params.memory_limit_bytes.or_else(|| Some(free()? + cache)) else { return };
    let name = match disk {
        disk if disk <= cache => "mem",
        disk if disk <= memory => "os",
        _ => "io",
    };
    params.regime = Some(name.to_owned());
    params.rho = Some(disk as f64 / memory.max(1) as f64);
}

/// Bytes of memory that could be had.
pub fn free() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
}

/// Free bytes of the file system of `dir`. `None`: the system does not say.
pub fn free_disk(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regimes_are_told_apart() {
        let of = |disk, limit| {
            let mut params =
                Params { memory_limit_bytes: limit, cache_bytes: Some(4 << 20), ..Params::default() };
            regime(&mut params, disk);
            (params.regime.unwrap(), params.rho.unwrap())
        };
        assert_eq!(of(4 << 20, Some(16 << 20)).0, "mem");
        assert_eq!(of(16 << 20, Some(16 << 20)), ("os".into(), 1.0));
        assert_eq!(of(90 << 20, Some(16 << 20)), ("io".into(), 5.625));
        assert_eq!(of(90 << 20, None).0, "os");
    }

    /// A directory of plain files replaces the system's: the test reads the limits that were written to them.
    #[test]
    fn a_group_is_made_entered_drawn_tight_and_removed() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("cgroup.subtree_control"), "").unwrap();
        let group = Group::below(parent.path()).unwrap();
        let path = group.path().to_path_buf();
        let read = |name: &str| fs::read_to_string(path.join(name)).unwrap();
        assert_eq!(fs::read_to_string(parent.path().join("cgroup.subtree_control")).unwrap(), "+memory");
        let settings = Settings { memory_limit_bytes: Some(10 << 20), ..Settings::default() };
        let held = Held::enter(EngineName::Ashlardb, &settings, (1 << 16, 0), Some(&path)).unwrap();
        let beside = (2 + 64) << 20;
        let wide = (10_u64 << 20) + beside + (10 << 20);
        assert_eq!((read("cgroup.procs"), read("memory.max")), ("0".into(), wide.to_string()));
        held.tight(|| {
            assert_eq!(read("memory.max"), (wide - (10 << 20)).to_string());
            Ok(())
        })
        .unwrap();
        assert_eq!(read("memory.max"), wide.to_string());
        for name in ["cgroup.procs", "memory.max"] {
            fs::remove_file(path.join(name)).unwrap();
        }
        drop(group);
        assert!(!path.exists());
        let why = Group::below(Path::new("/no/such/group")).unwrap_err();
        assert!(why.starts_with("no memory control group: /no/such/group/ashlar-"), "{why}");
    }

    #[test]
    fn what_was_not_held_is_said() {
        let settings = Settings { memory_limit_bytes: Some(1), ..Settings::default() };
        let mut record = Record { params: settings.params(1), ..Record::default() };
        record.space.du = Some(90 << 20);
        let held = Held::enter(EngineName::Ashlardb, &settings, (5000, 0), None).unwrap();
        held.note(&mut record);
        assert_eq!(record.params.options["memory limit"], "not held: no --memory-group was given");
        assert_eq!((record.params.regime.as_deref(), record.params.memory_limit_bytes), (Some("os"), None));
        assert_eq!(record.params.limit_method.as_deref(), Some("none"));
    }
}
