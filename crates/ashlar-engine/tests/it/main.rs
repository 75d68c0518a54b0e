//! The engine as a whole, through its public door.

mod ranges;
mod sim;
