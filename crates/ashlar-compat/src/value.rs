//! The value of an option, as another language passes it.
//!
//! An option of RocksDB has a name and a text, which option strings and OPTIONS files hold. C and Java pass numbers. This module
//! converts both ways; the numbers of an enumeration are those of RocksDB's headers.

/// A number or a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A whole number that may exceed the range of `Int`.
    UInt(u64),
    /// A ratio.
    Double(f64),
}

/// The names of an enumeration's values, with their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Names(pub &'static [(i64, &'static str)]);

/// `CompressionType`.
pub const COMPRESSION: Names = Names(&[
    (0, "kNoCompression"),
    (1, "kSnappyCompression"),
    (2, "kZlibCompression"),
    (3, "kBZip2Compression"),
    (4, "kLZ4Compression"),
    (5, "kLZ4HCCompression"),
    (6, "kXpressCompression"),
    (7, "kZSTD"),
    (255, "kDisableCompressionOption"),
    // As C programs pass the byte 255.
    (-1, "kDisableCompressionOption"),
]);
/// `CompactionStyle`.
pub const STYLE: Names = Names(&[
    (0, "kCompactionStyleLevel"),
    (1, "kCompactionStyleUniversal"),
    (2, "kCompactionStyleFIFO"),
    (3, "kCompactionStyleNone"),
]);
/// `WALRecoveryMode`.
pub const RECOVERY: Names = Names(&[
    (0, "kTolerateCorruptedTailRecords"),
    (1, "kAbsoluteConsistency"),
    (2, "kPointInTimeRecovery"),
    (3, "kSkipAnyCorruptedRecords"),
]);
/// `CompactionPri`.
pub const PRIORITY: Names = Names(&[
    (0, "kByCompensatedSize"),
    (1, "kOldestLargestSeqFirst"),
    (2, "kOldestSmallestSeqFirst"),
    (3, "kMinOverlappingRatio"),
    (4, "kRoundRobin"),
]);
/// `BlockBasedTableOptions::IndexType`.
pub const INDEX: Names = Names(&[
    (0, "kBinarySearch"),
    (1, "kHashSearch"),
    (2, "kTwoLevelIndexSearch"),
    (3, "kBinarySearchWithFirstKey"),
]);
/// `BlockBasedTableOptions::DataBlockIndexType`.
pub const DATA_INDEX: Names = Names(&[(0, "kDataBlockBinarySearch"), (1, "kDataBlockBinaryAndHash")]);
/// `ChecksumType`.
pub const CHECKSUM: Names =
    Names(&[(0, "kNoChecksum"), (1, "kCRC32c"), (2, "kxxHash"), (3, "kxxHash64"), (4, "kXXH3")]);

/// `DBOptions::AccessHint`, which RocksDB dropped.
pub const ACCESS_HINT: Names = Names(&[(0, "NONE"), (1, "NORMAL"), (2, "SEQUENTIAL"), (3, "WILLNEED")]);
/// `Env::IOActivity`.
pub const ACTIVITY: Names = Names(&[
    (0, "kFlush"),
    (1, "kCompaction"),
    (2, "kDBOpen"),
    (3, "kGet"),
    (4, "kMultiGet"),
    (5, "kDBIterator"),
    (6, "kVerifyDBChecksum"),
    (7, "kVerifyFileChecksums"),
    (8, "kGetEntity"),
    (9, "kMultiGetEntity"),
    (10, "kGetFileChecksumsFromCurrentManifest"),
    (255, "kUnknown"),
]);
/// `CompactionStopStyle`.
pub const STOP: Names =
    Names(&[(0, "kCompactionStopStyleSimilarSize"), (1, "kCompactionStopStyleTotalSize")]);
/// `Temperature`.
pub const TEMPERATURE: Names =
    Names(&[(0, "kUnknown"), (4, "kHot"), (8, "kWarm"), (10, "kCool"), (12, "kCold"), (16, "kIce")]);
/// `InfoLogLevel`.
pub const LOG_LEVEL: Names = Names(&[
    (0, "DEBUG_LEVEL"),
    (1, "INFO_LEVEL"),
    (2, "WARN_LEVEL"),
    (3, "ERROR_LEVEL"),
    (4, "FATAL_LEVEL"),
    (5, "HEADER_LEVEL"),
]);
/// `CacheTier`.
pub const CACHE_TIER: Names =
    Names(&[(0, "kVolatileTier"), (1, "kVolatileCompressedTier"), (2, "kNonVolatileBlockTier")]);
/// `PrepopulateBlockCache` and `PrepopulateBlobCache`.
pub const PREPOPULATE: Names = Names(&[(0, "kDisable"), (1, "kFlushOnly")]);
/// `BlockBasedTableOptions::BlockSearchType`.
pub const SEARCH: Names = Names(&[(0, "kBinary"), (1, "kInterpolation"), (2, "kAuto")]);
/// `BlockBasedTableOptions::IndexShorteningMode`.
pub const SHORTENING: Names =
    Names(&[(0, "kNoShortening"), (1, "kShortenSeparators"), (2, "kShortenSeparatorsAndSuccessor")]);
/// `Env::IOPriority`.
pub const IO_PRIORITY: Names =
    Names(&[(0, "IO_LOW"), (1, "IO_MID"), (2, "IO_HIGH"), (3, "IO_USER"), (4, "IO_TOTAL")]);
/// `ReadTier`.
pub const READ_TIER: Names =
    Names(&[(0, "kReadAllTier"), (1, "kBlockCacheTier"), (2, "kPersistedTier"), (3, "kMemtableTier")]);
/// `BlobGarbageCollectionPolicy`.
pub const BLOB_GC: Names = Names(&[(0, "kForce"), (1, "kDisable"), (2, "kUseDefault")]);

impl Names {
    /// The name of a number; `None`: the enumeration has no such value.
    pub fn name(self, number: i64) -> Option<&'static str> {
        self.0.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
    }

    /// The number of a name.
    pub fn number(self, name: &str) -> Option<i64> {
        self.0.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
    }
}

impl Value {
    /// The text of an option string.
    pub fn text(&self) -> String {
        match self {
            Value::Bool(yes) => yes.to_string(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            Value::Double(number) => number.to_string(),
        }
    }

    /// The value of a text; `None`: the text is neither a number nor yes or no.
    pub fn known(text: &str) -> Option<Value> {
        match text {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => text
                .parse()
                .map(Value::Int)
                .or_else(|_| text.parse().map(Value::UInt))
                .or_else(|_| text.parse().map(Value::Double))
                .ok()
                .or_else(|| with_unit(text)),
        }
    }

    /// The value of a text; zero for any other text.
    pub fn parse(text: &str) -> Value {
        Value::known(text).unwrap_or(Value::Int(0))
    }
}

/// A size of an option string with its unit: `64M`.
fn with_unit(text: &str) -> Option<Value> {
    let (at, unit) = text.char_indices().next_back()?;
    let shift = match unit.to_ascii_lowercase() {
        'k' => 10,
        'm' => 20,
        'g' => 30,
        't' => 40,
        _ => return None,
    };
    let number: u64 = text.get(..at)?.parse().ok()?;
    number.checked_mul(1 << shift).map(Value::UInt)
}

/// A type of another language that an option may have. Numbers out of range wrap, as C converts them.
pub trait Scalar: Copy {
    /// From the language.
    fn value(self) -> Value;
    /// To the language.
    fn of(value: &Value) -> Self;
}

macro_rules! whole {
    ($($type:ty => $kind:ident as $wide:ty),*) => { $(
        impl Scalar for $type {
            #[allow(clippy::cast_possible_truncation, clippy::cast_lossless, reason = "as C converts")]
            fn value(self) -> Value {
                Value::$kind(self as $wide)
            }
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as C converts")]
            fn of(value: &Value) -> Self {
                match value {
                    Value::Bool(yes) => *yes as $type,
                    Value::Int(number) => *number as $type,
                    Value::UInt(number) => *number as $type,
                    Value::Double(number) => *number as $type,
                }
            }
        }
    )* };
}
whole!(i8 => Int as i64, i32 => Int as i64, u32 => Int as i64, i64 => Int as i64, u64 => UInt as u64, usize => UInt as u64);

/// `unsigned char`, which RocksDB's C functions take for yes and no.
impl Scalar for u8 {
    fn value(self) -> Value {
        Value::Bool(self != 0)
    }
    fn of(value: &Value) -> Self {
        u8::from(!matches!(value, Value::Bool(false) | Value::Int(0) | Value::UInt(0)))
    }
}

impl Scalar for bool {
    fn value(self) -> Value {
        Value::Bool(self)
    }
    fn of(value: &Value) -> Self {
        u8::of(value) != 0
    }
}

impl Scalar for f64 {
    fn value(self) -> Value {
        Value::Double(self)
    }
    #[allow(clippy::cast_precision_loss, reason = "as C converts")]
    fn of(value: &Value) -> Self {
        match value {
            Value::Bool(yes) => f64::from(u8::from(*yes)),
            Value::Int(number) => *number as f64,
            Value::UInt(number) => *number as f64,
            Value::Double(number) => *number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_from_their_texts() {
        for value in [Value::Bool(true), Value::Int(-1), Value::UInt(u64::MAX), Value::Double(0.5)] {
            assert_eq!(Value::parse(&value.text()), value);
        }
        assert_eq!(Value::parse("kZSTD"), Value::Int(0));
        assert_eq!(Value::parse("4k"), Value::UInt(4096));
        assert_eq!(Value::parse("1T"), Value::UInt(1 << 40));
        assert_eq!(Value::parse("99999999999T"), Value::Int(0));
        assert_eq!(u64::of(&(-1i32).value()), u64::MAX, "as C converts");
        assert_eq!(
            (u8::of(&Value::Bool(true)), u8::of(&Value::Int(0)), 7u8.value()),
            (1, 0, Value::Bool(true))
        );
    }

    #[test]
    fn numbers_of_enumerations_are_rocksdbs() {
        assert_eq!(COMPRESSION.name(7), Some("kZSTD"));
        assert_eq!(COMPRESSION.number("kLZ4Compression"), Some(4));
        assert_eq!(COMPRESSION.name(8), None);
    }
}
