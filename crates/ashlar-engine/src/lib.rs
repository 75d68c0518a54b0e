//! The engine: families, versions, writes, reads, flush, compaction, recovery.
