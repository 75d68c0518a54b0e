//! The decoders, each with real inputs to damage.
//!
//! A decoder may refuse. What it accepts is looked at further: every entry is visited in both directions, and what was
//! decoded from encoded bytes must come out equal when it is encoded and decoded again.

use crate::{corpus, records, tables};
use ashlar_base::bytes::Cursor;
use ashlar_format::block::{DataBlock, EntryCursor, EntryFormat, InternalEntries, PlainEntries};
use ashlar_format::compress::{Compression, decompress};
use ashlar_format::filename::{FileKind, parse_current};
use ashlar_format::filter::FilterForm;
use ashlar_format::log_record::{PredecessorInfo, decode_compression, decode_timestamp_sizes};
use ashlar_format::options_file::OptionsFile;
use ashlar_format::table::{BlockHandle, Footer, MetaIndex, Properties};
use ashlar_format::version_edit::VersionEdit;
use ashlar_format::write_batch::BatchReader;
use ashlar_testkit::mutate::{fix_log, fix_nothing};

/// A decoder under test.
pub struct Target {
    /// What the command line calls it.
    pub name: &'static str,
    /// What it decodes.
    pub what: &'static str,
    /// Real inputs.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Puts checksums right.
    pub fix: fn(&mut [u8]),
    /// Decodes and checks; must return.
    pub decode: fn(&[u8]),
}

/// All of them.
pub const TARGETS: [Target; 14] = [
    Target {
        name: "log",
        what: "physical records of logs and MANIFESTs",
        corpus: || [corpus::logs(), corpus::manifests()].concat(),
        fix: fix_log,
        decode: log,
    },
    Target {
        name: "log_meta",
        what: "payloads of the records that are no data",
        corpus: || vec![vec![7, 0, 0, 0], vec![1, 0, 0, 0, 8, 0], vec![4, 32, 1, 17, 200, 1]],
        fix: fix_nothing,
        decode: log_meta,
    },
    Target {
        name: "write_batch",
        what: "write batches",
        corpus: || records::payloads(&corpus::logs()),
        fix: fix_nothing,
        decode: write_batch,
    },
    Target {
        name: "version_edit",
        what: "version edits",
        corpus: || records::payloads(&corpus::manifests()),
        fix: fix_nothing,
        decode: version_edit,
    },
    Target {
        name: "current",
        what: "CURRENT",
        corpus: || corpus::files(|name| name == "CURRENT"),
        fix: fix_nothing,
        decode: |input| {
            let _ = parse_current(input);
        },
    },
    Target { name: "filename", what: "names of files", corpus: names, fix: fix_nothing, decode: filename },
    Target {
        name: "options_file",
        what: "OPTIONS files",
        corpus: || corpus::files(|name| name.starts_with("OPTIONS-")),
        fix: fix_nothing,
        decode: options_file,
    },
    Target {
        name: "footer",
        what: "footers of tables",
        corpus: || tables::blocks().tails,
        fix: fix_nothing,
        decode: footer,
    },
    Target {
        name: "meta_index",
        what: "metaindex blocks",
        corpus: || tables::blocks().meta,
        fix: fix_nothing,
        decode: meta_index,
    },
    Target {
        name: "properties",
        what: "properties blocks",
        corpus: || tables::blocks().properties,
        fix: fix_nothing,
        decode: properties,
    },
    Target {
        name: "index_block",
        what: "index blocks, in every form",
        corpus: || tables::blocks().index,
        fix: fix_nothing,
        decode: index_block,
    },
    Target {
        name: "data_block",
        what: "data blocks",
        corpus: || tables::blocks().data,
        fix: fix_nothing,
        decode: |input| visit(input, InternalEntries),
    },
    Target {
        name: "filter",
        what: "filter blocks",
        corpus: || tables::blocks().filters,
        fix: fix_nothing,
        decode: filter,
    },
    Target {
        name: "decompress",
        what: "stored blocks of every codec",
        corpus: || tables::blocks().stored,
        fix: fix_nothing,
        decode: stored,
    },
];

fn log(input: &[u8]) {
    let mut bytes = 0;
    records::walk(input, |_, payload| bytes += payload.len());
    assert!(bytes <= input.len(), "more payload than file");
}

fn log_meta(input: &[u8]) {
    let _ = decode_compression(input);
    if let Ok(sizes) = decode_timestamp_sizes(input) {
        assert!(sizes.len() <= input.len(), "more sizes than bytes");
    }
    if let Ok(info) = PredecessorInfo::decode(input) {
        assert_eq!(PredecessorInfo::decode(&info.encode()), Ok(info));
    }
}

fn write_batch(input: &[u8]) {
    let Ok(reader) = BatchReader::new(input) else { return };
    let valid = reader.validate().is_ok();
    let mut records = 0;
    for op in reader.iter().take(input.len() + 1) {
        if op.is_err() {
            assert!(!valid, "validated, then malformed");
            return;
        }
        records += 1;
    }
    assert!(valid && records <= input.len(), "more records than bytes");
}

fn version_edit(input: &[u8]) {
    let Ok(edit) = VersionEdit::decode(input) else { return };
    let mut again = Vec::new();
    edit.encode(&mut again);
    assert_eq!(VersionEdit::decode(&again).as_ref(), Ok(&edit), "not equal after encode and decode");
}

fn names() -> Vec<Vec<u8>> {
    let names = [
        "000012.log",
        "000012.sst",
        "5.ldb",
        "000003.blob",
        "MANIFEST-000005",
        "CURRENT",
        "IDENTITY",
        "LOCK",
        "OPTIONS-000007",
        "OPTIONS-000007.dbtmp",
        "000009.dbtmp",
        "LOG",
        "LOG.old.1700000000",
        "METADB-1",
    ];
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

fn filename(input: &[u8]) {
    let Ok(name) = std::str::from_utf8(input) else { return };
    let Some(kind) = FileKind::parse(name) else { return };
    assert_eq!(FileKind::parse(&kind.name()), Some(kind), "{name} does not parse back");
}

fn options_file(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(options) = OptionsFile::parse(text) else { return };
    let printed = options.print();
    let again = OptionsFile::parse(&printed).expect("what was printed parses");
    assert_eq!(again.print(), printed);
}

fn footer(input: &[u8]) {
    for file_len in [input.len() as u64, 6006, 1 << 40] {
        if let Ok((footer, start)) = Footer::decode(input, file_len) {
            assert!(footer.metaindex.end_with_trailer().is_some_and(|end| end <= start && start < file_len));
        }
    }
}

fn meta_index(input: &[u8]) {
    visit(input, PlainEntries);
    if let Ok(meta) = MetaIndex::decode(input) {
        let again = MetaIndex::decode(&meta.encode()).expect("what was encoded decodes");
        assert!(again.iter().eq(meta.iter()));
    }
}

fn properties(input: &[u8]) {
    if let Ok(properties) = Properties::decode(input) {
        let _ = (properties.index_kind(), properties.index_entries());
        Properties::decode(&properties.encode()).expect("what was encoded decodes");
    }
    let _ = Properties::global_seqno_place(input);
}

fn index_block(input: &[u8]) {
    let Some((form, block)) = input.split_first() else { return };
    visit(block, tables::form_of(*form));
    let _ = BlockHandle::decode(&mut Cursor::new(block));
}

/// Visits all entries forwards and backwards; when neither fails both see the same keys.
fn visit<F: EntryFormat>(input: &[u8], format: F) {
    let Ok(block) = DataBlock::parse(input) else { return };
    let steps = input.len() + 1;
    let mut cursor = EntryCursor::new(format);
    let mut forwards = Vec::new();
    let mut fine = cursor.first(&block).is_ok();
    while fine && cursor.is_on_entry() {
        forwards.push(cursor.key().to_vec());
        assert!(forwards.len() <= steps, "more entries than bytes");
        fine = cursor.next(&block).is_ok();
    }
    let mut backwards = Vec::new();
    let mut back = cursor.last(&block).is_ok();
    while back && cursor.is_on_entry() {
        backwards.push(cursor.key().to_vec());
        assert!(backwards.len() <= steps, "more entries than bytes");
        back = cursor.prev(&block).is_ok();
    }
    if fine && back && block.restart(0) == Some(0) {
        backwards.reverse();
        assert_eq!(forwards.len(), backwards.len(), "entries forwards and backwards");
        assert!(forwards == backwards, "keys forwards and backwards");
    }
}

fn filter(input: &[u8]) {
    let form = FilterForm::decode(input);
    for shift in 0..64 {
        form.may_match(input, 0x9e37_79b9_7f4a_7c15_u64.rotate_left(shift));
    }
}

fn stored(input: &[u8]) {
    let Some((byte, block)) = input.split_first() else { return };
    for kind in [Compression::from_byte(*byte), Compression::from_leveldb_byte(*byte)].into_iter().flatten() {
        if let Ok(raw) = decompress(kind, block, tables::LIMIT) {
            assert!(raw.len() <= tables::LIMIT, "larger than allowed");
        }
    }
}
