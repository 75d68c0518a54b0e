//! Programs of Java, compiled once and run under a jar; and the one place that starts a JVM over a native half.

use ashlar_testkit::judge::{Skip, place};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The generations of RocksDB's jars, oldest first.
pub const JARS: [&str; 5] =
    ["rocksdbjni-7.9.2", "rocksdbjni-8.8.1", "rocksdbjni-9.8.4", "rocksdbjni-10.1.3", "rocksdbjni-11.8.1"];

/// The jar of RocksDB that Flink ships.
pub const FLINKS_JAR: &str = "frocksdbjni-8.10.0-ververica-1.0";

/// Our library, which cargo built beside the tests.
pub fn ours() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let built = tests.parent().unwrap().join("librocksdbjni.so");
    assert!(built.exists(), "{} is not built", built.display());
    built
}

/// A JVM that works in `folder`, over RocksDB's native half, or with `ours` over ours. RocksDB's jar unpacks its half in `folder`.
pub fn jvm(ours: Option<&Path>, folder: &Path) -> Command {
    let beside = place("javac").map(|javac| javac.with_file_name("java"));
    let program = beside.ok().filter(|java| java.is_file());
    let mut java = Command::new(program.unwrap_or_else(|| PathBuf::from("java")));
    // The JVM looks for native halves there. Cargo lets tests find all libraries that it built, ours among them.
    match ours {
        Some(library) => java.env("LD_LIBRARY_PATH", library.parent().unwrap()),
        None => java.env_remove("LD_LIBRARY_PATH").arg(property("library.path", Path::new(""))),
    };
    java.arg("-XX:+UseSerialGC").arg(property("io.tmpdir", folder)).current_dir(folder);
    java
}

/// The word that sets the property `java.NAME` of the JVM to a path.
fn property(name: &str, path: &Path) -> String {
    format!("-Djava.{name}={}", path.display())
}

/// The native halves that a program says it has mapped, in lines `half FILE`.
pub fn halves(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix("half ")).collect()
}

/// Asserts that a JVM of [`jvm`] mapped one native half: ours, or else a file that RocksDB's jar unpacked in `folder`.
pub fn assert_half(halves: &[&str], ours: Option<&Path>, folder: &Path) {
    let [half] = halves else {
        panic!("one native half is mapped, not {halves:?}");
    };
    match ours {
        Some(library) => assert_eq!(Path::new(half), library.canonicalize().unwrap()),
        None => {
            let unpacked = Path::new(half).starts_with(folder.canonicalize().unwrap());
            assert!(unpacked, "{half} is not what RocksDB's jar unpacked in {}", folder.display());
        }
    }
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
        let (javac, jar) = (place("javac")?, place(jar)?);
        let classes = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/java");
        let mut command = Command::new(javac);
        command.arg("-d").arg(classes.path()).arg("-cp").arg(jar).arg("-sourcepath").arg(&sources);
        let done = ["Half", name].map(|name| sources.join(format!("{name}.java")));
        let done = command.args(done).output().unwrap();
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

    fn output(&self, jar: &Path, ours: Option<&Path>, words: &[&str], folder: &Path) -> Output {
        std::fs::create_dir(folder.join("data")).unwrap();
        let mut java = jvm(ours, folder);
        java.arg("-Xmx256m").args(words);
        java.arg("-cp").arg(format!("{}:{}", jar.display(), self.classes.path().display()));
        java.arg("Half").arg(self.name).arg(folder.join("data")).output().unwrap()
    }

    /// What it prints under a jar with these words for the JVM, over RocksDB's native half, or with `ours` over ours. It must end well.
    pub fn run(&self, jar: &Path, ours: Option<&Path>, words: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let done = self.output(jar, ours, words, folder.path());
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}: {}\n{complaints}\n{said}", jar.display(), done.status);
        assert_half(&halves(&complaints), ours, folder.path());
        said
    }
}

/// A half that only resembles the wanted one is refused.
#[test]
fn the_native_half_is_known_by_its_file() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = |folder: &Path| {
        let file = folder.canonicalize().unwrap().join("librocksdbjni.so");
        std::fs::write(&file, "").unwrap();
        file
    };
    let (ours, theirs) = (file(one.path()), file(other.path()));
    let accepts = |halves: &[&Path], wanted: Option<&Path>| {
        let halves: Vec<&str> = halves.iter().map(|half| half.to_str().unwrap()).collect();
        std::panic::catch_unwind(|| assert_half(&halves, wanted, other.path())).is_ok()
    };
    assert!(accepts(&[&ours], Some(&ours)) && accepts(&[&theirs], None));
    for (halves, wanted) in [
        (vec![theirs.as_path()], Some(ours.as_path())),
        (vec![&ours], None),
        (vec![], None),
        (vec![], Some(&ours)),
        (vec![&ours, &theirs], Some(&ours)),
        (vec![Path::new("/usr/lib/librocksdbjni.so")], None),
    ] {
        assert!(!accepts(&halves, wanted), "{halves:?} as {wanted:?}");
    }
}
