//! What a repair leaves is sound: values that lead elsewhere, blob files with damaged records, damaged footers, and
//! families without any table.

use crate::integrity::{check, files};
use ashlardb::{Builder, Db, ErrorKind, Read as _, RepairReport, Risk, Write as _};
use std::collections::BTreeMap;
use std::path::Path;

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn contents(dir: &Path) -> Contents {
    let db = Db::builder(dir).create(false).open().unwrap();
    let all = db.scan(..).map(|entry| entry.unwrap());
    let all = all.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    db.close().unwrap();
    all
}

fn told(account: &RepairReport, key: &[u8]) -> bool {
    account.losses.iter().any(|loss| match &loss.risk {
        Risk::Keys(spans) => spans.iter().any(|span| &*span.from <= key && key <= &*span.to),
        _ => false,
    })
}

fn two_tables(dir: &Path, format_version: u32) -> Contents {
    let options = format!("block_based_table_factory={{format_version={format_version}}}");
    let builder = Db::builder(dir).default_family(|f| f.options(&options));
    let db = builder.tune(|_, f| f.compaction.automatic = false).open().unwrap();
    let mut all = Contents::new();
    for j in 0..2 {
        for i in 0..50 {
            let key = format!("k{j}-{i}");
            db.put(&key, b"v").unwrap();
            all.insert(key.into_bytes(), b"v".to_vec());
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    all
}

/// Regression: the way that the refusal names led to the same refusal, because the copy has no tables either.
#[test]
fn a_family_without_any_table_is_salvaged_where_the_caller_says_that_they_are_lost() {
    let temp = tempfile::tempdir().unwrap();
    let [dir, into] = ["db", "copy"].map(|name| temp.path().join(name));
    let all = two_tables(&dir, 5);
    files(&dir, ".sst").iter().for_each(|table| std::fs::remove_file(table).unwrap());
    let builder: fn(&Path) -> Builder = |dir| Db::builder(dir);
    let e = builder(&dir).salvage(&into, |_| {}).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains("as db_paths"), "{e}");
    assert!(!into.exists());
    let account = builder(&dir).db_path(&dir, u64::MAX).salvage(&into, |_| {}).unwrap();
    assert!(account.losses.len() == 2 && all.keys().all(|key| told(&account, key)), "{account}");
    assert!(check(&into).damages.is_empty() && contents(&into).is_empty());
    assert!(files(&dir, ".sst").is_empty());
}
