package streamscheck;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** A session store beside a sorted map, and sessions that grow together as the aggregation of Kafka Streams does it. */
final class Sessions {
  private static final Duration RETENTION = Duration.ofHours(3);
  private static final int KEYS = 80;
  private static final long GAP = 60_000;
  private static final long HOUR = 3_600_000;
  /** A segment has the sessions that end in a half of the retention. */
  private static final long SEGMENT = RETENTION.toMillis() / 2;

  /** A session in the order of the store: segments by their times, in each the keys, and of each key the ends and the starts. */
  private record Session(String key, long start, long end) implements Comparable<Session> {
    private static final Comparator<Session> ORDER =
        Comparator.<Session>comparingLong(session -> session.end / SEGMENT)
            .thenComparing(Session::key)
            .thenComparingLong(Session::end)
            .thenComparingLong(Session::start);

    @Override
    public int compareTo(Session other) {
      return ORDER.compare(this, other);
    }
  }

  private final Subject subject;
  private final SplittableRandom random = new SplittableRandom(13);
  private final NavigableMap<Session, Long> model = new TreeMap<>();
  private SessionStore<String, Long> store;
  private long newest;

  Sessions(Subject subject) {
    this.subject = subject;
  }

  private static StoreBuilder<SessionStore<String, Long>> builder() {
    return Stores.sessionStoreBuilder(Stores.persistentSessionStore("sessions", RETENTION), Serdes.String(), Serdes.Long());
  }

  void run() {
    store = subject.place().open(builder());
    grow(2500, 20 * HOUR);
    compare("grown");
    Place.commit(store);
    remove();
    compare("some removed");
    store.close();
    store = subject.place().open(builder());
    grow(2500, 21 * HOUR);
    compare("opened again and grown");
    store.close();
  }

  /** Adds events; an event joins the sessions of its key that are at most a gap away. */
  private void grow(int events, long from) {
    for (int i = 0; i < events; i++) {
      String key = key(random.nextInt(KEYS));
      long time = from + random.nextLong(HOUR);
      newest = Math.max(newest, time);
      long start = time;
      long end = time;
      long count = 1;
      for (Map.Entry<Session, Long> near : near(key, time).entrySet()) {
        start = Math.min(start, near.getKey().start);
        end = Math.max(end, near.getKey().end);
        count += near.getValue();
        store.remove(windowed(near.getKey()));
        model.remove(near.getKey());
      }
      Session session = new Session(key, start, end);
      store.put(windowed(session), count);
      model.put(session, count);
    }
  }

  private Map<Session, Long> near(String key, long time) {
    Map<Session, Long> near = new TreeMap<>();
    List<String> found = new ArrayList<>();
    try (KeyValueIterator<Windowed<String>, Long> iterator = store.findSessions(key, time - GAP, time + GAP)) {
      iterator.forEachRemaining(entry -> {
        near.put(new Session(key, entry.key.window().start(), entry.key.window().end()), entry.value);
        found.add(line(entry.key, entry.value));
      });
    }
    subject.same("find near a time", where(overlap(key, time - GAP, time + GAP)), found);
    return near;
  }

  private void remove() {
    for (Session session : new ArrayList<>(model.keySet())) {
      if (random.nextInt(5) == 0) {
        store.remove(windowed(session));
        model.remove(session);
      }
    }
  }

  private static Windowed<String> windowed(Session session) {
    return new Windowed<>(session.key, new SessionWindow(session.start, session.end));
  }

  private static String key(int number) {
    return String.format("key-%03d", number);
  }

  private static Predicate<Session> overlap(String key, long earliestEnd, long latestStart) {
    return session -> session.key.equals(key) && session.end >= earliestEnd && session.start <= latestStart;
  }

  private void compare(String when) {
    List<String> all = new ArrayList<>();
    for (int number = 0; number < KEYS; number++) {
      String key = key(number);
      List<String> found = list(store.fetch(key));
      List<String> wanted = where(session -> session.key.equals(key));
      subject.same("fetch", wanted, found);
      subject.same("backward fetch", Windows.reversed(wanted), list(store.backwardFetch(key)));
      all.addAll(found);
    }
    model.forEach((session, count) ->
        subject.same("fetch session", count, store.fetchSession(session.key, session.start, session.end)));
    for (int i = 0; i < 15; i++) {
      String key = key(random.nextInt(KEYS));
      long from = newest - random.nextLong(2 * HOUR);
      long to = from + random.nextLong(HOUR);
      List<String> wanted = where(overlap(key, from, to));
      subject.same("find", wanted, list(store.findSessions(key, from, to)));
      subject.same("backward find", Windows.reversed(wanted), list(store.backwardFindSessions(key, from, to)));
      ranges(key, key(random.nextInt(KEYS)), from, to);
    }
    subject.line(when, all);
  }

  private void ranges(String key, String last, long from, long to) {
    Predicate<Session> inside = session -> session.key.compareTo(key) >= 0 && session.key.compareTo(last) <= 0;
    Predicate<Session> timely = session -> session.end >= from && session.start <= to;
    List<String> wanted = where(inside.and(timely));
    subject.same("find of keys", wanted, list(store.findSessions(key, last, from, to)));
    subject.same("backward find of keys", Windows.reversed(wanted), list(store.backwardFindSessions(key, last, from, to)));
    subject.same("fetch of keys", where(inside), list(store.fetch(key, last)));
    subject.same("backward fetch of keys", Windows.reversed(where(inside)), list(store.backwardFetch(key, last)));
  }

  private List<String> where(Predicate<Session> wanted) {
    List<String> lines = new ArrayList<>();
    model.forEach((session, count) -> {
      if (wanted.test(session)) {
        lines.add(line(windowed(session), count));
      }
    });
    return lines;
  }

  private static List<String> list(KeyValueIterator<Windowed<String>, Long> iterator) {
    List<String> lines = new ArrayList<>();
    try (iterator) {
      iterator.forEachRemaining(entry -> lines.add(line(entry.key, entry.value)));
    }
    return lines;
  }

  private static String line(Windowed<String> session, Long count) {
    return session.key() + "@" + session.window().start() + "-" + session.window().end() + "=" + count;
  }
}
