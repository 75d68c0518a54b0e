//! The only door to the machine: files, clock, threads, randomness.
