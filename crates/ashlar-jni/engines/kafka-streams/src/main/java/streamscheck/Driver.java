package streamscheck;

import engines.Program;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/** The topology in Kafka's test driver, which commits after each record: before Kafka 4.3 every store flushes with each commit. */
final class Driver {
  private final Check check;
  private final Path directory;
  private final int events;
  /** Few users and long steps, so that windows count several events and clicks match some. */
  private final Application application = new Application(7, 250);

  Driver(Check check, Path directory, int events) {
    this.check = check;
    this.directory = directory;
    this.events = events;
  }

  void run() {
    Properties settings = Application.settings("localhost:1", directory.toString());
    // The driver's clock stands still.
    settings.put(StreamsConfig.MAX_TASK_IDLE_MS_CONFIG, 0L);
    settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, Settings.class);
    long begin = System.nanoTime();
    try (TopologyTestDriver driver = new TopologyTestDriver(Application.topology(() -> {}), settings)) {
      List<Application.Input> inputs = new ArrayList<>();
      // A user has a name from its first event on: the driver flushes for each name as well.
      Map<String, Application.Input> names = new HashMap<>();
      application.users().forEach(user -> names.put(user.key(), user));
      for (Application.Input input : application.events(0, events)) {
        Application.Input name = names.remove(input.key());
        if (name != null) {
          inputs.add(name);
        }
        inputs.add(input);
      }
      pipe(driver, inputs);
      double seconds = (System.nanoTime() - begin) / 1e9;
      Program.measured(String.format("driver: %d records in %.1f s", inputs.size(), seconds));
      compare(driver);
    }
  }

  private static void pipe(TopologyTestDriver driver, List<Application.Input> inputs) {
    Map<String, TestInputTopic<String, String>> topics = new HashMap<>();
    for (String topic : List.of(Application.USERS, Application.EVENTS, Application.CLICKS)) {
      topics.put(topic, driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()));
    }
    for (Application.Input input : inputs) {
      topics.get(input.topic()).pipeInput(input.key(), input.value(), input.time());
    }
  }

  private void compare(TopologyTestDriver driver) {
    List<String> counts = new ArrayList<>();
    try (KeyValueIterator<Windowed<String>, ValueAndTimestamp<Long>> all =
        driver.<String, Long>getTimestampedWindowStore(Application.COUNTS).all()) {
      while (all.hasNext()) {
        KeyValue<Windowed<String>, ValueAndTimestamp<Long>> entry = all.next();
        counts.add(Application.count(entry.key.key(), entry.key.window().start()) + entry.value.value());
      }
    }
    Application.sorted(counts);
    check.same("driver: counts", application.wantedCounts(events), counts);
    check.line("driver: " + counts.size() + " counts, " + Check.digest(counts));
    long most = counts.stream().mapToLong(line -> Long.parseLong(line.substring(line.indexOf('=') + 1))).max().orElse(0);
    check.same("driver: a window counts several events", true, most > 1);
    compare("joined", application.wantedJoined(events), output(driver, Application.JOINED));
    compare("matched", application.wantedMatched(events), output(driver, Application.MATCHED));
  }

  private void compare(String what, List<String> wanted, List<String> found) {
    check.same("driver: " + what, wanted, found);
    check.same("driver: some are " + what, false, found.isEmpty());
    check.line("driver: " + found.size() + " " + what + ", " + Check.digest(found));
  }

  private static List<String> output(TopologyTestDriver driver, String topic) {
    List<String> values = driver.createOutputTopic(topic, new StringDeserializer(), new StringDeserializer()).readValuesToList();
    return Application.sorted(new ArrayList<>(values));
  }
}
