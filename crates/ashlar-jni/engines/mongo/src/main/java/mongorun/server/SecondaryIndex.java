package mongorun.server;

import de.bwaldvogel.mongo.MongoCollection;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.KeyValue;
import de.bwaldvogel.mongo.bson.Document;
import java.util.List;
import java.util.Set;

/** An index that is not unique: the key is the values and the position of the document, and the value is empty. */
final class SecondaryIndex extends Index<Long> implements Plan.Index {
  private final Space space;

  SecondaryIndex(Space space, String name, List<IndexKey> keys, boolean sparse) {
    super(name, keys, sparse);
    this.space = space;
  }

  /** The library then accepts an index that does not know the position of a document that it removes. */
  @Override
  protected boolean isSparse() {
    return true;
  }

  @Override
  public Set<KeyValue> getKeyValues(Document document) {
    return Values.orWithoutArrays(super.getKeyValues(document), document, keys());
  }

  /** Another index knows it. */
  @Override
  public Long getPosition(Document document) {
    return null;
  }

  @Override
  public void checkAdd(Document document, MongoCollection<Long> collection) {
    getKeyValues(document);
  }

  @Override
  public void add(Document document, Long position, MongoCollection<Long> collection) {
    getKeyValues(document).forEach(values -> space.put(key(values, position), new byte[0]));
  }

  /** The collection removes entries by {@link #removeAt}, when it knows the position. */
  @Override
  public Long remove(Document document) {
    return null;
  }

  void removeAt(Document document, long position) {
    getKeyValues(document).forEach(values -> space.delete(key(values, position)));
  }

  @Override
  public void checkUpdate(Document before, Document after, MongoCollection<Long> collection) {
    getKeyValues(after);
  }

  @Override
  public void updateInPlace(Document before, Document after, Long position, MongoCollection<Long> collection) {
    if (!nullAwareEqualsKeys(before, after)) {
      removeAt(before, position);
      add(after, position, collection);
    }
  }

  private static byte[] key(KeyValue values, long position) {
    return Bytes.join(Values.key(values), Bytes.of(position));
  }

  @Override
  public Plan plan(Document query) {
    return Plan.of(keys(), query);
  }

  @Override
  public boolean canHandle(Document query) {
    return plan(query).fields() > 0;
  }

  @Override
  public Iterable<Long> getPositions(Document query) {
    return plan(query).positions(space, entry -> Values.position(entry.key(), entry.key().length - 8));
  }

  @Override
  public long getCount() {
    return space.count();
  }

  @Override
  public boolean isEmpty() {
    return space.isEmpty();
  }

  @Override
  public long getDataSize() {
    return space.bytes();
  }

  @Override
  public void drop() {}
}
