package streamscheck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.SplittableRandom;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

/**
 * The topology, its input, and the output that it must have.
 *
 * <p>Events are counted by user in windows of ten seconds, joined with a table of users, and joined with clicks of the same user at
 * most five seconds away. The times of a topic only grow, so nothing is late and the output is the same in every run.
 */
final class Application {
  static final String USERS = "users";
  static final String EVENTS = "events";
  static final String CLICKS = "clicks";
  static final String JOINED = "joined";
  static final String MATCHED = "matched";
  static final String COUNTS = "counts";

  private static final long HOUR = 3_600_000;

  /** The hour before this one. Brokers delete records of changelogs by their times, so old ones would be lost. */
  private static final long START = (System.currentTimeMillis() / HOUR - 1) * HOUR;

  private static final long WINDOW = 10_000;
  private static final long NEAR = 5_000;
  private static final int VALUE_BYTES = 200;
  private static final int EVENTS_A_CLICK = 10;

  /** A record of an input topic. */
  record Input(String topic, String key, String value, long time) {}

  private final int users;
  private final int step;

  /** So many users, and an event each `step` milliseconds. */
  Application(int users, int step) {
    this.users = users;
    this.step = step;
  }

  static Properties settings(String servers, String directory) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "check");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, directory);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    // Without Kafka's cache on the heap every update reaches RocksDB.
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    settings.put("auto.offset.reset", "earliest");
    // A task waits for all of its topics, so that it takes their records in the order of their times.
    settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, 3000L);
    // An application that starts again need not wait until the broker misses its predecessor.
    settings.put("internal.leave.group.on.close", true);
    settings.put("session.timeout.ms", 10_000);
    return settings;
  }

  /** `seen` runs with each input. */
  static Topology topology(Runnable seen) {
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, String> users =
        builder
            .<String, String>stream(USERS)
            .peek((key, value) -> seen.run())
            .toTable(Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("names"));
    KStream<String, String> events = builder.<String, String>stream(EVENTS).peek((key, value) -> seen.run());
    KStream<String, String> clicks = builder.<String, String>stream(CLICKS).peek((key, value) -> seen.run());
    events
        .groupByKey()
        .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(WINDOW)))
        .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(COUNTS).withRetention(Duration.ofHours(1)));
    events.join(users, (event, name) -> joined(event, name)).to(JOINED);
    events
        .join(
            clicks,
            (event, click) -> matched(event, click),
            JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(NEAR)),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withStoreName("near"))
        .to(MATCHED);
    return builder.build();
  }

  private static String joined(String event, String name) {
    return name + " " + event.substring(0, 20);
  }

  private static String matched(String event, String click) {
    return click + " " + event.substring(0, 20);
  }

  private static String user(long number) {
    return String.format("user-%05d", number);
  }

  /** Four users of five have a name. */
  List<Input> users() {
    List<Input> named = new ArrayList<>();
    for (int number = 0; number < users; number++) {
      if (number % 5 != 0) {
        named.add(new Input(USERS, user(number), "name " + number, START));
      }
    }
    return named;
  }

  private String userOf(int event) {
    return user(new SplittableRandom(event).nextInt(users));
  }

  private long timeOf(int event) {
    return START + 1000 + (long) event * step;
  }

  private static String eventText(int event) {
    SplittableRandom random = new SplittableRandom(~(long) event);
    StringBuilder text = new StringBuilder(VALUE_BYTES).append(event).append(' ');
    while (text.length() < VALUE_BYTES) {
      text.append((char) ('0' + random.nextInt(75)));
    }
    return text.toString();
  }

  /** The events [from, to) and their clicks, ordered by time. */
  List<Input> events(int from, int to) {
    List<Input> inputs = new ArrayList<>();
    for (int event = from; event < to; event++) {
      inputs.add(new Input(EVENTS, userOf(event), eventText(event), timeOf(event)));
      if (event % EVENTS_A_CLICK == 0) {
        inputs.add(new Input(CLICKS, userOf(event), "click " + event, timeOf(event) + 5));
      }
    }
    return inputs;
  }

  /** The counts of the events [0, to), as sorted lines. */
  List<String> wantedCounts(int to) {
    Map<String, Long> counts = new TreeMap<>();
    for (int event = 0; event < to; event++) {
      long start = timeOf(event) / WINDOW * WINDOW;
      counts.merge(count(userOf(event), start), 1L, Long::sum);
    }
    List<String> lines = new ArrayList<>();
    counts.forEach((window, number) -> lines.add(window + number));
    return sorted(lines);
  }

  /** What stands before the number in a line of a count. */
  static String count(String user, long start) {
    return user + "@" + (start - START) + "=";
  }

  /** The joins of events [0, to) with names, as sorted lines. */
  List<String> wantedJoined(int to) {
    List<String> lines = new ArrayList<>();
    for (int event = 0; event < to; event++) {
      int number = Integer.parseInt(userOf(event).substring(5));
      if (number % 5 != 0) {
        lines.add(joined(eventText(event), "name " + number));
      }
    }
    return sorted(lines);
  }

  /** The joins of events [0, to) with clicks, as sorted lines. */
  List<String> wantedMatched(int to) {
    List<String> lines = new ArrayList<>();
    int reach = (int) (NEAR / step) + 1;
    for (int click = 0; click < to; click += EVENTS_A_CLICK) {
      String user = userOf(click);
      for (int event = Math.max(0, click - reach); event < Math.min(to, click + reach + 1); event++) {
        boolean near = Math.abs(timeOf(event) - timeOf(click) - 5) <= NEAR;
        if (near && userOf(event).equals(user)) {
          lines.add(matched(eventText(event), "click " + click));
        }
      }
    }
    return sorted(lines);
  }

  /** Takes its lines, sorts them and answers them. */
  static List<String> sorted(List<String> lines) {
    Collections.sort(lines);
    return lines;
  }
}
