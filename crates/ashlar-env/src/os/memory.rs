//! The amount of memory that this process may use.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The smallest of the machine's memory and the limits of the process's control groups. `None` when the system does not
/// say.
pub fn memory_limit() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    limit(&read)
}

/// The most bytes that one block, record or value of a file may take when it is decompressed: half of [`memory_limit`].
/// A few kilobytes of a file can decompress to gigabytes, and the system promises memory that it does not have.
pub fn uncompressed_max() -> usize {
    static MAX: OnceLock<usize> = OnceLock::new();
    let half = || memory_limit().and_then(|bytes| usize::try_from(bytes / 2).ok()).unwrap_or(usize::MAX);
    *MAX.get_or_init(half)
}

fn limit(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).as_deref().and_then(total_of_meminfo);
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(limit_files).filter_map(|path| read(&path)?.trim().parse().ok());
    limits.chain(machine).min()
}

fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The files that hold the limits of one line of `/proc/self/cgroup` (`id:controllers:path`), of its parents too: the
/// second version's (`0::/path`) and the first version's.
fn limit_files(line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
    let (root, name) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        list if list.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let group = Path::new(path.trim_start_matches('/'));
    group.ancestors().map(|group| Path::new(root).join(group).join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit_of(files: &[(&str, &str)]) -> Option<u64> {
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        limit(&read)
    }

    #[test]
    fn the_least_limit_counts() {
        let machine = ("/proc/meminfo", "MemTotal:        4096 kB\nMemFree:  1 kB\n");
        assert_eq!(limit_of(&[]), None);
        assert_eq!(limit_of(&[machine]), Some(4096 << 10));
        let second = ("/proc/self/cgroup", "0::/a/b\n");
        let parent = ("/sys/fs/cgroup/a/memory.max", "1000\n");
        let own = ("/sys/fs/cgroup/a/b/memory.max", "max\n");
        assert_eq!(limit_of(&[machine, second, parent, own]), Some(1000));
        let first = ("/proc/self/cgroup", "9:cpu:/x\n7:memory,other:/c\n");
        let limit = ("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "2000");
        let none = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        assert_eq!(limit_of(&[machine, first, limit, none]), Some(2000));
        assert_eq!(limit_of(&[("/proc/self/cgroup", "nonsense")]), None);
    }

    #[test]
    fn this_machine_says() {
        assert!(memory_limit().is_none_or(|bytes| bytes > 1 << 20));
    }
}
