import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.rocksdb.*;

/**
 * A walk through RocksDB's Java interface. Prints what each call answers, so that the output over two native libraries can be
 * compared line by line. Uses only what all jars from 7.9.2 to 11.8.1 have.
 */
public final class Walk extends Answers {
  public static void main(String[] args) throws Exception {
    Path dir = Path.of(args[0]);
    options();
    plain(dir.resolve("plain").toString());
    families(dir.resolve("families").toString());
    batches(dir.resolve("batches").toString());
    iterators(dir.resolve("iterators").toString());
    upkeep(dir.resolve("upkeep").toString(), dir.resolve("copy").toString());
    backups(dir.resolve("source").toString(), dir.resolve("backups").toString(), dir.resolve("restored").toString());
    operators(dir.resolve("operators").toString());
    transactions(dir.resolve("transactions").toString());
    optimistic(dir.resolve("optimistic").toString());
    comparators(dir.resolve("comparators").toString());
    filters(dir.resolve("filters").toString());
    errors(dir.resolve("errors").toString());
    System.out.println("end");
  }

  static void options() throws Exception {
    try (Options options = new Options(); DBOptions db = new DBOptions(); ColumnFamilyOptions cf = new ColumnFamilyOptions()) {
      System.out.println("defaults: " + options.createIfMissing() + " " + options.maxOpenFiles() + " "
          + options.writeBufferSize() + " " + options.numLevels() + " " + options.compactionStyle() + " "
          + options.walRecoveryMode() + " " + db.paranoidChecks() + " " + cf.minWriteBufferNumberToMerge() + " "
          + cf.disableAutoCompactions() + " " + cf.targetFileSizeBase() + " " + db.maxTotalWalSize());
      options.setCreateIfMissing(true).setMaxOpenFiles(100).setWriteBufferSize(1 << 20).setNumLevels(5)
          .setCompressionType(CompressionType.ZSTD_COMPRESSION).setCompactionStyle(CompactionStyle.UNIVERSAL)
          .setWalDir("somewhere").setMaxBytesForLevelMultiplier(8.5);
      System.out.println("set: " + options.createIfMissing() + " " + options.maxOpenFiles() + " " + options.writeBufferSize()
          + " " + options.numLevels() + " " + options.compressionType() + " " + options.compactionStyle() + " "
          + options.walDir() + " " + options.maxBytesForLevelMultiplier());
      cf.setCompressionPerLevel(Arrays.asList(CompressionType.NO_COMPRESSION, CompressionType.LZ4_COMPRESSION));
      System.out.println("per level: " + cf.compressionPerLevel());
      db.setDbPaths(Arrays.asList(new DbPath(Path.of("/a"), 10), new DbPath(Path.of("/b"), 20)));
      System.out.println("paths: " + db.dbPaths().size());
      try (Options both = new Options(db, cf)) {
        System.out.println("both: " + both.compressionPerLevel() + " " + both.dbPaths().size());
      }
    }
    try (ReadOptions read = new ReadOptions(); WriteOptions write = new WriteOptions(); FlushOptions flush = new FlushOptions()) {
      System.out.println("calls: " + read.fillCache() + read.verifyChecksums() + read.tailing() + read.readTier() + " "
          + write.sync() + write.disableWAL() + " " + flush.waitForFlush());
      write.setSync(true).setDisableWAL(false);
      read.setFillCache(false).setReadaheadSize(4096);
      System.out.println("calls set: " + read.fillCache() + read.readaheadSize() + write.sync());
    }
  }

  static void plain(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
        WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions()) {
      db.put(b("a"), b("1"));
      db.put(write, b("b"), b("2"));
      db.put(b("xkeyx"), 1, 3, b("xvaluex"), 1, 5);
      say("get", () -> s(db.get(b("a"))) + s(db.get(read, b("b"))) + s(db.get(b("key"))) + s(db.get(b("none"))));
      byte[] into = new byte[3];
      say("get into", () -> db.get(b("key"), into) + s(into) + db.get(b("none"), into));
      say("key may exist", () -> db.keyMayExist(b("a"), null) + " " + db.keyMayExist(b("zz"), null));
      Holder<byte[]> holder = new Holder<>();
      say("key may exist with value", () -> db.keyMayExist(b("a"), holder) + s(holder.getValue()));
      db.delete(b("a"));
      say("deleted", () -> s(db.get(b("a"))));
      db.singleDelete(b("b"));
      say("deleted once", () -> s(db.get(b("b"))));
      for (int i = 0; i < 10; i++) {
        db.put(b("r" + i), b("v" + i));
      }
      db.deleteRange(b("r3"), b("r7"));
      say("range", () -> s(db.get(b("r2"))) + s(db.get(b("r3"))) + s(db.get(b("r6"))) + s(db.get(b("r7"))));
      List<byte[]> keys = Arrays.asList(b("r1"), b("r4"), b("r8"));
      List<String> many = new ArrayList<>();
      db.multiGetAsList(keys).forEach(value -> many.add(s(value)));
      say("many", () -> many);
      ByteBuffer key = ByteBuffer.allocateDirect(16);
      ByteBuffer value = ByteBuffer.allocateDirect(16);
      key.put(b("direct")).flip();
      value.put(b("buffer")).flip();
      db.put(write, key, value);
      key.clear();
      key.put(b("direct")).flip();
      ByteBuffer found = ByteBuffer.allocateDirect(4);
      say("direct", () -> db.get(read, key, found) + " " + found.remaining() + " " + (char) found.get(0));
      Snapshot snapshot = db.getSnapshot();
      db.put(b("r1"), b("new"));
      read.setSnapshot(snapshot);
      say("snapshot", () -> s(db.get(read, b("r1"))) + " " + s(db.get(b("r1"))));
      read.setSnapshot(null);
      db.releaseSnapshot(snapshot);
      say("sequence", () -> db.getLatestSequenceNumber() > 0);
      say("name", () -> db.getName().endsWith("plain"));
      byte[] large = new byte[100_000];
      Arrays.fill(large, (byte) 'x');
      db.put(b("large"), large);
      say("large", () -> Arrays.equals(large, db.get(b("large"))));
      db.put(b(""), b(""));
      say("empty", () -> db.get(b("")).length);
    }
    try (Options options = new Options(); RocksDB db = RocksDB.openReadOnly(options, path)) {
      say("read only", () -> s(db.get(b("r1"))));
      say("read only put", () -> {
        db.put(b("x"), b("y"));
        return "done";
      });
    }
    try (Options options = new Options()) {
      RocksDB.destroyDB(path, options);
      say("destroyed", () -> RocksDB.open(options, path));
    }
  }

  static void families(String path) throws Exception {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    List<ColumnFamilyDescriptor> named = Arrays.asList(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY),
        new ColumnFamilyDescriptor(b("one"), new ColumnFamilyOptions().setMergeOperator(new StringAppendOperator())));
    try (DBOptions options = new DBOptions().setCreateIfMissing(true).setCreateMissingColumnFamilies(true);
        RocksDB db = RocksDB.open(options, path, named, handles)) {
      ColumnFamilyHandle one = handles.get(1);
      say("family", () -> s(one.getName()) + one.getID() + handles.size());
      db.put(one, b("k"), b("v"));
      say("of family", () -> s(db.get(one, b("k"))) + s(db.get(b("k"))));
      db.merge(one, b("m"), b("x"));
      db.merge(one, b("m"), b("y"));
      say("merged", () -> s(db.get(one, b("m"))));
      ColumnFamilyHandle two = db.createColumnFamily(new ColumnFamilyDescriptor(b("two")));
      db.put(two, b("k"), b("2"));
      say("many families", () -> {
        List<String> many = new ArrayList<>();
        db.multiGetAsList(Arrays.asList(handles.get(0), one, two), Arrays.asList(b("k"), b("k"), b("k")))
            .forEach(value -> many.add(s(value)));
        return many;
      });
      say("default", () -> s(db.getDefaultColumnFamily().getName()));
      say("descriptor", () -> s(two.getDescriptor().getName()));
      db.dropColumnFamily(two);
      say("dropped", () -> {
        db.put(two, b("a"), b("b"));
        return "done";
      });
      two.close();
      handles.forEach(ColumnFamilyHandle::close);
    }
    try (Options options = new Options()) {
      List<String> names = new ArrayList<>();
      RocksDB.listColumnFamilies(options, path).forEach(name -> names.add(s(name)));
      System.out.println("listed: " + names);
      say("left out", () -> RocksDB.open(options, path));
      say("none", () -> RocksDB.listColumnFamilies(options, path + "-none").size());
    }
  }

  static class Shown extends WriteBatch.Handler {
    final StringBuilder text = new StringBuilder();

    private void add(String what, byte[]... parts) {
      text.append(what);
      for (byte[] part : parts) {
        text.append(' ').append(s(part));
      }
      text.append("; ");
    }

    @Override public void put(int family, byte[] key, byte[] value) { add("put" + family, key, value); }
    @Override public void put(byte[] key, byte[] value) { add("put", key, value); }
    @Override public void merge(int family, byte[] key, byte[] value) { add("merge" + family, key, value); }
    @Override public void merge(byte[] key, byte[] value) { add("merge", key, value); }
    @Override public void delete(int family, byte[] key) { add("delete" + family, key); }
    @Override public void delete(byte[] key) { add("delete", key); }
    @Override public void singleDelete(int family, byte[] key) { add("single" + family, key); }
    @Override public void singleDelete(byte[] key) { add("single", key); }
    @Override public void deleteRange(int family, byte[] from, byte[] to) { add("range" + family, from, to); }
    @Override public void deleteRange(byte[] from, byte[] to) { add("range", from, to); }
    @Override public void logData(byte[] blob) { add("log", blob); }
    @Override public void putBlobIndex(int family, byte[] key, byte[] value) { add("blob", key, value); }
    @Override public void markBeginPrepare() { add("begin"); }
    @Override public void markEndPrepare(byte[] xid) { add("end", xid); }
    @Override public void markNoop(boolean empty) { add("noop"); }
    @Override public void markRollback(byte[] xid) { add("rollback", xid); }
    @Override public void markCommit(byte[] xid) { add("commit", xid); }
    @Override public void markCommitWithTimestamp(byte[] xid, byte[] ts) { add("commit", xid, ts); }
  }

  static void batches(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true).setMergeOperatorName("stringappend");
        RocksDB db = RocksDB.open(options, path); WriteOptions write = new WriteOptions(); WriteBatch batch = new WriteBatch()) {
      batch.put(b("a"), b("1"));
      batch.merge(b("a"), b("2"));
      batch.put(b("b"), b("3"));
      batch.delete(b("b"));
      batch.singleDelete(b("c"));
      batch.deleteRange(b("d"), b("e"));
      batch.putLogData(b("blob"));
      System.out.println("batch: " + batch.count() + " " + batch.getDataSize() + " " + batch.hasPut() + batch.hasMerge()
          + batch.hasDelete() + batch.hasDeleteRange() + batch.hasSingleDelete() + batch.hasCommit());
      try (Shown shown = new Shown()) {
        batch.iterate(shown);
        System.out.println("shown: " + shown.text);
      }
      batch.setSavePoint();
      batch.put(b("z"), b("z"));
      batch.rollbackToSavePoint();
      System.out.println("rolled back: " + batch.count());
      say("no savepoint", () -> {
        batch.rollbackToSavePoint();
        return "done";
      });
      db.write(write, batch);
      say("written", () -> s(db.get(b("a"))) + s(db.get(b("b"))));
      try (WriteBatch copy = new WriteBatch(batch.data())) {
        System.out.println("copy: " + copy.count());
      }
      batch.clear();
      System.out.println("cleared: " + batch.count());
      batch.setMaxBytes(20);
      say("too large", () -> {
        batch.put(b("key"), b("a value of many bytes"));
        return "done";
      });
    }
  }

  static String all(RocksIterator iterator) throws Exception {
    StringBuilder text = new StringBuilder();
    for (; iterator.isValid(); iterator.next()) {
      text.append(s(iterator.key())).append('=').append(s(iterator.value())).append(' ');
    }
    iterator.status();
    return text.toString();
  }

  static void iterators(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path)) {
      for (int i = 0; i < 6; i++) {
        db.put(b("k" + i), b("v" + i));
      }
      try (RocksIterator iterator = db.newIterator()) {
        iterator.seekToFirst();
        say("forward", () -> all(iterator));
        iterator.seekToLast();
        say("last", () -> s(iterator.key()));
        iterator.prev();
        say("before", () -> s(iterator.key()));
        iterator.seek(b("k3"));
        say("seek", () -> s(iterator.key()));
        iterator.seekForPrev(b("k2x"));
        say("seek for prev", () -> s(iterator.key()));
        iterator.seek(b("z"));
        say("off", () -> iterator.isValid());
        db.put(b("k9"), b("v9"));
        iterator.refresh();
        iterator.seekToLast();
        say("refreshed", () -> s(iterator.key()));
      }
      try (ReadOptions read = new ReadOptions(); Slice lower = new Slice("k1"); Slice upper = new Slice("k4")) {
        read.setIterateLowerBound(lower).setIterateUpperBound(upper);
        try (RocksIterator iterator = db.newIterator(read)) {
          iterator.seekToFirst();
          say("bounds", () -> all(iterator));
        }
      }
      ByteBuffer target = ByteBuffer.allocateDirect(8);
      target.put(b("k2")).flip();
      ByteBuffer key = ByteBuffer.allocateDirect(8);
      ByteBuffer value = ByteBuffer.allocateDirect(8);
      try (RocksIterator iterator = db.newIterator()) {
        iterator.seek(target);
        say("direct", () -> iterator.key(key) + " " + iterator.value(value) + (char) key.get(1) + (char) value.get(1));
      }
    }
  }

  static void upkeep(String path, String copy) throws Exception {
    try (LRUCache cache = new LRUCache(8 << 20); BloomFilter filter = new BloomFilter(10); Statistics statistics = new Statistics();
        RateLimiter limiter = new RateLimiter(100 << 20); SstFileManager manager = new SstFileManager(Env.getDefault());
        Options options = new Options().setCreateIfMissing(true).setStatistics(statistics).setRateLimiter(limiter)
            .setSstFileManager(manager).setEnv(Env.getDefault())
            .setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(cache).setFilterPolicy(filter).setBlockSize(8192));
        RocksDB db = RocksDB.open(options, path)) {
      for (int i = 0; i < 1000; i++) {
        db.put(b(String.format("key%04d", i)), b("value" + i));
      }
      db.flush(new FlushOptions());
      say("level 0", () -> db.getProperty("rocksdb.num-files-at-level0"));
      db.compactRange();
      say("after compaction", () -> db.getProperty("rocksdb.num-files-at-level0"));
      say("keys", () -> db.getLongProperty("rocksdb.estimate-num-keys"));
      say("aggregated", () -> db.getAggregatedLongProperty("rocksdb.estimate-num-keys"));
      say("no property", () -> db.getProperty("rocksdb.nothing"));
      say("found", () -> s(db.get(b("key0500"))) + s(db.get(b("key05"))));
      say("tickers", () -> statistics.getTickerCount(TickerType.NUMBER_KEYS_WRITTEN) + " "
          + statistics.getAndResetTickerCount(TickerType.NUMBER_KEYS_WRITTEN) + " "
          + statistics.getTickerCount(TickerType.NUMBER_KEYS_WRITTEN));
      say("histogram", () -> statistics.getHistogramData(HistogramType.DB_WRITE).getMax() > 0);
      say("levels of statistics", () -> {
        StringBuilder levels = new StringBuilder(statistics.statsLevel().name());
        for (StatsLevel level : StatsLevel.values()) {
          statistics.setStatsLevel(level);
          db.put(b("key0150"), b("value150"));
          levels.append(" ").append(statistics.statsLevel()).append(statistics.getTickerCount(TickerType.NUMBER_KEYS_WRITTEN));
        }
        return levels;
      });
      say("table format", () -> options.tableFactoryName() + " " + options.memTableFactoryName());
      say("a table format that no jar knows", () -> {
        BlockBasedTableConfig table = new BlockBasedTableConfig().setFormatVersion(100);
        try (Options unknown = new Options().setCreateIfMissing(true).setTableFormatConfig(table)) {
          RocksDB.open(unknown, path + "-unknown").close();
          return "opens";
        } catch (RocksDBException e) {
          return "refused";
        }
      });
      db.compactRange(b("key0100"), b("key0200"));
      say("files", () -> db.getLiveFilesMetaData().size());
      say("metadata", () -> {
        ColumnFamilyMetaData metadata = db.getColumnFamilyMetaData();
        return s(metadata.name()) + " " + metadata.fileCount() + " " + metadata.levels().size();
      });
      say("set options", () -> {
        db.setOptions(MutableColumnFamilyOptions.builder().setWriteBufferSize(1 << 20).build());
        return "done";
      });
      say("sizes", () -> db.getApproximateSizes(Arrays.asList(new Range(new Slice("a"), new Slice("z"))),
          SizeApproximationFlag.INCLUDE_FILES)[0] > 0);
      db.flushWal(true);
      db.syncWal();
      db.disableFileDeletions();
      say("live files", () -> db.getLiveFiles().files.size() > 2);
      say("wal files", () -> db.getSortedWalFiles().size() > 0);
      db.pauseBackgroundWork();
      db.continueBackgroundWork();
      try (Checkpoint checkpoint = Checkpoint.create(db)) {
        checkpoint.createCheckpoint(copy);
      }
      db.verifyChecksum();
      db.cancelAllBackgroundWork(true);
    }
    try (Options options = new Options(); RocksDB db = RocksDB.open(options, copy)) {
      say("copy", () -> s(db.get(b("key0999"))));
      db.put(b("later"), b("x"));
      try (TransactionLogIterator updates = db.getUpdatesSince(db.getLatestSequenceNumber())) {
        say("updates", () -> updates.isValid() + " " + updates.getBatch().writeBatch().count());
        updates.next();
        say("no more", () -> updates.isValid());
      }
    }
  }

  static void backups(String path, String directory, String restored) throws Exception {
    Files.createDirectories(Path.of(directory));
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
        BackupEngineOptions backup = new BackupEngineOptions(directory); BackupEngine engine = BackupEngine.open(Env.getDefault(), backup)) {
      db.put(b("a"), b("1"));
      engine.createNewBackup(db, true);
      db.put(b("a"), b("2"));
      engine.createNewBackupWithMetadata(db, "second", true);
      say("backups", () -> engine.getBackupInfo().size() + engine.getBackupInfo().get(1).appMetadata());
      try (RestoreOptions restore = new RestoreOptions(false)) {
        engine.restoreDbFromBackup(1, restored, restored, restore);
      }
      say("damaged", () -> engine.getCorruptedBackups().length);
      engine.purgeOldBackups(1);
      say("purged", () -> engine.getBackupInfo().get(0).backupId());
      say("no backup", () -> {
        engine.deleteBackup(7);
        return "done";
      });
    }
    try (Options options = new Options(); RocksDB db = RocksDB.open(options, restored)) {
      say("restored", () -> s(db.get(b("a"))));
    }
  }

  static void operators(String path) throws Exception {
    try (UInt64AddOperator add = new UInt64AddOperator(); Options options = new Options().setCreateIfMissing(true).setMergeOperator(add);
        RocksDB db = RocksDB.open(options, path)) {
      byte[] one = {1, 0, 0, 0, 0, 0, 0, 0};
      db.merge(b("n"), one);
      db.merge(b("n"), one);
      say("sum", () -> db.get(b("n"))[0]);
    }
  }

  static void transactions(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions database = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, database, path); WriteOptions write = new WriteOptions();
        ReadOptions read = new ReadOptions(); TransactionOptions quick = new TransactionOptions().setLockTimeout(10)) {
      try (Transaction first = db.beginTransaction(write, quick)) {
        first.put(b("a"), b("1"));
        say("own", () -> s(first.get(read, b("a"))) + s(db.get(b("a"))));
        try (Transaction second = db.beginTransaction(write, quick)) {
          say("locked", () -> {
            second.put(b("a"), b("2"));
            return "done";
          });
        }
        first.setSavePoint();
        first.delete(b("a"));
        first.rollbackToSavePoint();
        say("counts", () -> first.getNumPuts() + " " + first.getNumKeys() + " " + first.getState());
        first.commit();
      }
      say("committed", () -> s(db.get(b("a"))));
      try (Transaction third = db.beginTransaction(write)) {
        say("for update", () -> s(third.getForUpdate(read, b("a"), true)));
        third.put(b("b"), b("x"));
        try (RocksIterator iterator = third.getIterator(read)) {
          iterator.seekToFirst();
          say("over", () -> all(iterator));
        }
        third.rollback();
      }
      say("rolled back", () -> s(db.get(b("b"))));
      db.put(b("plain"), b("p"));
      say("plain", () -> s(db.get(b("plain"))));
    }
  }

  static void optimistic(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); OptimisticTransactionDB db = OptimisticTransactionDB.open(options, path);
        WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions()) {
      db.put(b("a"), b("0"));
      try (Transaction first = db.beginTransaction(write); Transaction second = db.beginTransaction(write)) {
        first.getForUpdate(read, b("a"), true);
        first.put(b("a"), b("1"));
        second.put(b("a"), b("2"));
        second.commit();
        say("conflict", () -> {
          first.commit();
          return "done";
        });
      }
      say("winner", () -> s(db.get(b("a"))));
    }
  }

  /** Keys by their length, then by their bytes. */
  static class ByLength extends AbstractComparator {
    ByLength(ComparatorOptions options) {
      super(options);
    }

    @Override public String name() {
      return "walk.ByLength";
    }

    @Override public int compare(ByteBuffer a, ByteBuffer b) {
      return a.remaining() != b.remaining() ? Integer.compare(a.remaining(), b.remaining()) : a.compareTo(b);
    }
  }

  static void comparators(String path) throws Exception {
    for (boolean direct : new boolean[] {true, false}) {
      String own = path + direct;
      try (ComparatorOptions how = new ComparatorOptions().setUseDirectBuffer(direct); ByLength order = new ByLength(how);
          Options options = new Options().setCreateIfMissing(true).setComparator(order); RocksDB db = RocksDB.open(options, own)) {
        for (String key : new String[] {"ccc", "a", "bb", "aaa", "z"}) {
          db.put(b(key), b(key));
        }
        db.flush(new FlushOptions());
        db.put(b("dddd"), b("dddd"));
        db.compactRange();
        try (RocksIterator iterator = db.newIterator()) {
          iterator.seekToFirst();
          say("order", () -> all(iterator));
        }
      }
    }
    try (Options options = new Options().setCreateIfMissing(true).setComparator(BuiltinComparator.REVERSE_BYTEWISE_COMPARATOR);
        RocksDB db = RocksDB.open(options, path)) {
      db.put(b("a"), b("1"));
      db.put(b("b"), b("2"));
      try (RocksIterator iterator = db.newIterator()) {
        iterator.seekToFirst();
        say("reverse", () -> all(iterator));
      }
    }
  }

  static void filters(String path) throws Exception {
    try (RemoveEmptyValueCompactionFilter filter = new RemoveEmptyValueCompactionFilter();
        Options options = new Options().setCreateIfMissing(true).setCompactionFilter(filter); RocksDB db = RocksDB.open(options, path)) {
      db.put(b("a"), b(""));
      db.put(b("b"), b("v"));
      db.flush(new FlushOptions());
      db.compactRange();
      say("filtered", () -> s(db.get(b("a"))) + s(db.get(b("b"))));
    }
  }

  static void errors(String path) throws Exception {
    say("missing", () -> RocksDB.open(new Options(), path));
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path)) {
      say("locked", () -> RocksDB.open(options, path));
      say("merge without operator", () -> {
        db.merge(b("a"), b("b"));
        return s(db.get(b("a")));
      });
    }
    say("exists", () -> RocksDB.open(new Options().setCreateIfMissing(true).setErrorIfExists(true), path));
  }
}
