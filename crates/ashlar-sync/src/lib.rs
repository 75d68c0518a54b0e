//! Ranked locks, signals and the epoch cell.
