package jdbbench;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The flags of a run: {@code --name=value}, or {@code --name} alone for a switch.
 *
 * <p>A flag of the measurements of 2014 that RocksDB dropped since is accepted and ignored, with one line that says so. Any other
 * unknown flag is an error, and so is a value of the wrong kind.
 */
final class Flags {
  private enum Kind {
    TEXT,
    NUMBER,
    RATIO,
    SWITCH
  }

  private record Flag(Kind kind, String usual, String help) {}

  private static final Map<String, Flag> KNOWN = new LinkedHashMap<>();

  /** Flags that RocksDB dropped, each with the reason why ignoring it is right. */
  private static final Map<String, String> DROPPED =
      Map.of(
          "disable_seek_compaction", "RocksDB has no compactions for seeks",
          "disable_data_sync", "RocksDB always syncs its tables",
          "cache_remove_scan_count_limit", "the cache scans no list",
          "source_compaction_factor", "RocksDB has no such limit");

  private static void flag(Kind kind, String name, String usual, String help) {
    KNOWN.put(name, new Flag(kind, usual, help));
  }

  static {
    flag(Kind.TEXT, "benchmarks", "fillseq,readrandom,fillrandom", "workloads, one after the other: " + Workload.names());
    flag(Kind.TEXT, "db", "/tmp/rocksdbjni-bench", "directory of the database");
    flag(Kind.SWITCH, "use_existing_db", "false", "keep the entries of the directory; else it is emptied first");
    flag(Kind.NUMBER, "num", "1000000", "entries: keys are drawn below this number");
    flag(Kind.NUMBER, "reads", "-1", "reads of all threads together; -1: as many as entries");
    flag(Kind.NUMBER, "threads", "1", "threads that share the operations of a workload");
    flag(Kind.NUMBER, "key_size", "16", "bytes of a key");
    flag(Kind.NUMBER, "value_size", "100", "bytes of a value");
    flag(Kind.RATIO, "compression_ratio", "0.5", "the part of its size to which a value compresses");
    flag(Kind.NUMBER, "seed", "0", "seed of the drawn keys");
    flag(Kind.NUMBER, "writes_per_second", "10000", "puts per second of readwhilewriting's writer; 0: no limit");
    flag(Kind.SWITCH, "verify_values", "false", "compare each value that is read with the one that was put");
    flag(Kind.SWITCH, "details", "false", "print processor time, memory and the writer's puts after each workload");
    flag(Kind.SWITCH, "statistics", "false", "keep statistics, and print them at the end");
    flag(Kind.SWITCH, "histogram", "false", "with --statistics, print their histograms too");
    flag(Kind.NUMBER, "stats_interval", "0", "operations of a thread between two lines of progress; 0: no lines");
    flag(Kind.NUMBER, "stats_per_interval", "0", "print the database's statistics with each line of progress of thread 0");
    flag(Kind.SWITCH, "sync", "false", "each put waits for the device");
    flag(Kind.SWITCH, "disable_wal", "false", "puts without a write-ahead log");
    flag(Kind.SWITCH, "verify_checksum", "false", "reads verify the checksums of blocks");
    flag(Kind.NUMBER, "cache_size", "-1", "bytes of the block cache; -1: RocksDB's default");
    flag(Kind.NUMBER, "cache_numshardbits", "-1", "logarithm of the number of the cache's shards; -1: RocksDB's default");
    flag(Kind.NUMBER, "bloom_bits", "-1", "bits of the filters per key; -1: no filters");
    flag(Kind.NUMBER, "block_size", "4096", "bytes of a block before compression");
    flag(Kind.TEXT, "compression_type", "snappy", "none, snappy, zlib, bzip2, lz4, lz4hc or zstd");
    flag(Kind.NUMBER, "min_level_to_compress", "-1", "levels above this one are not compressed; -1: all are compressed");
    flag(Kind.NUMBER, "write_buffer_size", "4194304", "bytes of a memtable");
    flag(Kind.NUMBER, "max_write_buffer_number", "2", "full memtables at which puts wait");
    flag(Kind.NUMBER, "target_file_size_base", "2097152", "bytes of a table");
    flag(Kind.NUMBER, "max_bytes_for_level_base", "10485760", "bytes of level 1");
    flag(Kind.NUMBER, "max_bytes_for_level_multiplier", "10", "the size of a level divided by that of the one above");
    flag(Kind.NUMBER, "max_grandparent_overlap_factor", "-1", "max_compaction_bytes in tables; -1: RocksDB's default");
    flag(Kind.NUMBER, "num_levels", "7", "levels");
    flag(Kind.NUMBER, "level0_file_num_compaction_trigger", "4", "tables of level 0 from which it is compacted");
    flag(Kind.NUMBER, "level0_slowdown_writes_trigger", "8", "tables of level 0 from which puts are slowed down");
    flag(Kind.NUMBER, "level0_stop_writes_trigger", "12", "tables of level 0 from which puts wait");
    flag(Kind.NUMBER, "max_background_compactions", "-1", "compactions at a time; -1: RocksDB's default");
    flag(Kind.NUMBER, "max_background_jobs", "-1", "flushes and compactions at a time; -1: RocksDB's default");
    flag(Kind.NUMBER, "delete_obsolete_files_period_micros", "-1", "time between two searches for files to delete; -1: RocksDB's default");
    flag(Kind.NUMBER, "open_files", "-1", "files that stay open; -1: all");
    flag(Kind.SWITCH, "mmap_read", "false", "read mapped tables");
    flag(Kind.SWITCH, "mmap_write", "false", "write mapped files");
    flag(Kind.SWITCH, "disable_auto_compactions", "false", "no compactions in the background");
    flag(Kind.SWITCH, "help", "false", "print this list");
  }

  private final Map<String, String> values;

  private Flags(Map<String, String> values) {
    this.values = values;
  }

  /**
   * Reads a command line. {@code notice} gets a line for each dropped flag.
   *
   * @throws IllegalArgumentException a flag is unknown, or its value is of the wrong kind
   */
  static Flags parse(String[] words, Consumer<String> notice) {
    Map<String, String> values = new HashMap<>();
    for (String word : words) {
      if (!word.startsWith("--")) {
        throw new IllegalArgumentException("'" + word + "' is no flag: --name=value");
      }
      int sign = word.indexOf('=');
      String name = word.substring(2, sign < 0 ? word.length() : sign);
      Flag flag = KNOWN.get(name);
      if (flag != null) {
        String value = sign >= 0 ? word.substring(sign + 1) : flag.kind == Kind.SWITCH ? "true" : "";
        values.put(name, checked(name, flag.kind, value));
      } else if (DROPPED.containsKey(name)) {
        notice.accept("jdb_bench: --" + name + " is ignored: " + DROPPED.get(name));
      } else {
        throw new IllegalArgumentException("there is no flag --" + name + "; --help lists the flags");
      }
    }
    return new Flags(values);
  }

  private static String checked(String name, Kind kind, String value) {
    boolean good =
        switch (kind) {
          case TEXT -> !value.isEmpty();
          case NUMBER -> value.matches("-?\\d{1,18}");
          case RATIO -> value.matches("\\d{1,9}(\\.\\d{1,9})?");
          case SWITCH -> value.matches("true|false|1|0");
        };
    if (!good) {
      throw new IllegalArgumentException("--" + name + "='" + value + "' is no " + kind.name().toLowerCase(Locale.ROOT));
    }
    return value;
  }

  /** The list of flags for people. */
  static String help() {
    StringBuilder help = new StringBuilder("jdb_bench --name=value ...\n\n");
    KNOWN.forEach((name, flag) -> help.append(String.format(Locale.ROOT, "  --%s=%s%n        %s%n", name, flag.usual, flag.help)));
    help.append("\nAccepted and ignored: ").append(String.join(", ", DROPPED.keySet().stream().sorted().toList()));
    return help.append(".\n").toString();
  }

  String text(String name) {
    String value = values.get(name);
    return value != null ? value : KNOWN.get(name).usual;
  }

  long number(String name) {
    return Long.parseLong(text(name));
  }

  /**
   * A number of 32 bits.
   *
   * @throws IllegalArgumentException it is larger
   */
  int small(String name) {
    long number = number(name);
    if (number != (int) number) {
      throw new IllegalArgumentException("--" + name + "=" + number + " is too large");
    }
    return (int) number;
  }

  double ratio(String name) {
    return Double.parseDouble(text(name));
  }

  boolean is(String name) {
    String value = text(name);
    return value.equals("true") || value.equals("1");
  }
}
