//! An installation of the C libraries below a prefix: libraries, headers, and files for pkg-config and CMake.
//!
//! ```text
//! lib/librocksdb.so.11     the library        lib/librocksdb.so, .so.7.8 … .so.11.9   links: the names that programs look for
//! lib/librocksdb.a         for static links   lib/libleveldb.so.1                      and its links
//! include/rocksdb/c.h, include/leveldb/c.h
//! lib/pkgconfig/rocksdb.pc, leveldb.pc        lib/cmake/RocksDB/RocksDBConfig.cmake, RocksDBConfigVersion.cmake
//! ```
//!
//! Source: RocksDB `CMakeLists.txt` (names of targets and files), Debian's packages (names of libraries).

use std::path::Path;

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

/// Puts the libraries of `built`, and the headers of the checkout `root`, below `prefix`. Replaces the files of an earlier
/// installation, and no others.
///
/// # Errors
/// A file that could not be read or written, by name.
pub fn install(built: &Path, root: &Path, prefix: &Path) -> Result<(), String> {
    let prefix = std::path::absolute(prefix).map_err(|e| format!("{}: {e}", prefix.display()))?;
    let lib = prefix.join("lib");
    copy(&built.join("librocksdb.so"), &lib.join("librocksdb.so.11"))?;
    copy(&built.join("librocksdb.a"), &lib.join("librocksdb.a"))?;
    copy(&built.join("libleveldb.so"), &lib.join("libleveldb.so.1"))?;
    for name in names() {
        link("librocksdb.so.11", &lib.join(name))?;
    }
    // Debian calls LevelDB's library 1d.
    for name in ["libleveldb.so", "libleveldb.so.1d"] {
        link("libleveldb.so.1", &lib.join(name))?;
    }
    let capi = root.join("crates/ashlar-capi");
    copy(&capi.join("include/rocksdb/c.h"), &prefix.join("include/rocksdb/c.h"))?;
    copy(&capi.join("leveldb/include/leveldb/c.h"), &prefix.join("include/leveldb/c.h"))?;
    write(&lib.join("pkgconfig/rocksdb.pc"), &pkg_config(&prefix, "rocksdb", VERSION))?;
    write(&lib.join("pkgconfig/leveldb.pc"), &pkg_config(&prefix, "leveldb", "1.23.0"))?;
    write(&lib.join("cmake/RocksDB/RocksDBConfig.cmake"), CMAKE)?;
    write(&lib.join("cmake/RocksDB/RocksDBConfigVersion.cmake"), &cmake_version())
}

fn folder_of(to: &Path) -> Result<(), String> {
    let folder = to.parent().ok_or_else(|| format!("{}: no folder", to.display()))?;
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

/// Copies beside and renames: a program that runs keeps the file that it has mapped.
fn copy(from: &Path, to: &Path) -> Result<(), String> {
    folder_of(to)?;
    let beside = to.with_extension("new");
    std::fs::copy(from, &beside).map_err(|e| format!("{}: {e}", from.display()))?;
    std::fs::rename(&beside, to).map_err(|e| format!("{}: {e}", to.display()))
}

fn write(to: &Path, content: &str) -> Result<(), String> {
    folder_of(to)?;
    std::fs::write(to, content).map_err(|e| format!("{}: {e}", to.display()))
}

/// Links to a file of the same folder. A file in place of the link, such as RocksDB's own library, is an error.
fn link(target: &str, at: &Path) -> Result<(), String> {
    match std::fs::symlink_metadata(at) {
        Ok(there) if !there.file_type().is_symlink() => {
            return Err(format!("{}: is no link; remove the other installation first", at.display()));
        }
        Ok(_) => std::fs::remove_file(at).map_err(|e| format!("{}: {e}", at.display()))?,
        Err(_) => {}
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
