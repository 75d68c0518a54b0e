package streamscheck;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** The metrics that Kafka Streams reads from RocksDB: its properties, and sums of its statistics. */
final class Metrics {
  /** Metrics whose value is the same in every run; of the others the check is that there is a number. */
  private static final Set<String> FIXED =
      Set.of(
          "background-errors",
          "block-cache-capacity",
          "bytes-read-total",
          "bytes-written-total",
          "compaction-pending",
          "estimate-num-keys",
          "mem-table-flush-pending",
          "memtable-hit-ratio",
          "num-deletes-active-mem-table",
          "num-deletes-imm-mem-tables",
          "num-entries-active-mem-table",
          "num-entries-imm-mem-tables",
          "num-immutable-mem-table",
          "num-running-compactions",
          "num-running-flushes",
          "number-file-errors-total",
          "write-stall-duration-total");

  /** Parts of the names of metrics that Kafka Streams measures itself. */
  private static final List<String> OF_KAFKA =
      List.of("-latency-", "iterator", "put-rate", "get-rate", "delete-rate", "all-rate", "scan-rate", "absent-rate", "range-rate",
          "restore-rate", "flush-rate", "commit-rate");

  private final Subject subject;

  Metrics(Subject subject) {
    this.subject = subject;
    subject.place().with(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "DEBUG");
  }

  void run() {
    KeyValueStore<String, String> store =
        subject.place().open(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("measured"), Serdes.String(), Serdes.String()));
    for (int i = 0; i < 3000; i++) {
      store.put("key " + i, "value " + i);
    }
    Place.flush(store);
    for (int i = 0; i < 1000; i++) {
      store.get("key " + i * 5);
      store.put("late " + i % 500, i % 3 == 0 ? null : "value " + i);
    }
    subject.place().metrics().rocksDBMetricsRecordingTrigger().run();
    print();
    store.close();
  }

  private void print() {
    Map<String, Object> values = new TreeMap<>();
    for (Map.Entry<MetricName, ? extends Metric> entry : subject.place().metrics().metrics().entrySet()) {
      MetricName name = entry.getKey();
      boolean ofKafka = OF_KAFKA.stream().anyMatch(part -> name.name().contains(part));
      if (name.group().equals("stream-state-metrics") && !ofKafka) {
        Object value = entry.getValue().metricValue();
        values.put(name.name(), value);
        System.err.println("metric " + name.name() + ": " + value);
      }
    }
    values.forEach((name, value) ->
        subject.check().line("metric " + name + ": " + (FIXED.contains(name) || !(value instanceof Number) ? value : "a number")));
    double flushed = ((Number) values.get("memtable-bytes-flushed-total")).doubleValue();
    subject.same("a flush is counted", true, flushed > 0);
  }
}
