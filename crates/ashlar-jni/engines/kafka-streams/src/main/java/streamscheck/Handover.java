package streamscheck;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Stores that one run leaves in a directory and another run, over another native half, finds there and goes on with. */
final class Handover {
  private static final int WRITES = 5000;

  private final Check check;
  private final Place place;

  Handover(Check check, Path directory) {
    this.check = check;
    this.place = new Place(directory).with(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Settings.class);
  }

  /** Compares what is there, writes more, and compares again. `round` is 0 for an empty directory. */
  void run(int round) {
    keyValues(round);
    windows(round);
    sessions(round);
  }

  private void say(String store, int round, List<String> lines) {
    check.line(store + " after round " + round + ": " + lines.size() + " entries, " + Check.digest(lines));
  }

  private void keyValues(int round) {
    KeyValueStore<String, String> store =
        place.open(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("kept"), Serdes.String(), Serdes.String()));
    for (int write = 0; write <= 1; write++) {
      if (write == 1) {
        SplittableRandom random = new SplittableRandom(round);
        for (int i = 0; i < WRITES; i++) {
          store.put("key-" + random.nextInt(WRITES), random.nextInt(4) == 0 ? null : "value " + i);
        }
      }
      List<String> lines = new ArrayList<>();
      try (var all = store.all()) {
        all.forEachRemaining(entry -> lines.add(entry.key + "=" + entry.value));
      }
      say("key-value store", round - 1 + write, lines);
    }
    store.close();
  }

  private void windows(int round) {
    WindowStore<String, Long> store =
        place.open(
            Stores.windowStoreBuilder(
                Stores.persistentWindowStore("windows", Windows.RETENTION, Windows.SIZE, false), Serdes.String(), Serdes.Long()));
    for (int write = 0; write <= 1; write++) {
      if (write == 1) {
        SplittableRandom random = new SplittableRandom(round);
        for (int i = 0; i < WRITES; i++) {
          long start = (1000 + random.nextInt(90)) * Windows.SIZE.toMillis();
          store.put("key-" + random.nextInt(100), (long) i, start);
        }
      }
      List<String> lines = new ArrayList<>();
      try (var all = store.all()) {
        all.forEachRemaining(entry -> lines.add(entry.key.key() + "@" + entry.key.window().start() + "=" + entry.value));
      }
      say("window store", round - 1 + write, lines);
    }
    store.close();
  }

  private void sessions(int round) {
    SessionStore<String, Long> store =
        place.open(
            Stores.sessionStoreBuilder(
                Stores.persistentSessionStore("sessions", Windows.RETENTION), Serdes.String(), Serdes.Long()));
    for (int write = 0; write <= 1; write++) {
      if (write == 1) {
        SplittableRandom random = new SplittableRandom(round);
        for (int i = 0; i < WRITES; i++) {
          long start = 60_000_000 + random.nextInt(1_000_000);
          store.put(new Windowed<>("key-" + random.nextInt(100), new SessionWindow(start, start + random.nextInt(1000))), (long) i);
        }
      }
      List<String> lines = new ArrayList<>();
      for (int key = 0; key < 100; key++) {
        try (var found = store.fetch("key-" + key)) {
          found.forEachRemaining(entry -> lines.add(entry.key + "=" + entry.value));
        }
      }
      say("session store", round - 1 + write, lines);
    }
    store.close();
  }
}
