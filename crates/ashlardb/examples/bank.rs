//! Accounts and transfers: transactions that lose no money, whatever runs beside them.
//!
//! `cargo run -p ashlardb --example bank [DIRECTORY]`

use ashlardb::prelude::*;
use ashlardb::{Error, Result};
use std::path::Path;

fn main() -> Result<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "bank.db".to_owned());
    run(Path::new(&dir))
}

const ACCOUNTS: [&str; 3] = ["ada", "bob", "eve"];

fn amount(stored: Option<impl AsRef<[u8]>>) -> u64 {
    stored.and_then(|bytes| bytes.as_ref().try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Moves money and writes a line into the journal. Both accounts stay locked until the transfer is done.
fn transfer(db: &Db, journal: &Family, from: &str, to: &str, cents: u64) -> Result<()> {
    db.transaction(|t| {
        let has = amount(t.get_for_update(from)?);
        let Some(left) = has.checked_sub(cents) else {
            return Err(Error::invalid(format!("{from} has {has} cents, and would pay {cents}")));
        };
        t.put(from, left.to_le_bytes())?;
        let before = amount(t.get_for_update(to)?);
        t.put(to, (before + cents).to_le_bytes())?;
        // The next number of the journal: a read for update, so no number is given twice.
        let number = amount(t.get_for_update("entries")?) + 1;
        t.put("entries", number.to_le_bytes())?;
        t.family(journal).put(number.to_be_bytes(), format!("{from} -> {to}: {cents}"))
    })
}

/// The sum of all accounts at one moment.
fn total(db: &Db) -> Result<u64> {
    let now = db.snapshot()?;
    ACCOUNTS.iter().map(|name| Ok(amount(now.get(name)?))).sum()
}

/// The example, in the directory `dir`.
pub fn run(dir: &Path) -> Result<()> {
    let db = Db::builder(dir).family("journal", |f| f).open()?;
    let journal = db.family("journal")?;
    for name in ACCOUNTS {
        db.put(name, 10_000_u64.to_le_bytes())?;
    }

    // Three threads move money in a circle. Where two want the same accounts, one waits; if each had what the other wants,
    // one would be rolled back and run again.
    std::thread::scope(|scope| {
        let transfers: Vec<_> = (0..ACCOUNTS.len())
            .map(|at| {
                let (db, journal) = (&db, &journal);
                let (from, to) = (ACCOUNTS[at], ACCOUNTS[(at + 1) % ACCOUNTS.len()]);
                scope.spawn(move || (1..=20).try_for_each(|cents| transfer(db, journal, from, to, cents)))
            })
            .collect();
        transfers.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })?;
    assert_eq!(total(&db)?, 30_000);

    // A transfer that fails changes nothing: neither an account nor the journal.
    let entries = journal.scan(..).count();
    let refused = transfer(&db, &journal, "ada", "bob", 1_000_000).err();
    println!("{}", refused.map_or_else(String::new, |e| e.to_string()));
    assert_eq!((total(&db)?, journal.scan(..).count()), (30_000, entries));

    // What would the accounts be with interest? Ask an indexed batch, and write it or not.
    let plan = db.indexed_batch();
    for name in ACCOUNTS {
        plan.put(name, (amount(plan.get(name)?) * 101 / 100).to_le_bytes())?;
    }
    let planned: u64 = plan.multi_get(ACCOUNTS)?.into_iter().map(amount).sum();
    println!("{planned} cents with interest");
    assert_eq!((planned, total(&db)?), (30_300, 30_000));
    db.close()
}
