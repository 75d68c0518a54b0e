package mongorun.server;

import de.bwaldvogel.mongo.exception.MongoServerError;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.Slice;
import org.rocksdb.WriteBatchWithIndex;
import org.rocksdb.WriteOptions;

/**
 * A database of RocksDB with one column family. Each collection and each index has a number, and its keys begin with the number. So a new
 * collection is one put, a rename changes names only, and a drop is a range delete; a family for each would rewrite RocksDB's MANIFEST.
 *
 * <pre>
 * | 0 (4) | name                | number of a space (4)            |
 * | 1 (4) | number of a space   | entries (8), bytes (8)           |
 * | 16 and more (4) | key       | value                            |
 * </pre>
 *
 * Writes are in the WAL when they are acknowledged, and are not synced: a kill of the process loses none, a power cut may lose the last.
 */
final class Store implements AutoCloseable {
  private static final byte[] NAMES = Bytes.of(0);
  private static final byte[] COUNTS = Bytes.of(1);
  private static final int FIRST = 16;

  static {
    RocksDB.loadLibrary();
  }

  /** A key and its value. */
  record Entry(byte[] key, byte[] value) {}

  /** What one thread writes together, and what happens after the write. */
  private record Unit(WriteBatchWithIndex batch, List<Runnable> after) {}

  private final BlockBasedTableConfig tables = new BlockBasedTableConfig();
  private final BloomFilter filter = new BloomFilter(10);
  private final Options options = new Options();
  private final WriteOptions writes = new WriteOptions();
  private final ReadOptions reads = new ReadOptions();
  private final boolean readOnly;
  private final RocksDB db;
  private final ThreadLocal<Unit> units = new ThreadLocal<>();
  private final Map<String, Space> spaces = new ConcurrentHashMap<>();
  private final LongAdder nanos = new LongAdder();
  private final AtomicInteger next = new AtomicInteger(FIRST);

  Store(Path folder, boolean readOnly) throws RocksDBException {
    this.readOnly = readOnly;
    options.setCreateIfMissing(!readOnly).setTableFormatConfig(tables.setFilterPolicy(filter));
    db = readOnly ? RocksDB.openReadOnly(options, folder.toString()) : RocksDB.open(options, folder.toString());
    try {
      open();
    } catch (RuntimeException | RocksDBException e) {
      close();
      throw e;
    }
  }

  private void open() throws RocksDBException {
    TreeMap<Integer, String> numbers = new TreeMap<>();
    names("").forEach((name, number) -> {
      numbers.put(number, name);
      spaces.put(name, new Space(this, name, number));
    });
    if (!readOnly) {
      sweep(numbers);
    }
    next.set(numbers.isEmpty() ? FIRST : numbers.lastKey() + 1);
  }

  /** Removes what a kill between a drop and its range delete left. */
  private void sweep(TreeMap<Integer, String> numbers) throws RocksDBException {
    int free = FIRST;
    for (int number : numbers.keySet()) {
      sweep(free, number);
      free = number + 1;
    }
    sweep(free, Integer.MAX_VALUE);
  }

  private void sweep(int from, int to) throws RocksDBException {
    if (from < to && !page(Bytes.of(from), Bytes.of(to), 1).isEmpty()) {
      db.deleteRange(writes, Bytes.of(from), Bytes.of(to));
    }
  }

  /** The names that begin with {@code start}, and their numbers. */
  Map<String, Integer> names(String start) {
    byte[] from = Bytes.join(NAMES, start.getBytes(StandardCharsets.UTF_8));
    Map<String, Integer> found = new TreeMap<>();
    for (Entry entry : page(from, Bytes.after(from.length > NAMES.length ? from : NAMES), Integer.MAX_VALUE)) {
      String name = new String(entry.key(), NAMES.length, entry.key().length - NAMES.length, StandardCharsets.UTF_8);
      found.put(name, ByteBuffer.wrap(entry.value()).getInt());
    }
    return found;
  }

  Space space(String name) {
    return spaces.computeIfAbsent(name, missing -> new Space(this, missing, Space.NONE));
  }

  /** A new number for a space. It stays also if the rest of the thread's writes fails: a space without keys does no harm. */
  int number(String name) {
    unit();
    int number = next.getAndIncrement();
    call(() -> db.put(writes, Bytes.join(NAMES, name.getBytes(StandardCharsets.UTF_8)), Bytes.of(number)));
    return number;
  }

  /** Removes a space and its keys. */
  void forget(String name) {
    Space space = space(name);
    if (space.number() != Space.NONE) {
      delete(Bytes.join(NAMES, name.getBytes(StandardCharsets.UTF_8)));
      delete(Bytes.join(COUNTS, Bytes.of(space.number())));
    }
    unit().after().add(() -> {
      space.drop();
      spaces.remove(name, space);
      if (space.number() != Space.NONE) {
        call(() -> db.deleteRange(writes, Bytes.of(space.number()), Bytes.of(space.number() + 1)));
      }
    });
  }

  /** Gives the spaces whose names begin with {@code start} names that begin with {@code newStart}. */
  void rename(String start, String newStart) {
    for (String name : List.copyOf(spaces.keySet())) {
      if (name.startsWith(start)) {
        move(name, newStart + name.substring(start.length()));
      }
    }
  }

  /** Gives a space another name. */
  void move(String name, String newName) {
    Space space = space(name);
    if (space.number() != Space.NONE) {
      delete(Bytes.join(NAMES, name.getBytes(StandardCharsets.UTF_8)));
      put(Bytes.join(NAMES, newName.getBytes(StandardCharsets.UTF_8)), Bytes.of(space.number()));
    }
    unit().after().add(() -> {
      spaces.remove(name, space);
      space.rename(newName);
      spaces.put(newName, space);
    });
  }

  /** Writes all that {@code body} writes on this thread in one batch, or nothing if it fails. An inner call joins the outer one. */
  <T> T together(Supplier<T> body) {
    Unit outer = units.get();
    if (outer != null) {
      return joined(outer, body);
    }
    T answer;
    Unit unit = new Unit(new WriteBatchWithIndex(true), new ArrayList<>());
    units.set(unit);
    try {
      answer = body.get();
      if (unit.batch().count() > 0) {
        call(() -> db.write(writes, unit.batch()));
      }
    } finally {
      units.remove();
      unit.batch().close();
    }
    unit.after().forEach(Runnable::run);
    return answer;
  }

  private <T> T joined(Unit unit, Supplier<T> body) {
    int before = unit.after().size();
    unit.batch().setSavePoint();
    try {
      T answer = body.get();
      call(() -> unit.batch().popSavePoint());
      return answer;
    } catch (RuntimeException failure) {
      unit.after().subList(before, unit.after().size()).clear();
      call(() -> unit.batch().rollbackToSavePoint());
      throw failure;
    }
  }

  private Unit unit() {
    if (readOnly) {
      throw new MongoServerError(20, "IllegalOperation", "the server only reads");
    }
    Unit unit = units.get();
    if (unit == null) {
      throw new IllegalStateException("a write outside of together()");
    }
    return unit;
  }

  /** What RocksDB does. */
  private interface Call {
    void run() throws RocksDBException;
  }

  /** Counts the time of the call, and says its error as the protocol does. */
  private void call(Call call) {
    long begin = System.nanoTime();
    try {
      call.run();
    } catch (RocksDBException e) {
      throw StoreError.of(e);
    } finally {
      nanos.add(System.nanoTime() - begin);
    }
  }

  /** How long all threads together were in RocksDB. */
  double seconds() {
    return nanos.sum() / 1e9;
  }

  byte[] get(byte[] key) {
    Unit unit = units.get();
    byte[][] found = new byte[1][];
    call(() -> found[0] = unit == null ? db.get(reads, key) : unit.batch().getFromBatchAndDB(db, reads, key));
    return found[0];
  }

  void put(byte[] key, byte[] value) {
    WriteBatchWithIndex batch = unit().batch();
    call(() -> batch.put(key, value));
  }

  void delete(byte[] key) {
    WriteBatchWithIndex batch = unit().batch();
    call(() -> batch.delete(key));
  }

  /** At most {@code limit} entries from {@code from} to before {@code to}, with what this thread has not written yet. */
  List<Entry> page(byte[] from, byte[] to, int limit) {
    List<Entry> found = new ArrayList<>();
    call(() -> {
      try (Slice end = new Slice(to); ReadOptions bounded = new ReadOptions().setIterateUpperBound(end);
          RocksIterator at = iterator(bounded)) {
        // A batch's own entries do not know the bound.
        for (at.seek(from); at.isValid() && found.size() < limit && Arrays.compareUnsigned(at.key(), to) < 0; at.next()) {
          found.add(new Entry(at.key(), at.value()));
        }
        at.status();
      }
    });
    return found;
  }

  /** The last key from {@code from} to before {@code to}, or null. */
  byte[] last(byte[] from, byte[] to) {
    byte[][] found = new byte[1][];
    call(() -> {
      try (RocksIterator at = iterator(reads)) {
        at.seekForPrev(to);
        if (at.isValid() && Arrays.equals(at.key(), to)) {
          at.prev();
        }
        at.status();
        found[0] = at.isValid() && Arrays.compareUnsigned(at.key(), from) >= 0 ? at.key() : null;
      }
    });
    return found[0];
  }

  private RocksIterator iterator(ReadOptions options) {
    Unit unit = units.get();
    RocksIterator base = db.newIterator(options);
    // The iterator over both closes the other one.
    return unit == null ? base : unit.batch().newIteratorWithBase(db.getDefaultColumnFamily(), base, options);
  }

  long[] counts(int number) {
    byte[] found = get(Bytes.join(COUNTS, Bytes.of(number)));
    ByteBuffer counts = ByteBuffer.wrap(found == null ? new byte[16] : found);
    return new long[] {counts.getLong(), counts.getLong()};
  }

  void setCounts(int number, long entries, long bytes) {
    put(Bytes.join(COUNTS, Bytes.of(number)), Bytes.join(Bytes.of(entries), Bytes.of(bytes)));
  }

  /** The size of the tables, in bytes. */
  long tableBytes() {
    long[] bytes = new long[1];
    call(() -> bytes[0] = db.getLongProperty("rocksdb.total-sst-files-size"));
    return bytes[0];
  }

  @Override
  public void close() {
    db.close();
    reads.close();
    writes.close();
    options.close();
    filter.close();
  }
}
