//! Test harness: oracle, script runner, child-process judges.
