//! The header that is committed is the generated one, and two compilers take it.

use crate::compiled::{api, compile, include};
use crate::header::{Head, header};
use std::path::Path;

/// The beginning of `rocksdb/c.h`.
const ROCKSDB: Head = Head {
    comment: "\
/* The C interface of RocksDB, served by AshlarDB.
 *
 * Generated from crates/ashlar-capi/api: REWRITE=1 cargo test -p ashlar-capi --test it header
 *
 * An object is a pointer that this library returned. Memory that a call returns is freed with rocksdb_free or free. A call with
 * `errptr` puts a string there if it fails; its words before the first colon are those of RocksDB. */
",
    guard: "ASHLARDB_ROCKSDB_C_H",
    types: "\
/* Borrowed bytes. */
typedef struct rocksdb_slice_t {
  const char* data;
  size_t size;
} rocksdb_slice_t;

",
};

#[test]
fn the_header_is_current() {
    let path = include().join("rocksdb/c.h");
    let generated = header(&api(), ROCKSDB);
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

/// The parameters between the outer parentheses, split at commas that no parentheses enclose.
fn parameters(text: &str) -> Vec<String> {
    let (mut depth, mut params, mut current) = (0, Vec::new(), String::new());
    for c in text.chars() {
        depth += i32::from("([<".contains(c)) - i32::from(")]>".contains(c));
        if depth == 0 && c == ',' {
            params.push(std::mem::take(&mut current));
        } else {
            current.push(c);
        }
    }
    params.push(current);
    let params = params.into_iter().map(|param| param.trim().to_owned());
    params.filter(|param| !param.is_empty() && param != "void").collect()
}

/// The text from the parenthesis at the beginning to the one that closes it, without both.
fn enclosed(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth == 0 {
            return &text[1..at];
        }
    }
    panic!("no end: {text}");
}

/// What the ABI passes, of a parameter of C and of one of Rust.
fn class(param: &str) -> &'static str {
    let is_rust = param.contains(": ");
    let of = if is_rust { param.split_once(": ").unwrap().1 } else { param };
    let words = [
        (
            "pointer",
            &[
                "*",
                "Option<",
                "Destructor",
                "Name",
                "DeleteValue",
                "Entry",
                "Key",
                "TimestampSize",
                "On",
                "_cb ",
                "[",
            ][..],
        ),
        ("byte", &["uint8_t", "u8", "c_char"]),
        ("size", &["size_t", "usize", "uint64_t", "u64", "int64_t", "i64"]),
        ("int", &["int", "c_int", "i32", "uint32_t", "u32"]),
        ("byte", &["unsigned char", "u8", "bool", "char"]),
    ];
    let is = |word: &&str| {
        if is_rust { of.starts_with(*word) || of.contains('*') && *word == "*" } else { of.contains(*word) }
    };
    words.iter().find(|(_, words)| words.iter().any(&is)).map_or("?", |(class, _)| class)
}

/// A function that is written by hand takes what its declaration says.
#[test]
fn functions_by_hand_have_the_parameters_of_their_declarations() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let paths = std::fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path());
    let source: String = paths.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let mut compared = 0;
    for function in api().functions {
        let Some(raw) = &function.raw else { continue };
        let name = format!("rocksdb_{}", function.name);
        let declared = parameters(enclosed(&raw[raw.find(&name).unwrap() + name.len()..]));
        let Some(at) = source.find(&format!("extern \"C\" fn {name}(")) else {
            // Those that a macro declares have one form, which the compiler holds to its uses.
            assert!(source.contains(&name), "{name} is not written");
            continue;
        };
        let written = &source[at..];
        let body = &written[written.find('{').unwrap() + 1..];
        let enters = format!("let _in = crate::checked::enter(\"{name}\");");
        // The message about a wrong pointer names the function.
        assert!(
            name == "rocksdb_free" || body.trim_start().starts_with(&enters),
            "{name} does not begin with {enters}"
        );
        let written = parameters(enclosed(&written[written.find('(').unwrap()..]));
        let classes = |params: &[String]| params.iter().map(|param| class(param)).collect::<Vec<_>>();
        assert_eq!(classes(&written), classes(&declared), "{name}: {written:?} for {declared:?}");
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

/// The page for users that move says that every function is there.
#[test]
fn the_header_has_every_function_that_the_page_on_moving_promises() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/moving.md")).unwrap();
    let count = api().functions.len();
    assert_eq!(count, 1_749 + 30);
    assert!(page.contains("all 1,749 functions of RocksDB 11.9, and 30 older ones"), "docs/moving.md");
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
