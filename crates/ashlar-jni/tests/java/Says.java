import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.rocksdb.*;

/** What a database tells a program: events, settings, states of transactions. Prints what each call answers. */
public final class Says extends Answers {
  public static void main(String[] args) throws Exception {
    Path dir = Path.of(args[0]);
    events(dir.resolve("events").toString());
    settings(dir.resolve("settings").toString(), dir.resolve("none/copy").toString());
    ranges(dir.resolve("ranges").toString());
    batches();
    transactions(dir.resolve("transactions").toString(), dir.resolve("free").toString());
    options();
    System.out.println("end");
  }

  static void events(String path) throws Exception {
    BlockingQueue<String> heard = new LinkedBlockingQueue<>();
    AbstractEventListener listener = new AbstractEventListener() {
      @Override
      public void onFlushBegin(RocksDB db, FlushJobInfo info) {
        heard.add("flush begins " + info.getFlushReason());
      }

      @Override
      public void onFlushCompleted(RocksDB db, FlushJobInfo info) {
        heard.add("flush ends " + info.getFlushReason());
      }

      @Override
      public void onTableFileCreationStarted(TableFileCreationBriefInfo info) {
        heard.add("table begins " + info.getColumnFamilyName() + " " + info.getReason() + " " + info.getDbName().equals(path));
      }

      @Override
      public void onTableFileCreated(TableFileCreationInfo info) {
        heard.add("table ends " + info.getColumnFamilyName() + " " + info.getReason() + " " + (info.getFileSize() > 500) + " "
            + info.getTableProperties().getNumEntries() + " " + info.getStatus().getCode());
      }

      @Override
      public void onTableFileDeleted(TableFileDeletionInfo info) {
        heard.add("table deleted " + info.getDbName().equals(path) + " " + info.getFilePath().endsWith(".sst") + " "
            + info.getStatus().getCode());
      }

      @Override
      public void onColumnFamilyHandleDeletionStarted(ColumnFamilyHandle handle) {
        heard.add("handle closed");
      }
    };
    try (Options options = new Options().setCreateIfMissing(true).setListeners(Collections.singletonList(listener));
        RocksDB db = RocksDB.open(options, path); FlushOptions flush = new FlushOptions()) {
      tell("open", heard, 1);
      ColumnFamilyHandle family = db.createColumnFamily(new ColumnFamilyDescriptor(b("other")));
      family.close();
      tell("close", heard, 1);
      for (int i = 0; i < 2; i++) {
        db.put(b("a"), b("1"));
        db.put(b("b"), b("2"));
        db.flush(flush);
        tell("flush", heard, 4);
      }
      db.compactRange();
      tell("compaction", heard, 4);
    }
    listener.close();
  }

  /** Waits for so many events, and prints them in order. The limit is one for events that do not come at all. */
  static void tell(String what, BlockingQueue<String> heard, int count) throws Exception {
    List<String> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      String event = heard.poll(1, TimeUnit.MINUTES);
      if (event == null) {
        throw new IllegalStateException(what + ": " + count + " events are wanted, there are " + all);
      }
      all.add(event);
    }
    Collections.sort(all);
    all.forEach(line -> System.out.println(what + ": " + line));
  }

  static void settings(String path, String copy) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true).setMaxOpenFiles(77).setWriteBufferSize(1 << 20)
        .setMaxBytesForLevelMultiplier(1).setAvoidFlushDuringShutdown(true); RocksDB db = RocksDB.open(options, path);
        Checkpoint checkpoint = Checkpoint.create(db)) {
      say("family", () -> db.getOptions().writeBufferSize() + " " + db.getOptions().disableAutoCompactions());
      say("database", () -> db.getDBOptions().maxOpenFiles() + " " + db.getDBOptions().avoidFlushDuringShutdown());
      db.setOptions(MutableColumnFamilyOptions.builder().setWriteBufferSize(2 << 20).setDisableAutoCompactions(true).build());
      say("changed", () -> db.getOptions().writeBufferSize() + " " + db.getOptions().disableAutoCompactions());
      say("small", () -> {
        db.setOptions(MutableColumnFamilyOptions.builder().setWriteBufferSize(2048).build());
        return "done";
      });
      say("no directory", () -> {
        try {
          checkpoint.createCheckpoint(copy);
          return "done";
        } catch (RocksDBException e) {
          // RocksDB adds a subcode, which is one that its jars do not know.
          return "throws " + e.getStatus().getCode();
        }
      });
      say("suggested", () -> db.suggestCompactRange() != null);
      db.cancelAllBackgroundWork(true);
      say("flush after the end", () -> {
        db.put(b("a"), b("1"));
        db.flush(new FlushOptions());
        return "done";
      });
    }
    try (Options old = new Options()) {
      old.oldDefaults(4, 6);
      System.out.println("old: " + old.writeBufferSize() + " " + old.maxOpenFiles() + " " + old.level0StopWritesTrigger() + " "
          + old.walRecoveryMode() + " " + old.compactionPriority());
    }
    try (DBOptions options = new DBOptions().setCreateIfMissing(true)) {
      List<ColumnFamilyDescriptor> two = Arrays.asList(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY),
          new ColumnFamilyDescriptor(b("missing")));
      say("missing family", () -> RocksDB.open(options, path + "2", two, new ArrayList<>()));
    }
  }

  static void ranges(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
        FlushOptions flush = new FlushOptions()) {
      for (int i = 0; i < 10; i++) {
        db.put(b("k" + i), b("v" + i));
      }
      try (Snapshot snapshot = db.getSnapshot(); RocksIterator iterator = db.newIterator()) {
        db.put(b("k99"), b("later"));
        iterator.refresh();
        iterator.seekToLast();
        System.out.println("newest: " + s(iterator.key()));
        iterator.refresh(snapshot);
        iterator.seekToLast();
        System.out.println("snapshot: " + s(iterator.key()));
        iterator.refresh();
        iterator.seekToLast();
        System.out.println("again: " + s(iterator.key()));
        db.releaseSnapshot(snapshot);
      }
      db.clipColumnFamily(db.getDefaultColumnFamily(), b("k3"), b("k6"));
      StringBuilder keys = new StringBuilder();
      try (RocksIterator iterator = db.newIterator()) {
        for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
          keys.append(s(iterator.key())).append(' ');
        }
      }
      System.out.println("clipped: " + keys);
      db.flush(flush);
      db.compactRange();
      db.deleteFilesInRanges(db.getDefaultColumnFamily(), Arrays.asList(null, null), true);
      System.out.println("left: " + s(db.get(b("k4"))));
    }
  }

  static void batches() throws Exception {
    try (WriteBatch batch = new WriteBatch()) {
      System.out.println("mark: " + batch.getWalTerminationPoint().isCleared());
      batch.put(b("k1"), b("v1"));
      batch.delete(b("k2"));
      batch.markWalTerminationPoint();
      WriteBatch.SavePoint mark = batch.getWalTerminationPoint();
      System.out.println("mark: " + mark.getSize() + " " + mark.getCount() + " " + mark.getContentFlags());
    }
    try (WriteBatchWithIndex batch = new WriteBatchWithIndex()) {
      batch.setMaxBytes(40);
      batch.put(b("k1"), b("v1"));
      batch.delete(b("k2"));
      say("beyond", () -> {
        batch.put(b("k3"), b("a value that is too long"));
        return "done";
      });
      try (WBWIRocksIterator iterator = batch.newIterator()) {
        for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
          WBWIRocksIterator.WriteEntry entry = iterator.entry();
          System.out.println("entry: " + entry.getType() + " " + entry.getKey() + " "
              + (entry.getValue() == null ? "none" : entry.getValue()));
        }
      }
      WriteBatch plain = batch.getWriteBatch();
      System.out.println("plain: " + plain.count() + " " + plain.isOwningHandle());
    }
    ByteBuffer buffer = ByteBuffer.allocateDirect(10);
    buffer.put(b("text"));
    try (DirectSlice slice = new DirectSlice(buffer)) {
      System.out.println("slice: " + slice + " " + slice.size());
    }
  }

  static void transactions(String path, String free) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions locks = new TransactionDBOptions();
        TransactionDB db = TransactionDB.open(options, locks, path); WriteOptions write = new WriteOptions();
        ReadOptions read = new ReadOptions()) {
      try (Transaction txn = db.beginTransaction(write)) {
        txn.setLockTimeout(50);
        write.setSync(true);
        txn.setWriteOptions(write);
        txn.put(b("a"), b("1"));
        try (Transaction other = db.beginTransaction(write)) {
          other.setLockTimeout(1);
          say("locked", () -> s(other.getForUpdate(read, b("a"), true)));
        }
        System.out.println("waits: " + txn.getWaitingTxns().getTransactionIds().length);
        System.out.println("options: " + txn.getWriteOptions().sync());
        txn.setLogNumber(7);
        System.out.println("log: " + txn.getLogNumber() + " " + txn.getCommitTimeWriteBatch().count());
        txn.rollback();
        System.out.println("state: " + txn.getState());
        txn.put(b("a"), b("2"));
        txn.commit();
        System.out.println("state: " + txn.getState() + " " + s(db.get(b("a"))));
      }
      StringBuilder seen = new StringBuilder();
      try (Transaction txn = db.beginTransaction(write); AbstractTransactionNotifier notifier = new AbstractTransactionNotifier() {
        @Override
        public void snapshotCreated(Snapshot snapshot) {
          seen.append(snapshot.getSequenceNumber() > 0);
        }
      }) {
        txn.setSnapshotOnNextOperation(notifier);
        System.out.println("notified: " + seen + (txn.getSnapshot() == null));
        txn.put(b("b"), b("1"));
        System.out.println("notified: " + seen + (txn.getSnapshot() == null));
        txn.put(b("c"), b("1"));
        System.out.println("notified: " + seen);
        txn.commit();
      }
      System.out.println("deadlocks: " + db.getDeadlockInfoBuffer().length);
    }
    try (Options options = new Options().setCreateIfMissing(true); OptimisticTransactionDB db = OptimisticTransactionDB.open(options,
        free); WriteOptions write = new WriteOptions(); Transaction txn = db.beginTransaction(write)) {
      txn.setLockTimeout(5);
      say("name", () -> {
        txn.setName("name");
        return "done";
      });
      say("prepare", () -> {
        txn.prepare();
        return "done";
      });
    }
  }

  static void options() throws Exception {
    try (Slice time = new Slice("12345678"); ReadOptions read = new ReadOptions().setTimestamp(time).setIterStartTs(time);
        ReadOptions copy = new ReadOptions(read)) {
      System.out.println("timestamps: " + copy.timestamp().toString() + " " + copy.iterStartTs().toString());
    }
    try (DBOptions database = new DBOptions().setCompactionReadaheadSize(4 << 20).setBytesPerSync(77);
        EnvOptions files = new EnvOptions(database)) {
      System.out.println("files: " + files.compactionReadaheadSize() + " " + files.bytesPerSync());
    }
    try (RocksMemEnv memory = new RocksMemEnv(Env.getDefault())) {
      memory.setBackgroundThreads(4, Priority.LOW);
      System.out.println("threads: " + Env.getDefault().getBackgroundThreads(Priority.LOW));
    }
    try (CompactRangeOptions compaction = new CompactRangeOptions()) {
      compaction.setFullHistoryTSLow(new CompactRangeOptions.Timestamp(18, 1));
      System.out.println("history: " + compaction.fullHistoryTSLow().start + " " + compaction.fullHistoryTSLow().range);
    }
    try (Options options = new Options()) {
      options.setMergeOperatorName("");
      System.out.println("no operator");
    }
  }
}
