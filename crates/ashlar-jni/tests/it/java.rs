//! Programs of Java, compiled once and run under a jar.

use ashlar_testkit::judge::{Skip, place};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The generations of RocksDB's jars, oldest first.
pub const JARS: [&str; 5] =
    ["rocksdbjni-7.9.2", "rocksdbjni-8.8.1", "rocksdbjni-9.8.4", "rocksdbjni-10.1.3", "rocksdbjni-11.8.1"];

/// Our library, which cargo built beside the tests.
pub fn ours() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().join("librocksdbjni.so");
    assert!(built.exists(), "{} is not built", built.display());
    built
}

/// A compiled program of `tests/java`.
pub struct Program {
    classes: tempfile::TempDir,
    name: &'static str,
}

impl Program {
    /// Compiles `tests/java/NAME.java` with the oldest jar: what it has, the newer ones have too.
    ///
    /// # Errors
    /// There is no JDK, or no jar.
    pub fn compile(name: &'static str) -> Result<Program, Skip> {
        Program::compile_with(name, JARS[0])
    }

    /// Compiles `tests/java/NAME.java` with a jar.
    ///
    /// # Errors
    /// There is no JDK, or no jar.
    pub fn compile_with(name: &'static str, jar: &str) -> Result<Program, Skip> {
        Program::compile_under(name, &place(jar)?)
    }

    /// Compiles `tests/java/NAME.java` with a jar by its path.
    ///
    /// # Errors
    /// There is no JDK.
    pub fn compile_under(name: &'static str, jar: &Path) -> Result<Program, Skip> {
        let javac = place("javac")?;
        let classes = tempfile::tempdir().unwrap();
        let source = |name: &str| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java").join(format!("{name}.java"))
        };
        let mut command = Command::new(javac);
        command.arg("-d").arg(classes.path()).arg("-cp").arg(jar);
        let done = command.arg(source("Half")).arg(source(name)).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(Program { classes, name })
    }

    /// [`Program::compile`], and the jar to run it under.
    ///
    /// # Errors
    /// There is no JDK, or one of the jars is not there.
    pub fn with_jar(name: &'static str, jar: &str) -> Result<(Program, PathBuf), Skip> {
        Ok((Program::compile(name)?, place(jar)?))
    }

    /// Runs it under a jar with these words for the JVM, over RocksDB's native half, or with `ours` over ours.
    fn output(&self, jar: &Path, ours: Option<&Path>, words: &[&str]) -> Output {
        let data = tempfile::tempdir().unwrap();
        let mut java = Command::new("java");
        java.args(["-Xmx256m", "-XX:+UseSerialGC"]).args(words);
        // The JVM looks for native halves there. Cargo lets tests find all libraries that it built, ours among them.
        match ours {
            Some(library) => java.env("LD_LIBRARY_PATH", library.parent().unwrap()),
            None => java.env_remove("LD_LIBRARY_PATH"),
        };
        // RocksDB's half is unpacked below the directory, which is removed.
        java.arg(format!("-Djava.io.tmpdir={}", data.path().display()));
        java.arg("-cp").arg(format!("{}:{}", jar.display(), self.classes.path().display()));
        java.arg("Half").arg(self.name).arg(data.path().join("data")).current_dir(data.path());
        std::fs::create_dir(data.path().join("data")).unwrap();
        java.output().unwrap()
    }

    /// What it prints. It must end well.
    pub fn run(&self, jar: &Path, ours: Option<&Path>, words: &[&str]) -> String {
        let done = self.output(jar, ours, words);
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}: {}\n{complaints}\n{said}", jar.display(), done.status);
        let half = complaints.lines().find_map(|line| line.strip_prefix("half ")).unwrap_or_default();
        let is_ours = Path::new(half).parent() == self::ours().parent();
        assert_eq!(is_ours, ours.is_some(), "{}: the native half is {half:?}", jar.display());
        said
    }
}
