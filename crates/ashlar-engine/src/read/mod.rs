//! Point reads: from the newest home of a key to the oldest, and no further than the first that knows it.

mod get;
mod view;

#[cfg(test)]
mod tests;

pub use get::{get, get_entity};
pub use view::View;
