package sparkrun;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.expr;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.max;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.timestamp_seconds;
import static org.apache.spark.sql.functions.window;

import engines.Program;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.function.MapFunction;
import org.apache.spark.api.java.function.VoidFunction2;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StateOperatorProgress;
import org.apache.spark.sql.streaming.StreamingQuery;
import org.apache.spark.sql.streaming.StreamingQueryProgress;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.Trigger;

/** Streaming queries whose state is in RocksDB: files of numbers, a file per batch, with a restart in between. */
final class Streaming {
  private static final String SCHEMA = "id LONG, key LONG, at LONG, amount LONG";
  /** Records from which on a query reads 8 files in place of 4. */
  private static final int MANY = 2000;
  /** The rows that the query emitted. */
  private static final Queue<String> ROWS = new ConcurrentLinkedQueue<>();

  private Streaming() {}

  /** Makes a query of the rows. */
  private interface Query {
    Dataset<Row> of(Dataset<Row> rows);
  }

  /** Runs each query with a restart. The session must not be stopped: its maintenance of stores may wait for itself for minutes. */
  static void run(Path folder, int records, boolean changelog) throws Exception {
    SparkSession session = session(folder);
    session.conf().set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", changelog);
    run(session, folder, records, changelog, "aggregation", OutputMode.Update(),
        rows -> rows.groupBy("key").agg(count(lit(1)).as("count"), sum("amount").as("sum"), max("id").as("most")));
    run(session, folder, records, changelog, "dedup", OutputMode.Append(), rows -> rows.select("key", "amount").dropDuplicates());
    run(session, folder, records, changelog, "windows", OutputMode.Append(),
        rows -> timed(rows, "at").groupBy(window(col("time"), "60 seconds"), col("key")).agg(sum("amount").as("sum")));
    run(session, folder, records, changelog, "join", OutputMode.Append(), Streaming::joined);
    run(session, folder, records, changelog, "processor", OutputMode.Update(), Streaming::processed);
  }

  private static Dataset<Row> timed(Dataset<Row> rows, String column) {
    return rows.withColumn("time", timestamp_seconds(col(column))).withWatermark("time", "30 seconds");
  }

  private static Dataset<Row> joined(Dataset<Row> rows) {
    Dataset<Row> left = timed(rows.where("id % 3 = 0").select(col("id").as("left"), col("key"), col("at")), "at");
    Dataset<Row> right = timed(rows.where("id % 3 = 1").select(col("id").as("right"), col("key").as("same"), col("at")), "at");
    Column inTime = expr("r.time BETWEEN l.time AND l.time + INTERVAL 10 SECONDS");
    return left.alias("l").join(right.alias("r"), col("key").equalTo(col("same")).and(inTime)).select("left", "right", "key");
  }

  private static Dataset<Row> processed(Dataset<Row> rows) {
    return rows.as(Encoders.tuple(Encoders.LONG(), Encoders.LONG(), Encoders.LONG(), Encoders.LONG()))
        .groupByKey((MapFunction<scala.Tuple4<Long, Long, Long, Long>, Long>) row -> row._2(), Encoders.LONG())
        .transformWithState(new Processor(), TimeMode.None(), OutputMode.Update(), Encoders.STRING()).toDF("text");
  }

  private static void run(
      SparkSession session, Path folder, int records, boolean changelog, String name, OutputMode mode, Query query)
      throws Exception {
    Path place = folder.resolve(name);
    Files.createDirectories(place.resolve("in"));
    ROWS.clear();
    long begin = System.nanoTime();
    double cpu = SparkRun.cpuSeconds();
    List<Integer> batches = new ArrayList<>();
    String state = "";
    int files = records < MANY ? 4 : 8;
    for (int half = 0; half < 2; half++) {
      for (int file = half * files / 2; file < (half + 1) * files / 2; file++) {
        write(place, file, records / files);
      }
      // A query has its stores for itself: each start loads them from the checkpoint.
      StreamingQuery running = start(session, place, mode, query);
      running.awaitTermination();
      batches.add(running.recentProgress().length);
      state = rows(running);
    }
    double seconds = (System.nanoTime() - begin) / 1e9;
    String how = name + (changelog ? " with changelogs" : " with snapshots");
    List<String> emitted = new ArrayList<>(ROWS);
    emitted.sort(null);
    SparkRun.say(how + ": batches " + batches + ", state rows " + state + ", rows " + SparkRun.digest(emitted));
    // These queries give each of their rows once.
    if (emitted.isEmpty() || mode == OutputMode.Append() && new HashSet<>(emitted).size() < emitted.size()) {
      throw new IllegalStateException(how + " emits no rows, or some of them twice: " + emitted);
    }
    long bytes = bytes(place.resolve("checkpoint"));
    Program.measured(String.format("%s: %d records in %.2f s, %.2f s of processors, %d bytes of state", how, records, seconds,
        SparkRun.cpuSeconds() - cpu, bytes));
  }

  private static SparkSession session(Path folder) {
    String of = "spark.sql.streaming.stateStore.";
    return SparkSession.builder().master(new SparkConf().get("spark.master", "local[2]")).appName("spark_run")
        .config("spark.ui.enabled", false)
        .config("spark.local.dir", folder.resolve("local").toString())
        .config("spark.sql.warehouse.dir", folder.resolve("warehouse").toString())
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config(of + "providerClass", "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
        .config(of + "rocksdb.trackTotalNumberOfRows", true)
        .config(of + "minDeltasForSnapshot", 3)
        .config(of + "maintenanceInterval", "500ms")
        .getOrCreate();
  }

  private static StreamingQuery start(SparkSession session, Path place, OutputMode mode, Query query) throws Exception {
    Dataset<Row> rows = session.readStream().schema(SCHEMA).option("maxFilesPerTrigger", 1).csv(place.resolve("in").toString());
    VoidFunction2<Dataset<Row>, Long> keep = (batch, number) -> {
      for (Row row : batch.collectAsList()) {
        ROWS.add(row.toString());
      }
    };
    return query.of(rows).writeStream().outputMode(mode).trigger(Trigger.AvailableNow())
        .option("checkpointLocation", place.resolve("checkpoint").toString()).foreachBatch(keep).start();
  }

  /** The rows of state of each stateful operator after the last batch. */
  private static String rows(StreamingQuery query) {
    StreamingQueryProgress last = query.lastProgress();
    Map<String, Long> all = new TreeMap<>();
    for (StateOperatorProgress one : last.stateOperators()) {
      all.merge(one.operatorName(), one.numRowsTotal(), Long::sum);
    }
    return all.toString();
  }

  /** A file of records. Each is named so that Spark reads them in order. */
  private static void write(Path place, int file, int count) throws IOException {
    StringBuilder text = new StringBuilder();
    for (int at = 0; at < count; at++) {
      long id = (long) file * count + at;
      long drawn = SparkRun.mixed(id) >>> 1;
      text.append(id).append(',').append(drawn % Math.max(10, count / 4)).append(',').append(id * 600 / count).append(',')
          .append(drawn / 1000 % 5).append('\n');
    }
    Path to = place.resolve("in").resolve(String.format("%03d.csv", file));
    Files.writeString(to, text);
    to.toFile().setLastModified(1_700_000_000_000L + file * 1000L);
  }

  private static long bytes(Path folder) throws IOException {
    try (Stream<Path> all = Files.walk(folder)) {
      Stream<Path> files = all.filter(file -> file.toString().contains("/state/") && Files.isRegularFile(file));
      return files.mapToLong(file -> file.toFile().length()).sum();
    }
  }
}
