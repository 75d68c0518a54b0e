package flinkrun;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** What the states of a key hold after its numbers, kept in memory. */
final class Model {
  private final List<String> notes = new ArrayList<>();
  private final Map<Integer, Long> sums = new TreeMap<>();
  private final Set<Long> timers = new HashSet<>();
  private long count;
  private long most = Long.MIN_VALUE;
  private long total;

  private Model() {}

  /** The sorted rows of a job. */
  static List<String> rows(long records, long keys) {
    Map<Long, Model> models = new TreeMap<>();
    for (long number = 0; number < records; number++) {
      models.computeIfAbsent(Job.key(number, keys), unseen -> new Model()).add(number);
    }
    List<String> rows = new ArrayList<>();
    models.forEach((key, model) -> rows.add(model.row(key)));
    rows.sort(null);
    return rows;
  }

  private void add(long number) {
    long value = States.value(number);
    count++;
    notes.add(States.note(number, value));
    if (value % States.CUT == 0 && notes.size() > States.KEPT) {
      notes.subList(0, notes.size() - States.KEPT).clear();
    }
    sums.merge(States.bucket(value), value, Long::sum);
    if (value % States.REMOVE == 1) {
      sums.remove(States.removed(value));
    }
    most = Math.max(most, value);
    total += value;
    timers.add(States.timer(number));
  }

  private String row(long key) {
    return States.row(key, count, timers.size(), notes, sums, most, (double) total / count);
  }
}
