//! Point lookups in an open table, one key or several at once.
//!
//! A lookup asks the filter, searches the index, takes the block from the pool or the file, and searches the block. Each
//! of these steps waits for memory. [`TableReader::get_many`] does each step for all keys before the next step, and
//! prefetches what the next step reads. So the keys wait together.

use super::blocks::{Held, opened};
use super::scratch::with_scratch;
use super::table_reader::with_cursor;
use super::{BlockAt, FoundIn, TableFound, TableReader};
use crate::filter::filter_hash;
use crate::read_how::ReadHow;
use ashlar_base::bytes::copied;
use ashlar_base::stats::Ticker;
use ashlar_base::stats::perf::{self, Metric};
use ashlar_base::{LookupKey, Order, Result, Trailer};
use ashlar_cache::FramePin;
use ashlar_format::Unreadable;
use ashlar_format::block::{DataBlock, HashIndex, InBlock, Start};

/// The number of cache lines of an entry to prefetch: key and value of 150 bytes.
const ENTRY_LINES: usize = 3;

/// One of several lookups in a table.
#[derive(Debug)]
pub struct Ask<'k> {
    key: LookupKey<'k>,
    hash: u64,
    /// The answer, after [`TableReader::get_many`].
    pub found: Result<Option<TableFound>>,
    state: State,
}

/// How far a lookup is.
#[derive(Debug)]
enum State {
    /// `found` is final.
    Ended,
    /// The block that may hold the key, and the trailer to look for.
    At(BlockAt, Trailer),
    /// The same, the block, and where the search begins if the block has a sidecar.
    Pinned(BlockAt, Trailer, FramePin, Option<Start>),
}

/// What a block answers.
enum Answer {
    Found(TableFound),
    /// Neither this block nor one behind it has the key.
    Absent,
    /// All entries are before the key: the next block may hold it.
    Past,
}

impl<'k> Ask<'k> {
    /// A lookup of `key`. `hash` is [`filter_hash`] of its user key.
    pub fn new(key: LookupKey<'k>, hash: u64) -> Ask<'k> {
        Ask { key, hash, found: Ok(None), state: State::Ended }
    }

    /// The pinned block and its place.
    fn pinned(&self) -> Option<(BlockAt, &FramePin)> {
        match &self.state {
            State::Pinned(at, _, pin, _) => Some((*at, pin)),
            State::At(..) | State::Ended => None,
        }
    }

    /// Finds out where the search in the pinned block begins, and prefetches the entry there.
    #[inline]
    fn start(&mut self, order: &Order) {
        if let State::Pinned(_, _, pin, start) = &mut self.state
            && let Ok(block) = opened(pin)
        {
            *start = block.start(order, self.key.user_key);
            start.iter().for_each(|start| start.prefetch(&block, ENTRY_LINES));
        }
    }
}

impl TableReader {
    /// The newest point entry of `key.user_key` at or below `key.seq`, of whatever type; `None` when the table has none.
    ///
    /// # Errors
    /// `Corruption`: the block is damaged. `Io`: the read failed. `NotSupported`: the block needs a feature that is not
    /// built.
    /// # Cost
    /// With the block in the pool: filter probe, search in the index, one slot, search in the block; no allocation. Without:
    /// one read of the file, and a copy of the value or, if the pool admits it, of the block. A partition of index or filter
    /// not yet in memory costs one read more.
    pub fn get(&self, key: &LookupKey<'_>) -> Result<Option<TableFound>> {
        self.get_hashed(key, filter_hash(key.user_key), ReadHow::plain())
    }

    /// [`TableReader::get`] with options, for a key whose hash ([`filter_hash`]) is known.
    ///
    /// # Errors
    /// As [`TableReader::get`].
    pub fn get_hashed(&self, key: &LookupKey<'_>, hash: u64, how: &ReadHow) -> Result<Option<TableFound>> {
        let Some(trailer) = self.trailer_of(key) else { return Ok(None) };
        if !self.passes_filter(key.user_key, trailer, hash, how) {
            return Ok(None);
        }
        let found = match self.find(key.user_key, trailer, how)? {
            None => None,
            Some(at) => self.look_from(at, key.user_key, trailer, how)?,
        };
        self.count_positive(found.is_some());
        Ok(found)
    }

    /// [`TableReader::get_hashed`] for each of `asks`, each with its own error. Keys that ascend share blocks: the table
    /// takes a block from the pool once for neighbours in it.
    ///
    /// # Cost
    /// As many single lookups, which wait for memory together. All blocks are pinned at once.
    pub fn get_many(&self, asks: &mut [Ask<'_>], how: &ReadHow) {
        if self.filter.is_by_block() {
            asks.iter_mut().for_each(|ask| ask.found = self.get_hashed(&ask.key, ask.hash, how));
            return;
        }
        if asks.len() > 1 {
            asks.iter().for_each(|ask| self.filter.prefetch(ask.hash));
        }
        for ask in asks.iter_mut() {
            match self.begin(&ask.key, ask.hash, how) {
                Ok(Some((at, trailer))) => ask.state = State::At(at, trailer),
                Ok(None) => {}
                Err(e) => ask.found = Err(e),
            }
        }
        let at = |ask: &Ask<'_>| if let State::At(at, _) = ask.state { Some(at) } else { None };
        asks.iter().filter_map(at).for_each(|at| self.prefetch_slot(at));
        asks.iter().filter_map(at).for_each(|at| self.prefetch_frame(at));
        for next in 0..asks.len() {
            let (done, rest) = asks.split_at_mut(next);
            let Some(ask) = rest.first_mut() else { break };
            let State::At(at, trailer) = ask.state else { continue };
            match self.pin(at, done.iter().rev().find_map(Ask::pinned), how) {
                Ok(pin) => ask.state = State::Pinned(at, trailer, pin, None),
                Err(e) => (ask.found, ask.state) = (Err(e), State::Ended),
            }
        }
        asks.iter_mut().for_each(|ask| ask.start(&self.order));
        for ask in asks.iter_mut() {
            let State::Pinned(at, trailer, pin, start) = std::mem::replace(&mut ask.state, State::Ended)
            else {
                continue;
            };
            ask.found = self.look_at((at, pin, start), ask.key.user_key, trailer, how);
            if let Ok(found) = &ask.found {
                self.count_positive(found.is_some());
            }
        }
    }

    /// The block in which the lookup of `key` begins, unless the table does not have the key.
    #[inline]
    fn begin(&self, key: &LookupKey<'_>, hash: u64, how: &ReadHow) -> Result<Option<(BlockAt, Trailer)>> {
        let Some(trailer) = self.trailer_of(key) else { return Ok(None) };
        if !self.passes_filter(key.user_key, trailer, hash, how) {
            return Ok(None);
        }
        let found = self.find(key.user_key, trailer, how)?;
        if found.is_none() {
            self.count_positive(false);
        }
        Ok(found.map(|at| (at, trailer)))
    }

    /// Pins the block `at` and prefetches it. It is often `before`, the block of the preceding lookup.
    #[inline]
    fn pin(&self, at: BlockAt, before: Option<(BlockAt, &FramePin)>, how: &ReadHow) -> Result<FramePin> {
        if let Some((_, pin)) = before.filter(|(before, _)| *before == at) {
            return Ok(pin.clone());
        }
        let pin = self.block(at, how, None)?;
        pin.prefetch();
        Ok(pin)
    }

    /// The trailer to look for; `None`: the read sees nothing of the table.
    #[inline]
    fn trailer_of(&self, key: &LookupKey<'_>) -> Option<Trailer> {
        match self.global_seq {
            None => Some(key.trailer()),
            Some(seq) if seq > key.seq => None,
            Some(_) => Some(Trailer::FIRST),
        }
    }

    #[inline]
    fn passes_filter(&self, user_key: &[u8], trailer: Trailer, hash: u64, how: &ReadHow) -> bool {
        let passes = self.filter.may_contain(self.file.reading(how), user_key, trailer, hash);
        if !passes {
            self.count(Ticker::BloomFilterUseful);
            perf::add(Metric::BloomSstMissCount, 1);
        }
        passes
    }

    /// Counts a key that passed the filter.
    #[inline]
    fn count_positive(&self, found: bool) {
        if self.filter.is_there() {
            perf::add(Metric::BloomSstHitCount, 1);
            if let Some(statistics) = self.file.statistics() {
                statistics.add_all([
                    (Ticker::BloomFilterFullPositive, 1),
                    (Ticker::BloomFilterFullTruePositive, u64::from(found)),
                ]);
            }
        }
    }

    /// Searches the block `at`, and following blocks as long as they may hold the key.
    #[inline]
    fn look_from(
        &self,
        mut at: BlockAt,
        user_key: &[u8],
        trailer: Trailer,
        how: &ReadHow,
    ) -> Result<Option<TableFound>> {
        loop {
            let part = self.partition(at, how)?;
            let offset = || part.index.handle(at.block()).unwrap_or_default().offset;
            if self.filter.block_may_contain(offset, user_key) {
                let answer = match self.hit(part, at) {
                    Some(pin) => {
                        pin.prefetch();
                        self.look_in((at, Held::Pinned(pin), None), user_key, trailer)?
                    }
                    None => with_scratch(|scratch| {
                        let block = self.load_scratch(part, at, how, scratch)?;
                        self.look_in((at, block, None), user_key, trailer)
                    })?,
                };
                match answer {
                    Answer::Found(found) => return Ok(Some(found)),
                    Answer::Past => {}
                    Answer::Absent => return Ok(None),
                }
            } else {
                self.count(Ticker::BloomFilterUseful);
            }
            match self.behind(at, user_key, how)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
    }

    /// Searches the pinned block `at`, and following blocks as long as they may hold the key.
    fn look_at(
        &self,
        (at, pin, start): (BlockAt, FramePin, Option<Start>),
        user_key: &[u8],
        trailer: Trailer,
        how: &ReadHow,
    ) -> Result<Option<TableFound>> {
        match self.look_in((at, Held::Pinned(pin), start), user_key, trailer)? {
            Answer::Found(found) => Ok(Some(found)),
            Answer::Absent => Ok(None),
            Answer::Past => match self.behind(at, user_key, how)? {
                Some(next) => self.look_from(next, user_key, trailer, how),
                None => Ok(None),
            },
        }
    }

    /// Searches the block `at`, from where the search begins if that is known.
    #[inline]
    fn look_in(
        &self,
        (at, block, start): (BlockAt, Held<'_>, Option<Start>),
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<Answer> {
        let searched = self.search(&block, start, user_key, trailer);
        let (stored, value) = match searched.map_err(|e| self.misread(at, e))? {
            InBlock::Found { trailer, value } => (trailer, value.start..value.end),
            InBlock::Past => return Ok(Answer::Past),
            InBlock::Absent | InBlock::Unsettled => return Ok(Answer::Absent),
        };
        let home = match block {
            Held::Pinned(pin) => FoundIn::Block(pin, value.clone()),
            Held::Scratch(bytes) => {
                FoundIn::Copy(copied(bytes.get(value.clone()).unwrap_or_default())?.into_boxed_slice())
            }
        };
        Ok(Answer::Found(TableFound { trailer: self.present(stored), home, value, at }))
    }

    /// The block behind `at`, if it can hold the key: only if the separator between the two is that key.
    fn behind(&self, at: BlockAt, user_key: &[u8], how: &ReadHow) -> Result<Option<BlockAt>> {
        if self.partition(at, how)?.index.user_key(at.block()) != user_key {
            return Ok(None);
        }
        self.after(at, how)
    }

    /// Searches one block. Never [`InBlock::Unsettled`].
    #[inline]
    fn search(
        &self,
        held: &Held<'_>,
        start: Option<Start>,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<InBlock, Unreadable> {
        let block = held.opened()?;
        let found = match start {
            Some(start) => block.look_up_from(start, &self.order, user_key, trailer)?,
            None => block.look_up(HashIndex::of(held.bytes()), &self.order, user_key, trailer)?,
        };
        match found {
            InBlock::Unsettled => self.search_by_cursor(&block, user_key, trailer),
            settled => Ok(settled),
        }
    }

    fn search_by_cursor(
        &self,
        block: &DataBlock<'_>,
        user_key: &[u8],
        trailer: Trailer,
    ) -> Result<InBlock, Unreadable> {
        with_cursor(|cursor| {
            cursor.seek_key(block, &self.order, user_key, trailer)?;
            let Some((found_key, trailer)) = cursor.internal_key().map(|key| key.split()) else {
                return Ok(InBlock::Past);
            };
            let found = InBlock::Found { trailer, value: cursor.value_range() };
            Ok(if found_key == user_key { found } else { InBlock::Absent })
        })
    }
}
