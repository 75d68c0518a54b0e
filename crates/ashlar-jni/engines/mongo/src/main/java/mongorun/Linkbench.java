package mongorun;

import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoDatabase;
import com.sun.management.OperatingSystemMXBean;
import engines.Program;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import mongorun.server.Server;
import org.bson.Document;

/**
 * A small form of Linkbench's request phase, with its mix of operations. Left out: the pages behind the first 10,000 links of a list, which
 * small graphs do not have, and the response times.
 */
final class Linkbench {
  private static final int[] TYPES = {123_456_789, 123_456_790};

  /** The operations and their percentages. */
  private enum Kind {
    ADD_LINK(8.9886601), DELETE_LINK(2.9907664), UPDATE_LINK(8.0122125), COUNT_LINK(4.8863567), MULTIGET_LINK(0.5261142),
    GET_LINKS_LIST(50.7119145), GET_NODE(12.9326683), ADD_NODE(2.5732789), UPDATE_NODE(7.366437), DELETE_NODE(1.0115914);

    private final double percent;

    Kind(double percent) {
      this.percent = percent;
    }

    static Kind drawn(double percents) {
      double rest = percents;
      for (Kind kind : values()) {
        rest -= kind.percent;
        if (rest < 0) {
          return kind;
        }
      }
      return GET_LINKS_LIST;
    }
  }

  /** What one client did, and a sum over its answers. */
  private static final class Done {
    private final long[] counts = new long[Kind.values().length];
    private long answers;

    void add(Kind kind, Object answer) {
      counts[kind.ordinal()]++;
      answers = answers * 1_000_003 + answer.hashCode();
    }
  }

  private final int nodes;
  private final Links links;
  private final Server server;
  private final AtomicLong added = new AtomicLong();

  private Linkbench(Server server, MongoDatabase database, int nodes) {
    this.server = server;
    this.nodes = nodes;
    links = new Links(database);
  }

  static int run(Path folder, int operations, int clients, int nodes) throws Exception {
    Beside beside = new Beside();
    try (Server server = new Server(folder, 0, false); MongoClient client = MongoClients.create(server.url())) {
      MongoDatabase database = client.getDatabase("linkbench");
      long begin = System.nanoTime();
      Linkbench bench = new Linkbench(server, database, nodes);
      bench.links.createIndexes();
      bench.links.load(nodes, TYPES, new Draws(7, nodes));
      Program.measured(String.format("linkbench load: %d nodes in %.2f s", nodes, seconds(begin)));
      beside.same("nodes without the right count after the load", 0L, bench.links.wrongCounts());
      bench.pings(database, operations / clients / 4, clients);
      bench.requests(operations, clients);
      beside.same("nodes without the right count", 0L, bench.links.wrongCounts());
      beside.same("nodes", nodes + bench.added.get(), bench.links.nodes());
    }
    try (Server server = new Server(folder, 0, false); MongoClient client = MongoClients.create(server.url())) {
      Links again = new Links(client.getDatabase("linkbench"));
      beside.same("nodes without the right count, opened again", 0L, again.wrongCounts());
    }
    Program.measured("linkbench directory: " + size(folder) + " bytes");
    return beside.differences();
  }

  private static double seconds(long begin) {
    return (System.nanoTime() - begin) / 1e9;
  }

  private static double cpuSeconds() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getProcessCpuTime() / 1e9;
  }

  private static long size(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
    }
  }

  /** What a client does with its number. */
  private interface Work<T> {
    T run(int client) throws Exception;
  }

  private static <T> List<T> each(int clients, Work<T> work) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(clients);
    List<Future<T>> running = new ArrayList<>();
    for (int client = 0; client < clients; client++) {
      int number = client;
      running.add(threads.submit(() -> work.run(number)));
    }
    List<T> answers = new ArrayList<>();
    for (Future<T> one : running) {
      answers.add(one.get());
    }
    threads.shutdown();
    return answers;
  }

  /** Round trips that reach no storage: what the transport alone takes. */
  private void pings(MongoDatabase database, int count, int clients) throws Exception {
    // The first ones find the code cold.
    for (String when : List.of("first", "next")) {
      long begin = System.nanoTime();
      each(clients, client -> {
        for (int ping = 0; ping < count; ping++) {
          database.runCommand(new Document("ping", 1));
        }
        return null;
      });
      Program.measured(String.format("linkbench %s round trips without storage: %.0f/s", when, count * clients / seconds(begin)));
    }
  }

  private void requests(int operations, int clients) throws Exception {
    double storage = server.storageSeconds();
    double cpu = cpuSeconds();
    long begin = System.nanoTime();
    List<Done> all = each(clients, client -> client(operations / clients, client));
    double took = seconds(begin);
    Program.measured(String.format("linkbench: %d operations by %d clients in %.2f s, %.0f operations/s, %.2f s of processors",
        operations / clients * clients, clients, took, operations / clients * clients / took, cpuSeconds() - cpu));
    Program.measured(String.format("linkbench: %.1f %% of the clients' time in RocksDB",
        100 * (server.storageSeconds() - storage) / (took * clients)));
    for (Kind kind : Kind.values()) {
      MongoRun.say(kind + ": " + all.stream().mapToLong(done -> done.counts[kind.ordinal()]).sum());
    }
    if (clients == 1) {
      MongoRun.say("answers: digest " + Long.toHexString(all.get(0).answers));
    }
  }

  private Done client(int operations, int number) {
    Draws draws = new Draws(1000 + number, nodes);
    Done done = new Done();
    for (int operation = 0; operation < operations; operation++) {
      Kind kind = Kind.drawn(draws.random().nextDouble(100));
      Object answer = switch (kind) {
        case GET_NODE, ADD_NODE, UPDATE_NODE, DELETE_NODE -> node(kind, draws);
        default -> link(kind, draws);
      };
      done.add(kind, answer);
    }
    return done;
  }

  private Object node(Kind kind, Draws draws) {
    switch (kind) {
      case GET_NODE:
        Document found = links.node(draws.node());
        return found == null ? "none" : found.toJson();
      case ADD_NODE:
        links.addNode(draws.nodeData());
        return added.incrementAndGet();
      case UPDATE_NODE:
        return links.updateNode(draws.node(), draws.nodeData());
      default:
        boolean deleted = links.deleteNode(draws.anyNode());
        added.addAndGet(deleted ? -1 : 0);
        return deleted;
    }
  }

  private Object link(Kind kind, Draws draws) {
    long first = draws.linked();
    int at = draws.random().nextInt(TYPES.length);
    int degree = draws.degree(first, at, TYPES.length);
    int type = TYPES[at];
    return switch (kind) {
      case ADD_LINK -> links.put(first, type, draws.second(first, degree, 0.05), draws.linkData());
      case UPDATE_LINK -> links.put(first, type, draws.second(first, degree, 0.9), draws.linkData());
      case DELETE_LINK -> links.hide(first, type, draws.second(first, degree, 0.9));
      case COUNT_LINK -> links.count(first, type);
      case MULTIGET_LINK -> texts(links.several(first, type, seconds(draws, first, degree)));
      default -> texts(links.list(first, type));
    };
  }

  private static List<Long> seconds(Draws draws, long first, int degree) {
    Set<Long> seconds = new LinkedHashSet<>();
    int wanted = draws.several();
    for (int draw = 0; draw < 100 && seconds.size() < wanted; draw++) {
      seconds.add(draws.second(first, degree, 0.5));
    }
    return List.copyOf(seconds);
  }

  /** Without the ids that the driver gives the links: they are new in each run. */
  private static String texts(List<Document> found) {
    found.forEach(each -> each.remove("_id"));
    return Beside.digest(found);
  }
}
