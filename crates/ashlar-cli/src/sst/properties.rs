//! Properties of a table as RocksDB 7.8 words them, and their sums over several tables.
//!
//! Properties of later releases have no line in 7.8. They are listed raw at the end, like user-collected properties.
//!
//! Source: RocksDB `table/table_properties.cc` (`ToString`), `tools/sst_dump_tool.cc`.

use crate::bytes_text::Hex;
use ashlar_format::table::Properties;
use ashlar_table::{Anatomy, unique_id};
use std::io::{self, Write};

const LINE: &str = "------------------------------";

/// Names, without `rocksdb.`, of the properties that have their own line. All others are shown raw.
const WORDED: [&str; 34] = [
    "data.size",
    "index.size",
    "index.partitions",
    "top-level.index.size",
    "index.key.is.user.key",
    "index.value.is.delta.encoded",
    "filter.size",
    "raw.key.size",
    "raw.value.size",
    "num.data.blocks",
    "num.entries",
    "num.filter_entries",
    "num.range-deletions",
    "format.version",
    "fixed.key.length",
    "column.family.id",
    "column.family.name",
    "comparator",
    "merge.operator",
    "prefix.extractor.name",
    "property.collectors",
    "filter.policy",
    "compression",
    "compression_options",
    "creation.time",
    "oldest.key.time",
    "file.creation.time",
    "sample_for_compression.slow.data.size",
    "sample_for_compression.fast.data.size",
    "creating.db.identity",
    "creating.session.identity",
    "creating.host.identity",
    "original.file.number",
    "seqno.time.map",
];

/// Shows the properties of a table after its entries.
pub(super) fn show(table: &Anatomy, properties: &Properties, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "Table Properties:\n{LINE}")?;
    lines(properties).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    writeln!(out, "  Raw user collected properties\n{LINE}")?;
    for (name, value) in raw(table) {
        write!(out, "  # ")?;
        out.write_all(name)?;
        writeln!(out, ": 0x{}", Hex(value))?;
    }
    Ok(())
}

/// The properties that have no line.
fn raw(table: &Anatomy) -> impl Iterator<Item = (&[u8], &[u8])> {
    let worded = |name: &[u8]| {
        let short = name.strip_prefix(b"rocksdb.").unwrap_or_default();
        WORDED.iter().any(|known| known.as_bytes() == short)
    };
    let all = table.named_properties().iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
    all.filter(move |(name, _)| !worded(name))
}

/// The lines of the properties, in RocksDB's order, without indent.
pub(super) fn lines(p: &Properties) -> Vec<String> {
    let mut lines = counts(p);
    lines.extend(names(p));
    lines.extend(origin(p));
    lines
}

fn counts(p: &Properties) -> Vec<String> {
    let n = |value: Option<u64>| value.unwrap_or(0);
    let average = |bytes: Option<u64>| match n(p.num_entries) {
        0 => 0.0,
        entries => n(bytes) as f64 / entries as f64,
    };
    let mut lines = vec![
        format!("# data blocks: {}", n(p.num_data_blocks)),
        format!("# entries: {}", n(p.num_entries)),
        format!("# deletions: {}", n(p.num_deletions)),
        format!("# merge operands: {}", n(p.num_merge_operands)),
        format!("# range deletions: {}", n(p.num_range_deletions)),
        format!("raw key size: {}", n(p.raw_key_size)),
        format!("raw average key size: {:.6}", average(p.raw_key_size)),
        format!("raw value size: {}", n(p.raw_value_size)),
        format!("raw average value size: {:.6}", average(p.raw_value_size)),
        format!("data block size: {}", n(p.data_size)),
        format!(
            "index block size (user-key? {}, delta-value? {}): {}",
            n(p.index_key_is_user_key),
            n(p.index_value_is_delta_encoded),
            n(p.index_size)
        ),
    ];
    if n(p.index_partitions) != 0 {
        lines.push(format!("# index partitions: {}", n(p.index_partitions)));
        lines.push(format!("top-level index size: {}", n(p.top_level_index_size)));
    }
    let whole = n(p.data_size).saturating_add(n(p.index_size)).saturating_add(n(p.filter_size));
    lines.extend([
        format!("filter block size: {}", n(p.filter_size)),
        format!("# entries for filter: {}", n(p.num_filter_entries)),
        format!("(estimated) table size: {whole}"),
    ]);
    lines
}

fn names(p: &Properties) -> Vec<String> {
    let id = p.known_family();
    vec![
        format!("filter policy name: {}", or_none(&p.filter_policy)),
        format!("prefix extractor name: {}", or_none(&p.prefix_extractor_name)),
        format!("column family ID: {}", id.map_or("N/A".to_owned(), |id| id.to_string())),
        format!("column family name: {}", or_none(&p.column_family_name)),
        format!("comparator name: {}", or_none(&p.comparator)),
        format!("merge operator name: {}", or_none(&p.merge_operator)),
        format!("property collectors names: {}", or_none(&p.property_collectors)),
        format!("SST file compression algo: {}", or_none(&p.compression)),
        format!("SST file compression options: {}", or_none(&p.compression_options)),
    ]
}

fn origin(p: &Properties) -> Vec<String> {
    let n = |value: Option<u64>| value.unwrap_or(0);
    vec![
        format!("creation time: {}", n(p.creation_time)),
        format!("time stamp of earliest key: {}", n(p.oldest_key_time)),
        format!("file creation time: {}", n(p.file_creation_time)),
        format!("slow compression estimated data size: {}", n(p.slow_compression_estimated_data_size)),
        format!("fast compression estimated data size: {}", n(p.fast_compression_estimated_data_size)),
        format!("DB identity: {}", p.db_id.as_deref().unwrap_or_default()),
        format!("DB session identity: {}", p.db_session_id.as_deref().unwrap_or_default()),
        format!("DB host id: {}", p.db_host_id.as_deref().unwrap_or_default()),
        format!("original file number: {}", n(p.original_file_number)),
        format!("unique ID: {}", public_id(p).unwrap_or("N/A".to_owned())),
        format!("Sequence number to time mapping: {}", seq_times(p.seqno_time_map.as_deref())),
    ]
}

fn or_none(text: &Option<String>) -> &str {
    text.as_deref().filter(|text| !text.is_empty()).unwrap_or("N/A")
}

/// Pairs of sequence and time, summed up from their deltas.
fn seq_times(stored: Option<&[u8]>) -> String {
    let mut c = ashlar_base::Cursor::new(stored.unwrap_or_default());
    let mut pairs = Vec::new();
    let (mut seq, mut time) = (0u64, 0u64);
    let mut left = c.varint64("count").unwrap_or(0);
    while left > 0 {
        let (Ok(more_seq), Ok(more_time)) = (c.varint64("sequence"), c.varint64("time")) else { break };
        (seq, time) = (seq.wrapping_add(more_seq), time.wrapping_add(more_time));
        pairs.push(format!("{seq}->{time}"));
        left -= 1;
    }
    pairs.join(", ")
}

/// The public id that RocksDB shows for a table, a bijection of the internal id. `None`: the properties do not define one.
fn public_id(p: &Properties) -> Option<String> {
    let number = p.original_file_number.filter(|n| *n != 0)?;
    let known = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let [first, second] = unique_id(&known(&p.db_id)?, &known(&p.db_session_id)?, number);
    let words = scramble(second, first);
    Some(format!("{}-{}", Hex(&words[0].to_le_bytes()), Hex(&words[1].to_le_bytes())))
}

/// XXH3's two-word mixing, as a bijection: (high, low) of the internal id to the first two words of the public one.
fn scramble(high: u64, low: u64) -> [u64; 2] {
    let word = |wide: u128| u64::try_from(wide & u128::from(u64::MAX)).unwrap_or(0);
    let product = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        (word(wide), word(wide >> 64))
    };
    let mut high = high.wrapping_add(17_391_078_804_906_429_400);
    let low = low.wrapping_add(6_417_269_962_128_484_497);
    let (mut l, mut h) = product(low ^ high ^ 0x5997_3f00_3336_2349, 0x9e37_79b1_85eb_ca87);
    l = l.wrapping_add(0x03c0_0000_0000_0000);
    high ^= 0xc202_7976_92d6_3d58;
    h = h.wrapping_add(high).wrapping_add((high & 0xffff_ffff).wrapping_mul(0x85eb_ca76));
    l ^= h.swap_bytes();
    let (first, carry) = product(l, 0xc2b2_ae3d_27d4_eb4f);
    let second = carry.wrapping_add(h.wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
    [avalanche(first), avalanche(second)]
}

fn avalanche(mut x: u64) -> u64 {
    x ^= x >> 37;
    x = x.wrapping_mul(0x1656_6791_9e37_79f9);
    x ^ (x >> 32)
}

/// Sums over the tables seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Summary {
    files: u64,
    data_blocks: u64,
    data: u64,
    index: u64,
    filter: u64,
}

impl Summary {
    pub(super) fn add(&mut self, p: &Properties) {
        let add = |sum: &mut u64, value: Option<u64>| *sum = sum.saturating_add(value.unwrap_or(0));
        self.files += 1;
        add(&mut self.data_blocks, p.num_data_blocks);
        add(&mut self.data, p.data_size);
        add(&mut self.index, p.index_size);
        add(&mut self.filter, p.filter_size);
    }

    pub(super) fn show(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "total number of files: {}", self.files)?;
        writeln!(out, "total number of data blocks: {}", self.data_blocks)?;
        writeln!(out, "total data block size: {}", self.data)?;
        writeln!(out, "total index block size: {}", self.index)?;
        writeln!(out, "total filter block size: {}", self.filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_rocksdb_shows() {
        let p = Properties {
            db_id: Some("5d09c42f-8244-41cf-a8c1-b08a81e36e66".into()),
            db_session_id: Some("MZ8O4F4VMLL00LJ4TTBK".into()),
            original_file_number: Some(9),
            ..Properties::default()
        };
        assert_eq!(public_id(&p).as_deref(), Some("FE8E74425AB64ABC-F1FB3E2EF8253BC8"));
        assert_eq!(public_id(&Properties::default()), None);
    }

    #[test]
    fn times_are_summed_up() {
        assert_eq!(seq_times(Some(&[2, 5, 100, 1, 7])), "5->100, 6->107");
        assert_eq!(seq_times(Some(&[100, 5, 100])), "5->100");
        assert_eq!(seq_times(None), "");
    }
}
