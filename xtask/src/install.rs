//! `install`: the C libraries below a prefix, with headers and the files for pkg-config and CMake.

use crate::{installed, project, run};
use std::path::{Path, PathBuf};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask install --prefix=DIR [--from=DIR]

Builds librocksdb and libleveldb, and puts them below the prefix: lib, include, lib/pkgconfig, lib/cmake/RocksDB. The library also has
the names librocksdb.so.7.8 to librocksdb.so.11.9, under which programs of those releases look for it. --from takes libraries that are
built already, such as those of target/release. A second installation replaces the first. A file that is not of an earlier
installation, such as one of RocksDB, is an error; then nothing is changed. lib/ashlardb.installed lists what was installed.

examples:
  cargo xtask install --prefix=/usr/local
  cargo xtask install --prefix=$HOME/ashlar      then PKG_CONFIG_PATH=$HOME/ashlar/lib/pkgconfig, or -DCMAKE_PREFIX_PATH=$HOME/ashlar";

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let (mut prefix, mut from) = (None, None);
    for arg in args {
        match arg.split_once('=') {
            Some(("--prefix", dir)) if !dir.is_empty() => prefix = Some(PathBuf::from(dir)),
            Some(("--from", dir)) if !dir.is_empty() => from = Some(PathBuf::from(dir)),
            _ => return Err(format!("unknown: {arg}\n\n{HELP}")),
        }
    }
    let prefix = prefix.ok_or_else(|| format!("--prefix=DIR is missing\n\n{HELP}"))?;
    let built = match from {
        Some(from) => from,
        None => {
            run::plain(
                &project::cargo(),
                &["build", "--release", "-p", "ashlar-capi", "-p", "ashlar-leveldb"],
            )?;
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(project::scratch, PathBuf::from).join("release")
        }
    };
    installed::install(&built, Path::new(&project::root()), &prefix)?;
    println!("installed {} below {}", installed::BUILT.join(", "), prefix.display());
    Ok(())
}
