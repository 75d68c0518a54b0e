//! A table without its compression: damage then falls on entries, not on a stream that no decoder accepts any more.

use super::walk::{self, IndexEntry, Parts};
use ashlar_format::block::{IndexBlockBuilder, IndexEntries};
use ashlar_format::table::{BlockHandle, FilterScope, Footer, MetaIndex};

/// The same table with every block stored raw. `None` for one that refers to its own bytes by offset, or that cannot be
/// taken apart.
pub fn uncompressed(file: &[u8]) -> Option<Vec<u8>> {
    let tail = file.get(file.len().saturating_sub(Footer::LEN)..)?;
    let (footer, _) = Footer::decode(tail, file.len() as u64).ok()?;
    let parts = walk::parts(file, footer)?;
    if parts.properties.embedded_blob_stats.is_some() {
        return None;
    }
    let mut writer = Writer { file, parts: &parts, out: Vec::new() };
    let data = writer.copy_all(&parts.data)?;
    let filters = writer.copy_all(&parts.filter_partitions)?;
    let meta = writer.meta_blocks(filters)?;
    let index = writer.index(data)?;
    writer.finish(meta, index)
}

struct Writer<'a> {
    file: &'a [u8],
    parts: &'a Parts,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn put(&mut self, block: &[u8]) -> BlockHandle {
        let handle = BlockHandle { offset: self.out.len() as u64, size: block.len() as u64 };
        self.out.extend_from_slice(block);
        self.out.extend_from_slice(&self.parts.footer.checksum.trailer(handle.offset, block, 0));
        handle
    }

    fn copy(&mut self, handle: BlockHandle, with_dictionary: bool) -> Option<BlockHandle> {
        let dictionary = self.parts.dictionary.as_ref().filter(|_| with_dictionary);
        let block = walk::load(self.file, &self.parts.footer, handle, dictionary)?;
        Some(self.put(&block))
    }

    fn copy_all(&mut self, entries: &[IndexEntry]) -> Option<Vec<BlockHandle>> {
        entries.iter().map(|entry| self.copy(entry.handle, true)).collect()
    }

    /// Everything the metaindex names but the index.
    fn meta_blocks(&mut self, filters: Vec<BlockHandle>) -> Option<MetaIndex> {
        let mut meta = MetaIndex::default();
        let partitioned = self.parts.meta.filter().filter(|place| place.scope == FilterScope::Partitioned);
        for (name, handle) in self.parts.meta.iter() {
            if name == MetaIndex::INDEX {
                continue;
            }
            let moved = if partitioned.is_some_and(|place| place.handle == handle) {
                let form = IndexEntries { first_keys: false, ..self.parts.form };
                let block = index_block(&self.parts.filter_partitions, &filters, form);
                self.put(&block)
            } else {
                self.copy(handle, false)?
            };
            meta.set(name, moved);
        }
        Some(meta)
    }

    fn index(&mut self, data: Vec<BlockHandle>) -> Option<BlockHandle> {
        let form = self.parts.form;
        if self.parts.partitions.is_empty() {
            let block = index_block(&self.parts.data, &data, form);
            return Some(self.put(&block));
        }
        let (mut entries, mut handles) = (&self.parts.data[..], &data[..]);
        let mut moved = Vec::new();
        for partition in &self.parts.partitions {
            let block = walk::load(self.file, &self.parts.footer, partition.handle, None)?;
            let count = walk::index_entries(&block, form).len();
            let (own, others) = entries.split_at_checked(count)?;
            let (own_handles, other_handles) = handles.split_at_checked(count)?;
            (entries, handles) = (others, other_handles);
            let block = index_block(own, own_handles, form);
            moved.push(self.put(&block));
        }
        let top = index_block(&self.parts.partitions, &moved, form);
        Some(self.put(&top))
    }

    fn finish(mut self, mut meta: MetaIndex, index: BlockHandle) -> Option<Vec<u8>> {
        let mut footer = self.parts.footer;
        if footer.index.is_some() {
            footer.index = Some(index);
        } else {
            meta.set(MetaIndex::INDEX, index);
        }
        footer.metaindex = self.put(&meta.encode());
        let tail = footer.encode(self.out.len() as u64).ok()?;
        self.out.extend_from_slice(&tail);
        Some(self.out)
    }
}

fn index_block(entries: &[IndexEntry], handles: &[BlockHandle], form: IndexEntries) -> Vec<u8> {
    let mut builder = IndexBlockBuilder::new(form, 2);
    for (entry, handle) in entries.iter().zip(handles) {
        builder.add(&entry.separator, *handle, &entry.first_key);
    }
    builder.finish()
}
