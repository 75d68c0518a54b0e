import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.rocksdb.*;
import org.rocksdb.FlinkCompactionFilter.Config;
import org.rocksdb.FlinkCompactionFilter.FlinkCompactionFilterFactory;

/** Flink's compaction filter. Prints the same over both native halves, but for what it does over ours alone. */
public final class Flink extends Answers {
  static final long TTL = 100;
  /** What the clock says, and how often it was asked. */
  static long now = 1000;
  static int asked;

  /** A value: bytes before the timestamp, the timestamp, a text. */
  static byte[] value(int before, long written, String text) {
    return ByteBuffer.allocate(before + 8 + text.length()).put(new byte[before]).putLong(written).put(b(text)).array();
  }

  static long clock() {
    asked++;
    return now;
  }

  interface Writes {
    void to(RocksDB db) throws RocksDBException;
  }

  /** Writes, compacts at 1000 and at 1200, and says what is there each time. */
  static void walk(String path, String name, FlinkCompactionFilterFactory factory, Writes writes) throws Exception {
    now = 1000;
    try (ColumnFamilyOptions options = with(factory); RocksDB db = open(path + "/" + name, options)) {
      writes.to(db);
      db.compactRange();
      System.out.println(name + " at 1000: " + listed(db));
      now = 1200;
      writes.to(db);
      db.compactRange();
      System.out.println(name + " at 1200: " + listed(db));
    } finally {
      factory.close();
    }
  }

  static ColumnFamilyOptions with(FlinkCompactionFilterFactory factory) {
    return new ColumnFamilyOptions().setCompactionFilterFactory(factory).setMergeOperatorName("stringappendtest");
  }

  /** As Flink opens: RocksDB's half of this jar ends the process if Options has the factory. */
  static RocksDB open(String path, ColumnFamilyOptions family) throws RocksDBException {
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    try (DBOptions options = new DBOptions().setCreateIfMissing(true)) {
      return RocksDB.open(options, path, List.of(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, family)), handles);
    }
  }

  static String listed(RocksDB db) throws RocksDBException {
    TreeMap<String, String> all = new TreeMap<>();
    try (RocksIterator iterator = db.newIterator()) {
      for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
        StringBuilder hex = new StringBuilder();
        for (byte one : iterator.value()) {
          hex.append(String.format("%02x", one));
        }
        all.put(new String(iterator.key(), StandardCharsets.US_ASCII), hex.toString());
      }
      iterator.status();
    }
    return all.toString();
  }

  static FlinkCompactionFilterFactory factory(Config config) {
    FlinkCompactionFilterFactory factory = new FlinkCompactionFilterFactory(Flink::clock);
    factory.configure(config);
    return factory;
  }

  /** Values of several ages; each call writes the same. */
  static Writes values(int before) {
    return db -> {
      for (long written : new long[] {Long.MIN_VALUE, -1, 0, 899, 900, 901, 1099, 1100, 1101, Long.MAX_VALUE}) {
        db.put(b("at" + written), value(before, written, "text"));
      }
      db.put(b("short"), new byte[before + 7]);
      db.put(b("empty"), new byte[0]);
      db.put(b("bare"), value(before, 5, ""));
    };
  }

  static byte[] list(String text, long... written) {
    ByteBuffer all = ByteBuffer.allocate(written.length * (8 + 4 + text.length() + 1) - 1);
    for (long one : written) {
      if (all.position() > 0) {
        all.put((byte) ',');
      }
      all.putLong(one).putInt(text.length()).put(b(text));
    }
    return all.array();
  }

  /** Lists by merging and by writing, with expired elements at the head, in the middle, everywhere. */
  static Writes lists(String text) {
    return db -> {
      db.put(b("all expired"), list(text, 10, 20, 30));
      db.put(b("none expired"), list(text, 2000, 2001));
      db.put(b("head expired"), list(text, 10, 20, 1150, 30, 1160));
      db.put(b("one"), list(text, 950));
      db.delete(b("merged"));
      db.merge(b("merged"), list(text, 1, 2));
      db.merge(b("merged"), list(text, 3, 2000));
      db.merge(b("merged"), list(text, 4, 2001));
      db.put(b("merged over a value"), list(text, 7));
      db.merge(b("merged over a value"), list(text, 8));
      db.merge(b("merged over a value"), list(text, 9, 3000));
      db.put(b("short"), new byte[7]);
    };
  }

  /** The offset of the first unexpired element of a list whose elements have a length before their text. */
  static int next(byte[] list, long ttl, long time) {
    int at = 0;
    while (at < list.length) {
      ByteBuffer element = ByteBuffer.wrap(list, at, list.length - at);
      if (element.getLong() + ttl > time) {
        break;
      }
      at += 8 + 4 + element.getInt() + 1;
    }
    return at;
  }

  public static void main(String[] args) throws Exception {
    String path = args[0];
    walk(path, "value", factory(Config.createForValue(TTL, 10)), values(0));
    walk(path, "map", factory(Config.createForMap(TTL, 10)), values(1));
    walk(path, "endless", factory(Config.createForValue(Long.MAX_VALUE, 10)), values(0));
    walk(path, "disabled", factory(Config.createNotList(FlinkCompactionFilter.StateType.Disabled, 0, TTL, 10)), values(0));
    walk(path, "no configuration", new FlinkCompactionFilterFactory(Flink::clock), db -> db.put(b("a"), value(0, 1, "old")));
    walk(path, "fixed list", factory(Config.createForFixedElementList(TTL, 10, 8 + 4 + 5 + 1)), lists("fixed"));
    walk(path, "list", factory(Config.createForList(TTL, 10, () -> Flink::next)), lists("some text"));
    walk(path, "whole list", factory(Config.createForList(TTL, 10, null)), lists("whole"));
    clocks(path);
    checkpoints(path);
    configurations(path);
    if (Boolean.getBoolean("ours")) {
      faults(path);
    }
    System.out.println("end");
  }

  /** One answer of the clock serves for so many entries. */
  static void clocks(String path) throws Exception {
    for (long every : new long[] {0, 1, 7, 100, Long.MAX_VALUE}) {
      FlinkCompactionFilterFactory factory = factory(Config.createForValue(TTL, every));
      asked = 0;
      try (ColumnFamilyOptions options = with(factory).setDisableAutoCompactions(true);
          RocksDB db = open(path + "/every" + every, options)) {
        for (int at = 0; at < 200; at++) {
          db.put(b("key" + at), value(0, 1, "text"));
        }
        db.flush(new FlushOptions());
        asked = 0;
        db.compactRange();
        System.out.println("every " + every + ": asked " + asked + ", left " + listed(db));
      }
      factory.close();
    }
  }

  /** Flink ships each file of a checkpoint, and fails at an empty one. */
  static void checkpoints(String path) throws Exception {
    try (ColumnFamilyOptions family = new ColumnFamilyOptions();
        RocksDB db = open(path + "/shipped", family);
        WriteOptions writes = new WriteOptions().setDisableWAL(true);
        Checkpoint checkpoint = Checkpoint.create(db)) {
      for (int count = 0; count < 3; count++) {
        File copy = new File(path, "copy" + count);
        checkpoint.createCheckpoint(copy.getPath());
        long empty = Arrays.stream(copy.listFiles()).filter(file -> file.length() == 0).count();
        try (RocksDB copied = open(copy.getPath(), family)) {
          System.out.println("checkpoint " + count + ": empty files " + empty + ", " + listed(copied));
        }
        db.put(writes, b("key" + count), b("value"));
      }
    }
  }

  /** A factory is configured once, also after its first compaction, and has a logger of Java. */
  static void configurations(String path) throws Exception {
    List<String> lines = new ArrayList<>();
    now = 5000;
    try (DBOptions options = new DBOptions().setInfoLogLevel(InfoLogLevel.DEBUG_LEVEL)) {
      Logger logger = new Logger(options) {
        @Override
        protected void log(InfoLogLevel level, String line) {
          lines.add(line);
        }
      };
      FlinkCompactionFilterFactory factory = new FlinkCompactionFilterFactory(Flink::clock, logger);
      walk(path, "logged before", factory(Config.createForValue(TTL, 1)), values(0));
      try (ColumnFamilyOptions with = with(factory); RocksDB db = open(path + "/late", with)) {
        db.put(b("a"), value(0, 1, "old"));
        db.compactRange();
        System.out.println("before the configuration: " + listed(db));
        factory.configure(Config.createForValue(TTL, 1));
        db.put(b("b"), value(0, 1, "old"));
        db.compactRange();
        System.out.println("behind it: " + listed(db) + ", lines " + !lines.isEmpty());
        try {
          factory.configure(Config.createForValue(TTL, 1));
        } catch (IllegalStateException e) {
          System.out.println("a second configuration: " + e.getMessage());
        }
      }
      factory.close();
    }
  }

  static <T> T thrown() {
    throw new IllegalStateException("on purpose");
  }

  /** Callbacks that throw or answer nonsense keep the entry. Over RocksDB's half they may end the process. */
  static void faults(String path) throws Exception {
    FlinkCompactionFilterFactory clock = new FlinkCompactionFilterFactory(Flink::<Long>thrown);
    clock.configure(Config.createForValue(TTL, 1));
    // A value that a compaction merges of operands is filtered at once, by RocksDB in a later compaction.
    walk(path, "value with merges", factory(Config.createForValue(TTL, 10)), db -> {
      db.put(b("a"), value(0, 1, "old"));
      db.merge(b("a"), value(0, 2, "operand"));
      db.merge(b("b"), value(0, 3, "operand"));
    });
    walk(path, "clock throws", clock, db -> db.put(b("a"), value(0, 1, "old")));
    List<Supplier<FlinkCompactionFilter.ListElementFilter>> filters = List.of(
        Flink::thrown, () -> null, () -> (list, ttl, time) -> Flink.<Integer>thrown(), () -> (list, ttl, time) -> -1,
        () -> (list, ttl, time) -> Integer.MIN_VALUE, () -> (list, ttl, time) -> 0);
    for (int at = 0; at < filters.size(); at++) {
      walk(path, "filter fault " + at, factory(Config.createForList(TTL, 1, filters.get(at)::get)), lists("text"));
    }
    walk(path, "far offset", factory(Config.createForList(TTL, 1, () -> (list, ttl, time) -> Integer.MAX_VALUE)), lists("text"));
    walk(path, "short element", factory(Config.createForFixedElementList(TTL, 1, 5)), lists("text"));
    for (Runnable wrong : List.<Runnable>of(
        () -> factory(Config.createNotList(FlinkCompactionFilter.StateType.Value, -1, TTL, 1)),
        () -> new FlinkCompactionFilterFactory(null).createCompactionFilter(null))) {
      try {
        wrong.run();
        System.out.println("no exception");
      } catch (IllegalArgumentException e) {
        System.out.println("refused: " + e.getMessage());
      }
    }
  }
}
