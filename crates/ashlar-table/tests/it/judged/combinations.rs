//! Every combination of what the options choose.

use crate::fixture::{Entries, key};
use ashlar_base::{InternalKey, ValueType};
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use ashlar_table::TableOptions;

pub struct Combination {
    pub options: TableOptions,
}

impl Combination {
    pub fn what(&self) -> String {
        let o = &self.options;
        format!(
            "v{} {:?} {:?} {} {} {:?} dictionary {}/{} hash {:?}",
            o.format_version,
            o.checksum,
            o.index,
            o.filter.map_or("no filter".to_owned(), |f| f.to_string()),
            if o.partition_filters { "partitioned" } else { "whole" },
            o.compression,
            o.max_dict_bytes,
            o.zstd_max_train_bytes,
            o.data_block_hash_ratio
        )
    }
}

const CHECKSUMS: [ChecksumKind; 5] = [
    ChecksumKind::None,
    ChecksumKind::Crc32c,
    ChecksumKind::XxHash32,
    ChecksumKind::XxHash64,
    ChecksumKind::Xxh3,
];

/// Algorithm, bytes of dictionary, bytes to train it on.
const COMPRESSIONS: [(Compression, usize, usize); 12] = [
    (Compression::None, 0, 0),
    (Compression::Snappy, 0, 0),
    (Compression::Zlib, 0, 0),
    (Compression::Zlib, 1000, 0),
    (Compression::Bzip2, 0, 0),
    (Compression::Lz4, 0, 0),
    (Compression::Lz4, 1000, 0),
    (Compression::Lz4hc, 0, 0),
    (Compression::Lz4hc, 1000, 0),
    (Compression::Zstd, 0, 0),
    (Compression::Zstd, 1000, 0),
    (Compression::Zstd, 1000, 8000),
];

/// Index, filter, filter in partitions.
fn places() -> Vec<(IndexKind, Option<FilterPolicy>, bool)> {
    let bloom = Some(FilterPolicy::Bloom { bits_per_key: 10.0 });
    let ribbon = Some(FilterPolicy::Ribbon { bloom_bits_per_key: 10.0, bloom_before_level: -1 });
    let mut places = Vec::new();
    for index in [IndexKind::BinarySearch, IndexKind::BinarySearchWithFirstKey, IndexKind::TwoLevel] {
        for filter in [None, bloom, ribbon] {
            places.push((index, filter, false));
            if filter.is_some() && index == IndexKind::TwoLevel {
                places.push((index, filter, true));
            }
        }
    }
    places
}

pub fn all() -> Vec<Combination> {
    let mut all = Vec::new();
    for (compression, max_dict_bytes, zstd_max_train_bytes) in COMPRESSIONS {
        for (index, filter, partition_filters) in places() {
            for format_version in 2..=7 {
                for checksum in CHECKSUMS {
                    for data_block_hash_ratio in [None, Some(0.75)] {
                        let at = all.len();
                        all.push(Combination {
                            options: TableOptions {
                                block_size: 400,
                                block_restart_interval: [16, 4, 1][at % 3],
                                index_restart_interval: [1, 8][at % 2],
                                index,
                                metadata_block_size: 200,
                                partition_filters,
                                data_block_hash_ratio,
                                format_version,
                                checksum,
                                compression,
                                max_dict_bytes,
                                zstd_max_train_bytes,
                                filter,
                                ..TableOptions::default()
                            },
                        });
                    }
                }
            }
        }
    }
    all
}

/// The entries of table `number`: one range of keys per table, some with versions over several blocks, some deleted.
pub fn entries(number: usize) -> Entries {
    let mut entries = Entries::new();
    for i in 0..160_u64 {
        let user_key = format!("table{number:05}/key{:06}", i * 17);
        let versions = match i {
            80 if number.is_multiple_of(3) => 40,
            _ => 1 + i % 11 / 9,
        };
        for version in (0..versions).rev() {
            let kind =
                if i % 13 == 5 && version + 1 == versions { ValueType::Delete } else { ValueType::Put };
            let value = match kind {
                ValueType::Put => {
                    format!("value {} of {i} in {number}, {}", version, "much alike ".repeat(2))
                }
                _ => String::new(),
            };
            let key = key(user_key.as_bytes(), 100 + i * 50 + version, kind);
            entries.push((key.as_key().encoded().to_vec(), value.into_bytes()));
        }
    }
    entries
}

/// The line `sst_dump` prints for an entry.
pub fn written((key, value): &(Vec<u8>, Vec<u8>)) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02X}")).collect::<String>();
    let (user_key, trailer) = InternalKey::decode(key).unwrap().split();
    format!("'{}' seq:{}, type:{} => {}", hex(user_key), trailer.seq(), trailer.type_byte(), hex(value))
}
