import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.rocksdb.*;

/** SST files outside a database, filters of tables, memory and threads. Prints what each call answers. */
public final class Tables extends Answers {
  public static void main(String[] args) throws Exception {
    String path = args[0];
    try (StringAppendOperator append = new StringAppendOperator(); Options options = new Options().setCreateIfMissing(true)
        .setMergeOperator(append).setDisableAutoCompactions(true)) {
      versions(options, path);
      try (Stream<Path> files = Files.list(Path.of(path))) {
        Path file = files.filter(found -> found.toString().endsWith(".sst")).findFirst().orElseThrow();
        readers(options, file.toString());
      }
      written(options, path + "/own.sst");
      filters(options, path);
    }
    memory(path);
    threads();
    System.out.println("end");
  }

  /** Makes a table with several versions of keys. */
  static void versions(Options options, String path) throws Exception {
    try (RocksDB db = RocksDB.open(options, path); FlushOptions flush = new FlushOptions()) {
      db.put(b("a"), b("1"));
      Snapshot old = db.getSnapshot();
      db.put(b("a"), b("2"));
      db.put(b("b"), b("3"));
      db.put(b("e"), b("9"));
      Snapshot older = db.getSnapshot();
      db.delete(b("b"));
      db.merge(b("a"), b("4"));
      db.merge(b("c"), b("5"));
      db.merge(b("c"), b("6"));
      Snapshot newer = db.getSnapshot();
      db.put(b("d"), b("7"));
      db.deleteRange(b("e"), b("f"));
      db.flush(flush);
      for (Snapshot snapshot : Arrays.asList(old, older, newer)) {
        db.releaseSnapshot(snapshot);
      }
    }
  }

  static void say(String what, SstFileReaderIterator iterator) throws Exception {
    iterator.status();
    String entry = iterator.isValid() ? s(iterator.key()) + "=" + s(iterator.value()) : "none";
    System.out.println(what + ": " + entry);
  }

  static void readers(Options options, String file) throws Exception {
    try (SstFileReader reader = new SstFileReader(options); ReadOptions read = new ReadOptions()) {
      try {
        reader.open(file + ".none");
      } catch (RocksDBException e) {
        System.out.println("no file: " + e.getStatus().getCode());
      }
      reader.open(file);
      reader.verifyChecksum();
      TableProperties properties = reader.getTableProperties();
      System.out.println("properties: " + properties.getNumEntries() + " " + properties.getNumDeletions() + " "
          + properties.getNumRangeDeletions() + " " + s(properties.getColumnFamilyName()));
      try (SstFileReaderIterator iterator = reader.newIterator(read)) {
        say("new", iterator);
        for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
          say("forward", iterator);
        }
        for (iterator.seekToLast(); iterator.isValid(); iterator.prev()) {
          say("backward", iterator);
        }
        iterator.seek(b("b"));
        say("seek", iterator);
        iterator.seekForPrev(b("b"));
        say("seek for prev", iterator);
        ByteBuffer key = ByteBuffer.allocateDirect(8);
        key.put(b("cc")).flip();
        iterator.seek(key);
        say("seek direct", iterator);
        key.clear();
        System.out.println("into: " + iterator.key(key) + " " + key.remaining());
      }
      try (Slice lower = new Slice("b"); Slice upper = new Slice("d"); ReadOptions within = new ReadOptions()) {
        within.setIterateLowerBound(lower).setIterateUpperBound(upper);
        try (SstFileReaderIterator iterator = reader.newIterator(within)) {
          for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
            say("within", iterator);
          }
        }
      }
    }
  }

  /** A file of the program's own, and readers that stay open while their file is replaced. */
  static void written(Options options, String file) throws Exception {
    try (EnvOptions env = new EnvOptions(); SstFileWriter writer = new SstFileWriter(env, options)) {
      writer.open(file);
      for (int i = 100; i < 400; i++) {
        writer.put(b("key" + i), b("value" + i));
      }
      writer.finish();
    }
    try (SstFileReader reader = new SstFileReader(options); ReadOptions read = new ReadOptions()) {
      reader.open(file);
      SstFileReaderIterator iterator = reader.newIterator(read);
      int entries = 0;
      for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
        entries++;
      }
      System.out.println("written: " + entries);
      iterator.close();
    }
  }

  static void filters(Options options, String path) throws Exception {
    List<String> asked = new ArrayList<>();
    try (RocksDB db = RocksDB.open(options, path); FlushOptions flush = new FlushOptions();
        AbstractTableFilter filter = new AbstractTableFilter() {
          @Override
          public boolean filter(TableProperties properties) {
            asked.add(s(properties.getColumnFamilyName()) + properties.getNumEntries());
            return properties.getNumEntries() > 1;
          }
        };
        ReadOptions read = new ReadOptions().setTableFilter(filter); ReadOptions copy = new ReadOptions(read)) {
      db.put(b("x"), b("10"));
      db.flush(flush);
      for (ReadOptions options_of : Arrays.asList(read, copy)) {
        List<String> keys = new ArrayList<>();
        try (RocksIterator iterator = db.newIterator(options_of)) {
          for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
            keys.add(s(iterator.key()));
          }
        }
        asked.sort(null);
        System.out.println("filtered: " + keys + " of " + asked);
        asked.clear();
      }
      System.out.println("get: " + s(db.get(read, b("x"))));
    }
  }

  static void memory(String path) throws Exception {
    try (Cache cache = new LRUCache(8 << 20); Options options = new Options().setCreateIfMissing(true)
        .setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(cache)); RocksDB db = RocksDB.open(options, path + "2");
        FlushOptions flush = new FlushOptions()) {
      db.put(b("a"), b("1"));
      db.flush(flush);
      db.get(b("a"));
      db.put(b("a"), b("1"));
      Map<MemoryUsageType, Long> all = new TreeMap<>(
          MemoryUtil.getApproximateMemoryUsageByType(List.of(db), new HashSet<>(List.of(cache))));
      all.forEach((kind, bytes) -> System.out.println("memory: " + kind + " " + (bytes > 0)));
      System.out.println("caches: " + MemoryUtil.getApproximateMemoryUsageByType(List.of(), new HashSet<>(List.of(cache))).keySet());
      System.out.println("nothing: " + MemoryUtil.getApproximateMemoryUsageByType(null, null));
      System.out.println("threads: " + (Env.getDefault().getThreadList().size() > 0));
    }
  }

  static void threads() throws Exception {
    for (ThreadType type : ThreadType.values()) {
      System.out.println(type + ": " + ThreadStatus.getThreadTypeName(type));
    }
    for (OperationType type : OperationType.values()) {
      System.out.println(type + ": " + ThreadStatus.getOperationName(type));
      for (int at = 0; at < 7; at++) {
        System.out.println(at + ": " + ThreadStatus.getOperationPropertyName(type, at));
      }
      long[] values = {1, 2L << 32 | 3, 6, 4, 5, 6};
      System.out.println(new TreeMap<>(ThreadStatus.interpretOperationProperties(type, values)));
    }
    for (OperationStage stage : OperationStage.values()) {
      System.out.println(stage + ": " + ThreadStatus.getOperationStageName(stage));
    }
    for (StateType state : StateType.values()) {
      System.out.println(state + ": " + ThreadStatus.getStateName(state));
    }
    for (long micros : new long[] {0, 5, 9999, 10000, 9999999, 10000000, 61000000, 3661123456L}) {
      System.out.println(micros + ": " + ThreadStatus.microsToString(micros));
    }
  }
}
