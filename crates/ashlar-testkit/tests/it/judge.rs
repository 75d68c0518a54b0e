//! RocksDB 7.8.3 and 11.8.1 write lists of operations; model, the other version and Debian's tools must read the same.

use ashlar_testkit::judge::{JudgeError, MERGING, Opening, digest, place};
use ashlar_testkit::ops::{Mix, draw};
use ashlar_testkit::oracle::{State, first_difference};
use ashlar_testkit::{Change, Judge, JudgeVersion, Model, Op, Skip, Tools, golden, report};
use std::path::Path;

/// This package's own build of the judge, not the one that setup left.
fn start(version: JudgeVersion) -> Result<Judge, Skip> {
    let library = place(version.name())?;
    Ok(Judge::spawn_with(Path::new(env!("CARGO_BIN_EXE_rocksdb-judge")), &library).expect("the judge starts"))
}

fn small() -> Mix {
    Mix { families: vec!["default".into(), "one".into()], max_value_bytes: 2000, ..Mix::writes_only() }
}

fn model_of(ops: &[Op]) -> Model {
    let mut model = Model::new();
    for op in ops {
        if let Op::Write { changes, .. } = op {
            model.apply(changes);
        }
    }
    model
}

fn state_of(judge: &mut Judge) -> State {
    let families = judge.families().unwrap();
    State::of(families.into_iter().map(|name| {
        let listing = judge.dump(&name).unwrap();
        (name, listing)
    }))
}

fn older_first(writer: JudgeVersion, reader: JudgeVersion, seed: u64) -> Result<(), Skip> {
    let (mut writer, mut reader) = (start(writer)?, start(reader)?);
    let dir = tempfile::tempdir().unwrap();
    let ops = draw(seed, 400, &small());
    let model = model_of(&ops);
    writer.open(dir.path(), Opening::Create, "format_version=5").expect_err("an option of the wrong place");
    writer
        .open(
            dir.path(),
            Opening::Create,
            &format!("block_based_table_factory={{format_version=5}};{MERGING}"),
        )
        .unwrap();
    writer.create_family("one").unwrap();
    writer.apply(&ops).unwrap();
    writer.close().unwrap();
    reader.open(dir.path(), Opening::Existing, MERGING).unwrap();
    assert_eq!(reader.families().unwrap(), ["default", "one"]);
    assert_eq!(model.match_prefix(&state_of(&mut reader)), Ok(model.writes()));
    for family in ["default", "one"] {
        let expected = model.now().entries(family);
        assert_eq!(reader.digest(family).unwrap(), digest(&expected));
        let mut backwards = reader.dump_backwards(family).unwrap();
        backwards.reverse();
        assert_eq!(first_difference(&expected, &backwards), None);
        for (key, value) in expected.iter().take(20) {
            assert_eq!(reader.get(family, key).unwrap().as_ref(), Some(value));
        }
    }
    assert_eq!(reader.get("default", b"never written").unwrap(), None);
    Ok(())
}

#[test]
fn a_newer_rocksdb_reads_what_an_older_wrote() {
    let done = older_first(JudgeVersion::V7, JudgeVersion::V11, 1);
    done.unwrap_or_else(|skip| skip.announce("a_newer_rocksdb_reads_what_an_older_wrote"));
}

#[test]
fn an_older_rocksdb_reads_what_a_newer_wrote_at_format_version_5() {
    let done = older_first(JudgeVersion::V11, JudgeVersion::V7, 2);
    done.unwrap_or_else(|skip| {
        skip.announce("an_older_rocksdb_reads_what_a_newer_wrote_at_format_version_5")
    });
}

fn tools_agree() -> Result<(), Skip> {
    let (tools, mut judge) = (Tools::available()?, start(JudgeVersion::V7)?);
    let dir = tempfile::tempdir().unwrap();
    // No merges: the tools have no operator.
    let ops = draw(3, 300, &Mix { merge_percent: 0, ..small() });
    judge.open(dir.path(), Opening::Create, "").unwrap();
    judge.create_family("one").unwrap();
    judge.apply(&ops).unwrap();
    judge.apply(&[Op::Flush { family: "one".into() }]).unwrap();
    let tables = judge.tables().unwrap();
    judge.close().unwrap();
    let model = model_of(&ops);
    assert_eq!(tools.families(dir.path()).unwrap(), ["default", "one"]);
    for family in ["default", "one"] {
        let listing = tools.scan(dir.path(), family).unwrap();
        assert_eq!(first_difference(&model.now().entries(family), &listing), None, "family {family}");
    }
    tools.check_consistency(dir.path()).unwrap();
    assert!(tools.manifest(dir.path()).unwrap().contains("one"));
    let checked = tools.check_tables(dir.path()).unwrap();
    assert!(checked >= tables && checked > 0, "{checked} of {tables}");
    damaged_table_is_told(&tools, dir.path());
    Ok(())
}

fn damaged_table_is_told(tools: &Tools, dir: &Path) {
    flip_a_table(dir, 10);
    tools.check_tables(dir).expect_err("a flipped bit in a data block");
}

fn flip_a_table(dir: &Path, at: usize) {
    let mut tables = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let table = tables.find(|path| path.extension().is_some_and(|ext| ext == "sst")).unwrap();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&table, bytes).unwrap();
}

#[test]
fn the_tools_agree_with_the_model_and_see_damage() {
    tools_agree().unwrap_or_else(|skip| skip.announce("the_tools_agree_with_the_model_and_see_damage"));
}

fn verified() -> Result<(), Skip> {
    let (mut new, mut old) = (start(JudgeVersion::V11)?, start(JudgeVersion::V7)?);
    let dir = tempfile::tempdir().unwrap();
    new.open(
        dir.path(),
        Opening::Create,
        "block_based_table_factory={format_version=5};compression=kNoCompression",
    )
    .unwrap();
    let change = Change::Put { family: "default".into(), key: b"k".to_vec(), value: vec![b'v'; 5000] };
    new.write(&[change], false).unwrap();
    new.apply(&[Op::Flush { family: "default".into() }]).unwrap();
    assert_eq!(new.verify(), Ok(Some(1)));
    new.close().unwrap();
    old.open(dir.path(), Opening::ReadOnly, "").unwrap();
    assert_eq!(old.verify(), Ok(None));
    old.close().unwrap();
    flip_a_table(dir.path(), 100);
    // Opening reads only the ends of a table; the flipped byte is in the middle.
    new.open(dir.path(), Opening::ReadOnly, "").unwrap();
    assert!(matches!(new.verify(), Err(JudgeError::Refused(text)) if text.starts_with("Corruption")));
    Ok(())
}

#[test]
fn the_newer_judge_verifies_whole_tables() {
    verified().unwrap_or_else(|skip| skip.announce("the_newer_judge_verifies_whole_tables"));
}

fn killed() -> Result<(), Skip> {
    let dir = tempfile::tempdir().unwrap();
    let mut judge = start(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Create, "").unwrap();
    let mut model = Model::new();
    for i in 0..200_u32 {
        let key = i.to_be_bytes().to_vec();
        let changes = [Change::Put { family: "default".into(), key, value: vec![b'v'; 50] }];
        let number = model.apply(&changes);
        judge.write(&changes, i % 50 == 0).unwrap();
        model.acknowledge(number);
    }
    judge.kill();
    let mut other = start(JudgeVersion::V7)?;
    other.open(dir.path(), Opening::ReadOnly, "").unwrap();
    assert_eq!(model.match_prefix(&state_of(&mut other)), Ok(200));
    Ok(())
}

#[test]
fn a_killed_writer_loses_nothing_acknowledged() {
    killed().unwrap_or_else(|skip| skip.announce("a_killed_writer_loses_nothing_acknowledged"));
}

fn several_families() -> Result<(), Skip> {
    let dir = tempfile::tempdir().unwrap();
    let mut judge = start(JudgeVersion::V11)?;
    judge.open(dir.path(), Opening::Create, "").unwrap();
    judge.create_families("family", 3).unwrap();
    let put = Change::Put { family: "family2".into(), key: b"k".to_vec(), value: b"v".to_vec() };
    judge.write(&[put], false).unwrap();
    assert_eq!(judge.get("family2", b"k").unwrap().as_deref(), Some(&b"v"[..]));
    judge.close().unwrap();
    judge.open(dir.path(), Opening::Existing, "").unwrap();
    assert_eq!(judge.families().unwrap(), ["default", "family0", "family1", "family2"]);
    assert!(matches!(judge.create_families("family", 1), Err(JudgeError::Refused(_))));
    judge.close().unwrap();
    Ok(())
}

#[test]
fn a_judge_makes_several_families_by_one_call() {
    several_families().unwrap_or_else(|skip| skip.announce("several_families"));
}

fn refusals() -> Result<(), Skip> {
    let dir = tempfile::tempdir().unwrap();
    for version in JudgeVersion::ALL {
        let mut judge = start(version)?;
        let missing = dir.path().join("missing");
        let refused = |answer: Result<(), JudgeError>| {
            assert!(matches!(answer, Err(JudgeError::Refused(_))), "{answer:?}")
        };
        refused(judge.open(&missing, Opening::Existing, ""));
        refused(judge.open(&missing, Opening::ReadOnly, ""));
        refused(judge.close());
        refused(judge.apply(&[Op::Flush { family: "default".into() }]));
        judge.open(&dir.path().join(version.name()), Opening::Create, "").unwrap();
        refused(judge.create_family("default"));
        refused(judge.drop_family("nowhere"));
        judge.create_family("gone").unwrap();
        judge.drop_family("gone").unwrap();
        judge.apply(&[Op::Reopen]).unwrap();
        assert_eq!(judge.families().unwrap(), ["default"]);
    }
    Ok(())
}

#[test]
fn refusals_are_answers_not_deaths() {
    refusals().unwrap_or_else(|skip| skip.announce("refusals_are_answers_not_deaths"));
}

fn golden_directories() -> Result<(), Skip> {
    let names = [
        ("rocksdb-7.8.3/column_families", "merge_operator=uint64add"),
        ("rocksdb-7.8.3/compressions", ""),
        ("rocksdb-7.8.3/manifest_history", ""),
        ("rocksdb-7.8.3/wal_ops", "merge_operator=uint64add"),
        ("rocksdb-7.8.3/wal_frag", ""),
        ("leveldb-1.23/plain", ""),
        ("leveldb-1.23/snappy", ""),
    ];
    for version in JudgeVersion::ALL {
        let (mut directories, mut entries) = (0, 0);
        // RocksDB 11 no longer reads LevelDB's tables.
        let readable =
            names.iter().filter(|(name, _)| version == JudgeVersion::V7 || !name.starts_with("leveldb"));
        for (name, options) in readable {
            let golden = golden::golden(name)?;
            let mut judge = start(version)?;
            // Debian's 7.8.3 fails one of its own assertions when it opens a LevelDB directory for writing.
            let opening = if name.starts_with("leveldb") { Opening::ReadOnly } else { Opening::Existing };
            judge.open(golden.path(), opening, options).unwrap_or_else(|e| panic!("{name}: {e}"));
            for family in &golden.families {
                let found = judge.dump(&family.family).unwrap();
                assert_eq!(
                    first_difference(&family.visible, &found),
                    None,
                    "{name} family {}",
                    family.family
                );
                entries += found.len();
            }
            directories += 1;
        }
        report::figure(&format!(
            "golden by {}: {directories} directories, {entries} entries, 0 differences",
            version.name()
        ));
    }
    Ok(())
}

#[test]
fn golden_directories_hold_what_their_listings_say() {
    golden_directories()
        .unwrap_or_else(|skip| skip.announce("golden_directories_hold_what_their_listings_say"));
}
