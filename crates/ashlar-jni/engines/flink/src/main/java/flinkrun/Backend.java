package flinkrun;

import java.lang.reflect.Field;
import java.util.Map;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.state.rocksdb.RocksDBKeyedStateBackend;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksIterator;

/** The RocksDB behind the keyed state of an operator, which Flink shows its own tests only. */
final class Backend {
  private final RocksDBKeyedStateBackend<?> backend;

  Backend(RuntimeContext context) throws ReflectiveOperationException {
    backend = (RocksDBKeyedStateBackend<?>) field(field(context, "keyedStateStore"), "keyedStateBackend");
  }

  /** The entries of all states. */
  int entries() {
    return backend.numKeyValueStateEntries();
  }

  void compact(StateDescriptor<?, ?> state) throws Exception {
    backend.compactState(state);
  }

  /** How many entries a state has, and the bytes of their values. */
  String sizes(String state) throws Exception {
    RocksDB db = (RocksDB) field(backend, "db");
    Object info = ((Map<?, ?>) field(backend, "kvStateInformation")).get(state);
    ColumnFamilyHandle family = (ColumnFamilyHandle) field(info, "columnFamilyHandle");
    int entries = 0;
    long bytes = 0;
    try (RocksIterator iterator = db.newIterator(family)) {
      for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
        entries++;
        bytes += iterator.value().length;
      }
      iterator.status();
    }
    return entries + " entries of " + bytes + " bytes";
  }

  private static Object field(Object of, String name) throws ReflectiveOperationException {
    for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          field.setAccessible(true);
          return field.get(of);
        }
      }
    }
    throw new NoSuchFieldException(of.getClass() + "." + name);
  }
}
