//! Every getter answers RocksDB's default, and what its setter set, as RocksDB's library does.

use crate::compiled::{api, assert_same, ours, run, theirs};
use crate::describe::{Body, Function, Type};
use ashlar_testkit::report::figure;
use std::fmt::Write;

/// Options that RocksDB 11.8.1 has no functions for any more.
const REMOVED: [&str; 3] = [
    "access_hint_on_compaction_start",
    "max_write_buffer_number_to_maintain",
    "skip_checking_sst_file_sizes_on_db_open",
];

/// Values that a setter gets in turn.
const VALUES: [&str; 2] = ["1", "0"];

/// What the maker of an object gets: a directory, or nothing.
fn arguments(functions: &[Function], create: &str) -> &'static str {
    let create = functions.iter().find(|function| function.name == create);
    if create.is_some_and(|create| !create.params.is_empty()) { "\"directory\"" } else { "" }
}

/// A program that prints every getter of a new object, and after each setter.
pub fn program() -> (String, usize) {
    let api = api();
    let gets = |function: &&Function| {
        let is_removed = REMOVED.iter().any(|name| function.name.ends_with(name));
        matches!(function.body, Some(Body::Get { .. })) && !is_removed
    };
    let getters: Vec<&Function> = api.functions.iter().filter(gets).collect();
    let mut out = String::from("#include <rocksdb/c.h>\n#include <stdio.h>\nint main(void) {\n");
    for getter in &getters {
        let Some(Type::Ref { handle, .. }) = getter.params.first().map(|param| &param.of) else { continue };
        let (prefix, name) = getter.name.split_once("_get_").unwrap();
        let setter = format!("{prefix}_set_{name}");
        let has_setter = api.functions.iter().any(|function| function.name == setter);
        let show = |when: &str| {
            format!("  printf(\"{} {when} %g\\n\", (double)rocksdb_{}(object));\n", getter.name, getter.name)
        };
        let given = arguments(&api.functions, &format!("{prefix}_create"));
        // Writing to a String cannot fail.
        let _ = write!(
            out,
            "  {{ rocksdb_{handle}_t* object = rocksdb_{prefix}_create({given});\n{}",
            show("new")
        );
        for value in VALUES.iter().filter(|_| has_setter) {
            let _ = write!(out, "  rocksdb_{setter}(object, {value});\n{}", show(value));
        }
        let _ = writeln!(out, "  rocksdb_{prefix}_destroy(object); }}");
    }
    (out + "  return 0;\n}\n", getters.len())
}

#[test]
fn getters_answer_as_rocksdbs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("getters.c");
    let (source, count) = program();
    std::fs::write(&path, source).unwrap();
    let here = run(&path, &ours());
    match theirs() {
        Ok(library) => {
            assert_same(&run(&path, &library), &here, &[]);
            figure(&format!("C interface: {count} getters answer as those of RocksDB 11.8.1"));
        }
        Err(skip) => skip.announce("getters"),
    }
}
