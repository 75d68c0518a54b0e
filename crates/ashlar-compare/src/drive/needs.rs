//! The disk and memory that a run needs, checked before it begins.

use super::Matrix;
use ashlar_peers::memory::{self, ORACLE_BYTES};
use std::fmt::Write;

/// Bytes of disk per byte of puts: engines rewrite their data, and some copy all of it.
const DISK_FACTOR: u64 = 5;
/// The program, the engine's code and tables.
const REST_BYTES: u64 = 256 << 20;

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Amount {
    disk: u64,
    memory: u64,
}

/// Refuses a run if disk or memory is too small.
///
/// # Errors
/// A text with the needed and the available bytes.
pub fn check(matrix: &Matrix) -> Result<(), String> {
    let (Some(disk), Some(memory)) = (memory::free_disk(&matrix.dir), memory::free()) else { return Ok(()) };
    refuse(needed(matrix), Amount { disk, memory }, &matrix.dir.display().to_string())
}

fn needed(matrix: &Matrix) -> Amount {
    let most = |of: &dyn Fn(&crate::experiment::Session) -> u64| matrix.sessions.iter().map(of).max();
    let memory =
        |s: &crate::experiment::Session| s.settings.memory_bytes() + s.keys * ORACLE_BYTES + REST_BYTES;
    Amount {
        disk: most(&|s| s.bytes()).unwrap_or(0).saturating_mul(DISK_FACTOR),
        memory: most(&memory).unwrap_or(0),
    }
}

fn refuse(need: Amount, have: Amount, dir: &str) -> Result<(), String> {
    let mut why = String::new();
    let mib = |bytes: u64| bytes >> 20;
    // Writing to a String cannot fail.
    if need.disk > have.disk {
        let _ = write!(
            why,
            "too little disk in {dir}: {} MiB needed, {} MiB free",
            mib(need.disk),
            mib(have.disk)
        );
    }
    if need.memory > have.memory {
        let and = if why.is_empty() { "" } else { "; " };
        let (need, have) = (mib(need.memory), mib(have.memory));
        let _ = write!(why, "{and}too little memory: {need} MiB needed, {have} MiB free");
    }
    if why.is_empty() { Ok(()) } else { Err(why + "; a smaller --size, fewer keys, or another --dir") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_is_refused_with_need_and_have() {
        let have = Amount { disk: 5 << 20, memory: 7 << 20 };
        assert_eq!(refuse(have, have, "/d"), Ok(()));
        let need = Amount { disk: 6 << 20, memory: 9 << 20 };
        assert_eq!(
            refuse(need, have, "/d").unwrap_err(),
            "too little disk in /d: 6 MiB needed, 5 MiB free; too little memory: 9 MiB needed, 7 MiB free; a smaller --size, \
             fewer keys, or another --dir"
        );
        assert!(memory::free().unwrap() > 1 << 20);
    }
}
