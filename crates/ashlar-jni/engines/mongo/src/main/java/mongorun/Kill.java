package mongorun;

import com.mongodb.MongoException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.Updates;
import engines.Program;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import mongorun.server.Server;
import org.bson.Document;

/** A server in a process of its own is killed while clients write; then each acknowledged write is there, and each document is whole. */
final class Kill {
  private static final int CLIENTS = 2;

  /** The last version of each document that the server acknowledged. */
  private final Map<Integer, Integer> acknowledged = new ConcurrentHashMap<>();
  /** Why a client ended: the server was killed, or something is wrong. */
  private volatile MongoException failure;
  private final AtomicInteger next = new AtomicInteger();
  private final Beside beside = new Beside();

  private Kill() {}

  static int run(Path folder, int documents, int rounds) throws Exception {
    Kill kill = new Kill();
    for (int round = 0; round < rounds; round++) {
      kill.write(folder, kill.acknowledged.size() + documents);
      kill.check(folder, round);
    }
    return kill.beside.differences();
  }

  private static Process start(Path folder) throws IOException {
    List<String> words = new ArrayList<>();
    words.add(ProcessHandle.current().info().command().orElse("java"));
    words.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    words.addAll(List.of("-cp", System.getProperty("java.class.path"), MongoRun.class.getName(), folder.toString(), "serve", "0", "piped"));
    // The pipe to its standard input ends with this process, so the server does not outlive it.
    return new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.DISCARD).start();
  }

  private void write(Path folder, int enough) throws Exception {
    Process process = start(folder);
    List<Thread> clients = new ArrayList<>();
    try (BufferedReader lines = process.inputReader()) {
      String line = String.valueOf(lines.readLine());
      if (!line.startsWith("serves ")) {
        throw new IllegalStateException("the server says " + line);
      }
      String url = line.substring("serves ".length());
      for (int client = 0; client < CLIENTS; client++) {
        Thread thread = new Thread(() -> client(url));
        thread.start();
        clients.add(thread);
      }
      while (acknowledged.size() < enough && clients.stream().anyMatch(Thread::isAlive)) {
        Thread.sleep(1);
      }
    } finally {
      process.destroyForcibly().waitFor();
    }
    for (Thread client : clients) {
      // It may look for a server that is gone.
      client.interrupt();
      client.join();
    }
    if (acknowledged.size() < enough) {
      throw new IllegalStateException("the clients ended after " + acknowledged.size() + " documents", failure);
    }
  }

  /** Inserts and updates until the server is gone. */
  private void client(String url) {
    try (MongoClient client = MongoClients.create(url)) {
      MongoCollection<Document> people = people(client);
      people.createIndex(Indexes.ascending("email"), new IndexOptions().unique(true));
      people.createIndex(Indexes.ascending("group"));
      while (true) {
        int id = next.getAndIncrement();
        people.insertOne(Steps.person(id).append("version", 0));
        acknowledged.put(id, 0);
        acknowledged.computeIfPresent(id / 2, (key, version) -> updated(people, key, version));
      }
    } catch (MongoException e) {
      failure = e;
    }
  }

  private static int updated(MongoCollection<Document> people, int id, int version) {
    people.updateOne(Filters.eq("_id", id), Updates.combine(Updates.set("email", id + "-" + (version + 1)), Updates.inc("version", 1),
        Updates.inc("group", 1L)));
    return version + 1;
  }

  private static MongoCollection<Document> people(MongoClient client) {
    return client.getDatabase("kill").getCollection("people");
  }

  private void check(Path folder, int round) throws Exception {
    try (Server server = new Server(folder, 0, false); MongoClient client = MongoClients.create(server.url())) {
      MongoCollection<Document> people = people(client);
      List<Document> all = people.find().into(new ArrayList<>());
      Map<Integer, Integer> found = new ConcurrentHashMap<>();
      all.forEach(each -> found.put(each.getInteger("_id"), each.getInteger("version")));
      long lost = acknowledged.entrySet().stream().filter(each -> found.getOrDefault(each.getKey(), -1) < each.getValue()).count();
      beside.same("round " + round + ": acknowledged writes that are lost", 0L, lost);
      long unknown = found.entrySet().stream().filter(each -> each.getValue() > acknowledged.getOrDefault(each.getKey(), -1) + 1).count();
      beside.same("round " + round + ": documents that no client wrote", 0L, unknown);
      long broken = all.stream().filter(each -> !each.equals(people.find(Filters.eq("email", each.get("email"))).first())).count();
      beside.same("round " + round + ": documents that their unique value does not find", 0L, broken);
      beside.same("round " + round + ": the groups have each document", true, Set.copyOf(all).equals(byGroups(people, all)));
      counts(client.getDatabase("kill"), round, all.size());
      // What was written but not acknowledged is there from here on.
      acknowledged.putAll(found);
      Program.measured("kill " + round + ": " + all.size() + " documents");
    }
  }

  private static Set<Document> byGroups(MongoCollection<Document> people, List<Document> all) {
    Set<Document> found = new HashSet<>();
    for (Object group : new HashSet<>(all.stream().map(each -> each.get("group")).toList())) {
      people.find(Filters.eq("group", group)).into(found);
    }
    return found;
  }

  private void counts(MongoDatabase database, int round, int documents) {
    Document validated = database.runCommand(new Document("validate", "people"));
    Document keys = validated.get("keysPerIndex", Document.class);
    boolean same = validated.getInteger("nrecords") == documents
        && keys.size() == 3 && keys.values().stream().allMatch(count -> ((Number) count).longValue() == documents);
    beside.same("round " + round + ": each index and the count have as many", true, same);
  }
}
