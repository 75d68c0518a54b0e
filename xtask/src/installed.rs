//! An installation of the C libraries below a prefix: libraries, headers, and files for pkg-config and CMake.
//!
//! ```text
//! lib/librocksdb.so.11     the library        lib/librocksdb.so, .so.7.8 … .so.11.9   links: the names that programs look for
//! lib/librocksdb.a         for static links   lib/libleveldb.so.1                      and its links
//! include/rocksdb/c.h, include/leveldb/c.h
//! lib/pkgconfig/rocksdb.pc, leveldb.pc        lib/cmake/RocksDB/RocksDBConfig.cmake, RocksDBConfigVersion.cmake
//! lib/ashlardb.installed   the list of what was installed
//! ```
//! 1. The list has a line for each file and link: the path below the prefix, and the bytes with a hash, or the target of the link.
//! 2. A file or link may be replaced only if it is as a line of the list says. All are checked before the first write, so a
//!    refused installation changes nothing.
//! 3. Before the first write the list has the earlier lines and the new ones, so that an interrupted installation can be repeated.
//!    At the end it has a line for each file and link that an installation put there. Another version may have names that this one
//!    does not have; their lines stay, so that the other version can be installed again.
//!
//! Source: RocksDB `CMakeLists.txt` (names of targets and files), Debian's packages (names of libraries).

use std::path::{Path, PathBuf};

/// The version that pkg-config and CMake answer: that of the C header.
pub const VERSION: &str = "11.9.0";

/// The libraries' files, from the directory of a build.
pub const BUILT: [&str; 3] = ["librocksdb.so", "librocksdb.a", "libleveldb.so"];

/// The names under which programs of RocksDB 7.8 to 11 look for the library: packages use the minor version, RocksDB's own build the
/// major one.
fn names() -> Vec<String> {
    let minors = [(7, 8..=10), (8, 0..=11), (9, 0..=11), (10, 0..=10), (11, 0..=9)];
    let minor = minors
        .into_iter()
        .flat_map(|(major, minors)| minors.map(move |minor| format!("librocksdb.so.{major}.{minor}")));
    let major = [7, 8, 9, 10].map(|major| format!("librocksdb.so.{major}"));
    minor.chain(major).chain(["librocksdb.so".to_owned()]).collect()
}

/// The list of what was installed.
const LIST: &str = "lib/ashlardb.installed";

/// What an installation puts at a path.
enum Content {
    /// A copy of a file.
    Copy(PathBuf),
    /// A text.
    Text(String),
    /// A link to a file of the same folder.
    Link(&'static str),
}

/// What belongs below the prefix: paths below it, with their contents.
fn parts(built: &Path, root: &Path, prefix: &Path) -> Vec<(String, Content)> {
    let capi = root.join("crates/ashlar-capi");
    let copies = [
        ("lib/librocksdb.so.11", built.join("librocksdb.so")),
        ("lib/librocksdb.a", built.join("librocksdb.a")),
        ("lib/libleveldb.so.1", built.join("libleveldb.so")),
        ("include/rocksdb/c.h", capi.join("include/rocksdb/c.h")),
        ("include/leveldb/c.h", capi.join("leveldb/include/leveldb/c.h")),
    ];
    let texts = [
        ("lib/pkgconfig/rocksdb.pc", pkg_config(prefix, "rocksdb", VERSION)),
        ("lib/pkgconfig/leveldb.pc", pkg_config(prefix, "leveldb", "1.23.0")),
        ("lib/cmake/RocksDB/RocksDBConfig.cmake", CMAKE.to_owned()),
        ("lib/cmake/RocksDB/RocksDBConfigVersion.cmake", cmake_version()),
    ];
    let mut parts = Vec::new();
    parts.extend(copies.map(|(path, from)| (path.to_owned(), Content::Copy(from))));
    parts.extend(texts.map(|(path, text)| (path.to_owned(), Content::Text(text))));
    let to_rocksdb = |name| (format!("lib/{name}"), Content::Link("librocksdb.so.11"));
    parts.extend(names().into_iter().map(to_rocksdb));
    // Debian calls LevelDB's library 1d.
    let to_leveldb = |name| (format!("lib/{name}"), Content::Link("libleveldb.so.1"));
    parts.extend(["libleveldb.so", "libleveldb.so.1d"].map(to_leveldb));
    parts
}

/// Puts the libraries of `built`, and the headers of the checkout `root`, below `prefix`. Replaces the files of an earlier
/// installation, and no others.
///
/// # Errors
/// A file that could not be read or written, by name. A file or link that no earlier installation put there, such as one of
/// RocksDB; then nothing is changed.
pub fn install(built: &Path, root: &Path, prefix: &Path) -> Result<(), String> {
    let prefix = std::path::absolute(prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
    let parts = parts(built, root, &prefix);
    let list = prefix.join(LIST);
    let before = std::fs::read_to_string(&list).unwrap_or_default();
    check(&prefix, &parts, &before)?;
    let lines = parts.iter().map(|(path, content)| Ok(line(path, &content.described()?)));
    let lines: String = lines.collect::<Result<_, String>>()?;
    write(&list, format!("{before}{lines}").as_bytes())?;
    for (path, content) in &parts {
        let to = prefix.join(path);
        match content {
            Content::Copy(from) => write(&to, &read(from)?)?,
            Content::Text(text) => write(&to, text.as_bytes())?,
            Content::Link(target) => link(target, &to)?,
        }
    }
    write(&list, (others(&prefix, &parts, &before)? + &lines).as_bytes())
}

/// The lines of an earlier list whose files this version does not have, and that are still as their line says.
fn others(prefix: &Path, parts: &[(String, Content)], list: &str) -> Result<String, String> {
    let mut kept: Vec<&str> = Vec::new();
    for known in list.lines() {
        let Some((path, told)) = known.split_once('\t') else { continue };
        let is_own = parts.iter().any(|(own, _)| own == path);
        if !is_own
            && !kept.contains(&known)
            && described(&prefix.join(path))?.is_some_and(|there| there == told)
        {
            kept.push(known);
        }
    }
    Ok(kept.iter().map(|known| format!("{known}\n")).collect())
}

/// # Errors
/// Each file or link that is in the way.
fn check(prefix: &Path, parts: &[(String, Content)], list: &str) -> Result<(), String> {
    let mut foreign = Vec::new();
    for (path, _) in parts {
        let to = prefix.join(path);
        if let Some(there) = described(&to)?
            && !list.lines().any(|known| known == line(path, &there).trim_end())
        {
            foreign.push(to.display().to_string());
        }
    }
    match foreign.as_slice() {
        [] => Ok(()),
        all => Err(format!(
            "not put there by an earlier `cargo xtask install`, or changed since: {}\nNothing was installed. Remove the other \
             installation first, or choose another prefix",
            all.join(", ")
        )),
    }
}

/// A line of the list.
fn line(path: &str, described: &str) -> String {
    format!("{path}\t{described}\n")
}

impl Content {
    fn described(&self) -> Result<String, String> {
        Ok(match self {
            Content::Copy(from) => of_bytes(&read(from)?),
            Content::Text(text) => of_bytes(text.as_bytes()),
            Content::Link(target) => of_link(Path::new(target)),
        })
    }
}

/// What is at a path; `None`: nothing.
fn described(at: &Path) -> Result<Option<String>, String> {
    match std::fs::symlink_metadata(at) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(format!("{}: {e}", at.display())),
        Ok(there) if there.is_symlink() => {
            let target = std::fs::read_link(at).map_err(|e| format!("{}: {e}", at.display()))?;
            Ok(Some(of_link(&target)))
        }
        Ok(there) if there.is_file() => Ok(Some(of_bytes(&read(at)?))),
        Ok(_) => Ok(Some("no file".to_owned())),
    }
}

fn of_link(target: &Path) -> String {
    format!("link {}", target.display())
}

/// The number of bytes, and their FNV-1a hash.
fn of_bytes(bytes: &[u8]) -> String {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325, add);
    format!("file {} {hash:016x}", bytes.len())
}

fn read(from: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(from).map_err(|e| format!("{}: {e}", from.display()))
}

/// Writes beside and renames: a program that runs keeps the file that it has mapped.
fn write(to: &Path, content: &[u8]) -> Result<(), String> {
    let wrong = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    let folder = to.parent().ok_or_else(|| format!("{}: no folder", to.display()))?;
    std::fs::create_dir_all(folder).map_err(|e| wrong(folder, e))?;
    let mut beside = to.as_os_str().to_owned();
    beside.push(".ashlardb-new");
    let beside = Path::new(&beside);
    std::fs::write(beside, content).map_err(|e| wrong(beside, e))?;
    std::fs::rename(beside, to).map_err(|e| wrong(to, e))
}

/// Links to a file of the same folder, in place of an earlier link.
fn link(target: &str, at: &Path) -> Result<(), String> {
    if described(at)?.is_some() {
        std::fs::remove_file(at).map_err(|e| format!("{}: {e}", at.display()))?;
    }
    std::os::unix::fs::symlink(target, at).map_err(|e| format!("{}: {e}", at.display()))
}

fn pkg_config(prefix: &Path, name: &str, version: &str) -> String {
    format!(
        "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\nName: {name}\nDescription: the C interface of \
         {name}, served by AshlarDB\nVersion: {version}\nLibs: -L${{libdir}} -l{name}\nLibs.private: -lpthread -ldl -lm\n\
         Cflags: -I${{includedir}}\n",
        prefix.display()
    )
}

const CMAKE: &str = r#"# The C interface of RocksDB, served by AshlarDB: the targets RocksDB::rocksdb-shared and RocksDB::rocksdb.
get_filename_component(_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET RocksDB::rocksdb-shared)
  add_library(RocksDB::rocksdb-shared SHARED IMPORTED)
  set_target_properties(RocksDB::rocksdb-shared PROPERTIES
    IMPORTED_LOCATION "${_prefix}/lib/librocksdb.so.11"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include")
  add_library(RocksDB::rocksdb STATIC IMPORTED)
  set_target_properties(RocksDB::rocksdb PROPERTIES
    IMPORTED_LOCATION "${_prefix}/lib/librocksdb.a"
    INTERFACE_LINK_LIBRARIES "pthread;dl;m"
    INTERFACE_INCLUDE_DIRECTORIES "${_prefix}/include")
endif()
unset(_prefix)
"#;

/// A project that asks for RocksDB 7.8 or later gets the library.
fn cmake_version() -> String {
    format!(
        "set(PACKAGE_VERSION \"{VERSION}\")\nif(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION)\n  \
         set(PACKAGE_VERSION_COMPATIBLE FALSE)\nelse()\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  set(PACKAGE_VERSION_EXACT TRUE)\nendif()\n"
    )
}
