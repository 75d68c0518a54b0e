package jdbbench;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * The entries of a run. Key and value follow from the entry's number, so that a value that is read can be checked.
 *
 * <p>A key is its number in eight bytes, the most significant one first, and then bytes of '0'. A key of fewer bytes has only the
 * last bytes of the number. A value is a part of a pool of random text that compresses to the given ratio.
 */
final class Entries {
  private static final int NUMBER_BYTES = 8;
  private static final int POOL_BYTES = 1 << 20;

  /** Random bytes of the pool are repeated in pieces of this size. */
  private static final int PIECE_BYTES = 100;

  private static final int LONGEST = 64 << 20;

  private final int keySize;
  private final int valueSize;
  private final byte[] pool;

  private Entries(int keySize, int valueSize, double ratio) {
    this.keySize = keySize;
    this.valueSize = valueSize;
    this.pool = new byte[POOL_BYTES + valueSize];
    int fresh = Math.min(PIECE_BYTES, Math.max(1, (int) (PIECE_BYTES * ratio)));
    SplittableRandom random = new SplittableRandom(301);
    for (int at = 0; at < pool.length; at++) {
      boolean isFresh = at % PIECE_BYTES < fresh;
      pool[at] = isFresh ? (byte) (' ' + random.nextInt(95)) : pool[at - fresh];
    }
  }

  /**
   * The entries that the flags describe.
   *
   * @throws IllegalArgumentException the keys are too short for so many entries
   */
  static Entries of(Flags flags) {
    int keySize = flags.small("key_size");
    long num = flags.number("num");
    if (num < 1 || flags.small("threads") < 1 || flags.small("value_size") < 0) {
      throw new IllegalArgumentException("--num and --threads are at least 1, and --value_size at least 0");
    }
    if (keySize > LONGEST || flags.small("value_size") > LONGEST) {
      throw new IllegalArgumentException("--key_size and --value_size are at most " + LONGEST);
    }
    if (keySize < 1 || (keySize < NUMBER_BYTES && (num - 1) >>> (8 * keySize) != 0)) {
      throw new IllegalArgumentException("keys of " + keySize + " bytes are too short for " + num + " entries");
    }
    return new Entries(keySize, flags.small("value_size"), flags.ratio("compression_ratio"));
  }

  byte[] newKey() {
    byte[] key = new byte[keySize];
    Arrays.fill(key, (byte) '0');
    return key;
  }

  byte[] newValue() {
    return new byte[valueSize];
  }

  /** Writes the key of an entry into a buffer of {@link #newKey}. */
  void key(long number, byte[] key) {
    int bytes = Math.min(keySize, NUMBER_BYTES);
    for (int at = bytes - 1; at >= 0; at--) {
      key[at] = (byte) number;
      number >>>= 8;
    }
  }

  /** The number of the entry that has this key. */
  long numberOf(byte[] key) {
    long number = 0;
    for (int at = 0; at < Math.min(key.length, NUMBER_BYTES); at++) {
      number = number << 8 | key[at] & 0xff;
    }
    return number;
  }

  /** Writes the value of an entry into a buffer of {@link #newValue}. */
  void value(long number, byte[] value) {
    System.arraycopy(pool, place(number), value, 0, valueSize);
  }

  boolean isValue(long number, byte[] value, int length) {
    int place = place(number);
    return length == valueSize && Arrays.equals(value, 0, length, pool, place, place + valueSize);
  }

  /** Where the value of an entry begins in the pool. */
  private static int place(long number) {
    return (int) ((number * 0x9E3779B97F4A7C15L) >>> 44);
  }

  int bytes() {
    return keySize + valueSize;
  }
}
