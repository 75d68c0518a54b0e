package flinkrun;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Counts how Flink restores state, by the messages that it logs. All of Flink's other messages are off. */
final class Restores extends Handler {
  private static final Pattern EXPORTED = Pattern.compile("Completed restore export .* (\\d+) exported handles");
  private static final String LOGGER = "org.apache.flink.state.rocksdb.restore.RocksDBIncrementalRestoreOperation";

  private final AtomicInteger exported = new AtomicInteger();
  /** The JVM forgets a logger, and its settings, that nothing refers to. */
  private final Logger logger = Logger.getLogger(LOGGER);

  Restores() {
    LogManager.getLogManager().reset();
    Logger.getLogger("").setLevel(Level.OFF);
    logger.setLevel(Level.INFO);
    logger.addHandler(this);
  }

  /** How many databases of the savepoint were exported and imported since the last call. */
  int imported() {
    return exported.getAndSet(0);
  }

  @Override
  public void publish(LogRecord record) {
    Matcher found = EXPORTED.matcher(String.valueOf(record.getMessage()));
    if (found.find()) {
      exported.addAndGet(Integer.parseInt(found.group(1)));
    }
  }

  @Override
  public void flush() {}

  @Override
  public void close() {}
}
