//! A few kilobytes that say they are gigabytes.

use super::kit::{Directory, TableFile, block, index, put};
use super::{ADDRESSES, Verdict, judge, judge_within};
use ashlar_base::FileNumber;
use ashlar_base::bytes::put_varint64;
use ashlar_format::filename::FileKind;
use ashlar_format::log_record::{COMPRESSION_ZSTD, Framing, encode_compression_record, encode_record};
use ashlar_format::table::{BlockHandle, MetaIndex};
use ashlar_testkit::report;
use ashlardb::Db;

const GIB: u64 = 1 << 30;
/// Zstd's type byte.
const ZSTD: u8 = 7;

/// A zstd frame of so many zeros: four bytes for each 128 KiB.
fn frame(zeros: u64) -> Vec<u8> {
    frame_of(b"", zeros)
}

/// A zstd frame of some bytes and zeros behind them.
fn frame_of(beginning: &[u8], zeros: u64) -> Vec<u8> {
    const BLOCK: u64 = 128 << 10;
    const RAW: u32 = 0;
    /// One byte again and again.
    const RUN: u32 = 1;
    let head = |last: bool, kind: u32, len: u64| {
        (u32::from(last) | kind << 1 | u32::try_from(len).unwrap() << 3).to_le_bytes()
    };
    // The magic number, a length of four bytes, a window of 1 MiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x50];
    let len = beginning.len() as u64;
    frame.extend_from_slice(&u32::try_from(len + zeros).unwrap().to_le_bytes());
    if len > 0 {
        frame.extend_from_slice(&head(false, RAW, len)[..3]);
        frame.extend_from_slice(beginning);
    }
    let blocks = zeros.div_ceil(BLOCK);
    for at in 0..blocks {
        let len = BLOCK.min(zeros - at * BLOCK);
        frame.extend_from_slice(&head(at + 1 == blocks, RUN, len)[..3]);
        frame.push(0);
    }
    frame
}

/// The same as a block of a table stores it.
fn bomb(zeros: u64) -> Vec<u8> {
    let mut stored = Vec::new();
    put_varint64(&mut stored, zeros);
    stored.extend(frame(zeros));
    stored
}

/// A table of one entry, in which `place` puts a bomb somewhere and answers where the index is, if it is the index.
fn table(place: impl FnOnce(&mut TableFile) -> Option<BlockHandle>) -> Directory {
    let mut file = TableFile::new();
    file.properties.compression = Some("ZSTD".to_owned());
    let handle = file.raw(&block(&[(put("k", 1), b"v")]));
    let root = place(&mut file);
    let root = root.unwrap_or_else(|| file.raw(&index(&[(put("k", 1), handle)])));
    let mut dir = Directory::new();
    dir.table(7, 1, &file.finish(root), (put("k", 1), put("k", 1)), (1, 1));
    dir
}

fn is_refused_by_its_kind(verdict: &Verdict, step: &str) {
    let said = verdict.of(step);
    assert!(said.contains("000007.sst") && said.contains("its kind may have 67108864"), "{verdict:#?}");
}

#[test]
fn blocks_that_are_no_data_are_limited_by_their_kind() {
    for name in [MetaIndex::DICTIONARY, MetaIndex::RANGE_DELETIONS] {
        let dir = table(|file| {
            let handle = file.stored(&bomb(3 * GIB), ZSTD);
            file.meta.set(name, handle);
            None
        });
        let verdict = judge(dir.finish().path());
        for step in ["forward", "backward", "get", "check"] {
            is_refused_by_its_kind(&verdict, step);
        }
        assert_eq!((verdict.of("repair"), verdict.of("check after")), ("fine", "sound"));
    }
    let dir = table(|file| Some(file.stored(&bomb(GIB), ZSTD)));
    is_refused_by_its_kind(&judge(dir.finish().path()), "forward");
}

#[test]
fn a_filter_of_gigabytes_costs_no_answer_and_is_told() {
    let dir = table(|file| {
        let handle = file.stored(&bomb(3 * GIB), ZSTD);
        file.meta.set(b"fullfilter.rocksdb.BuiltinBloomFilter", handle);
        None
    });
    let verdict = judge(dir.finish().path());
    assert_eq!((verdict.of("forward"), verdict.of("get")), ("1 entries", "Some(1)"));
    is_refused_by_its_kind(&verdict, "check");
}

/// A data block may hold a value of gigabytes. Where there is no memory for it, that is neither damage nor soundness.
#[test]
fn a_data_block_beyond_the_memory_there_is_is_neither_damaged_nor_sound() {
    let mut file = TableFile::new();
    file.properties.compression = Some("ZSTD".to_owned());
    let handle = file.stored(&bomb(3 * GIB), ZSTD);
    let root = file.raw(&index(&[(put("k", 1), handle)]));
    let mut dir = Directory::new();
    dir.table(7, 1, &file.finish(root), (put("k", 1), put("k", 1)), (1, 1));
    // The buffer grows with what was decompressed, until the address space ends.
    let verdict = judge_within(dir.finish().path(), 2 * GIB, 5 * GIB / 4);
    for step in ["forward", "backward", "get", "repair"] {
        assert!(verdict.of(step).starts_with("Busy(Memory)"), "{verdict:#?}");
    }
    assert!(verdict.of("check").starts_with("unchecked"), "{verdict:#?}");
}

#[test]
fn a_log_record_beyond_the_memory_there_is_ends_no_process() {
    let mut bytes = Vec::new();
    encode_compression_record(&mut bytes, COMPRESSION_ZSTD);
    let at = bytes.len() as u64;
    encode_record(&mut bytes, Framing::Legacy, 9, at, &frame(3 * GIB));
    let dir = Directory::new();
    dir.file(FileKind::Wal(FileNumber(9)), &bytes);
    let verdict = judge_within(dir.finish().path(), GIB, GIB);
    for step in ["forward", "check", "write", "repair"] {
        let said = verdict.of(step);
        assert!(said.starts_with("Busy(Memory)") && said.contains("000009.log"), "{verdict:#?}");
    }
}

/// RocksDB writes and reads such a value. Here it is read; no table takes it, so nothing is written and nothing is lost.
/// Only in the heavy form: the value has to be in memory.
#[test]
fn a_log_value_of_two_gibibytes_opens_read_only_and_stays() {
    if report::scale(0, 1) == 0 {
        return;
    }
    let mut batch = vec![1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    batch.extend_from_slice(&[1, 1, b'k']);
    put_varint64(&mut batch, 2 * GIB);
    let mut bytes = Vec::new();
    encode_compression_record(&mut bytes, COMPRESSION_ZSTD);
    let at = bytes.len() as u64;
    encode_record(&mut bytes, Framing::Legacy, 9, at, &frame_of(&batch, 2 * GIB));
    let dir = Directory::new();
    dir.file(FileKind::Wal(FileNumber(9)), &bytes);
    let dir = dir.finish();
    let verdict = judge_within(dir.path(), 16 * GIB, 10 * GIB);
    assert_eq!((verdict.of("forward"), verdict.of("get")), ("1 entries", "Some(2147483648)"), "{verdict:#?}");
    for step in ["write", "repair", "after"] {
        let said = verdict.of(step);
        let named = said.contains("000009.log holds at offset") && said.contains("2147483647 at most");
        assert!(said.starts_with("NotSupported") && named, "{verdict:#?}");
    }
    assert_eq!((verdict.of("check"), verdict.of("check after")), ("sound", "sound"), "{verdict:#?}");
    let db = Db::open_read_only(dir.path()).unwrap();
    assert!(db.recovery().read_only.iter().any(|reason| reason.contains("000009.log")), "{}", db.recovery());
}

#[test]
fn a_manifest_of_zeros_is_not_read_to_its_end() {
    let dir = Directory::new().finish();
    let manifest = std::fs::File::options().append(true).open(dir.path().join("MANIFEST-000005")).unwrap();
    manifest.set_len(1 << 40).unwrap();
    let verdict = judge_within(dir.path(), ADDRESSES, GIB / 4);
    assert!(verdict.of("forward").contains("more zeros than any writer reserves"), "{verdict:#?}");
}
