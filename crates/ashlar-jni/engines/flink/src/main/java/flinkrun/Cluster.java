package flinkrun;

import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.AbstractCheckpointStats;
import org.apache.flink.runtime.checkpoint.CheckpointStatsSnapshot;
import org.apache.flink.runtime.checkpoint.CompletedCheckpointStats;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobmaster.JobResult;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;

/** A cluster of Flink in this process, whose state backend is RocksDB with incremental checkpoints. */
final class Cluster implements AutoCloseable {
  private static final long MOST_SECONDS = 300;
  final Configuration configuration = new Configuration();
  private final MiniCluster cluster;

  Cluster(Path folder) throws Exception {
    configuration.setString("state.backend.type", ClockedBackend.Factory.class.getName());
    configuration.setString("state.backend.rocksdb.localdir", folder.resolve("local").toString());
    configuration.setString("execution.checkpointing.incremental", "true");
    configuration.setString("execution.checkpointing.interval", "200 ms");
    configuration.setString("execution.checkpointing.dir", folder.resolve("checkpoints").toUri().toString());
    configuration.setString("execution.checkpointing.savepoint-dir", folder.resolve("savepoints").toUri().toString());
    configuration.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
    configuration.setString("io.tmp.dirs", folder.resolve("tmp").toString());
    configuration.setString("restart-strategy.type", "fixed-delay");
    configuration.setString("restart-strategy.fixed-delay.attempts", "3");
    configuration.setString("restart-strategy.fixed-delay.delay", "10 ms");
    configuration.setString("taskmanager.memory.managed.size", System.getProperty("flinkrun.managed", "96m"));
    configuration.setString("taskmanager.memory.network.min", "16m");
    configuration.setString("taskmanager.memory.network.max", "16m");
    configuration.setString("taskmanager.memory.task.heap.size", "256m");
    MiniClusterConfiguration with = new MiniClusterConfiguration.Builder()
        .setConfiguration(configuration).setNumTaskManagers(1).setNumSlotsPerTaskManager(4).withRandomPorts().build();
    cluster = new MiniCluster(with);
    cluster.start();
  }

  JobID start(JobGraph graph) throws Exception {
    return cluster.submitJob(graph).get(MOST_SECONDS, TimeUnit.SECONDS).getJobID();
  }

  /** Waits for the end of a job, which must be a good one. */
  void finish(JobID job) throws Exception {
    JobResult result = cluster.requestJobResult(job).get(MOST_SECONDS, TimeUnit.SECONDS);
    if (result.getSerializedThrowable().isPresent()) {
      ClassLoader loader = getClass().getClassLoader();
      throw new IllegalStateException("the job failed", result.getSerializedThrowable().get().deserializeError(loader));
    }
  }

  /** Waits until so many checkpoints have completed while the job runs. */
  void awaitCheckpoints(JobID job, int count) throws Exception {
    long end = System.nanoTime() + Duration.ofSeconds(MOST_SECONDS).toNanos();
    while (Job.CHECKPOINTS.get() < count) {
      JobStatus status = cluster.getJobStatus(job).get();
      if (status.isGloballyTerminalState() || System.nanoTime() > end) {
        throw new IllegalStateException("the job is " + status + " after " + Job.CHECKPOINTS + " checkpoints");
      }
      Thread.sleep(5);
    }
  }

  String stopWithSavepoint(JobID job, SavepointFormatType format) throws Exception {
    String path = cluster.stopWithSavepoint(job, null, false, format).get(MOST_SECONDS, TimeUnit.SECONDS);
    finish(job);
    return path;
  }

  /** Cancels a job; answers the path of its last checkpoint, which stays. */
  String cancelWithCheckpoint(JobID job) throws Exception {
    cluster.cancelJob(job).get(MOST_SECONDS, TimeUnit.SECONDS);
    cluster.requestJobResult(job).get(MOST_SECONDS, TimeUnit.SECONDS);
    return statistics(job).getHistory().getLatestCompletedCheckpoint().getExternalPath();
  }

  CheckpointStatsSnapshot statistics(JobID job) throws Exception {
    return cluster.getExecutionGraph(job).get().getCheckpointStatsSnapshot();
  }

  /** Whether a checkpoint of the job wrote less than the state that it holds. */
  boolean wasIncremental(JobID job) throws Exception {
    for (AbstractCheckpointStats one : statistics(job).getHistory().getCheckpoints()) {
      if (one instanceof CompletedCheckpointStats && one.getCheckpointedSize() < one.getStateSize()) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void close() throws Exception {
    cluster.close();
  }
}
