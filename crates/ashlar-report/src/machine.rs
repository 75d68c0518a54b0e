//! Describes a machine by the files of Linux. The caller passes the reader of files, so that tests can replace it.

use serde::{Deserialize, Serialize};
use std::path::Path;

/// A machine. Unknown facts are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: Option<String>,
    /// Hardware threads.
    pub threads: Option<u64>,
    /// Frequency seen.
    pub mhz: Option<f64>,
    /// The governor of the frequency.
    pub governor: Option<String>,
    /// Caches of the first thread: `L1 Data 48K`, ….
    pub caches: Vec<String>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// Version of the kernel.
    pub kernel: Option<String>,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// Mitigations of processor flaws: `meltdown: Not affected`, ….
    pub mitigations: Vec<String>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
    /// The swappiness of memory.
    pub swappiness: Option<u64>,
    /// Percent of memory that may be dirty before writers wait.
    pub dirty_ratio: Option<u64>,
    /// Percent of dirty memory from which the kernel writes in the background.
    pub dirty_background_ratio: Option<u64>,
    /// File system of the databases, with its options.
    pub file_system: Option<String>,
    /// The device below the file system.
    pub device: Option<String>,
    /// Whether the device is a spinning disk.
    pub rotational: Option<bool>,
    /// The scheduler of the device's queue.
    pub scheduler: Option<String>,
    /// Whether the machine runs on a hypervisor.
    pub virtual_machine: Option<bool>,
    /// The clock source.
    pub clock: Option<String>,
    /// The measured speed of the device.
    pub disk: Option<Disk>,
}

/// A short measurement of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Disk {
    /// MiB per second, written in order and synced.
    pub write_mib_s: f64,
    /// MiB per second, read in order, past the page cache where the machine allows.
    pub read_mib_s: Option<f64>,
    /// Microseconds of a read of 4 KiB at a drawn place, past the page cache.
    pub read_4k_us: Option<f64>,
    /// Microseconds of a write of 4 KiB and `fdatasync`, median.
    pub sync_us: f64,
}

/// Flaws whose mitigations cost time.
const FLAWS: [&str; 8] = [
    "meltdown",
    "spectre_v1",
    "spectre_v2",
    "mds",
    "retbleed",
    "l1tf",
    "spec_rstack_overflow",
    "gather_data_sampling",
];

impl Machine {
    /// This machine, with databases in `folder`. `read` answers a file's text.
    pub fn read(folder: &Path, read: &dyn Fn(&Path) -> Option<String>) -> Machine {
        let text = |path: &str| read(Path::new(path)).map(|text| text.trim().to_owned());
        let number = |path: &str| text(path)?.parse().ok();
        let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
        let cpu = |name: &str| field(&cpuinfo, name);
        let threads = cpuinfo.lines().filter(|line| line.starts_with("processor")).count() as u64;
        let mount = mount_of(&text("/proc/self/mountinfo").unwrap_or_default(), folder);
        let device = mount.as_ref().and_then(|mount| queue(&mount.device, &text));
        let flaw = |name: &&str| {
            let said = text(&format!("/sys/devices/system/cpu/vulnerabilities/{name}"))?;
            Some(format!("{name}: {said}"))
        };
        Machine {
            cpu: cpu("model name"),
            threads: (threads > 0).then_some(threads),
            mhz: cpu("cpu MHz").and_then(|mhz| mhz.parse().ok()),
            governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            caches: (0..8).map_while(|index| cache(index, &text)).collect(),
            memory_bytes: text("/proc/meminfo").and_then(|info| {
                let kib: u64 = field(&info, "MemTotal")?.split_whitespace().next()?.parse().ok()?;
                kib.checked_mul(1024)
            }),
            kernel: text("/proc/sys/kernel/osrelease"),
            distribution: text("/etc/os-release").and_then(|os| {
                let line = os.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
                Some(line.trim_matches('"').to_owned())
            }),
            mitigations: FLAWS.iter().filter_map(flaw).collect(),
            huge_pages: text("/sys/kernel/mm/transparent_hugepage/enabled").map(|all| chosen(&all)),
            swappiness: number("/proc/sys/vm/swappiness"),
            dirty_ratio: number("/proc/sys/vm/dirty_ratio"),
            dirty_background_ratio: number("/proc/sys/vm/dirty_background_ratio"),
            rotational: device.as_ref().map(|queue| queue.0),
            scheduler: device.map(|queue| queue.1),
            device: mount.as_ref().map(|mount| format!("{} ({})", mount.source, mount.device)),
            file_system: mount.map(|mount| format!("{} ({})", mount.kind, mount.options)),
            virtual_machine: cpu("flags").map(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            clock: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            disk: None,
        }
    }

    /// The known facts, as names and texts, for people.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let text = |value: &Option<String>| value.clone();
        let count = |value: Option<u64>| value.map(|n| n.to_string());
        let list = |values: &[String], between: &str| (!values.is_empty()).then(|| values.join(between));
        let cpu = self.cpu.clone().map(|cpu| match (self.threads, self.mhz) {
            (Some(n), Some(mhz)) => format!("{n} × {cpu}, {mhz:.0} MHz seen"),
            (Some(n), None) => format!("{n} × {cpu}"),
            _ => cpu,
        });
        let disk = self.disk.map(|disk| {
            let read = disk.read_mib_s.map_or(String::new(), |n| format!(", read {n:.0} MiB/s"));
            let small = disk.read_4k_us.map_or(String::new(), |n| format!(", 4 KiB read {n:.0} µs"));
            format!(
                "write {:.0} MiB/s{read}{small}, write and fdatasync {:.0} µs",
                disk.write_mib_s, disk.sync_us
            )
        });
        let yes = |value: Option<bool>| value.map(|yes| if yes { "yes" } else { "no" }.to_owned());
        let dirty = self.dirty_background_ratio.zip(self.dirty_ratio);
        let all = [
            ("Processor", cpu),
            ("Governor", text(&self.governor)),
            ("Caches", list(&self.caches, ", ")),
            (
                "Memory",
                self.memory_bytes.map(|bytes| format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64)),
            ),
            ("Kernel", text(&self.kernel)),
            ("Distribution", text(&self.distribution)),
            ("Virtual machine", yes(self.virtual_machine)),
            ("Clock", text(&self.clock)),
            ("Huge pages", text(&self.huge_pages)),
            ("Swappiness", count(self.swappiness)),
            (
                "Dirty pages",
                dirty.map(|(background, all)| format!("background {background} %, writers wait at {all} %")),
            ),
            ("File system", text(&self.file_system)),
            ("Device", text(&self.device)),
            ("Spinning", yes(self.rotational)),
            ("Scheduler", text(&self.scheduler)),
            ("Device measured", disk),
            ("Mitigations", list(&self.mitigations, "; ")),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The value of `name: value`, first line.
fn field(text: &str, name: &str) -> Option<String> {
    let named = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(named)
}

fn cache(index: u32, text: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let of = |name: &str| text(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}"));
    Some(format!("L{} {} {}", of("level")?, of("type")?, of("size")?))
}

/// The word in brackets of `always [madvise] never`.
fn chosen(all: &str) -> String {
    let inner = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inner.map_or(all, |(chosen, _)| chosen).to_owned()
}

struct Mount {
    /// `major:minor`.
    device: String,
    kind: String,
    source: String,
    options: String,
}

/// The mount that contains `folder`. Fields: `id parent major:minor root point options … - kind source super`.
fn mount_of(info: &str, folder: &Path) -> Option<Mount> {
    let parse = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let left: Vec<&str> = left.split(' ').collect();
        let mut right = right.split(' ');
        let point = *left.get(4)?;
        let mount = Mount {
            device: (*left.get(2)?).to_owned(),
            options: (*left.get(5)?).to_owned(),
            kind: right.next()?.to_owned(),
            source: right.next()?.to_owned(),
        };
        folder.starts_with(point).then_some((point.len(), mount))
    };
    // If several mounts are at the same place, the last one is visible.
    info.lines().filter_map(parse).max_by_key(|(length, _)| *length).map(|(_, mount)| mount)
}

/// Spinning or not, and the scheduler. A partition's queue is that of its disk.
fn queue(device: &str, text: &dyn Fn(&str) -> Option<String>) -> Option<(bool, String)> {
    ["queue", "../queue"].iter().find_map(|place| {
        let of = |name: &str| text(&format!("/sys/dev/block/{device}/{place}/{name}"));
        Some((of("rotational")? == "1", chosen(&of("scheduler")?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(path: &Path) -> Option<String> {
        let text = match path.to_str()? {
            "/proc/cpuinfo" => {
                "processor\t: 0\nmodel name\t: Some CPU\ncpu MHz\t\t: 2600.0\nflags\t\t: fpu hypervisor\nprocessor\t: 1\n"
            }
            "/proc/meminfo" => "MemTotal:       1048576 kB\nMemFree: 1 kB\n",
            "/etc/os-release" => "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n",
            "/sys/kernel/mm/transparent_hugepage/enabled" => "always [madvise] never\n",
            "/sys/devices/system/cpu/cpu0/cache/index0/level" => "1\n",
            "/sys/devices/system/cpu/cpu0/cache/index0/type" => "Data\n",
            "/sys/devices/system/cpu/cpu0/cache/index0/size" => "48K\n",
            "/proc/self/mountinfo" => {
                "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /data rw,noatime - xfs /dev/sdb1 rw\n3 1 8:3 / /database rw - x y rw\n"
            }
            "/sys/dev/block/8:2/../queue/rotational" => "0\n",
            "/sys/dev/block/8:2/../queue/scheduler" => "[none] mq-deadline\n",
            "/proc/sys/vm/swappiness" => "60\n",
            _ => return None,
        };
        Some(text.to_owned())
    }

    #[test]
    fn reads_what_linux_tells() {
        let m = Machine::read(Path::new("/data/run"), &files);
        assert_eq!((m.cpu.as_deref(), m.threads, m.mhz), (Some("Some CPU"), Some(2), Some(2600.0)));
        assert_eq!(m.caches, ["L1 Data 48K"]);
        assert_eq!((m.memory_bytes, m.swappiness), (Some(1 << 30), Some(60)));
        assert_eq!(m.distribution.as_deref(), Some("Some Linux 1"));
        assert_eq!(m.huge_pages.as_deref(), Some("madvise"));
        assert_eq!(m.file_system.as_deref(), Some("xfs (rw,noatime)"));
        assert_eq!(m.device.as_deref(), Some("/dev/sdb1 (8:2)"));
        assert_eq!((m.rotational, m.scheduler.as_deref()), (Some(false), Some("none")));
        assert_eq!((m.virtual_machine, m.dirty_ratio, m.kernel.clone()), (Some(true), None, None));
        let lines = m.lines();
        assert_eq!(lines[0], ("Processor", "2 × Some CPU, 2600 MHz seen".to_owned()));
        assert!(lines.iter().all(|(name, _)| *name != "Kernel"), "{lines:?}");
    }

    #[test]
    fn a_machine_that_tells_nothing() {
        assert_eq!(Machine::read(Path::new("/data"), &|_| None), Machine::default());
        assert_eq!(Machine::default().lines(), []);
    }
}
