//! The data blocks of an open table: from the block cache, or read from the file.
//!
//! 1. A cursor, and a lookup in a series, put the blocks that they read into the cache.
//! 2. A lookup by itself reads into its thread's buffers (`scratch`). The cache decides whether the block enters
//!    ([`SlotArray::admits`](ashlar_cache::SlotArray::admits)). So random lookups in more data than the cache holds neither
//!    evict what other reads use, nor pay for it.
//! 3. Every read from the file compares the checksum, unless the table or the read does without. A block read without is
//!    not kept for other reads.

use crate::read_how::ReadHow;
use crate::reader::scratch::{BlockId, Scratch, with_scratch};
use crate::reader::table_index::Partition;
use crate::reader::{Ahead, BlockAt, TableReader};
use ashlar_base::bytes::copied;
use ashlar_base::kept::with_kept;
use ashlar_base::stats::Ticker;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{Error, Result};
use ashlar_cache::FramePin;
use ashlar_format::Unreadable;
use ashlar_format::block::{DataBlock, Sidecar, SidecarBuilder};
use ashlar_format::table::BlockHandle;
use std::borrow::Cow;
use std::cell::RefCell;

thread_local! {
    static SIDECARS: RefCell<SidecarBuilder> = RefCell::default();
}

/// A block during a lookup.
pub(super) enum Held<'s> {
    Pinned(FramePin),
    /// The thread's buffer: the block is not in the cache.
    Scratch(&'s [u8]),
}

/// A block of the cache, and its sidecar.
#[inline]
pub(crate) fn opened(pin: &FramePin) -> Result<DataBlock<'_>, Unreadable> {
    Ok(DataBlock::reopen(pin)?.with_sidecar(pin.sidecar()))
}

impl Held<'_> {
    /// The bytes of the block.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Held::Pinned(pin) => pin,
            Held::Scratch(bytes) => bytes,
        }
    }

    /// The block, with its sidecar if it is in the cache.
    #[inline]
    pub(super) fn opened(&self) -> Result<DataBlock<'_>, Unreadable> {
        match self {
            Held::Pinned(pin) => opened(pin),
            Held::Scratch(bytes) => DataBlock::reopen(bytes),
        }
    }
}

impl TableReader {
    /// The data block, from the pool or the file.
    #[inline]
    pub(crate) fn block(&self, at: BlockAt, how: &ReadHow, ahead: Option<&mut Ahead>) -> Result<FramePin> {
        self.block_of(self.partition(at, how)?, at, how, ahead)
    }

    #[inline]
    pub(super) fn block_of(
        &self,
        part: &Partition,
        at: BlockAt,
        how: &ReadHow,
        ahead: Option<&mut Ahead>,
    ) -> Result<FramePin> {
        match self.hit(part, at) {
            Some(pin) => Ok(pin),
            None => self.load(part, at.block(), how, ahead),
        }
    }

    /// Prefetches the slot of a data block.
    #[inline]
    pub(crate) fn prefetch_slot(&self, at: BlockAt) {
        if let Some(part) = self.index.loaded(at.partition()) {
            part.slots.prefetch(at.block());
        }
    }

    /// Prefetches the head of the frame of a data block.
    #[inline]
    pub(crate) fn prefetch_frame(&self, at: BlockAt) {
        if let Some(part) = self.index.loaded(at.partition()) {
            part.slots.prefetch_frame(at.block());
        }
    }

    /// Prefetches a whole data block with the head of its frame.
    #[inline]
    pub(crate) fn prefetch_block(&self, at: BlockAt) {
        if let Some(part) = self.index.loaded(at.partition()) {
            part.slots.prefetch_all(at.block());
        }
    }

    /// The block, if it is in the pool.
    #[inline]
    pub(super) fn hit(&self, part: &Partition, at: BlockAt) -> Option<FramePin> {
        let pin = part.slots.hit(at.block())?;
        perf::add(Metric::BlockCacheHitCount, 1);
        if let Some(statistics) = self.file.statistics() {
            statistics.add_all([
                (Ticker::BlockCacheHit, 1),
                (Ticker::BlockCacheDataHit, 1),
                (Ticker::BlockCacheBytesRead, pin.len() as u64),
            ]);
        }
        Some(pin)
    }

    #[cold]
    fn load(
        &self,
        part: &Partition,
        block: u32,
        how: &ReadHow,
        ahead: Option<&mut Ahead>,
    ) -> Result<FramePin> {
        let handle = self.missed(part, block)?;
        let file = self.file.reading(how);
        if let Some(ahead) = ahead
            && !how.cached_only
        {
            ahead.reads(&file, handle.offset..handle.offset.saturating_add(file.stored_len(handle)? as u64));
        }
        let bytes = file.read_data(handle)?;
        DataBlock::parse(&bytes).map_err(|e| e.in_file(self.path(), handle.offset))?;
        if !how.fill_cache || !self.is_trusted(how) {
            return Ok(part.slots.hold(bytes));
        }
        Ok(self.admit(part, block, bytes.into()))
    }

    /// Reads a block for a lookup by itself. It enters the cache only where [`SlotArray::admits`](ashlar_cache::SlotArray)
    /// says so.
    pub(super) fn load_scratch<'s>(
        &self,
        part: &Partition,
        at: BlockAt,
        how: &ReadHow,
        scratch: &'s mut Scratch,
    ) -> Result<Held<'s>> {
        let id = self.block_id(part, at);
        if part.index.handle(at.block()).is_some_and(|handle| !Scratch::takes(handle)) {
            return self.load(part, at.block(), how, None).map(Held::Pinned);
        }
        let handle = self.missed(part, at.block())?;
        if how.cached_only || !scratch.has(id) {
            self.file.reading(how).read_into(scratch, handle)?;
            DataBlock::parse(scratch.block()).map_err(|e| e.in_file(self.path(), handle.offset))?;
            scratch.keep(self.is_trusted(how).then_some(id));
        }
        let block = scratch.block();
        if how.fill_cache
            && self.is_trusted(how)
            && let Some(_admission) = part.slots.admits(at.block(), block.len() + Sidecar::most(block.len()))
        {
            return Ok(Held::Pinned(self.admit(part, at.block(), block.into())));
        }
        Ok(Held::Scratch(block))
    }

    fn block_id(&self, part: &Partition, at: BlockAt) -> BlockId {
        BlockId { slots: part.slots.id(), ordinal: at.block() }
    }

    /// Whether later reads may use a block that is read so: they count on the checksums that the options ask for.
    fn is_trusted(&self, how: &ReadHow) -> bool {
        how.verify || !self.file.verifies()
    }

    /// Counts a read of a block that is not in the pool. Returns its handle.
    fn missed(&self, part: &Partition, block: u32) -> Result<BlockHandle> {
        let Some(handle) = part.index.handle(block) else {
            return Err(Error::corruption(format!("the table has no block {block}")).at_path(self.path()));
        };
        perf::add(Metric::BlockCacheMissCount, 1);
        self.count(Ticker::BlockCacheMiss);
        self.count(Ticker::BlockCacheDataMiss);
        Ok(handle)
    }

    /// Puts a block into the pool, with its sidecar.
    fn admit(&self, part: &Partition, block: u32, bytes: Cow<'_, [u8]>) -> FramePin {
        let pin = with_kept(&SIDECARS, |builder| {
            let sidecar = match DataBlock::reopen(&bytes) {
                Ok(opened) => builder.build(&opened, &self.order),
                Err(_) => &[],
            };
            part.slots.insert(block, bytes, sidecar)
        });
        if !pin.is_pooled() {
            self.count(Ticker::BlockCacheAddFailures);
        } else if let Some(statistics) = self.file.statistics() {
            statistics.tick(Ticker::BlockCacheAdd);
            statistics.tick(Ticker::BlockCacheDataAdd);
            statistics.add(Ticker::BlockCacheDataBytesInsert, pin.len() as u64);
            statistics.add(Ticker::BlockCacheBytesWrite, pin.len() as u64);
        }
        pin
    }

    /// The block of an entry that a lookup copied: from the buffer where the lookup left it, or read again.
    #[cold]
    pub(super) fn pin_again(&self, at: BlockAt, how: &ReadHow) -> Result<FramePin> {
        let part = self.partition(at, how)?;
        let id = self.block_id(part, at);
        let kept = with_scratch(|scratch| scratch.has(id).then(|| copied(scratch.block())).transpose())?;
        match kept {
            Some(block) => Ok(part.slots.hold(block)),
            None => self.block(at, how, None),
        }
    }
}
