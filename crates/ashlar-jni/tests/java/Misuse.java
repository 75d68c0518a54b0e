import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.rocksdb.*;

/**
 * Objects used wrongly: after their close, closed twice, of the wrong state, from several threads. Each case must end with an
 * answer or an exception. RocksDB's native half ends the process in many of them.
 */
public class Misuse {
  interface Case {
    Object run() throws Exception;
  }

  static int cases = 0;

  static void check(String what, Case body) {
    cases++;
    try {
      System.out.println(what + ": answers " + body.run());
    } catch (Throwable thrown) {
      System.out.println(what + ": throws " + thrown.getClass().getSimpleName());
    }
  }

  static byte[] b(String text) {
    return text.getBytes();
  }

  static Path root;
  static int count = 0;

  static RocksDB open() throws Exception {
    return RocksDB.open(new Options().setCreateIfMissing(true), root.resolve("db" + count++).toString());
  }

  public static void main(String[] args) throws Exception {
    RocksDB.loadLibrary();
    root = Path.of(args[0]);
    closed();
    lent();
    wrong();
    thrown();
    threads();
    System.out.println("cases " + cases);
    System.out.println("end");
  }

  static void closed() throws Exception {
    RocksDB db = open();
    db.put(b("a"), b("1"));
    db.close();
    db.close();
    check("get after close", () -> db.get(b("a")));
    check("put after close", () -> { db.put(b("a"), b("b")); return "done"; });
    check("delete after close", () -> { db.delete(b("a")); return "done"; });
    check("merge after close", () -> { db.merge(b("a"), b("b")); return "done"; });
    check("iterator after close", () -> db.newIterator());
    check("snapshot after close", () -> db.getSnapshot());
    check("property after close", () -> db.getProperty("rocksdb.stats"));
    check("flush after close", () -> { db.flush(new FlushOptions()); return "done"; });
    check("compact after close", () -> { db.compactRange(); return "done"; });
    check("family after close", () -> db.createColumnFamily(new ColumnFamilyDescriptor(b("x"))));
    check("many after close", () -> db.multiGetAsList(List.of(b("a"))));
    check("sequence after close", () -> db.getLatestSequenceNumber());
    check("files after close", () -> db.getLiveFilesMetaData());
    check("checkpoint after close", () -> Checkpoint.create(db));
    Options options = new Options();
    options.close();
    check("options after close", () -> options.setCreateIfMissing(true));
    check("open with closed options", () -> RocksDB.open(options, root.resolve("never").toString()));
    WriteBatch batch = new WriteBatch();
    batch.close();
    check("batch after close", () -> { batch.put(b("a"), b("b")); return "done"; });
    check("count after close", () -> batch.count());
    ReadOptions read = new ReadOptions();
    read.close();
    Statistics statistics = new Statistics();
    statistics.close();
    check("statistics after close", () -> statistics.getTickerCount(TickerType.BYTES_READ));
    Slice slice = new Slice("abc");
    slice.close();
    check("slice after close", () -> slice.data());
    LRUCache cache = new LRUCache(1 << 20);
    cache.close();
    check("cache after close", () -> cache.getUsage());
    try (RocksDB other = open()) {
      check("write closed batch", () -> { other.write(new WriteOptions(), batch); return "done"; });
      check("read with closed options", () -> other.get(read, b("a")));
      check("table with closed cache", () -> {
        Options own = new Options().setCreateIfMissing(true);
        own.setTableFormatConfig(new BlockBasedTableConfig().setBlockCache(cache));
        return "done";
      });
    }
  }

  static void lent() throws Exception {
    RocksDB db = open();
    for (int i = 0; i < 100; i++) {
      db.put(b("k" + i), b("v" + i));
    }
    RocksIterator iterator = db.newIterator();
    iterator.seekToFirst();
    Snapshot snapshot = db.getSnapshot();
    ColumnFamilyHandle family = db.createColumnFamily(new ColumnFamilyDescriptor(b("f")));
    ReadOptions read = new ReadOptions().setSnapshot(snapshot);
    db.close();
    check("key of an iterator of a closed database", () -> iterator.key().length > 0);
    check("next of an iterator of a closed database", () -> { iterator.next(); return iterator.isValid(); });
    check("seek of an iterator of a closed database", () -> { iterator.seek(b("k5")); iterator.status(); return iterator.isValid(); });
    check("close of an iterator of a closed database", () -> { iterator.close(); iterator.close(); return "done"; });
    check("key of a closed iterator", () -> iterator.key());
    check("name of a family of a closed database", () -> new String(family.getName()));
    check("number of a snapshot of a closed database", () -> snapshot.getSequenceNumber() > 0);
    check("close of a family of a closed database", () -> { family.close(); family.close(); return "done"; });
    check("number of a closed family", () -> family.getID());
    try (RocksDB other = open()) {
      check("family of another database", () -> { other.put(family, b("a"), b("b")); return "done"; });
      check("snapshot of another database", () -> other.get(read, b("k1")) == null);
      check("snapshot released twice", () -> {
        Snapshot own = other.getSnapshot();
        other.releaseSnapshot(own);
        other.releaseSnapshot(own);
        return "done";
      });
      check("iterator off its entries", () -> { RocksIterator own = other.newIterator(); own.seekToFirst(); return own.key(); });
    }
  }

  static void wrong() throws Exception {
    try (RocksDB db = open(); WriteOptions write = new WriteOptions(); ReadOptions read = new ReadOptions()) {
      check("null key", () -> { db.put(null, b("a")); return "done"; });
      check("null value", () -> { db.put(b("a"), (byte[]) null); return "done"; });
      check("a heap buffer as a direct one", () -> { db.put(write, ByteBuffer.wrap(b("a")), ByteBuffer.wrap(b("b"))); return "done"; });
      check("a length beyond the array", () -> { db.put(b("abc"), 1, 9, b("x"), 0, 1); return "done"; });
      check("no room for a value", () -> { db.put(b("k"), b("value")); return db.get(b("k"), new byte[0]); });
      check("a null in a list of keys", () -> { List<byte[]> keys = new ArrayList<>(); keys.add(null); return db.multiGetAsList(keys); });
      check("no path", () -> RocksDB.open(new Options(), (String) null));
      check("a directory below a file", () -> {
        Path file = root.resolve("file");
        Files.writeString(file, "x");
        return RocksDB.open(new Options().setCreateIfMissing(true), file.resolve("db").toString());
      });
      check("an unknown property", () -> db.getLongProperty("nothing"));
      check("an unknown option", () -> { db.setOptions(MutableColumnFamilyOptions.parse("write_buffer_size=-5").build()); return "done"; });
      check("a batch of nonsense", () -> new WriteBatch(new byte[] {1, 2, 3}));
      check("a rollback without a savepoint", () -> { new WriteBatch().rollbackToSavePoint(); return "done"; });
      check("an ingestion of nothing", () -> { db.ingestExternalFile(List.of("/no/such/file"), new IngestExternalFileOptions()); return "done"; });
      check("a drop of the family default", () -> { db.dropColumnFamily(db.getDefaultColumnFamily()); return "done"; });
      check("a second open", () -> RocksDB.open(new Options(), db.getName()));
      check("a negative length of a prefix", () -> new Options().useFixedLengthPrefixExtractor(-1));
    }
  }

  /** A comparator that throws once it is asked to. */
  static class Throwing extends AbstractComparator {
    volatile boolean now = false;

    Throwing() {
      super(new ComparatorOptions());
    }

    @Override public String name() {
      return "misuse.Throwing";
    }

    @Override public int compare(ByteBuffer a, ByteBuffer b) {
      if (now) {
        throw new IllegalArgumentException("on purpose");
      }
      return a.compareTo(b);
    }
  }

  static void thrown() throws Exception {
    Throwing order = new Throwing();
    try (RocksDB db = RocksDB.open(new Options().setCreateIfMissing(true).setComparator(order), root.resolve("throwing").toString())) {
      db.put(b("a"), b("1"));
      db.put(b("b"), b("2"));
      order.now = true;
      check("a comparator throws in a get", () -> db.get(b("a")));
      check("a comparator throws in a seek", () -> {
        RocksIterator iterator = db.newIterator();
        iterator.seek(b("a"));
        iterator.status();
        return iterator.isValid();
      });
      order.now = false;
      check("it throws no longer", () -> new String(db.get(b("a"))));
    }
    Logger logger = new Logger(new Options().setInfoLogLevel(InfoLogLevel.DEBUG_LEVEL)) {
      @Override protected void log(InfoLogLevel level, String line) {
        throw new IllegalStateException("on purpose");
      }
    };
    check("a logger throws", () -> {
      try (RocksDB db = RocksDB.open(new Options().setCreateIfMissing(true).setLogger(logger), root.resolve("logger").toString())) {
        db.put(b("a"), b("1"));
        db.flush(new FlushOptions());
        return new String(db.get(b("a")));
      }
    });
    check("a listener throws", () -> {
      AbstractEventListener listener = new AbstractEventListener() {
        @Override public void onFlushCompleted(RocksDB db, FlushJobInfo info) {
          throw new IllegalStateException("on purpose");
        }
      };
      try (RocksDB db = RocksDB.open(new Options().setCreateIfMissing(true).setListeners(List.of(listener)), root.resolve("listener").toString())) {
        db.put(b("a"), b("1"));
        db.flush(new FlushOptions());
        return new String(db.get(b("a")));
      }
    });
  }

  static void threads() throws Exception {
    for (int round = 0; round < 5; round++) {
      RocksDB db = open();
      for (int i = 0; i < 1000; i++) {
        db.put(b("k" + i), b("v" + i));
      }
      RocksIterator iterator = db.newIterator();
      iterator.seekToFirst();
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        int own = i;
        Thread thread = new Thread(() -> {
          for (int n = 0; n < 2000; n++) {
            try {
              db.put(b("t" + own + n), b("x"));
              db.get(b("k" + n));
              iterator.next();
              iterator.isValid();
            } catch (Exception e) {
              // The database is being closed.
            }
          }
        });
        threads.add(thread);
        thread.start();
      }
      Thread.sleep(20);
      db.close();
      iterator.close();
      for (Thread thread : threads) {
        thread.join();
      }
    }
    check("a close while four threads write, read and move one iterator", () -> "done");
    check("a child process", () -> new ProcessBuilder("true").start().waitFor());
  }
}
