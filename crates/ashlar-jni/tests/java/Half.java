import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.rocksdb.RocksDB;

/**
 * Loads a native half, runs the program args[0] with args[1], and says on standard error which native halves are mapped. A thread that a
 * program leaves behind does not keep the JVM.
 */
public final class Half {
  public static void main(String[] args) {
    try {
      RocksDB.loadLibrary();
      Class.forName(args[0]).getMethod("main", String[].class).invoke(null, (Object) new String[] {args[1]});
      report();
      System.out.flush();
      System.exit(0);
    } catch (InvocationTargetException failure) {
      failure.getCause().printStackTrace();
    } catch (Throwable failure) {
      failure.printStackTrace();
    }
    System.out.flush();
    Runtime.getRuntime().halt(1);
  }

  private static void report() throws Exception {
    Files.readAllLines(Path.of("/proc/self/maps")).stream().filter(line -> line.contains("librocksdbjni"))
        .map(line -> line.substring(line.indexOf('/'))).distinct().forEach(file -> System.err.println("half " + file));
  }
}
