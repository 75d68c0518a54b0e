/* Transaction databases: reads and writes of the database and of its transactions, in the default and in another family, what
 * flushes, snapshots and checkpoints show, locks, prepared transactions after a reopen, and optimistic databases. */

#include "prints.h"

static rocksdb_flushoptions_t* fo;
static rocksdb_options_t* options;

static const char* name(void* state) {
  (void)state;
  return "joins";
}
/* Prints and destroys a value that a call pinned. */
static void show_pinned(const char* what, rocksdb_pinnableslice_t* pinned, char** err) {
  size_t len = 77;
  const char* value = rocksdb_pinnableslice_value(pinned, &len);
  show(what, value, len);
  if (*err != NULL) said(what, err);
  if (pinned != NULL) rocksdb_pinnableslice_destroy(pinned);
}

/* The keys that all multi-gets read. */
static const char* const keys[4] = {"a", "none", "c", "a"};
static const size_t key_lens[4] = {1, 4, 1, 1};

/* Prints and frees what a multi-get answered. */
static void show_many(char** values, const size_t* lens, char** errs) {
  for (int i = 0; i < 4; i++) {
    show_and_free(keys[i], values[i], lens[i]);
    if (errs[i] != NULL) said(keys[i], &errs[i]);
  }
}

/* Prints all entries in both directions, and destroys the iterator. */
static void show_all(const char* what, rocksdb_iterator_t* iter) {
  char* err = NULL;
  printf("%s:", what);
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    printf(" ");
    print_entry(iter, "=");
  }
  printf(" |");
  for (rocksdb_iter_seek_to_last(iter); rocksdb_iter_valid(iter); rocksdb_iter_prev(iter)) {
    printf(" ");
    print_entry(iter, "=");
  }
  printf("\n");
  rocksdb_iter_get_error(iter, &err);
  must(err);
  rocksdb_iter_destroy(iter);
}

static void show_both(const char* what, rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf,
                      const rocksdb_readoptions_t* read) {
  printf("%s\n", what);
  show_all("default", rocksdb_transactiondb_create_iterator(db, read));
  show_all("other", rocksdb_transactiondb_create_iterator_cf(db, read, cf));
}

/* Each write of the database is a transaction of its own. */
static void writes(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  start("writes");
  char* err = NULL;
  rocksdb_transactiondb_put(db, wo, "a", 1, "1", 1, &err);
  said("put", &err);
  rocksdb_transactiondb_put_cf(db, wo, cf, "a", 1, "other", 5, &err);
  said("put_cf", &err);
  rocksdb_transactiondb_put(db, wo, "b", 1, "2", 1, &err);
  must(err);
  rocksdb_transactiondb_put_cf(db, wo, cf, "b", 1, "gone", 4, &err);
  must(err);
  rocksdb_transactiondb_put(db, wo, "empty", 5, "", 0, &err);
  must(err);
  rocksdb_transactiondb_merge(db, wo, "a", 1, "x", 1, &err);
  said("merge", &err);
  rocksdb_transactiondb_merge(db, wo, "c", 1, "first", 5, &err);
  must(err);
  rocksdb_transactiondb_merge_cf(db, wo, cf, "c", 1, "y", 1, &err);
  said("merge_cf", &err);
  const rocksdb_snapshot_t* before = rocksdb_transactiondb_create_snapshot(db);
  printf("sequence number %llu\n", (unsigned long long)rocksdb_snapshot_get_sequence_number(before));
  rocksdb_transactiondb_delete(db, wo, "b", 1, &err);
  said("delete", &err);
  rocksdb_transactiondb_delete_cf(db, wo, cf, "b", 1, &err);
  said("delete_cf", &err);
  rocksdb_transactiondb_delete_cf(db, wo, cf, "none", 4, &err);
  said("delete of an absent key", &err);
  show_both("now", db, cf, ro);
  rocksdb_readoptions_t* then = rocksdb_readoptions_create();
  rocksdb_readoptions_set_snapshot(then, before);
  show_both("in the snapshot", db, cf, then);
  show_pinned("b in the snapshot", rocksdb_transactiondb_get_pinned(db, then, "b", 1, &err), &err);
  rocksdb_readoptions_destroy(then);
  rocksdb_transactiondb_release_snapshot(db, before);
}

static void reads(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  start("reads");
  char *err = NULL, *value, *values[4], *errs[4];
  size_t len = 77, lens[4];
  value = rocksdb_transactiondb_get_cf(db, ro, cf, "a", 1, &len, &err);
  show_and_free("get_cf a", value, len);
  value = rocksdb_transactiondb_get_cf(db, ro, cf, "b", 1, &len, &err);
  show_and_free("get_cf b", value, len);
  printf("length of an absent value %zu\n", len);
  must(err);
  show_pinned("get_pinned a", rocksdb_transactiondb_get_pinned(db, ro, "a", 1, &err), &err);
  show_pinned("get_pinned b", rocksdb_transactiondb_get_pinned(db, ro, "b", 1, &err), &err);
  show_pinned("get_pinned empty", rocksdb_transactiondb_get_pinned(db, ro, "empty", 5, &err), &err);
  show_pinned("get_pinned_cf a", rocksdb_transactiondb_get_pinned_cf(db, ro, cf, "a", 1, &err), &err);
  show_pinned("get_pinned_cf b", rocksdb_transactiondb_get_pinned_cf(db, ro, cf, "b", 1, &err), &err);
  printf("multi_get\n");
  rocksdb_transactiondb_multi_get(db, ro, 4, keys, key_lens, values, lens, errs);
  show_many(values, lens, errs);
  printf("multi_get_cf\n");
  const rocksdb_column_family_handle_t* cfs[4] = {cf, cf, cf, cf};
  rocksdb_transactiondb_multi_get_cf(db, ro, cfs, 4, keys, key_lens, values, lens, errs);
  show_many(values, lens, errs);
}

/* How many tables level 0 of the default family has. */
static void tables(const char* what, rocksdb_transactiondb_t* db) {
  char* files = rocksdb_transactiondb_property_value(db, "rocksdb.num-files-at-level0");
  uint64_t waiting = 77;
  int known = rocksdb_transactiondb_property_int(db, "rocksdb.num-entries-active-mem-table", &waiting);
  printf("%s: known %d, in the memtable %llu, tables %s\n", what, known == 0, (unsigned long long)waiting, files);
  rocksdb_free(files);
}

static void count_snapshots(const char* when, rocksdb_transactiondb_t* db) {
  uint64_t number = 77;
  rocksdb_transactiondb_property_int(db, "rocksdb.num-snapshots", &number);
  /* AshlarDB counts what the caller has beside what the transaction has. */
  printf("%s: two snapshots at most: %d\n", when, number <= 2);
}

/* The snapshot of a transaction is one, however often the caller asks for it. */
static void lent_snapshots(rocksdb_transactiondb_t* db) {
  start("lent snapshots");
  char* err = NULL;
  rocksdb_transaction_options_t* of_txn = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_set_snapshot(of_txn, 1);
  rocksdb_transaction_t* txn = NULL;
  for (int run = 0; run < 4; run++) {
    txn = rocksdb_transaction_begin(db, wo, of_txn, txn);
    for (int asked = 0; asked < 3; asked++) {
      const rocksdb_snapshot_t* snapshot = rocksdb_transaction_get_snapshot(txn);
      printf("a snapshot: %d\n", snapshot != NULL);
      rocksdb_free((void*)snapshot);
    }
    count_snapshots("during the transaction", db);
    rocksdb_transaction_put(txn, "lent", 4, "x", 1, &err);
    must(err);
    if (run % 2 == 0) {
      rocksdb_transaction_commit(txn, &err);
    } else {
      rocksdb_transaction_rollback(txn, &err);
    }
    must(err);
    count_snapshots("after its end", db);
  }
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_options_destroy(of_txn);
}

static void flushes(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf, const char* dir) {
  start("flushes");
  char* err = NULL;
  rocksdb_flushwaloptions_t* wal = rocksdb_flushwaloptions_create();
  tables("before", db);
  rocksdb_transactiondb_flush_wal(db, 1, &err);
  said("flush_wal", &err);
  rocksdb_flushwaloptions_set_sync(wal, 1);
  rocksdb_transactiondb_flush_wal_with_options(db, wal, &err);
  said("flush_wal_with_options", &err);
  rocksdb_flushwaloptions_destroy(wal);
  rocksdb_transactiondb_flush_cf(db, fo, cf, &err);
  said("flush_cf", &err);
  tables("after the flush of the other family", db);
  rocksdb_transactiondb_flush(db, fo, &err);
  said("flush", &err);
  tables("after the flush", db);
  rocksdb_transactiondb_put_cf(db, wo, cf, "d", 1, "late", 4, &err);
  must(err);
  rocksdb_column_family_handle_t* both[1] = {cf};
  rocksdb_transactiondb_flush_cfs(db, fo, both, 1, &err);
  said("flush_cfs", &err);
  uint64_t number = 77;
  char* value = rocksdb_transactiondb_property_value(db, "rocksdb.no-such-property");
  printf("unknown properties: %d %d\n", value != NULL, rocksdb_transactiondb_property_int(db, "rocksdb.no-such-property", &number));
  show_both("after the flushes", db, cf, ro);

  rocksdb_checkpoint_t* maker = rocksdb_transactiondb_checkpoint_object_create(db, &err);
  said("checkpoint_object_create", &err);
  rocksdb_checkpoint_create(maker, path(dir, "checkpoint"), 0, &err);
  said("checkpoint", &err);
  rocksdb_checkpoint_object_destroy(maker);
}

/* A transaction sees its own writes, and the database does not before the commit. */
static void transactions(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  start("transactions");
  char *err = NULL, *value, *values[4], *errs[4];
  size_t len = 77, lens[4];
  rocksdb_transaction_options_t* how = rocksdb_transaction_options_create();
  rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, wo, how, NULL);
  rocksdb_transaction_put(txn, "a", 1, "mine", 4, &err);
  must(err);
  rocksdb_transaction_put_cf(txn, cf, "a", 1, "mine in other", 13, &err);
  said("put_cf", &err);
  rocksdb_transaction_merge(txn, "a", 1, "more", 4, &err);
  said("merge", &err);
  rocksdb_transaction_merge_cf(txn, cf, "c", 1, "more", 4, &err);
  said("merge_cf", &err);
  rocksdb_transaction_delete_cf(txn, cf, "d", 1, &err);
  said("delete_cf", &err);
  value = rocksdb_transaction_get_cf(txn, ro, cf, "a", 1, &len, &err);
  show_and_free("get_cf a", value, len);
  value = rocksdb_transaction_get_cf(txn, ro, cf, "c", 1, &len, &err);
  show_and_free("get_cf c", value, len);
  value = rocksdb_transaction_get_cf(txn, ro, cf, "d", 1, &len, &err);
  show_and_free("get_cf d", value, len);
  must(err);
  show_pinned("get_pinned a", rocksdb_transaction_get_pinned(txn, ro, "a", 1, &err), &err);
  show_pinned("get_pinned none", rocksdb_transaction_get_pinned(txn, ro, "none", 4, &err), &err);
  show_pinned("get_pinned_cf a", rocksdb_transaction_get_pinned_cf(txn, ro, cf, "a", 1, &err), &err);
  show_pinned("get_pinned_cf d", rocksdb_transaction_get_pinned_cf(txn, ro, cf, "d", 1, &err), &err);
  printf("multi_get\n");
  rocksdb_transaction_multi_get(txn, ro, 4, keys, key_lens, values, lens, errs);
  show_many(values, lens, errs);
  printf("multi_get_cf\n");
  const rocksdb_column_family_handle_t* cfs[4] = {cf, cf, cf, cf};
  rocksdb_transaction_multi_get_cf(txn, ro, cfs, 4, keys, key_lens, values, lens, errs);
  show_many(values, lens, errs);
  show_all("default", rocksdb_transaction_create_iterator(txn, ro));
  show_all("other", rocksdb_transaction_create_iterator_cf(txn, ro, cf));
  show_both("outside", db, cf, ro);
  rocksdb_transaction_commit(txn, &err);
  said("commit", &err);
  show_both("after the commit", db, cf, ro);
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_options_destroy(how);
}

/* A read for update locks its key, also if it is absent; a shared lock admits others. */
static void locks(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  start("locks");
  char *err = NULL, *value;
  size_t len = 77;
  rocksdb_transaction_options_t* how = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_lock_timeout(how, 1);
  rocksdb_transaction_t* one = rocksdb_transaction_begin(db, wo, how, NULL);
  rocksdb_transaction_t* two = rocksdb_transaction_begin(db, wo, how, NULL);
  value = rocksdb_transaction_get_for_update_cf(one, ro, cf, "a", 1, &len, 1, &err);
  show_and_free("one reads a of other", value, len);
  said("get_for_update_cf", &err);
  value = rocksdb_transaction_get_for_update_cf(two, ro, cf, "a", 1, &len, 1, &err);
  show_and_free("two reads it", value, len);
  said("get_for_update_cf", &err);
  rocksdb_transaction_put_cf(two, cf, "a", 1, "two", 3, &err);
  said("two puts it", &err);
  rocksdb_transaction_merge_cf(two, cf, "a", 1, "two", 3, &err);
  said("two merges it", &err);
  rocksdb_transaction_delete_cf(two, cf, "a", 1, &err);
  said("two deletes it", &err);
  rocksdb_transaction_put(two, "a", 1, "two", 3, &err);
  said("two puts a of default", &err);
  show_pinned("one reads it", rocksdb_transaction_get_pinned_for_update(one, ro, "a", 1, 0, &err), &err);
  show_pinned("two reads it", rocksdb_transaction_get_pinned_for_update(two, ro, "a", 1, 0, &err), &err);
  show_pinned("one reads c", rocksdb_transaction_get_pinned_for_update_cf(one, ro, cf, "c", 1, 0, &err), &err);
  show_pinned("two reads c", rocksdb_transaction_get_pinned_for_update_cf(two, ro, cf, "c", 1, 0, &err), &err);
  rocksdb_transaction_put_cf(two, cf, "c", 1, "two", 3, &err);
  said("two puts c, which one shares", &err);
  show_pinned("one reads an absent key", rocksdb_transaction_get_pinned_for_update_cf(one, ro, cf, "none", 4, 1, &err), &err);
  rocksdb_transaction_put_cf(two, cf, "none", 4, "two", 3, &err);
  said("two puts the absent key", &err);
  rocksdb_transaction_rollback(one, &err);
  said("one ends", &err);
  rocksdb_transaction_put_cf(two, cf, "none", 4, "two", 3, &err);
  said("two puts the absent key", &err);
  rocksdb_transaction_commit(two, &err);
  said("two commits", &err);
  show_both("after both", db, cf, ro);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(two);
  rocksdb_transaction_options_destroy(how);
}

/* The operations of a batch become those of a transaction. */
static void rebuilds(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  start("a transaction of a batch");
  char* err = NULL;
  rocksdb_transaction_options_t* how = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_lock_timeout(how, 1);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "r", 1, "rebuilt", 7);
  rocksdb_writebatch_put_cf(batch, cf, "r", 1, "other", 5);
  rocksdb_writebatch_merge_cf(batch, cf, "r", 1, "merged", 6);
  rocksdb_writebatch_delete(batch, "empty", 5);
  rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, wo, how, NULL);
  rocksdb_transaction_rebuild_from_writebatch(txn, batch, &err);
  said("rebuild", &err);
  show_all("default", rocksdb_transaction_create_iterator(txn, ro));
  show_all("other", rocksdb_transaction_create_iterator_cf(txn, ro, cf));
  rocksdb_transactiondb_write(db, wo, batch, &err);
  said("the batch, beside the locks of the transaction", &err);
  rocksdb_transaction_commit(txn, &err);
  said("commit", &err);
  show_both("after the commit", db, cf, ro);
  rocksdb_transaction_destroy(txn);
  rocksdb_writebatch_destroy(batch);
  rocksdb_transaction_options_destroy(how);
}

/* Leaves two prepared transactions behind. */
static void prepares(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  start("prepared transactions");
  char* err = NULL;
  rocksdb_transaction_options_t* how = rocksdb_transaction_options_create();
  const char* names[2] = {"first", "second"};
  for (int i = 0; i < 2; i++) {
    rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, wo, how, NULL);
    rocksdb_transaction_set_name(txn, names[i], strlen(names[i]), &err);
    must(err);
    rocksdb_transaction_put_cf(txn, cf, names[i], strlen(names[i]), "prepared", 8, &err);
    must(err);
    rocksdb_transaction_prepare(txn, &err);
    said(names[i], &err);
    rocksdb_transaction_destroy(txn);
  }
  rocksdb_transaction_options_destroy(how);
}

/* Finds them after a reopen, commits one and takes the other back. */
static void recovers(rocksdb_transactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  start("prepared transactions after a reopen");
  char* err = NULL;
  size_t count = 77, len;
  show_both("before", db, cf, ro);
  rocksdb_transaction_t** found = rocksdb_transactiondb_get_prepared_transactions(db, &count);
  printf("found %zu\n", count);
  int order = 0;
  for (size_t wanted = 0; wanted < 2; wanted++) {
    for (size_t i = 0; i < count; i++) {
      char* text = rocksdb_transaction_get_name(found[i], &len);
      int is_second = len == 6 && memcmp(text, "second", 6) == 0;
      if ((size_t)is_second == wanted) {
        printf("%d: '%.*s'\n", order++, (int)len, text);
        if (is_second) {
          rocksdb_transaction_rollback(found[i], &err);
          said("rollback", &err);
        } else {
          rocksdb_transaction_commit(found[i], &err);
          said("commit", &err);
        }
      }
      rocksdb_free(text);
    }
  }
  for (size_t i = 0; i < count; i++) rocksdb_transaction_destroy(found[i]);
  rocksdb_free(found);
  show_both("after", db, cf, ro);
  found = rocksdb_transactiondb_get_prepared_transactions(db, &count);
  printf("left %zu\n", count);
  if (found != NULL) rocksdb_free(found);
}

static void pessimistic(const char* dir) {
  char* err = NULL;
  const char* home = path(dir, "locked");
  rocksdb_transactiondb_options_t* how = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, how, home, &err);
  must(err);
  rocksdb_column_family_handle_t* cf = rocksdb_transactiondb_create_column_family(db, options, "other", &err);
  must(err);
  printf("family: %d\n", rocksdb_transactiondb_create_column_family(db, options, "other", &err) != NULL);
  said("a family that exists", &err);
  writes(db, cf);
  reads(db, cf);
  flushes(db, cf, dir);
  lent_snapshots(db);
  transactions(db, cf);
  locks(db, cf);
  rebuilds(db, cf);
  prepares(db, cf);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_transactiondb_close(db);

  const char* names[2] = {"default", "other"};
  const rocksdb_options_t* of[2] = {options, options};
  rocksdb_column_family_handle_t* cfs[2];
  db = rocksdb_transactiondb_open_column_families(options, how, path(dir, "locked"), 2, names, of, cfs, &err);
  must(err);
  recovers(db, cfs[1]);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(cfs[i]);
  rocksdb_transactiondb_close(db);
  start("the checkpoint");
  db = rocksdb_transactiondb_open_column_families(options, how, path(dir, "checkpoint"), 2, names, of, cfs, &err);
  must(err);
  show_both("its entries", db, cfs[1], ro);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(cfs[i]);
  rocksdb_transactiondb_close(db);
  db = rocksdb_transactiondb_open_column_families(options, how, path(dir, "checkpoint"), 1, names, of, cfs, &err);
  printf("one family: %d\n", db != NULL);
  said("one of two families", &err);
  rocksdb_transactiondb_options_destroy(how);
}

/* The first of two optimistic transactions that write one key can commit. */
static void conflicts(rocksdb_optimistictransactiondb_t* db, rocksdb_column_family_handle_t* cf) {
  char* err = NULL;
  rocksdb_optimistictransaction_options_t* how = rocksdb_optimistictransaction_options_create();
  rocksdb_transaction_t* one = rocksdb_optimistictransaction_begin(db, wo, how, NULL);
  rocksdb_transaction_t* two = rocksdb_optimistictransaction_begin(db, wo, how, NULL);
  show_pinned("one reads", rocksdb_transaction_get_pinned_for_update_cf(one, ro, cf, "k", 1, 1, &err), &err);
  rocksdb_transaction_put_cf(one, cf, "k", 1, "one", 3, &err);
  said("one puts", &err);
  rocksdb_transaction_merge_cf(two, cf, "k", 1, "two", 3, &err);
  said("two merges", &err);
  show_all("two", rocksdb_transaction_create_iterator_cf(two, ro, cf));
  rocksdb_transaction_commit(two, &err);
  said("two commits", &err);
  rocksdb_transaction_commit(one, &err);
  said("one commits", &err);
  rocksdb_transaction_rollback(one, &err);
  said("one ends", &err);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(two);
  rocksdb_optimistictransaction_options_destroy(how);
}

static void optimistic(const char* dir) {
  start("an optimistic database");
  char *err = NULL, home[4096];
  snprintf(home, sizeof home, "%s/optimistic", dir);
  rocksdb_optimistictransactiondb_options_t* how = rocksdb_optimistictransactiondb_options_create();
  rocksdb_optimistictransactiondb_t* db = rocksdb_optimistictransactiondb_open_with_otxn_db_options(options, how, home, &err);
  said("open", &err);
  rocksdb_t* base = rocksdb_optimistictransactiondb_get_base_db(db);
  rocksdb_column_family_handle_destroy(rocksdb_create_column_family(base, options, "other", &err));
  must(err);
  rocksdb_optimistictransactiondb_close_base_db(base);
  rocksdb_optimistictransactiondb_close(db);
  rocksdb_optimistictransactiondb_options_destroy(how);

  const char* names[2] = {"default", "other"};
  const rocksdb_options_t* of[2] = {options, options};
  rocksdb_column_family_handle_t* cfs[2];
  db = rocksdb_optimistictransactiondb_open_column_families(options, home, 2, names, of, cfs, &err);
  said("open with families", &err);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, cfs[1], "k", 1, "batch", 5);
  rocksdb_writebatch_put(batch, "k", 1, "default", 7);
  rocksdb_optimistictransactiondb_write(db, wo, batch, &err);
  said("write", &err);
  rocksdb_writebatch_destroy(batch);
  conflicts(db, cfs[1]);
  uint64_t entries = 77;
  printf("known %d, ", rocksdb_optimistictransactiondb_property_int(db, "rocksdb.num-entries-active-mem-table", &entries));
  printf("entries in the memtable %llu\n", (unsigned long long)entries);
  char* value = rocksdb_optimistictransactiondb_property_value(db, "rocksdb.num-files-at-level0");
  printf("tables %s\n", value);
  rocksdb_free(value);
  rocksdb_checkpoint_t* maker = rocksdb_optimistictransactiondb_checkpoint_object_create(db, &err);
  said("checkpoint_object_create", &err);
  rocksdb_checkpoint_create(maker, path(dir, "copy"), 0, &err);
  said("checkpoint", &err);
  rocksdb_checkpoint_object_destroy(maker);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(cfs[i]);
  rocksdb_optimistictransactiondb_close(db);

  rocksdb_t* copy = rocksdb_open_column_families(options, path(dir, "copy"), 2, names, of, cfs, &err);
  must(err);
  show_all("default of the checkpoint", rocksdb_create_iterator(copy, ro));
  show_all("other of the checkpoint", rocksdb_create_iterator_cf(copy, ro, cfs[1]));
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(cfs[i]);
  rocksdb_close(copy);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  begin();
  fo = rocksdb_flushoptions_create();
  options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_merge_operator(options, rocksdb_mergeoperator_create(NULL, nothing, full_merge, partial_merge, NULL, name));
  pessimistic(argv[1]);
  optimistic(argv[1]);
  rocksdb_options_destroy(options);
  rocksdb_flushoptions_destroy(fo);
  return end();
}
