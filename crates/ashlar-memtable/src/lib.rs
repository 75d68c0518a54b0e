//! Memtables: arena, skiplist, and the trait the engine sees.
