package mongorun;

import com.mongodb.MongoNamespace;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.TreeSet;
import org.bson.BsonTimestamp;
import org.bson.Document;
import org.bson.types.Binary;
import org.bson.types.Decimal128;
import org.bson.types.ObjectId;

/** Values of each type, and collections and indexes that come, get another name and go. */
final class Catalog {
  private final MongoDatabase database;
  private final Beside beside;

  Catalog(MongoDatabase database, Beside beside) {
    this.database = database;
    this.beside = beside;
  }

  void run() {
    types();
    numbers();
    MongoCollection<Document> first = database.getCollection("first");
    for (int id = 0; id < 20; id++) {
      first.insertOne(new Document("_id", id).append("half", id / 2).append("own", id));
    }
    beside.same("a unique index over equal values", "11000 DuplicateKey",
        Steps.error(() -> first.createIndex(Indexes.ascending("half"), new IndexOptions().unique(true))));
    first.createIndex(Indexes.ascending("own"), new IndexOptions().unique(true));
    first.createIndex(Indexes.descending("half"));
    beside.same("indexes", List.of("_id_", "half_-1", "own_1"), names(first));
    first.renameCollection(new MongoNamespace(database.getName(), "second"));
    MongoCollection<Document> second = database.getCollection("second");
    beside.same("collections", "[people, second, types]", collections());
    beside.same("indexes after the rename", List.of("_id_", "half_-1", "own_1"), names(second));
    beside.same("unique after the rename", "11000 DuplicateKey",
        Steps.error(() -> second.insertOne(new Document("_id", 77).append("own", 3))));
    beside.same("found after the rename", 2, second.find(Filters.eq("half", 4)).into(new ArrayList<>()).size());
    second.dropIndex("own_1");
    second.insertOne(new Document("_id", 77).append("own", 3));
    beside.same("two after the drop of the index", 2, second.find(Filters.eq("own", 3)).into(new ArrayList<>()).size());
    second.drop();
    beside.same("documents after the drop", 0L, second.countDocuments());
    second.insertOne(new Document("_id", 1));
    beside.same("documents of the new collection", 1L, second.countDocuments());
    second.drop();
    beside.same("collections after the drop", "[people, types]", collections());
    beside.same("a wrong name", "MongoException", name(() -> database.getCollection("no$").insertOne(new Document())));
  }

  /** The class of the library's errors that have no code differs with the statement, so one name stands for all. */
  private static String name(Runnable body) {
    return "no error".equals(Steps.error(body)) ? "no error" : "MongoException";
  }

  private void types() {
    MongoCollection<Document> types = database.getCollection("types");
    Document all = new Document("_id", new ObjectId("0123456789abcdef01234567")).append("double", -0.0)
        .append("text", "zero \u0000 and \uD83D\uDE00")
        .append("document", new Document("a", new Document())).append("array", List.of(1, "two", List.of()))
        .append("bytes", new Binary(new byte[300]))
        .append("truth", false).append("date", new Date(-1)).append("nothing", null).append("int", Integer.MIN_VALUE)
        .append("long", Long.MIN_VALUE).append("timestamp", new BsonTimestamp(7, 9))
        .append("decimal", Decimal128.parse("12345678901234567890.5"));
    types.insertOne(all);
    beside.documents("each type", List.of(all), types.find().into(new ArrayList<>()));
    types.deleteMany(new Document());
  }

  /** Numbers of several types are one value if they are equal, also where a double cannot hold a long. */
  private void numbers() {
    MongoCollection<Document> types = database.getCollection("types");
    long large = (1L << 53) + 1;
    List<Object> values = List.of(1, -1, 0.5, large, large - 1, Long.MAX_VALUE, Long.MIN_VALUE, Double.MAX_VALUE, -1e-300,
        "1", "", "a\u0000", "a", true);
    for (Object value : values) {
      types.insertOne(new Document("_id", value));
    }
    List<Object> equal = List.of(1L, -1.0, Decimal128.parse("0.5"), large, (double) (large - 1), Long.MAX_VALUE, (double) Long.MIN_VALUE);
    for (Object value : equal) {
      beside.same("twice: " + value, "11000 DuplicateKey", Steps.error(() -> types.insertOne(new Document("_id", value))));
      beside.same("found: " + value, 1, types.find(Filters.eq("_id", value)).into(new ArrayList<>()).size());
    }
    beside.same("numbers above 0", 6, types.find(Filters.gt("_id", 0)).into(new ArrayList<>()).size());
    beside.same("numbers to 0", 3, types.find(Filters.lte("_id", 0.0)).into(new ArrayList<>()).size());
    beside.same("texts from a", 2, types.find(Filters.gte("_id", "a")).into(new ArrayList<>()).size());
    types.deleteMany(new Document());
  }

  private String collections() {
    return new TreeSet<>(database.listCollectionNames().into(new ArrayList<>())).toString();
  }

  private static List<String> names(MongoCollection<Document> collection) {
    return collection.listIndexes().map(each -> each.getString("name")).into(new ArrayList<>()).stream().sorted().toList();
  }
}
