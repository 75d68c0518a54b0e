//! Options by their names: what the generated getters and setters call, and the objects that are only options.

use crate::door::Result;
use crate::handles::{Lent, Object};
use ashlar_compat::calls::{CompactOptions, ReadOptions, WriteOptions, write_options};
use ashlar_compat::options::{Group, Options, Texts};
pub use ashlar_compat::value::{
    ACCESS_HINT, LOG_LEVEL, PREPOPULATE, PRIORITY, READ_TIER, RECOVERY, STOP, STYLE,
};
use ashlar_compat::value::{Names, Scalar};
use ashlar_compat::values;
use ashlardb::Error;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// `CompressionType`, with Java's number of the last value.
pub const COMPRESSION: Names = Names(&[
    (0, "kNoCompression"),
    (1, "kSnappyCompression"),
    (2, "kZlibCompression"),
    (3, "kBZip2Compression"),
    (4, "kLZ4Compression"),
    (5, "kLZ4HCCompression"),
    (6, "kXpressCompression"),
    (7, "kZSTD"),
    (0x7f, "kDisableCompressionOption"),
]);

/// Something that Java's objects change, one call at a time.
#[derive(Debug, Default)]
pub struct Shared<T>(RwLock<T>);

impl<T> Shared<T> {
    /// With this content.
    pub fn new(content: T) -> Shared<T> {
        Shared(RwLock::new(content))
    }

    /// To read.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// To change.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An object with options that have names.
pub trait HasTexts {
    /// Reads the options.
    fn with<R>(&self, read: impl FnOnce(&Texts) -> R) -> R;
    /// Changes the options.
    fn change(&self, set: impl FnOnce(&mut Texts));
}

/// Sets an option.
///
/// # Errors
/// None.
pub fn set<T: Scalar>(object: &impl HasTexts, name: &'static str, value: T) -> Result<()> {
    object.change(|texts| texts.set(name, value));
    Ok(())
}

/// Sets an option to a value of an enumeration.
///
/// # Errors
/// `InvalidArgument`: the enumeration has no such value.
pub fn set_named(object: &impl HasTexts, name: &'static str, names: Names, number: i32) -> Result<()> {
    if names.name(number.into()).is_none() {
        return Err(Error::invalid(format!("{name} has no value of number {number}")).into());
    }
    object.change(|texts| texts.set_named(name, names, number));
    Ok(())
}

/// What an option is set to.
///
/// # Errors
/// None.
pub fn get<T: Scalar>(object: &impl HasTexts, name: &'static str) -> Result<T> {
    Ok(object.with(|texts| texts.get(name)))
}

/// What an option of an enumeration is set to.
///
/// # Errors
/// `InvalidArgument`: Java has no number for it.
pub fn get_named(object: &impl HasTexts, name: &'static str, names: Names) -> Result<i8> {
    let number = object.with(|texts| texts.get_named(name, names));
    i8::try_from(number).map_err(|_| Error::invalid(format!("{name}: {number}")).into())
}

/// `Options`, `DBOptions`, `ColumnFamilyOptions`: all of RocksDB's options; the class says which of them an open uses.
#[derive(Debug, Default)]
pub struct OptionsObject(pub Shared<Options>);

impl Object for OptionsObject {
    const NAME: &'static str = "Options";
}

impl HasTexts for OptionsObject {
    fn with<R>(&self, read: impl FnOnce(&Texts) -> R) -> R {
        read(&self.0.read().texts)
    }
    fn change(&self, set: impl FnOnce(&mut Texts)) {
        set(&mut self.0.write().texts);
    }
}

/// `ReadOptions`, and what Java has of it without owning it.
#[derive(Debug, Default)]
pub struct ReadObject(pub Shared<ReadOptions>, pub Shared<Shown>);

/// Handles that the getters of `ReadOptions` answer.
#[derive(Debug, Default)]
pub struct Shown {
    /// The one that the program set, which the program owns; 0: none.
    pub snapshot: i64,
    /// The lower bound.
    pub lower: Option<Lent>,
    /// The upper bound.
    pub upper: Option<Lent>,
    /// The timestamp of a read, which no read keeps, and its handle.
    pub timestamp: (Option<Vec<u8>>, Option<Lent>),
    /// The timestamp from which on an iterator shows versions, which no iterator keeps, and its handle.
    pub start: (Option<Vec<u8>>, Option<Lent>),
}

impl Object for ReadObject {
    const NAME: &'static str = "ReadOptions";
}

impl HasTexts for ReadObject {
    fn with<R>(&self, read: impl FnOnce(&Texts) -> R) -> R {
        read(self.0.read().texts())
    }
    fn change(&self, set: impl FnOnce(&mut Texts)) {
        self.0.write().change(set);
    }
}

/// `WriteOptions`.
#[derive(Debug)]
pub struct WriteObject(pub Shared<(Texts, WriteOptions)>);

impl WriteObject {
    /// With these texts.
    pub fn of(texts: Texts) -> WriteObject {
        let write = write_options(&texts);
        WriteObject(Shared::new((texts, write)))
    }

    /// For the engine.
    pub fn write(&self) -> WriteOptions {
        self.0.read().1
    }
}

impl Default for WriteObject {
    fn default() -> Self {
        WriteObject::of(Texts::of(Group::Write))
    }
}

impl Object for WriteObject {
    const NAME: &'static str = "WriteOptions";
}

impl HasTexts for WriteObject {
    fn with<R>(&self, read: impl FnOnce(&Texts) -> R) -> R {
        read(&self.0.read().0)
    }
    fn change(&self, set: impl FnOnce(&mut Texts)) {
        let mut both = self.0.write();
        set(&mut both.0);
        both.1 = write_options(&both.0);
    }
}

/// `CompactRangeOptions`.
#[derive(Debug, Default)]
pub struct CompactObject {
    /// For the engine.
    pub options: Shared<CompactOptions>,
    /// The request is cancelled.
    pub is_cancelled: std::sync::atomic::AtomicBool,
    /// RocksDB's `full_history_ts_low`, which no compaction keeps: its start and range.
    pub history: Shared<Option<(i64, i64)>>,
}

impl Object for CompactObject {
    const NAME: &'static str = "CompactRangeOptions";
}

impl HasTexts for CompactObject {
    fn with<R>(&self, read: impl FnOnce(&Texts) -> R) -> R {
        read(&self.options.read().texts)
    }
    fn change(&self, set: impl FnOnce(&mut Texts)) {
        set(&mut self.options.write().texts);
    }
}

macro_rules! objects {
    ($($(#[$doc:meta])* $name:ident, $java:literal = $texts:expr;)*) => { $(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub Shared<Texts>);

        impl Default for $name {
            fn default() -> Self {
                $name(Shared::new($texts))
            }
        }

        impl Object for $name {
            const NAME: &'static str = $java;
        }

        impl HasTexts for $name {
            fn with<R>(&self, read: impl FnOnce(&Texts) -> R) -> R {
                read(&self.0.read())
            }
            fn change(&self, set: impl FnOnce(&mut Texts)) {
                set(&mut self.0.write());
            }
        }
    )* };
}
objects! {
    /// `CompactionOptionsUniversal`.
    UniversalObject, "CompactionOptionsUniversal" = Texts::of(Group::Universal);
    /// `CompactionOptionsFIFO`.
    FifoObject, "CompactionOptionsFIFO" = Texts::of(Group::Fifo);
    /// `CompressionOptions`.
    CompressionObject, "CompressionOptions" = Texts::of(Group::Compression);
    /// `FlushOptions`. A flush here always waits, so they change nothing.
    FlushObject, "FlushOptions" = Texts::listed(&values::FLUSH);
    /// `IngestExternalFileOptions`.
    IngestObject, "IngestExternalFileOptions" = Texts::listed(&values::INGEST);
    /// `ImportColumnFamilyOptions`.
    ImportObject, "ImportColumnFamilyOptions" = Texts::listed(&[]);
    /// `EnvOptions`: hints of files that this library opens in its own way.
    EnvOptionsObject, "EnvOptions" = Texts::listed(&values::FILES);
    /// `TransactionDBOptions`.
    TxnDbOptionsObject, "TransactionDBOptions" = Texts::listed(&ashlar_compat::transactions::DATABASE_DEFAULTS);
    /// `TransactionOptions`.
    TxnOptionsObject, "TransactionOptions" = Texts::listed(&ashlar_compat::transactions::TRANSACTION_DEFAULTS);
    /// `OptimisticTransactionOptions`.
    OptimisticOptionsObject, "OptimisticTransactionOptions" = Texts::listed(&[]);
    /// `CompactionOptions`.
    CompactFilesObject, "CompactionOptions" = Texts::listed(&ashlar_compat::compactions::DEFAULTS);
    /// `RestoreOptions`.
    RestoreObject, "RestoreOptions" = Texts::listed(&values::RESTORE);
    /// `ComparatorOptions`.
    ComparatorOptionsObject, "ComparatorOptions" = Texts::listed(&COMPARATOR);
}

/// Defaults of the options of comparators of Java.
const COMPARATOR: [(&str, &str); 3] =
    [("max_reused_buffer_size", "64"), ("reused_synchronisation_type", "1"), ("use_direct_buffer", "true")];
