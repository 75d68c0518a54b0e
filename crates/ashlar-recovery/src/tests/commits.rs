//! The commit queue: what is durable, what is installed, and the effect of an invalid edit.

use super::*;
use ashlar_base::ErrorKind;
use ashlar_format::version_edit::{BlobAddition, BlobGarbage, WalAddition};
use ashlar_log::LogReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn a_new_database_is_empty_and_complete() {
    let env = Env::mem();
    assert_eq!(survey(&*env.fs, dir()).unwrap(), DirState::Absent);
    let r = fresh(&env);
    assert_eq!(survey(&*env.fs, dir()).unwrap(), DirState::Database(FileNumber(1)));
    assert_eq!(shape(&r.versions), ["0 default: log 0"]);
    assert!(r.report.is_clean());
    assert_eq!(r.versions.new_file_number(), FileNumber(3));
    assert_eq!(ashlar_tree::version::read_identity(&*env.fs, dir()).unwrap(), r.versions.db_facts().db_id);
}

#[test]
fn commits_come_back() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let a = flush(&env, &v, "a", 5).unwrap();
    let b = flush(&env, &v, "a", 9).unwrap();
    assert_eq!(v.last_sequence(), seq(9), "a commit covers the sequences of its tables");
    let manifest = v.manifest_number();
    let r = recover(&env).unwrap();
    assert_eq!(r.report.manifest, manifest);
    assert_eq!(shape(&r.versions), [format!("0 default: L0 {} {} log 0", b.0, a.0)]);
    assert_eq!(r.versions.last_sequence(), seq(9));
    assert!(r.versions.next_file_number() >= v.next_file_number());
    let epochs: Vec<_> = r.versions.families()[0].version.files().map(|(_, f)| f.file.epoch).collect();
    assert_eq!(epochs, [2, 1]);
}

#[test]
fn families_come_and_go() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let one = v.create_family("one", Order::Bytewise, 7, FileNumber(4)).unwrap();
    let two = v.create_family("two", Order::ReverseBytewise, 5, FileNumber(4)).unwrap();
    assert_eq!((one.id, two.id), (FamilyId(1), FamilyId(2)));
    assert!(v.create_family("one", Order::Bytewise, 7, FileNumber(4)).is_err());
    assert!(v.create_family("", Order::Bytewise, 7, FileNumber(4)).is_err());
    v.drop_family(two.id).unwrap();
    assert!(v.drop_family(two.id).is_err());
    assert!(v.drop_family(FamilyId::DEFAULT).is_err());
    assert!(v.commit(vec![VersionEdit::of(FamilyId(3))]).is_err());
    let r = recover(&env).unwrap();
    assert_eq!(shape(&r.versions), ["0 default: log 0", "1 one: log 4"]);
    // Ids are never reused, even after a switch of the MANIFEST.
    r.versions.commit(Vec::new()).unwrap();
    let r = recover(&env).unwrap();
    assert_eq!(r.versions.create_family("three", Order::Bytewise, 7, FileNumber(4)).unwrap().id, FamilyId(3));
    assert_eq!(list_families(&env, dir()).unwrap(), ["default", "one", "three"]);
}

/// Regression, found by `rel shuttle`: a flush of all families failed because one family was dropped meanwhile, and the
/// error reached callers that had asked for other families.
#[test]
fn of_a_dropped_family_nothing_is_kept() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let one = v.create_family("one", Order::Bytewise, 7, FileNumber(4)).unwrap();
    v.drop_family(one.id).unwrap();
    let (gone, kept) = (v.new_file_number(), v.new_file_number());
    table_file(&env, kept).unwrap();
    empty_log(&env, FileNumber(4));
    let of_it =
        VersionEdit { family: one.id, min_log_to_keep: Some(FileNumber(4)), ..flush_edit(gone, "a", 5) };
    v.commit(vec![of_it, flush_edit(kept, "b", 6)]).unwrap();
    v.commit(vec![VersionEdit { family: one.id, ..flush_edit(gone, "a", 5) }]).unwrap();
    for v in [v, recover(&env).unwrap().versions] {
        assert_eq!(shape(&v), [format!("0 default: L0 {} log 0", kept.0)]);
        assert_eq!(v.db_facts().min_log_to_keep, FileNumber(4), "what concerns all of them");
    }
}

#[test]
fn a_broken_edit_fails_alone() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let a = flush(&env, &v, "a", 5).unwrap();
    let mut wrong = flush_edit(a, "b", 6);
    let e = v.commit(vec![wrong.clone()]).unwrap_err();
    assert!(e.to_string().contains("in the tree already"), "{e}");
    wrong.family = FamilyId(7);
    assert!(v.commit(vec![wrong]).is_err());
    assert!(v.may_unlink());
    flush(&env, &v, "b", 7).unwrap();
    assert_eq!(v.families()[0].version.file_count(), 2);
    assert_eq!(shape(&recover(&env).unwrap().versions), shape(&v));
}

#[test]
fn families_come_and_go_by_commits_of_their_own() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let create = VersionEdit { family_add: Some(b"x".to_vec()), ..VersionEdit::of(FamilyId(1)) };
    let drop = VersionEdit { family_drop: true, ..VersionEdit::of(FamilyId::DEFAULT) };
    for edit in [create, drop] {
        let e = v.commit(vec![edit]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidArgument);
        assert_eq!(e.message(), "families are created and dropped by commits of their own");
    }
    assert_eq!(shape(&recover(&env).unwrap().versions), shape(&v));
}

#[test]
fn several_edits_are_one_group() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let one = v.create_family("one", Order::Bytewise, 7, FileNumber(4)).unwrap();
    let (a, b) = (v.new_file_number(), v.new_file_number());
    table_file(&env, a).unwrap();
    table_file(&env, b).unwrap();
    let before = get(&*env.fs, &dir().join(FileKind::Manifest(v.manifest_number()).name())).len();
    let second = VersionEdit { family: one.id, ..flush_edit(b, "x", 4) };
    v.commit(vec![flush_edit(a, "a", 3), second]).unwrap();
    let path = dir().join(FileKind::Manifest(v.manifest_number()).name());
    let whole = get(&*env.fs, &path);
    // A group that is cut off anywhere counts as absent.
    for len in before..whole.len() {
        env.fs.create(&path).unwrap().write_at(&whole[..len], 0).unwrap();
        let r = recover(&env).unwrap();
        assert_eq!(shape(&r.versions), ["0 default: log 0", "1 one: log 4"], "cut at {len}");
        assert_eq!(r.report.tail_dropped(), len != before, "cut at {len}: {}", r.report);
    }
    env.fs.create(&path).unwrap().write_at(&whole, 0).unwrap();
    assert_eq!(recover(&env).unwrap().versions.families()[1].version.file_count(), 1);
}

#[test]
fn a_large_manifest_is_replaced() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    v.set_manifest_bound(1);
    let mut numbers = std::collections::BTreeSet::new();
    for i in 1..60 {
        let old = v.families()[0].version.levels[0].first().map(|f| f.number());
        let number = v.new_file_number();
        table_file(&env, number).unwrap();
        let mut edit = flush_edit(number, "k", i);
        edit.deleted.extend(old.map(|n| (Level(0), n)));
        v.commit(vec![edit]).unwrap();
        numbers.insert(v.manifest_number());
    }
    assert!((3..30).contains(&numbers.len()), "{} MANIFESTs", numbers.len());
    let r = recover(&env).unwrap();
    assert_eq!(shape(&r.versions), shape(&v));
    assert_eq!(r.report.manifest, v.manifest_number());
}

/// Regression: all files of a family were one record, which was in memory four times while the MANIFEST was written.
#[test]
fn no_record_of_a_new_manifest_grows_with_the_files() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let long = "k".repeat(300 << 10);
    for i in 1..12 {
        let number = v.new_file_number();
        table_file(&env, number).unwrap();
        v.commit(vec![flush_edit(number, &format!("{long}{i:02}"), i)]).unwrap();
    }
    v.set_manifest_bound(0);
    v.commit(Vec::new()).unwrap();
    let path = dir().join(FileKind::Manifest(v.manifest_number()).name());
    let file = env.fs.open_read(&path).unwrap();
    let mut reader = LogReader::open(file, v.manifest_number(), RecoveryMode::Absolute);
    let mut lengths = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        lengths.push(record.payload.len());
    }
    assert!(
        lengths.iter().sum::<usize>() > 6 << 20 && lengths.iter().all(|len| *len < 3 << 20),
        "{lengths:?}"
    );
    let r = recover(&env).unwrap();
    assert_eq!((shape(&r.versions), r.report.is_clean()), (shape(&v), true));
}

#[test]
fn what_is_not_served_is_carried() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let one = v.create_family("one", Order::Bytewise, 7, FileNumber(4)).unwrap();
    let key = ashlar_base::InternalKeyBuf::new(b"cursor", ashlar_base::Trailer::from_raw(0x101));
    put(&env, "000090.blob", b"");
    let table = v.new_file_number();
    table_file(&env, table).unwrap();
    let mut added = flush_edit(table, "k", 1).added;
    added[0].1.oldest_blob_file = FileNumber(90);
    let garbage = |count, bytes| BlobGarbage { number: FileNumber(90), count, bytes, ignored: Vec::new() };
    let edit = VersionEdit {
        added,
        blob_added: vec![BlobAddition { number: FileNumber(90), count: 9, bytes: 900, ..Default::default() }],
        blob_garbage: vec![garbage(1, 10)],
        compact_cursors: vec![(Level(2), key.clone())],
        full_history_ts_low: Some(vec![1; 8]),
        persist_udt: Some(false),
        ..VersionEdit::of(one.id)
    };
    v.commit(vec![edit]).unwrap();
    v.commit(vec![VersionEdit { blob_garbage: vec![garbage(2, 30)], ..VersionEdit::of(one.id) }]).unwrap();
    for _ in 0..2 {
        let r = recover(&env).unwrap();
        let carried = r.versions.family(one.id).unwrap().carried.clone();
        let version = r.versions.family(one.id).unwrap().version.clone();
        let blob = &version.blobs().files()[&FileNumber(90)];
        assert_eq!((blob.added.count, blob.added.bytes), (9, 900));
        assert_eq!(blob.garbage.as_ref().map(|g| (g.count, g.bytes)), Some((3, 40)));
        assert_eq!(carried.cursors[&Level(2)], key);
        assert_eq!(carried.full_history_ts_low, Some(vec![1; 8]));
        assert_eq!(carried.persist_udt, Some(false));
        assert_eq!(r.versions.live_files().1.len(), 1);
        r.versions.commit(Vec::new()).unwrap();
    }
}

#[test]
fn tracked_logs_are_forgotten_when_they_are_obsolete() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let wal = |n, size| WalAddition { number: FileNumber(n), synced_size: size };
    let edit = VersionEdit { wal_added: vec![wal(4, Some(33)), wal(6, None)], ..VersionEdit::default() };
    v.commit(vec![edit]).unwrap();
    empty_log(&env, FileNumber(6));
    let r = recover(&env).unwrap();
    assert_eq!(r.versions.db_facts().tracked_wals.len(), 2);
    let edit = VersionEdit {
        min_log_to_keep: Some(FileNumber(6)),
        log_number: Some(FileNumber(6)),
        ..VersionEdit::default()
    };
    r.versions.commit(vec![edit]).unwrap();
    for _ in 0..2 {
        let r = recover(&env).unwrap();
        let facts = r.versions.db_facts();
        assert_eq!(facts.tracked_wals.into_iter().collect::<Vec<_>>(), [(FileNumber(6), None)]);
        assert_eq!(facts.min_log_to_keep, FileNumber(6));
        r.versions.commit(Vec::new()).unwrap();
    }
}

#[test]
fn committers_at_once() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    v.set_manifest_bound(2000);
    let (sum, installs) = (AtomicU64::new(1), Arc::new(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        for t in 0..8 {
            let (env, v, sum, installs) = (&env, &v, &sum, &installs);
            scope.spawn(move || {
                for i in 0..20 {
                    let at = sum.fetch_add(1, Ordering::Relaxed);
                    let number = v.new_file_number();
                    table_file(env, number).unwrap();
                    let edit = flush_edit(number, &format!("{t}-{i}"), at);
                    let seen = Arc::clone(installs);
                    let install = move |families: &[Arc<ashlar_tree::version::FamilyState>]| {
                        // One commit at a time, in commit order, also of those that one leader writes: the tree grows by one.
                        assert_eq!(families.len(), 1);
                        let n = families[0].version.file_count() as u64;
                        assert_eq!(seen.swap(n, Ordering::Relaxed) + 1, n);
                    };
                    v.commit_with(vec![edit], Box::new(install)).unwrap();
                    let family = v.family(FamilyId::DEFAULT).unwrap();
                    assert!(family.version.files().any(|(_, f)| f.number() == number), "read your commit");
                }
            });
        }
    });
    assert_eq!(installs.load(Ordering::Relaxed), 160);
    let r = recover(&env).unwrap();
    assert_eq!(r.versions.families()[0].version.file_count(), 160);
    assert_eq!(shape(&r.versions), shape(&v));
}

#[test]
fn old_versions_keep_their_files_alive() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let a = flush(&env, &v, "a", 5).unwrap();
    let reader = Arc::clone(&v.families()[0].version);
    let mut edit = VersionEdit::default();
    edit.delete_file(Level(0), a);
    v.commit(vec![edit]).unwrap();
    assert!(v.live_files().0.contains(&a));
    drop(reader);
    assert!(v.live_files().0.is_empty());
}

#[test]
fn a_panic_while_installing_fails_later_commits() {
    let env = Env::mem();
    let v = fresh(&env).versions;
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = v.commit_with(Vec::new(), Box::new(|_| panic!("on purpose")));
    }));
    assert!(panics.is_err());
    assert!(v.commit(Vec::new()).is_err());
    assert!(!v.may_unlink() && v.fatal().is_some());
    recover(&env).unwrap();
}

#[test]
fn what_is_live_now() {
    use ashlar_tree::files::{Live, PendingOutputs, Spared, find_obsolete};
    let env = Env::mem();
    let v = fresh(&env).versions;
    let a = flush(&env, &v, "a", 5).unwrap();
    let pending = PendingOutputs::new();
    let idle = Live::now(&v, &pending, Spared::Nothing);
    assert_eq!(idle.smallest_pending, Some(v.next_file_number()));
    let writing = pending.reserve(|| v.new_file_number());
    let committed_meanwhile = flush(&env, &v, "b", 6).unwrap();
    let live = Live::now(&v, &pending, Spared::Nothing);
    assert_eq!(live.smallest_pending, Some(writing.number()));
    let gone = |live: &Live| {
        let list = env.fs.list(dir()).unwrap();
        let found = find_obsolete(list.iter().map(|e| e.name.as_str()), live);
        found.into_iter().map(|o| o.name).collect::<Vec<_>>()
    };
    assert_eq!(gone(&live), ["MANIFEST-000001"]);
    assert_eq!(
        gone(&idle),
        ["MANIFEST-000001"],
        "a look from before spares what came after: {committed_meanwhile}"
    );
    drop(writing);
    let mut edit = VersionEdit::default();
    edit.delete_file(Level(0), a);
    v.commit(vec![edit]).unwrap();
    let table = FileKind::Table(a).name();
    assert_eq!(gone(&Live::now(&v, &pending, Spared::Nothing)), [table, "MANIFEST-000001".to_string()]);
}
