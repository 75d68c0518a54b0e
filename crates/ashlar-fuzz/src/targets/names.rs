//! Text: names of files, the small files, OPTIONS, meta files of backups.

use super::Outcome;
use crate::corpus;
use crate::memory::{DIR, machine, put};
use ashlar_format::backup_meta::BackupMeta;
use ashlar_format::filename::{FileKind, current_content, parse_current};
use ashlar_format::options_file::{OptionsFile, escape, split_object, unescape};
use ashlar_tree::version::{read_current, read_identity};
use std::path::Path;

pub(super) fn noise() -> Vec<Vec<u8>> {
    vec![vec![0x80; 12], vec![0xff; 12], b"\x05hello\xac\x02".to_vec(), (0..32).collect()]
}

pub(super) fn small_files() -> Vec<Vec<u8>> {
    corpus::files(|name| name == "CURRENT" || name == "IDENTITY")
}

pub(super) fn current(input: &[u8]) -> Outcome {
    let env = machine();
    put(&env, "CURRENT", input);
    put(&env, "IDENTITY", input);
    let _ = read_identity(&*env.fs, Path::new(DIR)).expect("any bytes are an identity");
    let through_file = read_current(&*env.fs, Path::new(DIR));
    let number = parse_current(input).map_err(|e| e.to_string())?;
    assert_eq!(through_file.expect("parsed a moment ago"), Some(number));
    assert_eq!(parse_current(current_content(number).as_bytes()), Ok(number));
    Ok(())
}

pub(super) fn names() -> Vec<Vec<u8>> {
    let names = [
        "000012.log",
        "000012.sst",
        "5.ldb",
        "000003.blob",
        "MANIFEST-000005",
        "CURRENT",
        "IDENTITY",
        "LOCK",
        "OPTIONS-000007",
        "OPTIONS-000007.dbtmp",
        "000009.dbtmp",
        "LOG",
        "LOG.old.1700000000",
        "METADB-1",
        "COMPACTION_PROGRESS-123",
    ];
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

pub(super) fn filename(input: &[u8]) -> Outcome {
    let name = std::str::from_utf8(input).map_err(|_| "not text")?;
    let kind = FileKind::parse(name).ok_or("no file of a database")?;
    assert_eq!(FileKind::parse(&kind.name()), Some(kind), "{name} does not parse back");
    Ok(())
}

/// One of each length: they hardly differ otherwise.
pub(super) fn options() -> Vec<Vec<u8>> {
    let mut files = corpus::files(|name| name.starts_with("OPTIONS-"));
    files.sort_by_key(Vec::len);
    files.dedup_by_key(|file| file.len());
    files
}

pub(super) fn options_file(input: &[u8]) -> Outcome {
    let text = std::str::from_utf8(input).map_err(|_| "not text")?;
    let options = OptionsFile::parse(text).map_err(|e| e.to_string())?;
    let printed = options.print();
    let again = OptionsFile::parse(&printed).expect("what was printed parses");
    assert_eq!(again.print(), printed);
    for line in text.lines() {
        let raw = unescape(line);
        assert_eq!(unescape(&escape(&raw)), raw);
        let _ = split_object(&raw);
    }
    Ok(())
}

pub(super) fn backup_metas() -> Vec<Vec<u8>> {
    corpus::files(|name| name == "1" || name == "2")
}

pub(super) fn backup_meta(input: &[u8]) -> Outcome {
    let text = std::str::from_utf8(input).map_err(|_| "not text")?;
    let meta = BackupMeta::parse(text).map_err(|e| e.into_error().to_string())?;
    let printed = meta.print();
    assert_eq!(BackupMeta::parse(&printed).ok(), Some(meta), "printed and parsed again: {printed}");
    Ok(())
}
