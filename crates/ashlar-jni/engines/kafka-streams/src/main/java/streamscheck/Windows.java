package streamscheck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.LongFunction;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** A window store beside a sorted map. A segment of the store is a RocksDB database of its own. */
final class Windows<V> {
  static final Duration RETENTION = Duration.ofHours(2);
  static final Duration SIZE = Duration.ofMinutes(1);
  private static final int KEYS = 100;
  private static final long HOUR = 3_600_000;

  /** A segment has the windows that start in a half of the retention. */
  private static final long SEGMENT = RETENTION.toMillis() / 2;

  /** A window in the order of the store: segments by their times, in each the keys, and of each key the starts. */
  private record Window(String key, long start) implements Comparable<Window> {
    private static final Comparator<Window> ORDER =
        Comparator.<Window>comparingLong(window -> window.start / SEGMENT).thenComparing(Window::key).thenComparingLong(Window::start);

    @Override
    public int compareTo(Window other) {
      return ORDER.compare(this, other);
    }
  }

  private final Subject subject;
  private final Supplier<? extends StoreBuilder<? extends WindowStore<String, V>>> builder;
  private final LongFunction<V> value;
  private final Function<V, String> text;
  private final SplittableRandom random = new SplittableRandom(11);
  private final NavigableMap<Window, String> model = new TreeMap<>();
  private WindowStore<String, V> store;
  private long newest;

  Windows(
      Subject subject,
      Supplier<? extends StoreBuilder<? extends WindowStore<String, V>>> builder,
      LongFunction<V> value,
      Function<V, String> text) {
    this.subject = subject;
    this.builder = builder;
    this.value = value;
    this.text = text;
  }

  void run() {
    store = subject.place().open(builder.get());
    write(5000, 10 * HOUR);
    compare("written");
    Place.commit(store);
    store.close();
    store = subject.place().open(builder.get());
    // The newest time is not stored: the store has it again from the first write.
    put("key-000", newest, value.apply(1));
    compare("opened again");
    write(2500, 11 * HOUR + HOUR / 2);
    expire();
    compare("moved on");
    Place.commit(store);
    write(2500, 30 * HOUR);
    expire();
    compare("far later");
    store.close();
  }

  private void put(String key, long start, V fresh) {
    newest = Math.max(newest, start);
    store.put(key, fresh, start);
    if (fresh == null) {
      model.remove(new Window(key, start));
    } else {
      model.put(new Window(key, start), text.apply(fresh));
    }
  }

  /** Writes in the hour from `from` on, in any order. */
  private void write(int writes, long from) {
    for (int i = 0; i < writes; i++) {
      long start = from + random.nextInt(60) * SIZE.toMillis();
      put(key(random.nextInt(KEYS)), start, random.nextInt(6) == 0 ? null : value.apply(random.nextLong(1_000_000)));
    }
  }

  private static String key(int number) {
    return String.format("key-%03d", number);
  }

  /** The store answers for what is younger than its retention only. */
  private void expire() {
    model.keySet().removeIf(window -> window.start <= newest - RETENTION.toMillis());
  }

  private void compare(String when) {
    List<String> all = windowed(store.all());
    List<String> wanted = where(window -> true);
    subject.same("all", wanted, all);
    subject.same("backward all", reversed(wanted), windowed(store.backwardAll()));
    long oldest = newest - RETENTION.toMillis() + 1;
    for (int i = 0; i < 15; i++) {
      long from = oldest - HOUR + random.nextLong(4 * HOUR);
      spans(key(random.nextInt(KEYS)), from, from + random.nextLong(HOUR), key(random.nextInt(KEYS)));
    }
    for (Window window : model.keySet()) {
      subject.same("fetch", model.get(window), told(store.fetch(window.key, window.start)));
      Window beside = new Window(window.key, window.start + 1);
      subject.same("fetch beside", null, told(store.fetch(beside.key, beside.start)));
    }
    subject.line(when, all);
  }

  /** The windows that begin in [from, to], of one key, of a range of keys, of all. */
  private void spans(String key, long from, long to, String last) {
    Predicate<Window> timely = window -> window.start >= from && window.start <= to;
    List<String> one = where(timely.and(window -> window.key.equals(key)));
    subject.same("fetch of a key", one, single(key, store.fetch(key, from, to)));
    subject.same("backward fetch of a key", reversed(one), single(key, store.backwardFetch(key, from, to)));
    List<String> range = where(timely.and(window -> window.key.compareTo(key) >= 0 && window.key.compareTo(last) <= 0));
    subject.same("fetch of keys", range, windowed(store.fetch(key, last, from, to)));
    subject.same("backward fetch of keys", reversed(range), windowed(store.backwardFetch(key, last, from, to)));
    List<String> head = where(timely.and(window -> window.key.compareTo(key) <= 0));
    subject.same("fetch of the first keys", head, windowed(store.fetch(null, key, from, to)));
    List<String> all = where(timely);
    subject.same("fetch all", all, windowed(store.fetchAll(from, to)));
    subject.same("backward fetch all", reversed(all), windowed(store.backwardFetchAll(from, to)));
  }

  private String told(V found) {
    return found == null ? null : text.apply(found);
  }

  private List<String> where(Predicate<Window> wanted) {
    List<String> lines = new ArrayList<>();
    model.forEach((window, text) -> {
      if (wanted.test(window)) {
        lines.add(line(window.key, window.start, text));
      }
    });
    return lines;
  }

  private List<String> windowed(KeyValueIterator<Windowed<String>, V> iterator) {
    List<String> lines = new ArrayList<>();
    try (iterator) {
      while (iterator.hasNext()) {
        KeyValue<Windowed<String>, V> entry = iterator.next();
        subject.same("length of a window", SIZE.toMillis(), entry.key.window().end() - entry.key.window().start());
        lines.add(line(entry.key.key(), entry.key.window().start(), text.apply(entry.value)));
      }
    }
    return lines;
  }

  private List<String> single(String key, WindowStoreIterator<V> iterator) {
    List<String> lines = new ArrayList<>();
    try (iterator) {
      iterator.forEachRemaining(entry -> lines.add(line(key, entry.key, text.apply(entry.value))));
    }
    return lines;
  }

  private static String line(String key, long start, String text) {
    return key + "@" + start + "=" + text;
  }

  static List<String> reversed(List<String> lines) {
    List<String> copy = new ArrayList<>(lines);
    Collections.reverse(copy);
    return copy;
  }
}
