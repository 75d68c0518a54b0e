//! The table of natives, and the names that the library exports.

use crate::describe::{Api, Body};
use crate::java::ours;
use crate::wrap::Overloads;
use ashlar_testkit::report::figure;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn api() -> Api {
    Api::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("api")).unwrap()
}

#[test]
fn every_native_is_exported() {
    let api = api();
    let overloads = Overloads::of(&api.natives);
    let names: BTreeSet<String> = api.natives.iter().map(|native| overloads.symbol(native)).collect();
    assert_eq!(names.len(), api.natives.len(), "each native has a name of its own");
    let listed = Command::new("nm").args(["-D", "--defined-only"]).arg(ours()).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let exported: BTreeSet<String> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| name.starts_with("Java_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(exported, names);
}

/// The natives that throw `NotSupported` at present. The number only falls.
const MISSING: usize = 10;

/// The bodies that only throw `NotSupported`, for a reason that they name.
const REFUSING: [&str; 6] = [
    "indexed::delete_range",
    "options::set_wal_filter",
    "parts::new_persistent_cache",
    "upkeep::delete_file",
    "upkeep::promote",
    "upkeep::reset_stats",
];
/// The natives of these bodies. The number only falls.
const REFUSED: usize = 10;

#[test]
fn natives_that_only_refuse_are_counted() {
    let api = api();
    let path = |native| match api.body_of(native) {
        Some(Body::Call { path, .. }) => Some(path.as_str()),
        _ => None,
    };
    let paths: Vec<&str> = api.natives.iter().filter_map(path).collect();
    let unknown: Vec<&&str> = REFUSING.iter().filter(|refusing| !paths.contains(refusing)).collect();
    assert!(unknown.is_empty(), "no native has the body {unknown:?}");
    let refused = paths.iter().filter(|path| REFUSING.contains(path)).count();
    assert_eq!(refused, REFUSED);
    figure(&format!("{} natives, {refused} of them only refuse what they are for", api.natives.len()));
}

#[test]
fn natives_without_a_body_are_counted() {
    let api = api();
    let missing: Vec<String> = api
        .natives
        .iter()
        .filter(|native| api.body_of(native).is_none())
        .map(|native| format!("{}.{}{}", native.class, native.method, native.descriptor))
        .collect();
    assert_eq!(missing.len(), MISSING, "{}", missing.join("\n"));
    figure(&format!(
        "{} natives, {} of them with a body",
        api.natives.len(),
        api.natives.len() - missing.len()
    ));
}

#[test]
fn names_are_those_of_rocksdbs_library_unless_a_jar_has_another_method_of_that_name() {
    let api = api();
    let overloads = Overloads::of(&api.natives);
    let symbol = |class: &str, method: &str, descriptor: &str| {
        let found = api.natives.iter().find(|native| {
            native.class == class && native.method == method && native.descriptor.starts_with(descriptor)
        });
        overloads.symbol(found.unwrap())
    };
    assert_eq!(
        symbol("RocksDB", "open", "(JLjava/lang/String;)"),
        "Java_org_rocksdb_RocksDB_open__JLjava_lang_String_2"
    );
    assert_eq!(
        symbol("WriteBatch$Handler", "createNewHandler0", "()"),
        "Java_org_rocksdb_WriteBatch_00024Handler_createNewHandler0"
    );
    assert_eq!(
        symbol("TransactionDB", "beginTransaction_withOld", "(JJJ)"),
        "Java_org_rocksdb_TransactionDB_beginTransaction_1withOld__JJJ"
    );
    // Jars before 9.8 have a second parameter: each finds its own.
    assert_eq!(
        symbol("RocksDB", "enableFileDeletions", "(J)"),
        "Java_org_rocksdb_RocksDB_enableFileDeletions__J"
    );
    assert_eq!(
        symbol("RocksDB", "enableFileDeletions", "(JZ)"),
        "Java_org_rocksdb_RocksDB_enableFileDeletions__JZ"
    );
}
