package mongorun;

import java.util.List;
import org.bson.Document;

/** Compares answers with a model, says a line for each step, and counts differences. */
final class Beside {
  private int differences;

  int differences() {
    return differences;
  }

  /** Says what a step answered, and compares it with what it must answer. */
  void same(String step, Object wanted, Object found) {
    MongoRun.say(step + ": " + found);
    check(step, wanted, found);
  }

  /** {@link #same}, of documents in this order; the order of fields is free. The line has their number and a sum over them. */
  void documents(String step, List<Document> wanted, List<Document> found) {
    MongoRun.say(step + ": " + digest(found));
    for (int at = 0; at < Math.min(wanted.size(), found.size()); at++) {
      if (!wanted.get(at).equals(found.get(at))) {
        check(step + ", document " + at, wanted.get(at), found.get(at));
        return;
      }
    }
    check(step + ", number of documents", wanted.size(), found.size());
  }

  private void check(String step, Object wanted, Object found) {
    if (!wanted.equals(found)) {
      differences++;
      System.err.println(step + " must be " + wanted + " and is " + found);
    }
  }

  static String digest(List<Document> documents) {
    long sum = 0;
    for (Document document : documents) {
      sum = sum * 1_000_003 + document.toJson().hashCode();
    }
    return documents.size() + ", digest " + Long.toHexString(sum);
  }
}
