//! What a [`Bulk`] asks for, done.

use super::{Database, Functions, Opaque};
use ashlar_testkit::Change;
use ashlar_testkit::ops::{Bulk, BulkKind, BulkWrite};
use std::ffi::{CStr, CString};
use std::path::Path;

/// Type of a wide-column record of a family in a write batch.
const FAMILY_ENTITY: u8 = 0x17;

/// The newest timestamp there can be, which sees every write.
pub(super) static NEWEST: [u8; 8] = [0xff; 8];

impl Database {
    /// Does all of it; `folder` takes the files that are ingested.
    pub fn bulk(&mut self, bulk: &Bulk, folder: &Path) -> Result<(), String> {
        let f = self.functions.clone();
        // SAFETY: a constructor; destroyed below.
        let options = unsafe { (f.write_options_create)() };
        let done =
            Self::write_option(&f, options, bulk.write).and_then(|()| match (bulk.kind, bulk.batches()) {
                (_, Some(batches)) => {
                    batches.iter().try_for_each(|changes| self.write_with(changes, options))
                }
                (BulkKind::Entity, _) => self.entities(bulk, options),
                (BulkKind::Ingest, _) => self.ingest(bulk, folder),
                _ => self.transact(bulk, options),
            });
        // SAFETY: made above, destroyed once.
        unsafe { (f.write_options_destroy)(options) };
        done
    }

    fn write_option(f: &Functions, options: Opaque, write: BulkWrite) -> Result<(), String> {
        match write {
            BulkWrite::Plain => {}
            BulkWrite::WithoutLog => {
                let set = f.extra.without_log()?;
                // SAFETY: the options are live; so for those below.
                unsafe { set(options, 1) };
            }
            // SAFETY: as above.
            BulkWrite::Synced => unsafe { (f.write_options_set_sync)(options, 1) },
            BulkWrite::LowPriority | BulkWrite::Hinted => {
                let low = write == BulkWrite::LowPriority;
                let set = if low { f.extra.low_priority()? } else { f.extra.insert_hint()? };
                // SAFETY: as above.
                unsafe { set(options, 1) };
            }
        }
        Ok(())
    }

    /// Adds a change to a batch at the present time, in a family whose keys have timestamps.
    pub(super) fn stamp(&self, batch: Opaque, family: &str, change: &Change) -> Result<(), String> {
        let extra = &self.functions.extra;
        let handle = self.family(family)?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)).to_le_bytes();
        let (key, len, stamp) = (change.key().as_ptr().cast(), change.key().len(), now.as_ptr().cast());
        match change {
            Change::Put { value, .. } => {
                let put = extra.batch_put_at()?;
                // SAFETY: batch and family are live; pointers go with their lengths and are copied by the call.
                unsafe { put(batch, handle, key, len, stamp, 8, value.as_ptr().cast(), value.len()) };
                Ok(())
            }
            Change::Delete { .. } => {
                let delete = extra.batch_delete_at()?;
                // SAFETY: as above.
                unsafe { delete(batch, handle, key, len, stamp, 8) };
                Ok(())
            }
            _ => Err("families with timestamps take puts and deletes".into()),
        }
    }

    /// Wide columns, which the C API has no call for: a batch written out by hand.
    fn entities(&self, bulk: &Bulk, options: Opaque) -> Result<(), String> {
        let f = &self.functions;
        let handle = self.family(&bulk.family)?;
        let (id, batch_of) = (f.extra.family_id()?, f.extra.batch_of()?);
        // SAFETY: the handle is live.
        let id = unsafe { id(handle) };
        for (key, value) in bulk.entries() {
            let mut bytes = vec![0; 8];
            bytes.extend_from_slice(&1_u32.to_le_bytes());
            bytes.push(FAMILY_ENTITY);
            varint(&mut bytes, id);
            prefixed(&mut bytes, &key);
            prefixed(&mut bytes, &columns(&Bulk::columns(&value)));
            // SAFETY: the bytes go with their length and are copied by the call.
            let batch = unsafe { batch_of(bytes.as_ptr().cast(), bytes.len()) };
            let done = self.write_batch(batch, options);
            // SAFETY: made above, destroyed once.
            unsafe { (f.batch_destroy)(batch) };
            done?;
        }
        Ok(())
    }

    fn ingest(&self, bulk: &Bulk, folder: &Path) -> Result<(), String> {
        let path = folder.join(format!("ingested-{}.sst", bulk.seed));
        let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        self.with_file_writer(&bulk.family, &path, |writer| write_file(&self.functions, writer, bulk))?;
        self.ingest_files(&bulk.family, &[path], false)
    }

    /// Writes an SST file outside the database, with the options of the family.
    pub fn write_sst(&self, family: &str, path: &CStr, changes: &[Change]) -> Result<(), String> {
        let f = &self.functions;
        self.with_file_writer(family, path, |writer| {
            changes.iter().try_for_each(|change| write_change(f, writer, change))
        })
    }

    fn with_file_writer(
        &self,
        family: &str,
        path: &CStr,
        write: impl FnOnce(Opaque) -> Result<(), String>,
    ) -> Result<(), String> {
        let f = &self.functions;
        let options = self.family_options.get(family).copied().unwrap_or(self.options);
        let (open, finish) = (f.extra.file_open()?, f.extra.file_finish()?);
        // SAFETY: a constructor; destroyed below.
        let env = unsafe { (f.extra.env_options()?)() };
        // SAFETY: both are live, and outlive the writer.
        let writer = unsafe { (f.extra.file_writer()?)(env, options) };
        // SAFETY: the writer is live, the path NUL-terminated.
        let mut written = f.checked(|e| unsafe { open(writer, path.as_ptr(), e) });
        written = written.and_then(|()| write(writer));
        // SAFETY: the writer is live.
        written = written.and_then(|()| f.checked(|e| unsafe { finish(writer, e) }));
        // SAFETY: made above, destroyed once; so for the next.
        unsafe { (f.extra.file_destroy()?)(writer) };
        // SAFETY: as above.
        unsafe { (f.extra.env_options_destroy()?)(env) };
        written
    }

    /// Takes SST files into a family: above its entries, or `behind` them.
    pub fn ingest_files(&self, family: &str, paths: &[CString], behind: bool) -> Result<(), String> {
        let f = &self.functions;
        let family = self.family(family)?;
        let ingest = f.extra.ingest()?;
        // SAFETY: a constructor; destroyed below.
        let how = unsafe { (f.extra.ingest_options()?)() };
        if behind {
            // SAFETY: the options are live.
            unsafe { (f.extra.ingest_behind()?)(how, 1) };
        }
        let files: Vec<_> = paths.iter().map(|path| path.as_ptr()).collect();
        // SAFETY: database, family and options are live; the array holds that many NUL-terminated paths.
        let done = f.checked(|e| unsafe { ingest(self.db, family, files.as_ptr(), files.len(), how, e) });
        // SAFETY: made above, destroyed once.
        unsafe { (f.extra.ingest_options_destroy()?)(how) };
        done
    }

    fn transact(&mut self, bulk: &Bulk, options: Opaque) -> Result<(), String> {
        let f = self.functions.clone();
        let Some(transactions) = self.transactions else { return Err("not opened for transactions".into()) };
        let family = self.family(&bulk.family)?;
        // SAFETY: a constructor; destroyed below.
        let own = unsafe { (f.extra.transaction_options()?)() };
        // SAFETY: all are live; no old transaction is reused.
        let transaction = unsafe { (f.extra.begin()?)(transactions, options, own, std::ptr::null_mut()) };
        // SAFETY: made above, copied by `begin`.
        unsafe { (f.extra.transaction_options_destroy()?)(own) };
        self.open_transactions.push(transaction);
        let name = format!("{}-{}", bulk.kind.name(), bulk.seed);
        let set_name = f.extra.transaction_name()?;
        // SAFETY: the transaction is live, the name goes with its length.
        f.checked(|e| unsafe { set_name(transaction, name.as_ptr().cast(), name.len(), e) })?;
        let put = f.extra.transaction_put()?;
        for (key, value) in bulk.entries() {
            let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
            // SAFETY: transaction and family are live; pointers go with their lengths.
            f.checked(|e| unsafe { put(transaction, family, k, key.len(), v, value.len(), e) })?;
        }
        let prepare = f.extra.transaction_prepare()?;
        // SAFETY: the transaction is live.
        f.checked(|e| unsafe { prepare(transaction, e) })?;
        let decide = match bulk.kind {
            BulkKind::Committed => f.extra.transaction_commit()?,
            BulkKind::RolledBack => f.extra.transaction_rollback()?,
            _ => return Ok(()),
        };
        // SAFETY: as above.
        f.checked(|e| unsafe { decide(transaction, e) })
    }
}

/// Keys in ascending order, which a family of another order refuses.
fn write_file(f: &Functions, writer: Opaque, bulk: &Bulk) -> Result<(), String> {
    let mut entries: Vec<_> = bulk.entries().collect();
    entries.sort();
    let put = f.extra.file_put()?;
    for (key, value) in entries {
        let (k, v) = (key.as_ptr().cast(), value.as_ptr().cast());
        // SAFETY: the writer is live; pointers go with their lengths.
        f.checked(|e| unsafe { put(writer, k, key.len(), v, value.len(), e) })?;
    }
    Ok(())
}

fn write_change(f: &Functions, writer: Opaque, change: &Change) -> Result<(), String> {
    let (k, len) = (change.key().as_ptr().cast(), change.key().len());
    match change {
        Change::Put { value, .. } => {
            let put = f.extra.file_put()?;
            // SAFETY: the writer is live; pointers go with their lengths; so for those below.
            f.checked(|e| unsafe { put(writer, k, len, value.as_ptr().cast(), value.len(), e) })
        }
        Change::Merge { operand, .. } => {
            let merge = f.extra.file_merge()?;
            // SAFETY: as above.
            f.checked(|e| unsafe { merge(writer, k, len, operand.as_ptr().cast(), operand.len(), e) })
        }
        Change::Delete { .. } => {
            let delete = f.extra.file_delete()?;
            // SAFETY: as above.
            f.checked(|e| unsafe { delete(writer, k, len, e) })
        }
        Change::DeleteRange { to, .. } => {
            let delete_range = f.extra.file_delete_range()?;
            // SAFETY: as above.
            f.checked(|e| unsafe { delete_range(writer, k, len, to.as_ptr().cast(), to.len(), e) })
        }
        Change::SingleDelete { .. } => Err("SST files take no single deletions".into()),
    }
}

fn varint(out: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        let [low, ..] = number.to_le_bytes();
        out.push(low | 0x80);
        number >>= 7;
    }
    let [low, ..] = number.to_le_bytes();
    out.push(low);
}

fn prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    varint(out, u32::try_from(bytes.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(bytes);
}

/// A version, the number of columns, their names with the lengths of the values, then the values.
fn columns(columns: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, 1);
    varint(&mut out, u32::try_from(columns.len()).unwrap_or(u32::MAX));
    for (name, value) in columns {
        prefixed(&mut out, name);
        varint(&mut out, u32::try_from(value.len()).unwrap_or(u32::MAX));
    }
    for (_, value) in columns {
        out.extend_from_slice(value);
    }
    out
}
