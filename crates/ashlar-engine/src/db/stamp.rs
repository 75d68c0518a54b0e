//! Adds the write time to the values of families whose values expire; see `ashlar_read::expiry`.

use super::core::Core;
use crate::batch::WriteBatch;
use ashlar_base::{Error, FamilyId, Result};
use ashlar_format::value_suffix::{MIN_TIME, put_write_time};
use ashlar_format::write_batch::BatchOp;
use ashlar_read::expiry::unix_seconds;

impl Core {
    /// The batch with the present time at the end of each value and operand of such a family; `None`: it has none of them.
    ///
    /// # Errors
    /// `NotSupported`: an entity. `InvalidArgument`: a value that is too large with its time; a clock that is decades behind.
    #[cold]
    pub(super) fn stamped(&self, batch: &WriteBatch) -> Result<Option<WriteBatch>> {
        let expiring: Vec<FamilyId> = {
            let state = self.state();
            let with = state.families.iter().filter(|f| f.family.options().value_ttl_secs.is_some());
            with.map(|f| f.family.id()).collect()
        };
        let has_time = |op: &BatchOp<'_>| op.family().is_some_and(|family| expiring.contains(&family));
        let mut any = false;
        for op in batch.operations().iter() {
            any |= has_time(&op.map_err(|e| e.into_error())?);
        }
        if !any {
            return Ok(None);
        }
        let now = unix_seconds(&*self.env.clock);
        let Some(time) = i32::try_from(now).ok().filter(|time| *time >= MIN_TIME) else {
            let text = format!(
                "the clock shows {now} seconds since 1970, and times of values are between May 2013 and January 2038"
            );
            return Err(Error::invalid(text).hint("Set the clock of the machine"));
        };
        let mut stamped = WriteBatch::protected();
        let mut value = Vec::new();
        for op in batch.operations().iter() {
            let op = op.map_err(|e| e.into_error())?;
            let timed = has_time(&op);
            let mut with_time = |plain: &[u8]| {
                value.clear();
                value.extend_from_slice(plain);
                if timed {
                    put_write_time(&mut value, time);
                }
            };
            match op {
                BatchOp::Put { family, key, value: plain } => {
                    with_time(plain);
                    stamped.put(family, key, &value)?;
                }
                BatchOp::Merge { family, key, value: operand } => {
                    with_time(operand);
                    stamped.merge(family, key, &value)?;
                }
                BatchOp::Delete { family, key } => stamped.delete(family, key)?,
                BatchOp::SingleDelete { family, key } => stamped.single_delete(family, key)?,
                BatchOp::DeleteRange { family, begin, end } => stamped.delete_range(family, begin, end)?,
                _ => return Err(untimed()),
            }
        }
        Ok(Some(stamped))
    }
}

/// The error for what has no place for a time.
fn untimed() -> Error {
    Error::not_supported("an entity in a family whose values expire, or in one batch with such values")
        .hint("Write entities to a family without a time to live, in a batch of their own")
}
