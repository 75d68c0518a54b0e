package mongorun.server;

import de.bwaldvogel.mongo.backend.AbstractSynchronizedMongoCollection;
import de.bwaldvogel.mongo.backend.ArrayFilters;
import de.bwaldvogel.mongo.backend.CollectionOptions;
import de.bwaldvogel.mongo.backend.CursorRegistry;
import de.bwaldvogel.mongo.backend.DocumentWithPosition;
import de.bwaldvogel.mongo.backend.Index;
import de.bwaldvogel.mongo.backend.QueryResult;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.oplog.Oplog;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * A collection: its documents by position, which is the order of their insertion. Each statement on a document is one batch of RocksDB with
 * the document, its entries in all indexes and the collection's counts; the lock of the collection is held until the batch is written.
 */
final class StoredCollection extends AbstractSynchronizedMongoCollection<Long> {
  private static final int PAGE = 256;

  private final Store store;
  private final Space space;
  private long last = -1;

  StoredCollection(StoredDatabase database, Store store, Space space, String name, CollectionOptions options, CursorRegistry cursors) {
    super(database, name, options, cursors);
    this.store = store;
    this.space = space;
  }

  @Override
  public synchronized void addDocument(Document document) {
    store.together(() -> {
      super.addDocument(document);
      return null;
    });
  }

  @Override
  public synchronized Document updateDocuments(Document selector, Document update, ArrayFilters filters, boolean multi, boolean upsert,
      Oplog oplog) {
    return store.together(() -> super.updateDocuments(selector, update, filters, multi, upsert, oplog));
  }

  @Override
  public synchronized int deleteDocuments(Document selector, int limit, Oplog oplog) {
    return store.together(() -> super.deleteDocuments(selector, limit, oplog));
  }

  @Override
  public synchronized Document findAndModify(Document query) {
    return store.together(() -> super.findAndModify(query));
  }

  @Override
  public synchronized void removeDocument(Document document) {
    store.together(() -> {
      super.removeDocument(document);
      return null;
    });
  }

  /** Fills the index from the documents. */
  @Override
  public synchronized void addIndex(Index<Long> index) {
    store.together(() -> {
      super.addIndex(index);
      return null;
    });
  }

  @Override
  protected Long addDocumentInternal(Document document) {
    if (last < 0) {
      byte[] found = space.last();
      last = found == null ? 0 : Values.position(found, 0);
    }
    last++;
    space.put(Bytes.of(last), Values.encode(document));
    changeCounts(1, 0);
    return last;
  }

  @Override
  protected void handleUpdate(Long position, Document before, Document after) {
    space.put(Bytes.of(position), Values.encode(after));
  }

  @Override
  protected void removeDocument(Long position) {
    Document document = getDocument(position);
    for (Index<Long> index : getIndexes()) {
      if (index instanceof SecondaryIndex secondary) {
        secondary.removeAt(document, position);
      }
    }
    space.delete(Bytes.of(position));
    changeCounts(-1, 0);
  }

  @Override
  protected Document getDocument(Long position) {
    byte[] found = space.get(Bytes.of(position));
    if (found == null) {
      throw new IllegalStateException(getFullName() + " has an index entry for position " + position + ", but no document there");
    }
    return Values.decode(found);
  }

  private void changeCounts(int documents, int bytes) {
    long[] counts = space.counts();
    space.setCounts(counts[0] + documents, counts[1] + bytes);
  }

  @Override
  protected void updateDataSize(int change) {
    changeCounts(0, change);
  }

  @Override
  protected int getDataSize() {
    return (int) Math.min(space.counts()[1], Integer.MAX_VALUE);
  }

  @Override
  public int count() {
    return (int) Math.min(space.counts()[0], Integer.MAX_VALUE);
  }

  /** Reads by the index of which the query narrows the most fields. */
  @Override
  protected QueryResult queryDocuments(Document query, Document order, int skip, int limit, int batchSize, Document projection) {
    Index<Long> best = null;
    int fields = 0;
    for (Index<Long> index : getIndexes()) {
      int narrowed = index instanceof Plan.Index planned ? planned.plan(query).fields() : 0;
      if (narrowed > fields) {
        best = index;
        fields = narrowed;
      }
    }
    if (best == null) {
      return matchDocuments(query, order, skip, limit, batchSize, projection);
    }
    return matchDocuments(query, best.getPositions(query), order, skip, limit, batchSize, projection);
  }

  @Override
  protected QueryResult matchDocuments(Document query, Document order, int skip, int limit, int batchSize, Document projection) {
    Stream<Document> documents = streamAllDocumentsWithPosition().map(DocumentWithPosition::getDocument);
    if (isNaturalDescending(order)) {
      List<Document> reversed = new ArrayList<>(documents.toList());
      Collections.reverse(reversed);
      documents = reversed.stream();
    }
    return matchDocumentsFromStream(documents, query, order, skip, limit, batchSize, projection);
  }

  /** Reads page by page, so that no iterator of RocksDB stays open when the reader stops. */
  @Override
  protected Stream<DocumentWithPosition<Long>> streamAllDocumentsWithPosition() {
    Iterable<DocumentWithPosition<Long>> all = () -> new Iterator<>() {
      private List<Store.Entry> page = space.page(new byte[0], null, PAGE);
      private int at;

      @Override
      public boolean hasNext() {
        if (at == page.size() && at == PAGE) {
          page = space.page(Bytes.of(Values.position(page.get(at - 1).key(), 0) + 1), null, PAGE);
          at = 0;
        }
        return at < page.size();
      }

      @Override
      public DocumentWithPosition<Long> next() {
        Store.Entry entry = page.get(at++);
        return new DocumentWithPosition<>(Values.decode(entry.value()), Values.position(entry.key(), 0));
      }
    };
    return StreamSupport.stream(all.spliterator(), false);
  }
}
