package mongorun.server;

import de.bwaldvogel.mongo.bson.Document;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.ToLongFunction;

/**
 * The part of an index that a query needs: ranges of keys with an entry for each document that the query finds, and maybe for others.
 * {@code fields} counts the fields of the index that the query narrows.
 */
record Plan(int fields, List<Range> ranges) {
  private static final int PAGE = 512;

  /** An index that can say what a query needs of it. */
  interface Index {
    Plan plan(Document query);
  }

  /** Keys from {@code from} to before {@code to}. */
  record Range(byte[] from, byte[] to) {}

  static Plan of(List<String> fields, Document query) {
    Map<String, List<Object>> conditions = new HashMap<>();
    collect(query, conditions);
    List<byte[]> starts = List.of(new byte[0]);
    for (int at = 0; at < fields.size(); at++) {
      String field = fields.get(at);
      List<Object> here = conditions.get(field);
      // Elements of one array may meet the conditions on two paths together, and then no single entry does.
      if (here == null || at > 0 && field.indexOf('.') >= 0) {
        return ended(at, starts);
      }
      List<?> wanted = here.stream().map(Plan::wanted).filter(Objects::nonNull).findFirst().orElse(null);
      if (wanted == null) {
        Range range = range(here, field.equals("_id"));
        return range == null ? ended(at, starts) : new Plan(at + 1, joined(starts, range));
      }
      List<byte[]> longer = new ArrayList<>();
      for (byte[] start : starts) {
        wanted.forEach(value -> longer.add(Bytes.join(start, Values.key(value))));
      }
      starts = longer;
    }
    return ended(fields.size(), starts);
  }

  /** The conditions on each field that all must hold, also those within {@code $and}. */
  private static void collect(Document query, Map<String, List<Object>> conditions) {
    query.forEach((field, condition) -> {
      if (field.equals("$and") && condition instanceof Collection<?> parts) {
        parts.forEach(part -> {
          if (part instanceof Document document) {
            collect(document, conditions);
          }
        });
      } else {
        conditions.computeIfAbsent(field, missing -> new ArrayList<>()).add(condition);
      }
    });
  }

  private static Plan ended(int fields, List<byte[]> starts) {
    List<Range> ranges = new ArrayList<>();
    if (fields > 0) {
      starts.forEach(start -> ranges.add(new Range(start, Bytes.after(start))));
    }
    return new Plan(fields, ranges);
  }

  private static List<Range> joined(List<byte[]> starts, Range range) {
    return starts.stream().map(start -> new Range(Bytes.join(start, range.from()), Bytes.join(start, range.to()))).toList();
  }

  /** The values of which a document must have one, or null if the condition does not list them. */
  private static List<?> wanted(Object condition) {
    if (Values.isScalar(condition)) {
      return List.of(condition);
    }
    if (condition instanceof Document operators) {
      if (Values.isScalar(operators.get("$eq"))) {
        return List.of(operators.get("$eq"));
      }
      if (operators.get("$in") instanceof Collection<?> values && values.stream().allMatch(Values::isScalar)) {
        return List.copyOf(values);
      }
    }
    return null;
  }

  /** The range of the conditions, or null. Two elements of an array may meet its two ends, so only a field without arrays uses both. */
  private static Range range(List<Object> conditions, boolean both) {
    Object low = null;
    Object high = null;
    for (Object condition : conditions) {
      if (condition instanceof Document operators) {
        low = low == null ? end(operators, "$gte", "$gt") : low;
        high = high == null ? end(operators, "$lte", "$lt") : high;
      }
    }
    if (low == null && high == null) {
      return null;
    }
    byte[] from = low == null ? null : Values.start(low);
    byte[] to = high == null ? null : Values.start(high);
    if (from != null && to != null && (!both || from[0] != to[0])) {
      to = null;
    }
    byte[] type = {from == null ? to[0] : from[0]};
    return new Range(from == null ? type : from, Bytes.after(to == null ? type : to));
  }

  private static Object end(Document operators, String with, String without) {
    Object value = operators.containsKey(with) ? operators.get(with) : operators.get(without);
    return Values.isOrdered(value) ? value : null;
  }

  /** The positions that entries of the ranges have, each once. */
  List<Long> positions(Space space, ToLongFunction<Store.Entry> position) {
    LinkedHashSet<Long> found = new LinkedHashSet<>();
    for (Range range : ranges) {
      byte[] from = range.from();
      List<Store.Entry> page;
      do {
        page = space.page(from, range.to(), PAGE);
        page.forEach(entry -> found.add(position.applyAsLong(entry)));
        from = page.isEmpty() ? from : Bytes.join(page.get(page.size() - 1).key(), new byte[1]);
      } while (page.size() == PAGE);
    }
    return new ArrayList<>(found);
  }
}
