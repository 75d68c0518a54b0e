//! The texts of `rocksdb.cfstats` and `rocksdb.dbstats`, which make up `rocksdb.stats`. Lines, columns and units are
//! those of RocksDB, because scripts parse them by position.
//!
//! The processor time of compactions is not measured; its column is zero. The columns are those of RocksDB 7 and 8:
//! later releases add one after `Write(GB)`, which moves the fields that `benchmark.sh` reads.
//! Source: RocksDB `db/internal_stats.cc` (shape), `tools/benchmark.sh` (what is read).

use crate::human::{bytes, duration, gb, mb, number};
use crate::work::{FamilyWork, LevelWork};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The current state of one level.
#[derive(Clone, Copy, Debug, Default)]
pub struct LevelNow {
    /// The number of tables.
    pub files: usize,
    /// How many of those tables a compaction reads.
    pub compacting: usize,
    /// Bytes of the tables.
    pub bytes: u64,
    /// The compaction score; a compaction is due from 1 on.
    pub score: f64,
}

/// How often writers were held, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StallCounts {
    /// Slowed because level 0 has many tables.
    pub level0_slowdowns: u64,
    /// Stopped because level 0 has too many tables.
    pub level0_stops: u64,
    /// Slowed because compaction is behind.
    pub debt_slowdowns: u64,
    /// Stopped because compaction is too far behind.
    pub debt_stops: u64,
    /// Stopped because memtables wait for their flush.
    pub memtable_stops: u64,
}

impl StallCounts {
    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.level0_slowdowns
            + self.level0_stops
            + self.debt_slowdowns
            + self.debt_stops
            + self.memtable_stops
    }

    /// The counts by the names of RocksDB's map.
    pub fn by_name(&self) -> [(&'static str, u64); 7] {
        [
            ("l0-file-count-limit-delays", self.level0_slowdowns),
            ("l0-file-count-limit-stops", self.level0_stops),
            ("memtable-limit-stops", self.memtable_stops),
            ("pending-compaction-bytes-delays", self.debt_slowdowns),
            ("pending-compaction-bytes-stops", self.debt_stops),
            ("total-delays", self.level0_slowdowns + self.debt_slowdowns),
            ("total-stops", self.level0_stops + self.debt_stops + self.memtable_stops),
        ]
    }

    /// `l0-file-count-limit-delays: 0, …`.
    pub fn line(&self) -> String {
        let pairs: Vec<String> = self.by_name().iter().map(|(name, n)| format!("{name}: {n}")).collect();
        pairs.join(", ")
    }
}

/// Blob files of a family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlobNow {
    /// The number of files.
    pub files: usize,
    /// Bytes of those files.
    pub bytes: u64,
    /// Bytes of values in those files that nothing refers to.
    pub garbage: u64,
}

impl BlobNow {
    /// Bytes per byte in use; 0 without blob files.
    pub fn amplification(&self) -> f64 {
        let used = self.bytes.saturating_sub(self.garbage);
        if used == 0 { 0.0 } else { self.bytes as f64 / used as f64 }
    }

    /// The text of `rocksdb.blob-stats`.
    pub fn text(&self) -> String {
        format!(
            "Number of blob files: {}\nTotal size of blob files: {}\nTotal size of garbage in blob files: {}\n\
             Blob file space amplification: {}\n",
            self.files,
            self.bytes,
            self.garbage,
            self.amplification()
        )
    }
}

/// The content of a family's text.
#[derive(Clone, Debug, Default)]
pub struct FamilyStats {
    /// The family's name.
    pub name: String,
    /// The current levels.
    pub levels: Vec<LevelNow>,
    /// The work since the open.
    pub work: FamilyWork,
    /// The work up to the previous text.
    pub before: FamilyWork,
    /// The family's blob files.
    pub blobs: BlobNow,
    /// Seconds since the open, and since the previous text.
    pub seconds: (f64, f64),
    /// Bytes that compaction still has to move.
    pub debt: u64,
    /// How often writers were held since the open.
    pub stalls: StallCounts,
    /// How often writers had been held at the previous text.
    pub stalls_before: StallCounts,
}

impl FamilyStats {
    /// Names and values, as in RocksDB's map: `compaction.L0.SizeBytes` and others.
    pub fn map(&self) -> BTreeMap<String, String> {
        let mut map = BTreeMap::new();
        let mut add = |level: &str, name: &str, value: String| {
            map.insert(format!("compaction.{level}.{name}"), value);
        };
        for (level, now) in self.levels.iter().enumerate() {
            let (work, level) = (self.work.level(level), format!("L{level}"));
            add(&level, "NumFiles", now.files.to_string());
            add(&level, "CompactedFiles", now.compacting.to_string());
            add(&level, "SizeBytes", now.bytes.to_string());
            add(&level, "Score", format!("{:.6}", now.score));
            add(&level, "ReadGB", format!("{:.6}", gb(work.read())));
            add(&level, "WriteGB", format!("{:.6}", gb(work.written)));
            add(&level, "MovedGB", format!("{:.6}", gb(work.moved)));
            add(&level, "CompSec", format!("{:.6}", work.micros as f64 / 1e6));
            add(&level, "CompCount", work.count.to_string());
            add(&level, "KeyIn", work.entries_in.to_string());
            add(&level, "KeyDrop", work.entries_dropped.to_string());
        }
        let sum = self.work.sum();
        add("Sum", "WriteGB", format!("{:.6}", gb(sum.written)));
        add("Sum", "ReadGB", format!("{:.6}", gb(sum.read())));
        add("Sum", "WriteAmp", format!("{:.6}", per_byte(&sum, self.work.flushed)));
        map
    }
}

const COLUMNS: &str = "Level    Files   Size     Score Read(GB)  Rn(GB) Rnp1(GB) Write(GB) Wnew(GB) Moved(GB) W-Amp \
    Rd(MB/s) Wr(MB/s) Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop Rblob(GB) Wblob(GB)";

/// One row of the table.
fn row(out: &mut String, name: &str, now: &LevelNow, amplification: f64, work: &LevelWork) {
    let seconds = work.micros as f64 / 1e6;
    // One microsecond is added so that the divisor is never zero.
    let rate = |bytes: u64| mb(bytes) / ((work.micros + 1) as f64 / 1e6);
    let average = if work.count == 0 { 0.0 } else { seconds / work.count as f64 };
    let new = gb(work.written) - gb(work.read_here);
    let _ = writeln!(
        out,
        "{name:>4} {:6}/{:<3} {:>10} {:5.1} {:8.1} {:7.1} {:8.1} {:9.1} {new:8.1} {:9.1} {amplification:5.1} {:8.1} \
         {:8.1} {seconds:9.2} {:17.2} {:9} {average:8.3} {:>7} {:>6} {:9.1} {:9.1}",
        now.files,
        now.compacting,
        bytes(now.bytes),
        now.score,
        gb(work.read()),
        gb(work.read_above),
        gb(work.read_here),
        gb(work.written),
        gb(work.moved),
        rate(work.read()),
        rate(work.written + work.blob_written),
        0.0,
        work.count,
        number(work.entries_in),
        number(work.entries_dropped),
        0.0,
        gb(work.blob_written),
    );
}

/// Bytes written per byte that came in.
fn per_byte(work: &LevelWork, came_in: u64) -> f64 {
    if came_in == 0 { 0.0 } else { (work.written + work.blob_written) as f64 / came_in as f64 }
}

/// The text of `rocksdb.cfstats`.
pub fn family_text(of: &FamilyStats) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(out, "\n** Compaction Stats [{}] **\n{COLUMNS}\n{}", of.name, "-".repeat(COLUMNS.len()));
    let mut all = LevelNow::default();
    for (level, now) in of.levels.iter().enumerate() {
        let work = of.work.level(level);
        all.files += now.files;
        all.compacting += now.compacting;
        all.bytes += now.bytes;
        if now.files > 0 || work != LevelWork::default() {
            let came_in = if level == 0 { of.work.flushed } else { work.read_above + work.moved };
            row(&mut out, &format!("L{level}"), now, per_byte(&work, came_in), &work);
        }
    }
    let sum = of.work.sum();
    row(&mut out, "Sum", &all, per_byte(&sum, of.work.flushed), &sum);
    let lately = sum.minus(of.before.sum());
    let flushed_lately = of.work.flushed.saturating_sub(of.before.flushed);
    row(&mut out, "Int", &LevelNow::default(), per_byte(&lately, flushed_lately), &lately);
    let _ = writeln!(
        out,
        "\nBlob file count: {}, total size: {:.1} GB, garbage size: {:.1} GB, space amp: {:.1}\n",
        of.blobs.files,
        gb(of.blobs.bytes),
        gb(of.blobs.garbage),
        of.blobs.amplification()
    );
    let (total, interval) = of.seconds;
    let _ = writeln!(out, "Uptime(secs): {total:.1} total, {interval:.1} interval");
    let _ =
        writeln!(out, "Flush(GB): cumulative {:.3}, interval {:.3}", gb(of.work.flushed), gb(flushed_lately));
    for (name, work, seconds) in [("Cumulative", &sum, total), ("Interval", &lately, interval)] {
        let (written, seconds) = (work.written + work.blob_written, seconds.max(0.001));
        let _ = writeln!(
            out,
            "{name} compaction: {:.2} GB write, {:.2} MB/s write, {:.2} GB read, {:.2} MB/s read, {:.1} seconds",
            gb(written),
            mb(written) / seconds,
            gb(work.read()),
            mb(work.read()) / seconds,
            work.micros as f64 / 1e6
        );
    }
    let _ = writeln!(out, "Estimated pending compaction bytes: {}", of.debt);
    stall_lines(&mut out, &of.stalls, &of.stalls_before);
    out
}

/// The line that scripts for RocksDB up to 8 parse, and the line of later releases.
fn stall_lines(out: &mut String, s: &StallCounts, before: &StallCounts) {
    let _ = writeln!(
        out,
        "Stalls(count): {} level0_slowdown, 0 level0_slowdown_with_compaction, {} level0_numfiles, \
         0 level0_numfiles_with_compaction, {} stop for pending_compaction_bytes, \
         {} slowdown for pending_compaction_bytes, {} memtable_compaction, 0 memtable_slowdown, \
         interval {} total count",
        s.level0_slowdowns,
        s.level0_stops,
        s.debt_stops,
        s.debt_slowdowns,
        s.memtable_stops,
        s.total().saturating_sub(before.total())
    );
    let _ = writeln!(out, "Write Stall (count): {}", s.line());
}

/// The writes of a database since its open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DbWrites {
    /// Batches.
    pub writes: u64,
    /// Groups in which the batches were committed.
    pub groups: u64,
    /// Operations.
    pub keys: u64,
    /// Bytes of the batches.
    pub bytes: u64,
    /// Batches written to the WAL.
    pub logged: u64,
    /// Syncs of WAL files.
    pub wal_syncs: u64,
    /// Bytes by which the WAL files grew.
    pub wal_bytes: u64,
    /// Time writers were held, in microseconds.
    pub stall_micros: u64,
    /// Seconds since the open.
    pub seconds: f64,
}

impl DbWrites {
    fn minus(&self, b: &DbWrites) -> DbWrites {
        DbWrites {
            writes: self.writes.saturating_sub(b.writes),
            groups: self.groups.saturating_sub(b.groups),
            keys: self.keys.saturating_sub(b.keys),
            bytes: self.bytes.saturating_sub(b.bytes),
            logged: self.logged.saturating_sub(b.logged),
            wal_syncs: self.wal_syncs.saturating_sub(b.wal_syncs),
            wal_bytes: self.wal_bytes.saturating_sub(b.wal_bytes),
            stall_micros: self.stall_micros.saturating_sub(b.stall_micros),
            seconds: (self.seconds - b.seconds).max(0.0),
        }
    }
}

/// The text of `rocksdb.dbstats`. `before`: the writes up to the previous text.
pub fn db_text(now: &DbWrites, before: &DbWrites) -> String {
    let mut out = String::new();
    let lately = now.minus(before);
    let _ = writeln!(
        out,
        "\n** DB Stats **\nUptime(secs): {:.1} total, {:.1} interval",
        now.seconds, lately.seconds
    );
    for (name, w) in [("Cumulative", now), ("Interval", &lately)] {
        let seconds = w.seconds.max(0.001);
        let ingest = match name {
            "Cumulative" => format!("{:.2} GB", gb(w.bytes)),
            _ => format!("{:.2} MB", mb(w.bytes)),
        };
        let _ = writeln!(
            out,
            "{name} writes: {} writes, {} keys, {} commit groups, {:.1} writes per commit group, ingest: {ingest}, \
             {:.2} MB/s\n{name} WAL: {} writes, {} syncs, {:.2} writes per sync, written: {:.2} GB, {:.2} MB/s\n\
             {name} stall: {}, {:.1} percent",
            number(w.writes),
            number(w.keys),
            number(w.groups),
            w.writes as f64 / (w.groups as f64).max(1.0),
            mb(w.bytes) / seconds,
            number(w.logged),
            number(w.wal_syncs),
            w.logged as f64 / (w.wal_syncs as f64).max(1.0),
            gb(w.wal_bytes),
            mb(w.wal_bytes) / seconds,
            duration(w.stall_micros),
            w.stall_micros as f64 / 1e4 / seconds
        );
    }
    out
}

#[cfg(test)]
#[path = "stats_text_tests.rs"]
mod tests;
