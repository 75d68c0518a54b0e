/* Wrong uses of handles, one for each number. With the check of handles each ends the program, with a message. */

#include "prints.h"

static rocksdb_t* opened(const char* dir) {
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path(dir, "db"), &err);
  must(err);
  rocksdb_options_destroy(options);
  return db;
}

/* The caller frees what is not its own: the infos of a listener belong to the call. */
static void frees_what_is_lent(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)state;
  (void)info;
  rocksdb_close(db);
}
/* A callback that calls the library. */
static void calls_inside(void* state, uint32_t cf, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)state;
  (void)cf;
  (void)k;
  (void)klen;
  (void)v;
  (void)vlen;
  rocksdb_readoptions_destroy(rocksdb_readoptions_create());
}

static const rocksdb_flushjobinfo_t* kept;
static void keeps_the_info(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)state;
  (void)db;
  kept = info;
}

/* A database that has flushed, with a listener of the flush. */
static rocksdb_t* flushed(const char* dir, on_flush_completed_cb listener) {
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_add_eventlistener(
      options, rocksdb_eventlistener_create(NULL, nothing, NULL, listener, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
  rocksdb_t* db = rocksdb_open(options, path(dir, "db"), &err);
  must(err);
  put(db, "k", "v");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  return db;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  begin();
  char* err = NULL;
  size_t len;
  switch (atoi(argv[2])) {
    case 0: {
      rocksdb_iterator_t* iter = rocksdb_create_iterator(opened(argv[1]), ro);
      rocksdb_iter_destroy(iter);
      rocksdb_iter_destroy(iter);
      break;
    }
    case 1: {
      rocksdb_t* db = opened(argv[1]);
      rocksdb_close(db);
      free(rocksdb_get(db, ro, "k", 1, &len, &err));
      break;
    }
    case 2: {
      rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
      rocksdb_iter_next((rocksdb_iterator_t*)batch);
      break;
    }
    case 3: {
      /* An object of another library, or none. */
      char bytes[4096] = {0};
      rocksdb_writebatch_clear((rocksdb_writebatch_t*)bytes);
      break;
    }
    case 4: {
      rocksdb_readoptions_t* old = rocksdb_readoptions_create();
      rocksdb_readoptions_destroy(old);
      /* The next object must not get the address of the old one. */
      rocksdb_readoptions_t* next = rocksdb_readoptions_create();
      printf("%s\n", old == next ? "the same address" : "another address");
      fflush(stdout);
      rocksdb_readoptions_set_fill_cache(old, 0);
      break;
    }
    case 5: {
      rocksdb_t* db = flushed(argv[1], frees_what_is_lent);
      rocksdb_close(db);
      break;
    }
    case 6: {
      rocksdb_t* db = opened(argv[1]);
      rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
      rocksdb_column_family_handle_destroy(family);
      rocksdb_put_cf(db, wo, family, "k", 1, "v", 1, &err);
      break;
    }
    case 7: {
      rocksdb_options_t* options = rocksdb_options_create();
      rocksdb_options_set_create_if_missing(options, 1);
      rocksdb_options_destroy(options);
      rocksdb_open(options, path(argv[1], "db"), &err);
      break;
    }
    case 8: {
      /* A function that is written by hand names itself. */
      rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
      const char* key = "k";
      const size_t klen = 1;
      char *value, *error;
      size_t vlen;
      rocksdb_multi_get((rocksdb_t*)batch, ro, 1, &key, &klen, &value, &vlen, &error);
      break;
    }
    case 9: {
      /* The functions that a callback calls are over: the message names the function that the program is in. */
      rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
      rocksdb_writebatch_put(batch, "k", 1, "v", 1);
      rocksdb_writebatch_iterate_cf(batch, NULL, calls_inside, NULL, NULL);
      rocksdb_iterator_t* iter = rocksdb_create_iterator(opened(argv[1]), ro);
      rocksdb_iter_destroy(iter);
      rocksdb_set_options_cf((rocksdb_t*)batch, NULL, 0, NULL, NULL, &err);
      break;
    }
    case 10: {
      /* The info of a listener, after the listener has returned. */
      rocksdb_t* db = flushed(argv[1], keeps_the_info);
      /* The listener returns before the close ends. */
      rocksdb_close(db);
      if (kept == NULL) break;
      printf("%d\n", (int)rocksdb_flushjobinfo_triggered_writes_slowdown(kept));
      break;
    }
    case 11: {
      /* An element of a list that was freed. */
      rocksdb_t* db = opened(argv[1]);
      put(db, "k", "v");
      rocksdb_wal_files_t* files = rocksdb_get_sorted_wal_files(db, &err);
      must(err);
      const rocksdb_wal_file_t* file = rocksdb_wal_files_get_wal_file(files, 0);
      rocksdb_wal_files_destroy(files);
      printf("%d\n", (int)rocksdb_wal_file_log_number(file));
      break;
    }
    case 12: {
      /* The snapshot of a transaction, after rocksdb_free. */
      rocksdb_options_t* options = rocksdb_options_create();
      rocksdb_options_set_create_if_missing(options, 1);
      rocksdb_transactiondb_options_t* of_txns = rocksdb_transactiondb_options_create();
      rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, of_txns, path(argv[1], "db"), &err);
      must(err);
      rocksdb_transaction_options_t* of_txn = rocksdb_transaction_options_create();
      rocksdb_transaction_options_set_set_snapshot(of_txn, 1);
      rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, wo, of_txn, NULL);
      const rocksdb_snapshot_t* snapshot = rocksdb_transaction_get_snapshot(txn);
      rocksdb_readoptions_set_snapshot(ro, snapshot);
      rocksdb_free((void*)snapshot);
      rocksdb_readoptions_set_snapshot(ro, snapshot);
      break;
    }
    default:
      printf("no such case\n");
      return end();
  }
  printf("not noticed\n");
  return 0;
}
