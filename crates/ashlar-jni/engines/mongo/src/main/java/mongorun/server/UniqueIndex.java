package mongorun.server;

import de.bwaldvogel.mongo.backend.AbstractUniqueIndex;
import de.bwaldvogel.mongo.backend.IndexKey;
import de.bwaldvogel.mongo.backend.KeyValue;
import de.bwaldvogel.mongo.bson.Document;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A unique index: the key is the values, and the value is the position of the document. */
final class UniqueIndex extends AbstractUniqueIndex<Long> implements Plan.Index {
  private final Space space;

  UniqueIndex(Space space, String name, List<IndexKey> keys, boolean sparse) {
    super(name, keys, sparse);
    this.space = space;
  }

  @Override
  public Set<KeyValue> getKeyValues(Document document) {
    return Values.orWithoutArrays(super.getKeyValues(document), document, keys());
  }

  @Override
  protected Long getPosition(KeyValue values) {
    byte[] found = space.get(Values.key(values));
    return found == null ? null : Values.position(found, 0);
  }

  @Override
  protected boolean putKeyPosition(KeyValue values, Long position) {
    if (getPosition(values) != null) {
      return false;
    }
    space.put(Values.key(values), Bytes.of(position));
    return true;
  }

  @Override
  protected Long removeDocument(KeyValue values) {
    Long position = getPosition(values);
    if (position != null) {
      space.delete(Values.key(values));
    }
    return position;
  }

  @Override
  public Plan plan(Document query) {
    return Plan.of(keys(), query);
  }

  @Override
  public synchronized boolean canHandle(Document query) {
    return plan(query).fields() > 0;
  }

  @Override
  public synchronized Iterable<Long> getPositions(Document query) {
    return plan(query).positions(space, entry -> Values.position(entry.value(), 0));
  }

  @Override
  protected Iterable<Map.Entry<KeyValue, Long>> getIterable() {
    throw new UnsupportedOperationException("a regular expression reads the collection, not its index");
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
}
