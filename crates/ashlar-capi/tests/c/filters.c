/* Scans with a filter of tables: which entries they show, in both directions. */

#include "prints.h"

static rocksdb_options_t* options;

/* Leaves out the tables with so many entries, or, at 0, those with range deletions. */
static unsigned char keeps(void* state, const rocksdb_table_properties_t* properties) {
  uint64_t wanted = *(const uint64_t*)state;
  uint64_t ranges = rocksdb_table_properties_num_range_deletions(properties);
  if (wanted == 0) return ranges == 0;
  return ranges > 0 || rocksdb_table_properties_num_entries(properties) != wanted;
}

static void where(const char* what, rocksdb_iterator_t* iter) {
  char* err = NULL;
  printf(" %s", what);
  if (rocksdb_iter_valid(iter)) {
    print_entry(iter, "=");
  } else {
    printf("end");
  }
  rocksdb_iter_get_error(iter, &err);
  must(err);
}

static void scan(const char* what, rocksdb_iterator_t* iter) {
  printf("%s:", what);
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) where("", iter);
  printf("\n  back:");
  for (rocksdb_iter_seek_to_last(iter); rocksdb_iter_valid(iter); rocksdb_iter_prev(iter)) where("", iter);
  printf("\n");
  static const char* const places[] = {"a1", "a3", "b", "e", "f3", "g", "g9", "h", "z"};
  for (size_t at = 0; at < sizeof places / sizeof places[0]; at++) {
    printf("  %s:", places[at]);
    rocksdb_iter_seek(iter, places[at], strlen(places[at]));
    where("seek ", iter);
    if (rocksdb_iter_valid(iter)) {
      rocksdb_iter_prev(iter);
      where("prev ", iter);
    }
    rocksdb_iter_seek_for_prev(iter, places[at], strlen(places[at]));
    where("for prev ", iter);
    if (rocksdb_iter_valid(iter)) {
      rocksdb_iter_next(iter);
      where("next ", iter);
    }
    printf("\n");
  }
  rocksdb_iter_destroy(iter);
}

static void flush(rocksdb_t* db) {
  char* err = NULL;
  rocksdb_flushoptions_t* how = rocksdb_flushoptions_create();
  rocksdb_flush(db, how, &err);
  must(err);
  rocksdb_flushoptions_destroy(how);
}

/* Brings a table with so many keys into the last level. */
static void ingest(rocksdb_t* db, const char* dir, char letter, int count) {
  char* err = NULL;
  char name[16], key[16];
  snprintf(name, sizeof name, "%c.sst", letter);
  const char* file = path(dir, name);
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, file, &err);
  must(err);
  for (int n = 1; n <= count; n++) {
    snprintf(key, sizeof key, "%c%d", letter, n);
    rocksdb_sstfilewriter_put(writer, key, 2, key, 2, &err);
    must(err);
  }
  rocksdb_sstfilewriter_finish(writer, &err);
  must(err);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingest_external_file(db, &file, 1, how, &err);
  must(err);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  char* err = NULL;
  options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_t* db = open_at(options, path(argv[1], "db"));
  static const char* const keys[] = {"a1", "a2", "a3", "a4", "a5"};
  for (int n = 0; n < 5; n++) put(db, keys[n], "old");
  flush(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  ingest(db, argv[1], 'e', 1);
  ingest(db, argv[1], 'f', 7);
  ingest(db, argv[1], 'g', 4);
  ingest(db, argv[1], 'h', 7);
  put(db, "a2", "new");
  put(db, "b1", "new");
  put(db, "b2", "new");
  flush(db);
  rocksdb_column_family_handle_t* of_default = rocksdb_get_default_column_family_handle(db);
  rocksdb_delete_range_cf(db, wo, of_default, "a1", 2, "a3", 2, &err);
  must(err);
  rocksdb_column_family_handle_destroy(of_default);
  put(db, "c", "newer");
  flush(db);
  put(db, "d", "unflushed");

  static const uint64_t left_out[] = {99, 0, 1, 3, 4, 5, 7};
  for (size_t at = 0; at < sizeof left_out / sizeof left_out[0]; at++) {
    printf("== without tables of %d entries\n", (int)left_out[at]);
    rocksdb_readoptions_t* how = rocksdb_readoptions_create();
    rocksdb_readoptions_set_table_filter(how, (void*)&left_out[at], nothing, keeps);
    scan("scan", rocksdb_create_iterator(db, how));
    rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
    rocksdb_writebatch_wi_put(batch, "f5", 2, "batch", 5);
    scan("with a batch", rocksdb_writebatch_wi_create_iterator_with_base_readopts(batch, rocksdb_create_iterator(db, how), how));
    rocksdb_writebatch_wi_destroy(batch);
    size_t len;
    char* value = rocksdb_get(db, how, "g1", 2, &len, &err);
    must(err);
    show_and_free("a get", value, len);
    rocksdb_readoptions_destroy(how);
  }
  rocksdb_close(db);

  rocksdb_transactiondb_options_t* of_txns = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* txns = rocksdb_transactiondb_open(options, of_txns, path(argv[1], "db"), &err);
  must(err);
  rocksdb_transaction_options_t* of_txn = rocksdb_transaction_options_create();
  rocksdb_transaction_t* txn = rocksdb_transaction_begin(txns, wo, of_txn, NULL);
  rocksdb_transaction_put(txn, "g2", 2, "pending", 7, &err);
  must(err);
  rocksdb_readoptions_t* how = rocksdb_readoptions_create();
  rocksdb_readoptions_set_table_filter(how, (void*)&left_out[4], nothing, keeps);
  scan("in a transaction", rocksdb_transaction_create_iterator(txn, how));
  rocksdb_readoptions_clear_table_filter(how);
  scan("without a filter", rocksdb_transaction_create_iterator(txn, how));
  rocksdb_readoptions_destroy(how);
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_options_destroy(of_txn);
  rocksdb_transactiondb_options_destroy(of_txns);
  rocksdb_transactiondb_close(txns);
  rocksdb_options_destroy(options);
  return end();
}
