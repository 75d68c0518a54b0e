import java.nio.charset.StandardCharsets;
import org.rocksdb.RocksDBException;
import org.rocksdb.Status;

/** What the programs share: texts as bytes, and lines with the answers of calls, which are compared between native halves. */
abstract class Answers {
  interface Step {
    Object run() throws Exception;
  }

  static byte[] b(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String s(byte[] bytes) {
    return bytes == null ? "none" : new String(bytes, StandardCharsets.UTF_8);
  }

  /** Prints a line: the answer of the step, or the kind of its exception. */
  static void say(String what, Step step) {
    try {
      System.out.println(what + ": " + step.run());
    } catch (RocksDBException e) {
      Status status = e.getStatus();
      System.out.println(what + ": throws " + (status == null ? "no status" : status.getCodeString()));
    } catch (Exception e) {
      System.out.println(what + ": throws " + e.getClass().getName());
    }
  }
}
