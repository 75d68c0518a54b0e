package mongorun.server;

import de.bwaldvogel.mongo.MongoDatabase;
import de.bwaldvogel.mongo.backend.AbstractMongoBackend;
import java.util.Set;
import java.util.TreeSet;

/** The databases of a store. */
final class StoredBackend extends AbstractMongoBackend {
  private final Store store;

  StoredBackend(Store store) {
    this.store = store;
    StoredDatabase.names(store).forEach(this::resolveDatabase);
  }

  @Override
  protected MongoDatabase openOrCreateDatabase(String name) {
    return new StoredDatabase(name, store, getCursorRegistry());
  }

  @Override
  protected Set<String> listDatabaseNames() {
    return new TreeSet<>(StoredDatabase.names(store));
  }

  @Override
  public void close() {
    super.close();
    store.close();
  }
}
