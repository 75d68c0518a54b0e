//! An installation of the libraries: programs find them by pkg-config, by CMake, and by the names of RocksDB's releases.

#[path = "../../../../xtask/src/installed.rs"]
mod installation;

use crate::compiled::{include, ours, program};
use ashlar_testkit::judge::Skip;
use installation::{VERSION, install};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries of this build, in one folder.
fn build(dir: &Path) {
    let built = dir.join("built");
    std::fs::create_dir(&built).unwrap();
    let tests = ours().parent().unwrap().to_owned();
    for name in installation::BUILT {
        // Only the libraries of this crate are built with its tests.
        let there = if name == "libleveldb.so" { ours() } else { tests.join(name) };
        assert!(there.exists(), "{} is not built", there.display());
        symlink(there, built.join(name)).unwrap();
    }
}

/// The libraries of this build, below a prefix of their own.
fn installed(dir: &Path) -> PathBuf {
    let prefix = dir.join("prefix");
    build(dir);
    installed_again(dir, &prefix).unwrap();
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
    // A second installation replaces the first.
    installed_again(dir.path(), &prefix).unwrap();
}

fn installed_again(dir: &Path, prefix: &Path) -> Result<(), String> {
    install(&dir.join("built"), &include().join("../../.."), prefix)
}

/// Every file and link below a directory: its path, and its content or the target of the link.
fn content(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if let Ok(target) = std::fs::read_link(&path) {
            all.insert(path, target.into_os_string().into_encoded_bytes());
        } else if path.is_dir() {
            all.extend(content(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.insert(path, bytes);
        }
    }
    all
}

/// What `cmake --install` of RocksDB puts below a prefix, as far as the names are ours too.
fn rocksdb_installed(prefix: &Path) {
    for folder in ["lib/cmake/rocksdb", "lib/pkgconfig", "include/rocksdb"] {
        std::fs::create_dir_all(prefix.join(folder)).unwrap();
    }
    for file in [
        "lib/librocksdb.so.11.8.1",
        "lib/librocksdb.a",
        "lib/pkgconfig/rocksdb.pc",
        "lib/cmake/rocksdb/RocksDBConfig.cmake",
        "include/rocksdb/c.h",
    ] {
        std::fs::write(prefix.join(file), "RocksDB's").unwrap();
    }
    for (target, at) in [("librocksdb.so.11.8.1", "librocksdb.so.11"), ("librocksdb.so.11", "librocksdb.so")]
    {
        let at = prefix.join("lib").join(at);
        let _ = std::fs::remove_file(&at);
        symlink(target, at).unwrap();
    }
}

#[test]
fn an_installation_of_rocksdb_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("prefix");
    rocksdb_installed(&prefix);
    let before = content(&prefix);
    build(dir.path());
    let refused = installed_again(dir.path(), &prefix).unwrap_err();
    for name in [
        "lib/librocksdb.so.11,",
        "lib/librocksdb.so",
        "lib/librocksdb.a",
        "lib/pkgconfig/rocksdb.pc",
        "include/rocksdb/c.h",
    ] {
        assert!(refused.contains(name), "{name}: {refused}");
    }
    assert_eq!(content(&prefix), before);
}

/// RocksDB was installed over ours: its files are not ours, although their names are in our list.
#[test]
fn an_installation_of_rocksdb_over_ours_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = installed(dir.path());
    rocksdb_installed(&prefix);
    let before = content(&prefix);
    let refused = installed_again(dir.path(), &prefix).unwrap_err();
    assert!(
        refused.contains("lib/librocksdb.so.11,") && refused.contains("Nothing was installed"),
        "{refused}"
    );
    assert_eq!(content(&prefix), before);
}

/// The list names what an interrupted installation may have put there.
#[test]
fn an_interrupted_installation_is_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = installed(dir.path());
    let whole = content(&prefix);
    std::fs::remove_file(prefix.join("lib/librocksdb.so.11")).unwrap();
    std::fs::remove_file(prefix.join("lib/librocksdb.so.9")).unwrap();
    installed_again(dir.path(), &prefix).unwrap();
    assert_eq!(content(&prefix), whole);
    // A new build replaces the files of the old one.
    let header = dir.path().join("built/librocksdb.a");
    std::fs::remove_file(&header).unwrap();
    std::fs::write(&header, "the next build").unwrap();
    installed_again(dir.path(), &prefix).unwrap();
    assert_eq!(std::fs::read(prefix.join("lib/librocksdb.a")).unwrap(), b"the next build");
}

/// A version that knows other names was installed before. Its link stays ours, so that it may be installed again.
#[test]
fn the_list_keeps_what_another_version_installed() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = installed(dir.path());
    let list = prefix.join("lib/ashlardb.installed");
    let ours = std::fs::read_to_string(&list).unwrap();
    let (theirs, gone) = (
        "lib/librocksdb.so.6.29\tlink librocksdb.so.11\n",
        "lib/librocksdb.so.6.28\tlink librocksdb.so.11\n",
    );
    std::fs::write(&list, format!("{theirs}{gone}{ours}")).unwrap();
    symlink("librocksdb.so.11", prefix.join("lib/librocksdb.so.6.29")).unwrap();
    installed_again(dir.path(), &prefix).unwrap();
    assert_eq!(std::fs::read_to_string(&list).unwrap(), format!("{theirs}{ours}"));
}

/// A program that is linked with the static library needs no library at run time.
#[test]
fn a_program_is_linked_statically() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = installed(dir.path());
    let (walk, data) = (dir.path().join("phases"), dir.path().join("data"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-w", "-xc", "-I"])
        .arg(prefix.join("include"))
        .arg(program("phases.c"))
        .arg("-o")
        .arg(&walk);
    said(cc.arg("-xnone").arg(prefix.join("lib/librocksdb.a")).args(["-lm", "-lpthread", "-ldl"]));
    std::fs::create_dir(&data).unwrap();
    let printed = said(Command::new(&walk).arg(&data));
    assert!(printed.ends_with("end\n"), "{printed}");
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
