//! Tables that say what cannot be under checksums that are right: what a defective writer leaves, or a forger.

use crate::fixture::{Entries, file, forward, key, open, write};
use crate::golden::read;
use crate::stripped::with_properties;
use ashlar_base::{ErrorKind, Order, ValueType};
use ashlar_format::compress::Compression;
use ashlar_format::table::{BlockHandle, Footer};
use ashlar_table::{Anatomy, TableOptions};

/// Changes a stored block, its compression byte included, and makes its checksum right again.
fn sealed(table: &[u8], handle: BlockHandle, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let checksum =
        Footer::decode(&table[table.len() - Footer::LEN..], table.len() as u64).unwrap().0.checksum;
    let (start, end) = (handle.offset as usize, (handle.offset + handle.size) as usize);
    let mut bytes = table.to_vec();
    change(&mut bytes[start..=end]);
    let trailer = checksum.trailer(handle.offset, &bytes[start..end], bytes[end]);
    bytes[end..end + trailer.len()].copy_from_slice(&trailer);
    bytes
}

fn first_block(table: &[u8]) -> BlockHandle {
    Anatomy::open(file(table)).unwrap().data_blocks().unwrap()[0].handle
}

#[test]
fn a_block_out_of_order_is_read_around() {
    let entries: Entries = (0..90u64)
        .map(|i| {
            let key = key(format!("key{i:04}").as_bytes(), 200 - i, ValueType::Put);
            (key.as_key().encoded().to_vec(), vec![b'v'; 30])
        })
        .collect();
    let options = TableOptions { compression: Compression::None, filter: None, ..TableOptions::default() };
    let (good, _) = write(&options, &entries);
    let handle = first_block(&good);
    assert!(handle.size > 90 * 30, "one block");
    // Three lengths, then the first key; its type is the first byte behind the user key.
    type Lie = fn(&mut [u8]);
    let lies: [(Lie, &str); 2] =
        [(|b| b[10] = 0x7f, "key of an unknown type"), (|b| b[3] = b'z', "keys out of order")];
    for (lie, what) in lies {
        let table = open(&sealed(&good, handle, lie), Order::Bytewise).unwrap();
        let mut seen = 0;
        let lost = table.read_around(&mut |_, _| {
            seen += 1;
            Ok(())
        });
        let lost = lost.unwrap();
        let [lost] = &lost[..] else { panic!("{what}: {lost:?}") };
        assert_eq!((seen, lost.offset, lost.error.message()), (0, handle.offset, what));
        assert!(lost.error.is_corruption() && lost.error.path().is_some(), "{}", lost.error);
        assert!(table.verify().unwrap_err().is_corruption());
    }
}

#[test]
fn references_into_the_file_that_are_none_are_refused() {
    let good = read("sst/v7_embedded_blob.sst");
    let block = first_block(&good);
    assert_eq!(good[block.offset as usize + 42..][..5], [1, 0, 0, 100, 0], "the first reference");
    let record = BlockHandle { offset: 0, size: 100 };
    type Lie = fn(&mut [u8]);
    let lies: [(BlockHandle, Lie, ErrorKind, &str); 3] = [
        (block, |b| b[43] = 1, ErrorKind::Corruption, "not a reference into this file"),
        (
            block,
            |b| (b[10], b[18]) = (ValueType::Entity as u8, 2),
            ErrorKind::NotSupported,
            "entities with embedded blobs",
        ),
        (record, |b| b[100] = 4, ErrorKind::NotSupported, "embedded blobs with compression type 0x04"),
    ];
    for (handle, lie, kind, what) in lies {
        let table = open(&sealed(&good, handle, lie), Order::Bytewise).unwrap();
        let e = forward(&table).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(what), "{what}: {e}");
        assert_eq!((e.path().is_some(), e.offset()), (true, Some(handle.offset)), "{e}");
    }
}

#[test]
fn properties_of_a_table_made_outside_must_fit_together() {
    let good = read("sst/v7_large_values.sst");
    for (version, seq, what) in [
        (Some(3), Some(0), "external table of version Some(3) with sequence Some(0)"),
        (Some(1), Some(7), "external table of version Some(1) with sequence Some(7)"),
        (None, Some(7), "external table of version None with sequence Some(7)"),
        (Some(2), Some(1 << 56), "global sequence number 72057594037927936 over 56 bits"),
    ] {
        let bytes = with_properties(&good, |p| (p.external_version, p.global_seqno) = (version, seq));
        let e = open(&bytes, Order::Bytewise).map(drop).unwrap_err();
        assert!(e.is_corruption() && e.message() == what && e.path().is_some(), "{e}");
    }
}

/// Scans pass a table by whose properties say that it holds only deletions.
#[test]
fn a_value_in_a_table_of_deletions_is_damage() {
    let good = read("sst/v7_large_values.sst");
    assert!(open(&good, Order::Bytewise).unwrap().verify().unwrap() > 0);
    let bytes = with_properties(&good, |p| p.num_deletions = p.num_entries);
    let e = open(&bytes, Order::Bytewise).unwrap().verify().unwrap_err();
    assert!(e.is_corruption() && e.message().contains("all entries are deletions"), "{e}");
}

#[test]
fn a_table_without_an_index_has_no_blocks_to_tell() {
    let good = read("sst/v7_embedded_blob.sst");
    let metaindex = Footer::decode(&good[good.len() - Footer::LEN..], good.len() as u64).unwrap().0.metaindex;
    let name = b"rocksdb.index";
    let bytes = sealed(&good, metaindex, |b| {
        let at = b.windows(name.len()).position(|w| w == name).unwrap();
        b[at + name.len() - 1] = b'y';
    });
    let e = open(&bytes, Order::Bytewise).map(drop).unwrap_err();
    assert!(e.is_corruption() && e.path().is_some(), "{e}");
    let e = Anatomy::open(file(&bytes)).unwrap().data_blocks().unwrap_err();
    assert!(e.is_corruption() && e.message() == "table has no index block" && e.path().is_some(), "{e}");
}

/// Regression: a table whose unused dictionary was damaged was sound here, and RocksDB could not read it.
#[test]
fn a_damaged_block_that_no_read_needs_is_found() {
    let entries: Entries = (0..200u64)
        .map(|i| {
            (key(format!("key{i:04}").as_bytes(), 5, ValueType::Put).as_key().encoded().to_vec(), vec![7])
        })
        .collect();
    let (good, _) = write(&TableOptions::default(), &entries);
    let anatomy = Anatomy::open(file(&good)).unwrap();
    let filter = anatomy.meta().filter().unwrap().handle;
    // A filter of a kind that is not built in.
    let name = b"fullfilter.rocksdb.Builtin";
    let mut bytes = sealed(&good, anatomy.footer().metaindex, |block| {
        let at = block.windows(name.len()).position(|part| part == name).unwrap();
        block[at + name.len() - 1] = b'm';
    });
    assert_eq!(open(&bytes, Order::Bytewise).unwrap().verify().unwrap(), 200);
    bytes[filter.offset as usize] ^= 1;
    let table = open(&bytes, Order::Bytewise).unwrap();
    assert_eq!(forward(&table).unwrap().len(), 200);
    let e = table.verify().unwrap_err();
    assert!(e.is_corruption() && e.offset() == Some(filter.offset), "{e}");
}
