//! The engine as a whole, through its public door.

mod blobs;
mod flips;
mod ranges;
mod sim;
