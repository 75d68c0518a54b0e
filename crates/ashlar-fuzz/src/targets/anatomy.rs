//! Tables taken apart, as tools do that explain them: nothing needs to be right but footer and metaindex.

use super::Outcome;
use crate::memory::memory_file;
use ashlar_table::{Anatomy, BlockRole};

pub(super) fn anatomy(input: &[u8]) -> Outcome {
    let table = Anatomy::open(memory_file(input)).map_err(|e| e.to_string())?;
    assert_eq!(table.size(), input.len() as u64);
    assert!(table.footer_start() < table.size(), "a footer has bytes");
    let mut refused = table.properties().err().map(|e| e.to_string());
    let listed = table.data_blocks();
    let (places, error) = table.places();
    refused = refused.or(error.map(|e| e.to_string()));
    assert!(places.is_sorted_by_key(|place| place.handle.offset), "in the order of the file");
    for place in &places {
        // Content that does not hold is an answer; a handle that leaves the file is an error.
        let block = match table.block(place.handle) {
            Ok(block) => block,
            Err(e) => {
                refused.get_or_insert(e.to_string());
                continue;
            }
        };
        assert!(block.stored().len() as u64 == place.handle.size, "as many bytes as the handle says");
        let _ = block.compression_name(table.footer().kind);
        assert!(block.checksum_holds || block.content.is_err(), "content without its checksum");
        if place.role == BlockRole::Data {
            let mut bytes = 0;
            let read = block.entries(|key, value| {
                bytes += key.len() + value.len();
                Ok(())
            });
            if let Err(e) = read {
                refused.get_or_insert(e.to_string());
            }
        }
    }
    if let Ok(listed) = listed {
        let data = |handle| places.iter().any(|place| place.handle == handle);
        assert!(listed.iter().all(|place| data(place.handle)), "a data block without a place");
    }
    refused.map_or(Ok(()), Err)
}
