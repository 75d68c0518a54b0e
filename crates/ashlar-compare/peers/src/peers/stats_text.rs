//! What the text of `rocksdb.stats` says of writes.

use crate::peer::Written;

const GIB: f64 = (1_u64 << 30) as f64;

/// Bytes written by flushes and compactions: `Flush(GB): cumulative x, …` and `Cumulative compaction: y GB write, …`. The time that
/// writers waited: `Cumulative stall: hours:minutes:seconds H:M:S, …`. Both engines print these lines; RocksDB's compactions include
/// its flushes there.
pub fn written(text: &str) -> Written {
    let find = |head: &str, mark: &str| {
        let line = text.lines().find(|line| line.starts_with(head))?;
        number(line.split_once(mark)?.1).map(|gb| whole(gb * GIB))
    };
    let flush = find("Flush(GB):", "cumulative ");
    let all = find("Cumulative compaction:", "compaction: ");
    Written {
        flush,
        compaction: all.zip(flush).map(|(all, flush)| all.saturating_sub(flush)),
        stalled: stalled(text),
    }
}

/// The seconds of `Cumulative stall: 00:01:02.500 H:M:S, 3.1 percent`.
fn stalled(text: &str) -> Option<f64> {
    let time = text.lines().find_map(|line| line.strip_prefix("Cumulative stall: "))?.split(' ').next()?;
    let mut parts = time.split(':').map(str::parse::<f64>);
    let (hours, minutes, seconds) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some(hours * 3600.0 + minutes * 60.0 + seconds)
}

/// The number at the beginning of `text`.
fn number(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text[..end].parse().ok()
}

// Sizes are positive and far below 2^53.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_found() {
        let text = "Uptime(secs): 1.0 total, 1.0 interval\nFlush(GB): cumulative 0.500, interval 0.1\n\
                    Cumulative compaction: 0.75 GB write, 12.00 MB/s write, 0.10 GB read\n\
                    Cumulative stall: 01:02:3.500 H:M:S, 4.0 percent\n";
        let seen = written(text);
        assert_eq!((seen.flush, seen.compaction), (Some(1 << 29), Some(1 << 28)));
        assert_eq!(seen.stalled, Some(3723.5));
        assert_eq!((written("").compaction, written("").stalled), (None, None));
    }
}
