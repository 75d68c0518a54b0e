//! Programs of `engines/`: distributed engines of Java over both native halves, with the jars that these engines ship.

use ashlar_testkit::judge::{Skip, place};
use ashlar_testkit::report::{figure, scale};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
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

impl Engine {
    /// Builds `engines/NAME`. Maven fetches the jars that its local repository lacks.
    ///
    /// # Errors
    /// The tests run in their short form; there is no JDK or no Maven; a jar cannot be fetched.
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
            assert!(!said.contains("COMPILATION ERROR"), "{said}");
            let why = format!(
                "Maven cannot fetch the jars of {name}: mvn package in crates/ashlar-jni/engines/{name}"
            );
            return Err(Skip::because(why));
        }
        let mut built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/engines").join(name);
        built.extend(version.map(|(_, text)| text));
        let jar = built.join(format!("{name}_run.jar"));
        assert!(jar.exists(), "{}", jar.display());
        Ok(Engine { name, jar })
    }

    fn start(&self, ours: Option<&Path>, folder: &Path, words: &[&str]) -> Child {
        std::fs::create_dir(folder).unwrap();
        let mut java = Command::new("java");
        // The JVM looks for native halves there. Cargo lets tests find all libraries that it built, ours among them.
        match ours {
            Some(library) => java.env("LD_LIBRARY_PATH", library.parent().unwrap()),
            None => java.env_remove("LD_LIBRARY_PATH"),
        };
        java.args(["-Xmx1g", "-XX:+UseSerialGC"]).arg(format!("-Djava.io.tmpdir={}", folder.display()));
        java.arg("-jar").arg(&self.jar).arg(folder.join("data")).args(words).current_dir(folder);
        java.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn printed(&self, done: Output, is_ours: bool) -> Printed {
        let lines = String::from_utf8_lossy(&done.stdout).into_owned();
        let notes = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{}: {}\n{notes}\n{lines}", self.name, done.status);
        let half = notes.lines().find_map(|line| line.strip_prefix("half ")).unwrap_or_default();
        assert_eq!(
            Path::new(half).parent() == crate::java::ours().parent(),
            is_ours,
            "the native half is {half:?}"
        );
        Printed { lines, notes }
    }

    /// Runs the program over both native halves at the same time. They must print the same lines.
    pub fn both_say_the_same(&self, words: &[&str]) {
        let (root, library) = (tempfile::tempdir().unwrap(), crate::java::ours());
        let theirs = self.start(None, &root.path().join("theirs"), words);
        let here = self.start(Some(&library), &root.path().join("ours"), words);
        let theirs = self.printed(theirs.wait_with_output().unwrap(), false);
        let here = self.printed(here.wait_with_output().unwrap(), true);
        crate::walks::assert_same(self.name, &theirs.lines, &here.lines);
        assert!(here.lines.ends_with("end\n"), "{}", here.lines);
        let count = here.lines.lines().count();
        figure(&format!("{}: {count} lines, the same over RocksDB's native half and ours", self.name));
        for line in here.notes.lines().filter_map(|line| line.strip_prefix("measured ")) {
            figure(&format!("{} over ours: {line}", self.name));
        }
    }
}

/// A jar of the local Maven repository.
///
/// # Errors
/// The jar is not there.
pub fn local_jar(group: &str, artifact: &str, version: &str) -> Result<PathBuf, Skip> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let folder = home.join(".m2/repository").join(group.replace('.', "/")).join(artifact).join(version);
    let jar = folder.join(format!("{artifact}-{version}.jar"));
    if jar.exists() {
        return Ok(jar);
    }
    let name = format!("{group}:{artifact}:{version}");
    Err(Skip::because(format!(
        "no {name} in the local Maven repository: mvn dependency:get -Dartifact={name}"
    )))
}
