//! Encodes an edit, in RocksDB's order.

use super::{VersionEdit, tag};
use ashlar_base::FamilyId;
use ashlar_base::bytes::{put_slice, put_varint32, put_varint64};

impl VersionEdit {
    /// Appends the edit. Nothing is appended for one that changes nothing.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_scalars(out);
        self.encode_files(out);
        self.encode_family(out);
        if let Some(progress) = &self.compaction_progress {
            tagged_slice(out, tag::COMPACTION_PROGRESS, progress);
        }
        if let Some(size) = self.last_manifest_size {
            let mut payload = Vec::with_capacity(10);
            put_varint64(&mut payload, size);
            tagged_slice(out, tag::LAST_MANIFEST_SIZE, &payload);
        }
        if let Some(records) = self.beginning {
            tagged_slice(out, tag::BEGINNING, &records.to_le_bytes());
        }
        for (tag, payload) in &self.ignored {
            tagged_slice(out, *tag, payload);
        }
    }

    /// The edit as separate bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    fn encode_scalars(&self, out: &mut Vec<u8>) {
        if let Some(id) = &self.db_id {
            tagged_slice(out, tag::DB_ID, id.as_bytes());
        }
        if let Some(name) = &self.comparator {
            tagged_slice(out, tag::COMPARATOR, name.as_bytes());
        }
        let max_family = self.max_family.map(|f| u64::from(f.0));
        for (tag, value) in [
            (tag::LOG_NUMBER, self.log_number.map(|n| n.0)),
            (tag::PREV_LOG_NUMBER, self.prev_log_number.map(|n| n.0)),
            (tag::NEXT_FILE, self.next_file.map(|n| n.0)),
            (tag::MAX_FAMILY, max_family),
            (tag::MIN_LOG_TO_KEEP, self.min_log_to_keep.map(|n| n.0)),
            (tag::LAST_SEQUENCE, self.last_seq.map(|s| s.get())),
        ] {
            if let Some(value) = value {
                put_varint32(out, tag);
                put_varint64(out, value);
            }
        }
    }

    fn encode_files(&self, out: &mut Vec<u8>) {
        for (level, key) in &self.compact_cursors {
            put_varint32(out, tag::COMPACT_CURSOR);
            put_varint32(out, u32::from(level.0));
            put_slice(out, key.as_key().encoded());
        }
        for (level, number) in &self.deleted {
            put_varint32(out, tag::DELETED_FILE);
            put_varint32(out, u32::from(level.0));
            put_varint64(out, number.0);
        }
        for (level, file) in &self.added {
            put_varint32(out, if file.sequences_unknown { tag::NEW_FILE } else { tag::NEW_FILE_4 });
            put_varint32(out, u32::from(level.0));
            file.encode(out);
        }
        for blob in &self.blob_added {
            put_varint32(out, tag::BLOB_ADDITION);
            blob.encode(out);
        }
        for garbage in &self.blob_garbage {
            put_varint32(out, tag::BLOB_GARBAGE);
            garbage.encode(out);
        }
        for wal in &self.wal_added {
            let mut payload = Vec::with_capacity(24);
            wal.encode(&mut payload);
            tagged_slice(out, tag::WAL_ADDITION, &payload);
        }
        if let Some(number) = self.wal_deleted {
            let mut payload = Vec::with_capacity(10);
            put_varint64(&mut payload, number.0);
            tagged_slice(out, tag::WAL_DELETION, &payload);
        }
    }

    fn encode_family(&self, out: &mut Vec<u8>) {
        if self.family != FamilyId::DEFAULT {
            put_varint32(out, tag::FAMILY);
            put_varint32(out, self.family.0);
        }
        if let Some(name) = &self.family_add {
            tagged_slice(out, tag::FAMILY_ADD, name);
        }
        if self.family_drop {
            put_varint32(out, tag::FAMILY_DROP);
        }
        if let Some(remaining) = self.atomic_group {
            put_varint32(out, tag::ATOMIC_GROUP);
            put_varint32(out, remaining);
        }
        if let Some(timestamp) = &self.full_history_ts_low {
            tagged_slice(out, tag::FULL_HISTORY_TS_LOW, timestamp);
        }
        if let Some(persist) = self.persist_udt {
            tagged_slice(out, tag::PERSIST_TIMESTAMPS, &[u8::from(persist)]);
        }
    }
}

fn tagged_slice(out: &mut Vec<u8>, tag: u32, payload: &[u8]) {
    put_varint32(out, tag);
    put_slice(out, payload);
}
