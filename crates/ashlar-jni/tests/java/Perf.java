import java.nio.file.Path;
import org.rocksdb.*;

/** The perf context of a thread that sets no level, and of one that does. Prints the same over both native halves. */
public final class Perf extends Answers {
  static String counted(RocksDB db) throws RocksDBException {
    PerfContext perf = db.getPerfContext();
    return (perf.getFromMemtableCount() > 0) + " " + (perf.getReadBytes() > 0);
  }

  static void work(RocksDB db) throws RocksDBException {
    for (int i = 0; i < 500; i++) {
      db.put(b("key" + i), b("value" + i));
    }
    for (int i = 0; i < 500; i++) {
      db.get(b("key" + i));
    }
  }

  public static void main(String[] args) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, Path.of(args[0]).resolve("db").toString())) {
      System.out.println("level " + db.getPerfLevel());
      work(db);
      System.out.println("counted " + counted(db));
      db.getPerfContext().reset();
      System.out.println("reset " + counted(db));
      db.setPerfLevel(PerfLevel.DISABLE);
      System.out.println("level " + db.getPerfLevel());
      work(db);
      System.out.println("counted " + counted(db));
      db.setPerfLevel(PerfLevel.ENABLE_TIME_AND_CPU_TIME_EXCEPT_FOR_MUTEX);
      System.out.println("level " + db.getPerfLevel());
      work(db);
      System.out.println("counted " + counted(db));
    }
    System.out.println("end");
  }
}
