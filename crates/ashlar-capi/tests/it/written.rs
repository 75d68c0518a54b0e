//! The header that is committed is the generated one, and two compilers take it.

use crate::compiled::{api, compile, include};
use crate::header::header;

#[test]
fn the_header_is_current() {
    let path = include().join("rocksdb/c.h");
    let generated = header(&api());
    if std::env::var_os("REWRITE").is_some_and(|value| value == "1") {
        std::fs::write(&path, &generated).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == generated,
        "REWRITE=1 cargo test -p ashlar-capi --test it header writes {}",
        path.display()
    );
}

#[test]
fn c99_and_cpp17_take_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let source = "#include <rocksdb/c.h>\nint main(void) { return rocksdb_no_compression; }\n";
    for (name, words) in [("a.c", ["-std=c99", "-xc"]), ("a.cc", ["-std=c++17", "-xc++"])] {
        let path = dir.path().join(name);
        std::fs::write(&path, source).unwrap();
        compile(&words, &path, None, &dir.path().join("out")).unwrap();
    }
}
