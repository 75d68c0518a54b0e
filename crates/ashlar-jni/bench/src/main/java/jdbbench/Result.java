package jdbbench;

import java.util.Locale;

/**
 * What a workload did. {@code found} is -1 for a workload that writes. Bytes are those of the keys and values that were put or
 * found.
 */
record Result(
    long nanos,
    long done,
    long found,
    long bytes,
    int finished,
    int tasks,
    long cpuNanos,
    long peakKib,
    long puts) {

  /** The line of the measurements of 2014. Microseconds are those of the wall, over the operations of all threads. */
  String line(String name) {
    double seconds = nanos / 1e9;
    double micros = done == 0 ? 0 : seconds * 1e6 / done;
    double mib = bytes / 1048576.0 / Math.max(seconds, 1e-9);
    String count =
        found < 0
            ? String.format(Locale.ROOT, "%d ops done", done)
            : String.format(Locale.ROOT, "%d / %d found", found, done);
    return String.format(
        Locale.ROOT,
        "%-16s : %11.5f micros/op; %6.1f MB/s; %s;  %d / %d task(s) finished.",
        name,
        micros,
        mib,
        count,
        finished,
        tasks);
  }

  /** What the line does not say, for programs. */
  String details(String name) {
    return String.format(
        Locale.ROOT,
        "%-16s details: seconds=%.6f cpu_seconds=%.6f bytes=%d peak_kib=%d puts_beside=%d",
        name,
        nanos / 1e9,
        cpuNanos / 1e9,
        bytes,
        peakKib,
        puts);
  }
}
