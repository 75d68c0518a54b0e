//! Where the judges lie on this machine: `target/judges/paths`, written by `cargo xtask setup`.
//!
//! ```text
//! NAME <tab> PATH            found
//! NAME <tab> missing: WHY    looked for, not there
//! ```
//! Names: `rocksdb-7.8.3`, `rocksdb-11.8.1`, `leveldb-1.23` (shared objects), `ldb`, `sst_dump`, `rocksdb-judge` (programs).
//! `ASHLAR_JUDGES` names another folder than `target/judges`.

use crate::report;
use std::fmt;
use std::path::{Path, PathBuf};

/// Why a test cannot do its work on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skip {
    why: String,
}

impl Skip {
    /// A skip with its reason.
    pub fn because(why: impl Into<String>) -> Skip {
        Skip { why: why.into() }
    }

    /// The reason alone.
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Says it to the runner; the test named should return right after.
    pub fn announce(&self, test: &str) {
        report::skipped(test, &self.why);
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.why)
    }
}

fn folder() -> PathBuf {
    match std::env::var_os("ASHLAR_JUDGES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/judges"),
    }
}

/// The path noted under `name`.
///
/// # Errors
/// A skip, with the reason why the judge is missing.
pub fn place(name: &str) -> Result<PathBuf, Skip> {
    let text = std::fs::read_to_string(folder().join("paths"))
        .map_err(|_| Skip::because(format!("no {name}: run `cargo xtask setup` first")))?;
    find(&text, name)
}

fn find(text: &str, name: &str) -> Result<PathBuf, Skip> {
    let noted = text.lines().filter_map(|line| line.split_once('\t')).find(|(key, _)| *key == name);
    match noted {
        Some((_, value)) => match value.strip_prefix("missing: ") {
            Some(why) => Err(Skip::because(format!("no {name}: {why}"))),
            None if Path::new(value).exists() => Ok(PathBuf::from(value)),
            None => Err(Skip::because(format!(
                "{name} is gone from where setup found it: run `cargo xtask setup`"
            ))),
        },
        None => Err(Skip::because(format!("no {name}: run `cargo xtask setup` again"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_found_missing_gone_and_unknown_apart() {
        let here = env!("CARGO_MANIFEST_DIR");
        let text = format!("ldb\t{here}\nsst_dump\tmissing: not root\nrocksdb-7.8.3\t{here}/nowhere\n");
        assert_eq!(find(&text, "ldb"), Ok(PathBuf::from(here)));
        for (name, part) in [("sst_dump", "not root"), ("rocksdb-7.8.3", "is gone"), ("other", "again")] {
            let skip = find(&text, name).unwrap_err().to_string();
            assert!(skip.starts_with("skipped: ") && skip.contains(part), "{skip}");
        }
    }
}
