package engines;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * How each program of this directory runs. Standard output has the lines that are the same over every native half. Standard error names
 * the native halves that the JVM has mapped, and what was measured.
 */
public final class Program {
  private Program() {}

  /** What a program does with its words; the answer is the exit code. */
  public interface Body {
    int run(String[] words) throws Exception;
  }

  /** Runs the body and ends the JVM. Threads of an engine may still run, so neither they nor an error keep the JVM. */
  public static void run(String[] words, Body body) {
    int code = 1;
    try {
      code = body.run(words);
      report();
    } catch (Throwable failure) {
      code = 1;
      failure.printStackTrace();
    }
    System.out.flush();
    Runtime.getRuntime().halt(code);
  }

  /** A line that may differ between runs. */
  public static void measured(String what) {
    System.err.println("measured " + what);
  }

  private static void report() throws IOException {
    Files.readAllLines(Path.of("/proc/self/maps")).stream().filter(line -> line.contains("librocksdbjni"))
        .map(line -> line.substring(line.indexOf('/'))).distinct().forEach(file -> System.err.println("half " + file));
  }
}
