//! Whether a table is sound.

use crate::Done;
use ashlar_base::{Error, FileNumber, Order};
use ashlar_cache::FramePool;
use ashlar_env::Env;
use ashlar_table::{Anatomy, ReaderOptions, TableReader};

/// Uncompressed blocks kept while a table is read: none is read twice.
const POOL_BYTES: usize = 1 << 20;

/// Compares the checksum of every block and decompresses it; where the order of the keys is a built-in one, also reads all
/// entries as a database does: order, index, filter, counts.
pub(super) fn run(env: &Env, table: &Anatomy) -> Done {
    let (places, error) = table.places();
    for place in places {
        if let Err(e) = table.block(place.handle)?.content {
            return Err(e.into());
        }
    }
    if let Some(e) = error {
        return Err(e.into());
    }
    let name = table.properties()?.comparator.as_deref().unwrap_or("leveldb.BytewiseComparator");
    let Some(order) = Order::by_name(name) else { return Ok(()) };
    let file = env.fs.open_read(table.path())?;
    let options = ReaderOptions::new(order, FramePool::new(POOL_BYTES), FileNumber(0));
    let open = TableReader::open(file, table.size(), options);
    match open.and_then(|reader| reader.verify()) {
        // What is not served yet was still looked at block by block.
        Err(e) if is_not_supported(&e) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

fn is_not_supported(e: &Error) -> bool {
    e.kind() == ashlar_base::ErrorKind::NotSupported
}
