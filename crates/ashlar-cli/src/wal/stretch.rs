//! Describes a physical record.

use crate::bytes_text::counted;
use ashlar_format::log_record::{RecordKind, RecordType};
use ashlar_log::{PhysicalKind, PhysicalRecord};

/// `at 0: Full, 24 bytes of payload`.
pub(super) fn words(record: &PhysicalRecord) -> String {
    let bytes = counted(record.len, "byte");
    let what = match record.kind {
        PhysicalKind::Record { type_byte, payload } => {
            format!("{}, {} of payload", type_words(type_byte), counted(payload, "byte"))
        }
        PhysicalKind::OldRecord { type_byte } => {
            format!("{} of another log number, {bytes}: the file's former life", type_words(type_byte))
        }
        PhysicalKind::Zeros { clean: true } => format!("zeros, {bytes}"),
        PhysicalKind::Zeros { clean: false } => {
            format!("a header of zeros with something behind it, {bytes}")
        }
        PhysicalKind::BlockEnd => format!("end of a block, {bytes} left"),
        PhysicalKind::ShortHeader => format!("the file ends inside a header, {bytes}"),
        PhysicalKind::BadLength => {
            format!("LENGTH WRONG: reaches past its block or the file, {bytes} to the end of either")
        }
        PhysicalKind::BadChecksum => format!("CHECKSUM WRONG, {bytes} to the end of the block"),
    };
    format!("at {}: {what}", record.offset)
}

fn type_words(type_byte: u8) -> String {
    let Some(RecordType { kind, recyclable }) = RecordType::from_u8(type_byte) else {
        let ignorable = if type_byte & 0x80 != 0 { ", may be passed over" } else { "" };
        return format!("record of unknown type {type_byte}{ignorable}");
    };
    let name = match kind {
        RecordKind::Full => "Full",
        RecordKind::First => "First",
        RecordKind::Middle => "Middle",
        RecordKind::Last => "Last",
        RecordKind::SetCompression => "SetCompression",
        RecordKind::TimestampSizes => "TimestampSizes",
        RecordKind::PredecessorInfo => "PredecessorInfo",
    };
    if recyclable { format!("recyclable {name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_words() {
        let said = |kind| words(&PhysicalRecord { offset: 7, len: 30, kind });
        assert_eq!(
            said(PhysicalKind::Record { type_byte: 2, payload: 23 }),
            "at 7: First, 23 bytes of payload"
        );
        assert_eq!(
            said(PhysicalKind::Record { type_byte: 200, payload: 1 }),
            "at 7: record of unknown type 200, may be passed over, 1 byte of payload"
        );
        assert_eq!(
            said(PhysicalKind::OldRecord { type_byte: 5 }),
            "at 7: recyclable Full of another log number, 30 bytes: the file's former life"
        );
        assert!(said(PhysicalKind::BadChecksum).starts_with("at 7: CHECKSUM WRONG"));
    }
}
