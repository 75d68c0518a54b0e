package sparkrun;

import engines.Program;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * {@code SparkRun FOLDER [RECORDS [short]]}: Spark's kvstore and streaming queries in a folder; with the last word only those with
 * changelog checkpoints. Lines on standard output are the same over each native half; lines on standard error name the half and what
 * was measured.
 */
public final class SparkRun {
  private SparkRun() {}

  static void say(String line) {
    System.out.println(line);
  }

  public static void main(String[] args) {
    Program.run(args, SparkRun::run);
  }

  private static int run(String[] args) throws Exception {
    Path folder = Path.of(args[0]).toAbsolutePath();
    int records = args.length > 1 ? Integer.parseInt(args[1]) : 4000;
    Files.createDirectories(folder);
    Kvstore.run(folder.resolve("kvstore"), records);
    for (boolean changelog : args.length > 2 ? new boolean[] {true} : new boolean[] {false, true}) {
      Streaming.run(folder.resolve(changelog ? "changelog" : "snapshots"), records, changelog);
    }
    say("end");
    return 0;
  }

  /** The processor time of this process. */
  static double cpuSeconds() {
    return ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class).getProcessCpuTime() / 1e9;
  }

  /** A number that differs from its neighbours in all bits. */
  static long mixed(long number) {
    long z = (number + 1) * 0x9E3779B97F4A7C15L;
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** How many lines there are, and a sum over them. */
  static String digest(Iterable<String> lines) {
    long sum = 0;
    int count = 0;
    for (String line : lines) {
      count++;
      for (int at = 0; at < line.length(); at++) {
        sum = sum * 31 + line.charAt(at);
      }
    }
    return count + ", digest " + Long.toHexString(sum);
  }
}
