/* Reads of many keys that fail as a whole: every place of the caller is set, so that the program can free what is there. The
 * database was closed before, which RocksDB's library does not allow. */

#include "prints.h"

#define KEYS 2
static const char* const keys[KEYS] = {"a", "b"};
static const size_t lens[KEYS] = {1, 1};
static char* values[KEYS];
static size_t sizes[KEYS];
static char* errs[KEYS];
static rocksdb_pinnableslice_t* pinned[KEYS];

/* What stands in the places before the call. */
static void spoil(void) {
  for (int i = 0; i < KEYS; i++) {
    values[i] = (char*)0x11;
    sizes[i] = 77;
    errs[i] = (char*)0x22;
    pinned[i] = (rocksdb_pinnableslice_t*)0x33;
  }
}

static void tell(const char* what, int is_pinned) {
  for (int i = 0; i < KEYS; i++) {
    const void* value = is_pinned ? (const void*)pinned[i] : (const void*)values[i];
    printf("%s: %s, ", what, value == NULL ? "no value" : "a value");
    if (!is_pinned) printf("%d bytes, ", (int)sizes[i]);
    said(keys[i], &errs[i]);
    if (is_pinned) {
      rocksdb_pinnableslice_destroy(pinned[i]);
    } else {
      rocksdb_free(values[i]);
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path(argv[1], "db"), &err);
  must(err);
  rocksdb_column_family_handle_t* first = rocksdb_create_column_family(db, options, "first", &err);
  must(err);
  rocksdb_column_family_handle_t* second = rocksdb_create_column_family(db, options, "second", &err);
  must(err);
  const rocksdb_column_family_handle_t* one[KEYS] = {first, first};
  const rocksdb_column_family_handle_t* two[KEYS] = {first, second};
  rocksdb_put_cf(db, wo, first, "a", 1, "1", 1, &err);
  must(err);

  spoil();
  rocksdb_multi_get_cf(db, ro, two, KEYS, keys, lens, values, sizes, errs);
  tell("open, two families", 0);
  spoil();
  rocksdb_multi_get_cf(NULL, ro, two, KEYS, keys, lens, values, sizes, errs);
  tell("no database", 0);
  spoil();
  rocksdb_multi_get(db, NULL, KEYS, keys, lens, values, sizes, errs);
  tell("no options", 0);
  spoil();
  two[1] = NULL;
  rocksdb_multi_get_cf(db, ro, two, KEYS, keys, lens, values, sizes, errs);
  tell("no family", 0);
  two[1] = second;
  spoil();
  rocksdb_batched_multi_get_cf(NULL, ro, first, KEYS, keys, lens, pinned, errs, 0);
  tell("batched, no database", 1);
  spoil();
  rocksdb_transaction_multi_get(NULL, ro, KEYS, keys, lens, values, sizes, errs);
  tell("no transaction", 0);
  spoil();
  rocksdb_transactiondb_multi_get_cf(NULL, ro, two, KEYS, keys, lens, values, sizes, errs);
  tell("no database of transactions", 0);

  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact_options_set_close_db(wait, 1);
  rocksdb_wait_for_compact(db, wait, &err);
  must(err);
  rocksdb_wait_for_compact_options_destroy(wait);
  spoil();
  rocksdb_multi_get_cf(db, ro, two, KEYS, keys, lens, values, sizes, errs);
  tell("closed, two families", 0);
  spoil();
  rocksdb_multi_get_cf(db, ro, one, KEYS, keys, lens, values, sizes, errs);
  tell("closed, one family", 0);
  spoil();
  rocksdb_multi_get(db, ro, KEYS, keys, lens, values, sizes, errs);
  tell("closed, default", 0);
  spoil();
  rocksdb_batched_multi_get_cf(db, ro, first, KEYS, keys, lens, pinned, errs, 0);
  tell("closed, batched", 1);

  rocksdb_column_family_handle_destroy(first);
  rocksdb_column_family_handle_destroy(second);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  return end();
}
