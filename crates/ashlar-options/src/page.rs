//! Prints the page `docs/options.md`: the table of names, and the rules of the linter.

use super::{lint, names};
use std::fmt::Write;

const RULES_HEAD: &str = "
## Settings that hurt

An open checks its settings and writes its findings to LOG. `ashlar options lint` checks a database or any OPTIONS file, also
one of RocksDB, and gives the reasons with the values. An advice such as \"Here it has no effect\" applies to RocksDB's files.

| rule | applies to | advice |
|---|---|---|
";

/// The page.
pub fn markdown() -> String {
    let mut page = names::table();
    page.push_str(RULES_HEAD);
    for (name, of_family, advice) in lint::rules() {
        let of = if of_family { "a family" } else { "the database" };
        // Writing to a String cannot fail.
        let _ = writeln!(page, "| `{name}` | {of} | {advice} |");
    }
    page
}
