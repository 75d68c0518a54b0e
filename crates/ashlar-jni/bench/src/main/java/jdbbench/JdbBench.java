package jdbbench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * RocksJava's benchmark program: the workloads, flags and output lines of the measurements of 2014, on the jar of today.
 *
 * <p>The program uses the public classes of RocksDB's jar only, so the same class files run over RocksDB's native half and over
 * another one. One database is open during the whole run, and the benchmarks run on it in the given order.
 */
public final class JdbBench {
  private JdbBench() {}

  public static void main(String[] words) {
    Flags flags;
    List<Workload> workloads;
    try {
      flags = Flags.parse(words, System.err::println);
      if (flags.is("help")) {
        System.out.print(Flags.help());
        return;
      }
      workloads = workloads(flags);
      if (flags.is("disable_auto_compactions") && workloads.contains(Workload.WAITFORCOMPACTION)) {
        throw new IllegalArgumentException("waitforcompaction may never end with --disable_auto_compactions");
      }
      Database.compression(flags.text("compression_type"));
      Entries.of(flags);
    } catch (IllegalArgumentException refused) {
      System.err.println("jdb_bench: " + refused.getMessage());
      System.exit(2);
      return;
    }
    try {
      System.exit(run(flags, workloads) ? 0 : 1);
    } catch (Throwable failure) {
      System.err.println("jdb_bench: " + failure);
      // A thread of a benchmark may still run.
      Runtime.getRuntime().halt(1);
    }
  }

  private static List<Workload> workloads(Flags flags) {
    List<Workload> workloads = new ArrayList<>();
    for (String name : flags.text("benchmarks").split(",")) {
      workloads.add(Workload.named(name.trim()));
    }
    return workloads;
  }

  /** Runs all benchmarks. False: a task of one of them failed. */
  private static boolean run(Flags flags, List<Workload> workloads)
      throws RocksDBException, IOException, InterruptedException {
    Entries entries = Entries.of(flags);
    RocksDB.loadLibrary();
    boolean finished = true;
    try (Database database = Database.open(flags)) {
      head(flags);
      for (Workload workload : workloads) {
        if (workload == Workload.WAITFORCOMPACTION) {
          database.waitForCompaction();
          continue;
        }
        Result result = Bench.run(workload, flags, entries, database);
        System.out.println(result.line(workload.text()));
        if (flags.is("details")) {
          System.out.println(result.details(workload.text()));
        }
        finished &= result.finished() == result.tasks();
      }
      if (flags.is("statistics")) {
        System.out.print(database.statistics(flags.is("histogram")));
      }
    }
    return finished;
  }

  private static void head(Flags flags) throws IOException {
    long each = flags.number("key_size") + flags.number("value_size");
    double mib = (double) each * flags.number("num") / (1 << 20);
    System.out.printf(Locale.ROOT, "RocksDB's jar:   %s%n", RocksDB.rocksdbVersion());
    System.out.printf(Locale.ROOT, "Native half:     %s%n", nativeHalf());
    System.out.printf(Locale.ROOT, "Keys:            %d bytes each%n", flags.number("key_size"));
    System.out.printf(
        Locale.ROOT,
        "Values:          %d bytes each, compressible to %s%n",
        flags.number("value_size"),
        flags.text("compression_ratio"));
    System.out.printf(Locale.ROOT, "Entries:         %d%n", flags.number("num"));
    System.out.printf(Locale.ROOT, "RawSize:         %.1f MB%n", mib);
    System.out.printf(Locale.ROOT, "Compression:     %s%n", flags.text("compression_type"));
    System.out.println("------------------------------------------------");
  }

  /** The file of the native half that the JVM has mapped; "unknown" where the system does not tell. */
  private static String nativeHalf() throws IOException {
    Path maps = Path.of("/proc/self/maps");
    if (!Files.isReadable(maps)) {
      return "unknown";
    }
    for (String line : Files.readAllLines(maps)) {
      if (line.contains("librocksdbjni") && line.contains("/")) {
        return line.substring(line.indexOf('/'));
      }
    }
    return "unknown";
  }
}
