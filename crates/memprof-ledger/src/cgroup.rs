//! The memory limit of a process's cgroup, which the OOM killer enforces.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The lowest limit among the cgroups of a process, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cgroup {
    /// Limit.
    pub limit: u64,
    /// Memory of all processes in the cgroup, including files that the kernel caches.
    pub used: u64,
    /// Part of `used`: cached files not used for a while, which the kernel drops before it kills a process.
    #[serde(default)]
    pub idle_files: u64,
}

/// Version 1 reports no limit as a number close to the maximum.
const NO_LIMIT: u64 = 1 << 60;

/// The limit of the process whose `directory` is `/proc/PID` (or `/proc/self`); `None` if it has none.
pub fn limit(directory: &str) -> Option<Cgroup> {
    let text = fs::read_to_string(format!("{directory}/cgroup")).ok()?;
    narrowest(&text, Path::new("/sys/fs/cgroup"))
}

fn narrowest(text: &str, root: &Path) -> Option<Cgroup> {
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?, parts.next()?.trim_start_matches('/')))
    });
    let found = lines.flat_map(|(controllers, path)| {
        if controllers.is_empty() {
            upwards(root.to_owned(), path, "memory.max", "memory.current")
        } else if controllers.split(',').any(|name| name == "memory") {
            let root = root.join("memory");
            upwards(root, path, "memory.limit_in_bytes", "memory.usage_in_bytes")
        } else {
            Vec::new()
        }
    });
    found.min_by_key(|cgroup| cgroup.limit)
}

/// A cgroup and its ancestors. In a container the path may exist only on the host.
fn upwards(root: PathBuf, path: &str, limit: &str, used: &str) -> Vec<Cgroup> {
    // The path of a cgroup outside of this program's cgroup namespace.
    if path.split('/').any(|name| name == "..") {
        return Vec::new();
    }
    let full = root.join(path);
    let directories = full.ancestors().take_while(|directory| directory.starts_with(&root));
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let found = directories.filter_map(|directory| {
        Some(Cgroup {
            limit: number(directory.join(limit)).filter(|&limit| limit < NO_LIMIT)?,
            used: number(directory.join(used))?,
            idle_files: idle_files(directory),
        })
    });
    found.collect()
}

/// Version 1 has one number for the cgroup itself and one that includes its descendants.
fn idle_files(directory: &Path) -> u64 {
    let text = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    let number = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let mut found = lines.filter(|(key, _)| *key == name);
        found.next()?.1.parse::<u64>().ok()
    };
    (number("total_inactive_file").or_else(|| number("inactive_file"))).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn finds_the_narrowest_limit_of_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "app/web/memory.max", "max\n");
        write(root, "app/web/memory.current", "5\n");
        write(root, "app/memory.max", "1000\n");
        write(root, "app/memory.current", "700\n");
        let found = narrowest("0::/app/web\n", root);
        assert_eq!(found, Some(Cgroup { limit: 1000, used: 700, idle_files: 0 }));
        write(root, "memory/memory.limit_in_bytes", "900\n");
        write(root, "memory/memory.usage_in_bytes", "800\n");
        write(root, "memory/memory.stat", "cache 30\ninactive_file 10\ntotal_inactive_file 20\n");
        // A path on the host; the container sees only the end of it.
        let both = "4:cpu,memory:/docker/4711\n0::/app/web\n";
        assert_eq!(narrowest(both, root), Some(Cgroup { limit: 900, used: 800, idle_files: 20 }));
        write(root, "memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(narrowest("4:memory:/\n", root), None);
        write(root, "elsewhere/memory.max", "10\n");
        write(root, "elsewhere/memory.current", "5\n");
        assert_eq!(narrowest("0::/../elsewhere\n", &root.join("app")), None);
    }
}
