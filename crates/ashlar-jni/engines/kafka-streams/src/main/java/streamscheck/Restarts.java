package streamscheck;

import engines.Program;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/**
 * The topology on a broker: half of the events; then, after a restart in the same state directory, the others; then, with the state
 * directory deleted and restored from the changelogs, some more.
 */
final class Restarts {
  private static final int PARTITIONS = 2;
  private static final Duration PATIENCE = Duration.ofMinutes(8);

  private final Check check;
  private final Path state;
  private final Path broker;
  private final int events;
  private final Application application = new Application(5000, 10);

  Restarts(Check check, Path directory, int events) {
    this.check = check;
    this.state = directory.resolve("state");
    this.broker = directory.resolve("broker");
    this.events = events;
  }

  void run() throws Exception {
    try (Broker running = Broker.start(broker)) {
      running.create(
          PARTITIONS, Application.USERS, Application.EVENTS, Application.CLICKS, Application.JOINED, Application.MATCHED);
      int last = events + events / 20;
      check.same("records restored at the first start", 0L, round(running, "users", application.users(), 0));
      check.same(
          "records restored for the first half",
          0L,
          round(running, "first half", application.events(0, events / 2), events / 2));
      check.same(
          "records restored after a restart",
          0L,
          round(running, "after a restart", application.events(events / 2, events), events));
      delete(state);
      long restored = round(running, "after a restore", application.events(events, last), last);
      // One for each name, each count, and each record that joins keep.
      long kept = application.users().size() + events + application.events(0, events).size();
      check.same("some records are restored", true, restored > 0);
      check.same("records restored without a state directory", kept, restored);
      check.line("broker, restored without a state directory: " + restored + " records");
      output(running, last);
    }
  }

  /**
   * Sends inputs, lets the application process them, and compares the counts of all events [0, to). The number of records that
   * stores took from their changelogs.
   */
  private long round(Broker running, String name, List<Application.Input> inputs, int to) throws Exception {
    running.send(inputs);
    Pace pace = new Pace(inputs.size());
    Restored restored = new Restored();
    KafkaStreams streams =
        new KafkaStreams(Application.topology(pace::tick), Application.settings(running.servers(), state.toString()));
    streams.setGlobalStateRestoreListener(restored);
    streams.start();
    await(name + ": records", () -> pace.ticks() >= inputs.size());
    await(name + ": counts", () -> sum(counts(streams)) >= to);
    check.same(name + ": state", KafkaStreams.State.RUNNING, streams.state());
    List<String> counts = counts(streams);
    check.same(name + ": counts", application.wantedCounts(to), counts);
    check.line("broker, " + name + ": " + counts.size() + " counts, " + Check.digest(counts));
    check.same(name + ": close in time", true, streams.close(Duration.ofMinutes(1)));
    Program.measured(
        String.format(
            "%s: %.0f records/s, %.1f us of the stream thread for each, state %d bytes",
            name,
            pace.rate(),
            pace.microseconds(),
            Place.size(state)));
    Program.measured(String.format("%s: restored %d records in %.1f s", name, restored.total.get(), restored.seconds()));
    return restored.total.get();
  }

  private static List<String> counts(KafkaStreams streams) {
    List<String> counts = new ArrayList<>();
    var type = QueryableStoreTypes.<String, Long>timestampedWindowStore();
    var store = streams.store(StoreQueryParameters.fromNameAndType(Application.COUNTS, type));
    try (KeyValueIterator<Windowed<String>, ValueAndTimestamp<Long>> all = store.all()) {
      while (all.hasNext()) {
        KeyValue<Windowed<String>, ValueAndTimestamp<Long>> entry = all.next();
        counts.add(Application.count(entry.key.key(), entry.key.window().start()) + entry.value.value());
      }
    }
    return Application.sorted(counts);
  }

  private static long sum(List<String> counts) {
    return counts.stream().mapToLong(line -> Long.parseLong(line.substring(line.indexOf('=') + 1))).sum();
  }

  private void output(Broker running, int to) {
    compare("joined", application.wantedJoined(to), running.values(Application.JOINED, PARTITIONS));
    compare("matched", application.wantedMatched(to), running.values(Application.MATCHED, PARTITIONS));
  }

  private void compare(String what, List<String> wanted, List<String> found) {
    Application.sorted(found);
    check.same("broker: " + what, wanted, found);
    check.line("broker: " + found.size() + " " + what + ", " + Check.digest(found));
  }

  private static void await(String what, BooleanSupplier done) throws InterruptedException {
    long end = System.nanoTime() + PATIENCE.toNanos();
    while (!done.getAsBoolean()) {
      if (System.nanoTime() > end) {
        throw new IllegalStateException(what + " are not there after " + PATIENCE);
      }
      Thread.sleep(100);
    }
  }

  private static void delete(Path directory) throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }

  /** How fast records came by, without the last hundredth: at the end tasks wait for topics that have no more records. */
  private static final class Pace {
    private final AtomicLong ticks = new AtomicLong();
    private final long counted;
    private volatile long first;
    private volatile long last;
    private volatile long cpu;

    Pace(long records) {
      counted = records - records / 100;
    }

    void tick() {
      long tick = ticks.incrementAndGet();
      if (tick == 1) {
        first = System.nanoTime();
        cpu = -ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      } else if (tick == counted) {
        last = System.nanoTime();
        cpu += ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      }
    }

    long ticks() {
      return ticks.get();
    }

    /** The processor time of the thread that runs the tasks, for one record. */
    double microseconds() {
      return cpu / 1e3 / (counted - 1);
    }

    double rate() {
      return (counted - 1) / ((last - first) / 1e9);
    }
  }

  /** The records that stores took from changelogs. */
  private static final class Restored implements StateRestoreListener {
    private final AtomicLong total = new AtomicLong();
    private volatile long first;
    private volatile long last;

    @Override
    public void onRestoreStart(TopicPartition partition, String store, long from, long to) {
      first = first == 0 ? System.nanoTime() : first;
    }

    @Override
    public void onBatchRestored(TopicPartition partition, String store, long to, long records) {}

    @Override
    public void onRestoreEnd(TopicPartition partition, String store, long records) {
      total.addAndGet(records);
      last = System.nanoTime();
    }

    double seconds() {
      return (last - first) / 1e9;
    }
  }
}
