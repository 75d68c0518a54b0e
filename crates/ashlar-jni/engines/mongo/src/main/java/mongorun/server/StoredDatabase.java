package mongorun.server;

import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.backend.AbstractSynchronizedMongoDatabase;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.DatabaseResolver;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.QueryResult;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import de.bwaldvogel.mongo.oplog.Oplog;
import de.bwaldvogel.mongo.wire.message.MongoQuery;
import io.netty.channel.Channel;
import java.util.List;
import java.util.function.Supplier;

/**
 * A database. Its collections and indexes change under its lock, each change in one batch. The library changes its lists before the batch
 * is written; if RocksDB then refuses the batch, this database answers errors until the server is started again.
 */
final class StoredDatabase extends AbstractSynchronizedMongoDatabase<Long> {
  private static final String DATA = "data";
  private static final String INDEX = "index";

  private final Store store;
  private volatile StoreError broken;

  StoredDatabase(String name, Store store, CursorRegistry cursors) {
    super(name, cursors);
    this.store = store;
    initializeNamespacesAndIndexes();
  }

  /** The names of the databases that have a collection. */
  static List<String> names(Store store) {
    return store.names(DATA + "\0").keySet().stream().map(name -> name.split("\0")[1]).distinct().toList();
  }

  private String data(String collection) {
    return String.join("\0", DATA, databaseName, collection);
  }

  private String indexes(String collection) {
    return String.join("\0", INDEX, databaseName, collection, "");
  }

  private <T> T change(Supplier<T> body) {
    try {
      return store.together(body);
    } catch (StoreError e) {
      broken = e;
      throw e;
    }
  }

  /** {@link #change} while no statement runs on {@code collection}. */
  private void change(Object collection, Runnable body) {
    synchronized (collection) {
      change(() -> {
        body.run();
        return null;
      });
    }
  }

  private void check() {
    if (broken != null) {
      throw new MongoServerError(1, "InternalError",
          "database " + databaseName + " failed to change its collections: start the server again. " + broken.getMessageWithoutErrorCode());
    }
  }

  @Override
  public Document handleCommand(Channel channel, String command, Document query, DatabaseResolver resolver, Oplog oplog) {
    check();
    return super.handleCommand(channel, command, query, resolver, oplog);
  }

  @Override
  public QueryResult handleQuery(MongoQuery query) {
    check();
    return super.handleQuery(query);
  }

  @Override
  protected MongoCollection<Long> openOrCreateCollection(String name, CollectionOptions options) {
    if (name.indexOf('\0') >= 0) {
      throw new MongoServerError(73, "InvalidNamespace", "a name with a zero byte");
    }
    return new StoredCollection(this, store, store.space(data(name)), name, options, cursorRegistry);
  }

  @Override
  protected synchronized MongoCollection<Long> resolveOrCreateCollection(String name) {
    MongoCollection<Long> found = resolveCollection(name, false);
    return found == null ? change(() -> super.resolveOrCreateCollection(name)) : found;
  }

  @Override
  public synchronized MongoCollection<Long> createCollectionOrThrowIfExists(String name, CollectionOptions options) {
    return change(() -> super.createCollectionOrThrowIfExists(name, options));
  }

  @Override
  protected synchronized void addIndex(Document description) {
    // In a batch of its own: if the description is wrong, the collection stays.
    MongoCollection<Long> collection = resolveOrCreateCollection(description.get("ns").toString().substring(databaseName.length() + 1));
    change(collection, () -> super.addIndex(description));
  }

  @Override
  protected Index<Long> openOrCreateUniqueIndex(String collection, String name, List<IndexKey> keys, boolean sparse) {
    return new UniqueIndex(store.space(indexes(collection) + name), name, keys, sparse);
  }

  @Override
  protected Index<Long> openOrCreateSecondaryIndex(String collection, String name, List<IndexKey> keys, boolean sparse) {
    return new SecondaryIndex(store.space(indexes(collection) + name), name, keys, sparse);
  }

  @Override
  protected synchronized void dropIndex(MongoCollection<Long> collection, String name) {
    change(collection, () -> {
      super.dropIndex(collection, name);
      store.forget(indexes(collection.getCollectionName()) + name);
    });
  }

  @Override
  public synchronized void dropCollection(String name, Oplog oplog) {
    change(resolveCollection(name, true), () -> {
      super.dropCollection(name, oplog);
      store.forget(data(name));
    });
  }

  @Override
  public synchronized void drop(Oplog oplog) {
    change(this, () -> super.drop(oplog));
  }

  @Override
  public synchronized void moveCollection(MongoDatabase from, MongoCollection<?> collection, String newName) {
    if (from != this) {
      throw new MongoServerError(20, "IllegalOperation",
          "a rename from one database to another: copy the documents and drop the collection");
    }
    String name = collection.getCollectionName();
    change(collection, () -> {
      super.moveCollection(from, collection, newName);
      store.rename(indexes(name), indexes(newName));
      store.move(data(name), data(newName));
    });
  }

  @Override
  protected long getFileSize() {
    return getStorageSize();
  }

  @Override
  protected long getStorageSize() {
    return store.tableBytes();
  }
}
