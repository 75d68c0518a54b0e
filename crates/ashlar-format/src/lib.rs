//! Bytes to values and back for every file of a database directory. No I/O.
