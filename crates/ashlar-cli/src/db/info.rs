//! info: the report of the open, the levels, the health. property: one figure or report.

use super::Target;
use crate::Done;
use crate::outcome::Outcome;
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
    write!(out, "\nThis open has in {}", db.memory_report().text())?;
    writeln!(out, "\nDisk: {}", db.disk_use())?;
    health(&db, out)
}

/// Prints the statistics of the family, for `--stats`.
pub(super) fn stats(target: &Target, out: &mut dyn Write) -> Done {
    let db = target.open_to_read()?;
    let stats = target.family(&db)?.property("rocksdb.stats").unwrap_or_default();
    Ok(writeln!(out, "{stats}")?)
}

/// Prints the property `name` of the family. One that is a map has a line for each of its values.
pub(super) fn property(target: &Target, name: &str, out: &mut dyn Write) -> Done {
    let db = target.open_to_read()?;
    let family = target.family(&db)?;
    if let Some(map) = family.map_property(name) {
        for (key, value) in map {
            writeln!(out, "{name}.{key}: {value}")?;
        }
        return Ok(());
    }
    match family.property(name) {
        Some(value) => Ok(writeln!(out, "{name}: {value}")?),
        None => {
            let text = format!(
                "there is no property {name:?}; docs/manual.md lists those to watch, such as rocksdb.stats"
            );
            Err(Outcome::Usage(text))
        }
    }
}

fn health(db: &Db, out: &mut dyn Write) -> Done {
    let health = db.health();
    let severity = health.severity;
    match health.cause {
        None => writeln!(
            out,
            "\nHealth: {severity:?}. No file was read for damage: `ashlar db DIR check` does that"
        )?,
        Some(cause) => writeln!(out, "\nHealth: {severity:?}: {cause}")?,
    }
    Ok(())
}
