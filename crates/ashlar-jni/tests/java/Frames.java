import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.rocksdb.*;

/**
 * Many callbacks on threads of the engine, which never return to Java: what each of them makes must end with it. Run with a small limit
 * on direct memory, and with the JVM's checks, which complain of local references that pile up.
 */
public final class Frames {
  static final AtomicInteger heard = new AtomicInteger();

  static final class Bytes extends AbstractComparator {
    Bytes(ComparatorOptions options) {
      super(options);
    }

    @Override public String name() {
      return "frames.Bytes";
    }

    @Override public int compare(ByteBuffer a, ByteBuffer b) {
      return a.compareTo(b);
    }
  }

  static byte[] key(int number, int length) {
    byte[] key = new byte[length];
    ByteBuffer.wrap(key, length - 4, 4).putInt(number);
    return key;
  }

  public static void main(String[] args) throws Exception {
    AbstractEventListener listener = new AbstractEventListener() {
      @Override public void onFlushBegin(RocksDB db, FlushJobInfo info) {
        heard.incrementAndGet();
      }

      @Override public void onFlushCompleted(RocksDB db, FlushJobInfo info) {
        heard.incrementAndGet();
      }

      @Override public void onCompactionCompleted(RocksDB db, CompactionJobInfo info) {
        heard.incrementAndGet();
      }
    };
    int count = 1500;
    for (boolean direct : new boolean[] {true, false}) {
      try (ComparatorOptions how = new ComparatorOptions().setUseDirectBuffer(direct).setMaxReusedBufferSize(64); Bytes order = new Bytes(how);
          Options options = new Options().setCreateIfMissing(true).setComparator(order).setListeners(List.of(listener));
          RocksDB db = RocksDB.open(options, Path.of(args[0]).resolve("direct" + direct).toString())) {
        for (int round = 0; round < 3; round++) {
          for (int i = 0; i < count; i++) {
            db.put(key(i * 7919 % count, 300), key(i, 8));
          }
          db.flush(new FlushOptions());
        }
        for (int round = 0; round < 40; round++) {
          db.put(key(round, 300), key(round, 8));
          db.flush(new FlushOptions());
        }
        db.compactRange();
        try (RocksIterator iterator = db.newIterator()) {
          int found = 0;
          for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
            found++;
          }
          System.out.println("keys " + found);
        }
      }
    }
    System.out.println("heard " + (heard.get() > 160));
    System.out.println("end");
  }
}
