package streamscheck;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;

/** A versioned store beside a sorted map of each key. All of its segments live in one RocksDB database. */
final class Versions {
  private static final Duration HISTORY = Duration.ofHours(2);
  private static final int KEYS = 60;
  private static final long MINUTE = 60_000;

  private final Subject subject;
  private final SplittableRandom random = new SplittableRandom(17);

  /** Of each key its versions by their times; an empty text is a deletion. */
  private final Map<String, NavigableMap<Long, String>> model = new TreeMap<>();

  private VersionedKeyValueStore<String, String> store;
  private long newest;

  Versions(Subject subject) {
    this.subject = subject;
  }

  private static StoreBuilder<VersionedKeyValueStore<String, String>> builder() {
    return Stores.versionedKeyValueStoreBuilder(
        Stores.persistentVersionedKeyValueStore("versions", HISTORY), Serdes.String(), Serdes.String());
  }

  void run() {
    store = subject.place().open(builder());
    write(5000, 600);
    compare("written");
    Place.commit(store);
    write(1500, 620);
    compare("committed and written");
    store.close();
    store = subject.place().open(builder());
    touch();
    compare("opened again");
    write(1500, 640);
    compare("written again");
    store.close();
  }

  /** Kafka Streams finds older versions in a reopened store once a write asks for their segment: this one asks for each. */
  private void touch() {
    for (long time = newest - HISTORY.toMillis() + MINUTE; time <= newest; time += MINUTE) {
      write("touched", "at " + time, time);
    }
  }

  /** Writes of the hour before minute `last`, in any order. */
  private void write(int writes, int last) {
    for (int i = 0; i < writes; i++) {
      long time = (last - random.nextInt(60)) * MINUTE + random.nextInt(4) * 1000;
      write(key(random.nextInt(KEYS)), random.nextInt(5) == 0 ? "" : "value " + i, time);
    }
  }

  private void write(String key, String text, long time) {
    newest = Math.max(newest, time);
    if (text.isEmpty() && random.nextBoolean()) {
      String found = told(store.delete(key, time));
      subject.same("delete", asOf(key, time), found);
    } else {
      store.put(key, text.isEmpty() ? null : text, time);
    }
    model.computeIfAbsent(key, unseen -> new TreeMap<>()).put(time, text);
  }

  private static String key(int number) {
    return String.format("key-%03d", number);
  }

  /** The version that was valid at a time. */
  private String asOf(String key, long time) {
    NavigableMap<Long, String> versions = model.get(key);
    Map.Entry<Long, String> found = versions == null ? null : versions.floorEntry(time);
    return found == null || found.getValue().isEmpty() ? null : found.getValue() + "@" + found.getKey();
  }

  private static String told(VersionedRecord<String> found) {
    return found == null ? null : found.value() + "@" + found.timestamp();
  }

  private void compare(String when) {
    List<String> all = new ArrayList<>();
    for (int number = 0; number < KEYS; number++) {
      String key = key(number);
      String latest = told(store.get(key));
      subject.same("get", asOf(key, Long.MAX_VALUE), latest);
      all.add(key + "=" + latest);
      for (int i = 0; i < 20; i++) {
        long time = newest - random.nextLong(HISTORY.toMillis());
        String found = told(store.get(key, time));
        subject.same("get as of a time", asOf(key, time), found);
        all.add(key + "@" + time + "=" + found);
      }
      history(key, all);
    }
    subject.line(when, all);
  }

  /** All versions of a key in its history, the newest first. */
  private void history(String key, List<String> all) {
    long from = newest - HISTORY.toMillis() / 2;
    MultiVersionedKeyQuery<String, String> query =
        MultiVersionedKeyQuery.<String, String>withKey(key).fromTime(Instant.ofEpochMilli(from)).toTime(Instant.ofEpochMilli(newest));
    QueryResult<VersionedRecordIterator<String>> result = store.query(query, PositionBound.unbounded(), new QueryConfig(false));
    List<String> found = new ArrayList<>();
    try (VersionedRecordIterator<String> iterator = result.getResult()) {
      iterator.forEachRemaining(version -> found.add(told(version)));
    }
    subject.same("history", history(key, from), found);
    all.addAll(found);
  }

  private List<String> history(String key, long from) {
    NavigableMap<Long, String> versions = model.getOrDefault(key, new TreeMap<>());
    Long first = versions.floorKey(from);
    NavigableMap<Long, String> part = first == null ? versions : versions.tailMap(first, true);
    List<String> lines = new ArrayList<>();
    part.descendingMap().forEach((time, text) -> {
      if (!text.isEmpty() && time <= newest) {
        lines.add(text + "@" + time);
      }
    });
    return lines;
  }
}
