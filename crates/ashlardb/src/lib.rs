//! AshlarDB: an embedded, ordered, persistent key-value store that reads and writes RocksDB's files.
