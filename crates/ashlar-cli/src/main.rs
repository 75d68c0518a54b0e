//! The program `ashlar`.
fn main() {}
