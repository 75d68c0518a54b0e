//! Words that begin the text of a failure and say which harm it reports. The suites count harms by them.

/// A write that was promised to survive did not.
pub const LOST_WRITE: &str = "LOST WRITE: ";
/// A call that did not end.
pub const HANG: &str = "HANG: ";
/// A panic.
pub const PANIC: &str = "panic: ";
