package mongorun;

import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.bson.Document;
import org.bson.conversions.Bson;
import org.bson.types.Binary;

/**
 * Linkbench's graph in three collections: {@code node}, {@code link} and {@code count}. The protocol has no transactions here, so a lock of
 * this client is held while a link and the count of its node and type change, as in Linkbench's mode "batch".
 */
final class Links {
  static final int NODE_TYPE = 2048;
  private static final int STRIPES = 4096;
  private static final int LIMIT = 10_000;

  private final MongoCollection<Document> nodes;
  private final MongoCollection<Document> links;
  private final MongoCollection<Document> counts;
  private final Object[] locks = new Object[STRIPES];
  private final AtomicLong lastNode = new AtomicLong();
  private final AtomicLong clock = new AtomicLong(1_700_000_000_000L);

  Links(MongoDatabase database) {
    nodes = database.getCollection("node");
    links = database.getCollection("link");
    counts = database.getCollection("count");
    Arrays.setAll(locks, at -> new Object());
  }

  void createIndexes() {
    links.createIndex(Indexes.ascending("link_type", "id1", "id2"), new IndexOptions().unique(true));
    links.createIndex(Indexes.ascending("id1", "link_type", "visibility", "time"));
    counts.createIndex(Indexes.ascending("id", "link_type"), new IndexOptions().unique(true));
  }

  void load(int nodeCount, int[] types, Draws draws) {
    List<Document> newNodes = new ArrayList<>();
    List<Document> newLinks = new ArrayList<>();
    List<Document> newCounts = new ArrayList<>();
    for (long id = 1; id <= nodeCount; id++) {
      newNodes.add(node(id, 1, draws.nodeData()));
      for (int at = 0; at < types.length; at++) {
        int degree = draws.degree(id, at, types.length);
        for (long second = id; second < id + degree; second++) {
          long time = clock.get() - draws.random().nextLong(1L << 32);
          newLinks.add(key(id, types[at], second).append("visibility", 1).append("data", new Binary(draws.linkData())).append("time", time)
              .append("version", 0));
        }
        if (degree > 0) {
          newCounts.add(new Document("id", id).append("link_type", types[at]).append("count", degree)
              .append("time", clock.get()).append("version", 0L));
        }
      }
    }
    lastNode.set(nodeCount);
    inParts(nodes, newNodes);
    inParts(links, newLinks);
    inParts(counts, newCounts);
  }

  private static void inParts(MongoCollection<Document> collection, List<Document> documents) {
    for (int from = 0; from < documents.size(); from += 1024) {
      collection.insertMany(documents.subList(from, Math.min(from + 1024, documents.size())));
    }
  }

  private static Document node(long id, long version, byte[] data) {
    return new Document("_id", id).append("type", NODE_TYPE).append("version", version).append("time", 1_700_000_000)
        .append("data", new Binary(data));
  }

  private static Document key(long first, int type, long second) {
    return new Document("link_type", type).append("id1", first).append("id2", second);
  }

  private Object lock(long first, int type) {
    return locks[(int) Long.remainderUnsigned(Draws.mixed(first * 31 + type), STRIPES)];
  }

  /** Adds the link, or shows and changes the one that is there. The answer is whether it is new or was hidden. */
  boolean put(long first, int type, long second, byte[] data) {
    synchronized (lock(first, type)) {
      long now = clock.incrementAndGet();
      Bson change = Updates.combine(Updates.set("visibility", 1), Updates.set("data", new Binary(data)), Updates.set("time", now),
          Updates.set("version", 0));
      Document before = links.findOneAndUpdate(key(first, type, second), change,
          new FindOneAndUpdateOptions().upsert(true).returnDocument(ReturnDocument.BEFORE));
      boolean isMore = before == null || before.getInteger("visibility") == 0;
      if (isMore) {
        changeCount(first, type, 1, now);
      }
      return isMore;
    }
  }

  /** Hides the link. The answer is whether it was visible. */
  boolean hide(long first, int type, long second) {
    synchronized (lock(first, type)) {
      Document visible = key(first, type, second).append("visibility", 1);
      boolean isLess = links.findOneAndUpdate(visible, Updates.set("visibility", 0)) != null;
      if (isLess) {
        changeCount(first, type, -1, clock.incrementAndGet());
      }
      return isLess;
    }
  }

  private void changeCount(long first, int type, int by, long now) {
    counts.updateOne(new Document("id", first).append("link_type", type),
        Updates.combine(Updates.inc("count", by), Updates.set("time", now), Updates.inc("version", 1L)), new UpdateOptions().upsert(true));
  }

  long count(long first, int type) {
    Document found = counts.find(new Document("id", first).append("link_type", type)).first();
    return found == null ? 0 : found.getInteger("count");
  }

  List<Document> several(long first, int type, List<Long> seconds) {
    return links.find(Filters.and(Filters.eq("link_type", type), Filters.eq("id1", first), Filters.in("id2", seconds)))
        .sort(Sorts.ascending("id2")).into(new ArrayList<>());
  }

  /** The newest visible links first. */
  List<Document> list(long first, int type) {
    return links.find(Filters.and(Filters.eq("id1", first), Filters.eq("link_type", type), Filters.eq("visibility", 1)))
        .sort(Sorts.orderBy(Sorts.descending("time"), Sorts.ascending("id2"))).limit(LIMIT).into(new ArrayList<>());
  }

  void addNode(byte[] data) {
    nodes.insertOne(node(lastNode.incrementAndGet(), 1, data));
  }

  boolean updateNode(long id, byte[] data) {
    return nodes.replaceOne(ofType(id), node(id, 2, data)).getMatchedCount() == 1;
  }

  boolean deleteNode(long id) {
    return nodes.deleteOne(ofType(id)).getDeletedCount() == 1;
  }

  Document node(long id) {
    return nodes.find(ofType(id)).first();
  }

  long nodes() {
    return nodes.countDocuments();
  }

  private static Document ofType(long id) {
    return new Document("_id", id).append("type", NODE_TYPE);
  }

  /** How many pairs of a node and a type have a count other than the number of their visible links. */
  long wrongCounts() {
    Map<List<Object>, Integer> differences = new HashMap<>();
    links.find(Filters.eq("visibility", 1))
        .forEach(each -> differences.merge(List.of(each.get("id1"), each.get("link_type")), 1, Integer::sum));
    counts.find()
        .forEach(each -> differences.merge(List.of(each.get("id"), each.get("link_type")), -each.getInteger("count"), Integer::sum));
    return differences.values().stream().filter(difference -> difference != 0).count();
  }
}
