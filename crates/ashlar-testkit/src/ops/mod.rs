//! Operation lists: drawn from a seed, printed as text, read back; the common input of every engine under test.

mod bulk;
mod draw;
mod line;
mod op;

pub use bulk::{Bulk, BulkKind, BulkWrite};
pub use draw::{Mix, draw, draw_key, draw_value};
pub use line::{BadLine, parse, print};
pub use op::{Change, MERGE_OPERATOR, Op};
