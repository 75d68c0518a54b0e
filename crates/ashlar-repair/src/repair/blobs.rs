//! Values in blob files: which cannot be read, and which move to another blob file.
//!
//! 1. An entry that leads to a record of another key, or to no record, has lost its value, as one with a damaged record.
//! 2. A repair empties each damaged blob file: the readable values move to a new one. So no damaged record, referred to
//!    or not, stays in the database.
//! 3. A record has a checksum of its own. So a file with a damaged footer, or with other bytes at its end, keeps its values.
//! 4. A whole file of another length than recorded is another blob file. Its values of the same keys may be older, so none is read.

use ashlar_base::{Error, FamilyId, FileNumber, Result, Trailer};
use ashlar_blob::{BlobOptions, BlobReader, blob_places};
use ashlar_compaction::rewrite::BlobPlan;
use ashlar_env::Fs;
use ashlar_format::blob::{BlobFooter, BlobHeader, BlobPlace};
use ashlar_format::filename::FileKind;
use ashlar_format::version_edit::BlobAddition;
use ashlar_tree::blobs::{BlobFiles, BlobMap, add_blob_file};
use ashlar_tree::files::check_file_checksum;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Blob files that cannot be read completely, and the references into all of them.
#[derive(Default)]
pub(super) struct BadBlobs {
    /// The damaged files: those that can be opened, and those that cannot (`None`).
    files: BTreeMap<FileNumber, Option<Arc<BlobReader>>>,
    /// Where the readable values of damaged files are read from, to be moved. `None`: the values stay where they are.
    inputs: Option<Arc<BlobFiles>>,
    /// The files that have no damage of their own. `None`: references into them are not checked.
    intact: Option<Intact>,
}

/// Files without damage of their own, and the references into them.
struct Intact {
    fs: Arc<dyn Fs>,
    dir: PathBuf,
    /// The files that were read whole.
    read: BTreeSet<FileNumber>,
    /// The files that the present table refers to. `None`: there is no such file.
    open: RefCell<BTreeMap<FileNumber, Option<Arc<BlobReader>>>>,
    /// The files into which a reference led wrongly.
    strange: RefCell<BTreeSet<FileNumber>>,
}

impl BadBlobs {
    /// Checks every reference, also those into blob files of `dir` without damage of their own.
    pub(super) fn of_directory(fs: &Arc<dyn Fs>, dir: &Path) -> BadBlobs {
        let intact = Intact {
            fs: Arc::clone(fs),
            dir: dir.to_path_buf(),
            read: BTreeSet::new(),
            open: RefCell::default(),
            strange: RefCell::default(),
        };
        BadBlobs { intact: Some(intact), ..BadBlobs::default() }
    }

    /// Adds a file if it is damaged, and returns why. `known`: what the MANIFEST says of the file.
    pub(super) fn look(
        &mut self,
        fs: &dyn Fs,
        dir: &Path,
        number: FileNumber,
        known: Option<&BlobAddition>,
    ) -> Result<Option<Error>> {
        let path = dir.join(FileKind::Blob(number).name());
        let bytes = known.map(|known| known.bytes);
        let opened = fs.open_read(&path).and_then(|file| BlobReader::open(file, number, None, bytes));
        let whole = |reader: &BlobReader| {
            reader.verify()?;
            known.map_or(Ok(()), |known| {
                check_file_checksum(fs, &path, &known.checksum_method, &known.checksum).map(drop)
            })
        };
        let (wrong, reader) = match opened {
            Ok(reader) => match whole(&reader) {
                Ok(()) => {
                    if let Some(intact) = &mut self.intact {
                        intact.read.insert(number);
                    }
                    return Ok(None);
                }
                Err(e) => (e, Some(reader)),
            },
            Err(e) => {
                let reader = if e.is_corruption() { without_its_end(fs, &path, number)? } else { None };
                (e, reader)
            }
        };
        if !wrong.is_corruption() && !wrong.is_not_found() {
            return Err(wrong);
        }
        self.files.insert(number, reader);
        Ok(Some(wrong))
    }

    /// Moves the readable values of damaged files to other files; `inputs` holds them.
    pub(super) fn emptying(self, inputs: Arc<BlobFiles>) -> BadBlobs {
        self.files.values().flatten().for_each(|reader| inputs.read_through(reader));
        BadBlobs { inputs: Some(inputs), ..self }
    }

    /// [`BadBlobs::emptying`] of files that no MANIFEST describes.
    pub(super) fn emptying_unnamed(self, fs: &Arc<dyn Fs>, dir: &Path) -> Result<BadBlobs> {
        let (mut map, ends) = (BlobMap::new(), (BlobHeader::LEN + BlobFooter::LEN) as u64);
        for reader in self.files.values().flatten() {
            let (number, count) = (reader.number(), reader.count());
            let bytes = reader.size().saturating_sub(ends);
            add_blob_file(&mut map, &BlobAddition { number, count, bytes, ..BlobAddition::default() })?;
        }
        let inputs = BlobFiles::new(Arc::clone(fs), dir.to_path_buf(), map);
        Ok(self.emptying(Arc::new(inputs)))
    }

    /// How values and blobs are handled when tables are copied.
    pub(super) fn plan(&self, family: FamilyId, options: &BlobOptions) -> BlobPlan {
        let openable = self.files.iter().filter(|(_, reader)| reader.is_some()).map(|(number, _)| *number);
        match &self.inputs {
            // As in the deepest level: values of a blob file go to a blob file.
            Some(inputs) if !self.files.is_empty() => {
                BlobPlan::new(family, options, u8::MAX).emptying(openable.collect(), Arc::clone(inputs))
            }
            _ => BlobPlan::new(family, &BlobOptions::default(), 0),
        }
    }

    /// Whether no entry can stay that refers to the file: none can be read, or all that can are moved.
    pub(super) fn is_left(&self, number: FileNumber) -> bool {
        self.files.get(&number).is_some_and(|reader| reader.is_none() || self.inputs.is_some())
    }

    /// The files without damage of their own into which a reference led wrongly.
    pub(super) fn strange(&self) -> BTreeSet<FileNumber> {
        self.intact.as_ref().map(|intact| intact.strange.borrow().clone()).unwrap_or_default()
    }

    /// Closes the files that were opened for a table.
    pub(super) fn end_of_table(&self) {
        self.intact.iter().for_each(|intact| intact.open.borrow_mut().clear());
    }

    /// Whether an entry cannot stay as it is: it refers to a lost value, or to a value that is moved.
    pub(super) fn changes(&self, user_key: &[u8], trailer: Trailer, value: &[u8]) -> Result<bool> {
        let (Some(_), Some(value_type)) = (&self.inputs, trailer.value_type()) else {
            return self.fail(user_key, trailer, value);
        };
        let mut moved = false;
        // What does not decode is for `fail`.
        drop(blob_places(value_type, value, |place| moved |= self.is_left(place.file)));
        Ok(moved || self.fail(user_key, trailer, value)?)
    }

    /// Whether an entry's value, or a part of it, is lost.
    pub(super) fn fail(&self, user_key: &[u8], trailer: Trailer, value: &[u8]) -> Result<bool> {
        let Some(value_type) = trailer.value_type() else { return Ok(false) };
        let (mut failed, mut unread) = (false, None);
        let decoded = blob_places(value_type, value, |place| match self.read(user_key, &place) {
            Ok(()) => {}
            Err(e) if e.is_corruption() => failed = true,
            Err(e) => unread = Some(e),
        });
        failed |= decoded.is_err_and(|e| e.is_corruption());
        // A failed read proves no damage.
        unread.map_or(Ok(failed), Err)
    }

    /// Reads the record at `place`; of a file that was read whole, its head alone.
    ///
    /// # Errors
    /// `Corruption`: no record of the key is there. `Io`.
    fn read(&self, user_key: &[u8], place: &BlobPlace) -> Result<()> {
        match (self.files.get(&place.file), &self.intact) {
            (Some(None), _) => Err(Error::corruption("the blob file cannot be read")),
            (Some(Some(reader)), _) => reader.get(user_key, place, true).map(drop),
            (None, Some(intact)) if place.file.0 != 0 => intact.read(user_key, place),
            (None, _) => Ok(()),
        }
    }
}

/// The reader of a blob file whose end is damaged. `None`: it is no blob file, or a whole one. A whole file of another length than
/// the MANIFEST records is another file, which may have older values of the same keys.
fn without_its_end(fs: &dyn Fs, path: &Path, number: FileNumber) -> Result<Option<Arc<BlobReader>>> {
    let unless_damaged = |opened: Result<Arc<BlobReader>>| match opened {
        Ok(reader) => Ok(Some(reader)),
        Err(e) if e.is_corruption() => Ok(None),
        Err(e) => Err(e),
    };
    let file = fs.open_read(path)?;
    match unless_damaged(BlobReader::open(Arc::clone(&file), number, None, None))? {
        Some(_) => Ok(None),
        None => unless_damaged(BlobReader::open_unclosed(file, number)),
    }
}

impl Intact {
    fn read(&self, user_key: &[u8], place: &BlobPlace) -> Result<()> {
        let is_whole = self.read.contains(&place.file);
        let mut open = self.open.borrow_mut();
        let reader = match open.get(&place.file) {
            Some(reader) => reader.clone(),
            None => {
                let reader = self.reader(place.file)?;
                open.insert(place.file, reader.clone());
                reader
            }
        };
        let found = match &reader {
            None => Err(Error::corruption("there is no such blob file")),
            Some(reader) if is_whole => reader.check_place(user_key, place),
            // As a read does: nothing else proves a record of a file that no MANIFEST names.
            Some(reader) => reader.get(user_key, place, true).map(drop),
        };
        if found.as_ref().is_err_and(Error::is_corruption) && is_whole {
            self.strange.borrow_mut().insert(place.file);
        }
        found
    }

    fn reader(&self, number: FileNumber) -> Result<Option<Arc<BlobReader>>> {
        let opened = self.fs.open_read(&self.dir.join(FileKind::Blob(number).name()));
        let opened = opened.and_then(|file| match self.read.contains(&number) {
            true => BlobReader::open(file, number, None, None),
            false => BlobReader::open_unclosed(file, number),
        });
        match opened {
            Ok(reader) => Ok(Some(reader)),
            Err(e) if e.is_not_found() || e.is_corruption() => Ok(None),
            Err(e) => Err(e),
        }
    }
}
