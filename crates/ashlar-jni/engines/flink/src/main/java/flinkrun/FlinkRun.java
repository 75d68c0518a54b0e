package flinkrun;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.CheckpointStatsSnapshot;

/**
 * {@code FlinkRun FOLDER [RECORDS [measure]]}: runs the jobs in a folder; with the last word only those that are measured. Lines on
 * standard output are the same over each native half; lines on standard error name the half and what was measured. The property
 * {@code flinkrun.managed} is the memory for the state of 4 slots, 96m without it.
 */
public final class FlinkRun {
  private FlinkRun() {}

  private static void say(String line) {
    System.out.println(line);
  }

  private static void measured(String what) {
    System.err.println("measured " + what);
  }

  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[0]).toAbsolutePath();
    long records = args.length > 1 ? Long.parseLong(args[1]) : 20_000;
    long keys = Math.max(100, records / 20);
    for (String name : List.of("local", "checkpoints", "savepoints", "tmp")) {
      Files.createDirectories(folder.resolve(name));
    }
    try (Cluster cluster = new Cluster(folder)) {
      plain(cluster, records, keys);
      if (args.length > 2) {
        plain(cluster, records, keys);
        plain(cluster, records, keys);
        savepoint(cluster, new Job(records, keys), records, SavepointFormatType.NATIVE, 2, false);
        end();
      }
      failure(cluster, records, keys);
      savepoint(cluster, new Job(records, keys), records, SavepointFormatType.CANONICAL, 2, false);
      savepoint(cluster, new Job(records, keys), records, SavepointFormatType.NATIVE, 2, false);
      savepoint(cluster, new Job(records, keys), records, SavepointFormatType.NATIVE, 3, false);
      savepoint(cluster, new Job(records, keys), records, SavepointFormatType.NATIVE, 3, true);
      savepoint(cluster, new Job(records, keys), records, SavepointFormatType.NATIVE, 1, true);
      retained(cluster, records, keys);
      Ttl.run(cluster, FlinkRun::say);
    }
    end();
  }

  private static void end() throws IOException {
    System.err.println("half " + half());
    say("end");
    // Threads of the cluster may live on.
    System.exit(0);
  }

  private static void plain(Cluster cluster, long records, long keys) throws Exception {
    long begin = System.nanoTime();
    double cpu = cpuSeconds();
    JobID job = cluster.start(new Job(records, keys).graph(cluster.configuration, false));
    cluster.finish(job);
    double seconds = (System.nanoTime() - begin) / 1e9;
    say("plain: " + Job.results());
    CheckpointStatsSnapshot checkpoints = cluster.statistics(job);
    measured(String.format("plain: %d records in %.2f s, %.0f records/s, %.2f s of processors, %d checkpoints", records,
        seconds, records / seconds, cpuSeconds() - cpu, checkpoints.getCounts().getNumberOfCompletedCheckpoints()));
  }

  private static void failure(Cluster cluster, long records, long keys) throws Exception {
    JobID job = cluster.start(new Job(records, keys).slowFrom(records - records / 10).graph(cluster.configuration, true));
    cluster.finish(job);
    CheckpointStatsSnapshot checkpoints = cluster.statistics(job);
    say("failure: restored " + checkpoints.getCounts().getNumberOfRestoredCheckpoints() + ", incremental " + cluster.wasIncremental(job)
        + ", " + Job.results());
    measured(String.format("failure: checkpoints of %d bytes on average, %d ms",
        checkpoints.getSummaryStats().getStateSizeStats().getAverage(),
        checkpoints.getSummaryStats().getEndToEndDurationStats().getAverage()));
  }

  private static void savepoint(
      Cluster cluster, Job job, long records, SavepointFormatType format, int parallelism, boolean ingests) throws Exception {
    Configuration more = new Configuration();
    more.setString("state.backend.rocksdb.use-ingest-db-restore-mode", String.valueOf(ingests));
    JobID first = cluster.start(job.slowFrom(records - records / 10).graph(cluster.configuration, false));
    cluster.awaitCheckpoints(first, 1);
    long begin = System.nanoTime();
    String path = cluster.stopWithSavepoint(first, format);
    double stopped = (System.nanoTime() - begin) / 1e6;
    Job again = job.slowFrom(Long.MAX_VALUE).restoredFrom(path).parallelism(parallelism).with(more);
    begin = System.nanoTime();
    cluster.finish(cluster.start(again.graph(cluster.configuration, false)));
    double restored = (System.nanoTime() - begin) / 1e6;
    String name = "savepoint " + format + " 2 to " + parallelism + (ingests ? " ingesting" : "");
    say(name + ": " + Job.results());
    measured(String.format("%s: %d bytes, stop %.0f ms, restore and rest %.0f ms", name, bytes(path), stopped, restored));
  }

  private static void retained(Cluster cluster, long records, long keys) throws Exception {
    Job job = new Job(records, keys).slowFrom(records / 2);
    JobID first = cluster.start(job.graph(cluster.configuration, false));
    cluster.awaitCheckpoints(first, 3);
    String path = cluster.cancelWithCheckpoint(first);
    JobID second = cluster.start(job.slowFrom(Long.MAX_VALUE).restoredFrom(path).parallelism(4).graph(cluster.configuration, false));
    cluster.finish(second);
    say("retained checkpoint 2 to 4: " + Job.results());
  }

  private static long bytes(String uri) throws IOException {
    try (Stream<Path> files = Files.walk(Path.of(java.net.URI.create(uri)))) {
      return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
    }
  }

  /** The processor time of this process. */
  private static double cpuSeconds() {
    return ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class).getProcessCpuTime() / 1e9;
  }

  /** The file of the native half. */
  private static String half() throws IOException {
    List<String> mapped = Files.readAllLines(Path.of("/proc/self/maps"));
    String line = mapped.stream().filter(found -> found.contains("librocksdbjni")).findFirst().orElse("none");
    return line.substring(Math.max(0, line.indexOf('/')));
  }
}
