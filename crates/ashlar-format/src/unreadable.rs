//! Why bytes of a table cannot be served: they are damaged; or they are right and need a feature that is not built yet;
//! or there is no memory for them.
//!
//! The three must stay distinct: the first calls for a repair, the second for another version of the engine, the third
//! for a retry.

use ashlar_base::bytes::OutOfMemory;
use ashlar_base::{Error, Malformed};
use std::fmt;
use std::path::Path;

/// The refusal of a decoder that knows features it does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The bytes break the format.
    Malformed(Malformed),
    /// The bytes are fine as far as they were read; the named feature is not served.
    NotSupported(&'static str),
    /// There is no memory for what they hold.
    OutOfMemory,
}

impl Unreadable {
    /// Places the refusal in a file: `base` is where the decoded slice starts.
    /// `Corruption`, `NotSupported` or `Busy(Memory)`.
    #[track_caller]
    pub fn in_file(self, path: &Path, base: u64) -> Error {
        match self {
            Unreadable::Malformed(m) => m.in_file(path, base),
            Unreadable::NotSupported(feature) => Error::not_supported(feature).at(path, base),
            Unreadable::OutOfMemory => Error::from(OutOfMemory).at(path, base),
        }
    }

    /// The refusal without a file, for bytes that came from memory.
    #[track_caller]
    pub fn into_error(self) -> Error {
        match self {
            Unreadable::Malformed(m) => m.into_error(),
            Unreadable::NotSupported(feature) => Error::not_supported(feature),
            Unreadable::OutOfMemory => OutOfMemory.into(),
        }
    }
}

impl From<Malformed> for Unreadable {
    fn from(m: Malformed) -> Self {
        Unreadable::Malformed(m)
    }
}

impl From<OutOfMemory> for Unreadable {
    fn from(_: OutOfMemory) -> Self {
        Unreadable::OutOfMemory
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Malformed(m) => m.fmt(f),
            Unreadable::NotSupported(feature) => write!(f, "not supported: {feature}"),
            Unreadable::OutOfMemory => OutOfMemory.fmt(f),
        }
    }
}

impl std::error::Error for Unreadable {}
