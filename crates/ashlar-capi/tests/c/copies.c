/* Copies of a database and their identities, directories beside a database, filters and what the perf context counts, the
 * usage of a cache, errors of single keys, and compactions of named tables. */

#include "prints.h"
#include <sys/stat.h>

/* Fails for one key, and joins the operands of all others. */
static char* own_merge(void* state, const char* key, size_t key_length, const char* existing, size_t existing_len,
                        const char* const* list, const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)state;
  *success = !(key_length == 3 && memcmp(key, "bad", 3) == 0);
  *len = 0;
  return *success ? joined(existing, existing_len, list, lens, count, len) : NULL;
}
static const char* name(void* state) {
  (void)state;
  return "fails_for_bad";
}
static rocksdb_options_t* new_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  return options;
}

/* Whether the copy in a directory has another identity than the database. */
static void compare_identities(const rocksdb_options_t* options, const char* what, rocksdb_t* db, const char* copy) {
  size_t len = 0, other_len = 0;
  char* id = rocksdb_get_db_identity(db, &len);
  rocksdb_t* other = open_at(options, copy);
  char* other_id = rocksdb_get_db_identity(other, &other_len);
  printf("%s: identities of %zu and %zu bytes, %s\n", what, len, other_len,
         len == other_len && memcmp(id, other_id, len) == 0 ? "equal" : "different");
  rocksdb_free(id);
  rocksdb_free(other_id);
  rocksdb_close(other);
}

static void copies(const char* dir, unsigned char in_manifest) {
  start(in_manifest ? "copies, id in the MANIFEST" : "copies, id in IDENTITY");
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  rocksdb_options_set_write_dbid_to_manifest(options, in_manifest);
  char home[4096], backups[4096], restored[4096], checkpoint[4096];
  snprintf(home, sizeof home, "%s/home%d", dir, in_manifest);
  snprintf(backups, sizeof backups, "%s/backups%d", dir, in_manifest);
  snprintf(restored, sizeof restored, "%s/restored%d", dir, in_manifest);
  snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint%d", dir, in_manifest);
  rocksdb_t* db = open_at(options, home);
  put(db, "k", "v");

  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, backups, &err);
  must(err);
  rocksdb_backup_engine_create_new_backup(engine, db, &err);
  said("backup", &err);
  rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, restored, restored, restore, &err);
  said("restore", &err);
  rocksdb_restore_options_destroy(restore);
  rocksdb_backup_engine_close(engine);
  compare_identities(options, "restored", db, restored);

  rocksdb_checkpoint_t* maker = rocksdb_checkpoint_object_create(db, &err);
  must(err);
  rocksdb_checkpoint_create(maker, checkpoint, 0, &err);
  said("checkpoint", &err);
  rocksdb_checkpoint_object_destroy(maker);
  compare_identities(options, "checkpoint", db, checkpoint);

  /* A directory of backups that begins anew. */
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_backup_engine_options_t* anew = rocksdb_backup_engine_options_create(backups);
  rocksdb_backup_engine_options_set_destroy_old_data(anew, 1);
  engine = rocksdb_backup_engine_open_opts(anew, env, &err);
  said("open, old backups destroyed", &err);
  const rocksdb_backup_engine_info_t* info = rocksdb_backup_engine_get_backup_info(engine);
  printf("backups: %d\n", rocksdb_backup_engine_info_count(info));
  rocksdb_backup_engine_info_destroy(info);
  rocksdb_backup_engine_close(engine);
  rocksdb_backup_engine_options_destroy(anew);
  rocksdb_env_destroy(env);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void beside(const char* dir) {
  start("tables beside the database");
  char* err = NULL;
  char home[4096], tables[4096];
  snprintf(home, sizeof home, "%s/beside", dir);
  snprintf(tables, sizeof tables, "%s/beside_tables", dir);
  rocksdb_options_t* options = new_options();
  rocksdb_dbpath_t* place = rocksdb_dbpath_create(tables, 1 << 30);
  const rocksdb_dbpath_t* places[1] = {place};
  rocksdb_options_set_db_paths(options, places, 1);
  rocksdb_t* db = open_at(options, home);
  put(db, "k", "v");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_column_family_metadata_t* meta = rocksdb_get_column_family_metadata(db);
  for (size_t level = 0; level < rocksdb_column_family_metadata_get_level_count(meta); level++) {
    rocksdb_level_metadata_t* of = rocksdb_column_family_metadata_get_level_metadata(meta, level);
    for (size_t at = 0; at < rocksdb_level_metadata_get_file_count(of); at++) {
      rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(of, at);
      char* where = rocksdb_sst_file_metadata_get_directory(file);
      printf("a table in level %zu, %s\n", level, strcmp(where, tables) == 0 ? "in its directory" : where);
      rocksdb_free(where);
      rocksdb_sst_file_metadata_destroy(file);
    }
    rocksdb_level_metadata_destroy(of);
  }
  rocksdb_column_family_metadata_destroy(meta);
  rocksdb_close(db);
  rocksdb_destroy_db(options, home, &err);
  said("destroy", &err);
  printf("left: the database %d, its tables %d\n", exists(home), exists(tables));
  rocksdb_dbpath_destroy(place);
  rocksdb_options_destroy(options);
}

/* How many of 10,000 absent keys a filter lets through: that shows its kind. */
static void filters(const char* dir) {
  start("filters");
  char* err = NULL;
  for (int run = 0; run < 4; run++) {
    rocksdb_options_t* options = new_options();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_filterpolicy_t* policy = run == 0   ? rocksdb_filterpolicy_create_bloom(8.0)
                                     : run == 1 ? rocksdb_filterpolicy_create_bloom_full(8.0)
                                     : run == 2 ? rocksdb_filterpolicy_create_ribbon(8.0)
                                                : rocksdb_filterpolicy_create_ribbon_hybrid(8.0, 1);
    rocksdb_block_based_options_set_filter_policy(table, policy);
    rocksdb_block_based_options_set_optimize_filters_for_memory(table, 0);
    rocksdb_options_set_block_based_table_factory(options, table);
    char home[4096], key[32];
    snprintf(home, sizeof home, "%s/filter%d", dir, run);
    rocksdb_t* db = open_at(options, home);
    /* The last key is behind all absent ones, so that each of them reaches the filter. */
    put(db, "there9", "v");
    for (int i = 0; i < 2000; i++) {
      snprintf(key, sizeof key, "there%08d", i);
      put(db, key, "v");
    }
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &err);
    must(err);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_perfcontext_t* perf = rocksdb_perfcontext_create();
    rocksdb_perfcontext_reset(perf);
    size_t found = 0, len;
    for (int i = 0; i < 10000; i++) {
      snprintf(key, sizeof key, "there%08dx", i);
      char* value = rocksdb_get(db, ro, key, strlen(key), &len, &err);
      must(err);
      found += value != NULL;
      rocksdb_free(value);
    }
    printf("filter %d: %zu found, %llu passed, %llu held back\n", run, found,
           (unsigned long long)rocksdb_perfcontext_metric(perf, rocksdb_bloom_sst_hit_count),
           (unsigned long long)rocksdb_perfcontext_metric(perf, rocksdb_bloom_sst_miss_count));
    rocksdb_perfcontext_destroy(perf);
    rocksdb_close(db);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
  }
}

static void cache_usage(const char* dir) {
  start("the usage of a cache");
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(8 << 20);
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_t* db = open_at(options, path(dir, "cached"));
  put(db, "k", "v");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
  size_t len;
  show_and_free("k", rocksdb_get(db, ro, "k", 1, &len, &err), 1);
  printf("usage %d, capacity %zu\n", rocksdb_cache_get_usage(cache) > 0, rocksdb_cache_get_capacity(cache));
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
  rocksdb_iter_seek_to_first(iter);
  printf("pinned %d\n", rocksdb_cache_get_pinned_usage(cache) > 0);
  rocksdb_iter_destroy(iter);
  /* More than the cache holds. */
  char big[10000], key[16];
  memset(big, 'b', sizeof big - 1);
  big[sizeof big - 1] = 0;
  for (int i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "%06d", i);
    put(db, key, big);
  }
  flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
  for (int i = 0; i < 2000; i++) {
    snprintf(key, sizeof key, "%06d", i);
    rocksdb_free(rocksdb_get(db, ro, key, 6, &len, &err));
    must(err);
  }
  printf("the cache keeps to its size: %d\n", rocksdb_cache_get_usage(cache) < (10 << 20));
  rocksdb_close(db);
  rocksdb_cache_destroy(cache);
  rocksdb_block_based_options_destroy(table);
  rocksdb_options_destroy(options);
}

static void errors_of_keys(const char* dir) {
  start("errors of single keys");
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  rocksdb_mergeoperator_t* merge = rocksdb_mergeoperator_create(NULL, nothing, own_merge, partial_merge, NULL, name);
  rocksdb_options_set_merge_operator(options, merge);
  rocksdb_t* db = open_at(options, path(dir, "keys"));
  put(db, "a", "1");
  put(db, "bad", "2");
  put(db, "z", "3");
  rocksdb_merge(db, wo, "bad", 3, "x", 1, &err);
  must(err);
  rocksdb_merge(db, wo, "z", 1, "x", 1, &err);
  must(err);
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  const char* keys[4] = {"a", "bad", "none", "z"};
  size_t lens[4] = {1, 3, 4, 1};
  rocksdb_pinnableslice_t* values[4];
  char* errs[4];
  rocksdb_batched_multi_get_cf(db, ro, family, 4, keys, lens, values, errs, 0);
  for (int i = 0; i < 4; i++) {
    size_t len = 0;
    show(keys[i], rocksdb_pinnableslice_value(values[i], &len), len);
    said(keys[i], &errs[i]);
    rocksdb_pinnableslice_destroy(values[i]);
  }
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void named_tables(const char* dir) {
  start("compactions of named tables");
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_t* db = open_at(options, path(dir, "named"));
  char key[16], value[200];
  memset(value, 'v', sizeof value - 1);
  value[sizeof value - 1] = 0;
  for (int i = 0; i < 500; i++) {
    snprintf(key, sizeof key, "%06d", i);
    put(db, key, value);
  }
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_compaction_options_t* how = rocksdb_compaction_options_create();
  rocksdb_compaction_options_set_compression(how, rocksdb_zlib_compression);
  rocksdb_column_family_metadata_t* meta = rocksdb_get_column_family_metadata(db);
  rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(meta, 0);
  rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(level, 0);
  char* input = rocksdb_sst_file_metadata_get_relative_filename(file);
  size_t before = rocksdb_sst_file_metadata_get_size(file);
  rocksdb_compactionjobinfo_t* job = rocksdb_compactionjobinfo_create();
  char** outputs = NULL;
  size_t count = 0;
  const char* inputs[1] = {input};
  rocksdb_compact_files(db, how, inputs, 1, 1, -1, &outputs, &count, job, &err);
  said("compact_files", &err);
  size_t len;
  const char* read = rocksdb_compactionjobinfo_input_file_at(job, 0, &len);
  const rocksdb_table_properties_t* of = rocksdb_compactionjobinfo_table_properties_for_file(job, read, len);
  printf("outputs %zu, the input %s\n", count, of == NULL ? "is unknown" : "is known");
  if (of != NULL) printf("its entries: %llu\n", (unsigned long long)rocksdb_table_properties_num_entries(of));
  rocksdb_compact_files_output_file_names_destroy(outputs, count);
  rocksdb_compactionjobinfo_destroy(job);
  rocksdb_free(input);
  rocksdb_sst_file_metadata_destroy(file);
  rocksdb_level_metadata_destroy(level);
  rocksdb_column_family_metadata_destroy(meta);
  meta = rocksdb_get_column_family_metadata(db);
  printf("compressed: %d\n", rocksdb_column_family_metadata_get_size(meta) * 10 < before);
  rocksdb_column_family_metadata_destroy(meta);
  rocksdb_compaction_options_destroy(how);

  /* The WAL files with the first writes are gone: the updates begin with what is left. */
  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(db, 0, NULL, &err);
  said("updates since 0", &err);
  rocksdb_wal_iter_destroy(updates);
  rocksdb_verify_file_checksums(db, &err);
  said("checksums of files", &err);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void orders(const char* dir) {
  start("another comparator");
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  rocksdb_comparator_t* comparator = rocksdb_comparator_create(NULL, nothing, reverse, name);
  rocksdb_options_set_comparator(options, comparator);
  rocksdb_close(open_at(options, path(dir, "ordered")));
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(comparator);
  options = new_options();
  rocksdb_open(options, path(dir, "ordered"), &err);
  /* The whole text: bindings compare it. */
  printf("%s\n", err);
  rocksdb_free(err);
  rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
  (void)argc;
  begin();
  copies(argv[1], 0);
  copies(argv[1], 1);
  beside(argv[1]);
  filters(argv[1]);
  cache_usage(argv[1]);
  errors_of_keys(argv[1]);
  named_tables(argv[1]);
  orders(argv[1]);
  return end();
}
