//! Reads a whole table and verifies it.

use crate::anatomy::Anatomy;
use crate::filter::filter_hash;
use crate::options::ReaderOptions;
use crate::read_how::ReadHow;
use crate::reader::{BlockAt, Readahead, TableReader};
use ashlar_base::{
    Error, ErrorKind, FileNumber, InternalKey, InternalKeyBuf, Order, Result, SeqNum, Trailer,
};
use ashlar_cache::FramePool;
use ashlar_format::block::{
    BlockCursor, Bucket, DataBlock, EntryFormat, HashIndex, InternalEntries, ValueRange,
};
use std::fmt;
use std::ops::Deref;

/// The memory for decompressed blocks while a table is verified by itself. No block is read twice.
const POOL_BYTES: usize = 1 << 20;

/// Bytes read at a time.
const READAHEAD: usize = 1 << 20;

impl TableReader {
    /// Reads every data block without the block cache, and checks: checksums, the order of all keys, restart points,
    /// that each block lies between the separators of the index, that the filter is whole and excludes no key, and the
    /// counts in the properties. Returns the number of entries. The open has checked index and properties.
    ///
    /// # Errors
    /// `Corruption`, with the block's offset, for the first damage.
    pub fn verify(&self) -> Result<u64> {
        self.verify_each(&mut |_, _| {})
    }

    /// [`TableReader::verify`] that also passes every entry to `visit`, with the sequence number that readers see.
    /// `visit` has then seen all entries before a damage.
    ///
    /// # Errors
    /// As [`TableReader::verify`].
    pub fn verify_each(&self, visit: Visit<'_>) -> Result<u64> {
        let mut verification = Verification::begin(self)?;
        while !verification.step_each(u64::MAX, visit)? {}
        Ok(verification.entries())
    }
}

/// Takes the entries of a table in order.
type Visit<'v> = &'v mut dyn FnMut(InternalKey<'_>, &[u8]);

/// [`TableReader::verify`] in steps.
pub struct Verification<T> {
    table: T,
    walk: Walk,
    readahead: Readahead,
    next: Option<BlockAt>,
    blocks: u64,
    bytes: u64,
}

impl<T: Deref<Target = TableReader>> Verification<T> {
    /// Begins with the filter, and with blocks that no read needs.
    ///
    /// # Errors
    /// As [`TableReader::verify`].
    pub fn begin(table: T) -> Result<Self> {
        if let Some(e) = table.filter_error() {
            return Err(e.clone());
        }
        table.filter().check(table.file())?;
        for block in table.unread() {
            table.file().read_verified(*block)?;
        }
        let walk = Walk { last: None, entries: 0, values: 0, partitioned: table.filter().is_partitioned() };
        let readahead = Readahead::new(READAHEAD, table.charge_buffer());
        let next = table.first_block(ReadHow::plain())?;
        Ok(Verification { walk, readahead, next, blocks: 0, bytes: 0, table })
    }

    /// Verifies blocks until about `bytes` stored bytes are read. True: it was the last block, and the counts agree.
    ///
    /// # Errors
    /// As [`TableReader::verify`]. The verification ends with the error.
    pub fn step(&mut self, bytes: u64) -> Result<bool> {
        self.step_each(bytes, &mut |_, _| {})
    }

    fn step_each(&mut self, bytes: u64, visit: Visit<'_>) -> Result<bool> {
        let until = self.bytes.saturating_add(bytes);
        while let Some(at) = self.next {
            self.walk.block(&self.table, at, &mut self.readahead, visit)?;
            self.bytes += self.table.handle(at).map_or(0, |handle| handle.size);
            self.blocks += 1;
            self.next = self.table.after(at, ReadHow::plain())?;
            if self.bytes >= until {
                break;
            }
        }
        match self.next {
            Some(_) => Ok(false),
            None => self.check_counts().map(|()| true),
        }
    }

    /// The number of entries so far.
    pub fn entries(&self) -> u64 {
        self.walk.entries
    }

    /// The stored bytes of the blocks so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn check_counts(&self) -> Result<()> {
        let (properties, blocks, found) = (self.table.properties(), self.blocks, self.walk.entries);
        // RocksDB does not count the blocks from which it samples a dictionary, which may be all blocks.
        let sampled = properties.compression_options.as_ref().is_some_and(|text| samples_a_dictionary(text));
        let counted = |said: &u64| *said != blocks && !(sampled && *said < blocks) && *said != 0;
        if let Some(said) = properties.num_data_blocks.filter(counted) {
            let text = format!("table has {blocks} data blocks where its properties say {said}");
            return Err(Error::corruption(text).at_path(self.table.path()));
        }
        if let Some(all) = properties.num_entries {
            let points = all.saturating_sub(properties.num_range_deletions.unwrap_or(0));
            if found != points && found != all {
                let text = format!("table has {found} entries where its properties say {points}");
                return Err(Error::corruption(text).at_path(self.table.path()));
            }
        }
        // Scans pass such a table by.
        let values = self.walk.values;
        let only_deletions =
            properties.num_entries.is_some() && properties.num_deletions == properties.num_entries;
        if values > 0 && only_deletions && properties.num_range_deletions.unwrap_or(0) == 0 {
            let text =
                format!("table has {values} values where its properties say that all entries are deletions");
            return Err(Error::corruption(text).at_path(self.table.path()));
        }
        Ok(())
    }
}

/// Whether the compression options in a table's properties ask for a dictionary.
fn samples_a_dictionary(text: &str) -> bool {
    let value = text.split(';').find_map(|part| part.trim().strip_prefix("max_dict_bytes="));
    value.is_some_and(|value| value.trim() != "0")
}

impl<T: Deref<Target = TableReader>> fmt::Debug for Verification<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Verification({}, {} bytes)", self.table.path().display(), self.bytes)
    }
}

impl TableReader {
    /// Whether the filter can be read and is in use. Without it, reads search the blocks.
    pub fn has_readable_filter(&self) -> bool {
        self.filter_error().is_none() && self.filter().check(self.file()).is_ok()
    }
}

impl Anatomy {
    /// Compares the checksum of every block and decompresses it; where the order of the keys is a built-in one, also reads
    /// all entries as a database does ([`TableReader::verify`]) and returns how many there are.
    ///
    /// # Errors
    /// `Corruption`, `Io`: of the first thing found.
    pub fn verify(&self) -> Result<Option<u64>> {
        let (places, error) = self.places();
        for place in places {
            self.block(place.handle)?.content?;
        }
        error.map_or(Ok(()), Err)?;
        let name = self.properties()?.comparator.as_deref().unwrap_or("leveldb.BytewiseComparator");
        let Some(order) = Order::by_name(name) else { return Ok(None) };
        let options = ReaderOptions::new(order, FramePool::new(POOL_BYTES), FileNumber(0));
        match TableReader::open(self.file(), self.size(), options).and_then(|reader| reader.verify()) {
            // An unserved feature does not prevent the check block by block.
            Err(e) if e.kind() == ErrorKind::NotSupported => Ok(None),
            other => other.map(Some),
        }
    }
}

/// The state of a verification between two keys.
struct Walk {
    last: Option<InternalKeyBuf>,
    entries: u64,
    /// The entries that are no deletions.
    values: u64,
    /// Each partition of the filter must know the keys whose versions begin before it.
    partitioned: bool,
}

impl Walk {
    fn block(
        &mut self,
        table: &TableReader,
        at: BlockAt,
        readahead: &mut Readahead,
        visit: Visit<'_>,
    ) -> Result<()> {
        let Some(handle) = table.handle(at) else { return Ok(()) };
        let bytes = readahead.read(table.file(), handle)?;
        let block = DataBlock::parse(&bytes).map_err(|e| table.misread(at, e))?;
        let mut cursor = BlockCursor::default();
        let mut restarts = 0;
        cursor.first(&block).map_err(|e| table.misread(at, e.into()))?;
        while let Some(key) = cursor.internal_key() {
            while block.restart(restarts) == Some(cursor.offset()) && has_whole_key(&block, cursor.offset()) {
                restarts += 1;
            }
            self.entry(table, key).map_err(|what| Error::corruption(what).at(table.path(), handle.offset))?;
            let (user_key, trailer) = key.split();
            if !table.filter().block_may_contain(|| handle.offset, user_key) {
                let what = "filter denies a key of its block";
                return Err(Error::corruption(what).at(table.path(), handle.offset));
            }
            if table.find(user_key, trailer, ReadHow::plain())? != Some(at) {
                let what = "key outside the bounds the index gives its block";
                return Err(Error::corruption(what).at(table.path(), handle.offset));
            }
            if let Some(index) = HashIndex::of(&bytes)
                && !holds(index, &block, user_key, cursor.offset())
            {
                let what = "hash index sends a key to another restart point";
                return Err(Error::corruption(what).at(table.path(), handle.offset));
            }
            match table.global_seq() {
                None => visit(key, cursor.value(&block)),
                Some(_) => {
                    let seen = InternalKeyBuf::new(user_key, table.present(trailer));
                    visit(seen.as_key(), cursor.value(&block));
                }
            }
            cursor.next(&block).map_err(|e| table.misread(at, e.into()))?;
        }
        if restarts < block.restart_count() && !block.entries().is_empty() {
            let what = "restart point where no entry with a whole key starts";
            return Err(Error::corruption(what).at(table.path(), handle.offset));
        }
        Ok(())
    }

    fn entry(&mut self, table: &TableReader, key: InternalKey<'_>) -> Result<(), &'static str> {
        let (user_key, trailer) = key.split();
        let order = table.order();
        let Some(value_type) = trailer.value_type() else { return Err("key of an unknown type") };
        if table.global_seq().is_some() && trailer.seq() != SeqNum::ZERO {
            return Err("key with a sequence number of its own, where all have one in common");
        }
        let mut new_user_key = true;
        if let Some(last) = &self.last {
            if order.compare_internal(last.as_key(), key).is_ge() {
                return Err("keys out of order");
            }
            new_user_key = last.as_key().user_key() != user_key;
        }
        let may_contain =
            || table.filter().may_contain(table.file(), user_key, trailer, filter_hash(user_key));
        if (new_user_key || self.partitioned) && !may_contain() {
            return Err("filter denies a key of the table");
        }
        if new_user_key && !table.filter().may_meet(table.file(), user_key, user_key, true) {
            return Err("filter denies the prefix of a key of the table");
        }
        self.entries += 1;
        self.values += u64::from(!value_type.deletes());
        self.last.get_or_insert_with(|| InternalKeyBuf::new(&[], Trailer::LAST)).set(user_key, trailer);
        Ok(())
    }
}

/// Whether the entry at `offset` shares no bytes with the one before, as at every restart point.
fn has_whole_key(block: &DataBlock<'_>, offset: usize) -> bool {
    let entry = InternalEntries.decode(block.entries(), offset, &ValueRange::default());
    entry.is_ok_and(|entry| entry.shared == 0)
}

/// Whether the hash index leads a lookup of that key to the entry at `offset`.
fn holds(index: HashIndex<'_>, block: &DataBlock<'_>, user_key: &[u8], offset: usize) -> bool {
    match index.find(user_key) {
        Bucket::Collision => true,
        Bucket::Absent => false,
        Bucket::Interval(at) => {
            block.restart(at).is_some_and(|start| start <= offset)
                && block.restart(at + 1).is_none_or(|end| offset < end)
        }
    }
}
