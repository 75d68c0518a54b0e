use super::*;
use ashlar_env::Env;

fn golden(name: &str) -> Vec<u8> {
    let path = format!("{}/../../golden/sst/{name}", env!("CARGO_MANIFEST_DIR"));
    let file = Env::os().unwrap().fs.open_read(Path::new(&path)).unwrap();
    let mut bytes = vec![0; usize::try_from(file.len()).unwrap()];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn anatomy(bytes: &[u8]) -> Result<Anatomy> {
    let fs = Env::mem().fs;
    fs.create(Path::new("/t.sst")).unwrap().write_at(bytes, 0).unwrap();
    Anatomy::open(fs.open_read(Path::new("/t.sst")).unwrap())
}

const TABLES: [&str; 8] = [
    "v2_snappy_crc32c_legacybloom.sst",
    "v3_zlib_xxhash32_hashsearch_prefix.sst",
    "v4_lz4_xxhash64_partitioned.sst",
    "v5_zstd_xxh3_partitioned_dict.sst",
    "v6_crc32c_datablockhash.sst",
    "v7_db_merge_rangedel_versions.sst",
    "v7_embedded_blob.sst",
    "v7_zstd_separated_kv.sst",
];

#[test]
fn blocks_cover_golden_tables() {
    for name in TABLES {
        let bytes = golden(name);
        let table = anatomy(&bytes).unwrap();
        let (places, error) = table.places();
        assert!(error.is_none(), "{name}: {error:?}");
        let mut at = 0;
        let mut entries = 0;
        for place in &places {
            // Blobs in the same file are led to by values, not by handles.
            assert!(place.handle.offset == at || name == "v7_embedded_blob.sst", "{name}: gap at {at}");
            let block = table.block(place.handle).unwrap();
            assert!(block.checksum_holds && block.content.is_ok(), "{name}: {place:?}");
            if matches!(place.role, BlockRole::Data | BlockRole::RangeDeletions) {
                let count = |_: &[u8], _: &[u8]| {
                    entries += 1;
                    Ok(())
                };
                block.entries(count).unwrap();
            }
            at = place.handle.end_with_trailer().unwrap();
        }
        assert_eq!(at, table.footer_start(), "{name}");
        assert_eq!(Some(entries), table.properties().unwrap().num_entries, "{name}");
        let counted = table.properties().unwrap().num_data_blocks.unwrap_or(0);
        // RocksDB does not count the blocks it held back for a dictionary.
        let counted_right = counted == table.data_blocks().unwrap().len() as u64;
        assert!(
            counted_right || (counted == 0 && table.meta().get(MetaIndex::DICTIONARY).is_some()),
            "{name}"
        );
    }
}

#[test]
fn damage_is_told_where_it_is() {
    for name in ["v4_lz4_xxhash64_partitioned.sst", "v7_db_merge_rangedel_versions.sst"] {
        let good = golden(name);
        let (places, _) = anatomy(&good).unwrap().places();
        for place in &places {
            let mut bytes = good.clone();
            bytes[usize::try_from(place.handle.offset).unwrap()] ^= 0x40;
            match anatomy(&bytes) {
                Err(e) => assert!(place.role == BlockRole::MetaIndex && e.is_corruption(), "{e}"),
                Ok(table) => assert!(!table.block(place.handle).unwrap().checksum_holds, "{place:?}"),
            }
        }
    }
}

#[test]
fn hostile_bytes_end_in_answers() {
    let good = golden("v5_zstd_xxh3_partitioned_dict.sst");
    let tail = good.len().saturating_sub(2000);
    let cuts = (0..good.len()).step_by(97).map(|len| good[..len].to_vec());
    let flips = (tail..good.len()).map(|at| {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        bytes
    });
    for bytes in cuts.chain(flips) {
        let Ok(table) = anatomy(&bytes) else { continue };
        for place in table.places().0 {
            if let Ok(block) = table.block(place.handle) {
                let _ = block.entries(|_, _| Ok(()));
            }
        }
    }
}
