//! The parts of tables, each by itself.

use super::Outcome;
use crate::sst::{blocks, form_of};
use ashlar_base::{Order, Trailer};
use ashlar_format::block::{
    BlockBuilder, BlockCursor, DataBlock, EntryCursor, EntryFormat, HashIndex, InBlock, IndexBlockBuilder,
    IndexCursor, InternalEntries, PlainEntries, SidecarBuilder, is_separated, join_separated,
};
use ashlar_format::filter::FilterForm;
use ashlar_format::table::{Footer, MetaIndex, Properties};

/// Keys that are sought in one block.
const SOUGHT: usize = 16;

pub(super) fn all() -> Vec<Vec<u8>> {
    let blocks = blocks();
    let index = blocks.index.into_iter().map(|mut block| block.split_off(1)).collect();
    [blocks.meta, blocks.properties, index, blocks.tombstones, blocks.data, blocks.filters].concat()
}

pub(super) fn footer(input: &[u8]) -> Outcome {
    let mut outcome = Ok(());
    for file_len in [input.len() as u64, 6006, 1 << 40] {
        match Footer::decode(input, file_len) {
            Err(e) => outcome = Err(e.into_error().to_string()),
            Ok((footer, start)) => {
                let end = footer.metaindex.end_with_trailer();
                assert!(end.is_some_and(|end| end <= start && start < file_len));
                if let Ok(encoded) = footer.encode(start) {
                    assert_eq!(Footer::decode(&encoded, file_len), Ok((footer, start)));
                }
            }
        }
    }
    outcome
}

pub(super) fn meta_index(input: &[u8]) -> Outcome {
    let visited = visit(input, PlainEntries);
    let meta = MetaIndex::decode(input).map_err(|e| e.into_error().to_string())?;
    assert_eq!(MetaIndex::decode(&meta.encode()).ok(), Some(meta), "encoded and decoded again");
    visited
}

pub(super) fn properties(input: &[u8]) -> Outcome {
    let _ = Properties::global_seqno_place(input);
    let properties = Properties::decode(input).map_err(|e| e.into_error().to_string())?;
    let _ = properties.index_entries();
    let again = Properties::decode(&properties.encode()).expect("what was encoded decodes");
    assert!(again == properties, "encoded and decoded again");
    properties.index_kind().map(drop).map_err(|e| e.to_string())
}

pub(super) fn index(input: &[u8]) -> Outcome {
    let (form, block) = input.split_first().ok_or("nothing")?;
    let form = form_of(*form);
    visit(block, form)?;
    let parsed = DataBlock::parse(block).map_err(|e| e.into_error().to_string())?;
    let mut cursor = IndexCursor::new(form);
    let (mut builder, mut entries) = (IndexBlockBuilder::new(form, 2), Vec::new());
    cursor.first(&parsed).map_err(|e| e.to_string())?;
    while let Some(value) = cursor.index_value() {
        let first_key = value.first_key.map(|range| range.of(block).to_vec()).unwrap_or_default();
        builder.add(cursor.key(), value.handle, &first_key);
        entries.push((cursor.key().to_vec(), value.handle, first_key));
        cursor.next(&parsed).map_err(|e| e.to_string())?;
    }
    let again = builder.finish();
    let parsed = DataBlock::parse(&again).expect("what was built parses");
    cursor.first(&parsed).expect("what was built reads");
    for (key, handle, first_key) in &entries {
        let value = cursor.index_value().expect("as many as were added");
        assert!(cursor.key() == key && value.handle == *handle);
        assert!(value.first_key.map(|range| range.of(&again)).unwrap_or_default() == first_key);
        cursor.next(&parsed).expect("what was built reads");
    }
    assert!(!cursor.is_on_entry());
    Ok(())
}

pub(super) fn data(input: &[u8]) -> Outcome {
    let joined;
    let mut block = input;
    if is_separated(input) {
        joined = join_separated(input).map_err(|e| e.to_string())?;
        assert!(joined.len() <= 2 * input.len() + 64, "hardly larger than the separated one");
        block = &joined;
    }
    visit(block, InternalEntries)?;
    let parsed = DataBlock::parse(block).map_err(|e| e.into_error().to_string())?;
    seek(block, &parsed);
    rebuild(&parsed)
}

/// Seeks to the first keys: also by the hash index, and with a sidecar, which must change no answer.
fn seek(bytes: &[u8], block: &DataBlock<'_>) {
    let mut builder = SidecarBuilder::default();
    let [forward, reverse] =
        [Order::Bytewise, Order::ReverseBytewise].map(|order| builder.build(block, &order).to_vec());
    let mut walk = BlockCursor::default();
    let mut fine = walk.first(block).is_ok();
    let mut seeker = BlockCursor::default();
    for _ in 0..SOUGHT {
        let Some(key) = walk.internal_key().filter(|_| fine) else { break };
        let (user_key, trailer) = key.split();
        for order in [Order::Bytewise, Order::ReverseBytewise] {
            let _ = seeker.seek_key(block, &order, user_key, trailer);
            let _ = seeker.seek_key_for_prev(block, &order, user_key, trailer);
            let _ = block.look_up(HashIndex::of(bytes), &order, user_key, Trailer::FIRST);
            let (found, sought) = (
                block.look_up(None, &order, user_key, trailer),
                seeker.seek_key(block, &order, user_key, trailer),
            );
            assert!(found == Ok(InBlock::Unsettled) || found.is_ok() == sought.is_ok());
            let sidecar = if matches!(order, Order::Bytewise) { &forward } else { &reverse };
            let with = block.with_sidecar(sidecar);
            let again = with.look_up(None, &order, user_key, trailer);
            assert!([&found, &again].contains(&&Ok(InBlock::Unsettled)) || again == found);
            let entry = (seeker.key().to_vec(), seeker.value_range());
            assert_eq!(seeker.seek_key(&with, &order, user_key, trailer), sought);
            assert_eq!((seeker.key().to_vec(), seeker.value_range()), entry);
        }
        fine = walk.next(block).is_ok();
    }
}

/// Entries that were read are built into a block that reads the same.
fn rebuild(block: &DataBlock<'_>) -> Outcome {
    let mut cursor = BlockCursor::default();
    let mut builder = BlockBuilder::with_hash_index(3, 0.75);
    let mut entries = Vec::new();
    cursor.first(block).map_err(|e| e.to_string())?;
    while cursor.is_on_entry() {
        builder.add(cursor.key(), cursor.value(block));
        entries.push((cursor.key().to_vec(), cursor.value(block).to_vec()));
        cursor.next(block).map_err(|e| e.to_string())?;
    }
    let again = builder.finish().to_vec();
    let parsed = DataBlock::parse(&again).expect("what was built parses");
    cursor.first(&parsed).expect("what was built reads");
    for (key, value) in &entries {
        assert!(cursor.key() == key && cursor.value(&parsed) == value, "built and read again");
        cursor.next(&parsed).expect("what was built reads");
    }
    assert!(!cursor.is_on_entry());
    Ok(())
}

pub(super) fn every_format(input: &[u8]) -> Outcome {
    let mut outcome = visit(input, InternalEntries);
    outcome = outcome.and(visit(input, PlainEntries));
    for form in 0..8 {
        outcome = outcome.and(visit(input, form_of(form)));
    }
    if is_separated(input) {
        let _ = join_separated(input);
    }
    outcome
}

/// Visits all entries forwards and backwards; when neither fails both see the same keys.
fn visit<F: EntryFormat>(input: &[u8], format: F) -> Outcome {
    let block = DataBlock::parse(input).map_err(|e| e.into_error().to_string())?;
    let steps = input.len() + 1;
    let mut cursor = EntryCursor::new(format);
    let mut forwards = Vec::new();
    let mut moved = cursor.first(&block);
    while moved.is_ok() && cursor.is_on_entry() {
        forwards.push(key_hash(cursor.key()));
        assert!(forwards.len() <= steps, "more entries than bytes");
        moved = cursor.next(&block);
    }
    let mut backwards = Vec::new();
    let mut back = cursor.last(&block);
    while back.is_ok() && cursor.is_on_entry() {
        backwards.push(key_hash(cursor.key()));
        assert!(backwards.len() <= steps, "more entries than bytes");
        back = cursor.prev(&block);
    }
    moved.map_err(|e| e.to_string())?;
    back.map_err(|e| e.to_string())?;
    if restarts_are_entries(&block, format) {
        backwards.reverse();
        assert_eq!(forwards.len(), backwards.len(), "entries forwards and backwards");
        assert!(forwards == backwards, "keys forwards and backwards");
    }
    Ok(())
}

fn key_hash(key: &[u8]) -> u64 {
    ashlar_base::checksum::xxh3_64(key)
}

/// True when every restart point is where an entry starts. Only a damaged block with a good checksum is otherwise.
fn restarts_are_entries<F: EntryFormat>(block: &DataBlock<'_>, format: F) -> bool {
    let mut cursor = EntryCursor::new(format);
    let mut met = 0;
    let mut moved = cursor.first(block);
    while moved.is_ok() && cursor.is_on_entry() {
        met += usize::from(block.restart(met) == Some(cursor.offset()));
        moved = cursor.next(block);
    }
    met == block.restart_count()
}

pub(super) fn filter(input: &[u8]) -> Outcome {
    let form = FilterForm::decode(input);
    for shift in 0..64 {
        let hash = 0x9e37_79b9_7f4a_7c15_u64.rotate_left(shift);
        form.may_match(input, hash);
        form.may_contain(input, &hash.to_le_bytes());
    }
    match form {
        FilterForm::Everything(what) => Err(what.to_owned()),
        _ => Ok(()),
    }
}
