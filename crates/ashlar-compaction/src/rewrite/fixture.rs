//! A directory in memory for the tests of rewrites.

use super::{BlobPlan, OutputChecks, OutputPlan};
use ashlar_base::{FamilyId, FileNumber, InternalKey, Level, Order, SeqNum, Trailer, ValueType, Window};
use ashlar_blob::BlobOptions;
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_format::version_edit::{NewFile, VersionEdit};
use ashlar_table::{TableIdentity, TableOptions};
use ashlar_tree::files::{Numbers, PendingOutputs};
use ashlar_tree::version::{OpenTables, Tables, Version};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) struct TestDir {
    pub(crate) env: Env,
    pub(crate) dir: PathBuf,
    pub(crate) order: Order,
    pub(crate) pending: Arc<PendingOutputs>,
    next: Arc<AtomicU64>,
}

impl TestDir {
    pub(crate) fn new(env: Env, order: Order) -> TestDir {
        let dir = PathBuf::from("/db");
        env.fs.create_dir_all(&dir).unwrap();
        env.fs.sync_dir(Path::new("/")).unwrap();
        TestDir { env, dir, order, pending: PendingOutputs::new(), next: Arc::new(AtomicU64::new(10)) }
    }

    pub(crate) fn plan(&self) -> OutputPlan {
        let table = TableOptions { order: self.order.clone(), ..TableOptions::default() };
        let identity = TableIdentity {
            db_id: "db".into(),
            session_id: "0123456789ABCDEFGHIJ".into(),
            creation_time: 500,
            file_creation_time: 600,
            ..TableIdentity::default()
        };
        let fs = Arc::clone(&self.env.fs);
        let blobs = BlobPlan::new(FamilyId::DEFAULT, &BlobOptions::default(), 0);
        OutputPlan {
            fs,
            dir: self.dir.clone(),
            path_id: 0,
            blob_dir: self.dir.clone(),
            table,
            merge_operator: None,
            budget: None,
            statistics: None,
            blobs,
            identity,
            checks: OutputChecks::default(),
        }
    }

    pub(crate) fn numbers(&self) -> Numbers {
        let (pending, next) = (Arc::clone(&self.pending), Arc::clone(&self.next));
        Arc::new(move || pending.reserve(|| FileNumber(next.fetch_add(1, Ordering::Relaxed))))
    }

    pub(crate) fn next_file(&self) -> FileNumber {
        FileNumber(self.next.load(Ordering::Relaxed))
    }

    pub(crate) fn files(&self) -> Vec<String> {
        self.env.fs.list(&self.dir).unwrap().into_iter().map(|e| e.name).collect()
    }

    pub(crate) fn empty(&self) -> Version {
        let tables = Tables::new(
            self.env.clone(),
            self.dir.clone(),
            OpenTables::new(FramePool::new(1 << 20)),
            self.order.clone(),
        );
        Version::empty(7, tables)
    }

    /// A version with these files; epoch numbers in the order of the files.
    pub(crate) fn version(&self, files: &[(u8, NewFile)]) -> Arc<Version> {
        let mut edit = VersionEdit::default();
        for (epoch, (level, file)) in (1..).zip(files) {
            edit.add_file(Level(*level), NewFile { epoch, ..file.clone() });
        }
        Arc::new(self.empty().apply(&[edit]).unwrap())
    }
}

pub(crate) fn trailer(seq: u64, kind: ValueType) -> Trailer {
    Trailer::new(SeqNum::new(seq).unwrap(), kind)
}

/// Every entry of a file as text: `key#seq=value`, `key#seq-` for tombstones.
pub(crate) fn dump(version: &Version, file: &NewFile) -> Vec<String> {
    let meta = ashlar_tree::version::FileMeta::new(file.clone());
    let mut cursor = version.table(&meta).unwrap().cursor(1 << 16);
    cursor.seek(None).unwrap();
    let (mut lines, mut window) = (vec![], Window::new());
    while cursor.window(&mut window).unwrap() {
        for i in 0..window.len() {
            let entry = window.entry(i).unwrap();
            lines.push(line(entry.key, entry.value));
        }
    }
    lines
}

fn line(key: InternalKey<'_>, value: &[u8]) -> String {
    let (user_key, trailer) = key.split();
    let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
    match trailer.value_type() {
        Some(ValueType::Delete | ValueType::SingleDelete) => format!("{}#{}-", text(user_key), trailer.seq()),
        _ => format!("{}#{}={}", text(user_key), trailer.seq(), text(value)),
    }
}
