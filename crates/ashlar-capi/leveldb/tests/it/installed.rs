//! An installation: programs of LevelDB find the library by pkg-config, and under Debian's name.

#[path = "../../../../../xtask/src/installed.rs"]
#[allow(dead_code, reason = "the tests of ashlar-capi use more of it")]
mod installation;

use crate::compiled::{ours, program};
use ashlar_testkit::judge::Skip;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// What a program prints; it must end well.
fn said(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn programs_of_leveldb_find_the_installed_library() {
    if Command::new("pkg-config").arg("--version").output().is_err() {
        return Skip::because("pkg-config is not installed: apt-get install pkg-config")
            .announce("programs_of_leveldb_find_the_installed_library");
    }
    let dir = tempfile::tempdir().unwrap();
    let (built, prefix) = (dir.path().join("built"), dir.path().join("prefix"));
    std::fs::create_dir(&built).unwrap();
    // The tests of RocksDB's interface try its libraries.
    installation::BUILT.iter().for_each(|name| symlink(ours(), built.join(name)).unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    installation::install(&built, &root, &prefix).unwrap();
    let words = said(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "leveldb"])
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
    );
    let (walk, data) = (dir.path().join("walk"), dir.path().join("data"));
    for library in ["-lleveldb", "-l:libleveldb.so.1", "-l:libleveldb.so.1d"] {
        let mut cc = Command::new("cc");
        cc.args(["-std=c99", "-w", "-xc"]).arg(program("walk.c")).arg("-o").arg(&walk).arg("-xnone");
        said(cc.args(words.split_whitespace().filter(|word| *word != "-lleveldb")).arg(library));
        std::fs::create_dir(&data).unwrap();
        let printed = said(Command::new(&walk).arg(&data).env("LD_LIBRARY_PATH", prefix.join("lib")));
        assert!(printed.ends_with("end\n"), "{library}: {printed}");
        std::fs::remove_dir_all(&data).unwrap();
    }
}
