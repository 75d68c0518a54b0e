//! Families by the hundred: the OPTIONS file is whole after each change, at a cost that does not grow with each of them.

use ashlardb::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

/// The newest OPTIONS file.
fn options_file(dir: &Path) -> String {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-");
    fs::read_to_string(files.filter(named).max().unwrap()).unwrap()
}

/// The line of a setting in the section of a family.
fn setting<'t>(text: &'t str, family: &str, name: &str) -> &'t str {
    let (_, behind) = text.split_once(&format!("[CFOptions \"{family}\"]\n")).unwrap();
    let section = behind.split("\n[").next().unwrap();
    section.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('=')).unwrap()
}

#[test]
fn the_options_file_has_the_settings_of_every_family_as_they_are_after_each_change() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let families: Vec<_> = (0..30).map(|i| db.create_family(&format!("f{i}")).unwrap()).collect();
    families[7].set_options(&[("write_buffer_size", "1234567")]).unwrap();
    let text = options_file(dir.path());
    assert_eq!(text.matches("[CFOptions ").count(), 31);
    assert_eq!(setting(&text, "f7", "write_buffer_size"), "1234567");
    let usual = setting(&text, "f8", "write_buffer_size").to_owned();
    db.drop_family(&families[7]).unwrap();
    assert!(!options_file(dir.path()).contains("\"f7\""));
    db.create_family("f7").unwrap();
    families[9].set_options(&[("write_buffer_size", "7654321")]).unwrap();
    families[9].set_options(&[("write_buffer_size", "7654322")]).unwrap();
    let text = options_file(dir.path());
    let of = |family: &str| setting(&text, family, "write_buffer_size").to_owned();
    assert_eq!(
        (of("f7"), of("f8"), of("f9"), of("default")),
        (usual.clone(), usual.clone(), "7654322".into(), usual)
    );
    db.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.families().len(), 31);
    assert_eq!(db.family("f9").unwrap().options().write_buffer_bytes, 7_654_322);
}
