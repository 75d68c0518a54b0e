//! `peers`: fetches and builds the engines that the comparison drives, and notes where they are in `target/peers/paths`
//! (read by `ashlar-peers`).
//!
//! 1. Each engine in C or C++ becomes one shared object: its own code, and the shim of `crates/ashlar-compare/peers/shims` that
//!    is compiled against its own headers. `ashlar-peers` loads it at run time, so no build of the workspace needs it.
//! 2. Sources come through package clients, pinned by version; archives that no client checks are checked by SHA-256.
//! 3. What cannot be had is noted with the reason and is no failure: its column says "not here: why".
//! 4. What was built from the same shim and the same recipe is not built again.

use crate::fetch::{crate_source, install, on_path, replace, sha256};
use crate::{project, setup};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `--help` says.
pub const HELP: &str = "\
usage: cargo xtask peers [NAME...]

Fetches and builds what ashlar-compare and ashlar-linkbench drive beside AshlarDB; without names, all of:
  rocksdb      11.8.1, as `cargo xtask setup` has it, and Debian's jemalloc for it
  leveldb      1.23, Debian's source package, built without assertions
  treedb       Kyoto Cabinet's TreeDB, Debian's library
  sqlite       the amalgamation inside the crate libsqlite3-sys
  lmdb         the sources inside the crate lmdb-master-sys
  wiredtiger   11.3.1, the Python source package; B-tree and LSM
  tidesdb      10.2.1, the sources inside the crate tidesdb
  mariadb      Debian's server with the plugin of MyRocks: apt-get install mariadb-server mariadb-plugin-rocksdb
fjall and redb are crates; they come with ashlar-compare.
Notes what it built in target/peers/paths. What is missing is printed as \"not here: why\". Needs a C and a C++ compiler,
cmake, and as root it installs Debian's headers. Some minutes the first time, a moment the next.";

/// Builds one engine's shared object at the given place.
type Recipe = fn(&Kitchen, &Path) -> Result<(), String>;

/// Each engine with what its result depends on beside the shim.
const RECIPES: [(&str, &str, Recipe); 6] = [
    ("leveldb", "1.23 1", leveldb),
    ("treedb", "Debian 1", treedb),
    ("sqlite", "0.39.1 1", sqlite),
    ("lmdb", "0.2.6 1", lmdb),
    ("wiredtiger", "11.3.1 1", wiredtiger),
    ("tidesdb", "1.0.0 1", tidesdb),
];

const CRATES: &str = "\
[package]
name = \"peer-sources\"
version = \"0.0.0\"
edition = \"2024\"

[dependencies]
libsqlite3-sys = \"=0.39.1\"
lmdb-master-sys = \"=0.2.6\"
tidesdb = \"=1.0.0\"

[workspace]
";

const LEVELDB_SHA256: &str = "9a37f8a6174f09bd622bc723b55881dc541cd50747cbd08831c2a82d620f6d76";
const WIREDTIGER_SHA256: &str = "95052d1b6fc06921dd617aafa1ba2a773d8dbbbf2eb74f77147290a630e598d0";

/// Runs the chore.
pub fn main(args: &[String]) -> Result<(), String> {
    let names: Vec<&str> = ["rocksdb", MARIADB].into_iter().chain(RECIPES.iter().map(|r| r.0)).collect();
    if let Some(other) = args.iter().find(|arg| !names.contains(&arg.as_str())) {
        return Err(format!("no peer named {other}: there are {}\n\n{HELP}", names.join(", ")));
    }
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    let kitchen = Kitchen::new()?;
    if wanted("rocksdb") {
        for line in setup::judges()?.iter().filter(|line| line.starts_with("rocksdb-11.8.1")) {
            println!("{line}");
        }
        match jemalloc() {
            Ok(()) => println!("{:<15} {JEMALLOC}", "jemalloc"),
            Err(why) => {
                println!("{:<15} not here, so RocksDB runs with the system's allocator: {why}", "jemalloc")
            }
        }
    }
    if wanted(MARIADB) {
        match mariadb() {
            Ok(()) => println!("{MARIADB:<15} {MYROCKS}"),
            Err(why) => println!("{MARIADB:<15} not here: {why}"),
        }
    }
    for (name, pinned, recipe) in RECIPES {
        if !wanted(name) {
            continue;
        }
        let made = kitchen.made(name, pinned, recipe);
        match &made {
            Ok(place) => println!("{name:<15} {}", place.display()),
            Err(why) => println!("{name:<15} not here: {why}"),
        }
        kitchen.note(name, &made)?;
    }
    Ok(())
}

/// Where Debian has the allocator under which ashlar-compare runs RocksDB.
const JEMALLOC: &str = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";

fn jemalloc() -> Result<(), String> {
    if Path::new(JEMALLOC).is_file() { Ok(()) } else { install(&["libjemalloc2"]) }
}

/// The server of Linkbench's SQL form, and where Debian has the plugin of its second engine.
const MARIADB: &str = "mariadb";
const MYROCKS: &str = "/usr/lib/mysql/plugin/ha_rocksdb.so";

/// Installs the programs. `ashlar-linkbench` finds them by their names, and starts a server of its own: that of the system stays as it
/// is.
pub fn mariadb() -> Result<(), String> {
    let here = ["/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db", MYROCKS];
    if here.iter().all(|path| Path::new(path).is_file()) {
        return Ok(());
    }
    install(&["mariadb-server", "mariadb-plugin-rocksdb"])
}

/// Where everything is made.
struct Kitchen {
    folder: PathBuf,
    shims: PathBuf,
}

impl Kitchen {
    fn new() -> Result<Kitchen, String> {
        let folder = project::scratch().join("peers");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Kitchen { folder, shims: project::root().join("crates/ashlar-compare/peers/shims") })
    }

    /// The shared object, built unless the same recipe and the same shim built it before.
    fn made(&self, name: &str, pinned: &str, recipe: Recipe) -> Result<PathBuf, String> {
        let (place, stamp) =
            (self.folder.join(format!("{name}.so")), self.folder.join(format!("{name}.stamp")));
        let shim = sha256(&self.shims.join(format!("{name}.c")))?;
        let wanted = format!("{pinned} {shim} {}", sha256(&self.shims.join("shim.h"))?);
        if place.is_file() && fs::read_to_string(&stamp).is_ok_and(|old| old == wanted) {
            return Ok(place);
        }
        for program in ["cc", "c++"] {
            on_path(program).map_err(|e| format!("{e}: apt-get install build-essential"))?;
        }
        eprintln!("peers: building {name}");
        recipe(self, &place)?;
        replace(&stamp, wanted.as_bytes())?;
        Ok(place)
    }

    /// Keeps the other engines' notes.
    fn note(&self, name: &str, made: &Result<PathBuf, String>) -> Result<(), String> {
        let path = self.folder.join("paths");
        let old = fs::read_to_string(&path).unwrap_or_default();
        let mut lines: Vec<String> =
            old.lines().filter(|line| line.split('\t').next() != Some(name)).map(str::to_owned).collect();
        lines.push(match made {
            Ok(place) => format!("{name}\t{}", place.display()),
            Err(why) => format!("{name}\tmissing: {}", why.lines().next().unwrap_or_default()),
        });
        replace(&path, (lines.join("\n") + "\n").as_bytes())
    }

    /// Compiles the shim of `name` with `args` into `place`; what is not the shim's own stays hidden.
    fn shim(&self, name: &str, args: &[String], place: &Path) -> Result<(), String> {
        let beside = place.with_extension("new");
        let shim = self.shims.join(format!("{name}.c"));
        let include = format!("-I{}", self.shims.display());
        let mut command = Command::new("cc");
        command.args(["-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden"]);
        command.arg(include).arg(shim).args(args).arg("-Wl,--exclude-libs,ALL").arg("-o").arg(&beside);
        said(&mut command)?;
        fs::rename(&beside, place).map_err(|e| format!("{}: {e}", place.display()))
    }

    /// Builds one target of a cmake project, optimised, its code fit for a shared object; answers the build folder.
    fn cmake(&self, name: &str, source: &Path, options: &[&str], target: &str) -> Result<PathBuf, String> {
        on_path("cmake").map_err(|e| format!("{e}: apt-get install cmake"))?;
        let build = self.folder.join(format!("build-{name}"));
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(source).arg("-B").arg(&build);
        configure.args(["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON"]).args(options);
        said(&mut configure)?;
        said(Command::new("cmake").arg("--build").arg(&build).args(["-j2", "--target", target]))?;
        Ok(build)
    }

    /// The folder of a pinned crate's sources.
    fn crate_source(&self, name: &str) -> Result<PathBuf, String> {
        crate_source(&self.folder.join("crates"), CRATES, name)
    }

    /// Unpacks an archive that `fetch` puts into the folder; its digest decides whether it is used.
    fn archive(
        &self,
        file: &str,
        digest: &str,
        fetch: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<(), String> {
        let path = self.folder.join(file);
        if sha256(&path)? != digest {
            fetch(&self.folder)?;
            let found = sha256(&path)?;
            if found != digest {
                return Err(format!("{file} has SHA-256 {found}, not the pinned one: not used"));
            }
        }
        said(Command::new("tar").arg("xzf").arg(&path).arg("-C").arg(&self.folder))
    }
}

/// Runs a command quietly; a failure carries the end of what it said.
fn said(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    if out.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    eprintln!("{text}");
    let line = text.lines().find(|line| line.to_lowercase().contains("error")).unwrap_or_default();
    Err(format!("{name}: {}: {line}", out.status))
}

fn have(header: &str, packages: &[&str]) -> Result<(), String> {
    if Path::new("/usr/include").join(header).is_file() { Ok(()) } else { install(packages) }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Debian's package lists name the source; a list of our own leaves the machine's as it is.
fn leveldb_source(folder: &Path) -> Result<(), String> {
    let apt = folder.join("apt");
    let (parts, lists) = (apt.join("parts"), apt.join("lists"));
    for path in [&parts, &lists.join("partial")] {
        fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let machine = "/etc/apt/sources.list.d/debian.sources";
    let sources = fs::read_to_string(machine).map_err(|e| format!("{machine}: {e}"))?;
    let sources = sources.replace("Types: deb\n", "Types: deb-src\n");
    replace(&parts.join("debian.sources"), sources.as_bytes())?;
    let options = [
        "Dir::Etc::SourceList=/dev/null".to_owned(),
        format!("Dir::Etc::SourceParts={}", parts.display()),
        format!("Dir::State::Lists={}", lists.display()),
    ];
    let apt_get = || {
        let mut command = Command::new("apt-get");
        command.current_dir(folder).args(options.iter().flat_map(|option| ["-o", option]));
        command
    };
    said(apt_get().args(["-q", "update"]))?;
    said(apt_get().args(["-q", "source", "--download-only", "leveldb=1.23-4"]))
}

fn leveldb(kitchen: &Kitchen, place: &Path) -> Result<(), String> {
    have("snappy.h", &["libsnappy-dev"])?;
    kitchen.archive("leveldb_1.23.orig.tar.gz", LEVELDB_SHA256, leveldb_source)?;
    let source = kitchen.folder.join("leveldb-1.23");
    let options = ["-DLEVELDB_BUILD_TESTS=OFF", "-DLEVELDB_BUILD_BENCHMARKS=OFF", "-DLEVELDB_INSTALL=OFF"];
    let build = kitchen.cmake("leveldb", &source, &options, "leveldb")?;
    let args = format!(
        "-I{0}/include {1}/libleveldb.a -lsnappy -lstdc++ -lpthread",
        source.display(),
        build.display()
    );
    kitchen.shim("leveldb", &words(&args), place)
}

fn treedb(kitchen: &Kitchen, place: &Path) -> Result<(), String> {
    have("kclangc.h", &["libkyotocabinet-dev"])?;
    kitchen.shim("treedb", &words("-lkyotocabinet"), place)
}

fn sqlite(kitchen: &Kitchen, place: &Path) -> Result<(), String> {
    let source = kitchen.crate_source("libsqlite3-sys")?.join("sqlite3");
    let args = format!("{0}/sqlite3.c -I{0} -lm -lpthread -ldl", source.display());
    kitchen.shim("sqlite", &words(&args), place)
}

fn lmdb(kitchen: &Kitchen, place: &Path) -> Result<(), String> {
    let source = kitchen.crate_source("lmdb-master-sys")?.join("lmdb/libraries/liblmdb");
    let args = format!("{0}/mdb.c {0}/midl.c -I{0} -lpthread", source.display());
    kitchen.shim("lmdb", &words(&args), place)
}

fn codecs() -> Result<(), String> {
    let headers = [
        ("snappy-c.h", "libsnappy-dev"),
        ("lz4.h", "liblz4-dev"),
        ("zstd.h", "libzstd-dev"),
        ("zlib.h", "zlib1g-dev"),
    ];
    headers.iter().try_for_each(|(header, package)| have(header, &[package]))
}

fn wiredtiger(kitchen: &Kitchen, place: &Path) -> Result<(), String> {
    codecs()?;
    let pip = |folder: &Path| {
        let pip = on_path("pip3").map_err(|e| format!("{e}: apt-get install python3-pip"))?;
        let mut command = Command::new(pip);
        command.args([
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            "wiredtiger==11.3.1",
            "-d",
        ]);
        said(command.arg(folder))
    };
    kitchen.archive("wiredtiger-11.3.1.tar.gz", WIREDTIGER_SHA256, pip)?;
    let source = kitchen.folder.join("wiredtiger-11.3.1");
    let options = [
        "-DENABLE_PYTHON=0",
        "-DENABLE_STATIC=1",
        "-DENABLE_SHARED=0",
        "-DWITH_PIC=1",
        "-DENABLE_CPPSUITE=0",
        "-DHAVE_UNITTEST=0",
        "-DHAVE_DIAGNOSTIC=0",
        "-DENABLE_STRICT=0",
        "-DHAVE_BUILTIN_EXTENSION_SNAPPY=1",
        "-DHAVE_BUILTIN_EXTENSION_LZ4=1",
        "-DHAVE_BUILTIN_EXTENSION_ZSTD=1",
    ];
    let build = kitchen.cmake("wiredtiger", &source, &options, "wiredtiger_static")?;
    let args = format!(
        "-I{0}/include {0}/libwiredtiger.a -lsnappy -llz4 -lzstd -lz -lpthread -ldl",
        build.display()
    );
    kitchen.shim("wiredtiger", &words(&args), place)
}

fn tidesdb(kitchen: &Kitchen, place: &Path) -> Result<(), String> {
    codecs()?;
    let source = kitchen.crate_source("tidesdb")?.join("tidesdb");
    let options = [
        "-DTIDESDB_BUILD_TESTS=OFF",
        "-DTIDESDB_BUILD_BENCH=OFF",
        "-DTIDESDB_WITH_SANITIZER=OFF",
        "-DBUILD_SHARED_LIBS=OFF",
    ];
    let build = kitchen.cmake("tidesdb", &source, &options, "tidesdb")?;
    let (source, build) = (source.display(), build.display());
    let args =
        format!("-I{source}/include -I{build} {build}/libtidesdb.a -lsnappy -llz4 -lzstd -lpthread -lm");
    kitchen.shim("tidesdb", &words(&args), place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_peer_is_answered_with_the_list() {
        let why = main(&["oracle".to_owned()]).unwrap_err();
        assert!(
            why.starts_with("no peer named oracle: there are rocksdb, mariadb, leveldb, treedb, sqlite,"),
            "{why}"
        );
    }

    #[test]
    fn a_recipe_that_fails_says_why_and_notes_are_kept() {
        let folder = std::env::temp_dir().join(format!("xtask-peers-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("the temporary folder is writable");
        let kitchen = Kitchen { folder: folder.clone(), shims: folder.clone() };
        kitchen.note("one", &Ok("/here/one.so".into())).expect("writable");
        let made = kitchen.made("two", "1", |_, _| Err("no such source".into()));
        kitchen.note("two", &made).expect("writable");
        kitchen.note("one", &Ok("/there/one.so".into())).expect("writable");
        let notes = fs::read_to_string(folder.join("paths")).expect("just written");
        assert_eq!(notes, "two\tmissing: no such source\none\t/there/one.so\n");
        fs::remove_dir_all(&folder).expect("just made");
    }
}
