//! The tests that every engine must pass before it appears in a table: order, overwriting, batches, cursors, sizes,
//! reopening, and gets of other threads beside a writer.
//!
//! Each engine runs in its own process, as under the driver: the test runs itself again with [`ALONE`] set.

use crate::engine::EngineName;
use crate::peer::{Cursor, Entries, Keys, Peer, Read, Write};
use crate::place;
use crate::settings::{Class, Settings};
use std::path::Path;
use std::process::Command;

mod clients;
mod killed;

fn settings(class: Class) -> Settings {
    Settings { class, key_bytes: 2, value_bytes: 100_000, ..Settings::default() }
}

fn all<P: Peer>(peer: &P, from: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = peer.cursor().unwrap();
    let mut entry = match from {
        Some(key) => cursor.seek(key).unwrap(),
        None => cursor.first().unwrap(),
    };
    let mut seen = Vec::new();
    while let Some((key, value)) = entry {
        seen.push((key.to_vec(), value.to_vec()));
        entry = cursor.next().unwrap();
    }
    cursor.check().unwrap();
    seen
}

fn value<R: Read>(reader: &mut R, key: &[u8]) -> Option<Vec<u8>> {
    let mut seen = None;
    let found = reader.get(key, |value| seen = Some(value.to_vec())).unwrap();
    assert_eq!(found, seen.is_some());
    seen
}

/// Set in the process that tries one engine.
const ALONE: &str = "ASHLAR_COMPARE_CONFORMANCE";

/// The name of an engine's test.
fn test_of(engine: EngineName) -> String {
    format!("peers::conformance::{}", engine.text().replace('-', "_"))
}

/// This program again, with the test of `engine` only.
fn again(engine: EngineName) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([&test_of(engine), "--exact", "--nocapture"]);
    command
}

fn in_a_process<P: Peer>(engine: EngineName) {
    if let Some(dir) = std::env::var_os(killed::DIR) {
        return killed::works::<P>(engine, Path::new(&dir));
    }
    if std::env::var_os(ALONE).is_some() {
        return conforms::<P>(engine);
    }
    let test = test_of(engine);
    let out = again(engine).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(said.contains("running 1 test"), "{test}: {said}");
    said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("{line}"));
    assert!(out.status.success(), "{}: {said}{}", out.status, String::from_utf8_lossy(&out.stderr));
}

fn conforms<P: Peer>(engine: EngineName) {
    let library = match place::library(engine, None) {
        Ok(library) => library.map(|path| path.to_string_lossy().into_owned()),
        Err(why) => return println!("skipped: {}: {why}", engine.text()),
    };
    let dir = tempfile::tempdir().unwrap();
    killed::leaves_whole_batches::<P>(engine, dir.path(), library.as_deref());
    for class in [Class::Matched, Class::Own] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("db");
        entries_come_back::<P>(engine, &dir, &settings(class), library.as_deref());
        let sync = Settings { sync: true, ..settings(class) };
        let peer = P::open(engine, &dir, &sync, library.as_deref()).unwrap();
        readers_beside_a_writer(&peer, engine);
        peer.close().unwrap();
        clients::several::<P>(engine, &dir.with_file_name("clients"), class, library.as_deref());
        if driven(engine) {
            other_writes::<P>(engine, &dir.with_file_name("other"), class, library.as_deref());
        }
    }
}

fn entries_come_back<P: Peer>(engine: EngineName, dir: &Path, settings: &Settings, library: Option<&str>) {
    let large = vec![b'x'; 100_000];
    let wanted: Vec<(Vec<u8>, Vec<u8>)> = [
        (b"a1", &b"one"[..]),
        (b"b1", b"bat"),
        (b"b2", b"che"),
        (b"c1", b"again"),
        (b"d1", b""),
        (b"e1", &large),
    ]
    .map(|(key, value)| (key.to_vec(), value.to_vec()))
    .to_vec();
    let peer = P::open(engine, dir, settings, library).unwrap();
    assert!(!peer.version().is_empty());
    for (key, value) in
        [(b"c1", &b"first"[..]), (b"a1", b"one"), (b"e1", &large), (b"d1", b""), (b"c1", b"again")]
    {
        peer.put(key, value).unwrap();
    }
    let mut batch = Entries::new(2, 3);
    batch.push(b"b2", b"che");
    batch.push(b"b1", b"bat");
    peer.put_all(&batch).unwrap();
    for settled in [false, true] {
        if settled {
            peer.settle().unwrap();
        }
        assert!(all(&peer, None) == wanted, "settled: {settled}");
        assert!(all(&peer, Some(b"b2")) == wanted[2..]);
        assert!(all(&peer, Some(b"b3")) == wanted[3..], "between two keys");
        assert_eq!(all(&peer, Some(b"f")), []);
        let mut reader = peer.reader().unwrap();
        for (key, kept) in &wanted {
            assert!(value(&mut reader, key).as_ref() == Some(kept));
        }
        assert_eq!(value(&mut reader, b"b0"), None);
        many_at_once(&mut reader, &wanted);
        assert!(reversed(&peer).iter().eq(wanted.iter().rev()));
    }
    peer.close().unwrap();
    let peer = P::open(engine, dir, settings, library).unwrap();
    assert!(all(&peer, None) == wanted, "after a close");
    peer.close().unwrap();
}

/// Whether the driver calls the engine for everything, not only for the workloads of the documents.
fn driven(engine: EngineName) -> bool {
    [EngineName::Ashlardb, EngineName::Rocksdb].contains(&engine)
}

fn reversed<P: Peer>(peer: &P) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = peer.cursor().unwrap();
    let mut entry = cursor.last().unwrap();
    let mut seen = Vec::new();
    while let Some((key, value)) = entry {
        seen.push((key.to_vec(), value.to_vec()));
        entry = cursor.prev().unwrap();
    }
    cursor.check().unwrap();
    seen
}

/// Values come in the order of the keys, which are not sorted; one is missing, one is asked for twice.
fn many_at_once<R: Read>(reader: &mut R, wanted: &[(Vec<u8>, Vec<u8>)]) {
    let mut keys = Keys::new(2);
    for key in [b"e1", b"a1", b"b0", b"d1", b"a1"] {
        keys.push(key);
    }
    for _ in 0..2 {
        let mut seen = Vec::new();
        assert_eq!(reader.multi_get(&keys, |value| seen.push(value.to_vec())), Ok(4));
        assert!(seen.iter().eq([5, 0, 4, 0].map(|at| &wanted[at].1)));
    }
}

/// Deletes, deletes of ranges, merges, and writers of several threads.
fn other_writes<P: Peer>(engine: EngineName, dir: &Path, class: Class, library: Option<&str>) {
    let settings = Settings { merges: true, value_bytes: 8, ..settings(class) };
    let peer = P::open(engine, dir, &settings, library).unwrap();
    let writers: Vec<_> = (0..3).map(|_| peer.writer().unwrap()).collect();
    std::thread::scope(|scope| {
        for (mut writer, key) in writers.into_iter().zip([b"t0", b"t1", b"t2"]) {
            scope.spawn(move || (0..100_u64).for_each(|i| writer.put(key, &i.to_le_bytes()).unwrap()));
        }
    });
    let numbers = |peer: &P| {
        let number = |value: Vec<u8>| u64::from_le_bytes(value.try_into().unwrap());
        all(peer, None).into_iter().map(|(key, value)| (key, number(value))).collect::<Vec<_>>()
    };
    assert_eq!(numbers(&peer), [b"t0", b"t1", b"t2"].map(|key| (key.to_vec(), 99)));
    for operand in [1_u64, 1 << 40] {
        peer.merge(b"s0", &operand.to_le_bytes()).unwrap();
        peer.merge(b"t1", &operand.to_le_bytes()).unwrap();
        peer.settle().unwrap();
    }
    peer.delete(b"t0").unwrap();
    peer.delete_range(b"t2", b"t3").unwrap();
    let left = [(b"s0".to_vec(), 1 + (1 << 40)), (b"t1".to_vec(), 100 + (1 << 40))];
    assert_eq!(numbers(&peer), left);
    peer.compact().unwrap();
    assert_eq!(numbers(&peer), left, "compacted");
    peer.close().unwrap();
}

fn readers_beside_a_writer<P: Peer>(peer: &P, engine: EngineName) {
    let readers: Vec<_> = (0..3).map_while(|_| peer.reader().ok()).collect();
    let many = engine.shim() != Some("sqlite");
    assert_eq!(readers.len(), if many { 3 } else { 1 });
    std::thread::scope(|scope| {
        for mut reader in readers {
            scope.spawn(move || {
                for _ in 0..200 {
                    assert_eq!(value(&mut reader, b"a1").as_deref(), Some(&b"one"[..]));
                    assert!(value(&mut reader, b"c1").is_some());
                }
            });
        }
        for i in 0..50_u8 {
            peer.put(b"c1", &[i]).unwrap();
        }
    });
    assert_eq!(value(&mut peer.reader().unwrap(), b"c1"), Some(vec![49]), "a reader sees what was written");
}

macro_rules! engines {
    ($($test:ident: $peer:ty, $engine:ident;)*) => {
        $(#[test]
        fn $test() {
            in_a_process::<$peer>(EngineName::$engine);
        })*
    };
}

engines! {
    ashlardb: super::Ashlar, Ashlardb;
    rocksdb: super::RocksDb, Rocksdb;
    leveldb: super::Shim, Leveldb;
    tidesdb: super::Shim, Tidesdb;
    wiredtiger: super::Shim, Wiredtiger;
    wiredtiger_lsm: super::Shim, WiredtigerLsm;
    treedb: super::Shim, Treedb;
    sqlite: super::Shim, Sqlite;
    sqlite_rollback: super::Shim, SqliteRollback;
    lmdb: super::Shim, Lmdb;
}

#[cfg(feature = "fjall")]
engines! {
    fjall: super::Fjall, Fjall;
}

#[cfg(feature = "redb")]
engines! {
    redb: super::Redb, Redb;
}
