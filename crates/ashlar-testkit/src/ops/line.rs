//! Operations as lines of text, for artifacts of failures and for the judge's standard input.
//!
//! ```text
//! put FAMILY KEY VALUE            delete FAMILY KEY            single_delete FAMILY KEY
//! merge FAMILY KEY OPERAND        delete_range FAMILY FROM TO  batch CHANGE ; CHANGE ; …      (each may follow "sync ")
//! flush FAMILY    compact FAMILY    reopen    snapshot N    release N
//! get FAMILY KEY [@N]             scan FAMILY FROM TO [@N]     rscan FAMILY FROM TO [@N]
//! ```
//! Keys and values are `0x` and hex digits; family names hold no white space. Empty lines and lines that start with
//! `#` are passed over. `parse(print(ops)) == ops`.

use super::{Change, Op};
use crate::text::{from_hex, to_hex};
use std::fmt;

/// A line that is no operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for BadLine {}

/// One line per operation.
pub fn print(ops: &[Op]) -> String {
    ops.iter().map(|op| format!("{op}\n")).collect()
}

/// Reads a list of operations.
///
/// # Errors
/// The first invalid line.
pub fn parse(text: &str) -> Result<Vec<Op>, BadLine> {
    let mut ops = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            ops.push(line.parse().map_err(|why| BadLine { line: index + 1, why })?);
        }
    }
    Ok(ops)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Put { family, key, value } => write!(f, "put {family} {} {}", to_hex(key), to_hex(value)),
            Change::Delete { family, key } => write!(f, "delete {family} {}", to_hex(key)),
            Change::SingleDelete { family, key } => write!(f, "single_delete {family} {}", to_hex(key)),
            Change::Merge { family, key, operand } => {
                write!(f, "merge {family} {} {}", to_hex(key), to_hex(operand))
            }
            Change::DeleteRange { family, from, to } => {
                write!(f, "delete_range {family} {} {}", to_hex(from), to_hex(to))
            }
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = |at: &Option<u32>| at.map(|id| format!(" @{id}")).unwrap_or_default();
        match self {
            Op::Write { changes, sync } => {
                f.write_str(if *sync { "sync " } else { "" })?;
                let parts: Vec<String> = changes.iter().map(Change::to_string).collect();
                match parts.as_slice() {
                    [one] => f.write_str(one),
                    [] => f.write_str("batch"),
                    many => write!(f, "batch {}", many.join(" ; ")),
                }
            }
            Op::Flush { family } => write!(f, "flush {family}"),
            Op::Compact { family } => write!(f, "compact {family}"),
            Op::Reopen => f.write_str("reopen"),
            Op::Snapshot { id } => write!(f, "snapshot {id}"),
            Op::Release { id } => write!(f, "release {id}"),
            Op::Get { family, key, at } => write!(f, "get {family} {}{}", to_hex(key), suffix(at)),
            Op::Scan { family, from, to, reverse, at } => {
                let verb = if *reverse { "rscan" } else { "scan" };
                write!(f, "{verb} {family} {} {}{}", to_hex(from), to_hex(to), suffix(at))
            }
        }
    }
}

impl std::str::FromStr for Op {
    type Err = String;

    fn from_str(line: &str) -> Result<Op, String> {
        let (sync, rest) = match line.trim().strip_prefix("sync ") {
            Some(rest) => (true, rest.trim()),
            None => (false, line.trim()),
        };
        if rest == "batch" {
            return Ok(Op::Write { changes: Vec::new(), sync });
        }
        if let Some(list) = rest.strip_prefix("batch ") {
            let changes = list.split(';').map(change).collect::<Result<_, _>>()?;
            return Ok(Op::Write { changes, sync });
        }
        let verb = rest.split_whitespace().next().unwrap_or_default();
        if ["put", "delete", "single_delete", "merge", "delete_range"].contains(&verb) {
            return Ok(Op::Write { changes: vec![change(rest)?], sync });
        }
        if sync { Err(format!("only writes can be synced: {rest}")) } else { other(rest) }
    }
}

fn change(text: &str) -> Result<Change, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.as_slice() {
        ["put", family, key, value] => {
            Ok(Change::Put { family: (*family).into(), key: bytes(key)?, value: bytes(value)? })
        }
        ["delete", family, key] => Ok(Change::Delete { family: (*family).into(), key: bytes(key)? }),
        ["single_delete", family, key] => {
            Ok(Change::SingleDelete { family: (*family).into(), key: bytes(key)? })
        }
        ["merge", family, key, operand] => {
            Ok(Change::Merge { family: (*family).into(), key: bytes(key)?, operand: bytes(operand)? })
        }
        ["delete_range", family, from, to] => {
            Ok(Change::DeleteRange { family: (*family).into(), from: bytes(from)?, to: bytes(to)? })
        }
        _ => Err(format!("not a change: {}", text.trim())),
    }
}

fn other(line: &str) -> Result<Op, String> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let at = match words.last().and_then(|last| last.strip_prefix('@')) {
        Some(id) => {
            words.pop();
            Some(number(id)?)
        }
        None => None,
    };
    match (words.as_slice(), at) {
        (["flush", family], None) => Ok(Op::Flush { family: (*family).into() }),
        (["compact", family], None) => Ok(Op::Compact { family: (*family).into() }),
        (["reopen"], None) => Ok(Op::Reopen),
        (["snapshot", id], None) => Ok(Op::Snapshot { id: number(id)? }),
        (["release", id], None) => Ok(Op::Release { id: number(id)? }),
        (["get", family, key], at) => Ok(Op::Get { family: (*family).into(), key: bytes(key)?, at }),
        ([verb @ ("scan" | "rscan"), family, from, to], at) => Ok(Op::Scan {
            family: (*family).into(),
            from: bytes(from)?,
            to: bytes(to)?,
            reverse: *verb == "rscan",
            at,
        }),
        _ => Err(format!("not an operation: {line}")),
    }
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("not a snapshot number: {text}"))
}

fn bytes(text: &str) -> Result<Vec<u8>, String> {
    from_hex(text).ok_or_else(|| format!("not hex: {text}"))
}

#[cfg(test)]
mod tests {
    use super::super::{Mix, draw};
    use super::*;

    #[test]
    fn what_is_drawn_prints_and_parses_back() {
        for seed in 0..20 {
            let ops = draw(seed, 300, &Mix::default());
            assert_eq!(parse(&print(&ops)), Ok(ops), "seed {seed}");
        }
    }

    #[test]
    fn reads_every_form() {
        let text = "# a comment\n\nput a 0x 0x01\nsync delete b 0xFF\nbatch\nbatch put a 0x1122 0x ; delete a 0x\n\
                    single_delete a 0x01\nmerge a 0x01 0x02\nsync delete_range a 0x 0x01\nflush a\ncompact a\nreopen\nsnapshot 3\nget a 0x61 @3\nrscan a 0x 0xFF\nscan a 0x 0xFF @3\nrelease 3\n";
        let ops = parse(text).unwrap();
        assert_eq!(ops.len(), 15);
        assert_eq!(print(&ops), text.split_once("\n\n").unwrap().1);
    }

    #[test]
    fn names_the_bad_line() {
        for bad in [
            "put a 0x",
            "put a 0x1 0x",
            "sync flush a",
            "release x",
            "get a",
            "reopen @1",
            "batch put",
            "dance",
        ] {
            let answer = parse(&format!("flush a\n{bad}\n"));
            assert_eq!(answer.map_err(|e| e.line), Err(2), "{bad}");
        }
    }
}
