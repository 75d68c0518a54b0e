//! A backup directory: its files are those that its meta files name, and restored by name they are databases.

use super::{Tally, open};
use crate::store::listing;
use ashlar_base::checksum::crc32c;
use ashlar_format::backup_meta::{BackupMeta, SharedName};
use ashlar_testkit::golden::{self, Listing};
use ashlardb::Read as _;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const BACKUP: &str = "rocksdb-7.8.3/backup";

/// The files in a folder of the backup.
fn stored(folder: &str) -> Vec<PathBuf> {
    let files = golden::files(&format!("{BACKUP}/{folder}")).unwrap();
    files.into_keys().map(|file| Path::new(folder).join(file)).collect()
}

/// Compares every file of both backups, then what is read from them.
pub(super) fn files(tally: &mut Tally) {
    let dir = golden::path(BACKUP);
    let expected = std::fs::read_to_string(dir.join("expected.txt")).unwrap();
    let mut named = BTreeSet::new();
    for id in [1, 2] {
        let text = std::fs::read_to_string(dir.join(format!("meta/{id}"))).unwrap();
        let meta = BackupMeta::parse(&text).unwrap_or_else(|e| panic!("meta/{id}: {e}"));
        assert_eq!(meta.print(), text, "meta/{id}");
        let restored = tempfile::tempdir().unwrap();
        for file in &meta.files {
            let bytes = std::fs::read(golden::path(&format!("{BACKUP}/{}", file.path))).unwrap();
            let name = Path::new(&file.path).file_name().unwrap().to_str().unwrap();
            tally.comparisons += 1;
            let size = match SharedName::parse(name) {
                Some(SharedName::Session { size, .. }) => size,
                _ => file.size,
            };
            let found = (Some(crc32c(&bytes)), bytes.len() as u64);
            if found != (file.checksum, size.unwrap_or(found.1)) {
                tally.differences.push(format!("backup {id}, {}: {found:?} found, {file:?}", file.path));
            }
            let shared = file.path.starts_with("shared_checksum/");
            let name = if shared { SharedName::original(name).unwrap() } else { name.to_owned() };
            std::fs::write(restored.path().join(name), &bytes).unwrap();
            named.insert(PathBuf::from(&file.path));
        }
        let heading = format!("Backup {id}, files restored by name, ");
        let (_, text) = expected.split_once(&heading).unwrap();
        let text = text.split_once("\nBackup").map_or(text, |(own, _)| own);
        let visible = &Listing::parse(text)[0].visible;
        let db = open(restored.path(), false);
        let found = listing(db.default_family().scan(..));
        tally.compare("restored by name", &format!("backup {id}"), "default", visible, &found);
        tally.directories += 1;
        tally.entries += visible.len();
        db.close().unwrap();
    }
    let kept: BTreeSet<PathBuf> =
        ["private/1", "private/2", "shared_checksum"].into_iter().flat_map(stored).collect();
    assert_eq!(kept, named, "every file is named, and no other");
    tally.looked_into += 1;
}
