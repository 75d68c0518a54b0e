use super::*;

fn sample() -> FamilyStats {
    let mut work = FamilyWork::default();
    work.flushed = 3 << 30;
    work.add(
        0,
        LevelWork {
            count: 48,
            micros: 30_000_000,
            written: 3 << 30,
            entries_in: 30_000_000,
            ..LevelWork::default()
        },
    );
    work.add(
        6,
        LevelWork {
            count: 4,
            micros: 61_250_000,
            read_above: 3 << 30,
            read_here: 1 << 30,
            written: 7 << 29,
            moved: 1 << 29,
            blob_written: 1 << 29,
            entries_in: 40_000_000,
            entries_dropped: 1234,
        },
    );
    FamilyStats {
        name: "default".into(),
        levels: vec![
            LevelNow { files: 2, compacting: 1, bytes: 128 << 20, score: 0.5 },
            LevelNow::default(),
            LevelNow::default(),
            LevelNow::default(),
            LevelNow::default(),
            LevelNow::default(),
            LevelNow { files: 56, compacting: 0, bytes: 7 << 29, score: 0.0 },
        ],
        work,
        blobs: BlobNow { files: 3, bytes: 3 << 30, garbage: 1 << 30 },
        seconds: (100.0, 20.0),
        debt: 12_345,
        stalls: StallCounts {
            level0_slowdowns: 1,
            level0_stops: 2,
            debt_slowdowns: 3,
            debt_stops: 4,
            memtable_stops: 5,
        },
        ..FamilyStats::default()
    }
}

/// Field `n` of the last line that starts with `head`, counted from 1, as the scripts read it.
fn field<'a>(text: &'a str, head: &str, n: usize) -> &'a str {
    let line = text.lines().rfind(|line| line.starts_with(head)).unwrap();
    line.split_whitespace().nth(n - 1).unwrap()
}

/// The fields that RocksDB's `tools/benchmark.sh` reads.
#[test]
fn fields_stand_where_scripts_look_for_them() {
    let text = family_text(&sample());
    assert_eq!((field(&text, " Sum", 3), field(&text, " Sum", 4)), ("3.62", "GB"));
    assert_eq!((field(&text, " Sum", 15), field(&text, " Sum", 16)), ("91.25", "0.00"));
    assert_eq!((field(&text, " Sum", 21), field(&text, " Sum", 22)), ("0.0", "0.5"));
    assert_eq!((field(&text, "  L0", 9), field(&text, " Sum", 9)), ("3.0", "6.5"));
    assert_eq!(field(&text, " Sum", 12), "2.3");
    assert_eq!(field(&text, " Int", 9), "6.5");
    assert_eq!((field(&text, "Blob file count:", 7), field(&text, "Blob file count:", 8)), ("3.0", "GB,"));
    assert_eq!(field(&text, "Uptime(secs", 2), "100.0");
    assert_eq!(field(&text, "Flush(GB)", 3), "3.000,");
    assert_eq!(
        (field(&text, "Cumulative compaction", 3), field(&text, "Cumulative compaction", 6)),
        ("7.00", "71.68")
    );
    let stalls = [2, 6, 10, 14, 18, 20].map(|n| field(&text, "Stalls(count):", n));
    assert_eq!(stalls, ["1", "2", "4", "3", "5", "0"]);
    assert!(text.contains("\n** Compaction Stats [default] **\nLevel "));
    assert!(
        text.contains("Write Stall (count): l0-file-count-limit-delays: 1, l0-file-count-limit-stops: 2, ")
    );
    let now = DbWrites {
        writes: 30_000,
        groups: 15_000,
        keys: 45_000,
        bytes: 5 << 30,
        logged: 20_000,
        wal_syncs: 10,
        wal_bytes: 4 << 30,
        stall_micros: 62_500_000,
        seconds: 100.0,
    };
    let text = db_text(&now, &DbWrites { writes: 10_000, seconds: 80.0, ..DbWrites::default() });
    let words: Vec<_> =
        text.lines().find(|l| l.starts_with("Cumulative writes")).unwrap().split(' ').collect();
    let at = words.iter().position(|w| *w == "ingest:").unwrap();
    assert_eq!(words[at + 1..at + 4], ["5.00", "GB,", "51.20"]);
    assert_eq!(
        ["Cumulative stall", "Cumulative WAL", "Interval writes"].map(|head| field(&text, head, 3)),
        ["00:01:02.500", "20K", "20K"]
    );
    assert_eq!(field(&text, "Cumulative stall", 5), "62.5");
}

#[test]
fn what_lies_between_two_texts_is_the_interval() {
    let mut stats = sample();
    stats.before = stats.work.clone();
    stats.work.add(0, LevelWork { count: 1, written: 1 << 30, ..LevelWork::default() });
    stats.work.flushed += 1 << 30;
    let text = family_text(&stats);
    assert_eq!((field(&text, " Int", 9), field(&text, " Int", 12)), ("1.0", "1.0"));
    assert_eq!(field(&text, "Flush(GB)", 5), "1.000");
}
