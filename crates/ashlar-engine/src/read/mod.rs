//! Point reads: from the newest home of a key to the oldest, and no further than the first that knows it.

mod get;
mod many;
mod view;

#[cfg(test)]
mod tests;

pub use get::{get, get_entity};
pub use many::{MayExist, may_exist, multi_get};
pub use view::View;
