import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.rocksdb.*;

/** What objects share, lend and keep alive. Prints the same over both native halves. */
public final class Shared extends Answers {
  static String snapshots(RocksDB db) throws RocksDBException {
    return db.getProperty("rocksdb.num-snapshots");
  }

  public static void main(String[] args) throws Exception {
    Path root = Path.of(args[0]);
    caches(root.resolve("caches").toString());
    reads(root.resolve("reads").toString());
    transactions(root.resolve("transactions").toString());
    prepared(root.resolve("prepared").toString());
    texts();
    many(root.resolve("many"));
    places(root);
    indexed(root.resolve("indexed").toString());
    System.out.println("end");
  }

  static void caches(String path) throws Exception {
    try (LRUCache cache = new LRUCache(64 << 20); DBOptions options = new DBOptions().setCreateIfMissing(true).setCreateMissingColumnFamilies(true)) {
      BlockBasedTableConfig table = new BlockBasedTableConfig().setBlockCache(cache);
      List<ColumnFamilyDescriptor> families = new ArrayList<>();
      for (String name : new String[] {"default", "a", "b", "c"}) {
        families.add(new ColumnFamilyDescriptor(b(name), new ColumnFamilyOptions().setTableFormatConfig(table)));
      }
      List<ColumnFamilyHandle> handles = new ArrayList<>();
      try (RocksDB db = RocksDB.open(options, path, families, handles)) {
        say("capacity", () -> db.getProperty("rocksdb.block-cache-capacity"));
        for (ColumnFamilyHandle family : handles) {
          for (int i = 0; i < 2000; i++) {
            db.put(family, b("key" + i), b("value" + i));
          }
          db.flush(new FlushOptions(), family);
          s(db.get(family, b("key7")));
        }
        say("usage", () -> cache.getUsage() > 0 && cache.getUsage() < 64 << 20);
        say("pinned", () -> cache.getPinnedUsage() < 64 << 20);
        handles.forEach(ColumnFamilyHandle::close);
      }
    }
  }

  static void reads(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path)) {
      Snapshot snapshot = db.getSnapshot();
      try (ReadOptions read = new ReadOptions().setSnapshot(snapshot); Slice from = new Slice("b"); Slice to = new Slice("d")) {
        say("same snapshot", () -> read.snapshot().getSequenceNumber() == snapshot.getSequenceNumber()
            && read.snapshot().getSequenceNumber() == snapshot.getSequenceNumber());
        say("no bounds", () -> read.iterateLowerBound() + " " + read.iterateUpperBound());
        read.setIterateLowerBound(from);
        read.setIterateUpperBound(to);
        say("bounds", () -> read.iterateLowerBound().toString() + read.iterateUpperBound().toString() + read.iterateUpperBound().toString());
        say("snapshots", () -> snapshots(db));
      }
      db.releaseSnapshot(snapshot);
      say("snapshots behind", () -> snapshots(db));
    }
  }

  static void transactions(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions of = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, of, path); WriteOptions write = new WriteOptions(); ReadOptions plain = new ReadOptions();
        TransactionOptions sees = new TransactionOptions().setSetSnapshot(true)) {
      Transaction pooled = db.beginTransaction(write, sees);
      for (int i = 0; i < 6; i++) {
        say("sees", () -> pooled.getSnapshot().getSequenceNumber() == pooled.getSnapshot().getSequenceNumber());
        pooled.put(b("key"), b("value" + i));
        pooled.commit();
        db.beginTransaction(write, sees, pooled);
      }
      say("snapshots of a pooled transaction", () -> snapshots(db));
      pooled.clearSnapshot();
      say("cleared", () -> pooled.getSnapshot() + " " + snapshots(db));
      pooled.rollback();
      pooled.close();

      Snapshot before = db.getSnapshot();
      db.put(b("newer"), b("new"));
      try (ReadOptions old = new ReadOptions().setSnapshot(before); Transaction t = db.beginTransaction(write)) {
        say("for update at a snapshot", () -> s(t.getForUpdate(old, b("newer"), true)));
        say("for update", () -> s(t.getForUpdate(plain, b("newer"), true)));
        t.rollback();
      }
      db.releaseSnapshot(before);

      try (Transaction t = db.beginTransaction(write)) {
        t.put(b("own"), b("1"));
        WriteBatchWithIndex batch = t.getWriteBatch();
        say("batch", () -> batch.count());
        batch.put(b("through the batch"), b("2"));
        say("read back", () -> s(t.get(plain, b("through the batch"))) + " " + t.getWriteBatch().count());
        t.commit();
      }
      say("written", () -> s(db.get(b("own"))) + s(db.get(b("through the batch"))));

      try (Transaction t = db.beginTransaction(write)) {
        t.put(b("own"), b("3"));
        say("values", () -> s(t.multiGetAsList(plain, List.of(b("own"), b("nothing"), b("newer"))).get(0))
            + s(t.multiGetAsList(plain, List.of(b("own"), b("nothing"), b("newer"))).get(1)));
        t.rollback();
      }

      try (Transaction t = db.beginTransaction(write, sees); Transaction other = db.beginTransaction(write, sees)) {
        Snapshot own = t.getSnapshot();
        Snapshot theirs = other.getSnapshot();
        long number = own.getSequenceNumber();
        t.put(b("own"), b("4"));
        t.commit();
        other.rollback();
        say("a lent snapshot after commit and rollback",
            () -> (own.getSequenceNumber() == number) + " " + (theirs.getSequenceNumber() == number));
      }

      try (TransactionOptions hasty = new TransactionOptions().setLockTimeout(1); Transaction holds = db.beginTransaction(write, hasty);
          Transaction t = db.beginTransaction(write, hasty); Transaction third = db.beginTransaction(write, hasty)) {
        holds.put(b("k2"), b("held"));
        try {
          // RocksDB's native half answers null for each key.
          t.multiGetForUpdate(plain, new byte[][] {b("k1"), b("k2"), b("k3")});
        } catch (RocksDBException locked) {
          if (locked.getStatus().getCode() != Status.Code.TimedOut) throw locked;
        }
        say("the third afterwards", () -> s(third.getForUpdate(plain, b("k3"), true)));
        say("the first afterwards", () -> s(third.getForUpdate(plain, b("k1"), true)));
      }
    }
  }

  static void prepared(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions of = new TransactionDBOptions(); WriteOptions write = new WriteOptions()) {
      try (TransactionDB db = TransactionDB.open(options, of, path)) {
        Transaction live = db.beginTransaction(write);
        live.setName("live");
        live.put(b("a"), b("1"));
        say("by name", () -> db.getTransactionByName("live").getName() + db.getTransactionByName("live").getState());
        say("prepared", () -> db.getAllPreparedTransactions().size());
        live.prepare();
        say("prepared now", () -> db.getAllPreparedTransactions().size() + db.getTransactionByName("live").getName());
        say("of no name", () -> db.getTransactionByName("none"));
        live.commit();
        say("after the commit", () -> db.getTransactionByName("live") + " " + db.getAllPreparedTransactions().size() + s(db.get(b("a"))));
        live.close();
        Transaction left = db.beginTransaction(write);
        left.setName("left");
        left.put(b("b"), b("2"));
        left.prepare();
      }
      try (TransactionDB db = TransactionDB.open(options, of, path)) {
        say("found", () -> db.getAllPreparedTransactions().size() + db.getTransactionByName("left").getName());
        say("found again", () -> db.getAllPreparedTransactions().size() + db.getTransactionByName("left").getName());
        db.getTransactionByName("left").commit();
        say("committed", () -> s(db.get(b("b"))) + db.getAllPreparedTransactions().size());
      }
    }
  }

  static void texts() {
    Properties nested = new Properties();
    nested.setProperty("no_such_option", "1");
    nested.setProperty("write_buffer_size", "2097152");
    nested.setProperty("block_based_table_factory", "{block_size=8192;cache_index_and_filter_blocks=true;}");
    Properties wrong = new Properties();
    wrong.setProperty("no_such_option", "1");
    wrong.setProperty("write_buffer_size", "abc");
    try (ConfigOptions config = new ConfigOptions().setIgnoreUnknownOptions(true)) {
      say("nested", () -> ColumnFamilyOptions.getColumnFamilyOptionsFromProps(config, nested).writeBufferSize());
      say("wrong", () -> ColumnFamilyOptions.getColumnFamilyOptionsFromProps(config, wrong).writeBufferSize());
    }
  }

  static List<ByteBuffer> direct(int count, String... texts) {
    List<ByteBuffer> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      ByteBuffer buffer = ByteBuffer.allocateDirect(2000);
      if (i < texts.length) {
        buffer.put(b(texts[i])).flip();
      }
      all.add(buffer);
    }
    return all;
  }

  /** A damaged block fails the keys in it, and no others. */
  static void many(Path path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true).setCompressionType(CompressionType.NO_COMPRESSION)) {
      byte[] value = new byte[1000];
      Arrays.fill(value, (byte) 'v');
      try (RocksDB db = RocksDB.open(options, path.toString())) {
        for (int i = 0; i < 100; i++) {
          db.put(b(String.format("key%03d", i)), value);
        }
        db.flush(new FlushOptions());
      }
      try (var files = Files.list(path)) {
        Path table = files.filter(file -> file.toString().endsWith(".sst")).findFirst().get();
        byte[] bytes = Files.readAllBytes(table);
        bytes[1500] ^= 1;
        Files.write(table, bytes);
      }
      try (RocksDB db = RocksDB.open(options, path.toString()); ReadOptions read = new ReadOptions()) {
        List<ByteBuffer> values = direct(3);
        List<ByteBufferGetStatus> found =
            db.multiGetByteBuffers(read, List.of(db.getDefaultColumnFamily()), direct(3, "key000", "key050", "key999"), values);
        for (ByteBufferGetStatus one : found) {
          System.out.println("status: " + one.status.getCode() + " " + one.requiredSize);
        }
        say("all", () -> db.multiGetAsList(List.of(b("key050"), b("key099"))).get(1).length);
      }
    }
  }

  /** Tables in another directory than the database. */
  static void places(Path root) throws Exception {
    Path tables = Files.createDirectories(root.resolve("tables"));
    Path path = root.resolve("places");
    TreeSet<String> heard = new TreeSet<>();
    AbstractEventListener listener = new AbstractEventListener() {
      @Override public void onFlushCompleted(RocksDB db, FlushJobInfo info) {
        heard.add("flush to " + Path.of(info.getFilePath()).getParent().getFileName());
      }

      @Override public void onCompactionCompleted(RocksDB db, CompactionJobInfo info) {
        info.inputFiles().forEach(file -> heard.add("compacted from " + Path.of(file).getParent().getFileName()));
        info.outputFiles().forEach(file -> heard.add("compacted to " + Path.of(file).getParent().getFileName()));
        heard.add("properties of " + info.tableProperties().size());
      }
    };
    try (SstFileManager manager = new SstFileManager(Env.getDefault());
        Options options = new Options().setCreateIfMissing(true).setDbPaths(List.of(new DbPath(tables, 1 << 30))).setSstFileManager(manager)
            .setListeners(List.of(listener)); RocksDB db = RocksDB.open(options, path.toString())) {
      for (int i = 0; i < 2; i++) {
        db.put(b("a"), b("1"));
        db.put(b("z"), b("1"));
        db.flush(new FlushOptions());
      }
      db.compactRange();
      say("path", () -> root.relativize(Path.of(db.getLiveFilesMetaData().get(0).path())));
      say("there", () -> Files.exists(Path.of(db.getLiveFilesMetaData().get(0).path() + db.getLiveFilesMetaData().get(0).fileName())));
      say("metadata", () -> root.relativize(Path.of(db.getColumnFamilyMetaData().levels().stream()
          .flatMap(level -> level.files().stream()).findFirst().get().path())));
      say("properties", () -> db.getPropertiesOfAllTables().keySet().stream().allMatch(file -> Files.exists(Path.of(file))));
      say("tracked", () -> manager.getTrackedFiles().keySet().stream().anyMatch(file -> file.startsWith(tables.toString())));
    }
    System.out.println("heard " + heard);
  }

  static void indexed(String path) throws Exception {
    try (WriteBatchWithIndex batch = new WriteBatchWithIndex(true)) {
      batch.put(b("a"), b("1"));
      batch.setSavePoint();
      batch.put(b("b"), b("2"));
      batch.rollbackToSavePoint();
      say("after a rollback", () -> batch.count() + " " + batch.newIterator().isValid());
      batch.clear();
      say("after a clear", () -> batch.count());
    }
  }
}
