import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.DBOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/**
 * Writes a case of {@code rel torture --through} through RocksJava until it is killed. src/torture/door.rs has the words of the
 * command line and the bytes of the operations. An error ends the program.
 */
public final class Torture {
  private static final String[] NAMES = {"default", "one", "two"};

  private final RocksDB db;
  private final List<ColumnFamilyHandle> families;
  private final FileChannel progress;

  private Torture(RocksDB db, List<ColumnFamilyHandle> families, FileChannel progress) {
    this.db = db;
    this.families = families;
    this.progress = progress;
  }

  /** Options of the string: the database's, and the families'. */
  private static Properties properties(String text) {
    Properties properties = new Properties();
    for (String pair : text.split(";")) {
      int at = pair.indexOf('=');
      properties.setProperty(pair.substring(0, at), pair.substring(at + 1));
    }
    return properties;
  }

  private static Properties only(Properties all, boolean ofDatabase) {
    Properties some = new Properties();
    for (String name : all.stringPropertyNames()) {
      boolean isOfDatabase = List.of("max_open_files", "max_total_wal_size", "wal_compression").contains(name);
      if (isOfDatabase == ofDatabase) some.setProperty(name, all.getProperty(name));
    }
    return some;
  }

  private static byte[] field(ByteBuffer script) {
    byte[] bytes = new byte[script.getInt()];
    script.get(bytes);
    return bytes;
  }

  private void add(WriteBatch batch, ByteBuffer script) throws RocksDBException {
    int kind = script.get();
    ColumnFamilyHandle family = families.get(script.get());
    byte[] key = field(script);
    byte[] value = field(script);
    switch (kind) {
      case 0 -> batch.put(family, key, value);
      case 1 -> batch.delete(family, key);
      case 2 -> batch.merge(family, key, value);
      case 3 -> batch.deleteRange(family, key, value);
      default -> throw new IllegalArgumentException("no such kind of change: " + kind);
    }
  }

  private void write(Path path, int writer) throws IOException, RocksDBException {
    ByteBuffer script = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer count = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    try (WriteOptions plain = new WriteOptions();
        WriteOptions synced = new WriteOptions().setSync(true);
        WriteBatch batch = new WriteBatch()) {
      for (long done = 1; script.hasRemaining(); done++) {
        boolean sync = script.get() != 0;
        int changes = script.get();
        batch.clear();
        for (int i = 0; i < changes; i++) add(batch, script);
        db.write(sync ? synced : plain, batch);
        progress.write(count.clear().putLong(done).flip(), 8L * writer);
      }
    }
  }

  private void writeOrEnd(Path path, int writer) {
    try {
      write(path, writer);
    } catch (IOException | RocksDBException | RuntimeException e) {
      e.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  public static void main(String[] words) throws Exception {
    RocksDB.loadLibrary();
    Properties all = properties(words[1]);
    DBOptions options = DBOptions.getDBOptionsFromProps(only(all, true));
    ColumnFamilyOptions family = ColumnFamilyOptions.getColumnFamilyOptionsFromProps(only(all, false));
    if (options == null || family == null) throw new IllegalArgumentException("options: " + words[1]);
    options.setCreateIfMissing(true).setCreateMissingColumnFamilies(true);
    List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
    for (String name : NAMES) {
      descriptors.add(new ColumnFamilyDescriptor(name.getBytes(StandardCharsets.UTF_8), family));
    }
    List<ColumnFamilyHandle> families = new ArrayList<>();
    RocksDB db = RocksDB.open(options, words[0], descriptors, families);
    FileChannel progress = FileChannel.open(Path.of(words[3]), StandardOpenOption.WRITE);
    Torture torture = new Torture(db, families, progress);
    List<Thread> threads = new ArrayList<>();
    for (int writer = 0; writer < Integer.parseInt(words[4]); writer++) {
      int number = writer;
      Path script = Path.of(words[2], Integer.toString(writer));
      threads.add(new Thread(() -> torture.writeOrEnd(script, number)));
    }
    threads.forEach(Thread::start);
    for (Thread thread : threads) thread.join();
    // A rig that died does not kill.
    Thread.sleep(120_000);
  }
}
