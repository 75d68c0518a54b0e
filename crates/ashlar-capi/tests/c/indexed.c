/* Write batches that are read back: prints what a library answers. Both libraries print the same lines. */

#include "prints.h"

static rocksdb_options_t* options;

/* A merge operator that joins with '+'. The operand "bad" is refused. */
static char* own_merge(void* state, const char* key, size_t key_length, const char* existing, size_t existing_len,
                        const char* const* list, const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)state;
  (void)key;
  (void)key_length;
  *success = 1;
  for (int i = 0; i < count; i++) {
    if (lens[i] == 3 && memcmp(list[i], "bad", 3) == 0) *success = 0;
  }
  return joined(existing, existing_len, list, lens, count, len);
}
static const char* merge_name(void* state) {
  (void)state;
  return "indexed.join";
}
static const char* reverse_name(void* state) {
  (void)state;
  return "indexed.reverse";
}
static size_t timestamp_size(void* state, uint32_t family) {
  (void)family;
  return *(size_t*)state;
}

/* A database with the families default, "merge" and "reverse". */
static rocksdb_column_family_handle_t* family[3];
static rocksdb_options_t* reversed;
static rocksdb_comparator_t* comparator;

static rocksdb_t* opened(const char* dir, const char* name) {
  const char* names[3] = {"default", "merge", "reverse"};
  const rocksdb_options_t* of[3] = {options, options, reversed};
  char* err = NULL;
  rocksdb_t* db = rocksdb_open_column_families(options, path(dir, name), 3, names, of, family, &err);
  must(err);
  return db;
}

static void closed(rocksdb_t* db) {
  for (int i = 0; i < 3; i++) rocksdb_column_family_handle_destroy(family[i]);
  rocksdb_close(db);
}

static void get_alone(rocksdb_writebatch_wi_t* batch, rocksdb_column_family_handle_t* cf, const char* key) {
  char* err = NULL;
  size_t len = 0;
  char* value = cf == NULL ? rocksdb_writebatch_wi_get_from_batch(batch, options, key, strlen(key), &len, &err)
                           : rocksdb_writebatch_wi_get_from_batch_cf(batch, options, cf, key, strlen(key), &len, &err);
  printf("alone %s ", key);
  if (err != NULL) {
    said("failed", &err);
  } else {
    show_and_free("value", value, len);
  }
}

static void get_over(rocksdb_writebatch_wi_t* batch, rocksdb_t* db, const rocksdb_readoptions_t* read,
                     rocksdb_column_family_handle_t* cf, const char* key) {
  char* err = NULL;
  size_t len = 0;
  char* value =
      cf == NULL
          ? rocksdb_writebatch_wi_get_from_batch_and_db(batch, db, read, key, strlen(key), &len, &err)
          : rocksdb_writebatch_wi_get_from_batch_and_db_cf(batch, db, read, cf, key, strlen(key), &len, &err);
  printf("over %s ", key);
  if (err != NULL) {
    said("failed", &err);
  } else {
    show_and_free("value", value, len);
  }
  rocksdb_pinnableslice_t* pinned =
      cf == NULL ? rocksdb_writebatch_wi_get_pinned_from_batch_and_db(batch, db, read, key, strlen(key), &err)
                 : rocksdb_writebatch_wi_get_pinned_from_batch_and_db_cf(batch, db, read, cf, key, strlen(key), &err);
  said("pinned", &err);
  if (pinned != NULL) {
    const char* bytes = rocksdb_pinnableslice_value(pinned, &len);
    printf("pinned value: '%.*s'\n", (int)len, bytes);
    rocksdb_pinnableslice_destroy(pinned);
  }
}

static void entry(const rocksdb_iterator_t* iter) {
  if (!rocksdb_iter_valid(iter)) {
    printf("-");
    return;
  }
  print_entry(iter, "=");
}

static void all(rocksdb_iterator_t* iter) {
  char* err = NULL;
  printf("forward:");
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    printf(" ");
    entry(iter);
  }
  rocksdb_iter_get_error(iter, &err);
  said(" end", &err);
  printf("backward:");
  for (rocksdb_iter_seek_to_last(iter); rocksdb_iter_valid(iter); rocksdb_iter_prev(iter)) {
    printf(" ");
    entry(iter);
  }
  rocksdb_iter_get_error(iter, &err);
  said(" end", &err);
}

static void operations(const char* dir, unsigned char overwrite) {
  printf("== operations %d\n", overwrite);
  char* err = NULL;
  rocksdb_t* db = opened(dir, overwrite ? "overwrite" : "keep");
  rocksdb_put_cf(db, wo, family[1], "below", 5, "0", 1, &err);
  must(err);
  rocksdb_put(db, wo, "box", 3, "old", 3, &err);
  must(err);
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, overwrite);
  rocksdb_writebatch_wi_put(batch, "foo", 3, "a", 1);
  rocksdb_writebatch_wi_clear(batch);
  rocksdb_writebatch_wi_put(batch, "bar", 3, "b", 1);
  rocksdb_writebatch_wi_put(batch, "box", 3, "c", 1);
  rocksdb_writebatch_wi_delete(batch, "bar", 3);
  rocksdb_writebatch_wi_put_cf(batch, family[0], "handle", 6, "h", 1);
  const char* pieces[2] = {"se", "veral"};
  size_t lens[2] = {2, 5};
  rocksdb_writebatch_wi_putv(batch, 2, pieces, lens, 2, pieces, lens);
  rocksdb_writebatch_wi_putv_cf(batch, family[1], 2, pieces, lens, 1, pieces, lens);
  rocksdb_writebatch_wi_mergev(batch, 2, pieces, lens, 1, pieces, lens);
  rocksdb_writebatch_wi_mergev_cf(batch, family[1], 2, pieces, lens, 2, pieces, lens);
  rocksdb_writebatch_wi_merge_cf(batch, family[1], "below", 5, "1", 1);
  rocksdb_writebatch_wi_merge_cf(batch, family[1], "below", 5, "2", 1);
  rocksdb_writebatch_wi_delete_cf(batch, family[1], "gone", 4);
  rocksdb_writebatch_wi_merge_cf(batch, family[1], "gone", 4, "3", 1);
  rocksdb_writebatch_wi_merge(batch, "alone", 5, "4", 1);
  rocksdb_writebatch_wi_merge(batch, "box", 3, "6", 1);
  rocksdb_writebatch_wi_put(batch, "once", 4, "5", 1);
  rocksdb_writebatch_wi_singledelete(batch, "once", 4);
  rocksdb_writebatch_wi_singledelete_cf(batch, family[1], "once", 4);
  rocksdb_writebatch_wi_deletev(batch, 1, pieces, lens);
  rocksdb_writebatch_wi_deletev_cf(batch, family[1], 1, pieces, lens);
  /* Range deletions are refused without a word. */
  rocksdb_writebatch_wi_delete_range(batch, "a", 1, "z", 1);
  rocksdb_writebatch_wi_delete_range_cf(batch, family[1], "a", 1, "z", 1);
  rocksdb_writebatch_wi_delete_rangev(batch, 1, pieces, lens, pieces, lens);
  rocksdb_writebatch_wi_delete_rangev_cf(batch, family[1], 1, pieces, lens, pieces, lens);
  printf("count: %d\n", rocksdb_writebatch_wi_count(batch));
  size_t len = 0;
  const char* data = rocksdb_writebatch_wi_data(batch, &len);
  printf("bytes: %d\n", (int)len);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  printf("count of the copy: %d\n", rocksdb_writebatch_count(copy));
  rocksdb_writebatch_destroy(copy);
  rocksdb_writebatch_wi_iterate(batch, NULL, walk_put, walk_deleted);
  const char* keys[8] = {"bar", "box", "handle", "several", "below", "gone", "alone", "once"};
  for (int i = 0; i < 8; i++) {
    for (int f = 0; f < 3; f++) {
      rocksdb_column_family_handle_t* cf = f == 2 ? NULL : family[f];
      get_alone(batch, cf, keys[i]);
      get_over(batch, db, ro, cf, keys[i]);
    }
  }
  rocksdb_write_writebatch_wi(db, wo, batch, &err);
  said("write", &err);
  printf("count after the write: %d\n", rocksdb_writebatch_wi_count(batch));
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, ro, family[1]);
  all(iter);
  rocksdb_iter_destroy(iter);
  iter = rocksdb_create_iterator(db, ro);
  all(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_writebatch_wi_destroy(batch);
  closed(db);
}

static void savepoints(const char* dir) {
  start("savepoints");
  char* err = NULL;
  rocksdb_t* db = opened(dir, "savepoints");
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_rollback_to_save_point(batch, &err);
  said("without one", &err);
  rocksdb_writebatch_wi_put_cf(batch, family[2], "a", 1, "1", 1);
  rocksdb_writebatch_wi_set_save_point(batch);
  rocksdb_writebatch_wi_put_cf(batch, family[2], "a", 1, "2", 1);
  rocksdb_writebatch_wi_put_cf(batch, family[2], "b", 1, "3", 1);
  rocksdb_writebatch_wi_set_save_point(batch);
  rocksdb_writebatch_wi_delete_cf(batch, family[2], "a", 1);
  rocksdb_writebatch_wi_put(batch, "c", 1, "4", 1);
  for (int i = 0; i < 3; i++) {
    rocksdb_iterator_t* iter =
        rocksdb_writebatch_wi_create_iterator_with_base_cf(batch, rocksdb_create_iterator_cf(db, ro, family[2]), family[2]);
    all(iter);
    rocksdb_iter_destroy(iter);
    get_alone(batch, family[2], "a");
    get_alone(batch, NULL, "c");
    rocksdb_writebatch_wi_rollback_to_save_point(batch, &err);
    said("rollback", &err);
    printf("count: %d\n", rocksdb_writebatch_wi_count(batch));
  }
  rocksdb_writebatch_wi_set_save_point(batch);
  /* It is no operation. RocksDB's walk over such a batch with this record calls a function that it was not given. */
  rocksdb_writebatch_wi_put_log_data(batch, "note", 4);
  size_t len;
  rocksdb_writebatch_wi_data(batch, &len);
  printf("with a note: %d operations, %d bytes\n", rocksdb_writebatch_wi_count(batch), (int)len);
  rocksdb_writebatch_wi_clear(batch);
  rocksdb_writebatch_wi_rollback_to_save_point(batch, &err);
  said("after a clear", &err);
  rocksdb_writebatch_wi_destroy(batch);
  closed(db);
}

/* What a refused merge does to reads and iterators, and steps off the entries. */
static void errors(const char* dir) {
  start("errors");
  char* err = NULL;
  rocksdb_t* db = opened(dir, "errors");
  rocksdb_put_cf(db, wo, family[1], "a", 1, "1", 1, &err);
  must(err);
  rocksdb_put_cf(db, wo, family[1], "c", 1, "3", 1, &err);
  must(err);
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_merge_cf(batch, family[1], "b", 1, "bad", 3);
  get_alone(batch, family[1], "b");
  get_over(batch, db, ro, family[1], "b");
  rocksdb_iterator_t* iter =
      rocksdb_writebatch_wi_create_iterator_with_base_cf(batch, rocksdb_create_iterator_cf(db, ro, family[1]), family[1]);
  all(iter);
  rocksdb_iter_seek(iter, "c", 1);
  entry(iter);
  printf("\n");
  rocksdb_iter_next(iter);
  rocksdb_iter_get_error(iter, &err);
  said("at the end", &err);
  rocksdb_iter_next(iter);
  rocksdb_iter_get_error(iter, &err);
  said("off the end", &err);
  rocksdb_iter_prev(iter);
  rocksdb_iter_get_error(iter, &err);
  said("back off the end", &err);
  rocksdb_iter_seek_to_last(iter);
  rocksdb_iter_get_error(iter, &err);
  said("positioned", &err);
  rocksdb_iter_destroy(iter);
  size_t size = 0;
  rocksdb_writebatch_wi_update_timestamps(batch, "12345678", 8, &size, timestamp_size, &err);
  said("no timestamps", &err);
  size = 4;
  rocksdb_writebatch_wi_update_timestamps(batch, "12345678", 8, &size, timestamp_size, &err);
  said("another length", &err);
  size = (size_t)-1;
  rocksdb_writebatch_wi_update_timestamps(batch, "12345678", 8, &size, timestamp_size, &err);
  said("an unknown family", &err);
  rocksdb_writebatch_wi_destroy(batch);
  /* The order of families without a handle. */
  batch = rocksdb_writebatch_wi_create_with_params(comparator, 0, 1, 0, 8);
  rocksdb_writebatch_wi_put(batch, "x", 1, "1", 1);
  rocksdb_writebatch_wi_put(batch, "y", 1, "2", 1);
  iter = rocksdb_writebatch_wi_create_iterator_with_base(batch, rocksdb_create_iterator_cf(db, ro, family[2]));
  all(iter);
  /* What is added shows at the next positioning. */
  rocksdb_writebatch_wi_put(batch, "z", 1, "3", 1);
  rocksdb_writebatch_wi_delete(batch, "x", 1);
  all(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_writebatch_wi_destroy(batch);
  closed(db);
}

static void in_transactions(const char* dir) {
  start("transactions");
  char* err = NULL;
  char path[4096];
  snprintf(path, sizeof path, "%s/transactions", dir);
  rocksdb_transactiondb_options_t* db_options = rocksdb_transactiondb_options_create();
  rocksdb_transaction_options_t* txn_options = rocksdb_transaction_options_create();
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, db_options, path, &err);
  must(err);
  rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, wo, txn_options, NULL);
  rocksdb_transaction_put(txn, "a", 1, "1", 1, &err);
  must(err);
  rocksdb_transaction_delete(txn, "b", 1, &err);
  must(err);
  rocksdb_writebatch_wi_t* own = rocksdb_transaction_get_writebatch_wi(txn);
  printf("count: %d\n", rocksdb_writebatch_wi_count(own));
  rocksdb_writebatch_wi_iterate(own, NULL, walk_put, walk_deleted);
  get_alone(own, NULL, "a");
  get_alone(own, NULL, "b");
  size_t len = 0;
  const char* data = rocksdb_writebatch_wi_data(own, &len);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  printf("count of the copy: %d\n", rocksdb_writebatch_count(copy));
  rocksdb_writebatch_destroy(copy);
  rocksdb_free(own);
  rocksdb_transaction_put(txn, "c", 1, "3", 1, &err);
  must(err);
  own = rocksdb_transaction_get_writebatch_wi(txn);
  printf("count: %d\n", rocksdb_writebatch_wi_count(own));
  rocksdb_free(own);
  rocksdb_transaction_rollback(txn, &err);
  must(err);
  rocksdb_writebatch_wi_t* other = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_put(other, "d", 1, "4", 1);
  rocksdb_writebatch_wi_merge(other, "d", 1, "5", 1);
  rocksdb_transaction_rebuild_from_writebatch_wi(txn, other, &err);
  said("rebuild", &err);
  char* value = rocksdb_transaction_get(txn, ro, "d", 1, &len, &err);
  must(err);
  show_and_free("d", value, len);
  rocksdb_transaction_commit(txn, &err);
  said("commit", &err);
  own = rocksdb_transaction_get_writebatch_wi(txn);
  printf("count behind the commit: %d\n", rocksdb_writebatch_wi_count(own));
  rocksdb_free(own);
  rocksdb_iterator_t* iter = rocksdb_transactiondb_create_iterator(db, ro);
  all(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_writebatch_wi_destroy(other);
  rocksdb_transaction_destroy(txn);
  rocksdb_transactiondb_close(db);
  rocksdb_transaction_options_destroy(txn_options);
  rocksdb_transactiondb_options_destroy(db_options);
}

/* ---- random batches ---- */

static unsigned state = 7;
static unsigned below(unsigned n) {
  state = state * 1103515245u + 12345u;
  return (state >> 16) % n;
}

static size_t random_key(char* key) {
  size_t len = 1 + below(2);
  for (size_t i = 0; i < len; i++) key[i] = (char)('a' + below(5));
  key[len] = 0;
  return len;
}

/* An operation on a family, which is written with its handle. */
static void operate(rocksdb_writebatch_wi_t* batch, rocksdb_t* db, int f, int number) {
  char key[4], value[16], *err = NULL;
  size_t klen = random_key(key);
  size_t vlen = (size_t)snprintf(value, sizeof value, "%d", number);
  switch (below(6)) {
    case 0:
    case 1:
      if (batch == NULL) rocksdb_put_cf(db, wo, family[f], key, klen, value, vlen, &err);
      else rocksdb_writebatch_wi_put_cf(batch, family[f], key, klen, value, vlen);
      break;
    case 2:
      if (batch == NULL) rocksdb_delete_cf(db, wo, family[f], key, klen, &err);
      else rocksdb_writebatch_wi_delete_cf(batch, family[f], key, klen);
      break;
    default:
      if (batch == NULL) rocksdb_merge_cf(db, wo, family[f], key, klen, value, vlen, &err);
      else rocksdb_writebatch_wi_merge_cf(batch, family[f], key, klen, value, vlen);
  }
  must(err);
}

static void walk(rocksdb_iterator_t* iter) {
  char key[4];
  size_t klen;
  printf("walk:");
  for (int i = 0; i < 30; i++) {
    unsigned move = below(6);
    if (move < 2 || !rocksdb_iter_valid(iter)) {
      klen = random_key(key);
      printf(" %s%s", move == 0 ? ">" : "<", key);
      if (move == 0) rocksdb_iter_seek(iter, key, klen);
      else rocksdb_iter_seek_for_prev(iter, key, klen);
    } else if (move < 4) {
      printf(" n");
      rocksdb_iter_next(iter);
    } else {
      printf(" p");
      rocksdb_iter_prev(iter);
    }
    printf(":");
    entry(iter);
  }
  printf("\n");
}

static void randomly(const char* dir) {
  start("random batches");
  char* err = NULL;
  rocksdb_t* db = opened(dir, "random");
  for (int round = 0; round < 60; round++) {
    for (int i = 0; i < 12; i++) operate(NULL, db, (int)below(3), round * 100 + i);
    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, round % 2);
    int saved = 0;
    for (int i = 0; i < 25; i++) {
      unsigned what = below(12);
      if (what == 0) {
        rocksdb_writebatch_wi_set_save_point(batch);
        saved++;
      } else if (what == 1 && saved > 0) {
        rocksdb_writebatch_wi_rollback_to_save_point(batch, &err);
        must(err);
        saved--;
      } else {
        operate(batch, db, (int)below(3), round * 100 + 50 + i);
      }
    }
    printf("round %d: %d operations\n", round, rocksdb_writebatch_wi_count(batch));
    for (int f = 0; f < 3; f++) {
      char key[4], from[4], to[4];
      for (int i = 0; i < 4; i++) {
        random_key(key);
        get_alone(batch, family[f], key);
        get_over(batch, db, ro, family[f], key);
      }
      rocksdb_iterator_t* iter =
          rocksdb_writebatch_wi_create_iterator_with_base_cf(batch, rocksdb_create_iterator_cf(db, ro, family[f]), family[f]);
      all(iter);
      walk(iter);
      rocksdb_iter_destroy(iter);
      /* Within bounds, which the family's order decides. */
      size_t from_len = random_key(from), to_len = random_key(to);
      int order = f == 2 ? reverse(NULL, from, from_len, to, to_len) : -reverse(NULL, from, from_len, to, to_len);
      if (order >= 0) continue;
      rocksdb_readoptions_t* within = rocksdb_readoptions_create();
      rocksdb_readoptions_set_iterate_lower_bound(within, from, from_len);
      rocksdb_readoptions_set_iterate_upper_bound(within, to, to_len);
      iter = rocksdb_writebatch_wi_create_iterator_with_base_cf_readopts(
          batch, rocksdb_create_iterator_cf(db, within, family[f]), family[f], within);
      printf("from %s to %s\n", from, to);
      all(iter);
      walk(iter);
      rocksdb_iter_destroy(iter);
      if (f == 0) {
        iter = rocksdb_writebatch_wi_create_iterator_with_base_readopts(batch, rocksdb_create_iterator_cf(db, within, family[2]),
                                                                        within);
        rocksdb_iter_destroy(iter);
      }
      rocksdb_readoptions_destroy(within);
    }
    if (round % 3 == 0) {
      rocksdb_write_writebatch_wi(db, wo, batch, &err);
      must(err);
    }
    if (round % 10 == 0) {
      rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
      for (int f = 0; f < 3; f++) rocksdb_flush_cf(db, flush, family[f], &err);
      must(err);
      rocksdb_flushoptions_destroy(flush);
    }
    rocksdb_writebatch_wi_destroy(batch);
  }
  closed(db);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  begin();
  options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(NULL, nothing, own_merge, partial_merge, NULL, merge_name));
  comparator = rocksdb_comparator_create(NULL, nothing, reverse, reverse_name);
  reversed = rocksdb_options_create();
  rocksdb_options_set_comparator(reversed, comparator);
  rocksdb_options_set_merge_operator(
      reversed, rocksdb_mergeoperator_create(NULL, nothing, own_merge, partial_merge, NULL, merge_name));
  operations(argv[1], 0);
  operations(argv[1], 1);
  savepoints(argv[1]);
  errors(argv[1]);
  in_transactions(argv[1]);
  randomly(argv[1]);
  rocksdb_options_destroy(options);
  rocksdb_options_destroy(reversed);
  rocksdb_comparator_destroy(comparator);
  return end();
}
