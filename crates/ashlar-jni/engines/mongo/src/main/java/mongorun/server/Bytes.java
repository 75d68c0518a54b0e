package mongorun.server;

import java.nio.ByteBuffer;
import java.util.Arrays;

/** Keys are compared byte by byte, without signs. */
final class Bytes {
  private Bytes() {}

  static byte[] of(int number) {
    return ByteBuffer.allocate(4).putInt(number).array();
  }

  static byte[] of(long number) {
    return ByteBuffer.allocate(8).putLong(number).array();
  }

  static byte[] join(byte[]... parts) {
    int length = 0;
    for (byte[] part : parts) {
      length += part.length;
    }
    ByteBuffer all = ByteBuffer.allocate(length);
    for (byte[] part : parts) {
      all.put(part);
    }
    return all.array();
  }

  /** The first key after all keys that begin with {@code prefix}, which has a byte other than 0xFF. */
  static byte[] after(byte[] prefix) {
    int last = prefix.length - 1;
    while (prefix[last] == (byte) 0xFF) {
      last--;
    }
    byte[] next = Arrays.copyOf(prefix, last + 1);
    next[last]++;
    return next;
  }
}
