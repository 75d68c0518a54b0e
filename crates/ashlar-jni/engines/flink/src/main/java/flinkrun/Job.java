package flinkrun;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
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

/** The job: numbers, a place where it may slow down or fail, keyed state, and a sink that keeps all rows. */
final class Job {
  /** The slow part takes so long, if the job neither fails nor is stopped in it. */
  private static final long SLOW_MILLIS = 60_000;
  /** What the sink got. The cluster runs in this process. */
  private static final Queue<String> ROWS = new ConcurrentLinkedQueue<>();
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

  private Job copy() {
    Job copy = new Job(records, keys);
    copy.parallelism = parallelism;
    copy.slowFrom = slowFrom;
    copy.restoreFrom = restoreFrom;
    copy.more = more;
    return copy;
  }

  Job parallelism(int to) {
    Job copy = copy();
    copy.parallelism = to;
    return copy;
  }

  Job slowFrom(long record) {
    Job copy = copy();
    copy.slowFrom = record;
    return copy;
  }

  Job restoredFrom(String path) {
    Job copy = copy();
    copy.restoreFrom = path;
    return copy;
  }

  Job with(Configuration configuration) {
    Job copy = copy();
    copy.more = configuration;
    return copy;
  }

  long records() {
    return records;
  }

  /** The graph; with {@code fails} the job fails once in its slow part, after two checkpoints. */
  JobGraph graph(Configuration base, boolean fails) {
    ROWS.clear();
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
        .keyBy(number -> key(number, keyCount), Types.LONG)
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

  static long key(long number, long keys) {
    return Long.remainderUnsigned(mixed(number), keys);
  }

  /** Compares the rows with the model; answers how many they are, and a sum over them. */
  String results() {
    List<String> rows = new ArrayList<>(ROWS);
    rows.sort(null);
    List<String> wanted = Model.rows(records, keys);
    if (!rows.equals(wanted)) {
      List<String> wrong = new ArrayList<>(rows);
      wrong.removeAll(wanted);
      throw new IllegalStateException(rows.size() + " rows for " + wanted.size() + ", of which no model has " + wrong);
    }
    long sum = 0;
    for (String row : rows) {
      for (int at = 0; at < row.length(); at++) {
        sum = sum * 31 + row.charAt(at);
      }
    }
    return "rows " + rows.size() + ", digest " + Long.toHexString(sum);
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

  /** Keeps all rows. */
  private static final class Kept implements Sink<String> {
    private static final long serialVersionUID = 1;

    @Override
    public SinkWriter<String> createWriter(WriterInitContext context) {
      return new SinkWriter<>() {
        @Override
        public void write(String row, Context at) {
          ROWS.add(row);
        }

        @Override
        public void flush(boolean isEnd) {}

        @Override
        public void close() {}
      };
    }
  }
}
