//! The kinds of operations that a loop times.
//!
//! A scan is timed sixteen steps at a time: a single step is hardly longer than a read of the clock. The driver's own part of
//! each latency is measured by an engine that does nothing ([`crate::null`]).

use ashlar_peers::meter::Kinds;

/// A loop's own measurements.
pub type Meter = ashlar_peers::meter::Meter<Kind>;

/// Steps of a scan that are timed together.
pub const STEPS: u64 = 16;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A get.
    Read,
    /// A put, or a batch of them.
    Write,
    /// A seek and some steps.
    Scan,
    /// A get and a put of the same key.
    Update,
    /// [`STEPS`] steps of a longer scan.
    Steps,
}

impl Kinds for Kind {
    const ALL: &'static [Kind] = &[Kind::Read, Kind::Write, Kind::Scan, Kind::Update, Kind::Steps];

    fn place(self) -> usize {
        self as usize
    }

    fn text(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Scan => "scan",
            Kind::Update => "update",
            Kind::Steps => "16 steps",
        }
    }
}
