package flinkrun;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.state.AbstractKeyedStateBackend;
import org.apache.flink.runtime.state.KeyedStateBackendParametersImpl;
import org.apache.flink.runtime.state.StateBackendFactory;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend;

/** Flink's RocksDB backend with a clock for the time to live that moves only when the program moves it. */
public final class ClockedBackend extends EmbeddedRocksDBStateBackend {
  private static final long serialVersionUID = 1;
  /** Milliseconds; the cluster runs in this process. */
  static final AtomicLong CLOCK = new AtomicLong(1_000_000);

  private ClockedBackend(EmbeddedRocksDBStateBackend original, ReadableConfig config, ClassLoader loader) {
    super(original, config, loader);
  }

  /** What the setting `state.backend.type` names. */
  public static final class Factory implements StateBackendFactory<ClockedBackend> {
    @Override
    public ClockedBackend createFromConfig(ReadableConfig config, ClassLoader loader) {
      return new ClockedBackend(new EmbeddedRocksDBStateBackend(), config, loader);
    }
  }

  @Override
  public ClockedBackend configure(ReadableConfig config, ClassLoader loader) {
    return new ClockedBackend(this, config, loader);
  }

  @Override
  public <K> AbstractKeyedStateBackend<K> createKeyedStateBackend(KeyedStateBackendParameters<K> with) throws IOException {
    return super.createKeyedStateBackend(new KeyedStateBackendParametersImpl<>(with).setTtlTimeProvider(CLOCK::get));
  }
}
