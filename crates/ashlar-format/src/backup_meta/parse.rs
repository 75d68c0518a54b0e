//! Reads a meta file.

use super::{BackupFile, BackupMeta, Field};
use crate::unreadable::Unreadable;
use ashlar_base::Malformed;

/// Names that begin so must be understood.
const MANDATORY: &str = "ni::";

impl BackupMeta {
    /// Reads the text of a meta file.
    ///
    /// # Errors
    /// `Malformed`, with the offset of the line. `NotSupported`: an unknown schema, or a field that must be understood.
    pub fn parse(text: &str) -> Result<BackupMeta, Unreadable> {
        let mut lines = Lines { rest: text, at: 0, start: 0 };
        let mut meta = BackupMeta::default();
        let mut line = lines.next("backup.timestamp")?;
        if let Some(version) = line.strip_prefix("schema_version ") {
            match version {
                "1" => {}
                "2" => meta.schema = Some("2".into()),
                minor if minor.starts_with("2.") => meta.schema = Some(minor.into()),
                _ => return Err(Unreadable::NotSupported("backup meta files of an unknown schema")),
            }
            line = lines.next("backup.timestamp")?;
        }
        meta.timestamp = lines.number(line, "backup.timestamp")?;
        line = lines.next("backup.sequence")?;
        meta.sequence = lines.number(line, "backup.sequence")?;
        let files: usize = loop {
            line = lines.next("backup.number of files")?;
            match line.split_once(' ') {
                None => break lines.number(line, "backup.number of files")?,
                Some(("metadata", hex)) => meta.app_metadata = lines.hex(hex)?,
                Some(_) if meta.schema.is_none() => {
                    return Err(lines.wrong("backup.number of files", "not a number").into());
                }
                Some((name, value)) => meta.fields.push(optional(name, value)?),
            }
        };
        for _ in 0..files {
            line = lines.next("backup.file")?;
            if line == FOOTER && meta.schema.is_some() {
                return Err(lines.wrong("backup.file", "fewer files than announced").into());
            }
            meta.files.push(parse_file(&lines, line)?);
        }
        meta.footer = footer(&mut lines, meta.schema.is_some())?;
        Ok(meta)
    }
}

const FOOTER: &str = "// FOOTER";

fn footer(lines: &mut Lines<'_>, allowed: bool) -> Result<Option<Vec<Field>>, Unreadable> {
    if lines.rest.is_empty() {
        return Ok(None);
    }
    if lines.next("backup.footer")? != FOOTER || !allowed {
        return Err(lines.wrong("backup.footer", "more files than announced").into());
    }
    let mut fields = Vec::new();
    while !lines.rest.is_empty() {
        let line = lines.next("backup.footer")?;
        let (name, value) =
            line.split_once(' ').ok_or_else(|| lines.wrong("backup.footer", "a name without value"))?;
        fields.push(optional(name, value)?);
    }
    Ok(Some(fields))
}

fn optional(name: &str, value: &str) -> Result<Field, Unreadable> {
    if name.starts_with(MANDATORY) {
        return Err(Unreadable::NotSupported("a field of a backup meta file that must be understood"));
    }
    Ok(Field { name: name.into(), value: value.into() })
}

fn parse_file(lines: &Lines<'_>, line: &str) -> Result<BackupFile, Unreadable> {
    let mut words = line.split(' ');
    let path = words.next().unwrap_or_default();
    if !stays_inside(path) {
        return Err(lines.wrong("backup.file", "not a path within the backup directory").into());
    }
    let mut file = BackupFile { path: path.into(), ..BackupFile::default() };
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| lines.wrong("backup.file", "a name without value"))?;
        match name {
            "crc32" => file.checksum = Some(lines.number(value, "backup.checksum")?),
            "size" => file.size = Some(lines.number(value, "backup.size")?),
            "temp" => file.temperature = Some(lines.number(value, "backup.temperature")?),
            "ni::excluded" => match value {
                "true" => file.excluded = true,
                "false" => file.excluded = false,
                _ => return Err(lines.wrong("backup.excluded", "neither true nor false").into()),
            },
            _ => file.fields.push(optional(name, value)?),
        }
    }
    Ok(file)
}

/// A path of ordinary names only: restoring writes to it.
fn stays_inside(path: &str) -> bool {
    path.split('/').all(|name| !matches!(name, "" | "." | "..") && !name.contains(['\\', '\0']))
}

/// The lines, each with its offset.
struct Lines<'a> {
    rest: &'a str,
    at: usize,
    /// Where the last line started.
    start: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self, field: &'static str) -> Result<&'a str, Malformed> {
        self.start = self.at;
        // A last line without its end was cut, perhaps in the middle of a number.
        let (line, rest) = self.rest.split_once('\n').ok_or_else(|| self.wrong(field, "unexpected end"))?;
        self.at += self.rest.len() - rest.len();
        self.rest = rest;
        Ok(line)
    }

    fn wrong(&self, field: &'static str, what: &'static str) -> Malformed {
        Malformed { field, at: self.start, what }
    }

    fn number<T: std::str::FromStr>(&self, text: &str, field: &'static str) -> Result<T, Malformed> {
        text.parse().map_err(|_| self.wrong(field, "not a number"))
    }

    fn hex(&self, text: &str) -> Result<Vec<u8>, Malformed> {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (pairs, odd) = text.as_bytes().as_chunks::<2>();
        let bytes = pairs.iter().map(|[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect();
        match bytes {
            Some(bytes) if odd.is_empty() => Ok(bytes),
            _ => Err(self.wrong("backup.metadata", "not hex")),
        }
    }
}
