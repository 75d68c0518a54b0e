//! The lines before the first benchmark: the machine and the settings.
//!
//! Source: RocksDB `tools/db_bench_tool.cc`; the scripts read the fields of `Date:`.

use crate::calendar::Moment;
use crate::flags::Flags;
use ashlar_env::{Env, ReadFile};
use std::fmt::Write as _;
use std::path::Path;

/// The processor, from `/proc/cpuinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Processor {
    count: usize,
    model: String,
    cache: String,
}

impl Processor {
    fn parse(text: &str) -> Processor {
        let mut found = Processor::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            match name.trim() {
                "processor" => found.count += 1,
                "model name" => found.model = value.trim().to_owned(),
                "cache size" => found.cache = value.trim().to_owned(),
                _ => {}
            }
        }
        found
    }

    fn of_this_machine(env: &Env) -> Processor {
        let mut text = Vec::new();
        if let Ok(file) = env.fs.open_read(Path::new("/proc/cpuinfo")) {
            read_to_end(&*file, &mut text);
        }
        Processor::parse(&String::from_utf8_lossy(&text))
    }
}

/// Reads a file whose length is unknown before the read. Unreadable parts are left out.
fn read_to_end(file: &dyn ReadFile, to: &mut Vec<u8>) {
    let mut part = [0; 4096];
    while let Ok(got @ 1..) = file.read_at(&mut part, to.len() as u64) {
        to.extend_from_slice(part.get(..got).unwrap_or_default());
    }
}

/// Engine, date and machine. Under another title the version names the engine.
pub(crate) fn environment(title: Option<&str>, engine: (String, String), env: &Env) -> String {
    let (name, version) = match (title, engine) {
        (Some(title), (name, version)) => (title.to_owned(), format!("{name}-{version}")),
        (None, engine) => engine,
    };
    let cpu = Processor::of_this_machine(env);
    let date = Moment::new(env.clock.unix_micros());
    let title = format!("{name}:");
    let mut text = format!("{title:<11} version {version}\nDate:       {date}\n");
    if cpu.count > 0 {
        let _ = writeln!(text, "CPU:        {} * {}\nCPUCache:   {}", cpu.count, cpu.model, cpu.cache);
    }
    text
}

/// Sizes and settings, and a line of dashes.
pub(crate) fn settings(flags: &Flags) -> String {
    let Flags { num, value_size, compression_ratio, .. } = flags;
    let key_bytes = flags.key_bytes();
    let after = (*value_size as f64 * compression_ratio + 0.5).trunc();
    let mb = |per_entry: f64| per_entry * *num as f64 / 1_048_576.0;
    let (raw, stored) = (mb((key_bytes + value_size) as f64), mb(key_bytes as f64 + after));
    let compression = match flags.compression_type.to_ascii_lowercase().as_str() {
        "snappy" => "Snappy".to_owned(),
        "none" => "NoCompression".to_owned(),
        "zlib" => "Zlib".to_owned(),
        "lz4" => "LZ4".to_owned(),
        "zstd" => "ZSTD".to_owned(),
        other => other.to_owned(),
    };
    let mut text = format!(
        "Keys:       {key_bytes} bytes each (+ 0 bytes user-defined timestamp)\n\
         Values:     {value_size} bytes each ({after:.0} bytes after compression)\n\
         Entries:    {num}\n\
         Prefix:    {} bytes\n\
         Keys per prefix:    {}\n\
         RawSize:    {raw:.1} MB (estimated)\n\
         FileSize:   {stored:.1} MB (estimated)\n\
         Write rate: {} bytes/second\n\
         Read rate: {} ops/second\n\
         Compression: {compression}\n\
         Compression sampling rate: 0\n\
         Memtablerep: SkipListFactory\n\
         Perf Level: {}\n",
        flags.prefix_size,
        flags.keys_per_prefix,
        flags.benchmark_write_rate_limit,
        flags.benchmark_read_rate_limit,
        flags.perf_level
    );
    if cfg!(debug_assertions) {
        text.push_str("WARNING: Assertions are enabled; benchmarks unnecessarily slow\n");
    }
    text.push_str(&"-".repeat(48));
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_processor() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC 7B13\ncache size\t: 512 KB\n\nprocessor\t: 1\nmodel name\t: AMD EPYC 7B13\ncache size\t: 512 KB\n";
        let found = Processor::parse(text);
        assert_eq!((found.count, found.model.as_str(), found.cache.as_str()), (2, "AMD EPYC 7B13", "512 KB"));
        assert_eq!(Processor::parse(""), Processor::default());
    }

    /// The figures of RocksDB 7.8.3's header for the same sizes.
    #[test]
    fn estimates_as_the_tool_does() {
        let text = settings(&Flags { num: 20_000, ..Flags::default() });
        for line in [
            "Keys:       16 bytes each (+ 0 bytes user-defined timestamp)\nValues:     100 bytes each (50 bytes after compression)\nEntries:    20000\n",
            "RawSize:    2.2 MB (estimated)\nFileSize:   1.3 MB (estimated)\nWrite rate: 0 bytes/second\n",
            "Compression: Snappy\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(text.ends_with("\n------------------------------------------------\n"));
        assert!(
            text.contains("Prefix:    0 bytes\nKeys per prefix:    0\n") && text.contains("Perf Level: 1\n")
        );
        let text = settings(&Flags { key_shape: crate::KeyShape::Url, ..Flags::default() });
        assert!(text.starts_with("Keys:       55 bytes each "), "{text}");
        let flags = Flags { prefix_size: 4, keys_per_prefix: 10, perf_level: 3, ..Flags::default() };
        let text = settings(&flags);
        assert!(
            text.contains("Prefix:    4 bytes\nKeys per prefix:    10\n") && text.contains("Perf Level: 3\n")
        );
    }

    #[test]
    fn begins_with_engine_and_date() {
        let text = environment(None, ("AshlarDB".into(), "0.1.0".into()), &Env::mem());
        assert!(text.starts_with("AshlarDB:   version 0.1.0\nDate:       "), "{text}");
        // The script reads weekday, month, day, time and year after the name.
        assert_eq!(text.lines().nth(1).unwrap().split_whitespace().count(), 6);
        let titled = environment(Some("RocksDB"), ("AshlarDB".into(), "0.1.0".into()), &Env::mem());
        assert!(titled.starts_with("RocksDB:    version AshlarDB-0.1.0\n"), "{titled}");
    }
}
