package flinkrun;

import static engines.Program.measured;

import engines.Program;
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

  public static void main(String[] args) {
    Program.run(args, FlinkRun::run);
  }

  private static int run(String[] args) throws Exception {
    Path folder = Path.of(args[0]).toAbsolutePath();
    long records = args.length > 1 ? Long.parseLong(args[1]) : 20_000;
    Job job = new Job(records, Math.max(100, records / 20));
    Restores restores = new Restores();
    for (String name : List.of("local", "checkpoints", "savepoints", "tmp")) {
      Files.createDirectories(folder.resolve(name));
    }
    try (Cluster cluster = new Cluster(folder)) {
      plain(cluster, job);
      if (args.length > 2) {
        plain(cluster, job);
        plain(cluster, job);
        savepoint(cluster, job, restores, SavepointFormatType.NATIVE, 2, 0);
      } else {
        failure(cluster, job);
        savepoint(cluster, job, restores, SavepointFormatType.CANONICAL, 2, 0);
        savepoint(cluster, job, restores, SavepointFormatType.NATIVE, 2, 0);
        savepoint(cluster, job, restores, SavepointFormatType.NATIVE, 3, 0);
        // One of three subtasks, or the only one, has the state of both.
        savepoint(cluster, job, restores, SavepointFormatType.NATIVE, 3, 2);
        savepoint(cluster, job, restores, SavepointFormatType.NATIVE, 1, 2);
        retained(cluster, job);
        Ttl.run(cluster, FlinkRun::say);
      }
    }
    say("end");
    return 0;
  }

  private static void plain(Cluster cluster, Job job) throws Exception {
    long begin = System.nanoTime();
    double cpu = cpuSeconds();
    JobID id = cluster.start(job.graph(cluster.configuration, false));
    cluster.finish(id);
    double seconds = (System.nanoTime() - begin) / 1e9;
    say("plain: " + job.results());
    CheckpointStatsSnapshot checkpoints = cluster.statistics(id);
    measured(String.format("plain: %d records in %.2f s, %.0f records/s, %.2f s of processors, %d checkpoints", job.records(),
        seconds, job.records() / seconds, cpuSeconds() - cpu, checkpoints.getCounts().getNumberOfCompletedCheckpoints()));
  }

  private static void failure(Cluster cluster, Job plain) throws Exception {
    JobID id = cluster.start(plain.slowFrom(plain.records() - plain.records() / 10).graph(cluster.configuration, true));
    cluster.finish(id);
    CheckpointStatsSnapshot checkpoints = cluster.statistics(id);
    say("failure: restored " + checkpoints.getCounts().getNumberOfRestoredCheckpoints() + ", incremental " + cluster.wasIncremental(id)
        + ", " + plain.results());
    measured(String.format("failure: checkpoints of %d bytes on average, %d ms",
        checkpoints.getSummaryStats().getStateSizeStats().getAverage(),
        checkpoints.getSummaryStats().getEndToEndDurationStats().getAverage()));
  }

  /** Stops a job of two subtasks with a savepoint and restores it. With `imports` that many databases must be exported and imported. */
  private static void savepoint(
      Cluster cluster, Job plain, Restores restores, SavepointFormatType format, int parallelism, int imports) throws Exception {
    Configuration more = new Configuration();
    more.setString("state.backend.rocksdb.use-ingest-db-restore-mode", String.valueOf(imports > 0));
    JobID first = cluster.start(plain.slowFrom(plain.records() - plain.records() / 10).graph(cluster.configuration, false));
    cluster.awaitCheckpoints(first, 1);
    long begin = System.nanoTime();
    String path = cluster.stopWithSavepoint(first, format);
    double stopped = (System.nanoTime() - begin) / 1e6;
    restores.imported();
    Job again = plain.restoredFrom(path).parallelism(parallelism).with(more);
    begin = System.nanoTime();
    cluster.finish(cluster.start(again.graph(cluster.configuration, false)));
    double restored = (System.nanoTime() - begin) / 1e6;
    String name = "savepoint " + format + " 2 to " + parallelism;
    int imported = restores.imported();
    if (imported != imports) {
      throw new IllegalStateException(name + " imports " + imported + " databases, not " + imports);
    }
    say(name + ": imports " + imported + ", " + again.results());
    measured(String.format("%s, %d imports: %d bytes, stop %.0f ms, restore and rest %.0f ms", name, imported, bytes(path),
        stopped, restored));
  }

  private static void retained(Cluster cluster, Job plain) throws Exception {
    JobID first = cluster.start(plain.slowFrom(plain.records() / 2).graph(cluster.configuration, false));
    cluster.awaitCheckpoints(first, 3);
    String path = cluster.cancelWithCheckpoint(first);
    Job again = plain.restoredFrom(path).parallelism(4);
    cluster.finish(cluster.start(again.graph(cluster.configuration, false)));
    say("retained checkpoint 2 to 4: " + again.results());
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
}
