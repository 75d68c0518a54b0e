//! `ashlar options`.

use super::{ashlar, good};
use std::path::Path;

#[test]
fn names_are_explained() {
    let text = good(&["options", "explain", "write_buffer_size"], b"");
    for part in ["ColumnFamilyOptions", "family.write_buffer_bytes", "65536 to 4294967296", "changes at once"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(good(&["options", "explain", "compression_opts.level"], b"").contains("32767"));
    assert!(good(&["options", "explain", "bottommost_compression_opts"], b"").contains("refused"));
    let near = ashlar(&["options", "explain", "write_bufer_size"], b"");
    assert_eq!(near.status, 1);
    assert!(near.err.contains("Did you mean write_buffer_size?"), "{near:?}");
}

#[test]
fn names_are_listed_by_group_and_answer() {
    let all = good(&["options", "list"], b"").lines().count();
    let of = |word: &str| good(&["options", "list", word], b"").lines().count();
    let answers =
        ["used", "mapped", "ignored", "unserved", "refused"].map(|word| of(&format!("--answer={word}")));
    assert!(answers.iter().all(|n| *n > 0) && answers.iter().sum::<usize>() == all, "{answers:?} of {all}");
    let blocks = good(&["options", "list", "--group=table", "--answer=used"], b"");
    assert!(blocks.lines().all(|line| line.starts_with("table ")) && blocks.contains(" block_size "));
    let wrong = ashlar(&["options", "list", "--group=tables"], b"");
    assert!(wrong.status == 2 && wrong.err.contains("compact_range"), "{wrong:?}");
}

/// The page is what the command prints now.
#[test]
fn the_page_is_up_to_date() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/options.md");
    let kept = std::fs::read_to_string(page).unwrap_or_default();
    let made = good(&["options", "page"], b"");
    assert!(kept == made, "docs/options.md is old: ashlar options page > docs/options.md");
}

#[test]
fn files_and_directories_are_linted() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ashlar-options/tests/golden/OPTIONS-7.8.3");
    let ran = ashlar(&["options", "lint", golden.to_str().unwrap()], b"");
    assert_eq!((ran.status, ran.err.trim()), (1, "2 settings to look at"), "{ran:?}");
    assert!(ran.out.contains("family \"default\": no-filter: filter_policy=nullptr: "), "{ran:?}");
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("db");
    let db = db.to_str().unwrap();
    good(&["db", db, "put", "--create_if_missing", "k", "v"], b"");
    assert_eq!(good(&["options", "lint", db], b""), "");
    assert_eq!(ashlar(&["options", "lint", dir.path().to_str().unwrap()], b"").status, 1);
}
