//! Data blocks that wait for the dictionary with which they will be compressed.
//!
//! The dictionary consists of samples from all waiting blocks, at even distances, not from the first blocks only.
//!
//! Source: RocksDB `table/block_based/block_based_table_builder.cc` (`MaybeEnterUnbuffered`; behaviour).

use crate::options::TableOptions;
use ashlar_format::compress::{Compression, train_zstd_dictionary};

/// See the module.
#[derive(Debug)]
pub(super) struct WaitingBlocks {
    blocks: Vec<Vec<u8>>,
    bytes: usize,
    /// More than this does not wait.
    limit: usize,
    max_len: usize,
    /// Bytes of samples to train on; `None`: the samples are the dictionary.
    train: Option<usize>,
}

impl WaitingBlocks {
    /// `None` when the options ask for no dictionary, or for one that the algorithm does not take.
    pub(super) fn new(options: &TableOptions) -> Option<Self> {
        if options.max_dict_bytes == 0 || !options.compression.takes_dictionary() {
            return None;
        }
        let trains = options.compression == Compression::Zstd && options.zstd_max_train_bytes > 0;
        Some(WaitingBlocks {
            blocks: Vec::new(),
            bytes: 0,
            limit: match options.max_dict_buffer_bytes {
                0 => usize::MAX,
                limit => limit,
            },
            max_len: options.max_dict_bytes,
            train: trains.then_some(options.zstd_max_train_bytes),
        })
    }

    /// Takes a block; false when there are enough.
    pub(super) fn push(&mut self, block: &[u8]) -> bool {
        self.bytes += block.len();
        self.blocks.push(block.to_vec());
        self.bytes < self.limit
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The blocks in order, and their dictionary, empty when they make none.
    pub(super) fn finish(self) -> (Vec<u8>, Vec<Vec<u8>>) {
        let wanted = self.train.unwrap_or(self.max_len);
        let mut samples = Vec::with_capacity(wanted.min(self.bytes));
        let mut sizes = Vec::new();
        let count = self.blocks.len();
        let average = (self.bytes / count.max(1)).max(1);
        let picks = wanted.div_ceil(average).clamp(1, count.max(1));
        for pick in 0..picks {
            let Some(block) = self.blocks.get(pick * count / picks) else { break };
            let len = block.len().min(wanted - samples.len());
            samples.extend_from_slice(block.get(..len).unwrap_or_default());
            sizes.push(len);
        }
        let dictionary = match self.train {
            None => samples,
            Some(_) => train_zstd_dictionary(&samples, &sizes, self.max_len).unwrap_or_default(),
        };
        (dictionary, self.blocks)
    }
}
