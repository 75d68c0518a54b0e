//! The header that is committed is the generated one, it has LevelDB's functions, and two compilers take it.

use crate::compiled::{api, compile, include, ours};
use crate::header::{Head, header};

/// The beginning of `leveldb/c.h`.
const LEVELDB: Head = Head {
    comment: "\
/* The C interface of LevelDB, served by AshlarDB.
 *
 * Generated from crates/ashlar-capi/leveldb/api: REWRITE=1 cargo test -p ashlar-leveldb --test it header
 *
 * An object is a pointer that this library returned. Memory that a call returns is freed with leveldb_free or free. A call with
 * `errptr` puts a string there if it fails; its words before the first colon are those of LevelDB. */
",
    guard: "ASHLARDB_LEVELDB_C_H",
    types: "",
};

#[test]
fn the_header_is_current() {
    let path = include().join("leveldb/c.h");
    let generated = header(&api(), LEVELDB);
    if std::env::var_os("REWRITE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == generated,
        "REWRITE=1 cargo test -p ashlar-leveldb --test it header writes {}",
        path.display()
    );
}

/// The 68 functions that Debian's libleveldb 1.23 exports.
#[test]
fn every_function_is_there() {
    assert_eq!(api().functions.len(), 68);
    assert!(ours().exists());
}

#[test]
fn c99_and_cpp17_take_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("empty.c");
    std::fs::write(&source, "#include <leveldb/c.h>\n").unwrap();
    for words in [["-std=c99", "-xc", "-c"], ["-std=c++17", "-xc++", "-c"]] {
        compile(&words, &source, None, &dir.path().join("empty.o")).unwrap();
    }
}
