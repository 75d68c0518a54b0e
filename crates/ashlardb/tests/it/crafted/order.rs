//! Keys and blocks in an order that the index does not tell.

use super::judge;
use super::kit::{Directory, TableFile, block, index, key, put};
use ashlar_base::ValueType;
use tempfile::TempDir;

/// A directory of one table in level 1 with these blocks, of which the index says what `separators` says: a user key, and the
/// number of a block.
fn table(blocks: &[Vec<u8>], separators: &[(String, usize)]) -> TempDir {
    let mut file = TableFile::new();
    let handles: Vec<_> = blocks.iter().map(|block| file.raw(block)).collect();
    let entries: Vec<_> = separators.iter().map(|(key, at)| (put(key, 1), handles[*at])).collect();
    let index = file.raw(&index(&entries));
    let bytes = file.finish(index);
    let mut dir = Directory::new();
    dir.table(7, 1, &bytes, (put("a", 1), put("z", 1)), (0, 20));
    dir.finish()
}

fn puts(keys: &[&str]) -> Vec<u8> {
    block(&keys.iter().map(|k| (put(k, 1), &b"v"[..])).collect::<Vec<_>>())
}

#[test]
fn an_index_that_names_one_block_twelve_times_is_damage_and_no_endless_scan() {
    let separators: Vec<_> = (0..12).map(|i| (format!("c{i:03}"), 0)).collect();
    let dir = table(&[puts(&["b"])], &separators);
    let verdict = judge(dir.path());
    for step in ["forward", "backward", "check"] {
        assert!(verdict.of(step).contains("before the end of the block ahead of it"), "{verdict:#?}");
    }
    assert_eq!((verdict.of("repair"), verdict.of("check after")), ("fine", "sound"));
}

#[test]
fn an_index_of_three_hundred_thousand_handles_of_one_block_is_refused() {
    let keys: Vec<String> = (0..1000).map(|i| format!("b{i:04}")).collect();
    let separators: Vec<_> = (0..300_000).map(|i| (format!("c{i:06}"), 0)).collect();
    let dir = table(&[puts(&keys.iter().map(String::as_str).collect::<Vec<_>>())], &separators);
    let verdict = judge(dir.path());
    assert!(verdict.of("forward").starts_with("Corruption"), "{verdict:#?}");
}

/// Each block is the only one of its handle, but holds the key of the block before it once more.
#[test]
fn blocks_that_hold_the_same_key_again_and_again_are_damage_and_no_endless_scan() {
    let blocks = vec![puts(&["b"]); 40];
    let separators: Vec<_> = (0..40).map(|i| (format!("c{i:03}"), i)).collect();
    let dir = table(&blocks, &separators);
    let verdict = judge(dir.path());
    assert!(verdict.of("forward").contains("keys out of order"), "{verdict:#?}");
    // Backward, a seek before the key finds nothing: that is the answer.
    assert_eq!(verdict.of("backward"), "1 entries");
    assert!(verdict.of("check").starts_with("damage"), "{verdict:#?}");
    assert_eq!((verdict.of("repair"), verdict.of("check after")), ("fine", "sound"));
}

#[test]
fn keys_that_go_backwards_from_block_to_block_are_damage() {
    let blocks: Vec<_> = (0..20).map(|i| puts(&[format!("k{:03}", 500 - i).as_str()])).collect();
    let separators: Vec<_> = (0..20).map(|i| (format!("k{:03}", 600 + i), i)).collect();
    let verdict = judge(table(&blocks, &separators).path());
    for step in ["forward", "backward"] {
        assert!(verdict.of(step).contains("keys out of order"), "{verdict:#?}");
    }
    assert!(verdict.of("check").starts_with("damage"), "{verdict:#?}");
}

/// A cursor passes many versions of a key by a seek, which stops at the first entry with the last possible trailer.
#[test]
fn many_tombstones_of_one_key_at_sequence_zero_end() {
    let entries = vec![(key(b"b", 0, ValueType::Delete), &b""[..]); 40];
    let verdict = judge(table(&[block(&entries)], &[("c".to_owned(), 0)]).path());
    assert_eq!((verdict.of("forward"), verdict.of("check after")), ("0 entries", "sound"), "{verdict:#?}");
    assert!(verdict.of("check").contains("out of order"), "{verdict:#?}");
}

/// Entries above the last sequence are passed by a seek to the sequence of the reader.
#[test]
fn many_entries_above_every_sequence_end() {
    let entries = vec![(key(b"b", 3000, ValueType::Put), &b""[..]); 40];
    let separators: Vec<_> = (0..40).map(|i| (format!("c{i:03}"), i)).collect();
    let verdict = judge(table(&vec![block(&entries); 40], &separators).path());
    assert!(verdict.of("check").starts_with("damage"), "{verdict:#?}");
}
