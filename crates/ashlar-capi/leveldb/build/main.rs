//! Generates the exported functions from the description in `api/`, with the generator of RocksDB's interface.

#![allow(clippy::disallowed_methods, reason = "a build script reads files")]

#[path = "../../build/describe.rs"]
mod describe;
#[path = "../../build/wrap.rs"]
mod wrap;

use std::path::Path;

fn main() -> Result<(), String> {
    let dir = std::env::var("CARGO_MANIFEST_DIR").map_err(|e| e.to_string())?;
    let out = std::env::var("OUT_DIR").map_err(|e| e.to_string())?;
    println!("cargo::rerun-if-changed=api");
    // The functions of RocksDB's interface are not exported: a program may have RocksDB's library beside this one.
    println!("cargo::rustc-cdylib-link-arg=-Wl,--exclude-libs,ALL");
    println!("cargo::rerun-if-changed=../build");
    let api = describe::Api::read(&Path::new(&dir).join("api"), "leveldb_")?;
    let path = Path::new(&out).join("exports.rs");
    std::fs::write(&path, wrap::exports(&api) + &wrap::kinds(&api))
        .map_err(|e| format!("{}: {e}", path.display()))
}
