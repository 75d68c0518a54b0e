//! Files that come in behind all data, in histories whose families keep a level for them.
//!
//! Every write hides the key of such a file, whether it came before or after the file. A deletion hides too, and so does a deletion
//! of a range. An operand of a merge applies to the value in the file.

use super::store::{Store, model_name};
use ashlar_base::{Error, ValueType};
use ashlar_engine::health::Severity;
use ashlar_engine::{IngestMode, IngestOptions};
use ashlar_testkit::ops::Change;
use std::path::{Path, PathBuf};

/// Where the files are written.
const FILES: &str = "/data/behind";

/// Key `n` of file number `file`. Files have different keys, because nothing says which of two would be above the other.
fn key(file: usize, n: usize) -> Vec<u8> {
    format!("behind/{file:04}/{n:02}").into_bytes()
}

impl Store {
    /// Writes to some of the keys of the next file, then brings it in behind. Some keys are hidden, then, and others are not.
    pub(super) fn ingest_behind(&mut self, family: &str, keys: usize) -> Result<(), String> {
        let Some(generation) = self.promise.names.get(family).copied() else { return Ok(()) };
        if !self.setup.family.ingest_behind
            || !self.may_write()?
            || self.db.health().severity > Severity::Healthy
        {
            return Ok(());
        }
        let file = self.features.files_behind;
        self.features.files_behind += 1;
        self.write_above(family, file, keys)?;
        if !self.may_write()? || self.doubt.is_some() {
            return Ok(());
        }
        let entries: Vec<_> = (0..keys).map(|n| (key(file, n), format!("behind {n}").into_bytes())).collect();
        let named = model_name(family, generation);
        // The table that an import brings deletes all keys.
        let hidden = self.imports(family, generation);
        let mut shown = Vec::new();
        for (key, value) in entries.iter().filter(|_| !hidden) {
            let above = self.model.above(&named, key, value);
            if let Some(value) = above.filter(|v| self.model.now().get(&named, key) != Some(v)) {
                shown.push(Change::Put { family: named.clone(), key: key.clone(), value });
            }
        }
        let number = self.model.apply(&shown);
        let mode = [IngestMode::Link, IngestMode::Copy, IngestMode::Move][file % 3];
        let options = IngestOptions::new().mode(mode).behind(true).verify(file.is_multiple_of(2));
        let done = self.bring(family, file, &entries, options);
        if self.passed("ingest behind", done)?.is_some() {
            self.features.count("files behind all data");
            self.promise.power = number;
            (self.promise.kill, self.promise.logged) = (number, number);
        } else {
            // A crash between the failure and the next MANIFEST may show it.
            self.doubt = Some(self.model.cut(number - 1));
        }
        Ok(())
    }

    /// Changes to keys of file number `file` and of the next one, so that tables above the file have them.
    fn write_above(&mut self, family: &str, file: usize, keys: usize) -> Result<(), String> {
        let name = || family.to_owned();
        let mut changes = Vec::new();
        for (n, at) in (0..keys).flat_map(|n| [(n, file), (n, file + 1)]) {
            let key = key(at, n);
            match (n + at) % 7 {
                0 => changes.push(Change::Delete { family: name(), key }),
                1 => changes.push(Change::Put { family: name(), key, value: b"above".to_vec() }),
                2 => changes.push(Change::Merge { family: name(), key, operand: b"merged".to_vec() }),
                3 if at == file => {
                    changes.push(Change::DeleteRange { family: name(), from: key, to: self::key(at, n + 2) })
                }
                _ => {}
            }
        }
        self.write(&changes, false)
    }

    fn bring(
        &self,
        family: &str,
        file: usize,
        entries: &[(Vec<u8>, Vec<u8>)],
        options: IngestOptions,
    ) -> Result<(), Error> {
        let handle =
            self.db.family(family).ok_or_else(|| Error::invalid(format!("family {family} is gone")))?;
        let fs = self.sim.env().fs;
        let path = PathBuf::from(FILES).join(format!("{file}.sst"));
        fs.create_dir_all(Path::new(FILES))?;
        let mut writer = self.db.sst_writer(&handle, &path)?;
        for (key, value) in entries {
            writer.add(ValueType::Put, key, value)?;
        }
        writer.finish()?;
        let done = self.db.ingest(&[(handle, vec![path.clone()])], options);
        // Gone after a move.
        let _ = fs.remove(&path);
        done.map(drop)
    }
}
