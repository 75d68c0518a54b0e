package streamscheck;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;

/** Records of a changelog topic. */
final class Records {
  private Records() {}

  static ConsumerRecord<byte[], byte[]> of(long offset, long time, byte[] key, byte[] value) {
    int valueSize = value == null ? -1 : value.length;
    return new ConsumerRecord<>(
        "changelog",
        0,
        offset,
        time,
        TimestampType.CREATE_TIME,
        key.length,
        valueSize,
        key,
        value,
        new RecordHeaders(),
        Optional.empty());
  }
}
