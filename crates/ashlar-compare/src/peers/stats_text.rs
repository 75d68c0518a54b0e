//! What the text of `rocksdb.stats` says was written.

use crate::peer::Written;

const MIB: f64 = 1_048_576.0;
const GIB: f64 = 1024.0 * MIB;

/// Bytes written by flushes and compactions: `Flush(GB): cumulative x, …` and `Cumulative compaction: y GB write, …`;
/// or AshlarDB's `Flush: n tables, x MB` and `Compaction: …, y MB written, …`.
pub fn written(text: &str) -> Written {
    let after = |line: &str, mark: &str| number(line.split_once(mark)?.1);
    let find =
        |head: &str, mark: &str| text.lines().filter(|l| l.starts_with(head)).find_map(|l| after(l, mark));
    let before = |head: &str, mark: &str| {
        let line = text.lines().find(|l| l.starts_with(head))?;
        number(line.split_once(mark)?.0.rsplit([' ', ',']).next()?)
    };
    let flush = find("Flush(GB):", "cumulative ").map(|gb| gb * GIB);
    let compaction = find("Cumulative compaction:", "compaction: ").map(|gb| gb * GIB);
    Written {
        flush: flush.or_else(|| before("Flush:", " MB").map(|mb| mb * MIB)).map(whole),
        compaction: compaction.or_else(|| before("Compaction:", " MB written").map(|mb| mb * MIB)).map(whole),
    }
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
    fn both_forms_are_read() {
        let text = "Uptime(secs): 1.0 total, 1.0 interval\nFlush(GB): cumulative 0.500, interval 0.1\n\
                    Cumulative compaction: 0.25 GB write, 12.00 MB/s write, 0.10 GB read\n";
        let seen = written(text);
        assert_eq!((seen.flush, seen.compaction), (Some(1 << 29), Some(1 << 28)));
        let seen =
            written("Flush: 3 tables, 64.5 MB\nCompaction: 1 done, 4.0 MB read, 2.5 MB written, W-Amp 1.0\n");
        assert_eq!((seen.flush, seen.compaction), (Some(67_633_152), Some(2_621_440)));
        assert_eq!(written("").flush, None);
    }
}
