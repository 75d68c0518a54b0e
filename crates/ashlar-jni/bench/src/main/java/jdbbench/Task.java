package jdbbench;

import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

/** The part of a workload that one thread does: the operations from {@code first} on, before {@code end}. */
final class Task implements Runnable {
  /** An operation of the workload. */
  private interface Step {
    void run(long operation) throws RocksDBException;
  }

  private static final long NANOS = 1_000_000_000L;
  private static final long NAP_NANOS = 1_000_000L;

  private final Workload workload;
  private final Flags flags;
  private final Entries entries;
  private final Database database;
  private final CountDownLatch start;
  private final int id;
  private final long first;
  private final long end;
  private final long num;
  private final SplittableRandom random;
  private final byte[] key;
  private final byte[] value;

  /** What the thread has done. Read these after the thread has ended. */
  long done;

  long found;
  long bytes;
  boolean finished;

  Task(Workload workload, Flags flags, Entries entries, Database database, CountDownLatch start, int id, long first, long end) {
    this.workload = workload;
    this.flags = flags;
    this.entries = entries;
    this.database = database;
    this.start = start;
    this.id = id;
    this.first = first;
    this.end = end;
    this.num = flags.number("num");
    this.random = new SplittableRandom(flags.number("seed") * 1_000_003 + workload.ordinal() * 1_009L + id);
    this.key = entries.newKey();
    this.value = entries.newValue();
  }

  @Override
  public void run() {
    try {
      start.await();
      switch (workload) {
        case FILLSEQ -> each(this::put);
        case FILLRANDOM -> each(operation -> put(drawn()));
        case READRANDOM, READWHILEWRITING -> reads();
        case READSEQ -> scan();
        case WAITFORCOMPACTION -> throw new IllegalStateException("no work of threads");
      }
      finished = true;
    } catch (RocksDBException | RuntimeException | InterruptedException failure) {
      System.err.println("jdb_bench: thread " + id + " failed after " + done + " operations: " + failure);
    }
  }

  private void each(Step step) throws RocksDBException {
    long interval = flags.number("stats_interval");
    long begun = System.nanoTime();
    for (long operation = first; operation < end; operation++) {
      step.run(operation);
      done++;
      if (interval > 0 && done % interval == 0) {
        progress(System.nanoTime() - begun);
      }
    }
  }

  private void reads() throws RocksDBException {
    boolean verify = flags.is("verify_values");
    each(
        operation -> {
          long number = drawn();
          entries.key(number, key);
          int length = database.db().get(database.reads(), key, value);
          if (length >= 0) {
            count(number, length, verify);
          }
        });
  }

  /** Reads the entries whose numbers are this thread's. */
  private void scan() throws RocksDBException {
    boolean verify = flags.is("verify_values");
    entries.key(first, key);
    try (RocksIterator iterator = database.db().newIterator(database.reads())) {
      for (iterator.seek(key); iterator.isValid(); iterator.next()) {
        long number = entries.numberOf(iterator.key());
        if (number >= end) {
          return;
        }
        int length = iterator.value(value, 0, value.length);
        done++;
        count(number, length, verify);
      }
      iterator.status();
    }
  }

  private void count(long number, int length, boolean verify) {
    if (verify && !entries.isValue(number, value, length)) {
      throw new IllegalStateException("the value of entry " + number + " is not the one that was put");
    }
    found++;
    bytes += key.length + length;
  }

  private void put(long number) throws RocksDBException {
    entries.key(number, key);
    entries.value(number, value);
    database.db().put(database.writes(), key, value);
    bytes += entries.bytes();
  }

  private long drawn() {
    return random.nextLong(num);
  }

  private void progress(long nanos) throws RocksDBException {
    double rate = (double) done * NANOS / Math.max(1, nanos);
    System.err.printf(Locale.ROOT, "... thread %d: %d operations, %.1f per second%n", id, done, rate);
    if (id == 0 && flags.number("stats_per_interval") > 0) {
      System.err.println(database.db().getProperty("rocksdb.stats"));
    }
  }

  /**
   * Puts drawn entries at the rate of {@code --writes_per_second} until {@code over}. The writer sleeps when it is ahead of its rate;
   * after a stall it catches up.
   */
  void write(AtomicBoolean over) {
    long rate = flags.number("writes_per_second");
    try {
      start.await();
      long begun = System.nanoTime();
      while (!over.get()) {
        double due = (System.nanoTime() - begun) * (double) rate / NANOS;
        if (rate > 0 && done >= due) {
          LockSupport.parkNanos(NAP_NANOS);
          continue;
        }
        put(drawn());
        done++;
      }
      finished = true;
    } catch (RocksDBException | RuntimeException | InterruptedException failure) {
      System.err.println("jdb_bench: the writer failed after " + done + " puts: " + failure);
    }
  }
}
