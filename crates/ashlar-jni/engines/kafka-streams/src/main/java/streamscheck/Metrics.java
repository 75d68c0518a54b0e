package streamscheck;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
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

  private final Check check;
  private final Place place;

  Metrics(Check check, Place place) {
    this.check = check;
    this.place = place.with(StreamsConfig.METRICS_RECORDING_LEVEL_CONFIG, "DEBUG");
  }

  void run() {
    KeyValueStore<String, String> store =
        place.open(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("measured"), Serdes.String(), Serdes.String()));
    for (int i = 0; i < 3000; i++) {
      store.put("key " + i, "value " + i);
    }
    Place.commit(store);
    for (int i = 0; i < 1000; i++) {
      store.get("key " + i * 5);
      store.put("late " + i % 500, i % 3 == 0 ? null : "value " + i);
    }
    place.metrics().rocksDBMetricsRecordingTrigger().run();
    print();
    store.close();
  }

  private void print() {
    List<String> lines = new ArrayList<>();
    for (Map.Entry<MetricName, ? extends Metric> entry : place.metrics().metrics().entrySet()) {
      MetricName name = entry.getKey();
      boolean ofKafka = OF_KAFKA.stream().anyMatch(part -> name.name().contains(part));
      if (name.group().equals("stream-state-metrics") && !ofKafka) {
        Object value = entry.getValue().metricValue();
        boolean number = value instanceof Number;
        lines.add("metric " + name.name() + ": " + (FIXED.contains(name.name()) ? value : number ? "a number" : value));
        System.err.println("metric " + name.name() + ": " + value);
      }
    }
    Collections.sort(lines);
    lines.forEach(check::line);
  }
}
