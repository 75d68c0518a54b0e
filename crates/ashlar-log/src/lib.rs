//! Logs on files: the WAL and the MANIFEST, written and read.
