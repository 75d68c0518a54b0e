//! `ashlar sst`, beside RocksDB's own tool where it is installed.

use super::{Ran, ashlar, good, program};
use ashlar_testkit::Tools;
use std::path::{Path, PathBuf};
use std::process::Command;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden");

/// A table of the golden ones, by its path under `golden/`.
fn golden(name: &str) -> PathBuf {
    Path::new(GOLDEN).join(name)
}

/// A copy of a golden table, changed.
fn changed(name: &str, change: impl FnOnce(&mut Vec<u8>)) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = std::fs::read(golden(name)).unwrap();
    change(&mut bytes);
    let path = dir.path().join("000007.sst");
    std::fs::write(&path, bytes).unwrap();
    (dir, path)
}

fn file(path: &Path) -> String {
    format!("--file={}", path.display())
}

/// Every golden table that 7.8 reads, in a directory that may be written to.
fn tables_for_7_8() -> (tempfile::TempDir, Vec<PathBuf>) {
    let dir = tempfile::tempdir().unwrap();
    let mut tables = Vec::new();
    for folder in
        std::fs::read_dir(golden("rocksdb-7.8.3")).unwrap().chain(std::fs::read_dir(GOLDEN).unwrap())
    {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let from = entry.unwrap().path();
            let file = from.file_name().unwrap().to_str().unwrap().to_owned();
            let new = file.starts_with("v6") || file.starts_with("v7");
            if from.extension().is_some_and(|e| e == "sst") && !new {
                let to = dir.path().join(format!("{name}-{file}"));
                std::fs::copy(&from, &to).unwrap();
                tables.push(to);
            }
        }
    }
    tables.sort();
    assert_eq!(tables.len(), 38, "{tables:?}");
    (dir, tables)
}

/// What RocksDB's tool says, without the address it begins with.
fn sst_dump(words: &[&str]) -> Vec<u8> {
    let ran = Command::new("sst_dump").args(words).output().unwrap();
    let lines = ran.stdout.split_inclusive(|byte| *byte == b'\n');
    lines.filter(|line| !line.starts_with(b"options.env is ")).flatten().copied().collect()
}

#[test]
fn lines_are_those_of_sst_dump() {
    if let Err(skip) = Tools::available() {
        return skip.announce("lines_are_those_of_sst_dump");
    }
    let (_dir, tables) = tables_for_7_8();
    let cases: [&[&str]; 7] = [
        &["--command=scan", "--output_hex", "--show_properties", "--show_summary"],
        &["--command=check", "--show_properties"],
        &["--command=identify", "--show_properties", "--show_summary"],
        &["--command=verify", "--show_properties"],
        &["--command=none", "--show_summary"],
        &["--command=scan", "--output_hex", "--from=key1", "--to=key5", "--read_num=2"],
        &["--command=scan", "--output_hex", "--decode_blob_index", "--prefix=b"],
    ];
    for table in &tables {
        let file = file(table);
        // The tool's assertions take a bound without timestamp for a mistake.
        let stamped = file.contains("udt");
        for case in cases.iter().filter(|case| {
            !(stamped && case.iter().any(|flag| flag.starts_with("--from") || flag.starts_with("--prefix")))
        }) {
            let words = [&[file.as_str()], *case].concat();
            let ours = good(&[&["sst"], &words[..]].concat(), b"");
            assert_eq!(ours, String::from_utf8_lossy(&sst_dump(&words)), "{words:?}");
        }
    }
}

#[test]
fn raw_dumps_are_those_of_sst_dump() {
    if let Err(skip) = Tools::available() {
        return skip.announce("raw_dumps_are_those_of_sst_dump");
    }
    let (_dir, tables) = tables_for_7_8();
    for table in &tables {
        let file = file(table);
        let dump = table.to_str().unwrap().replace(".sst", "_dump.txt");
        let (theirs, said) = (sst_dump(&[&file, "--command=raw"]), std::fs::read(&dump).unwrap());
        std::fs::remove_file(&dump).unwrap();
        assert_eq!(good(&["sst", &file, "--command=raw"], b"").as_bytes(), theirs);
        assert!(std::fs::read(&dump).unwrap() == said, "{dump}");
    }
}

#[test]
fn scan_shows_a_range() {
    let path = golden("rocksdb-7.8.3/range_del/000009.sst");
    let file = file(&path);
    let head = format!("Process {}\nSst file format: block-based\n", path.display());
    let scan = |flags: &[&str]| good(&[&["sst", file.as_str(), "--command=scan"], flags].concat(), b"");
    assert_eq!(
        scan(&["--from=key3", "--to=key5"]),
        format!(
            "{head}from [6B657933] to [6B657935]\n'key3' seq:4, type:1 => v3\n'key4' seq:5, type:1 => v4\n"
        )
    );
    assert_eq!(
        scan(&["--output_hex", "--input_key_hex", "--prefix=0x6B657939"]),
        format!("{head}from [6B657939] to []\n'6B657939' seq:10, type:1 => 7639\n")
    );
    assert_eq!(scan(&["--read_num=1"]), format!("{head}from [] to []\n'key0' seq:1, type:1 => v0\n"));
    assert_eq!(good(&["sst", &file], b""), format!("{head}from [] to []\n"));
    assert_eq!(
        good(&["sst", "--parse_internal_key=0x61620107000000000000"], b""),
        "key='6162' seq:7, type:1\n"
    );
}

#[test]
fn values_with_zero_bytes_are_whole_and_newer_tables_read() {
    let operands = golden("rocksdb-7.8.3/merge_flushed/000009.sst");
    let shown = good(&["sst", &file(&operands), "--command=scan"], b"");
    assert!(shown.contains("'only' seq:3, type:2 => \x02\0\0\0\0\0\0\0\n"), "{shown:?}");
    for name in
        ["v6_user_timestamps", "v7_zstd_separated_kv", "v7_db_merge_rangedel_versions", "v7_embedded_blob"]
    {
        let path = golden(&format!("sst/{name}.sst"));
        assert!(
            good(&["sst", &file(&path), "--command=verify"], b"").ends_with("The file is ok\n"),
            "{name}"
        );
        let shown = good(&["sst", &file(&path), "--command=scan", "--output_hex"], b"");
        assert!(shown.lines().count() > 5, "{name}: {shown}");
    }
    let leveldb = golden("leveldb-1.23/snappy/000005.ldb");
    let shown = good(&["sst", &file(&leveldb), "--command=scan", "--read_num=2"], b"");
    assert!(shown.contains("Sst file format: LevelDB\nfrom [] to []\n'key00' seq:1, type:1 => "), "{shown}");
}

#[test]
fn blocks_are_explained() {
    let path = golden("rocksdb-7.8.3/range_del/000011.sst");
    let expected = "\
Sst file format: block-based
1: data at 0, 32 bytes stored, 32 raw, NoCompression, checksum ok: 1 entry, 'key3' seq 12 put .. 'key3' seq 12 put
2: index at 37, 16 bytes stored, 16 raw, NoCompression, checksum ok: 1 entry, the last separator 'key3'
3: range deletions at 58, 27 bytes stored, 27 raw, NoCompression, checksum ok: 1 entry, 'key2' seq 11 range delete .. \
'key2' seq 11 range delete
4: properties at 90, 866 bytes stored, 866 raw, NoCompression, checksum ok: 1 restart point
5: metaindex at 961, 58 bytes stored, 58 raw, NoCompression, checksum ok: 2 restart points
footer at 1024: format version 5, checksum Xxh3
";
    let head = format!("Process {}\n", path.display());
    assert_eq!(good(&["sst", &file(&path), "--command=blocks"], b""), head + expected);
    let (_dir, bad) = changed("rocksdb-7.8.3/range_del/000011.sst", |bytes| bytes[60] ^= 1);
    let ran = ashlar(&["sst", &file(&bad), "--command=blocks"], b"");
    assert_eq!(ran.status, 1);
    assert!(
        ran.out.contains("3: range deletions at 58, 27 bytes stored, NoCompression, CHECKSUM WRONG\n4: "),
        "{ran:?}"
    );
    assert!(ran.err.contains("checksum mismatch") && ran.err.contains("at offset 58"), "{ran:?}");
    let gap = golden("sst/v7_embedded_blob.sst");
    let shown = good(&["sst", &file(&gap), "--command=blocks"], b"");
    assert!(shown.contains("gap at 0: 310 bytes that no handle leads to\n1: data at 310"), "{shown}");
}

#[test]
fn damage_is_told_with_file_and_offset() {
    let (_dir, bad) = changed("rocksdb-7.8.3/compressions/000021.sst", |bytes| bytes[10] ^= 1);
    for command in ["scan", "check", "verify", "raw"] {
        let ran = ashlar(&["sst", &file(&bad), &format!("--command={command}")], b"");
        assert_eq!(ran.status, 1, "{command}: {ran:?}");
        assert!(
            ran.err.contains("checksum mismatch: ") && ran.err.contains("000007.sst at offset 0"),
            "{ran:?}"
        );
    }
    let (_dir, short) = changed("rocksdb-7.8.3/compressions/000021.sst", |bytes| bytes.truncate(3000));
    for path in [short, golden("rocksdb-7.8.3/atomic_flush/CURRENT")] {
        let ran = ashlar(&["sst", &file(&path), "--command=scan"], b"");
        assert_eq!((ran.status, ran.out.as_str()), (1, ""), "{ran:?}");
        assert!(ran.err.ends_with(&format!("{} is not a valid SST file\n", path.display())), "{ran:?}");
    }
    let missing = ashlar(&["sst", "--file=/nowhere/x"], b"");
    let err = "NotFound: /nowhere/x: No such file or directory\n".to_owned();
    assert_eq!(missing, Ran { status: 1, out: String::new(), err });
}

#[test]
fn a_bad_table_does_not_hide_the_others() {
    let (dir, _bad) = changed("rocksdb-7.8.3/range_del/000009.sst", |bytes| bytes[3] ^= 1);
    std::fs::copy(golden("rocksdb-7.8.3/range_del/000011.sst"), dir.path().join("000011.sst")).unwrap();
    std::fs::write(dir.path().join("LOG"), "text").unwrap();
    let ran = ashlar(&["sst", &file(dir.path()), "--command=scan", "--show_summary"], b"");
    assert_eq!(ran.status, 1);
    assert!(ran.out.contains("'key3' seq:12, type:1 => rewritten\ntotal number of files: 2\n"), "{ran:?}");
    let listed = good(&["sst", &file(dir.path()), "--command=identify"], b"");
    assert!(listed.ends_with("/000011.sst\nNumber of valid SST files: 2\n"), "{listed}");
    let empty = tempfile::tempdir().unwrap();
    let ran = ashlar(&["sst", &file(empty.path())], b"");
    assert_eq!(ran.status, 1);
    assert_eq!(ran.err, format!("No valid SST files found in {}\n", empty.path().display()));
}

#[test]
fn what_is_not_there_is_said() {
    let path = golden("rocksdb-7.8.3/range_del/000009.sst");
    let ran = ashlar(&["sst", &file(&path), "--command=recompress"], b"");
    assert_eq!((ran.status, ran.err.as_str()), (1, "Not implemented: --command=recompress\n"));
    for words in [
        &["--command=nonsense"][..],
        &["--prefix=a", "--from=b"],
        &["--bogus"],
        &["--input_key_hex", "--from=61"],
    ] {
        assert_eq!(ashlar(&[&["sst", &file(&path)], words].concat(), b"").status, 2, "{words:?}");
    }
    assert_eq!(ashlar(&["sst"], b"").status, 2);
    assert!(good(&["sst", "--help"], b"").contains("--show_properties"));
}

#[test]
fn under_its_name_it_is_sst_dump() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("sst_dump");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ashlar"), &link).unwrap();
    let path = golden("rocksdb-7.8.3/range_del/000009.sst");
    assert!(program(&link, &[&file(&path), "--command=verify"], b"").out.ends_with("The file is ok\n"));
}
