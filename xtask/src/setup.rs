//! `setup`: fetches the judges, and notes where they are in `target/judges/paths` (read by `ashlar_testkit::judge`).
//!
//! 1. What is there is not fetched again; a second run takes a moment.
//! 2. What comes from outside is checked against a pinned SHA-256 before it is used.
//! 3. What cannot be had is noted with the reason, said aloud, and is no failure: the tests that need it say SKIPPED.

use crate::fetch::{crate_source, install, on_path, replace, sha256};
use crate::{project, run};
use std::fs;
use std::path::{Path, PathBuf};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask setup

Fetches what the tests hold us against:
  rocksdb-7.8.3    Debian's librocksdb7.8, with ldb and sst_dump: apt-get install rocksdb-tools (needs root, asks nothing)
  rocksdb-11.8.1   the shared object inside the Maven artifact org.rocksdb:rocksdbjni:11.8.1 (92 MB, needs mvn and unzip)
  leveldb-1.23     Debian's libleveldb1d: apt-get install libleveldb1d
  rocksdb-judge    our own program that drives the libraries, built from crates/ashlar-testkit
  chromium         Debian's browser, headless, for the pages: apt-get install chromium
  valgrind         Debian's, which counts instructions where the machine has no counters: apt-get install valgrind
  mariadb          Debian's server, for Linkbench's SQL form: apt-get install mariadb-server-core; where no service would start by
                   itself, mariadb-server and mariadb-plugin-rocksdb, which has MyRocks
  rocksdbjni-*     RocksDB's jars for Java, where there is a JDK: org.rocksdb:rocksdbjni 7.9.2 to 11.8.1 (355 MB, needs mvn)
  grocksdb         RocksDB's binding for Go, with its tests: the module v1.11.1 (needs go: apt-get install golang-go)
  crate-rocksdb    RocksDB's binding for Rust, with its tests: the crate 0.25.0 (needs libclang: apt-get install libclang-dev)
Notes where they lie in target/judges/paths. What is missing is printed as \"skipped: why\"; the tests that need it say so
too. Runs again in a moment when everything is there.";

const ARTIFACT: &str = "org.rocksdb:rocksdbjni:11.8.1";
const JAR: &str = "rocksdbjni-11.8.1.jar";
const JAR_SHA256: &str = "628ed387887f4a431df480857954df2a28b4389bfe24858ccdec611cabf65dbf";
const MEMBER: &str = "librocksdbjni-linux64.so";
const MEMBER_SHA256: &str = "265c656af5c6502cb8d71db1a74858509f706cc47f1a5b6f603c736d11ce677d";
const GROCKSDB: &str = "github.com/linxGnu/grocksdb@v1.11.1";
const GROCKSDB_SUM: &str = "h1:/gjcsviJimrQCDDlQCVuvzmeVAvgapQKaFQkQSe48bQ=";
const CRATE_ROCKSDB: &str = "\
[package]
name = \"crate-sources\"
version = \"0.0.0\"
edition = \"2024\"

[dependencies]
rocksdb = { version = \"=0.25.0\", default-features = false }

[workspace]
";
const COPY_GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:copy";

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    if let Some(arg) = args.first() {
        return Err(format!("setup takes no {arg}\n\n{HELP}"));
    }
    for line in judges()? {
        println!("{line}");
    }
    Ok(())
}

/// Fetches everything; answers a line per judge for people to read.
///
/// # Errors
/// Only when the notes cannot be written, or our own judge cannot be built.
pub fn judges() -> Result<Vec<String>, String> {
    let folder = project::scratch().join("judges");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let tools = debian_tools();
    let mut found = vec![
        ("rocksdb-7.8.3", tools.clone().and_then(|()| debian_library())),
        ("ldb", tools.clone().and_then(|()| on_path("ldb"))),
        ("sst_dump", tools.and_then(|()| on_path("sst_dump"))),
        ("rocksdb-11.8.1", maven_library(&folder)),
        ("leveldb-1.23", leveldb_library()),
        ("rocksdb-judge", Ok(build_judge(&folder)?)),
        ("chromium", browser()),
        ("valgrind", valgrind()),
        ("mariadb", mariadb()),
        ("grocksdb", grocksdb(&folder)),
        ("crate-rocksdb", crate_rocksdb(&folder)),
    ];
    found.extend(crate::jars::found(&folder));
    let note = |(name, place): &(&str, Result<PathBuf, String>)| match place {
        Ok(path) => format!("{name}\t{}\n", path.display()),
        Err(why) => format!("{name}\tmissing: {why}\n"),
    };
    let notes: String = found.iter().map(note).collect();
    replace(&folder.join("paths"), notes.as_bytes())?;
    Ok(found.iter().map(say).collect())
}

fn say((name, place): &(&str, Result<PathBuf, String>)) -> String {
    match place {
        Ok(path) => format!("{name:<15} {}", path.display()),
        Err(why) => format!("{name:<15} skipped: {why}"),
    }
}

fn debian_tools() -> Result<(), String> {
    if on_path("ldb").is_ok() && on_path("sst_dump").is_ok() {
        return Ok(());
    }
    install(&["rocksdb-tools"])
}

fn valgrind() -> Result<PathBuf, String> {
    on_path("valgrind").or_else(|_| {
        install(&["valgrind"])?;
        on_path("valgrind")
    })
}

/// The package with the service also has the dependencies of MyRocks. On a machine that starts services it is left to the user, or to
/// `cargo xtask peers`.
fn mariadb() -> Result<PathBuf, String> {
    let server = Path::new("/usr/sbin/mariadbd");
    let serves = Path::new("/run/systemd/system").is_dir();
    match (serves, server.is_file()) {
        (true, true) => {}
        (true, false) => install(&["mariadb-server-core"])?,
        (false, _) => crate::peers::mariadb()?,
    }
    Ok(server.to_path_buf())
}

fn browser() -> Result<PathBuf, String> {
    on_path("chromium").or_else(|_| {
        // A page needs a font, which a bare image has not.
        install(&["chromium", "fonts-dejavu-core"])?;
        on_path("chromium")
    })
}

fn debian_library() -> Result<PathBuf, String> {
    let ldb = on_path("ldb")?;
    let linked =
        run::quiet("ldd", &[&ldb.to_string_lossy()]).ok_or("ldd does not say where librocksdb lies")?;
    let line = linked.lines().find(|line| line.trim_start().starts_with("librocksdb.so"));
    let line = line.ok_or("ldb is not linked with librocksdb.so")?;
    let name = line.split_whitespace().next().unwrap_or_default();
    if name != "librocksdb.so.7.8" {
        return Err(format!("ldb belongs to {name}, not to RocksDB 7.8"));
    }
    let path = line.split_whitespace().nth(2).unwrap_or_default();
    if Path::new(path).is_file() {
        Ok(PathBuf::from(path))
    } else {
        Err(format!("{name} is not where ldd says"))
    }
}

fn leveldb_library() -> Result<PathBuf, String> {
    const NAME: &str = "libleveldb.so.1d";
    let found = || {
        let listed = run::quiet("ldconfig", &["-p"]).unwrap_or_default();
        let line = listed.lines().find(|line| line.trim_start().starts_with(NAME))?;
        line.rsplit_once("=> ").map(|(_, path)| PathBuf::from(path.trim()))
    };
    found().map_or_else(
        || {
            install(&["libleveldb1d"])?;
            found().ok_or_else(|| format!("ldconfig does not list {NAME}"))
        },
        Ok,
    )
}

fn maven_library(folder: &Path) -> Result<PathBuf, String> {
    let library = folder.join(MEMBER);
    if !(cfg!(target_os = "linux") && cfg!(target_arch = "x86_64")) {
        return Err("the artifact is used on x86-64 Linux only".into());
    }
    if sha256(&library)? == MEMBER_SHA256 {
        return Ok(library);
    }
    let jar = folder.join(JAR);
    if sha256(&jar)? != JAR_SHA256 {
        fetch_jar(folder)?;
        let found = sha256(&jar)?;
        if found != JAR_SHA256 {
            return Err(format!("{JAR} has SHA-256 {found}, not the pinned one: not used"));
        }
    }
    on_path("unzip").map_err(|e| format!("{e}: apt-get install unzip"))?;
    let (jar, into) = (jar.to_string_lossy(), folder.to_string_lossy());
    run::quiet("unzip", &["-q", "-o", &jar, MEMBER, "-d", &into])
        .ok_or_else(|| format!("{MEMBER} is not in {JAR}"))?;
    if sha256(&library)? != MEMBER_SHA256 {
        return Err(format!("{MEMBER} is not the pinned one: not used"));
    }
    Ok(library)
}

/// A copy of the module with what its tests need, so that a test builds it without the network.
fn grocksdb(folder: &Path) -> Result<PathBuf, String> {
    let place = folder.join("grocksdb");
    if place.join("vendor").is_dir() {
        return Ok(place);
    }
    on_path("go").or_else(|_| {
        install(&["golang-go"])?;
        on_path("go")
    })?;
    let answer = run::quiet("go", &["mod", "download", "-json", GROCKSDB])
        .ok_or_else(|| format!("go cannot fetch {GROCKSDB}: no network?"))?;
    let said = |name: &str| {
        let line = answer.lines().find(|line| line.trim_start().starts_with(&format!("\"{name}\"")));
        line.and_then(|line| line.split('"').nth(3)).unwrap_or_default()
    };
    if said("Sum") != GROCKSDB_SUM {
        return Err(format!("{GROCKSDB} has the sum {}, not the pinned one: not used", said("Sum")));
    }
    // A copy that an earlier run did not finish.
    let _ = fs::remove_dir_all(&place);
    let into = place.to_string_lossy();
    run::quiet("cp", &["-r", "--no-preserve=mode", said("Dir"), &into])
        .ok_or("the module cannot be copied")?;
    // The sums of the module's own file pin what its tests need.
    run::quiet("go", &["-C", &into, "mod", "vendor"])
        .map(|_| place.clone())
        .ok_or_else(|| format!("go cannot fetch what the tests of {GROCKSDB} need: no network?"))
}

/// A copy of the crate's sources, so that a test builds its tests as a package of its own.
fn crate_rocksdb(folder: &Path) -> Result<PathBuf, String> {
    let place = folder.join("crate-rocksdb");
    // The package libclang-cpp is another library.
    if run::quiet("sh", &["-c", "ls /usr/lib/llvm-*/lib/libclang*.so* | grep -v libclang-cpp"]).is_none() {
        install(&["libclang-dev"])?;
    }
    if place.join("Cargo.toml").is_file() {
        return Ok(place);
    }
    let source = crate_source(&folder.join("crates"), CRATE_ROCKSDB, "rocksdb")?;
    // A copy that an earlier run did not finish.
    let (beside, _) =
        (folder.join("crate-rocksdb.new"), fs::remove_dir_all(folder.join("crate-rocksdb.new")));
    let (from, into) = (source.to_string_lossy(), beside.to_string_lossy());
    run::quiet("cp", &["-r", "--no-preserve=mode", &from, &into]).ok_or("the crate cannot be copied")?;
    let io = |e: std::io::Error| format!("{}: {e}", beside.display());
    // Its own choice of a compiler would be fetched.
    fs::remove_file(beside.join("rust-toolchain.toml")).map_err(io)?;
    let manifest = fs::read_to_string(beside.join("Cargo.toml")).map_err(io)?;
    fs::write(beside.join("Cargo.toml"), format!("{manifest}\n[workspace]\n")).map_err(io)?;
    fs::rename(&beside, &place).map_err(io)?;
    Ok(place)
}

fn fetch_jar(folder: &Path) -> Result<(), String> {
    on_path("mvn").map_err(|e| format!("{e}: apt-get install maven"))?;
    let (artifact, target) =
        (format!("-Dartifact={ARTIFACT}"), format!("-DoutputDirectory={}", folder.display()));
    eprintln!("setup: fetching {ARTIFACT} (92 MB)");
    let args = ["-q", "-B", COPY_GOAL, &artifact, &target, "-Dmdep.useBaseVersion=true"];
    run::quiet("mvn", &args).map(|_| ()).ok_or_else(|| format!("mvn cannot fetch {ARTIFACT}: no network?"))
}

fn build_judge(folder: &Path) -> Result<PathBuf, String> {
    let target = project::scratch().join("judges/build");
    let args = ["build", "--quiet", "--package", "ashlar-testkit", "--bin", "rocksdb-judge", "--target-dir"];
    run::plain(&project::cargo(), &[&args[..], &[&*target.to_string_lossy()]].concat())?;
    let (built, place) = (target.join("debug/rocksdb-judge"), folder.join("rocksdb-judge"));
    let program = fs::read(&built).map_err(|e| format!("{}: {e}", built.display()))?;
    if fs::read(&place).is_ok_and(|old| old == program) {
        return Ok(place);
    }
    // A new file, not new content: a judge that runs right now keeps its own.
    let beside = folder.join(format!("rocksdb-judge.{}", std::process::id()));
    fs::copy(&built, &beside)
        .and_then(|_| fs::rename(&beside, &place))
        .map_err(|e| format!("{}: {e}", place.display()))?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_says_why() {
        assert_eq!(say(&("ldb", Err("not root".into()))), "ldb             skipped: not root");
    }
}
