//! The JVM: the class files of `jdb_bench`, RocksDB's jar, and the choice of the native half.
//!
//! RocksDB's jar looks for `librocksdbjni.so` where the system looks for libraries, and else unpacks its own half into the
//! directory for temporary files. So `LD_LIBRARY_PATH` chooses our half. RocksDB's half is chosen by an empty list of
//! folders in the JVM's own property for libraries.

use super::said::{self, Measured};
use ashlar_peers::engine::EngineName;
use ashlar_peers::place;
use ashlar_peers::process::{Limits, Scratch, ended, failed};
use ashlar_report::record::Status;
use std::path::{Path, PathBuf};
use std::process::Command;

const JAR: &str = "rocksdbjni-11.8.1";
const SOURCES: &str = "../ashlar-jni/bench/src/main/java/jdbbench";
const LIBRARY: &str = "librocksdbjni.so";

/// The options of the JVM. The loops of the program allocate nothing, so a small heap is enough.
const OPTIONS: [&str; 3] = ["-Xms256m", "-Xmx256m", "-XX:+UseSerialGC"];

/// What all JVMs share.
pub struct Java {
    java: PathBuf,
    jar: PathBuf,
    ours: PathBuf,
    classes: Scratch,
    version: String,
}

impl Java {
    /// Compiles the program into a folder in `dir`. `ours` is AshlarDB's native half, if the user named it.
    ///
    /// # Errors
    /// The compiler, the jar or our half is missing, or the program does not compile.
    pub fn prepare(dir: &Path, ours: Option<&Path>) -> Result<Java, String> {
        let (javac, jar) = (place::judge("javac")?, place::judge(JAR)?);
        let beside = || std::env::current_exe().ok().map(|program| program.with_file_name(LIBRARY));
        let ours = ours.map(Path::to_path_buf).or_else(beside).unwrap_or_default();
        let ours = ours.canonicalize().map_err(|e| {
            format!("{}: {e}: cargo build --release -p ashlar-jni, or --native-half", ours.display())
        })?;
        if ours.file_name().is_none_or(|name| name != LIBRARY) {
            return Err(format!("{}: the file must have the name {LIBRARY}", ours.display()));
        }
        let classes = Scratch::new(dir, "ashlar-compare-classes", EngineName::Ashlardb)?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(SOURCES);
        let said = |e: std::io::Error| format!("{}: {e}", folder.display());
        let mut command = Command::new(&javac);
        command.args(["--release", "17", "-d"]).arg(classes.path()).arg("-cp").arg(&jar);
        for entry in std::fs::read_dir(&folder).map_err(said)? {
            command.arg(entry.map_err(said)?.path());
        }
        let done = command.output().map_err(|e| format!("javac: {e}"))?;
        if !done.status.success() {
            return Err(format!("jdb_bench does not compile: {}", String::from_utf8_lossy(&done.stderr)));
        }
        let beside = javac.with_file_name("java");
        let java = if beside.is_file() { beside } else { PathBuf::from("java") };
        let version = version(&java)?;
        Ok(Java { java, jar, ours, classes, version })
    }

    /// The half and the JVM, for the record.
    pub fn version(&self, engine: EngineName) -> String {
        let (library, half) = match engine {
            EngineName::Ashlardb => (env!("CARGO_PKG_VERSION"), "librocksdbjni.so of ashlar-jni"),
            _ => ("11.8.1", "its own native half"),
        };
        format!("{library} ({half}, under jar {JAR}, {})", self.version)
    }

    /// Runs the program with `flags` in a new JVM over the engine's native half. `folder` is for temporary files.
    ///
    /// # Errors
    /// The JVM failed, took too long or was interrupted, it mapped another half, or it printed no figures.
    pub fn run(
        &self,
        engine: EngineName,
        limits: Limits<'_>,
        folder: &Path,
        flags: &[String],
    ) -> Result<Measured, Status> {
        let is_ours = engine == EngineName::Ashlardb;
        let mut java = Command::new(&self.java);
        match self.ours.parent().filter(|_| is_ours) {
            Some(parent) => java.env("LD_LIBRARY_PATH", parent),
            None => java.env_remove("LD_LIBRARY_PATH").arg(property("library.path", Path::new(""))),
        };
        java.args(OPTIONS).arg(property("io.tmpdir", folder));
        java.arg("-cp").arg(format!("{}:{}", self.jar.display(), self.classes.path().display()));
        java.arg("jdbbench.JdbBench").args(flags);
        let ended = ended(limits, java);
        ended.outcome?;
        let half = said::native_half(&ended.lines).map(Path::new).unwrap_or(Path::new("none"));
        let is_right = if is_ours { half == self.ours } else { is_below(half, folder) };
        if !is_right {
            return Err(failed(format!("the JVM mapped {} as its native half", half.display())));
        }
        said::parse(&ended.lines).ok_or_else(|| failed("jdb_bench printed no figures".into()))
    }
}

/// The word that sets the property `java.NAME` of the JVM to a path.
fn property(name: &str, path: &Path) -> String {
    format!("-Djava.{name}={}", path.display())
}

/// Whether a mapped file, whose path has no links, lies below a folder.
fn is_below(file: &Path, folder: &Path) -> bool {
    folder.canonicalize().is_ok_and(|folder| file.starts_with(folder))
}

/// The first line of `java -version`, which the JVM prints on standard error.
fn version(java: &Path) -> Result<String, String> {
    let out = Command::new(java).arg("-version").output().map_err(|e| format!("java: {e}"))?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    Ok(said.lines().next().unwrap_or("Java of an unknown version").replace('"', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_below_the_folder_for_temporary_files_is_rocksdbs() {
        let scratch = tempfile::tempdir().unwrap();
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(scratch.path(), &link).unwrap();
        let unpacked = scratch.path().canonicalize().unwrap().join("librocksdbjni1.so");
        assert!(is_below(&unpacked, scratch.path()) && is_below(&unpacked, &link));
        for other in ["/usr/lib/librocksdbjni.so", "unknown", "none"] {
            assert!(!is_below(Path::new(other), scratch.path()), "{other}");
        }
    }
}
