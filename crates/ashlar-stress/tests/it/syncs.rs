//! Syncs on a file system whose journal has failed, through the environment and without a database.

use ashlar_env::Env;
use ashlar_testkit::block_log::RecordedDisk;
use ashlar_testkit::ext4::Blank;
use ashlar_testkit::report::skipped;
use std::process::Command;

/// The kernel answers most of these syncs at once: the files have not changed since their last sync.
#[test]
fn nothing_is_durable_behind_a_failed_journal() {
    let begun = Blank::new(64).and_then(|blank| {
        let mut server = Command::new(env!("CARGO_BIN_EXE_rel"));
        RecordedDisk::new(server.args(["child", "block-log"]), &blank.image, "")
    });
    let disk = match begun {
        Ok(disk) => disk,
        Err(skip) => return skipped("nothing_is_durable_behind_a_failed_journal", skip.why()),
    };
    let (fs, root) = (Env::os().unwrap().fs, disk.path());
    let still: Vec<_> = (0..8).map(|n| fs.create(&root.join(format!("still-{n}"))).unwrap()).collect();
    for file in &still {
        file.write_at(b"bytes", 0).unwrap();
        file.sync_all().unwrap();
    }
    fs.sync_dir(&root).unwrap();
    disk.fail(100, 0, 0, 1).unwrap();
    // Names are in the journal alone.
    let failed = (0..100)
        .find_map(|n| fs.create(&root.join(format!("name-{n}"))).and_then(|_| fs.sync_dir(&root)).err());
    assert!(failed.is_some(), "the journal goes on");
    disk.heal().unwrap();
    for (number, file) in still.iter().enumerate() {
        let synced = if number % 2 == 0 { file.sync_data() } else { file.sync_all() };
        let refused = synced.expect_err("a sync behind a failed journal");
        assert!(refused.to_string().contains("still-"), "{refused}");
    }
    fs.sync_dir(&root).unwrap_err();
    drop(still);
    disk.unmount().unwrap();
}
