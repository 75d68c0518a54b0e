//! The visible content of a database, read by AshlarDB or by RocksDB.

use crate::sim::store::listing;
use ashlar_engine::Db;
use ashlar_options::ReadOptions;
use ashlar_testkit::judge::JudgeError;
use ashlar_testkit::oracle::{State, first_difference};
use ashlar_testkit::{Judge, KeyValue};

fn both_ways(name: &str, forward: &[KeyValue], backward: &[KeyValue]) -> Result<(), String> {
    let difference = first_difference(forward, backward);
    difference.map_or(Ok(()), |difference| Err(format!("family {name} backwards: {difference}")))
}

/// What we show, the same in both directions.
///
/// # Errors
/// A scan's, or where the directions differ.
pub(crate) fn ours(db: &Db) -> Result<State, String> {
    let mut listings = Vec::new();
    for family in db.families() {
        let list = |reverse| {
            let listed = listing(db, &family, ReadOptions::default(), reverse);
            listed.map_err(|e| format!("scan of {}: {e}", family.name()))
        };
        let forward = list(false)?;
        both_ways(family.name(), &forward, &list(true)?)?;
        listings.push((family.name().to_owned(), forward));
    }
    Ok(State::of(listings))
}

/// What the directory that RocksDB has open shows there, the same in both directions.
///
/// # Errors
/// RocksDB's; [`JudgeError::Refused`] too where the directions differ.
pub(crate) fn theirs(judge: &mut Judge) -> Result<State, JudgeError> {
    let mut listings = Vec::new();
    for name in judge.families()? {
        let forward = judge.dump(&name)?;
        let mut backward = judge.dump_backwards(&name)?;
        backward.reverse();
        both_ways(&name, &forward, &backward).map_err(JudgeError::Refused)?;
        listings.push((name, forward));
    }
    Ok(State::of(listings))
}

/// Both hold the same.
///
/// # Errors
/// The first difference.
pub(crate) fn same(expected: &State, found: &State) -> Result<(), String> {
    for name in expected.names().chain(found.names()) {
        if let Some(difference) = first_difference(&expected.entries(name), &found.entries(name)) {
            return Err(format!("family {name}: {difference}"));
        }
    }
    Ok(())
}
