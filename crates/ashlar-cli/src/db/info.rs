//! info: what opening found, how the levels look, how the database is.

use super::Target;
use crate::Done;
use ashlardb::Db;
use std::io::Write;

pub(super) fn run(target: &Target, out: &mut dyn Write) -> Done {
    let db = target.open_to_read()?;
    writeln!(out, "Database: {}", target.directory.display())?;
    write!(out, "{}", db.recovery())?;
    for family in db.families() {
        let shape = family.shape();
        writeln!(out, "\nFamily {:?}: {} tables, {} bytes", family.name(), shape.tables(), shape.bytes())?;
        for (level, (tables, bytes)) in shape.levels.iter().enumerate().filter(|(_, (tables, _))| *tables > 0)
        {
            writeln!(out, "  level {level}: {tables} tables, {bytes} bytes")?;
        }
    }
    health(&db, out)
}

fn health(db: &Db, out: &mut dyn Write) -> Done {
    let (severity, cause) = db.health();
    match cause {
        None => writeln!(out, "\nHealth: {severity:?}")?,
        Some(cause) => writeln!(out, "\nHealth: {severity:?}: {cause}")?,
    }
    Ok(())
}
