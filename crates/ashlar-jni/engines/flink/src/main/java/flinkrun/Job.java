package flinkrun;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.CheckpointListener;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/** The job: numbers, a place where it may slow down or fail, keyed state, and a sink that keeps the last text of each key. */
final class Job {
  /** The slow part takes so long, if the job neither fails nor is stopped in it. */
  private static final long SLOW_MILLIS = 60_000;
  /** What the sink got, by key. The cluster runs in this process. */
  static final Map<String, String> RESULTS = new ConcurrentHashMap<>();
  /** Checkpoints that have completed since the start of the job. */
  static final AtomicInteger CHECKPOINTS = new AtomicInteger();
  private static volatile boolean isFailing;
  private static volatile boolean hasFailed;

  private final long records;
  private final long keys;
  private int parallelism = 2;
  /** The first record of the slow part. */
  private long slowFrom = Long.MAX_VALUE;
  private String restoreFrom;
  private Configuration more = new Configuration();

  Job(long records, long keys) {
    this.records = records;
    this.keys = keys;
  }

  Job parallelism(int to) {
    parallelism = to;
    return this;
  }

  Job slowFrom(long record) {
    slowFrom = record;
    return this;
  }

  Job restoredFrom(String path) {
    restoreFrom = path;
    return this;
  }

  Job with(Configuration configuration) {
    more = configuration;
    return this;
  }

  /** The graph; with {@code fails} the job fails once in its slow part, after two checkpoints. */
  JobGraph graph(Configuration base, boolean fails) {
    RESULTS.clear();
    CHECKPOINTS.set(0);
    isFailing = fails;
    hasFailed = false;
    Configuration configuration = new Configuration(base);
    configuration.addAll(more);
    StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
    env.setParallelism(parallelism);
    env.setMaxParallelism(128);
    long keyCount = keys;
    env.fromSource(new NumberSequenceSource(0, records - 1),
            WatermarkStrategy.<Long>forMonotonousTimestamps().withTimestampAssigner((number, before) -> number), "numbers")
        .setParallelism(1).uid("numbers")
        .map(new Faulty(slowFrom, Math.max(1, SLOW_MILLIS / Math.max(1, records - slowFrom)))).setParallelism(1).uid("faulty")
        .keyBy(number -> Long.remainderUnsigned(mixed(number), keyCount), Types.LONG)
        .process(new States()).uid("states")
        .sinkTo(new Kept()).uid("kept");
    JobGraph graph = env.getStreamGraph().getJobGraph();
    if (restoreFrom != null) {
      graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(restoreFrom, false));
    }
    return graph;
  }

  /** A number that differs from its neighbours in all bits. */
  static long mixed(long number) {
    long z = (number + 1) * 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** How many keys the sink has, and a sum over their texts. */
  static String results() {
    long sum = 0;
    for (String text : new TreeMap<>(RESULTS).values()) {
      for (int at = 0; at < text.length(); at++) {
        sum = sum * 31 + text.charAt(at);
      }
    }
    return "keys " + RESULTS.size() + ", digest " + Long.toHexString(sum);
  }

  /** Slows down from a record on, and fails there once if the job is to. */
  private static final class Faulty extends RichMapFunction<Long, Long> implements CheckpointListener {
    private static final long serialVersionUID = 1;
    private final long slowFrom;
    private final long pause;

    Faulty(long slowFrom, long pause) {
      this.slowFrom = slowFrom;
      this.pause = pause;
    }

    @Override
    public Long map(Long number) throws Exception {
      if (number >= slowFrom && !hasFailed) {
        if (isFailing && CHECKPOINTS.get() >= 2) {
          hasFailed = true;
          throw new IllegalStateException("a failure on purpose");
        }
        Thread.sleep(pause);
      }
      return number;
    }

    @Override
    public void notifyCheckpointComplete(long checkpoint) {
      CHECKPOINTS.incrementAndGet();
    }
  }

  /** Keeps the last text of each key. */
  private static final class Kept implements Sink<String> {
    private static final long serialVersionUID = 1;

    @Override
    public SinkWriter<String> createWriter(WriterInitContext context) {
      return new SinkWriter<>() {
        @Override
        public void write(String text, Context at) {
          RESULTS.put(text.substring(0, text.indexOf(':')), text);
        }

        @Override
        public void flush(boolean isEnd) {}

        @Override
        public void close() {}
      };
    }
  }
}
