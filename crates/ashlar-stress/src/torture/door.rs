//! Writers behind another door: a program of another language writes a case's lists through the library that it loads.
//!
//! ```text
//! COMMAND DIRECTORY OPTIONS SCRIPTS PROGRESS WRITERS
//!
//! DIRECTORY   of the database, opened with the families default, one and two; missing ones are created
//! OPTIONS     an option string of RocksDB, for the database and its families
//! SCRIPTS     a directory. File N holds the operations of writer N, one after the other
//! PROGRESS    a file. Bytes 8N to 8N+7 hold the number of acknowledged operations of writer N
//! WRITERS     the number of threads that write
//!
//! operation   sync:1 changes:1 change…      one write batch
//! change      kind:1 family:1 key value     0 put, 1 delete, 2 merge, 3 delete of a range up to `value`
//! key, value  length:4 bytes
//! ```
//! Numbers are little-endian. The program updates a writer's number before that writer's next operation begins. After the last
//! operation the program waits until it is killed.

use super::kill::{Killed, watched};
use super::plan::{FAMILIES, Plan};
use crate::sim::plan::Setup;
use ashlar_testkit::children::{Ended, Running};
use ashlar_testkit::{Change, Op};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A writer's file of operations ends after so many bytes. A round is over earlier, as a rule.
const SCRIPT_BYTES: usize = 8 << 20;

/// The command that starts the writing program.
#[derive(Clone, Debug)]
pub struct Door {
    words: Vec<String>,
}

impl Door {
    /// A program and its first words.
    pub fn new(words: impl IntoIterator<Item = String>) -> Door {
        Door { words: words.into_iter().collect() }
    }

    /// Starts the program on the lists of a round. `scripts` is an empty directory.
    fn start(&self, dir: &Path, (plan, round): (&Plan, u64), scripts: &Path) -> Result<Running, String> {
        for writer in 0..plan.writers {
            let script = scripts.join(writer.to_string());
            std::fs::write(&script, operations(plan, round, writer)?).map_err(|e| e.to_string())?;
        }
        let progress = scripts.join("progress");
        std::fs::write(&progress, vec![0; plan.writers * 8]).map_err(|e| e.to_string())?;
        let (program, words) = self.words.split_first().ok_or("no program that writes")?;
        let mut command = Command::new(program);
        command.args(words).arg(dir).arg(option_string(&plan.setup(round))).arg(scripts);
        Running::of(command.arg(progress).arg(plan.writers.to_string()))
    }

    /// Writes until the program is killed, `time` after its first acknowledged operation.
    ///
    /// # Errors
    /// The program ended by itself, or does not write.
    pub(super) fn writers(
        &self,
        dir: &Path,
        (plan, round): (&Plan, u64),
        time: Duration,
    ) -> Result<Killed, String> {
        let scripts = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut running = self.start(dir, (plan, round), scripts.path())?;
        let progress = std::fs::File::open(scripts.path().join("progress")).map_err(|e| e.to_string())?;
        watched(&mut running, &progress, plan.writers, |running| {
            if running.wait(time)? == Ended::Killed {
                return Err("another process killed the program that writes".to_owned());
            }
            running.kill().map(|()| None)
        })
    }
}

/// The operations of a writer as bytes.
///
/// # Errors
/// An operation has more changes than the format counts.
fn operations(plan: &Plan, round: u64, writer: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for op in plan.list(round, writer) {
        let Op::Write { changes, sync } = op else { continue };
        let count =
            u8::try_from(changes.len()).map_err(|_| format!("{} changes in a batch", changes.len()))?;
        bytes.extend([u8::from(sync), count]);
        changes.iter().for_each(|change| encode(change, &mut bytes));
        if bytes.len() > SCRIPT_BYTES {
            break;
        }
    }
    Ok(bytes)
}

fn encode(change: &Change, bytes: &mut Vec<u8>) {
    let (kind, family, key, value): (u8, &str, &[u8], &[u8]) = match change {
        Change::Put { family, key, value } => (0, family, key, value),
        Change::Delete { family, key } | Change::SingleDelete { family, key } => (1, family, key, &[]),
        Change::Merge { family, key, operand } => (2, family, key, operand),
        Change::DeleteRange { family, from, to } => (3, family, from, to),
    };
    let family = FAMILIES.iter().position(|name| *name == family).unwrap_or_default();
    bytes.extend([kind, u8::try_from(family).unwrap_or_default()]);
    for part in [key, value] {
        bytes.extend(u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
        bytes.extend_from_slice(part);
    }
}

/// The settings of a round as RocksDB names them.
fn option_string(setup: &Setup) -> String {
    let (family, compaction, blob) = (&setup.family, &setup.family.compaction, &setup.family.blob);
    let mut pairs = vec![
        ("write_buffer_size", family.write_buffer_bytes.to_string()),
        ("max_write_buffer_number", family.max_write_buffers.to_string()),
        ("merge_operator", "stringappend".to_owned()),
        ("level0_file_num_compaction_trigger", compaction.l0_trigger.to_string()),
        ("level0_slowdown_writes_trigger", compaction.l0_slowdown.to_string()),
        ("level0_stop_writes_trigger", compaction.l0_stop.to_string()),
        ("target_file_size_base", compaction.target_file_bytes.to_string()),
        ("max_bytes_for_level_base", compaction.base_level_bytes.to_string()),
        ("enable_blob_files", blob.enabled.to_string()),
        ("min_blob_size", blob.min_blob_bytes.to_string()),
        ("blob_file_size", blob.file_bytes.to_string()),
        ("enable_blob_garbage_collection", blob.collect_garbage.to_string()),
        ("max_open_files", setup.db.max_open_files.to_string()),
        ("max_total_wal_size", setup.db.max_total_wal_bytes.to_string()),
    ];
    if setup.db.wal_compression != ashlar_format::compress::Compression::None {
        pairs.push(("wal_compression", "kZSTD".to_owned()));
    }
    pairs.iter().map(|(name, value)| format!("{name}={value};")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_their_documented_bytes() {
        let change =
            Change::DeleteRange { family: "two".to_owned(), from: b"a".to_vec(), to: b"cd".to_vec() };
        let mut bytes = Vec::new();
        encode(&change, &mut bytes);
        assert_eq!(bytes, [&[3, 2, 1, 0, 0, 0][..], b"a", &[2, 0, 0, 0], b"cd"].concat());
        let plan = Plan::draw(3).behind_a_door();
        let list = operations(&plan, 0, 0).unwrap();
        assert!(list.len() > SCRIPT_BYTES);
        assert_eq!(list, operations(&plan, 0, 0).unwrap());
    }
}
