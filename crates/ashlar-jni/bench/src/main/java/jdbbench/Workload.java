package jdbbench;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** The workloads, by the names of the flag {@code --benchmarks}. */
enum Workload {
  /** Puts all entries in the order of their keys. */
  FILLSEQ,
  /** Puts as many entries as there are, with drawn keys: some come twice, some never. */
  FILLRANDOM,
  /** Reads all entries in order, with an iterator for each thread over a part of the keys. */
  READSEQ,
  /** Reads drawn keys. */
  READRANDOM,
  /** Reads drawn keys, while one more thread puts drawn entries at a limited rate. */
  READWHILEWRITING,
  /** Writes the memtables out, and waits until no flush and no compaction is due. Prints no result. */
  WAITFORCOMPACTION;

  /**
   * The workload of a name.
   *
   * @throws IllegalArgumentException there is none
   */
  static Workload named(String name) {
    for (Workload workload : values()) {
      if (workload.text().equals(name)) {
        return workload;
      }
    }
    throw new IllegalArgumentException("there is no benchmark '" + name + "': there are " + names());
  }

  static String names() {
    return Arrays.stream(values()).map(Workload::text).collect(Collectors.joining(", "));
  }

  String text() {
    return name().toLowerCase(Locale.ROOT);
  }

  boolean reads() {
    return this == READSEQ || this == READRANDOM || this == READWHILEWRITING;
  }
}
