package streamscheck;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Objects;
import java.util.zip.CRC32;

/**
 * What a run says. Standard output has the lines that are the same over every native half. Standard error has the measures, the
 * estimates, and each answer that differs from the model.
 */
final class Check {
  private int differences;

  /** A line that every native half must print alike. */
  void line(String text) {
    System.out.println(text);
  }

  /** Notes a difference if the store's answer is another one than the model's. */
  void same(String what, Object wanted, Object found) {
    if (Objects.equals(wanted, found)) {
      return;
    }
    differences++;
    if (differences <= 20) {
      System.err.println("differs: " + what + ": wanted " + cut(wanted) + ", found " + cut(found));
    }
  }

  /** Notes a difference unless the call throws such an exception. */
  void fails(String what, Class<? extends Exception> kind, Runnable call) {
    try {
      call.run();
      same(what, kind.getSimpleName(), "no exception");
    } catch (RuntimeException thrown) {
      same(what, kind.getSimpleName(), kind.isInstance(thrown) ? kind.getSimpleName() : thrown.toString());
    }
  }

  int differences() {
    return differences;
  }

  private static String cut(Object value) {
    String text = String.valueOf(value);
    return text.length() <= 200 ? text : text.substring(0, 200) + "...";
  }

  static String hex(byte[] bytes) {
    return HexFormat.of().formatHex(bytes);
  }

  /** A short sum over texts in their order. */
  static String digest(Iterable<?> texts) {
    CRC32 sum = new CRC32();
    for (Object text : texts) {
      sum.update(text.toString().getBytes(StandardCharsets.UTF_8));
      sum.update(0);
    }
    return String.format("%08x", sum.getValue());
  }
}
