//! An installation of the libraries: programs find them by pkg-config, by CMake, and by the names of RocksDB's releases.

#[path = "../../build/installed.rs"]
mod installation;

use crate::compiled::{include, ours, program};
use ashlar_testkit::judge::Skip;
use installation::{VERSION, install};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries of this build, below a prefix of their own.
fn installed(dir: &Path) -> PathBuf {
    let (built, prefix) = (dir.join("built"), dir.join("prefix"));
    std::fs::create_dir(&built).unwrap();
    let tests = ours().parent().unwrap().to_owned();
    for name in installation::BUILT {
        // Only the shared library of this crate is built with its tests.
        let there = Some(tests.join(name)).filter(|path| path.exists()).unwrap_or_else(ours);
        symlink(there, built.join(name)).unwrap();
    }
    install(&built, &include().join("../../.."), &prefix).unwrap();
    prefix
}

/// What a program prints; it must end well.
fn said(command: &mut Command) -> String {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

#[test]
fn programs_of_each_release_find_the_library() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = installed(dir.path());
    let (walk, data) = (dir.path().join("phases"), dir.path().join("data"));
    let compile = |name: &str| {
        let mut cc = Command::new("cc");
        cc.args(["-std=c99", "-w", "-xc"])
            .arg("-I")
            .arg(prefix.join("include"))
            .arg(program("phases.c"))
            .arg("-o")
            .arg(&walk);
        said(cc.arg("-xnone").arg("-L").arg(prefix.join("lib")).arg(format!("-l:{name}")));
    };
    for name in ["librocksdb.so.7.8", "librocksdb.so.9", "librocksdb.so.11.8", "librocksdb.so"] {
        compile(name);
        std::fs::create_dir(&data).unwrap();
        let printed = said(Command::new(&walk).arg(&data).env("LD_LIBRARY_PATH", prefix.join("lib")));
        assert!(printed.ends_with("end\n"), "{name}: {printed}");
        std::fs::remove_dir_all(&data).unwrap();
    }
    // A second installation replaces the first, and no library of RocksDB.
    let own = prefix.join("lib/librocksdb.so.9");
    installed_again(dir.path(), &prefix).unwrap();
    std::fs::remove_file(&own).unwrap();
    std::fs::write(&own, "RocksDB's").unwrap();
    let refused = installed_again(dir.path(), &prefix).unwrap_err();
    assert!(refused.contains("librocksdb.so.9: is no link"), "{refused}");
}

fn installed_again(dir: &Path, prefix: &Path) -> Result<(), String> {
    install(&dir.join("built"), &include().join("../../.."), prefix)
}

#[test]
fn pkg_config_finds_the_library() {
    if !is_there("pkg-config") {
        return Skip::because("pkg-config is not installed: apt-get install pkg-config")
            .announce("pkg_config_finds_the_library");
    }
    let dir = tempfile::tempdir().unwrap();
    let prefix = installed(dir.path());
    let ask = |what: &str| {
        said(
            Command::new("pkg-config")
                .args([what, "rocksdb"])
                .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")),
        )
    };
    assert_eq!(ask("--modversion").trim(), VERSION);
    assert!(ask("--libs").contains("-lrocksdb"));
    assert!(ask("--cflags").contains(prefix.join("include").to_str().unwrap()));
}

#[test]
fn cmake_finds_the_library() {
    if !is_there("cmake") {
        return Skip::because("cmake is not installed: apt-get install cmake")
            .announce("cmake_finds_the_library");
    }
    let dir = tempfile::tempdir().unwrap();
    let (prefix, project, data) =
        (installed(dir.path()), dir.path().join("project"), dir.path().join("data"));
    std::fs::create_dir(&project).unwrap();
    std::fs::create_dir(&data).unwrap();
    let lists = format!(
        "cmake_minimum_required(VERSION 3.20)\nproject(walk C)\nfind_package(RocksDB 8.1 REQUIRED)\nadd_executable(walk {})\n\
         target_link_libraries(walk RocksDB::rocksdb-shared)\n",
        program("phases.c").display()
    );
    std::fs::write(project.join("CMakeLists.txt"), lists).unwrap();
    let build = project.join("build");
    said(
        Command::new("cmake")
            .arg("-S")
            .arg(&project)
            .arg("-B")
            .arg(&build)
            .arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())),
    );
    said(Command::new("cmake").arg("--build").arg(&build));
    let printed = said(Command::new(build.join("walk")).arg(&data));
    assert!(printed.ends_with("end\n"), "{printed}");
}
