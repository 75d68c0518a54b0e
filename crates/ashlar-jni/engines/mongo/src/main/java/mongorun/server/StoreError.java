package mongorun.server;

import de.bwaldvogel.mongo.exception.MongoServerError;
import org.rocksdb.RocksDBException;
import org.rocksdb.Status;

/** An error of RocksDB, as MongoDB's protocol says it. */
final class StoreError extends MongoServerError {
  private static final long serialVersionUID = 1L;

  private StoreError(int code, String name, RocksDBException cause) {
    super(code, name, "the storage failed: " + cause.getMessage(), cause);
  }

  static StoreError of(RocksDBException cause) {
    Status status = cause.getStatus();
    if (status == null) {
      return new StoreError(1, "InternalError", cause);
    }
    if (status.getSubCode() == Status.SubCode.NoSpace) {
      return new StoreError(14031, "OutOfDiskSpace", cause);
    }
    return switch (status.getCode()) {
      case Corruption -> new StoreError(287, "DataCorruptionDetected", cause);
      default -> new StoreError(1, "InternalError", cause);
    };
  }
}
