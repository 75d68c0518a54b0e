//! Block frames and the pool that caps them.
