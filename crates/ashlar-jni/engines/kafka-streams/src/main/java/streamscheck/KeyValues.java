package streamscheck;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;

/** A key-value store, plain or with timestamps, beside a sorted map. Keys and values are bytes, also none. */
final class KeyValues<V> {
  private static final int KEYS = 1000;
  private static final int WRITES = 8_000;

  private final Subject subject;
  private final Supplier<? extends StoreBuilder<? extends KeyValueStore<Bytes, V>>> builder;
  private final BiFunction<byte[], Long, V> value;
  private final BiFunction<byte[], Long, byte[]> stored;
  private final Function<V, String> text;
  private final SplittableRandom random = new SplittableRandom(7);
  private final NavigableMap<Bytes, String> model = new TreeMap<>(Comparator.comparing(Bytes::get, Arrays::compareUnsigned));
  private KeyValueStore<Bytes, V> store;

  /** `value` makes a value of bytes and a time, `stored` the bytes that the store keeps for it, and `text` tells it. */
  KeyValues(
      Subject subject,
      Supplier<? extends StoreBuilder<? extends KeyValueStore<Bytes, V>>> builder,
      BiFunction<byte[], Long, V> value,
      BiFunction<byte[], Long, byte[]> stored,
      Function<V, String> text) {
    this.subject = subject;
    this.builder = builder;
    this.value = value;
    this.stored = stored;
    this.text = text;
  }

  void run() {
    store = subject.place().open(builder.get());
    compare("empty");
    write(WRITES);
    compare("written");
    Place.commit(store);
    compare("committed");
    write(WRITES / 4);
    iterateWhileWriting();
    Place.commit(store);
    store.close();
    subject.same("open after the close", false, store.isOpen());
    subject.fails("get after the close", InvalidStateStoreException.class, () -> store.get(key(1)));
    store = subject.place().open(builder.get());
    compare("opened again");
    write(WRITES / 4);
    restore();
    compare("restored");
    leaveIteratorsOpen();
    store.close();
    store = subject.place().open(builder.get());
    compare("opened a third time");
    store.close();
  }

  private static Bytes key(int number) {
    byte[] bytes = new byte[1 + number % 5 + number % 7 * 4];
    new SplittableRandom(number).nextBytes(bytes);
    bytes[0] = (byte) (number % 16 * 17);
    return Bytes.wrap(bytes);
  }

  private V newValue() {
    byte[] bytes = new byte[random.nextInt(50) == 0 ? random.nextInt(20_000) : random.nextInt(100)];
    random.nextBytes(bytes);
    return value.apply(bytes, random.nextLong(1L << 40));
  }

  private void write(int writes) {
    for (int i = 0; i < writes; i++) {
      Bytes key = key(random.nextInt(KEYS));
      V fresh = newValue();
      switch (random.nextInt(8)) {
        case 0 -> subject.same("delete", model.remove(key), told(store.delete(key)));
        case 1 -> {
          String before = model.putIfAbsent(key, text.apply(fresh));
          subject.same("put if absent", before, told(store.putIfAbsent(key, fresh)));
        }
        case 2 -> putAll(key, fresh);
        case 3 -> {
          store.put(key, null);
          model.remove(key);
        }
        default -> {
          store.put(key, fresh);
          model.put(key, text.apply(fresh));
        }
      }
    }
  }

  /** Two writes and a deletion in one batch. */
  private void putAll(Bytes key, V fresh) {
    Bytes other = key(random.nextInt(KEYS));
    V second = newValue();
    store.putAll(List.of(KeyValue.pair(other, null), KeyValue.pair(key, fresh), KeyValue.pair(other, second)));
    model.put(key, text.apply(fresh));
    model.put(other, text.apply(second));
  }

  private String told(V found) {
    return found == null ? null : text.apply(found);
  }

  private void compare(String when) {
    for (int number = 0; number < KEYS; number++) {
      subject.same("get", model.get(key(number)), told(store.get(key(number))));
    }
    List<String> all = list(store.all());
    subject.same("all", list(model), all);
    subject.same("reverse all", list(model.descendingMap()), list(store.reverseAll()));
    for (int i = 0; i < 10; i++) {
      ranges(key(random.nextInt(KEYS)), key(random.nextInt(KEYS)));
    }
    for (int first = 0; first < 16; first++) {
      byte[] prefix = {(byte) (first * 17)};
      NavigableMap<Bytes, String> tail = model.tailMap(Bytes.wrap(prefix), true);
      NavigableMap<Bytes, String> part = first < 15 ? tail.headMap(next(first), false) : tail;
      subject.same("prefix scan", list(part), list(store.prefixScan(prefix, new ByteArraySerializer())));
    }
    subject.line(when, all);
    System.err.println(subject.name() + " " + when + ": " + store.approximateNumEntries() + " entries by RocksDB's estimate");
  }

  private static Bytes next(int first) {
    return Bytes.wrap(new byte[] {(byte) (first * 17 + 1)});
  }

  private void ranges(Bytes one, Bytes other) {
    boolean ordered = Arrays.compareUnsigned(one.get(), other.get()) <= 0;
    NavigableMap<Bytes, String> part = ordered ? model.subMap(one, true, other, true) : new TreeMap<>();
    subject.same("range", list(part), list(store.range(one, other)));
    subject.same("reverse range", list(part.descendingMap()), list(store.reverseRange(one, other)));
    subject.same("range to the end", list(model.tailMap(one, true)), list(store.range(one, null)));
    subject.same("range from the start", list(model.headMap(one, true)), list(store.range(null, one)));
    NavigableMap<Bytes, String> head = model.headMap(other, true).descendingMap();
    subject.same("reverse range from the start", list(head), list(store.reverseRange(null, other)));
  }

  /** An iterator goes on over what was there when it began. */
  private void iterateWhileWriting() {
    List<String> before = list(model);
    List<String> found = new ArrayList<>();
    try (KeyValueIterator<Bytes, V> iterator = store.all()) {
      for (int i = 0; iterator.hasNext(); i++) {
        if (i % 50 == 0) {
          write(20);
        }
        if (i == before.size() / 2) {
          Place.commit(store);
        }
        subject.same("peek", true, iterator.peekNextKey() != null);
        KeyValue<Bytes, V> entry = iterator.next();
        found.add(line(entry.key, text.apply(entry.value)));
      }
    }
    subject.same("an iterator beside writes", before, found);
    subject.line("iterated beside writes", found);
  }

  /** The store takes records of its changelog in one batch. */
  private void restore() {
    List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
    for (int i = 0; i < 2000; i++) {
      Bytes key = key(random.nextInt(KEYS));
      boolean deleted = random.nextInt(5) == 0;
      byte[] bytes = new byte[random.nextInt(200)];
      random.nextBytes(bytes);
      long time = random.nextLong(1L << 40);
      records.add(Records.of(i, time, key.get(), deleted ? null : stored.apply(bytes, time)));
      if (deleted) {
        model.remove(key);
      } else {
        model.put(key, text.apply(value.apply(bytes, time)));
      }
    }
    subject.place().restore(store.name(), records);
  }

  /** A close with open iterators closes them; using them afterwards is an exception, not the end of the JVM. */
  private void leaveIteratorsOpen() {
    KeyValueIterator<Bytes, V> all = store.all();
    KeyValueIterator<Bytes, V> back = store.reverseAll();
    all.next();
    back.next();
    store.close();
    subject.fails("an iterator after the close", InvalidStateStoreException.class, all::hasNext);
    subject.fails("an iterator after the close", InvalidStateStoreException.class, back::next);
    store = subject.place().open(builder.get());
  }

  private List<String> list(KeyValueIterator<Bytes, V> iterator) {
    List<String> lines = new ArrayList<>();
    try (iterator) {
      iterator.forEachRemaining(entry -> lines.add(line(entry.key, text.apply(entry.value))));
    }
    return lines;
  }

  private static List<String> list(NavigableMap<Bytes, String> entries) {
    List<String> lines = new ArrayList<>();
    entries.forEach((key, text) -> lines.add(line(key, text)));
    return lines;
  }

  private static String line(Bytes key, String text) {
    return Check.hex(key.get()) + "=" + text;
  }
}
