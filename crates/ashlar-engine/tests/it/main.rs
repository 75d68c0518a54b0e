//! The engine as a whole, through its public door.

mod blobs;
mod ranges;
mod sim;
