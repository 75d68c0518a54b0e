//! transactions: the prepared transactions. commit_transaction, rollback_transaction: the decision on one.

use super::{Target, close};
use crate::Done;
use crate::bytes_text::{counted, parse_bytes, quoted};
use crate::outcome::Outcome;
use ashlardb::{Db, UndecidedTransaction};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

/// Prints one line per transaction.
pub(super) fn list(target: &Target, out: &mut dyn Write) -> Done {
    let db = target.open_to_read()?;
    let undecided = &db.recovery().undecided;
    writeln!(out, "Prepared transactions in {}: {}", target.directory.display(), undecided.len())?;
    for transaction in undecided {
        writeln!(out, "{}", line(transaction, target.common.hex))?;
    }
    Ok(())
}

fn line(transaction: &UndecidedTransaction, hex: bool) -> String {
    let UndecidedTransaction { name, wal, bytes, families, .. } = transaction;
    let name_of = |family: &ashlardb::UndecidedFamily| match &family.name {
        // A name may contain any byte, control characters of the terminal too.
        Some(name) => name.escape_debug().to_string(),
        None => format!("(dropped, id {})", family.id.0),
    };
    let families: Vec<String> = families.iter().map(name_of).collect();
    format!(
        "{}: {}, {bytes} bytes, families {{{}}}, WAL file {wal}",
        quoted(name, hex),
        counted(transaction.keys(), "key"),
        families.join(", ")
    )
}

/// Commits (`commit`) or rolls back one.
pub(super) fn decide(target: &Target, name: &OsStr, commit: bool, out: &mut dyn Write) -> Done {
    let hex = target.common.hex;
    let name = parse_bytes(name.as_bytes(), hex).map_err(Outcome::Usage)?;
    let db = target.open()?;
    let Some(transaction) = db.transaction_by_name(&name)? else { return Err(unknown(&db, &name, hex)) };
    if commit { transaction.commit() } else { transaction.rollback() }?;
    db.sync()?;
    close(db, out, if commit { "the transaction was committed" } else { "the transaction was rolled back" })
}

fn unknown(db: &Db, name: &[u8], hex: bool) -> Outcome {
    let names: Vec<String> = db.recovery().undecided.iter().map(|other| quoted(&other.name, hex)).collect();
    let there = if names.is_empty() {
        "no transaction is prepared".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    };
    Outcome::Failed(format!("no prepared transaction has the name {}; {there}", quoted(name, hex)))
}
