package mongorun.server;

import de.bwaldvogel.mongo.MongoServer;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import org.rocksdb.RocksDBException;

/** A server of MongoDB's protocol on 127.0.0.1 over a database of RocksDB in a folder. */
public final class Server implements AutoCloseable {
  private final Store store;
  private final MongoServer server;

  /**
   * Opens the folder and listens.
   *
   * @param port the port, or 0 for a free one
   * @param readOnly whether writes are errors
   * @throws RocksDBException the folder cannot be opened
   */
  public Server(Path folder, int port, boolean readOnly) throws RocksDBException {
    store = new Store(folder, readOnly);
    StoredBackend backend;
    try {
      backend = new StoredBackend(store);
    } catch (RuntimeException e) {
      store.close();
      throw e;
    }
    server = new MongoServer(backend);
    // A port that is taken closes the backend.
    server.bind(new InetSocketAddress("127.0.0.1", port));
  }

  /** The address for clients. */
  public String url() {
    return "mongodb://127.0.0.1:" + server.getLocalAddress().getPort();
  }

  /** How many seconds all threads together were in RocksDB. */
  public double storageSeconds() {
    return store.seconds();
  }

  /** Closes the connections and the database. */
  @Override
  public void close() {
    server.shutdownNow();
  }
}
