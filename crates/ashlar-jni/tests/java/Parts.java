import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.rocksdb.*;

/** Clips, exports of parts, cancelled work, and transactions with their snapshots and options. Prints what each call answers. */
public class Parts extends Answers {
  static void say(String what, Object answer) {
    System.out.println(what + ": " + answer);
  }

  /** Says what a call answers, or with which code it fails. */
  static void attempt(String what, Step step) throws Exception {
    try {
      Object answer = step.run();
      say(what, answer == null ? "done" : answer);
    } catch (RocksDBException e) {
      say(what, e.getStatus() == null ? "fails" : e.getStatus().getCode());
    }
  }

  static String keys(RocksIterator iterator) {
    StringBuilder found = new StringBuilder();
    try (RocksIterator it = iterator) {
      for (it.seekToFirst(); it.isValid(); it.next()) {
        found.append(s(it.key())).append('=').append(s(it.value())).append(' ');
      }
    }
    return found.toString().trim();
  }

  public static void main(String[] args) throws Exception {
    String path = args[0];
    clips(path);
    transactions(path);
    cancelled(path);
    listeners(path);
    System.out.println("end");
  }

  static ColumnFamilyHandle filled(RocksDB db, String name) throws Exception {
    ColumnFamilyHandle family = db.createColumnFamily(new ColumnFamilyDescriptor(b(name)));
    for (String key : Arrays.asList("a", "c", "m", "x")) {
      db.put(family, b(key), b(name));
    }
    try (FlushOptions flush = new FlushOptions()) {
      db.flush(flush, family);
      db.compactRange(family);
      db.delete(family, b("b"));
      db.put(family, b("m"), b(name + "2"));
      db.flush(flush, family);
    }
    return family;
  }

  static long tombstones(RocksDB db, ColumnFamilyHandle family) throws Exception {
    long found = 0;
    for (TableProperties table : db.getPropertiesOfAllTables(family).values()) {
      found += table.getNumDeletions() + table.getNumRangeDeletions();
    }
    return found;
  }

  static void clips(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true).setDisableAutoCompactions(true);
        RocksDB db = RocksDB.open(options, path + "/clips"); Checkpoint checkpoint = Checkpoint.create(db);
        ImportColumnFamilyOptions how = new ImportColumnFamilyOptions()) {
      ColumnFamilyHandle low = filled(db, "low");
      ColumnFamilyHandle high = filled(db, "high");
      db.clipColumnFamily(low, b("a"), b("m"));
      db.clipColumnFamily(high, b("m"), b("y"));
      say("low", keys(db.newIterator(low)) + ", tombstones " + tombstones(db, low));
      say("high", keys(db.newIterator(high)) + ", tombstones " + tombstones(db, high));
      ExportImportFilesMetaData one = checkpoint.exportColumnFamily(low, path + "/one");
      ExportImportFilesMetaData two = checkpoint.exportColumnFamily(high, path + "/two");
      ExportImportFilesMetaData all = checkpoint.exportColumnFamily(filled(db, "all"), path + "/all");
      attempt("parts that overlap", () -> db.createColumnFamilyWithImport(
          new ColumnFamilyDescriptor(b("both")), how, Arrays.asList(two, all)).getName().length);
      ColumnFamilyHandle joined =
          db.createColumnFamilyWithImport(new ColumnFamilyDescriptor(b("joined")), how, Arrays.asList(two, one));
      say("joined", keys(db.newIterator(joined)));
    }
  }

  /** Counts the snapshots that it is shown. */
  static class Notifier extends AbstractTransactionNotifier {
    final AtomicLong shown = new AtomicLong();
    long newest = 0;

    @Override
    public void snapshotCreated(Snapshot snapshot) {
      newest = snapshot.getSequenceNumber();
      shown.incrementAndGet();
    }
  }

  static void transactions(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true);
        TransactionDBOptions own = new TransactionDBOptions().setTransactionLockTimeout(60_000);
        TransactionDB db = TransactionDB.open(options, own, path + "/transactions");
        WriteOptions write = new WriteOptions(); WriteOptions synced = new WriteOptions().setSync(true)) {
      notifiers(db, write);
      waits(db, write);
      try (Transaction txn = db.beginTransaction(write)) {
        say("write options", txn.getWriteOptions().sync());
        txn.setWriteOptions(synced);
        say("write options, set again", txn.getWriteOptions().sync());
        txn.getCommitTimeWriteBatch().put(b("at"), b("commit"));
        say("for the commit", txn.getCommitTimeWriteBatch().count());
        txn.put(b("k"), b("v"));
        txn.rollback();
        say("for the commit, rolled back", txn.getCommitTimeWriteBatch().count());
        txn.commit();
      }
    }
    try (WriteBatchWithIndex batch = new WriteBatchWithIndex(true)) {
      batch.put(b("a"), b("1"));
      WriteBatch first = batch.getWriteBatch();
      WriteBatch second = batch.getWriteBatch();
      say("batch of a batch", first.count() + " " + second.count());
    }
  }

  static void notifiers(TransactionDB db, WriteOptions write) throws Exception {
    try (Notifier notifier = new Notifier()) {
      try (Transaction txn = db.beginTransaction(write)) {
        txn.setSnapshotOnNextOperation(notifier);
        txn.put(b("n1"), b("v"));
        txn.put(b("n2"), b("v"));
        say("next operation", notifier.shown.get());
        txn.setSnapshotOnNextOperation(notifier);
        txn.setSnapshot();
        txn.put(b("n3"), b("v"));
        say("after setSnapshot", notifier.shown.get());
        txn.setSnapshotOnNextOperation(notifier);
        txn.clearSnapshot();
        txn.put(b("n4"), b("v"));
        say("after clearSnapshot", notifier.shown.get() + " " + (txn.getSnapshot() == null));
        txn.setSnapshotOnNextOperation(notifier);
        txn.setSnapshotOnNextOperation();
        txn.put(b("n5"), b("v"));
        say("without a notifier", notifier.shown.get() + " " + (txn.getSnapshot() == null));
        txn.setSnapshotOnNextOperation(notifier);
        txn.putUntracked(b("n6"), b("v"));
        say("untracked", notifier.shown.get());
        txn.setSavePoint();
        txn.setSnapshotOnNextOperation(notifier);
        txn.rollbackToSavePoint();
        txn.put(b("n7"), b("v"));
        say("set behind a savepoint", notifier.shown.get());
        txn.setSnapshotOnNextOperation(notifier);
        txn.setSavePoint();
        txn.put(b("n8"), b("v"));
        txn.rollbackToSavePoint();
        txn.put(b("n9"), b("v"));
        say("set before a savepoint", notifier.shown.get());
        txn.setSnapshotOnNextOperation(notifier);
        txn.rollback();
        txn.put(b("n10"), b("v"));
        say("after a rollback", notifier.shown.get());
      }
    }
  }

  /** The snapshot of an operation that waits for a lock shows what the former holder wrote. */
  static void waits(TransactionDB db, WriteOptions write) throws Exception {
    try (Notifier notifier = new Notifier(); Transaction first = db.beginTransaction(write);
        Transaction second = db.beginTransaction(write)) {
      first.put(b("held"), b("1"));
      second.setSnapshotOnNextOperation(notifier);
      List<Exception> failed = Collections.synchronizedList(new ArrayList<>());
      Thread waiting = new Thread(() -> {
        try {
          second.put(b("held"), b("2"));
        } catch (RocksDBException e) {
          failed.add(e);
        }
      });
      waiting.start();
      while (first.getState() != null && waiting.getState() == Thread.State.NEW) {
        Thread.yield();
      }
      // The thread waits inside of a native call, which shows in no state of Java; without the wait the test proves less.
      Thread.sleep(200);
      first.commit();
      waiting.join();
      try (ReadOptions read = new ReadOptions().setSnapshot(second.getSnapshot())) {
        say("behind a lock", failed + " " + notifier.shown.get() + " " + s(db.get(read, b("held"))));
      }
      second.commit();
      say("held", s(db.get(b("held"))));
    }
  }

  static void cancelled(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true).setDisableAutoCompactions(true);
        EnvOptions env = new EnvOptions(); SstFileWriter writer = new SstFileWriter(env, options);
        RocksDB db = RocksDB.open(options, path + "/cancelled"); FlushOptions flush = new FlushOptions();
        Checkpoint checkpoint = Checkpoint.create(db); CompactionOptions compact = new CompactionOptions();
        IngestExternalFileOptions ingest = new IngestExternalFileOptions();
        ImportColumnFamilyOptions how = new ImportColumnFamilyOptions()) {
      ColumnFamilyHandle own = db.getDefaultColumnFamily();
      writer.open(path + "/other.sst");
      writer.put(b("o"), b("ingested"));
      writer.finish();
      db.put(b("a"), b("1"));
      db.flush(flush);
      ExportImportFilesMetaData export = checkpoint.exportColumnFamily(own, path + "/exported");
      List<String> files = Collections.singletonList(db.getLiveFilesMetaData().get(0).fileName());
      db.put(b("b"), b("2"));
      db.cancelAllBackgroundWork(true);
      attempt("flush", () -> {
        db.flush(flush);
        return null;
      });
      attempt("compactRange", () -> {
        db.compactRange();
        return null;
      });
      attempt("compactFiles", () -> db.compactFiles(compact, files, 1, -1, null).size());
      attempt("clip", () -> {
        db.clipColumnFamily(own, b("a"), b("b"));
        return null;
      });
      attempt("checkpoint", () -> {
        checkpoint.createCheckpoint(path + "/checkpoint");
        return null;
      });
      attempt("export", () -> checkpoint.exportColumnFamily(own, path + "/exported2") == null);
      attempt("ingest", () -> {
        db.ingestExternalFile(Collections.singletonList(path + "/other.sst"), ingest);
        return s(db.get(b("o")));
      });
      attempt("import", () -> keys(db.newIterator(db.createColumnFamilyWithImport(
          new ColumnFamilyDescriptor(b("imported")), how, Collections.singletonList(export)))));
      attempt("suggestCompactRange", () -> db.suggestCompactRange() == null);
      attempt("put", () -> {
        db.put(b("c"), b("3"));
        return s(db.get(b("c")));
      });
    }
  }

  static void listeners(String path) throws Exception {
    List<String> heard = Collections.synchronizedList(new ArrayList<>());
    AbstractEventListener listener = new AbstractEventListener() {
      @Override
      public void onTableFileCreationStarted(TableFileCreationBriefInfo info) {
        heard.add("started");
        throw new IllegalStateException("on purpose");
      }

      @Override
      public void onTableFileCreated(TableFileCreationInfo info) {
        heard.add("created with entries " + info.getTableProperties().getNumEntries() + (info.getFileSize() > 0));
      }
    };
    try (AbstractEventListener own = listener; Options options = new Options().setCreateIfMissing(true)
        .setListeners(Collections.singletonList(own)); RocksDB db = RocksDB.open(options, path + "/listeners");
        FlushOptions flush = new FlushOptions()) {
      db.put(b("a"), b("1"));
      db.flush(flush);
    }
    say("heard", heard);
  }
}
