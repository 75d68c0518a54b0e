package streamscheck;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.CompactionStyle;
import org.rocksdb.CompressionType;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.WriteBufferManager;

/**
 * The settings of RocksDB that programs of Kafka Streams change: one cache and one limit on memtables for all stores, other blocks,
 * filters, compression and compaction. The memtables are small, so that a short run flushes and compacts.
 */
public final class Settings implements RocksDBConfigSetter {
  private static final Cache CACHE = new LRUCache(16 << 20, -1, false, 0.3);
  private static final WriteBufferManager MEMTABLES = new WriteBufferManager(8 << 20, CACHE);

  private final BloomFilter filter = new BloomFilter(12, false);

  @Override
  public void setConfig(String store, Options options, Map<String, Object> configs) {
    BlockBasedTableConfig table = (BlockBasedTableConfig) options.tableFormatConfig();
    table.setBlockCache(CACHE);
    table.setCacheIndexAndFilterBlocks(true);
    table.setCacheIndexAndFilterBlocksWithHighPriority(true);
    table.setPinTopLevelIndexAndFilter(true);
    table.setBlockSize(8 << 10);
    table.setFilterPolicy(filter);
    options.setTableFormatConfig(table);
    options.setWriteBufferManager(MEMTABLES);
    options.setWriteBufferSize(256 << 10);
    options.setMaxWriteBufferNumber(2);
    options.setCompressionType(CompressionType.LZ4_COMPRESSION);
    options.setCompactionStyle(CompactionStyle.LEVEL);
    options.setMaxBytesForLevelBase(1 << 20);
    options.setTargetFileSizeBase(256 << 10);
    options.setLevel0FileNumCompactionTrigger(3);
    options.setOptimizeFiltersForHits(false);
  }

  @Override
  public void close(String store, Options options) {
    filter.close();
  }
}
