//! Write batches, and handlers of Java that walk over them.

use crate::classes::{Class, Method};
use crate::db::FamilyObject;
use crate::door::Result;
use crate::env::{Env, Global, Local, MethodId, boolean, int, long, object};
use crate::handles::{self, Object};
pub use ashlar_compat::batch::Kind;
use ashlar_compat::batch::{Op, operations};
use ashlardb::{Error, FamilyId, Write, WriteBatch};
use jni_sys::jvalue;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// `WriteBatch`.
#[derive(Debug, Default)]
pub struct BatchObject {
    batch: Mutex<WriteBatch>,
    /// Where the WAL ends: bytes, operations, and RocksDB's flags of their kinds.
    mark: Mutex<Option<(usize, usize, i64)>>,
}

impl Object for BatchObject {
    const NAME: &'static str = "WriteBatch";
}

impl BatchObject {
    /// With these operations.
    pub fn of(batch: WriteBatch) -> BatchObject {
        BatchObject { batch: Mutex::new(batch), ..BatchObject::default() }
    }

    /// For one call.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, WriteBatch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self) -> MutexGuard<'_, Option<(usize, usize, i64)>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Each function below is the body of the natives that the description names.

/// An empty batch.
pub fn new() -> Result<i64> {
    Ok(handles::keep(BatchObject::default())?)
}

/// The batch of its stored form.
///
/// # Errors
/// Those of [`WriteBatch::from_data`].
pub fn from_data(data: &[u8]) -> Result<i64> {
    Ok(handles::keep(BatchObject::of(WriteBatch::from_data(data)?))?)
}

/// The stored form.
pub fn data(batch: &BatchObject) -> Result<Vec<u8>> {
    Ok(batch.lock().data()?)
}

/// The bytes of the stored form.
pub fn data_size(batch: &BatchObject) -> Result<i64> {
    Ok(i64::try_from(batch.lock().byte_len()).unwrap_or(i64::MAX))
}

/// Whether it has operations of a kind.
pub fn has(batch: &BatchObject, kind: Kind) -> Result<bool> {
    Ok(operations(&batch.lock().data()?)?.iter().any(|op| op.kind == kind))
}

/// Marks what the WAL is to have. The engine writes all operations to the WAL or none, so the mark is only kept.
pub fn mark_wal_termination_point(batch: &BatchObject) -> Result<()> {
    let own = batch.lock();
    let flags = operations(&own.data()?)?.iter().fold(0, |flags, op| flags | flag(op.kind));
    let mark = (own.byte_len(), own.len(), flags);
    drop(own);
    *batch.mark() = Some(mark);
    Ok(())
}

/// A `WriteBatch.SavePoint` of the mark.
pub fn wal_termination_point<'a>(env: Env<'a>, batch: &BatchObject) -> Result<Local<'a>> {
    static POINT: Class = Class::new("org/rocksdb/WriteBatch$SavePoint");
    static NEW: Method = Method::constructor("(JJJ)V");
    let (bytes, count, flags) = batch.mark().unwrap_or_default();
    let number = |n: usize| long(i64::try_from(n).unwrap_or(i64::MAX));
    POINT.make(env, &NEW, &[number(bytes), number(count), long(flags)])
}

/// RocksDB's flag of a batch with an operation of this kind.
fn flag(kind: Kind) -> i64 {
    let kinds = [
        Kind::Put,
        Kind::Delete,
        Kind::SingleDelete,
        Kind::Merge,
        Kind::BeginPrepare,
        Kind::EndPrepare,
        Kind::Commit,
        Kind::Rollback,
        Kind::DeleteRange,
        Kind::BlobIndex,
    ];
    kinds.iter().position(|known| *known == kind).map_or(0, |at| 2 << at)
}

/// The number of operations.
pub fn count(batch: &BatchObject) -> Result<i32> {
    Ok(i32::try_from(batch.lock().len()).unwrap_or(i32::MAX))
}

/// Removes all operations.
pub fn clear(batch: &BatchObject) -> Result<()> {
    batch.lock().clear();
    *batch.mark() = None;
    Ok(())
}

macro_rules! operations {
    ($($name:ident($($arg:ident),*);)*) => { $(
        #[doc = concat!("Adds an operation: ", stringify!($name), ".")]
        ///
        /// # Errors
        /// Those of [`Write`]. RocksDB's `MemoryLimit`: the batch would have more bytes than it may.
        pub fn $name(batch: &BatchObject, family: Option<&FamilyObject>, $($arg: &[u8]),*) -> Result<()> {
            let to = batch.lock();
            Ok(match family {
                None => to.$name($($arg),*),
                Some(family) => to.family(&family.family).$name($($arg),*),
            }?)
        }
    )* };
}
operations! {
    put(key, value);
    merge(key, value);
    delete(key);
    single_delete(key);
    delete_range(begin, end);
}

/// Adds bytes for readers of the WAL.
pub fn put_log_data(batch: &BatchObject, blob: &[u8]) -> Result<()> {
    Ok(batch.lock().put_log_data(blob)?)
}

/// Sets a savepoint.
pub fn set_savepoint(batch: &BatchObject) -> Result<()> {
    Ok(batch.lock().set_savepoint()?)
}

/// Removes the operations since the last savepoint, and the savepoint.
///
/// # Errors
/// `Io(NotFound)`: the batch has no savepoint.
pub fn rollback_to_savepoint(batch: &BatchObject) -> Result<()> {
    Ok(batch.lock().rollback_to_savepoint().map_err(|e| ashlar_compat::status::not_found(e.message()))?)
}

/// Forgets the last savepoint.
///
/// # Errors
/// `Io(NotFound)`: the batch has no savepoint.
pub fn pop_savepoint(batch: &BatchObject) -> Result<()> {
    Ok(batch.lock().pop_savepoint().map_err(|e| ashlar_compat::status::not_found(e.message()))?)
}

/// The most bytes; 0: any number.
pub fn set_max_bytes(batch: &BatchObject, bytes: i64) -> Result<()> {
    Ok(batch.lock().limit(usize::try_from(bytes).unwrap_or(0))?)
}

/// `WriteBatch.Handler`.
#[derive(Debug)]
pub struct HandlerObject(Global);

impl Object for HandlerObject {
    const NAME: &'static str = "WriteBatch.Handler";
}

/// A handler of Java.
pub fn new_handler(env: Env<'_>, this: Local<'_>) -> Result<i64> {
    Ok(handles::keep(HandlerObject(env.global(this)?))?)
}

static HANDLER: Class = Class::new("org/rocksdb/WriteBatch$Handler");

/// Shows all operations to a handler, in order, until it wants no more.
///
/// # Errors
/// `Thrown`: the handler threw. `Corruption`: the batch does not decode. `NotSupported`: an operation for which handlers of Java
/// have no method.
pub fn iterate(env: Env<'_>, batch: &BatchObject, handler: &HandlerObject) -> Result<()> {
    static CONTINUE: Method = Method::new("shouldContinue", "()Z");
    // A copy, so that the handler may use the batch.
    let data = batch.lock().data()?;
    let handler = handler.0.local(env);
    let goes_on = CONTINUE.of(env, &HANDLER)?;
    // Whether no operation of the transaction at hand came yet, which `markNoop` tells.
    let mut is_empty = true;
    for op in operations(&data)? {
        if !env.call_bool(handler, goes_on, &[])? {
            break;
        }
        show(env, handler, &op, is_empty)?;
        is_empty = matches!(
            op.kind,
            Kind::Noop | Kind::EndPrepare | Kind::Commit | Kind::CommitWithTimestamp | Kind::Rollback
        );
    }
    Ok(())
}

/// Calls a method of a handler with these arrays of bytes behind the family.
fn tell(
    env: Env<'_>,
    handler: Local<'_>,
    method: MethodId,
    family: Option<FamilyId>,
    parts: &[&[u8]],
) -> Result<()> {
    let arrays = parts.iter().map(|part| env.new_bytes(part)).collect::<Result<Vec<_>>>()?;
    let family = family.map(|id| int(i32::try_from(id.0).unwrap_or(i32::MAX)));
    let given: Vec<jvalue> = family.into_iter().chain(arrays.iter().map(|array| object(*array))).collect();
    env.call_void(handler, method, &given)?;
    arrays.into_iter().for_each(|array| env.forget(array));
    Ok(())
}

fn show(env: Env<'_>, handler: Local<'_>, op: &Op<'_>, is_empty: bool) -> Result<()> {
    static PUT: Method = Method::new("put", "(I[B[B)V");
    static MERGE: Method = Method::new("merge", "(I[B[B)V");
    static DELETE: Method = Method::new("delete", "(I[B)V");
    static SINGLE: Method = Method::new("singleDelete", "(I[B)V");
    static RANGE: Method = Method::new("deleteRange", "(I[B[B)V");
    static BLOB: Method = Method::new("putBlobIndex", "(I[B[B)V");
    static LOG: Method = Method::new("logData", "([B)V");
    static BEGIN: Method = Method::new("markBeginPrepare", "()V");
    static END: Method = Method::new("markEndPrepare", "([B)V");
    static COMMIT: Method = Method::new("markCommit", "([B)V");
    static COMMIT_AT: Method = Method::new("markCommitWithTimestamp", "([B[B)V");
    static ROLLBACK: Method = Method::new("markRollback", "([B)V");
    static NOOP: Method = Method::new("markNoop", "(Z)V");
    let both = [op.key, op.value];
    let (none, one, two) = (&both[..0], &both[..1], &both[..]);
    let family = Some(op.family);
    let (method, family, parts) = match op.kind {
        Kind::Put => (&PUT, family, two),
        Kind::Merge => (&MERGE, family, two),
        Kind::Delete => (&DELETE, family, one),
        Kind::SingleDelete => (&SINGLE, family, one),
        Kind::DeleteRange => (&RANGE, family, two),
        Kind::BlobIndex => (&BLOB, family, two),
        Kind::LogData => (&LOG, None, one),
        Kind::BeginPrepare => (&BEGIN, None, none),
        Kind::EndPrepare => (&END, None, one),
        Kind::Commit => (&COMMIT, None, one),
        Kind::CommitWithTimestamp => (&COMMIT_AT, None, two),
        Kind::Rollback => (&ROLLBACK, None, one),
        Kind::Noop => return env.call_void(handler, NOOP.of(env, &HANDLER)?, &[boolean(is_empty)]),
        Kind::Entity | Kind::TimedPut | Kind::Other => {
            let what = format!("an operation of the kind {:?} in a WriteBatch.Handler", op.kind);
            return Err(Error::not_supported(what).into());
        }
    };
    tell(env, handler, method.of(env, &HANDLER)?, family, parts)
}
