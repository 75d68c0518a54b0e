package mongorun;

import com.mongodb.ErrorCategory;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoException;
import com.mongodb.MongoServerException;
import com.mongodb.MongoWriteException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Accumulators;
import com.mongodb.client.model.Aggregates;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateOptions;
import com.mongodb.client.model.Updates;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import mongorun.server.Server;
import org.bson.Document;

/** Each kind of operation on a collection, beside a map in memory; then the server is closed and opened again. */
final class Steps {
  private static final int GROUPS = 10;

  private final Path folder;
  private final int documents;
  private final Beside beside = new Beside();
  private final TreeMap<Integer, Document> model = new TreeMap<>();
  private MongoDatabase database;
  private MongoCollection<Document> people;

  Steps(Path folder, int documents) {
    if (documents < 300) {
      throw new IllegalArgumentException("steps needs 300 documents or more, so that its table has blocks of documents only");
    }
    this.folder = folder;
    this.documents = documents;
  }

  int run() throws Exception {
    served(false, () -> {
      insert();
      reads("inserted");
      updates();
      reads("updated");
      replaces();
      deletes();
      reads("deleted");
      violations();
      aggregates();
      cursors();
    });
    served(false, () -> {
      reads("opened again");
      violations();
      aggregates();
      new Catalog(database, beside).run();
    });
    served(true, () -> {
      reads("only read");
      beside.same("a write where only reads are allowed", "20 IllegalOperation", error(() -> people.insertOne(new Document("_id", -1))));
    });
    Damage.bytes(folder);
    served(true, () -> beside.same("a read of damaged tables", "287 DataCorruptionDetected",
        error(() -> people.find().into(new ArrayList<>()))));
    return beside.differences();
  }

  private void served(boolean readOnly, Runnable body) throws Exception {
    try (Server server = new Server(folder, 0, readOnly); MongoClient client = MongoClients.create(server.url())) {
      database = client.getDatabase("steps");
      people = database.getCollection("people");
      body.run();
    }
  }

  /** A document with values of many types; {@code email} is unique. */
  static Document person(int id) {
    long mixed = Draws.mixed(id);
    return new Document("_id", id).append("email", "p" + Long.toHexString(mixed)).append("group", Math.floorMod(mixed, GROUPS))
        .append("score", id * 0.5).append("text", "näme " + id).append("tags", List.of("t" + id % 3, "t" + id % 5))
        .append("inner", new Document("count", id % 7).append("at", new java.util.Date(id * 1000L)));
  }

  private void insert() {
    people.createIndex(Indexes.ascending("email"), new IndexOptions().unique(true));
    people.createIndex(Indexes.ascending("group", "score"));
    people.createIndex(Indexes.ascending("tags"));
    List<Document> many = new ArrayList<>();
    for (int id = 0; id < documents; id++) {
      model.put(id, person(id));
      if (id % 10 == 0) {
        people.insertOne(person(id));
      } else {
        many.add(person(id));
      }
    }
    beside.same("inserted together", many.size(), people.insertMany(many).getInsertedIds().size());
  }

  private List<Document> wanted(Predicate<Document> which) {
    return model.values().stream().filter(which).toList();
  }

  private void reads(String when) {
    List<Document> wanted = new ArrayList<>();
    List<Document> found = new ArrayList<>();
    for (int id = -3; id < documents + 3; id += 3) {
      found.addAll(people.find(Filters.eq("_id", id)).into(new ArrayList<>()));
      if (model.containsKey(id)) {
        wanted.add(model.get(id));
      }
    }
    beside.documents(when + ", by id", wanted, found);
    int from = documents / 4;
    int to = documents / 2;
    beside.documents(when + ", range of ids", List.copyOf(model.subMap(from, to).values()),
        sorted(Filters.and(Filters.gte("_id", from), Filters.lt("_id", to))));
    List<Document> top = new ArrayList<>(model.tailMap(from, false).values());
    Collections.reverse(top);
    beside.documents(when + ", the last ids", top.stream().skip(5).limit(20).toList(),
        people.find(Filters.gt("_id", from)).sort(Sorts.descending("_id")).skip(5).limit(20).into(new ArrayList<>()));
    beside.documents(when + ", a group", wanted(each -> group(each) == 3), sorted(Filters.eq("group", 3)));
    List<Document> fourth = wanted(each -> group(each) == 4);
    double score = fourth.get(fourth.size() / 2).getDouble("score");
    beside.documents(when + ", a range in a group", wanted(each -> group(each) == 4 && each.getDouble("score") <= score),
        sorted(Filters.and(Filters.eq("group", 4), Filters.lte("score", score))));
    beside.documents(when + ", ids to the last", wanted(each -> each.getInteger("_id") >= to),
        sorted(Filters.and(Filters.gte("_id", to), Filters.lte("_id", model.lastKey()))));
    beside.documents(when + ", some groups", wanted(each -> group(each) == 1 || group(each) == 8), sorted(Filters.in("group", 1, 8L, 77)));
    beside.documents(when + ", an element of an array", wanted(each -> tagged(each, "t4")), sorted(Filters.eq("tags", "t4")));
    beside.documents(when + ", a range over an array", wanted(each -> tagged(each, "t4")), sorted(Filters.gte("tags", "t4")));
    beside.documents(when + ", two elements of an array", wanted(each -> tagged(each, "t4") && tagged(each, "t0")),
        sorted(Filters.and(Filters.gt("tags", "t3"), Filters.lt("tags", "t1"))));
    beside.documents(when + ", a pattern", wanted(each -> each.getString("email").startsWith("p1")), sorted(Filters.regex("email", "^p1")));
    beside.documents(when + ", in a document", wanted(each -> each.get("inner", Document.class).getInteger("count") == 6),
        sorted(Filters.eq("inner.count", 6)));
    beside.same(when + ", documents", (long) model.size(), people.countDocuments());
    beside.same(when + ", estimated", (long) model.size(), people.estimatedDocumentCount());
  }

  private List<Document> sorted(org.bson.conversions.Bson filter) {
    return people.find(filter).sort(Sorts.ascending("_id")).into(new ArrayList<>());
  }

  private static long group(Document document) {
    return document.get("group", Number.class).longValue();
  }

  private static boolean tagged(Document document, String tag) {
    return document.getList("tags", String.class, List.of()).contains(tag);
  }

  private void updates() {
    for (int id = 0; id < documents; id += 4) {
      people.updateOne(Filters.eq("_id", id), Updates.combine(Updates.set("text", "set " + id), Updates.inc("group", 1L),
          Updates.inc("inner.count", 2)));
      Document document = model.get(id);
      document.put("text", "set " + id);
      document.put("group", group(document) + 1);
      Document inner = document.get("inner", Document.class);
      inner.put("count", inner.getInteger("count") + 2);
    }
    long changed = people.updateMany(Filters.eq("group", 2), Updates.combine(Updates.set("flag", true), Updates.unset("tags")))
        .getModifiedCount();
    List<Document> flagged = wanted(each -> group(each) == 2);
    flagged.forEach(each -> {
      each.put("flag", true);
      each.remove("tags");
    });
    beside.same("updated many", (long) flagged.size(), changed);
    Document added = new Document("_id", documents).append("email", "upsert").append("score", -1.0).append("group", 5L);
    people.updateOne(Filters.eq("_id", documents),
        Updates.combine(Updates.set("email", "upsert"), Updates.inc("group", 5L), Updates.set("score", -1.0),
            Updates.setOnInsert("inner", new Document("count", 6))),
        new UpdateOptions().upsert(true));
    model.put(documents, added.append("inner", new Document("count", 6)));
    beside.documents("upserted", List.of(added), sorted(Filters.eq("_id", documents)));
    Document before = people.findOneAndUpdate(Filters.eq("_id", 1), Updates.set("score", -2.0));
    beside.documents("found and updated", List.of(model.get(1)), List.of(Objects.requireNonNull(before)));
    model.get(1).put("score", -2.0);
    beside.same("updated nothing", 0L, people.updateMany(Filters.eq("group", -9), Updates.set("flag", 1)).getMatchedCount());
  }

  private void replaces() {
    for (int id = 2; id < documents; id += 11) {
      Document other = new Document("_id", id).append("email", "other" + id).append("group", 7L).append("score", 1.5 * id)
          .append("tags", List.of()).append("inner", new Document("count", 0));
      people.replaceOne(Filters.eq("_id", id), other);
      model.put(id, other);
    }
    Document more = person(documents + 1);
    people.replaceOne(Filters.eq("_id", documents + 1), more, new ReplaceOptions().upsert(true));
    model.put(documents + 1, more);
    reads("replaced");
  }

  private void deletes() {
    long deleted = 0;
    for (int id = 0; id < documents; id += 5) {
      deleted += people.deleteOne(Filters.eq("_id", id)).getDeletedCount();
      model.remove(id);
    }
    beside.same("deleted one by one", (documents + 4) / 5, (int) deleted);
    List<Document> group = wanted(each -> group(each) == 6);
    group.forEach(each -> model.remove(each.getInteger("_id")));
    beside.same("deleted many", (long) group.size(), people.deleteMany(Filters.eq("group", 6)).getDeletedCount());
    beside.same("deleted nothing", 0L, people.deleteOne(Filters.eq("_id", 0)).getDeletedCount());
  }

  private void violations() {
    Document taken = model.firstEntry().getValue();
    int id = taken.getInteger("_id");
    String email = taken.getString("email");
    beside.same("an id twice", "11000 DuplicateKey", error(() -> people.insertOne(person(id))));
    beside.same("a value twice", "11000 DuplicateKey", error(() -> people.insertOne(new Document("_id", -7).append("email", email))));
    beside.same("a value twice by an update", "11000 DuplicateKey",
        error(() -> people.updateOne(Filters.eq("_id", model.lastKey()), Updates.set("email", email))));
    List<Document> some = List.of(person(-20), person(id), person(-21));
    beside.same("some of many", "11000 DuplicateKey", error(() -> people.insertMany(some, new InsertManyOptions().ordered(false))));
    beside.documents("those that were none twice", List.of(person(-21), person(-20)), sorted(Filters.lt("_id", 0)));
    beside.same("removed", 2L, people.deleteMany(Filters.lt("_id", 0)).getDeletedCount());
    beside.same("another id", "66 ImmutableField", error(() -> people.updateOne(Filters.eq("_id", id), Updates.set("_id", -1))));
    beside.same("an unknown operator", "9 FailedToParse",
        error(() -> people.updateOne(Filters.eq("_id", id), new Document("$no", new Document("a", 1)))));
    beside.documents("unchanged", List.of(taken, model.lastEntry().getValue()), sorted(Filters.in("_id", id, model.lastKey())));
  }

  private void aggregates() {
    List<Document> wanted = new ArrayList<>();
    for (long group : new TreeSet<>(model.values().stream().map(Steps::group).toList())) {
      List<Document> members = wanted(each -> group(each) == group);
      double sum = members.stream().mapToDouble(each -> each.getDouble("score")).sum();
      wanted.add(new Document("_id", group).append("count", members.size()).append("sum", sum));
    }
    List<Document> found = people.aggregate(List.of(Aggregates.group("$group", Accumulators.sum("count", 1),
        Accumulators.sum("sum", "$score")),
        Aggregates.sort(Sorts.ascending("_id")))).into(new ArrayList<>());
    found.forEach(each -> each.put("_id", each.get("_id", Number.class).longValue()));
    beside.documents("groups", wanted, found);
    beside.same("count of a group", (long) wanted(each -> group(each) == 7).size(), people.countDocuments(Filters.eq("group", 7)));
  }

  private void cursors() {
    List<Document> found = new ArrayList<>();
    try (var cursor = people.find().sort(Sorts.ascending("_id")).batchSize(7).iterator()) {
      while (cursor.hasNext()) {
        found.add(cursor.next());
        if (found.size() == 20) {
          // What a cursor has begun to answer stays, whatever happens to the documents.
          people.deleteOne(Filters.eq("_id", model.lastKey()));
        }
      }
    }
    beside.documents("in batches of 7", List.copyOf(model.values()), found);
    people.insertOne(model.lastEntry().getValue());
  }

  /** The code and the name of the error. */
  static String error(Runnable body) {
    try {
      body.run();
      return "no error";
    } catch (MongoWriteException e) {
      return named(e.getError().getCode(), "");
    } catch (MongoBulkWriteException e) {
      return named(e.getWriteErrors().get(0).getCode(), "");
    } catch (MongoCommandException e) {
      return named(e.getErrorCode(), e.getErrorCodeName());
    } catch (MongoServerException e) {
      return named(e.getCode(), "");
    } catch (MongoException e) {
      return e.getClass().getSimpleName();
    }
  }

  private static String named(int code, String name) {
    if (!name.isEmpty()) {
      return code + " " + name;
    }
    return switch (code) {
      case 9 -> "9 FailedToParse";
      case 20 -> "20 IllegalOperation";
      case 66 -> "66 ImmutableField";
      case 287 -> "287 DataCorruptionDetected";
      default -> code + (ErrorCategory.fromErrorCode(code) == ErrorCategory.DUPLICATE_KEY ? " DuplicateKey" : "");
    };
  }
}
