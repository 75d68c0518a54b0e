//! The tables and blob files of a version, one by one, and the keys that their damages put at risk.

use super::family::Family;
use super::report::{CheckReport, Damage, KeySpan, Risk};
use super::values::Values;
use crate::files::{FileChecksum, check_file_checksum};
use crate::version::FileMeta;
use ashlar_base::{Error, ErrorKind, FileNumber, InternalIterator, Result};
use ashlar_blob::{BlobReader, blob_places};
use ashlar_format::filename::FileKind;
use ashlar_table::{LostStretch, ReadHow, TableReader};
use std::sync::Arc;

impl Family<'_> {
    /// Reads one table whole and adds what is wrong with it to the report.
    pub(super) fn table(&self, file: &FileMeta, report: &mut CheckReport) {
        let whole = || {
            let (from, to) = (file.smallest().user_key().to_vec(), file.largest().user_key().to_vec());
            Risk::Keys(vec![KeySpan { from, to }])
        };
        report.tables += 1;
        report.bytes += file.size();
        let before = report.damages.len();
        let name = match self.version.tables().open(&file.file) {
            Ok(table) => {
                let name = table.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.entries(file, &table, &name, report);
                name
            }
            Err(e) if e.kind() == ErrorKind::NotSupported => {
                let name = FileKind::Table(file.number()).name();
                report.unchecked.push(format!("{name}: {}; family {:?}", e.message(), self.name));
                return;
            }
            Err(e) => {
                let name = FileKind::Table(file.number()).name();
                report.tell(&e, Damage::of(&name, &e, whole()).in_family(self.name));
                return;
            }
        };
        let (function, sum) = (&file.file.checksum_function, &file.file.checksum);
        if let Err(e) =
            self.checksum(&name, function.as_deref(), sum.as_deref(), report)
            // The damages found in blocks already say more.
            && report.damages.len() == before
        {
            report.tell(&e, Damage::of(&name, &e, whole()).in_family(self.name));
        }
    }

    fn entries(&self, file: &FileMeta, table: &Arc<TableReader>, name: &str, report: &mut CheckReport) {
        let mut values = Values::new(self, file, table);
        let verified = table.verify_each(&mut |key, value| values.entry(key, value));
        let values = values.finish();
        report.entries += verified.as_ref().copied().unwrap_or_default();
        let mut push = |e: &Error, risk| report.tell(e, Damage::of(name, e, risk).in_family(self.name));
        let (from, to) = (file.smallest().user_key(), file.largest().user_key());
        for (wrong, keys) in values {
            push(&wrong, Risk::Keys(keys));
        }
        let Err(wrong) = verified else {
            if let Err(e) = self.within_bounds(file, table) {
                push(&e, Risk::Keys(vec![KeySpan { from: from.to_vec(), to: to.to_vec() }]));
            }
            return;
        };
        let mut entries = 0;
        let lost = table.read_around(&mut |_, _| {
            entries += 1;
            Ok(())
        });
        let lost = lost.unwrap_or_default();
        for stretch in &lost {
            push(&stretch.error, Risk::Keys(vec![span_of(stretch, from)]));
        }
        if lost.is_empty() {
            // All blocks are readable, so the filter, the index or a count is wrong. The check does not ask an
            // unreadable filter.
            let risk = match table.has_readable_filter() {
                false => Risk::Nothing,
                true => Risk::Keys(vec![KeySpan { from: from.to_vec(), to: to.to_vec() }]),
            };
            push(&wrong, risk);
        }
        report.entries += entries;
    }

    /// Checks that the first and last entry are within the bounds in the MANIFEST.
    fn within_bounds(&self, file: &FileMeta, table: &Arc<TableReader>) -> Result<()> {
        let order = self.version.tables().order();
        let mut ends = table.iter(ReadHow { fill_cache: false, ..ReadHow::default() });
        ends.first()?;
        let low = |key: &[u8]| order.compare(key, file.smallest().user_key()).is_lt();
        let mut outside = ends.entry().is_some_and(|entry| low(entry.key.user_key()));
        ends.last()?;
        let high = |key: &[u8]| order.compare(key, file.largest().user_key()).is_gt();
        outside |= ends.entry().is_some_and(|entry| high(entry.key.user_key()));
        match outside {
            true => Err(Error::corruption("keys outside of the bounds that the MANIFEST has for the table")),
            false => Ok(()),
        }
    }

    fn checksum(
        &self,
        name: &str,
        function: Option<&[u8]>,
        recorded: Option<&[u8]>,
        report: &mut CheckReport,
    ) -> Result<()> {
        let (function, recorded) = (function.unwrap_or_default(), recorded.unwrap_or_default());
        match check_file_checksum(self.fs, &self.dir.join(name), function, recorded)? {
            FileChecksum::Right(_) => report.checksums += 1,
            FileChecksum::NotRecorded => {}
            FileChecksum::UnknownFunction => report.remarks.push(format!(
                "{name} has a checksum of a function that is not known here: {}",
                function.escape_ascii()
            )),
        }
        Ok(())
    }

    /// Reads one blob file whole. If it is damaged, finds the keys whose values are lost.
    pub(super) fn blob_file(&self, number: FileNumber, report: &mut CheckReport) {
        let Some(file) = self.version.blobs().files().get(&number) else { return };
        let name = FileKind::Blob(number).name();
        report.blob_files += 1;
        report.bytes += file.added.bytes;
        let opened = self
            .fs
            .open_read(&self.dir.join(&name))
            .and_then(|f| BlobReader::open(f, number, None, Some(file.added.bytes)));
        let wrong = match &opened {
            Ok(reader) => match reader.verify() {
                Ok(amount) => {
                    report.entries += amount.count;
                    let (function, sum) = (&file.added.checksum_method, &file.added.checksum);
                    self.checksum(&name, Some(function), Some(sum), report).err()
                }
                Err(e) => Some(e),
            },
            Err(e) => Some(e.clone()),
        };
        let Some(wrong) = wrong else {
            for (table, (e, keys)) in self.suspects.of(number) {
                report.tell(&e, Damage::of(&table, &e, Risk::Keys(keys)).in_family(self.name));
            }
            return;
        };
        let keys = self.keys_failed_by(number, opened.as_deref().ok());
        let risk = match keys.is_empty() {
            true => Risk::Nothing,
            false => Risk::Keys(keys.iter().map(|key| KeySpan::key(key)).collect()),
        };
        report.tell(&wrong, Damage::of(&name, &wrong, risk).in_family(self.name));
    }

    /// The user keys of entries whose value is in this file and cannot be read.
    fn keys_failed_by(&self, number: FileNumber, reader: Option<&BlobReader>) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        for (_, file) in self.version.files() {
            // A table names the oldest blob file that it points into.
            if file.file.oldest_blob_file.0 == 0 || file.file.oldest_blob_file > number {
                continue;
            }
            let Ok(table) = self.version.tables().open(&file.file) else { continue };
            let read = table.read_around(&mut |key, value| {
                let (user_key, trailer) = key.split();
                let Some(value_type) = trailer.value_type() else { return Ok(()) };
                let mut failed = false;
                blob_places(value_type, value, |place| {
                    failed |= place.file == number
                        && reader.is_none_or(|reader| reader.get(user_key, &place, true).is_err());
                })?;
                if failed {
                    keys.push(user_key.to_vec());
                }
                Ok(())
            });
            // A table that cannot be read at all is reported as a separate damage.
            drop(read);
        }
        keys.sort();
        keys.dedup();
        keys
    }
}

/// The keys of a stretch; `first` is the first one of its table.
pub fn span_of(stretch: &LostStretch, first: &[u8]) -> KeySpan {
    KeySpan { from: stretch.from.clone().unwrap_or_else(|| first.to_vec()), to: stretch.to.clone() }
}
