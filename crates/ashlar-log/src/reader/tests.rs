use super::*;
use ashlar_base::{FileNumber, Result};
use ashlar_env::ReadFile;
use ashlar_format::log_record::{BLOCK_SIZE, Framing, encode_record};
use std::path::Path;
use std::sync::Arc;

/// A file that hands out its bytes in small pieces.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl ReadFile for Bytes {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let rest = self.0.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let n = rest.len().min(buf.len()).min(5000);
        buf[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
    fn path(&self) -> &Path {
        Path::new("db/000014.log")
    }
}

pub(super) const MODES: [RecoveryMode; 4] =
    [RecoveryMode::TolerateTail, RecoveryMode::Absolute, RecoveryMode::PointInTime, RecoveryMode::SkipAny];

pub(super) fn open(file: &[u8], mode: RecoveryMode) -> LogReader {
    LogReader::open(Arc::new(Bytes(file.to_vec())), FileNumber(14), mode)
}

/// All data records and the end.
fn read(file: &[u8], mode: RecoveryMode) -> (Vec<Vec<u8>>, LogEnd) {
    let mut reader = open(file, mode);
    let mut records = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        if record.kind == LogRecordKind::Data {
            records.push(record.payload.to_vec());
        }
    }
    assert_eq!(reader.next().unwrap(), None);
    assert_eq!(reader.cut_error().is_some(), matches!(reader.end(), LogEnd::Cut { .. }));
    (records, reader.end())
}

pub(super) fn write(framing: Framing, number: u32, payloads: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let (mut file, mut starts) = (Vec::new(), Vec::new());
    for payload in payloads {
        starts.push(file.len());
        let at = file.len() as u64;
        encode_record(&mut file, framing, number, at, payload);
    }
    (file, starts)
}

/// A physical record of any type with the short header.
fn raw(type_byte: u8, payload: &[u8]) -> Vec<u8> {
    use ashlar_base::checksum::{crc32c, mask_crc};
    let covered = [&[type_byte], payload].concat();
    let len = u16::try_from(payload.len()).unwrap();
    [&mask_crc(crc32c(&covered)).to_le_bytes()[..], &len.to_le_bytes(), &covered].concat()
}

fn six() -> Vec<Vec<u8>> {
    (0..6).map(|i| format!("batch of k{i}").into_bytes()).collect()
}

/// What a mode made of it: records delivered, and how the log ended.
#[derive(Debug, PartialEq)]
enum Answer {
    Clean(usize),
    Torn(usize, CutReason),
    Cut(usize, CutReason),
    Old(usize),
}
use Answer::{Clean, Cut, Old, Torn};
use CutReason::*;

fn answers(file: &[u8]) -> [Answer; 4] {
    MODES.map(|mode| {
        let (records, end) = read(file, mode);
        let n = records.len();
        match end {
            LogEnd::Clean => Clean(n),
            LogEnd::Torn { reason, offset, dropped_bytes } => {
                assert!(offset + dropped_bytes <= file.len() as u64);
                Torn(n, reason)
            }
            LogEnd::Cut { reason, .. } => Cut(n, reason),
            LogEnd::OldRecord { .. } => Old(n),
        }
    })
}

#[test]
fn the_observed_table() {
    let (file, starts) = write(Framing::Legacy, 14, &six());
    let len = file.len();
    assert_eq!(answers(&file), [Clean(6), Clean(6), Clean(6), Clean(6)]);

    let body = TruncatedBody;
    assert_eq!(answers(&file[..len - 3]), [Torn(5, body), Cut(5, body), Cut(5, body), Torn(5, body)]);

    let header = TruncatedHeader;
    let cut = &file[..starts[5] + 4];
    assert_eq!(answers(cut), [Torn(5, header), Cut(5, header), Cut(5, header), Torn(5, header)]);

    let stray = [&file[..], b"xyz"].concat();
    assert_eq!(answers(&stray), [Torn(6, header), Cut(6, header), Cut(6, header), Torn(6, header)]);

    for zeros in [1, 6, 7, 200] {
        let zeros = [&file[..], &vec![0; zeros]].concat();
        assert_eq!(answers(&zeros), [Clean(6), Clean(6), Clean(6), Clean(6)]);
    }

    // A power cut lost the sector behind the first bytes of a header.
    for kept in 1..=4 {
        let torn = [&file[..starts[5] + kept], &vec![0; len - starts[5] - kept + BLOCK_SIZE]].concat();
        assert_eq!(answers(&torn), [Clean(5), Clean(5), Clean(5), Clean(5)], "{kept}");
        let behind = [&torn[..BLOCK_SIZE], &raw(1, b"behind")].concat();
        assert!(matches!(answers(&behind)[..3], [Cut(5, Zeros), Cut(5, Zeros), Cut(5, Zeros)]), "{kept}");
    }

    let sum = ChecksumMismatch;
    let mut third = file.clone();
    third[starts[2] + 10] ^= 4;
    assert_eq!(answers(&third), [Cut(2, sum), Cut(2, sum), Cut(2, sum), Clean(2)]);

    let mut last = file.clone();
    last[len - 1] ^= 4;
    assert_eq!(answers(&last), [Cut(5, sum), Cut(5, sum), Cut(5, sum), Clean(5)]);

    let mut long = file.clone();
    long[starts[2] + 4] = 255;
    assert_eq!(answers(&long), [Torn(2, body), Cut(2, body), Cut(2, body), Torn(2, body)]);

    assert_eq!(answers(&file[..starts[4]]), [Clean(4), Clean(4), Clean(4), Clean(4)]);

    let with = |type_byte| [&file[..starts[2]], &raw(type_byte, b"what?"), &file[starts[2]..]].concat();
    let unknown = UnknownType(50);
    assert_eq!(answers(&with(50)), [Cut(2, unknown), Cut(2, unknown), Cut(2, unknown), Clean(6)]);
    assert_eq!(answers(&with(200)), [Clean(6), Clean(6), Clean(6), Clean(6)]);
}

#[test]
fn places_and_amounts() {
    let (mut file, starts) = write(Framing::Legacy, 14, &six());
    file[starts[2] + 10] ^= 4;
    let mut reader = open(&file, RecoveryMode::PointInTime);
    assert_eq!(reader.next().unwrap().unwrap().offset, 0);
    assert_eq!(reader.next().unwrap().unwrap().offset, starts[1] as u64);
    assert_eq!(reader.next().unwrap(), None);
    let (offset, dropped_bytes) = (starts[2] as u64, (file.len() - starts[2]) as u64);
    assert_eq!(reader.end(), LogEnd::Cut { offset, reason: ChecksumMismatch, dropped_bytes });
    assert_eq!(reader.good_end(), offset);
    let text = reader.cut_error().unwrap().to_string();
    assert!(text.contains("checksum mismatch") && text.contains("000014.log at offset"), "{text}");

    let mut reader = open(&file, RecoveryMode::SkipAny);
    while reader.next().unwrap().is_some() {}
    let first = Some((offset, ChecksumMismatch));
    assert_eq!(reader.skipped(), Skipped { count: 1, bytes: dropped_bytes, first });
}

#[test]
fn damage_in_an_earlier_block() {
    let big = vec![vec![1; 20_000], vec![2; 20_000], vec![3; 20_000], vec![4; 20_000]];
    for (framing, recycled) in [(Framing::Legacy, false), (Framing::Recyclable, true)] {
        let (file, starts) = write(framing, 14, &big);
        let mut long = file.clone();
        long[5] = 0xff;
        let first = if recycled { Torn(0, BadLength) } else { Cut(0, BadLength) };
        // Skipping drops the block with the first record and the head of the second.
        assert_eq!(answers(&long), [first, Cut(0, BadLength), Cut(0, BadLength), Clean(2)]);
        let mut sum = file.clone();
        sum[starts[1] + 20] ^= 1;
        let first = if recycled { Torn(1, ChecksumMismatch) } else { Cut(1, ChecksumMismatch) };
        let cut = || Cut(1, ChecksumMismatch);
        assert_eq!(answers(&sum), [first, cut(), cut(), Clean(3)]);
        let (skipped, _) = read(&sum, RecoveryMode::SkipAny);
        assert_eq!(skipped, [big[0].clone(), big[2].clone(), big[3].clone()]);
    }
}

#[test]
fn files_former_life() {
    let (old, _) = write(Framing::Recyclable, 9, &six());
    let (new, _) = write(Framing::Recyclable, 14, &six()[..2]);
    let reused = [&new[..], &old[new.len()..]].concat();
    assert_eq!(answers(&reused), [Clean(2), Clean(2), Old(2), Clean(2)]);

    let big = [vec![7; 40_000]];
    let (new, _) = write(Framing::Recyclable, 14, &big);
    let (old, _) = write(Framing::Recyclable, 9, &vec![vec![8; 100]; 500]);
    let head = [&new[..BLOCK_SIZE], &old[BLOCK_SIZE..]].concat();
    let start = old[BLOCK_SIZE..].to_vec();
    assert_eq!(start[6], 8, "the old file has a last fragment at its second block");
    let lost = MissingFragments;
    assert_eq!(answers(&head), [Torn(0, lost), Cut(0, lost), Cut(0, lost), Clean(0)]);
    let mut reader = open(&head, RecoveryMode::SkipAny);
    assert_eq!(reader.next().unwrap(), None);
    assert_eq!(reader.skipped().first, Some((BLOCK_SIZE as u64, Interrupted)));

    let (legacy, _) = write(Framing::Legacy, 14, &six());
    let (more, _) = write(Framing::Recyclable, 14, &six());
    let mixed = [legacy, more].concat();
    assert_eq!(answers(&mixed), [Cut(6, MixedForms), Cut(6, MixedForms), Cut(6, MixedForms), Clean(6)]);
}

#[test]
fn a_damaged_type_or_number_makes_no_former_life() {
    let bad = ChecksumMismatch;
    let (mut file, _) = write(Framing::Legacy, 14, &six());
    file[6] ^= 4;
    let lost = [Torn(0, bad), Cut(0, bad), Cut(0, bad)];
    assert_eq!(answers(&file)[..3], lost, "a short header that looks like a long one");
    let (mut file, starts) = write(Framing::Recyclable, 14, &six());
    file[starts[2] + 7] ^= 1;
    let lost = [Torn(2, bad), Cut(2, bad), Cut(2, bad)];
    assert_eq!(answers(&file)[..3], lost, "another number, and the checksum says otherwise");
}

#[test]
fn fragments_out_of_order() {
    let full = raw(1, b"full");
    let (first, middle, last) = (raw(2, b"fi"), raw(3, b"mi"), raw(4, b"la"));
    let whole = [first.clone(), middle.clone(), last.clone()].concat();
    assert_eq!(read(&whole, RecoveryMode::Absolute), (vec![b"fimila".to_vec()], LogEnd::Clean));
    let case =
        |parts: &[&Vec<u8>]| answers(&parts.iter().flat_map(|p| p.iter().copied()).collect::<Vec<_>>());
    let cut = |n, reason, skip| [Cut(n, reason), Cut(n, reason), Cut(n, reason), Clean(skip)];
    assert_eq!(case(&[&full, &last, &full]), cut(1, NoStart, 2));
    assert_eq!(case(&[&middle, &full]), cut(0, NoStart, 1));
    assert_eq!(case(&[&first, &full, &full]), cut(0, NoEnd, 2));
    assert_eq!(case(&[&first, &first, &last]), cut(0, NoEnd, 1));
    assert_eq!(case(&[&raw(2, b""), &full]), [Clean(1), Clean(1), Clean(1), Clean(1)]);
    assert_eq!(case(&[&first, &vec![0; 50]]), cut(0, Interrupted, 0));
    let lost = MissingFragments;
    assert_eq!(case(&[&full, &first]), [Torn(1, lost), Cut(1, lost), Cut(1, lost), Torn(1, lost)]);
    // An ignorable record ends the pending one without a word; the rest of it has no start then.
    assert_eq!(case(&[&first, &raw(0x84, b""), &last]), cut(0, NoStart, 0));
    assert_eq!(case(&[&first, &raw(60, b""), &full]), cut(0, UnknownType(60), 1));
    // A type of 0 with a length and a good checksum is an unknown type.
    assert_eq!(case(&[&full, &raw(0, b"x"), &full]), cut(1, UnknownType(0), 2));
}

#[test]
fn records_that_are_not_data() {
    let sizes = raw(10, &[0, 0, 0, 0, 8, 0]);
    let info = raw(130, &[8, 0, 0, 0, 0, 0, 0, 0, 82, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    let none = raw(9, &[0; 4]);
    let full = raw(1, b"full");
    let file = [&none[..], &info, &sizes, &full].concat();
    let mut reader = open(&file, RecoveryMode::PointInTime);
    let mut kinds = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        kinds.push((record.offset, record.kind, record.payload.len()));
    }
    let want = [
        (11, LogRecordKind::PredecessorInfo, 24),
        (42, LogRecordKind::TimestampSizes, 6),
        (55, LogRecordKind::Data, 4),
    ];
    assert_eq!(kinds, want);
    let cut = |parts: &[&[u8]], reason, skip| {
        let n = parts.len() - 2;
        assert_eq!(answers(&parts.concat()), [Cut(n, reason), Cut(n, reason), Cut(n, reason), Clean(skip)]);
    };
    cut(&[&full, &raw(10, &[0; 5]), &full], BadTimestampSizes, 2);
    cut(&[&full, &raw(10, &[0; 12]), &full], BadTimestampSizes, 2);
    cut(&[&full, &raw(130, &[0; 23]), &full], BadPredecessorInfo, 2);
    cut(&[&raw(9, &[1, 0, 0, 0]), &full], BadCompressionRecord, 1);
    cut(&[&full, &none, &full], BadCompressionRecord, 2);
    let twice = [&none[..], &none, &full].concat();
    assert_eq!(answers(&twice)[2], Cut(0, BadCompressionRecord));
}

#[test]
fn a_read_that_fails_is_an_error_and_may_be_tried_again() {
    let machine = ashlar_env::sim::SimEnv::new(1);
    let fs = machine.env().fs;
    let path = Path::new("000014.log");
    let (bytes, _) = write(Framing::Legacy, 14, &six());
    fs.create(path).unwrap().write_at(&bytes, 0).unwrap();
    let mut reader = LogReader::open(fs.open_read(path).unwrap(), FileNumber(14), RecoveryMode::SkipAny);
    let io = ashlar_base::error::IoKind::Other;
    let class = ashlar_env::sim::CallClass::Read;
    machine.fail_call(class, machine.calls_of(class) + 1, ashlar_env::sim::Repeat::Once, io);
    assert!(reader.next().is_err());
    machine.heal();
    assert_eq!(reader.next().unwrap().unwrap().payload, six()[0]);
}

/// Every prefix and every changed byte, in every mode: no panic, and nothing that was not written comes out.
#[test]
fn hostile_logs_deliver_only_what_was_written() {
    let mut payloads = six();
    payloads.push(vec![9; BLOCK_SIZE]);
    payloads.extend(six().into_iter().map(|p| [p, b"again".to_vec()].concat()));
    for framing in [Framing::Legacy, Framing::Recyclable] {
        let (file, starts) = write(framing, 14, &payloads);
        let interesting = |i: &usize| *i < 300 || *i + 300 > file.len() || i.abs_diff(BLOCK_SIZE) < 40;
        for mode in MODES {
            for end in (0..file.len()).filter(interesting) {
                let (got, _) = read(&file[..end], mode);
                assert_eq!(got, payloads[..got.len()], "cut at {end}");
                let whole = starts.iter().skip(1).chain([&file.len()]).filter(|s| **s <= end).count();
                assert_eq!(got.len(), whole, "{mode:?} cut at {end}");
            }
            for (i, flip) in
                (0..file.len()).filter(interesting).flat_map(|i| [1u8, 0x80, 0xff].map(|f| (i, f)))
            {
                let mut bad = file.clone();
                bad[i] ^= flip;
                let (got, end) = read(&bad, mode);
                assert!(got.len() < payloads.len(), "byte {i}");
                if mode == RecoveryMode::SkipAny {
                    assert!(got.iter().all(|g| payloads.contains(g)), "byte {i}");
                } else {
                    assert_eq!(got, payloads[..got.len()], "byte {i}");
                }
                if mode == RecoveryMode::Absolute && framing == Framing::Legacy {
                    assert!(matches!(end, LogEnd::Cut { .. }), "byte {i} flipped by {flip:#x}: {end:?}");
                }
            }
        }
    }
}

#[test]
fn what_stands_behind_zeros_is_behind_a_hole() {
    let payloads: Vec<Vec<u8>> = (0..40u8).map(|i| vec![i; 4089]).collect();
    let (file, starts) = write(Framing::Legacy, 14, &payloads);
    assert_eq!(starts[8], BLOCK_SIZE, "eight records to a block");
    // A hole inside a block, one up to its end, one over two blocks; each with records behind it.
    for (from, to) in [(3, 5), (3, 8), (3, 24)] {
        let mut holed = file.clone();
        holed[starts[from]..starts[to]].fill(0);
        for mode in MODES {
            let (records, end) = read(&holed, mode);
            if mode != RecoveryMode::SkipAny {
                assert_eq!(records.len(), from, "{mode:?}");
                let LogEnd::Cut { offset, reason: Zeros, .. } = end else { panic!("{mode:?}: {end:?}") };
                assert_eq!(offset, starts[from] as u64);
            } else {
                let skipped = to.div_ceil(8) * 8 - from;
                assert_eq!((records.len(), end), (40 - skipped, LogEnd::Clean), "{mode:?}");
            }
        }
        holed.truncate(starts[to]);
        assert_eq!(read(&holed, RecoveryMode::PointInTime).1, LogEnd::Clean, "nothing is behind them");
    }
}

#[test]
fn a_block_may_end_in_zeros_before_an_unsplit_record() {
    let (mut file, _) = write(Framing::Legacy, 14, &[vec![1; BLOCK_SIZE - 7 - 20]]);
    file.resize(BLOCK_SIZE, 0);
    file.extend(raw(130, &[0; 24]));
    file.extend(raw(1, b"behind"));
    for mode in MODES {
        let (records, end) = read(&file, mode);
        assert_eq!((records.len(), end), (2, LogEnd::Clean), "{mode:?}");
    }
}

#[test]
fn records_behind_a_place() {
    let (file, starts) = write(Framing::Legacy, 0, &[vec![1; 100], vec![2; 40_000], vec![3; 50]]);
    let behind = |bytes: &[u8], at: usize| record_behind(Arc::new(Bytes(bytes.to_vec())), at as u64).unwrap();
    assert_eq!(behind(&file, 0), Some(starts[1] as u64), "a first fragment begins a record");
    assert_eq!(behind(&file, starts[1]), Some(starts[2] as u64), "a last fragment does not");
    assert_eq!(behind(&file, starts[2]), None);
    let mut bad = file.clone();
    bad[starts[1] + 50] ^= 1;
    assert_eq!(behind(&bad, 0), Some(starts[2] as u64));
    bad[starts[2] + 8] ^= 1;
    assert_eq!(behind(&bad, 0), None);
    assert_eq!(behind(&bad[..starts[2]], 0), None);
    assert_eq!(behind(&[], 7), None);
}
