//! Values with trailing data: the write time of a TTL database, the sequence number of a timed put.
//!
//! ```text
//! TTL:        | value | write time: i32 LE, seconds since 1970 |       puts and merge operands, not deletes
//! timed put:  | value | u64 LE |     in tables the preferred sequence number, in WAL and memtable the write time
//! ```
//! 1. The MANIFEST does not say that a database has TTL values: the caller that opens it must know.
//! 2. RocksDB's reads still return expired values; its compactions drop them.
//!
//! Source: RocksDB `utilities/ttl/db_ttl_impl.h`, `db/dbformat.h` (`ParsePackedValue…`).

use ashlar_base::Malformed;

/// The earliest write time that is believed: when TTL databases came to be.
pub const MIN_TIME: i32 = 1_368_146_402;

/// Appends the write time of a TTL database.
pub fn put_write_time(value: &mut Vec<u8>, unix_seconds: i32) {
    value.extend_from_slice(&unix_seconds.to_le_bytes());
}

/// Splits a stored value of a TTL database into the user's value and its write time.
///
/// # Errors
/// `Malformed`: shorter than a write time, or a time before there were TTL databases.
pub fn split_write_time(stored: &[u8]) -> Result<(&[u8], i32), Malformed> {
    let wrong = |at, what| Malformed { field: "write time", at, what };
    let (value, time) = stored.split_last_chunk::<4>().ok_or_else(|| wrong(0, "no write time"))?;
    match i32::from_le_bytes(*time) {
        time if time < MIN_TIME => Err(wrong(value.len(), "earlier than there were TTL databases")),
        time => Ok((value, time)),
    }
}

/// The user's value in a stored value whose write time was checked; empty if there is no room for a time.
#[inline]
pub fn without_write_time(stored: &[u8]) -> &[u8] {
    stored.split_last_chunk::<4>().map_or(&[], |(value, _)| value)
}

/// Whether a value written at `write_time` may be dropped at `now`; never when `ttl_seconds` is 0 or less.
pub fn is_expired(write_time: i32, ttl_seconds: i32, now: i64) -> bool {
    ttl_seconds > 0 && i64::from(write_time) + i64::from(ttl_seconds) < now
}

/// Appends the suffix of a timed put to its value.
pub fn put_preferred(value: &mut Vec<u8>, preferred: u64) {
    value.extend_from_slice(&preferred.to_le_bytes());
}

/// Splits the value of an entry of type `TimedPut`.
///
/// # Errors
/// `Malformed`: shorter than eight bytes.
pub fn split_preferred(stored: &[u8]) -> Result<(&[u8], u64), Malformed> {
    let (value, preferred) = stored.split_last_chunk::<8>().ok_or(Malformed {
        field: "timed put",
        at: 0,
        what: "shorter than eight bytes",
    })?;
    Ok((value, u64::from_le_bytes(*preferred)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_golden_ttl_database() {
        // `ldb idump` of golden/rocksdb-7.8.3/ttl; the folder's MANIFEST says 1795236261 too.
        for (stored, value) in [
            (&b"flushed\xa5\x21\x01\x6b"[..], &b"flushed"[..]),
            (b"in the wal\xa5\x21\x01\x6b", b"in the wal"),
        ] {
            assert_eq!(split_write_time(stored), Ok((value, 1_795_236_261)));
            let mut again = value.to_vec();
            put_write_time(&mut again, 1_795_236_261);
            assert_eq!(again, stored);
        }
        let table = include_bytes!("../../../golden/rocksdb-7.8.3/ttl/000009.sst");
        assert!(table.windows(11).any(|bytes| bytes == b"flushed\xa5\x21\x01\x6b"));
    }

    #[test]
    fn odd_values_are_refused() {
        assert_eq!(split_write_time(b"abc").unwrap_err().what, "no write time");
        assert_eq!(split_write_time(b"ab\0\0\0\0").unwrap_err().at, 2);
        assert!(split_write_time(&(MIN_TIME - 1).to_le_bytes()).is_err());
        assert_eq!(split_write_time(&MIN_TIME.to_le_bytes()), Ok((&b""[..], MIN_TIME)));
        assert!(split_write_time(&(-1i32).to_le_bytes()).is_err());
        assert!(is_expired(100, 10, 111) && !is_expired(100, 10, 110) && !is_expired(100, 0, i64::MAX));
        assert!(!is_expired(100, -1, i64::MAX) && !is_expired(i32::MAX, i32::MAX, 0));
        let mut timed = b"v".to_vec();
        put_preferred(&mut timed, 77);
        assert_eq!(split_preferred(&timed), Ok((&b"v"[..], 77)));
        assert!(split_preferred(&timed[..7]).is_err());
    }
}
