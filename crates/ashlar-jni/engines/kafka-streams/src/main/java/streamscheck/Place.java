package streamscheck;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.internals.RocksDBStore;
import org.apache.kafka.streams.state.internals.WrappedStateStore;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.FlushOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;

/**
 * A state directory, and stores that are opened in it, closed, and opened again, as a task does it.
 *
 * <p>Kafka's mock of a context keeps no restore callbacks and is, before Kafka 4, none of the internal contexts that some stores
 * ask for. A proxy adds both.
 */
final class Place {
  private final Path directory;
  private final Properties settings = new Properties();
  private final Map<String, StateRestoreCallback> restores = new HashMap<>();
  private MockProcessorContext<?, ?> mock;

  Place(Path directory) {
    this.directory = directory;
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "check");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
  }

  Place with(String name, Object value) {
    settings.put(name, value);
    return this;
  }

  /** Opens a store; the same name finds the same files again. */
  <S extends StateStore> S open(StoreBuilder<S> builder) {
    S store = builder.withLoggingDisabled().build();
    mock = new MockProcessorContext<>(settings, new TaskId(0, 0), directory.toFile());
    store.init(context(mock.getStateStoreContext()), store);
    return store;
  }

  private StateStoreContext context(StateStoreContext inner) {
    return (StateStoreContext)
        Proxy.newProxyInstance(
            Place.class.getClassLoader(),
            new Class<?>[] {InternalProcessorContext.class},
            (proxy, method, arguments) -> answer(inner, method, arguments));
  }

  private Object answer(StateStoreContext inner, Method method, Object[] arguments) throws Throwable {
    if (method.getName().equals("register")) {
      restores.put(((StateStore) arguments[0]).name(), (StateRestoreCallback) arguments[1]);
      return null;
    }
    if (method.getName().equals("recordContext")) {
      return null;
    }
    if (method.getName().equals("changelogFor")) {
      return "check-" + arguments[0] + "-changelog";
    }
    try {
      Method wanted = inner.getClass().getMethod(method.getName(), method.getParameterTypes());
      wanted.setAccessible(true);
      return wanted.invoke(inner, arguments);
    } catch (InvocationTargetException failure) {
      throw failure.getCause();
    }
  }

  /** What a store does with records of its changelog. */
  void restore(String store, Collection<ConsumerRecord<byte[], byte[]>> records) {
    ((RecordBatchingStateRestoreCallback) restores.get(store)).restoreBatch(records);
  }

  StreamsMetricsImpl metrics() {
    return (StreamsMetricsImpl) mock.metrics();
  }

  /** Flushes the store. Since Kafka 4.3 the call is `commit`, stores an offset, and leaves the flush to RocksDB. */
  static void commit(StateStore store) {
    Map<TopicPartition, Long> offsets = Map.of(new TopicPartition("changelog", 0), 17L);
    try {
      StateStore.class.getMethod("commit", Map.class).invoke(store, offsets);
    } catch (NoSuchMethodException older) {
      store.flush();
    } catch (ReflectiveOperationException failure) {
      throw new IllegalStateException(failure);
    }
  }

  /** Makes RocksDB flush all families, also where a commit leaves the flush to RocksDB. */
  static void flush(StateStore store) {
    commit(store);
    StateStore inner = store;
    while (inner instanceof WrappedStateStore<?, ?, ?> wrapped) {
      inner = wrapped.wrapped();
    }
    try (FlushOptions options = new FlushOptions()) {
      RocksDB db = (RocksDB) field(RocksDBStore.class, "db", inner);
      List<ColumnFamilyHandle> families = new ArrayList<>();
      for (Object family : (List<?>) field(RocksDB.class, "ownedColumnFamilyHandles", db)) {
        families.add((ColumnFamilyHandle) family);
      }
      db.flush(options, families);
    } catch (ReflectiveOperationException | RocksDBException failure) {
      throw new IllegalStateException(failure);
    }
  }

  private static Object field(Class<?> type, String name, Object of) throws ReflectiveOperationException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field.get(of);
  }

  /** The bytes of all files below a directory. */
  static long size(Path directory) throws IOException {
    try (Stream<Path> files = Files.walk(directory)) {
      return files.filter(Files::isRegularFile).mapToLong(file -> file.toFile().length()).sum();
    }
  }
}
