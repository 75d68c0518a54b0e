import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicInteger;
import org.rocksdb.*;

/**
 * Objects used wrongly: after their close, closed twice, of the wrong state, from several threads. Each case must end with an
 * answer or an exception. RocksDB's native half ends the process in many of them.
 */
public final class Misuse extends Answers {
  static int cases = 0;

  static void check(String what, Step body) {
    cases++;
    try {
      System.out.println(what + ": answers " + body.run());
    } catch (Throwable thrown) {
      System.out.println(what + ": throws " + thrown.getClass().getSimpleName());
    }
  }

  static Path root;
  static int count = 0;

  static RocksDB open() throws Exception {
    return RocksDB.open(new Options().setCreateIfMissing(true), root.resolve("db" + count++).toString());
  }

  public static void main(String[] args) throws Exception {
    root = Path.of(args[0]);
    closed();
    lent();
    wrong();
    thrown();
    undeclared();
    outside();
    nested();
    marks();
    leaks();
    searches();
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

  /** Methods that declare no RocksDBException throw none. */
  static void undeclared() throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions of = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, of, root.resolve("undeclared").toString()); WriteOptions write = new WriteOptions();
        Transaction transaction = db.beginTransaction(write); AbstractWalFilter filter = new AbstractWalFilter() {
          @Override public void columnFamilyLogNumberMap(java.util.Map<Integer, Long> numbers, java.util.Map<String, Integer> names) { }
          @Override public LogRecordFoundResult logRecordFound(long number, String file, WriteBatch batch, WriteBatch changed) { return null; }
          @Override public String name() { return "misuse.Filter"; }
        }) {
      transaction.put(b("a"), b("1"));
      check("undeclared lock timeout", () -> { transaction.setLockTimeout(5); return "done"; });
      check("undeclared WAL filter", () -> new Options().setWalFilter(filter));
      check("operations in the batch of the commit", () -> {
        transaction.getCommitTimeWriteBatch().put(b("b"), b("2"));
        transaction.commit();
        return "done";
      });
      check("undeclared clear of the batch of a transaction", () -> { transaction.getWriteBatch().clear(); return "done"; });
      check("undeclared empty delimiter", () -> new ConfigOptions().setDelimiter(""));
      transaction.close();
      check("undeclared number of a closed transaction", () -> transaction.getID());
    }
  }

  /** Files outside a database, and callbacks that throw. */
  static void outside() throws Exception {
    String file = root.resolve("outside.sst").toString();
    try (Options options = new Options().setCreateIfMissing(true); EnvOptions files = new EnvOptions(); ReadOptions read = new ReadOptions();
        SstFileWriter writer = new SstFileWriter(files, options)) {
      writer.open(file);
      writer.put(b("a"), b("1"));
      writer.finish();
      SstFileReader reader = new SstFileReader(options);
      check("an iterator of a reader without a file", () -> reader.newIterator(read));
      reader.open(file);
      SstFileReaderIterator iterator = reader.newIterator(read);
      reader.close();
      check("an iterator of a closed reader", () -> { iterator.seekToFirst(); return new String(iterator.key()); });
      check("a closed reader", () -> { reader.verifyChecksum(); return "done"; });
      iterator.close();
      RocksDB closed = open();
      closed.close();
      check("memory of a closed database", () -> MemoryUtil.getApproximateMemoryUsageByType(List.of(closed), null));
    }
    AbstractTableFilter filter = new AbstractTableFilter() {
      @Override public boolean filter(TableProperties properties) {
        throw new IllegalStateException("on purpose");
      }
    };
    try (RocksDB db = open(); ReadOptions read = new ReadOptions().setTableFilter(filter)) {
      filter.close();
      db.put(b("a"), b("1"));
      db.flush(new FlushOptions());
      check("a closed table filter throws", () -> {
        try (RocksIterator iterator = db.newIterator(read)) {
          iterator.seekToFirst();
          return new String(iterator.key());
        }
      });
    }
    AbstractTransactionNotifier notifier = new AbstractTransactionNotifier() {
      @Override public void snapshotCreated(Snapshot snapshot) {
        throw new IllegalStateException("on purpose");
      }
    };
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions of = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, of, root.resolve("notified").toString()); WriteOptions write = new WriteOptions();
        Transaction transaction = db.beginTransaction(write)) {
      transaction.setSnapshotOnNextOperation(notifier);
      notifier.close();
      check("a closed notifier throws", () -> { transaction.put(b("a"), b("1")); return transaction.getSnapshot() != null; });
    }
  }

  /** Notes the calls that it gets. */
  static final class Calls extends WriteBatch.Handler {
    final StringBuilder calls = new StringBuilder();

    void add(String name, byte[]... parts) {
      calls.append(name);
      for (byte[] part : parts) {
        calls.append(' ').append(new String(part));
      }
      calls.append(", ");
    }

    @Override public void put(int family, byte[] key, byte[] value) { add("put", key, value); }
    @Override public void put(byte[] key, byte[] value) { add("put", key, value); }
    @Override public void merge(int family, byte[] key, byte[] value) { add("merge", key, value); }
    @Override public void merge(byte[] key, byte[] value) { add("merge", key, value); }
    @Override public void delete(int family, byte[] key) { add("delete", key); }
    @Override public void delete(byte[] key) { add("delete", key); }
    @Override public void singleDelete(int family, byte[] key) { add("single", key); }
    @Override public void singleDelete(byte[] key) { add("single", key); }
    @Override public void deleteRange(int family, byte[] from, byte[] to) { add("range", from, to); }
    @Override public void deleteRange(byte[] from, byte[] to) { add("range", from, to); }
    @Override public void logData(byte[] blob) { add("log", blob); }
    @Override public void putBlobIndex(int family, byte[] key, byte[] value) { add("blob", key); }
    @Override public void markBeginPrepare() { add("begin"); }
    @Override public void markEndPrepare(byte[] name) { add("end", name); }
    @Override public void markNoop(boolean empty) { add("noop " + empty); }
    @Override public void markRollback(byte[] name) { add("rollback", name); }
    @Override public void markCommit(byte[] name) { add("commit", name); }
    @Override public void markCommitWithTimestamp(byte[] name, byte[] at) { add("commit at", name, at); }
  }

  /** What a copy of the WAL must not apply wrongly: transactions that are prepared and not decided, or rolled back. */
  static void marks() throws Exception {
    byte[] prepared = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x09, 0x01, 1, 'k', 1, 'v', 0x0a, 1, 'n'};
    byte[] entity = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x16, 1, 'k', 4, 1, 1, 0, 0};
    check("marks of a prepared transaction", () -> new WriteBatch(prepared));
    check("an entity in a handler", () -> { new WriteBatch(entity).iterate(new Calls()); return "done"; });
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions of = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, of, root.resolve("marks").toString()); WriteOptions write = new WriteOptions()) {
      for (String name : new String[] {"commit", "rollback", "undecided"}) {
        Transaction transaction = db.beginTransaction(write);
        transaction.setName(name);
        transaction.put(b(name), b("value"));
        transaction.prepare();
        if (name.equals("commit")) {
          transaction.commit();
        } else if (name.equals("rollback")) {
          transaction.rollback();
        }
      }
      check("updates of prepared transactions", () -> {
        StringBuilder all = new StringBuilder();
        try (TransactionLogIterator updates = db.getUpdatesSince(0)) {
          for (; updates.isValid(); updates.next()) {
            Calls calls = new Calls();
            updates.getBatch().writeBatch().iterate(calls);
            all.append(calls.calls);
          }
        }
        return all;
      });
    }
  }

  /** A comparator that calls the object that calls it, and one that throws while a batch changes. */
  static void nested() throws Exception {
    Throwing order = new Throwing();
    WriteBatchWithIndex batch = new WriteBatchWithIndex(order, 100, true);
    batch.put(b("a"), b("1"));
    batch.put(b("b"), b("2"));
    order.now = true;
    check("a comparator throws in a put of a batch", () -> { batch.put(b("c"), b("3")); return "done"; });
    order.now = false;
    check("the batch afterwards", () -> batch.count());
    check("a put afterwards", () -> { batch.put(b("d"), b("4")); return batch.count(); });
    check("entries afterwards", () -> {
      StringBuilder all = new StringBuilder();
      try (WBWIRocksIterator iterator = batch.newIterator()) {
        for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
          all.append(iterator.entry().getKey());
        }
      }
      return all;
    });
    try (RocksDB db = RocksDB.open(new Options().setCreateIfMissing(true).setComparator(order), root.resolve("nested").toString())) {
      db.put(b("base"), b("0"));
      check("a scan over the batch afterwards", () -> {
        StringBuilder all = new StringBuilder();
        try (RocksIterator iterator = batch.newIteratorWithBase(db.getDefaultColumnFamily(), db.newIterator())) {
          for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
            all.append(new String(iterator.key())).append(' ');
          }
          iterator.status();
        }
        return all;
      });
      batch.setSavePoint();
      batch.put(b("e"), b("5"));
      order.now = true;
      check("a comparator throws in a rollback of a batch", () -> { batch.rollbackToSavePoint(); return "done"; });
      order.now = false;
      check("a read after the rollback", () -> batch.getFromBatch(new DBOptions(), b("e")) == null && batch.count() == 3);
    }
    batch.clear();
    check("a clear afterwards", () -> batch.count());

    class Calling extends AbstractComparator {
      WriteBatchWithIndex called = null;
      RocksIterator base = null;
      String said = "nothing";

      Calling() {
        super(new ComparatorOptions());
      }

      @Override public String name() {
        return "misuse.Calling";
      }

      @Override public int compare(ByteBuffer a, ByteBuffer b) {
        if (called != null) {
          try {
            said = base == null ? "count " + called.count() : "over " + called.newIteratorWithBase(base);
          } catch (Exception e) {
            said = e.getClass().getSimpleName();
          }
        }
        return a.compareTo(b);
      }
    }
    Calling calling = new Calling();
    WriteBatchWithIndex inside = new WriteBatchWithIndex(calling, 100, true);
    inside.put(b("a"), b("1"));
    calling.called = inside;
    check("a comparator that calls its batch", () -> { inside.put(b("b"), b("2")); return calling.said; });
    try (RocksDB db = open()) {
      db.put(b("a"), b("1"));
      RocksIterator base = db.newIterator();
      base.seekToFirst();
      calling.base = base;
      check("an iterator that a comparator puts under its batch", () -> { inside.put(b("c"), b("3")); return calling.said; });
      check("that iterator afterwards", () -> { base.status(); return base.isValid(); });
      base.close();
    }
  }

  /** The counts of open objects before and after programs' work; over RocksDB's native half there is no such property. */
  static void leaks() throws Exception {
    String name = "ashlardb.java-open-objects";
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions of = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, of, root.resolve("leaks").toString()); WriteOptions write = new WriteOptions();
        TransactionOptions sees = new TransactionOptions().setSetSnapshot(true)) {
      db.getDefaultColumnFamily();
      String before = db.getProperty(name);
      for (int i = 0; i < 3; i++) {
        try (Transaction transaction = db.beginTransaction(write, sees); ReadOptions read = new ReadOptions(); Slice bound = new Slice("x");
            WriteBatchWithIndex batch = new WriteBatchWithIndex(true)) {
          read.setSnapshot(transaction.getSnapshot());
          read.setIterateUpperBound(bound);
          read.snapshot();
          read.iterateUpperBound();
          read.iterateUpperBound();
          transaction.put(b("a"), b("1"));
          transaction.getWriteBatch();
          transaction.getWriteOptions();
          transaction.commit();
          batch.put(b("a"), b("1"));
          try (WBWIRocksIterator entries = batch.newIterator()) {
            entries.seekToFirst();
            entries.entry();
          }
          try (RocksIterator iterator = db.newIterator(read)) {
            iterator.seekToFirst();
          }
          db.getColumnFamilyMetaData();
        }
      }
      check("open objects are the same", () -> before.equals(db.getProperty(name)) ? "yes" : before + " / " + db.getProperty(name));
    }
  }

  /** Two threads look for the same prepared transactions, which no object has. Both find each one. */
  static void searches() throws Exception {
    String path = root.resolve("searches").toString();
    int named = 300;
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions of = new TransactionDBOptions();
        WriteOptions write = new WriteOptions()) {
      try (TransactionDB db = TransactionDB.open(options, of, path)) {
        for (int i = 0; i < named; i++) {
          Transaction left = db.beginTransaction(write);
          left.setName("left" + i);
          left.put(b("k" + i), b("v"));
          left.prepare();
        }
      }
      try (TransactionDB db = TransactionDB.open(options, of, path)) {
        CyclicBarrier together = new CyclicBarrier(2);
        AtomicInteger missed = new AtomicInteger();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 2; t++) {
          threads.add(new Thread(() -> {
            for (int i = 0; i < named; i++) {
              try {
                together.await();
                if (db.getTransactionByName("left" + i) == null) {
                  missed.incrementAndGet();
                }
              } catch (Exception e) {
                missed.incrementAndGet();
              }
            }
          }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
          thread.join();
        }
        check("searches of two threads that missed", missed::get);
        check("prepared transactions of two threads", () -> db.getAllPreparedTransactions().size());
      }
    }
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
