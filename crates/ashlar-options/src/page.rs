//! Prints the page `docs/options.md`: the table of names, and the rules of the linter.

use super::{lint, names};
use std::fmt::Write;

const RULES_HEAD: &str = "
## Settings that hurt

An open looks at its settings and writes what it finds to LOG; `ashlar options lint` looks at a database or at any OPTIONS file,
RocksDB's included, and says why, with the values. Rules that end in \"Here it has no effect\" and the like speak of RocksDB's files.

| rule | of | advice |
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
