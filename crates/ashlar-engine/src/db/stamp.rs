//! Adds the write time to the values of families whose values expire; see `ashlar_read::expiry`.
//!
//! A put with a time to live of its own gets another time: the one at which a plain put would end at the same moment.

use super::core::Core;
use crate::batch::{WriteBatch, own_ttl};
use ashlar_base::{Error, FamilyId, Result};
use ashlar_format::value_suffix::put_write_time;
use ashlar_format::write_batch::BatchOp;
use ashlar_read::expiry::WriteTime;

impl Core {
    /// The batch with a time at the end of each value and operand of such a family; `None`: it has none of them.
    ///
    /// # Errors
    /// `NotSupported`: an entity. `InvalidArgument`: a value that is too large with its time; a clock, or an end of a value,
    /// outside the times that a value can have. `Corruption`: a protected batch was changed in memory.
    #[cold]
    pub(super) fn stamped(&self, batch: &mut WriteBatch) -> Result<Option<WriteBatch>> {
        let expiring: Vec<(FamilyId, i32)> = {
            let state = self.state();
            let families = state.families.iter().map(|live| &live.family);
            families.filter_map(|family| Some((family.id(), family.options().value_ttl_secs?))).collect()
        };
        let ttl_of = |op: &BatchOp<'_>| {
            let family = op.family()?;
            expiring.iter().find(|(id, _)| *id == family).map(|(_, ttl)| *ttl)
        };
        let records = batch.encoder().checked_reader()?;
        let mut any = false;
        for op in records.iter() {
            any |= ttl_of(&op.map_err(|e| e.into_error())?).is_some();
        }
        if !any {
            return Ok(None);
        }
        let now = WriteTime::now(&*self.env.clock)?;
        let mut stamped = WriteBatch::protected();
        let mut value = Vec::new();
        for op in records.iter() {
            let op = op.map_err(|e| e.into_error())?;
            let ttl = ttl_of(&op);
            let mut with_time = |plain: &[u8], time: i32| {
                value.clear();
                value.extend_from_slice(plain);
                if ttl.is_some() {
                    put_write_time(&mut value, time);
                }
            };
            match op {
                BatchOp::Put { family, key, value: plain } => {
                    with_time(plain, now.seconds());
                    stamped.put(family, key, &value)?;
                }
                BatchOp::TimedPut { family, key, value: plain, write_time } => {
                    let (Some(own), Some(ttl)) = (own_ttl(write_time), ttl) else { return Err(untimed()) };
                    with_time(plain, now.that_ends_after(own, ttl, key)?);
                    stamped.put(family, key, &value)?;
                }
                BatchOp::Merge { family, key, value: operand } => {
                    with_time(operand, now.seconds());
                    stamped.merge(family, key, &value)?;
                }
                BatchOp::Delete { family, key } => stamped.delete(family, key)?,
                BatchOp::SingleDelete { family, key } => stamped.single_delete(family, key)?,
                BatchOp::DeleteRange { family, begin, end } => stamped.delete_range(family, begin, end)?,
                BatchOp::Entity { family, key, entity } if ttl.is_none() => {
                    stamped.put_encoded_entity(family, key, entity)?;
                }
                BatchOp::LogData(blob) => stamped.put_log_data(blob)?,
                BatchOp::Noop => {}
                _ => return Err(untimed()),
            }
        }
        Ok(Some(stamped))
    }
}

/// The error for what has no place for a time.
fn untimed() -> Error {
    Error::not_supported("an entity in a family whose values expire")
        .hint("Write entities to a family without a time to live")
}
