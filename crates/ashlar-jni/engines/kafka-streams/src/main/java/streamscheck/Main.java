package streamscheck;

import engines.Program;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.rocksdb.RocksDB;

/**
 * Kafka Streams over a native half of RocksDB: `Main DIRECTORY PART [RECORDS or ROUND]`, with PART `stores`, `driver`, `broker` or
 * `handover`.
 *
 * <p>`stores` compares each kind of state store with a model in memory. `driver` runs a topology in Kafka's test driver. `broker`
 * runs it on a broker, restarts it and restores its state, and measures. `handover`, with the number of the round from 0 on as the
 * last word, goes on with the stores that the round before left in the same directory.
 */
public final class Main {
  private Main() {}

  public static void main(String[] words) {
    Program.run(words, Main::run);
  }

  private static int run(String[] words) throws Exception {
    if (words.length < 2 || words.length > 3) {
      System.err.println("usage: Main DIRECTORY stores|driver|broker|handover [RECORDS or ROUND]");
      return 2;
    }
    RocksDB.loadLibrary();
    Program.measured("Kafka " + AppInfoParser.getVersion() + ", the native half calls itself " + RocksDB.rocksdbVersion());
    Check check = new Check();
    Path directory = Path.of(words[0]);
    int records = words.length > 2 ? Integer.parseInt(words[2]) : 0;
    switch (words[1]) {
      case "stores" -> stores(check, directory);
      case "driver" -> new Driver(check, directory, records == 0 ? 300 : records).run();
      case "handover" -> new Handover(check, directory, records).run();
      case "broker" -> new Restarts(check, directory, records == 0 ? 200_000 : records).run();
      default -> throw new IllegalArgumentException("there is no part " + words[1]);
    }
    check.line("differences from the model: " + check.differences());
    check.line("end");
    return check.differences() == 0 ? 0 : 1;
  }

  private static void stores(Check check, Path directory) {
    for (boolean tuned : new boolean[] {false, true}) {
      String with = tuned ? " with other settings" : "";
      Path below = directory.resolve(tuned ? "tuned" : "plain");
      keyValues(check, with, below, tuned);
      windows(check, with, below, tuned);
      new Sessions(subject(check, "session store" + with, below, tuned)).run();
      new Versions(subject(check, "versioned store" + with, below, tuned)).run();
      new Metrics(subject(check, "metrics" + with, below, tuned)).run();
    }
  }

  private static Subject subject(Check check, String name, Path directory, boolean tuned) {
    Place place = new Place(directory);
    return new Subject(check, name, tuned ? place.with(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Settings.class) : place);
  }

  private static void keyValues(Check check, String with, Path directory, boolean tuned) {
    new KeyValues<byte[]>(
            subject(check, "key-value store" + with, directory, tuned),
            () -> Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("plain"), Serdes.Bytes(), Serdes.ByteArray()),
            (bytes, time) -> bytes,
            (bytes, time) -> bytes,
            Check::hex)
        .run();
    new KeyValues<ValueAndTimestamp<byte[]>>(
            subject(check, "timestamped store" + with, directory, tuned),
            () -> Stores.timestampedKeyValueStoreBuilder(
                Stores.persistentTimestampedKeyValueStore("timestamped"), Serdes.Bytes(), Serdes.ByteArray()),
            ValueAndTimestamp::make,
            (bytes, time) -> ByteBuffer.allocate(Long.BYTES + bytes.length).putLong(time).put(bytes).array(),
            found -> Check.hex(found.value()) + "@" + found.timestamp())
        .run();
  }

  private static void windows(Check check, String with, Path directory, boolean tuned) {
    Duration retention = Windows.RETENTION;
    new Windows<Long>(
            subject(check, "window store" + with, directory, tuned),
            () -> Stores.windowStoreBuilder(
                Stores.persistentWindowStore("windows", retention, Windows.SIZE, false), Serdes.String(), Serdes.Long()),
            number -> number,
            String::valueOf)
        .run();
    new Windows<ValueAndTimestamp<Long>>(
            subject(check, "timestamped window store" + with, directory, tuned),
            () -> Stores.timestampedWindowStoreBuilder(
                Stores.persistentTimestampedWindowStore("timed", retention, Windows.SIZE, false), Serdes.String(), Serdes.Long()),
            number -> ValueAndTimestamp.make(number, number + 5),
            found -> found.value() + "@" + found.timestamp())
        .run();
  }
}
