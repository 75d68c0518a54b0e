//! Programs of `engines/`: distributed engines of Java over both native halves, with the jars that these engines ship.

use crate::java::{assert_half, halves, jvm, ours};
use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::{figure, scale};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

/// A program that Maven built of the local repository's jars.
pub struct Engine {
    name: &'static str,
    jar: PathBuf,
}

/// What a run printed.
struct Printed {
    lines: String,
    notes: String,
}

/// A JVM that runs. It does not outlive its test: a drop kills it.
struct Running<'a> {
    child: Child,
    folder: &'a Path,
    ours: Option<&'a Path>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Both fail if the JVM has ended, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running<'_> {
    /// Waits for the end, which must be a good one, over the wanted half.
    fn finish(mut self, name: &str) -> Printed {
        let status = self.child.wait().unwrap();
        let read = |file: &str| {
            String::from_utf8_lossy(&std::fs::read(self.folder.join(file)).unwrap()).into_owned()
        };
        let (lines, notes) = (read("lines"), read("notes"));
        assert!(status.success(), "{name}: {status}\n{notes}\n{lines}");
        assert_half(&halves(&notes), self.ours, self.folder);
        assert!(lines.ends_with("end\n"), "{name}: {lines}");
        Printed { lines, notes }
    }
}

/// Whether Maven failed because it cannot reach the repositories. Each other failure is one of the project.
fn is_network(said: &str) -> bool {
    const UNREACHABLE: [&str; 9] = [
        "Unknown host",
        "UnknownHostException",
        "Temporary failure in name resolution",
        "Connection refused",
        "Network is unreachable",
        "No route to host",
        "onnect timed out",
        "onnection timed out",
        "Cannot access",
    ];
    UNREACHABLE.iter().any(|part| said.contains(part))
}

impl Engine {
    /// Builds `engines/NAME`. Maven fetches the jars that its local repository lacks.
    ///
    /// # Errors
    /// The tests run in their short form; there is no JDK or no Maven; Maven lacks jars and has no network.
    pub fn build(name: &'static str) -> Result<Engine, Skip> {
        Engine::build_version(name, None)
    }

    /// [`Engine::build`], of a program that is built for several versions of its engine: the property of its pom, and the version.
    ///
    /// # Errors
    /// Those of [`Engine::build`].
    pub fn build_version(name: &'static str, version: Option<(&str, &str)>) -> Result<Engine, Skip> {
        if scale(0, 1) == 0 {
            return Err(Skip::because(format!("{name} runs in the full form: cargo xtask test --all")));
        }
        place("javac")?;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("engines").join(name);
        // Two runs of Maven at once may spoil its repository.
        static MAVEN: Mutex<()> = Mutex::new(());
        let _one_at_a_time = MAVEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", "package"]).args(version.map(|(name, text)| format!("-D{name}={text}")));
        let done = maven.current_dir(&folder).output();
        let done = done.map_err(|_| Skip::because("no mvn: apt-get install maven"))?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        if !done.status.success() {
            assert!(is_network(&said), "{name}: {said}");
            return Err(Skip::because(format!(
                "no network: mvn package in crates/ashlar-jni/engines/{name} cannot fetch jars"
            )));
        }
        let mut built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/engines").join(name);
        built.extend(version.map(|(_, text)| text));
        let jar = built.join(format!("{name}_run.jar"));
        assert!(jar.exists(), "{}", jar.display());
        Ok(Engine { name, jar })
    }

    /// Starts the program in a new `folder`, on the files in `data`.
    fn start<'a>(
        &self,
        ours: Option<&'a Path>,
        folder: &'a Path,
        data: &Path,
        words: &[&str],
    ) -> Running<'a> {
        std::fs::create_dir(folder).unwrap();
        let mut java = jvm(ours, folder);
        java.arg("-Xmx1g").arg("-jar").arg(&self.jar).arg(data).args(words);
        // Files, because a full pipe stops a program.
        java.stdout(File::create(folder.join("lines")).unwrap());
        java.stderr(File::create(folder.join("notes")).unwrap());
        Running { child: java.spawn().unwrap(), folder, ours }
    }

    /// Runs the program over both native halves at the same time. They must print the same lines, which it answers.
    pub fn both_say_the_same(&self, words: &[&str]) -> String {
        let (root, library) = (tempfile::tempdir().unwrap(), ours());
        let (theirs, here) = (root.path().join("theirs"), root.path().join("ours"));
        let one = self.start(None, &theirs, &theirs.join("data"), words);
        let other = self.start(Some(&library), &here, &here.join("data"), words);
        let (theirs, here) = (one.finish(self.name), other.finish(self.name));
        crate::walks::assert_same(self.name, &theirs.lines, &here.lines);
        let count = here.lines.lines().count();
        figure(&format!("{}: {count} lines, the same over RocksDB's native half and ours", self.name));
        for line in here.notes.lines().filter_map(|line| line.strip_prefix("measured ")) {
            figure(&format!("{} over ours: {line}", self.name));
        }
        here.lines
    }

    /// Runs the program `rounds` times on the same files, over each native half in turn. Its last word is the number of the round.
    pub fn take_turns(&self, words: &[&str], rounds: usize) {
        let (root, library) = (tempfile::tempdir().unwrap(), ours());
        for round in 0..rounds {
            let (folder, number) = (root.path().join(format!("round{round}")), round.to_string());
            let half = (round % 2 == 1).then_some(library.as_path());
            let words = [words, &[number.as_str()]].concat();
            self.start(half, &folder, &root.path().join("data"), &words).finish(self.name);
        }
        figure(&format!("{}: {rounds} rounds on the same files, each half in turn", self.name));
    }
}

#[test]
fn only_a_missing_network_excuses_maven() {
    for said in [
        "Could not transfer artifact a:b:jar:1 from/to central: repo.maven.apache.org: Unknown host",
        "Could not transfer artifact a:b:jar:1: Connect to localhost:80 failed: Connection refused",
        "Cannot access central (https://repo.maven.apache.org/maven2) in offline mode",
    ] {
        assert!(is_network(said), "{said}");
    }
    for said in [
        "COMPILATION ERROR : Main.java:[3,1] class, interface, enum, or record expected",
        "Could not find artifact org.rocksdb:rocksdbjni:jar:0.0 in central",
        "Non-resolvable parent POM for ashlardb:flink_run:0.1.0",
        "status code: 404, reason phrase: Not Found",
    ] {
        assert!(!is_network(said), "{said}");
    }
}

/// A test that fails leaves no process behind.
#[test]
fn a_program_ends_with_its_test() {
    let folder = tempfile::tempdir().unwrap();
    let child = Command::new("sleep").arg("600").spawn().unwrap();
    let process = PathBuf::from(format!("/proc/{}", child.id()));
    assert!(process.exists());
    drop(Running { child, folder: folder.path(), ours: None });
    assert!(!process.exists());
}
