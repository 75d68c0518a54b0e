//! Tables written by RocksDB and LevelDB: every block verified, every entry compared, every part built again.

use super::*;
use crate::block::{
    BlockBuilder, BlockCursor, DataBlock, HashIndex, IndexBlockBuilder, IndexCursor, IndexEntries,
    InternalEntries, is_separated, join_separated,
};
use crate::compress::{Compression, Dictionary, decompress_with};
use crate::filter::{BloomBuilder, FilterForm, xxph3_64};
use crate::unreadable::Unreadable;
use ashlar_base::InternalKey;

/// A table file and what was put into it.
struct Golden {
    name: &'static str,
    file: &'static [u8],
    expected: &'static str,
}

macro_rules! golden {
    ($($name:literal),* $(,)?) => {
        [$(Golden {
            name: $name,
            file: include_bytes!(concat!("../../../../golden/sst/", $name, ".sst")),
            expected: include_str!(concat!("../../../../golden/sst/", $name, ".expected.txt")),
        }),*]
    };
}

const ALL: [Golden; 15] = golden![
    "v2_snappy_crc32c_legacybloom",
    "v3_zlib_xxhash32_hashsearch_prefix",
    "v4_lz4_xxhash64_partitioned",
    "v5_zstd_xxh3_partitioned_dict",
    "v5_lz4hc_ribbon",
    "v5_bzip2_firstkey",
    "v5_lz4_dict",
    "v6_nochecksum_datablockhash",
    "v6_crc32c_datablockhash",
    "v6_user_timestamps",
    "v7_zstd_separated_kv",
    "v7_large_values",
    "v7_db_merge_rangedel_versions",
    "v7_db_blobindex_entities",
    "v7_embedded_blob",
];

/// Parsed parts of one file.
struct Opened {
    file: &'static [u8],
    footer: Footer,
    footer_start: u64,
    meta: MetaIndex,
    properties: Properties,
}

/// Verifies and decompresses the block at a handle.
fn load(
    file: &'static [u8],
    footer: &Footer,
    limit: u64,
    handle: BlockHandle,
    dictionary: Option<&Dictionary>,
) -> Result<(Vec<u8>, u8), Unreadable> {
    let start = usize::try_from(handle.offset).unwrap();
    let len = handle.len_with_trailer(limit).unwrap();
    let stored = &file[start..start + len];
    let (block, byte) = footer.checksum.verify(handle.offset, stored).unwrap();
    let made = footer.checksum.trailer(handle.offset, block, byte);
    // No-checksum files of old versions aside, each trailer is built again.
    assert_eq!(made, stored[block.len()..]);
    let kind = match footer.kind {
        TableKind::BlockBased => Compression::from_byte(byte),
        TableKind::LevelDb => Compression::from_leveldb_byte(byte),
    };
    Ok((decompress_with(kind.unwrap(), block, dictionary, 1 << 20)?, byte))
}

impl Opened {
    fn open(file: &'static [u8]) -> Opened {
        let len = file.len() as u64;
        let (footer, footer_start) = Footer::decode(&file[file.len() - 53..], len).unwrap();
        assert_eq!(footer.encode(footer_start).unwrap(), file[usize::try_from(footer_start).unwrap()..]);
        let (meta_block, _) = load(file, &footer, footer_start, footer.metaindex, None).unwrap();
        let meta = MetaIndex::decode(&meta_block).unwrap();
        assert_eq!(meta.encode(), meta_block);
        let place = meta.get(MetaIndex::PROPERTIES).unwrap();
        let (block, _) = load(file, &footer, footer_start, place, None).unwrap();
        let properties = Properties::decode(&block).unwrap();
        assert_eq!(properties.encode(), block);
        Opened { file, footer, footer_start, meta, properties }
    }

    fn load(&self, handle: BlockHandle) -> Result<(Vec<u8>, u8), Unreadable> {
        load(self.file, &self.footer, self.footer_start, handle, None)
    }

    /// The handles of an index block, which is built again; descends into partitions.
    fn index(
        &self,
        handle: BlockHandle,
        format: IndexEntries,
        levels: u32,
        out: &mut Vec<BlockHandle>,
    ) -> Result<(), Unreadable> {
        let (bytes, _) = self.load(handle)?;
        let block = DataBlock::parse(&bytes).unwrap();
        let interval = self.properties.index_block_restart_interval.unwrap();
        let mut again = IndexBlockBuilder::new(format, usize::try_from(interval).unwrap());
        let mut cursor = IndexCursor::new(format);
        cursor.first(&block).unwrap();
        while let Some(value) = cursor.index_value() {
            let first_key = value.first_key.map_or(&[][..], |range| range.of(&bytes));
            again.add(cursor.key(), value.handle, first_key);
            match levels {
                0 => out.push(value.handle),
                _ => self.index(value.handle, format, levels - 1, out)?,
            }
            cursor.next(&block).unwrap();
        }
        // Bit 29 of the packed word is a hint that this builder does not give.
        let (mut bytes, hint) = (bytes, 1 << 5);
        *bytes.last_mut().unwrap() &= !hint;
        assert_eq!(again.finish(), bytes);
        Ok(())
    }

    fn data_blocks(&self) -> Result<Vec<BlockHandle>, Unreadable> {
        let index = self.footer.index.or_else(|| self.meta.get(MetaIndex::INDEX)).unwrap();
        let kind = self.properties.index_kind().unwrap();
        let mut out = Vec::new();
        let levels = u32::from(kind == IndexKind::TwoLevel);
        self.index(index, self.properties.index_entries().unwrap(), levels, &mut out)?;
        Ok(out)
    }

    fn point_entries(&self) -> Option<u64> {
        Some(self.properties.num_entries? - self.properties.num_range_deletions?)
    }

    /// All entries as the expected file prints them.
    fn entries(&self) -> Result<Vec<String>, Unreadable> {
        let mut lines = Vec::new();
        let dictionary = self.meta.get(MetaIndex::DICTIONARY).map(|handle| {
            let (bytes, byte) = self.load(handle).unwrap();
            assert_eq!(byte, 0, "dictionaries are stored raw");
            Dictionary::new(bytes).unwrap()
        });
        for handle in self.data_blocks()? {
            let (bytes, _) = load(self.file, &self.footer, self.footer_start, handle, dictionary.as_ref())?;
            let bytes = if is_separated(&bytes) { join_separated(&bytes)? } else { bytes };
            let block = DataBlock::parse(&bytes)?;
            let interval = self.properties.data_block_restart_interval.unwrap();
            let interval = usize::try_from(interval).unwrap();
            let mut again = match HashIndex::of(&bytes) {
                None => BlockBuilder::new(interval),
                Some(_) => BlockBuilder::with_hash_index(interval, 0.75),
            };
            let mut cursor = BlockCursor::new(InternalEntries);
            cursor.first(&block)?;
            while let Some(entry) = cursor.entry(&block) {
                again.add(entry.key.encoded(), entry.value);
                lines.push(line(entry.key, entry.value));
                cursor.next(&block)?;
            }
            assert_eq!(again.finish(), bytes);
        }
        Ok(lines)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02X}")).collect()
}

fn line(key: InternalKey<'_>, value: &[u8]) -> String {
    let (user, trailer) = key.split();
    format!("'{}' seq:{}, type:{} => {}", hex(user), trailer.seq(), trailer.type_byte(), hex(value))
}

fn expected_entries(text: &'static str) -> Vec<&'static str> {
    text.lines().filter(|line| line.starts_with('\'')).collect()
}

#[test]
fn every_table_is_read_whole_and_built_again() {
    for golden in &ALL {
        let opened = Opened::open(golden.file);
        let lines = opened.entries().unwrap_or_else(|e| panic!("{}: {e}", golden.name));
        let expected = expected_entries(golden.expected);
        let differs = lines.iter().zip(&expected).position(|(got, want)| got != want);
        assert_eq!((differs, lines.len()), (None, expected.len()), "{}", golden.name);
        assert_eq!(Some(lines.len() as u64), opened.point_entries(), "{}", golden.name);
    }
}

#[test]
fn properties_are_those_of_the_expected_files() {
    for golden in &ALL {
        let opened = Opened::open(golden.file);
        let mut count = 0;
        for line in golden.expected.lines().filter_map(|line| line.strip_prefix("# prop ")) {
            let (name, value) = line.split_once(" = ").unwrap();
            let mut one = Properties::default();
            let bytes: Vec<u8> =
                (0..value.len() / 2).map(|i| u8::from_str_radix(&value[2 * i..][..2], 16).unwrap()).collect();
            one.other.insert(name.as_bytes().to_vec(), bytes);
            let one = Properties::decode(&one.encode()).unwrap();
            let mut joined = opened.properties.clone();
            joined.other.extend(one.other.clone());
            assert_eq!(joined, opened.properties, "{}: {name}", golden.name);
            count += 1;
        }
        assert!(count > 30, "{}", golden.name);
        assert!(opened.properties.other.is_empty(), "{}: {:?}", golden.name, opened.properties.other);
        let version = opened.footer.version;
        let text = opened.properties.compression.as_deref().unwrap();
        assert_eq!(CompressionProperty::parse(version, text).unwrap().print(), text);
    }
}

#[test]
fn bloom_filters_are_built_again() {
    let mut rebuilt = Vec::new();
    for golden in &ALL {
        let opened = Opened::open(golden.file);
        let Some(FilterPlace { scope: FilterScope::Full, handle }) = opened.meta.filter() else { continue };
        let (filter, byte) = opened.load(handle).unwrap();
        assert_eq!(byte, 0);
        let FilterForm::FastLocalBloom { lines, probes } = FilterForm::decode(&filter) else { continue };
        let mut builder = BloomBuilder::new(10.0).unwrap();
        for line in expected_entries(golden.expected) {
            let key = line[1..].split('\'').next().unwrap();
            let key: Vec<u8> =
                (0..key.len() / 2).map(|i| u8::from_str_radix(&key[2 * i..][..2], 16).unwrap()).collect();
            let stamp = if golden.name == "v6_user_timestamps" { 8 } else { 0 };
            let key = &key[..key.len() - stamp];
            builder.add(key);
            assert!(FilterForm::decode(&filter).may_match(&filter, xxph3_64(key)));
        }
        assert_eq!(builder.finish_with(lines as usize, probes), filter, "{}", golden.name);
        rebuilt.push(golden.name);
    }
    assert!(rebuilt.len() >= 3, "{rebuilt:?}");
}

#[test]
fn leveldb_tables() {
    for (file, snappy) in [
        (&include_bytes!("../../../../golden/leveldb-1.23/plain/000005.ldb")[..], false),
        (&include_bytes!("../../../../golden/leveldb-1.23/snappy/000005.ldb")[..], true),
    ] {
        let (footer, start) = Footer::decode(&file[file.len() - 53..], file.len() as u64).unwrap();
        assert_eq!((footer.kind, start), (TableKind::LevelDb, file.len() as u64 - 48));
        assert_eq!(footer.encode(start).unwrap(), file[file.len() - 48..]);
        let (index, _) = load(file, &footer, start, footer.index.unwrap(), None).unwrap();
        let block = DataBlock::parse(&index).unwrap();
        let mut cursor = IndexCursor::new(IndexEntries::default());
        cursor.first(&block).unwrap();
        let (mut entries, mut compressed) = (0, 0);
        while let Some(value) = cursor.index_value() {
            let (bytes, byte) = load(file, &footer, start, value.handle, None).unwrap();
            let data = DataBlock::parse(&bytes).unwrap();
            let mut rows = BlockCursor::new(InternalEntries);
            rows.first(&data).unwrap();
            let mut again = BlockBuilder::new(16);
            while let Some(entry) = rows.entry(&data) {
                let user = entry.key.user_key();
                assert!(
                    user.starts_with(b"key")
                        && (entry.value.is_empty() || entry.value.starts_with(b"value-"))
                );
                again.add(entry.key.encoded(), entry.value);
                rows.next(&data).unwrap();
                entries += 1;
            }
            assert_eq!(again.finish(), bytes);
            compressed += u32::from(byte == 1);
            cursor.next(&block).unwrap();
        }
        assert!(entries >= 30, "{entries}");
        assert_eq!(compressed > 0, snappy);
        let (meta, _) = load(file, &footer, start, footer.metaindex, None).unwrap();
        assert_eq!(MetaIndex::decode(&meta).unwrap().filter(), None);
    }
}

#[test]
fn a_flipped_byte_is_found_by_every_checksum() {
    for golden in &ALL {
        let opened = Opened::open(golden.file);
        if opened.footer.checksum.kind == ChecksumKind::None {
            continue;
        }
        for handle in opened.data_blocks().unwrap_or_default().into_iter().take(2) {
            let start = usize::try_from(handle.offset).unwrap();
            let stored = &golden.file[start..start + usize::try_from(handle.size).unwrap() + 5];
            for at in 0..stored.len() {
                let mut flipped = stored.to_vec();
                flipped[at] ^= 0x10;
                assert!(opened.footer.checksum.verify(handle.offset, &flipped).is_err());
            }
        }
    }
}

#[test]
fn the_global_sequence_number_can_be_masked() {
    let opened = Opened::open(ALL[0].file);
    let handle = opened.meta.get(MetaIndex::PROPERTIES).unwrap();
    let (block, _) = opened.load(handle).unwrap();
    let place = Properties::global_seqno_place(&block).unwrap();
    assert_eq!(block[place.clone()], [0; 8]);
    let mut patched = block.clone();
    patched[place.start] = 3;
    assert_eq!(Properties::decode(&patched).unwrap().global_seqno, Some(3));
    assert_eq!(Properties::global_seqno_place(&opened.meta.encode()), None);
}
