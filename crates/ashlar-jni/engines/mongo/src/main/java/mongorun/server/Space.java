package mongorun.server;

import de.bwaldvogel.mongo.exception.MongoServerError;
import java.util.Arrays;
import java.util.List;

/** The keys of one collection or index: those that begin with its number. The first write takes the number. */
final class Space {
  /** No number yet, so there are no keys. */
  static final int NONE = -1;

  private final Store store;
  private volatile String name;
  private volatile int number;
  private volatile boolean dropped;

  Space(Store store, String name, int number) {
    this.store = store;
    this.name = name;
    this.number = number;
  }

  String name() {
    return name;
  }

  int number() {
    return number;
  }

  void rename(String newName) {
    name = newName;
  }

  void drop() {
    dropped = true;
  }

  byte[] get(byte[] key) {
    return number == NONE ? null : store.get(Bytes.join(Bytes.of(number), key));
  }

  void put(byte[] key, byte[] value) {
    store.put(Bytes.join(prefix(), key), value);
  }

  void delete(byte[] key) {
    store.delete(Bytes.join(prefix(), key));
  }

  /** At most {@code limit} entries from the key {@code from} to before {@code to}, or to the end if that is null. */
  List<Store.Entry> page(byte[] from, byte[] to, int limit) {
    if (number == NONE) {
      return List.of();
    }
    byte[] prefix = Bytes.of(number);
    byte[] end = to == null ? Bytes.of(number + 1) : Bytes.join(prefix, to);
    List<Store.Entry> found = store.page(Bytes.join(prefix, from), end, limit);
    return found.stream().map(entry -> new Store.Entry(Arrays.copyOfRange(entry.key(), 4, entry.key().length), entry.value())).toList();
  }

  long count() {
    return all().size();
  }

  boolean isEmpty() {
    return page(new byte[0], null, 1).isEmpty();
  }

  /** The bytes of all keys and values. */
  long bytes() {
    return all().stream().mapToLong(entry -> entry.key().length + entry.value().length).sum();
  }

  private List<Store.Entry> all() {
    return page(new byte[0], null, Integer.MAX_VALUE);
  }

  /** The last key, or null. */
  byte[] last() {
    if (number == NONE) {
      return null;
    }
    byte[] key = store.last(Bytes.of(number), Bytes.of(number + 1));
    return key == null ? null : Arrays.copyOfRange(key, 4, key.length);
  }

  /** Counts of this space's entries and of their bytes, as {@link #setCounts} left them. */
  long[] counts() {
    return number == NONE ? new long[2] : store.counts(number);
  }

  void setCounts(long entries, long bytes) {
    prefix();
    store.setCounts(number, entries, bytes);
  }

  private synchronized byte[] prefix() {
    if (dropped) {
      throw new MongoServerError(26, "NamespaceNotFound", name.replace('\0', ' ') + " was dropped");
    }
    if (number == NONE) {
      number = store.number(name);
    }
    return Bytes.of(number);
  }
}
