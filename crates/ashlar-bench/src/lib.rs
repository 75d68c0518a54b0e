//! Workloads and measurements with db_bench's names, flags and lines.
