//! Generates the exported natives from the description in `api/`.

#![allow(clippy::disallowed_methods, reason = "a build script reads files")]

mod describe;
mod wrap;

use std::path::Path;

fn main() -> Result<(), String> {
    let dir = std::env::var("CARGO_MANIFEST_DIR").map_err(|e| e.to_string())?;
    let out = std::env::var("OUT_DIR").map_err(|e| e.to_string())?;
    println!("cargo::rerun-if-changed=api");
    let api = describe::Api::read(&Path::new(&dir).join("api"))?;
    let path = Path::new(&out).join("exports.rs");
    std::fs::write(&path, wrap::exports(&api)?).map_err(|e| format!("{}: {e}", path.display()))
}
