package jdbbench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;

/** Runs a workload: threads that share its operations, measured from their common start to the end of the last one. */
final class Bench {
  private Bench() {}

  static Result run(Workload workload, Flags flags, Entries entries, Database database)
      throws IOException, InterruptedException {
    CountDownLatch start = new CountDownLatch(1);
    List<Task> tasks = tasks(workload, flags, entries, database, start);
    List<Thread> threads = new ArrayList<>();
    for (Task task : tasks) {
      threads.add(new Thread(task));
    }
    AtomicBoolean over = new AtomicBoolean();
    Task writer = new Task(Workload.FILLRANDOM, flags, entries, database, start, tasks.size(), 0, 0);
    Thread writing = new Thread(() -> writer.write(over));
    if (workload == Workload.READWHILEWRITING) {
      writing.start();
    }
    threads.forEach(Thread::start);
    long cpu = cpuNanos();
    long begun = System.nanoTime();
    start.countDown();
    for (Thread thread : threads) {
      thread.join();
    }
    long nanos = System.nanoTime() - begun;
    over.set(true);
    writing.join();
    return result(workload, tasks, writer, nanos, cpuNanos() - cpu);
  }

  private static List<Task> tasks(
      Workload workload, Flags flags, Entries entries, Database database, CountDownLatch start) {
    long num = flags.number("num");
    boolean drawnReads = workload == Workload.READRANDOM || workload == Workload.READWHILEWRITING;
    long operations = drawnReads && flags.number("reads") >= 0 ? flags.number("reads") : num;
    int threads = flags.small("threads");
    List<Task> tasks = new ArrayList<>();
    long first = 0;
    for (int id = 0; id < threads; id++) {
      // The first threads have one operation more, if the operations cannot be divided evenly.
      long end = first + operations / threads + (id < operations % threads ? 1 : 0);
      tasks.add(new Task(workload, flags, entries, database, start, id, first, end));
      first = end;
    }
    return tasks;
  }

  private static Result result(Workload workload, List<Task> tasks, Task writer, long nanos, long cpuNanos)
      throws IOException {
    long done = 0;
    long found = 0;
    long bytes = 0;
    int finished = 0;
    for (Task task : tasks) {
      done += task.done;
      found += task.found;
      bytes += task.bytes;
      finished += task.finished ? 1 : 0;
    }
    if (workload == Workload.READWHILEWRITING && !writer.finished) {
      finished = 0;
    }
    long count = workload.reads() ? found : -1;
    return new Result(nanos, done, count, bytes, finished, tasks.size(), cpuNanos, peakKib(), writer.done);
  }

  /** Processor time of all threads of the JVM, those of the database included. */
  private static long cpuNanos() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime();
  }

  /** The peak of resident memory so far, in KiB; -1 where the system does not tell. */
  private static long peakKib() throws IOException {
    Path status = Path.of("/proc/self/status");
    if (!Files.isReadable(status)) {
      return -1;
    }
    for (String line : Files.readAllLines(status)) {
      if (line.startsWith("VmHWM:")) {
        return Long.parseLong(line.replaceAll("\\D", ""));
      }
    }
    return -1;
  }
}
