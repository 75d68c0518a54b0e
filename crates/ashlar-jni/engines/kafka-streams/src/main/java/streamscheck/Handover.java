package streamscheck;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Stores that one run leaves in a directory and another run, over another native half, finds there and goes on with. */
final class Handover {
  private static final int WRITES = 5000;
  private static final int KEYS = 100;

  private final Check check;
  private final Path directory;
  private final int round;

  /** `round` is 0 for an empty directory. */
  Handover(Check check, Path directory, int round) {
    this.check = check;
    this.directory = directory;
    this.round = round;
  }

  /** A write; without a value it is a deletion. */
  private record Write<K>(K key, Long value) {}

  /** The drawn write of a round, the call that writes it, and all that is in the store. */
  private record Kind<S extends StateStore, K>(
      StoreBuilder<S> builder,
      Function<SplittableRandom, Write<K>> draw,
      Function<S, BiConsumer<K, Long>> put,
      Function<S, List<KeyValueIterator<K, Long>>> all) {}

  void run() {
    handOver("key-value store", keyValues());
    handOver("window store", windows());
    handOver("session store", sessions());
  }

  /** Compares what is there with the writes of the rounds before, writes those of this round, and compares again. */
  private <S extends StateStore, K> void handOver(String name, Kind<S, K> kind) {
    Place place = new Place(directory).with(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Settings.class);
    Subject subject = new Subject(check, name, place);
    Map<String, Long> model = new TreeMap<>();
    for (int before = 0; before < round; before++) {
      writes(before, kind).forEach(write -> keep(model, write));
    }
    S store = place.open(kind.builder);
    compare(subject, "before round " + round, model, kind.all.apply(store));
    for (Write<K> write : writes(round, kind)) {
      kind.put.apply(store).accept(write.key, write.value);
      keep(model, write);
    }
    compare(subject, "after round " + round, model, kind.all.apply(store));
    store.close();
  }

  private static <K> List<Write<K>> writes(int round, Kind<?, K> kind) {
    SplittableRandom random = new SplittableRandom(round);
    List<Write<K>> writes = new ArrayList<>();
    for (int i = 0; i < WRITES; i++) {
      writes.add(kind.draw.apply(random));
    }
    return writes;
  }

  private static void keep(Map<String, Long> model, Write<?> write) {
    if (write.value == null) {
      model.remove(write.key.toString());
    } else {
      model.put(write.key.toString(), write.value);
    }
  }

  private static <K> void compare(Subject subject, String when, Map<String, Long> model, List<KeyValueIterator<K, Long>> all) {
    List<String> wanted = new ArrayList<>();
    model.forEach((key, value) -> wanted.add(key + "=" + value));
    List<String> found = new ArrayList<>();
    for (KeyValueIterator<K, Long> iterator : all) {
      try (iterator) {
        iterator.forEachRemaining(entry -> found.add(entry.key + "=" + entry.value));
      }
    }
    Collections.sort(wanted);
    Collections.sort(found);
    subject.same(when, wanted, found);
    subject.line(when, found);
  }

  private static <K> Write<K> draw(K key, SplittableRandom random) {
    return new Write<>(key, random.nextInt(4) == 0 ? null : random.nextLong(1_000_000));
  }

  private static String key(SplittableRandom random) {
    return "key-" + random.nextInt(KEYS);
  }

  private static Kind<KeyValueStore<String, Long>, String> keyValues() {
    return new Kind<>(
        Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("kept"), Serdes.String(), Serdes.Long()),
        random -> draw("key-" + random.nextInt(WRITES), random),
        store -> store::put,
        store -> List.of(store.all()));
  }

  private static Kind<WindowStore<String, Long>, Windowed<String>> windows() {
    long size = Windows.SIZE.toMillis();
    return new Kind<>(
        Stores.windowStoreBuilder(
            Stores.persistentWindowStore("windows", Windows.RETENTION, Windows.SIZE, false), Serdes.String(), Serdes.Long()),
        random -> {
          long start = (1000 + random.nextInt(90)) * size;
          return draw(new Windowed<>(key(random), new TimeWindow(start, start + size)), random);
        },
        store -> (key, value) -> store.put(key.key(), value, key.window().start()),
        store -> List.of(store.all()));
  }

  private static Kind<SessionStore<String, Long>, Windowed<String>> sessions() {
    return new Kind<>(
        Stores.sessionStoreBuilder(
            Stores.persistentSessionStore("sessions", Windows.RETENTION), Serdes.String(), Serdes.Long()),
        random -> {
          // Few sessions for a key, so that rounds write the same ones.
          long start = 60_000_000 + random.nextInt(50) * 10_000;
          return draw(new Windowed<>(key(random), new SessionWindow(start, start + 1000)), random);
        },
        store -> store::put,
        Handover::sessions);
  }

  private static List<KeyValueIterator<Windowed<String>, Long>> sessions(SessionStore<String, Long> store) {
    List<KeyValueIterator<Windowed<String>, Long>> all = new ArrayList<>();
    for (int key = 0; key < KEYS; key++) {
      all.add(store.fetch("key-" + key));
    }
    return all;
  }
}
