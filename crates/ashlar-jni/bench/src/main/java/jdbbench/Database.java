package jdbbench;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.CompressionType;
import org.rocksdb.FlushOptions;
import org.rocksdb.HistogramData;
import org.rocksdb.HistogramType;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.Statistics;
import org.rocksdb.TickerType;
import org.rocksdb.WriteOptions;

/** An open database with the options that the flags describe. Closing it closes the options too. */
final class Database implements AutoCloseable {
  /** Properties that are 0 when the background work is done. */
  private static final String[] DEBT = {
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions"
  };

  /** Sizes that change when a flush or a compaction ends. */
  private static final String[] SIZES = {
    "rocksdb.total-sst-files-size", "rocksdb.estimate-pending-compaction-bytes"
  };

  private static final long NAP_MILLIS = 20;

  /** The wait for background work fails if no property changes for so long. */
  private static final long STUCK_NANOS = TimeUnit.MINUTES.toNanos(10);

  /** What is closed at the end, the last one first. */
  private final List<AutoCloseable> parts = new ArrayList<>();

  private final RocksDB db;
  private final Statistics statistics;
  private final ReadOptions reads;
  private final WriteOptions writes;

  private Database(Flags flags) throws RocksDBException {
    try {
      Options options = keep(new Options());
      statistics = flags.is("statistics") ? keep(new Statistics()) : null;
      if (statistics != null) {
        options.setStatistics(statistics);
      }
      options.setCreateIfMissing(!flags.is("use_existing_db"));
      shape(options, flags);
      files(options, flags);
      options.setTableFormatConfig(tables(flags));
      reads = keep(new ReadOptions()).setVerifyChecksums(flags.is("verify_checksum"));
      writes = keep(new WriteOptions()).setSync(flags.is("sync")).setDisableWAL(flags.is("disable_wal"));
      if (!flags.is("use_existing_db")) {
        RocksDB.destroyDB(flags.text("db"), options);
      }
      db = keep(RocksDB.open(options, flags.text("db")));
    } catch (RocksDBException | RuntimeException failure) {
      close();
      throw failure;
    }
  }

  /**
   * Opens the directory, after it was emptied unless the entries are to be kept.
   *
   * @throws RocksDBException the directory cannot be opened with these options
   */
  static Database open(Flags flags) throws RocksDBException {
    return new Database(flags);
  }

  private <T extends AutoCloseable> T keep(T part) {
    parts.add(part);
    return part;
  }

  /** Memtables, levels and compactions. */
  @SuppressWarnings("deprecation") // The flag of 2014 sets the compactions alone, which is deprecated but still there.
  private static void shape(Options options, Flags flags) {
    options.setWriteBufferSize(flags.number("write_buffer_size"));
    options.setMaxWriteBufferNumber(flags.small("max_write_buffer_number"));
    options.setNumLevels(flags.small("num_levels"));
    options.setTargetFileSizeBase(flags.number("target_file_size_base"));
    options.setMaxBytesForLevelBase(flags.number("max_bytes_for_level_base"));
    options.setMaxBytesForLevelMultiplier(flags.number("max_bytes_for_level_multiplier"));
    options.setLevelZeroFileNumCompactionTrigger(flags.small("level0_file_num_compaction_trigger"));
    options.setLevelZeroSlowdownWritesTrigger(flags.small("level0_slowdown_writes_trigger"));
    options.setLevelZeroStopWritesTrigger(flags.small("level0_stop_writes_trigger"));
    options.setDisableAutoCompactions(flags.is("disable_auto_compactions"));
    if (flags.number("max_grandparent_overlap_factor") >= 0) {
      long tables = flags.number("max_grandparent_overlap_factor");
      options.setMaxCompactionBytes(tables * flags.number("target_file_size_base"));
    }
    if (flags.number("max_background_compactions") >= 0) {
      options.setMaxBackgroundCompactions(flags.small("max_background_compactions"));
    }
    if (flags.number("max_background_jobs") >= 0) {
      options.setMaxBackgroundJobs(flags.small("max_background_jobs"));
    }
  }

  /** Files and their compression. */
  private static void files(Options options, Flags flags) {
    options.setMaxOpenFiles(flags.small("open_files"));
    options.setAllowMmapReads(flags.is("mmap_read"));
    options.setAllowMmapWrites(flags.is("mmap_write"));
    if (flags.number("delete_obsolete_files_period_micros") >= 0) {
      options.setDeleteObsoleteFilesPeriodMicros(flags.number("delete_obsolete_files_period_micros"));
    }
    CompressionType type = compression(flags.text("compression_type"));
    options.setCompressionType(type);
    int least = flags.small("min_level_to_compress");
    if (least >= 0) {
      int levels = flags.small("num_levels");
      List<CompressionType> types = new ArrayList<>(Collections.nCopies(levels, type));
      Collections.fill(types.subList(0, Math.min(least, levels)), CompressionType.NO_COMPRESSION);
      options.setCompressionPerLevel(types);
    }
  }

  /**
   * The compression of a name.
   *
   * @throws IllegalArgumentException there is none
   */
  static CompressionType compression(String name) {
    String constant = name.equals("none") ? "NO_COMPRESSION" : name.toUpperCase(Locale.ROOT) + "_COMPRESSION";
    try {
      return CompressionType.valueOf(constant);
    } catch (IllegalArgumentException unknown) {
      throw new IllegalArgumentException("--compression_type=" + name + " is unknown");
    }
  }

  private BlockBasedTableConfig tables(Flags flags) {
    BlockBasedTableConfig tables = new BlockBasedTableConfig().setBlockSize(flags.number("block_size"));
    long bytes = flags.number("cache_size");
    int shards = flags.small("cache_numshardbits");
    if (bytes == 0) {
      tables.setNoBlockCache(true);
    } else if (bytes > 0) {
      tables.setBlockCache(keep(shards < 0 ? new LRUCache(bytes) : new LRUCache(bytes, shards)));
    }
    if (flags.number("bloom_bits") >= 0) {
      tables.setFilterPolicy(keep(new BloomFilter(flags.number("bloom_bits"))));
    }
    return tables;
  }

  RocksDB db() {
    return db;
  }

  ReadOptions reads() {
    return reads;
  }

  WriteOptions writes() {
    return writes;
  }

  /**
   * Writes the memtables out, and waits until no flush and no compaction is due.
   *
   * @throws IllegalStateException work is due, and nothing has changed for minutes
   */
  void waitForCompaction() throws RocksDBException, InterruptedException {
    try (FlushOptions waiting = new FlushOptions().setWaitForFlush(true)) {
      db.flush(waiting);
    }
    // Between two compactions all properties may be 0 for a moment, so they must be 0 several times.
    List<Long> before = List.of();
    long changed = System.nanoTime();
    for (int idle = 0; idle < 5; idle++) {
      Thread.sleep(NAP_MILLIS);
      List<Long> debt = properties(DEBT);
      if (debt.stream().allMatch(due -> due == 0)) {
        continue;
      }
      idle = -1;
      List<Long> now = new ArrayList<>(debt);
      now.addAll(properties(SIZES));
      if (!now.equals(before)) {
        before = now;
        changed = System.nanoTime();
      } else if (System.nanoTime() - changed > STUCK_NANOS) {
        throw new IllegalStateException(
            "waitforcompaction: nothing changes, and of " + String.join(", ", DEBT) + " there are " + debt);
      }
    }
  }

  private List<Long> properties(String[] names) throws RocksDBException {
    List<Long> values = new ArrayList<>();
    for (String name : names) {
      values.add(db.getLongProperty(name));
    }
    return values;
  }

  /** The counts of the statistics, and their histograms. */
  String statistics(boolean histograms) {
    StringBuilder text = new StringBuilder("STATISTICS:\n");
    for (TickerType ticker : TickerType.values()) {
      if (ticker != TickerType.TICKER_ENUM_MAX) {
        String name = ticker.name().toLowerCase(Locale.ROOT);
        text.append(String.format(Locale.ROOT, "%s COUNT : %d%n", name, statistics.getTickerCount(ticker)));
      }
    }
    for (HistogramType type : histograms ? HistogramType.values() : new HistogramType[0]) {
      if (type != HistogramType.HISTOGRAM_ENUM_MAX) {
        HistogramData data = statistics.getHistogramData(type);
        String name = type.name().toLowerCase(Locale.ROOT);
        text.append(
            String.format(
                Locale.ROOT,
                "%s P50 : %.2f P95 : %.2f P99 : %.2f COUNT : %d%n",
                name,
                data.getMedian(),
                data.getPercentile95(),
                data.getPercentile99(),
                data.getCount()));
      }
    }
    return text.toString();
  }

  @Override
  public void close() {
    for (int at = parts.size() - 1; at >= 0; at--) {
      try {
        parts.get(at).close();
      } catch (Exception failure) {
        System.err.println("jdb_bench: closing failed: " + failure);
      }
    }
    parts.clear();
  }
}
