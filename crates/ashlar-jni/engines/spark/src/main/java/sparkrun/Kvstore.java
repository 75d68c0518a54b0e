package sparkrun;

import static sparkrun.SparkRun.say;

import engines.Program;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.Stream;
import org.apache.spark.util.kvstore.KVIndex;
import org.apache.spark.util.kvstore.KVStoreIterator;
import org.apache.spark.util.kvstore.KVStoreView;
import org.apache.spark.util.kvstore.RocksDB;

/** Spark's key-value store of the status of jobs, on RocksDB. */
final class Kvstore {
  private Kvstore() {}

  /** A stored record with indexes. */
  public static final class Task {
    @KVIndex public String id;
    @KVIndex("stage") public int stage;
    @KVIndex(value = "time", parent = "stage") public long time;
    public String text;

    public Task() {}

    Task(int number) {
      id = String.format("task-%07d", number);
      stage = number % 10;
      time = SparkRun.mixed(number) >>> 44;
      text = "text " + number;
    }

    @Override
    public String toString() {
      return id + " " + stage + " " + time + " " + text;
    }
  }

  /** What the store keeps beside its records. */
  public static final class About {
    public String name;
    public long version;
  }

  static void run(Path path, int records) throws Exception {
    long begin = System.nanoTime();
    double cpu = SparkRun.cpuSeconds();
    try (RocksDB store = new RocksDB(path.toFile())) {
      About about = new About();
      about.name = "run";
      about.version = 7;
      store.setMetadata(about);
      for (int number = 0; number < records; number++) {
        store.write(new Task(number));
      }
      List<Task> again = new ArrayList<>();
      for (int number = 0; number < records; number += 3) {
        Task task = new Task(number);
        task.stage = 77;
        again.add(task);
      }
      store.writeAll(again);
      for (int number = 1; number < records; number += 7) {
        store.delete(Task.class, new Task(number).id);
      }
      views(store);
    }
    // A store that is there is opened again, and Spark checks the version in it.
    try (RocksDB store = new RocksDB(path.toFile())) {
      say("kvstore again: " + store.getMetadata(About.class).name + ", " + store.count(Task.class) + " tasks");
      say("kvstore removed by index: " + store.removeAllByIndexValues(Task.class, "stage", List.of(3, 77)));
      views(store);
    }
    double seconds = (System.nanoTime() - begin) / 1e9;
    try (Stream<Path> files = Files.walk(path)) {
      long bytes = files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
      Program.measured(String.format("kvstore: %d records in %.2f s, %.2f s of processors, %d bytes", records, seconds,
          SparkRun.cpuSeconds() - cpu, bytes));
    }
  }

  private static void views(RocksDB store) throws Exception {
    say("kvstore count: " + store.count(Task.class) + ", stage 5 " + store.count(Task.class, "stage", 5) + ", stage 77 "
        + store.count(Task.class, "stage", 77));
    say("kvstore read: " + read(store, 4) + ", " + read(store, 8) + ", " + read(store, 9));
    say("kvstore all: " + listed(store.view(Task.class)));
    say("kvstore reverse: " + listed(store.view(Task.class).reverse().max(50)));
    say("kvstore range: " + listed(store.view(Task.class).first("task-0000100").last("task-0000200")));
    say("kvstore by stage: " + listed(store.view(Task.class).index("stage").first(4).last(6)));
    say("kvstore by stage, reverse: " + listed(store.view(Task.class).index("stage").reverse().first(6).skip(5).max(20)));
    say("kvstore by time in a stage: " + listed(store.view(Task.class).index("time").parent(4)));
    say("kvstore by time in a stage, reverse: " + listed(store.view(Task.class).index("time").parent(5).reverse().first(1L << 18)));
    try (KVStoreIterator<Task> tasks = store.view(Task.class).closeableIterator()) {
      say("kvstore skip: " + tasks.skip(100) + ", next " + tasks.next());
    }
  }

  private static String read(RocksDB store, int number) throws Exception {
    try {
      return store.read(Task.class, new Task(number).id).toString();
    } catch (NoSuchElementException e) {
      return "none";
    }
  }

  private static String listed(KVStoreView<Task> view) throws Exception {
    List<String> lines = new ArrayList<>();
    try (KVStoreIterator<Task> tasks = view.closeableIterator()) {
      while (tasks.hasNext()) {
        lines.add(tasks.next().toString());
      }
    } catch (IOException e) {
      lines.add("fails with " + e);
    }
    return SparkRun.digest(lines);
  }
}
