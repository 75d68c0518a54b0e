//! Values as RocksDB writes them in option strings and OPTIONS files, and as it reads them.
//!
//! | kind | written | also read |
//! |---|---|---|
//! | flag | `true`, `false` | `1`, `0` |
//! | integer | digits | with the unit `k`, `m`, `g` or `t`, in either case: powers of 1024 |
//! | number | six digits after the point | any decimal number |
//! | word | the constant's name, `kLZ4Compression` | |
//! | list | parts with `:` between | |
//! | object | `{name=value;…}` | without the braces |
//!
//! Stricter than RocksDB in one thing: only a unit may follow a number.
//! Source: RocksDB `util/string_util.cc`, `options/options_helper.cc`.

use super::object::{id_of, member};
use crate::{CompactionStyle, InfoLogLevel, StopStyle};
use ashlar_base::Order;
use ashlar_format::compress::Compression;
use ashlar_format::filter::FilterPolicy;
use ashlar_format::table::{ChecksumKind, IndexKind};
use ashlar_log::RecoveryMode;

/// The reason why a text is not a value: half a sentence for the message.
pub(crate) type Wrong = String;

/// A type that option strings can hold.
pub(crate) trait Value: Sized {
    /// Reads the value from text.
    fn parse(text: &str) -> Result<Self, Wrong>;
    /// The value in the form that RocksDB writes.
    fn show(&self) -> String;
}

/// Checks the syntax of a value that the engine does not use. The kind follows from RocksDB's default.
pub(super) fn check_like(default: &str, text: &str) -> Result<(), Wrong> {
    if bool::parse(default).is_ok() && !matches!(default, "0" | "1") {
        return bool::parse(text).map(drop);
    }
    if default.parse::<i64>().is_ok() || default.parse::<u64>().is_ok() {
        return integer(text).map(drop);
    }
    if default.parse::<f64>().is_ok() {
        return f64::parse(text).map(drop);
    }
    Ok(())
}

/// Whether two texts are the same value.
pub(super) fn same(a: &str, b: &str) -> bool {
    let number = |text: &str| integer(text).ok();
    let real = |text: &str| f64::parse(text).ok();
    let flag = |text: &str| bool::parse(text).ok();
    a.trim() == b.trim()
        || number(a).is_some() && number(a) == number(b)
        || real(a).is_some() && real(a) == real(b)
        || flag(a).is_some() && flag(a) == flag(b)
}

/// An integer: digits, with an optional sign before and an optional unit after them.
pub(crate) fn integer(text: &str) -> Result<i128, Wrong> {
    let text = text.trim();
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: i64 = match digits.parse::<u64>() {
        Ok(large) => return Ok(i128::from(large) << shift),
        Err(_) => digits.parse().map_err(|_| format!("{text:?} is not a whole number"))?,
    };
    Ok(i128::from(number) << shift)
}

macro_rules! integers {
    ($($kind:ty),*) => {$(
        impl Value for $kind {
            fn parse(text: &str) -> Result<Self, Wrong> {
                let number = integer(text)?;
                number.try_into().map_err(|_| format!("{number} is not {} to {}", <$kind>::MIN, <$kind>::MAX))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

integers!(u32, u64, usize, i32, i64);

impl Value for bool {
    fn parse(text: &str) -> Result<Self, Wrong> {
        match text.trim() {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(format!("{other:?} is neither true nor false")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for f64 {
    fn parse(text: &str) -> Result<Self, Wrong> {
        let number: f64 = text.trim().parse().map_err(|_| format!("{text:?} is not a number"))?;
        if number.is_finite() { Ok(number) } else { Err(format!("{text:?} is not a finite number")) }
    }

    fn show(&self) -> String {
        format!("{self:.6}")
    }
}

/// Constants by their names in RocksDB.
macro_rules! words {
    ($kind:ty: $($word:literal = $value:path),* $(,)?) => {
        impl Value for $kind {
            fn parse(text: &str) -> Result<Self, Wrong> {
                match text.trim() {
                    $($word => Ok($value),)*
                    other => Err(format!("{other:?} is not one of {}", [$($word),*].join(", "))),
                }
            }

            fn show(&self) -> String {
                let words: &[($kind, &str)] = &[$(($value, $word)),*];
                words.iter().find(|(value, _)| value == self).map_or_else(String::new, |(_, word)| (*word).to_owned())
            }
        }
    };
}

words! { Compression:
    "kNoCompression" = Compression::None,
    "kSnappyCompression" = Compression::Snappy,
    "kZlibCompression" = Compression::Zlib,
    "kBZip2Compression" = Compression::Bzip2,
    "kLZ4Compression" = Compression::Lz4,
    "kLZ4HCCompression" = Compression::Lz4hc,
    "kZSTD" = Compression::Zstd,
    "kZSTDNotFinalCompression" = Compression::ZstdNotFinal,
}

words! { IndexKind:
    "kBinarySearch" = IndexKind::BinarySearch,
    "kHashSearch" = IndexKind::HashSearch,
    "kTwoLevelIndexSearch" = IndexKind::TwoLevel,
    "kBinarySearchWithFirstKey" = IndexKind::BinarySearchWithFirstKey,
}

words! { ChecksumKind:
    "kNoChecksum" = ChecksumKind::None,
    "kCRC32c" = ChecksumKind::Crc32c,
    "kxxHash" = ChecksumKind::XxHash32,
    "kxxHash64" = ChecksumKind::XxHash64,
    "kXXH3" = ChecksumKind::Xxh3,
}

words! { RecoveryMode:
    "kTolerateCorruptedTailRecords" = RecoveryMode::TolerateTail,
    "kAbsoluteConsistency" = RecoveryMode::Absolute,
    "kPointInTimeRecovery" = RecoveryMode::PointInTime,
    "kSkipAnyCorruptedRecords" = RecoveryMode::SkipAny,
}

words! { CompactionStyle:
    "kCompactionStyleLevel" = CompactionStyle::Level,
    "kCompactionStyleUniversal" = CompactionStyle::Universal,
    "kCompactionStyleFIFO" = CompactionStyle::Fifo,
    "kCompactionStyleNone" = CompactionStyle::None,
}

words! { StopStyle:
    "kCompactionStopStyleSimilarSize" = StopStyle::SimilarSize,
    "kCompactionStopStyleTotalSize" = StopStyle::TotalSize,
}

words! { InfoLogLevel:
    "DEBUG_LEVEL" = InfoLogLevel::Debug,
    "INFO_LEVEL" = InfoLogLevel::Info,
    "WARN_LEVEL" = InfoLogLevel::Warn,
    "ERROR_LEVEL" = InfoLogLevel::Error,
    "FATAL_LEVEL" = InfoLogLevel::Fatal,
    "HEADER_LEVEL" = InfoLogLevel::Header,
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, Wrong> {
        Ok(text.trim().to_owned())
    }

    fn show(&self) -> String {
        self.clone()
    }
}

/// `None` has its own word.
impl Value for Option<Compression> {
    fn parse(text: &str) -> Result<Self, Wrong> {
        match text.trim() {
            "kDisableCompressionOption" => Ok(None),
            word => Compression::parse(word).map(Some),
        }
    }

    fn show(&self) -> String {
        self.map_or_else(|| "kDisableCompressionOption".to_owned(), |c| c.show())
    }
}

impl Value for Vec<Compression> {
    fn parse(text: &str) -> Result<Self, Wrong> {
        text.split(':').filter(|word| !word.trim().is_empty()).map(Compression::parse).collect()
    }

    fn show(&self) -> String {
        self.iter().map(Value::show).collect::<Vec<_>>().join(":")
    }
}

/// Releases from 8 on write an object, `{id=ribbonfilter:10:0;bloom_before_level=0;}`.
impl Value for Option<FilterPolicy> {
    fn parse(text: &str) -> Result<Self, Wrong> {
        let id = id_of(text);
        if matches!(id.as_str(), "nullptr" | "") {
            return Ok(None);
        }
        let wrong = || format!("{id:?} is not a filter policy; an example is bloomfilter:10:false");
        let mut policy = FilterPolicy::parse(&id).ok_or_else(wrong)?;
        if let (FilterPolicy::Ribbon { bloom_before_level, .. }, Some(level)) =
            (&mut policy, member(text, "bloom_before_level"))
        {
            *bloom_before_level = i32::parse(&level)?;
        }
        Ok(Some(policy))
    }

    fn show(&self) -> String {
        match self {
            None => "nullptr".to_owned(),
            // Older releases require the third field.
            Some(FilterPolicy::Bloom { bits_per_key }) => format!("bloomfilter:{bits_per_key}:false"),
            Some(ribbon) => ribbon.to_string(),
        }
    }
}

impl Value for Order {
    fn parse(text: &str) -> Result<Self, Wrong> {
        let name = text.trim();
        Order::by_name(name).ok_or_else(|| {
            format!("{name:?} is not built in; hand the comparator over when you open the family")
        })
    }

    fn show(&self) -> String {
        self.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_rocksdbs_units() {
        let bytes = |text| u64::parse(text);
        assert_eq!(
            ["7", "64K", "64m", "2G", "1T"].map(bytes),
            [7, 64 << 10, 64 << 20, 2 << 30, 1 << 40].map(Ok)
        );
        assert_eq!(u64::parse("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(i32::parse("-1"), Ok(-1));
        for bad in ["", "K", "1KB", "1.5", "-1", "0x10", "18446744073709551616", "99999999T"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(f64::parse("10.000000").map(|n| n.show()), Ok("10.000000".to_owned()));
        assert!(f64::parse("NaN").is_err() && f64::parse("inf").is_err());
    }

    #[test]
    fn words_return() {
        for kind in [Compression::None, Compression::Lz4, Compression::Zstd, Compression::Bzip2] {
            assert_eq!(Compression::parse(&kind.show()), Ok(kind));
            assert_eq!(Option::<Compression>::parse(&Some(kind).show()), Ok(Some(kind)));
        }
        assert_eq!(Option::<Compression>::parse("kDisableCompressionOption"), Ok(None));
        let list = Vec::<Compression>::parse("kNoCompression:kZSTD").unwrap();
        assert_eq!((list.len(), list.show().as_str()), (2, "kNoCompression:kZSTD"));
        assert!(Compression::parse("lz4").unwrap_err().contains("kLZ4Compression"));
        assert!(Order::parse("leveldb.BytewiseComparator").is_ok() && Order::parse("mine").is_err());
    }

    #[test]
    fn filter_policies_in_every_form() {
        let parse = Option::<FilterPolicy>::parse;
        let bloom = Some(FilterPolicy::Bloom { bits_per_key: 10.0 });
        for text in ["bloomfilter:10:false", "{id=bloomfilter:10:false;}", "rocksdb.BuiltinBloomFilter:10"] {
            assert_eq!(parse(text), Ok(bloom), "{text}");
        }
        let ribbon =
            |level| Some(FilterPolicy::Ribbon { bloom_bits_per_key: 9.0, bloom_before_level: level });
        assert_eq!(parse("{id=ribbonfilter:9:0;bloom_before_level=2;}"), Ok(ribbon(2)));
        assert_eq!(parse(&ribbon(-1).show()), Ok(ribbon(-1)));
        assert_eq!(parse("nullptr"), Ok(None));
        assert!(
            parse("{id=mine;}").unwrap_err().contains("mine")
                && parse("{id=ribbonfilter:9;bloom_before_level=x;}").is_err()
        );
    }

    #[test]
    fn the_same_value_in_two_texts() {
        for (a, b) in [("0", "false"), ("1K", "1024"), ("1.0", "1.000000"), ("kNone", " kNone"), ("0", "0.0")]
        {
            assert!(same(a, b), "{a} {b}");
        }
        assert!(!same("1", "2") && !same("kA", "kB") && !same("nullptr", "0"));
        assert!(check_like("false", "maybe").is_err() && check_like("7", "7x").is_err());
        assert!(check_like("nullptr", "anything").is_ok() && check_like("0.5", "1").is_ok());
    }
}
