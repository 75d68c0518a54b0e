//! The contents of a meta file, and its text form.

use std::fmt::Write;

/// A field of schema 2 by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// One word.
    pub name: String,
    /// The rest of the line; in a file's line one word.
    pub value: String,
}

/// A file of a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupFile {
    /// Relative to the backup directory.
    pub path: String,
    /// Its CRC-32C, unmasked.
    pub checksum: Option<u32>,
    /// Its length.
    pub size: Option<u64>,
    /// Its temperature by number.
    pub temperature: Option<u8>,
    /// True for a file that the application keeps elsewhere: it is named here, not stored.
    pub excluded: bool,
    /// Further fields, not understood.
    pub fields: Vec<Field>,
}

/// The meta file of one backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupMeta {
    /// `None` in schema 1; the version as written, `2` or `2.x`, in schema 2.
    pub schema: Option<String>,
    /// When the backup was made, in seconds since 1970.
    pub timestamp: i64,
    /// The last sequence number in it.
    pub sequence: u64,
    /// What the application added; empty = nothing.
    pub app_metadata: Vec<u8>,
    /// Further fields, not understood.
    pub fields: Vec<Field>,
    /// Its files.
    pub files: Vec<BackupFile>,
    /// Unknown fields after the files; `None` = no footer.
    pub footer: Option<Vec<Field>>,
}

impl BackupMeta {
    /// The text, in RocksDB's form.
    pub fn print(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.print_to(&mut text);
        text
    }

    fn print_to(&self, out: &mut String) -> std::fmt::Result {
        if let Some(schema) = &self.schema {
            writeln!(out, "schema_version {schema}")?;
        }
        writeln!(out, "{}\n{}", self.timestamp, self.sequence)?;
        if !self.app_metadata.is_empty() {
            out.push_str("metadata ");
            for byte in &self.app_metadata {
                write!(out, "{byte:02X}")?;
            }
            out.push('\n');
        }
        for Field { name, value } in &self.fields {
            writeln!(out, "{name} {value}")?;
        }
        writeln!(out, "{}", self.files.len())?;
        for file in &self.files {
            file.print_to(out)?;
        }
        if let Some(fields) = &self.footer {
            out.push_str("// FOOTER\n");
            for Field { name, value } in fields {
                writeln!(out, "{name} {value}")?;
            }
        }
        Ok(())
    }
}

impl BackupFile {
    fn print_to(&self, out: &mut String) -> std::fmt::Result {
        out.push_str(&self.path);
        if let Some(checksum) = self.checksum {
            write!(out, " crc32 {checksum}")?;
        }
        if let Some(size) = self.size {
            write!(out, " size {size}")?;
        }
        if let Some(temperature) = self.temperature {
            write!(out, " temp {temperature}")?;
        }
        if self.excluded {
            out.push_str(" ni::excluded true");
        }
        for Field { name, value } in &self.fields {
            write!(out, " {name} {value}")?;
        }
        out.push('\n');
        Ok(())
    }
}
