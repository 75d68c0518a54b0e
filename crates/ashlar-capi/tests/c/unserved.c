/* What the engine does not have: the objects can be made, and a call that would use one answers `Not implemented`. */

#include "prints.h"

static void destructor(void* state) { printf("%s is destroyed\n", (const char*)state); }

static void numbers(void* state, const uint32_t* ids, const uint64_t* logs, size_t count, const char* const* names, const size_t* lens,
                    const uint32_t* named, size_t names_count) {
  (void)state, (void)ids, (void)logs, (void)count, (void)names, (void)lens, (void)named, (void)names_count;
}
static int found(void* state, unsigned long long log, const char* name, size_t len, const rocksdb_writebatch_t* batch,
                 rocksdb_writebatch_t* changed, unsigned char* is_changed) {
  (void)state, (void)log, (void)name, (void)len, (void)batch, (void)changed, (void)is_changed;
  return 0;
}

static rocksdb_compactionservice_scheduleresponse_t* schedule(void* state, const rocksdb_compactionservice_jobinfo_t* info,
                                                              const char* input, size_t len) {
  (void)state, (void)info, (void)input, (void)len;
  return NULL;
}
static int waits(void* state, const char* job, char** result, size_t* len) {
  (void)state, (void)job, (void)result, (void)len;
  return 0;
}
static void cancels(void* state) { (void)state; }
static void installs(void* state, const char* job, int status) { (void)state, (void)job, (void)status; }

static rocksdb_options_t* fresh(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  return options;
}

/* An open with these options is refused; frees the options. */
static void refused(const char* what, rocksdb_options_t* options, const char* dir) {
  char* err = NULL;
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  said(what, &err);
  if (db != NULL) rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static unsigned char excludes(void* state, const char* name, size_t len) {
  (void)state, (void)name, (void)len;
  return 1;
}

/* Programs that ask for plain or cuckoo tables get block-based ones. */
static void kinds(const char* dir) {
  char* err = NULL;
  for (int run = 0; run < 2; run++) {
    rocksdb_options_t* options = fresh();
    rocksdb_cuckoo_table_options_t* cuckoo = rocksdb_cuckoo_options_create();
    if (run == 0) {
      rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(3));
      rocksdb_options_set_allow_mmap_reads(options, 1);
      rocksdb_options_set_plain_table_factory(options, 13, 10, 0.75, 16, 0, 0, 0, 0);
    } else {
      rocksdb_options_set_cuckoo_table_factory(options, cuckoo);
    }
    rocksdb_t* db = rocksdb_open(options, path(dir, run == 0 ? "plain" : "cuckoo"), &err);
    said(run == 0 ? "plain tables" : "cuckoo tables", &err);
    put(db, "foo", "bar");
    put(db, "foo1", "bar1");
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &err);
    said("flush", &err);
    rocksdb_flushoptions_destroy(flush);
    size_t len = 0;
    char* value = rocksdb_get(db, ro, "foo1", 4, &len, &err);
    said("get", &err);
    show_and_free("foo1", value, len);
    rocksdb_close(db);
    rocksdb_cuckoo_options_destroy(cuckoo);
    rocksdb_options_destroy(options);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  char* err = NULL;
  const char* dir = path(argv[1], "refused");

  rocksdb_options_t* options = fresh();
  rocksdb_compactionservice_t* service =
      rocksdb_compactionservice_create("service", destructor, schedule, "name", waits, cancels, installs);
  rocksdb_options_set_compaction_service(options, service);
  refused("a compaction service", options, dir);

  options = fresh();
  rocksdb_walfilter_t* filter = rocksdb_walfilter_create("filter", destructor, numbers, found, name_of);
  rocksdb_options_set_wal_filter(options, filter);
  refused("a filter over the WAL", options, dir);
  rocksdb_walfilter_destroy(filter);

  options = fresh();
  filter = rocksdb_walfilter_create("another filter", destructor, numbers, found, name_of);
  rocksdb_options_set_wal_filter(options, filter);
  rocksdb_options_clear_wal_filter(options);
  rocksdb_walfilter_destroy(filter);
  rocksdb_t* db = rocksdb_open(options, path(argv[1], "db"), &err);
  must(err);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_envoptions_t* files = rocksdb_envoptions_create();
  const char* trace = path(argv[1], "trace");
  rocksdb_trace_options_t* how = rocksdb_trace_options_create();
  rocksdb_start_trace(db, env, files, how, trace, &err);
  said("a trace", &err);
  rocksdb_end_trace(db, &err);
  said("its end", &err);
  rocksdb_start_io_trace(db, env, files, how, trace, &err);
  said("a trace of files", &err);
  rocksdb_end_io_trace(db, &err);
  said("its end", &err);
  rocksdb_start_block_cache_trace(db, env, files, how, trace, &err);
  said("a trace of blocks", &err);
  rocksdb_start_block_cache_trace_with_options(db, env, files, NULL, NULL, trace, &err);
  said("with options", &err);
  rocksdb_end_block_cache_trace(db, &err);
  said("its end", &err);
  printf("a reader: %d\n", rocksdb_trace_reader_create(env, files, trace, &err) != NULL);
  said("a reader", &err);
  printf("a replayer: %d\n", rocksdb_new_default_replayer(db, NULL, 0, env, files, trace, &err) != NULL);
  said("a replayer", &err);
  rocksdb_trace_options_destroy(how);
  rocksdb_envoptions_destroy(files);

  size_t len;
  rocksdb_compaction_service_options_override_t* settings = rocksdb_compaction_service_options_override_create_from_options(options);
  rocksdb_compaction_service_options_override_set_option(settings, "a", "b");
  rocksdb_compaction_service_options_override_set_env(settings, env);
  rocksdb_compaction_service_options_override_set_prefix_extractor(settings, rocksdb_slicetransform_create_fixed_prefix(2));
  char* result = rocksdb_open_and_compact(dir, dir, "", 0, &len, settings, &err);
  printf("open_and_compact: %d\n", result != NULL);
  said("open_and_compact", &err);
  rocksdb_compaction_service_options_override_destroy(settings);
  printf("null: %d\n", rocksdb_compaction_service_options_override_create_from_options(NULL) != NULL);

  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_user_defined_index_factory_from_string(table, "trie", 4, &err);
  said("an index of the caller", &err);
  rocksdb_block_based_options_destroy(table);
  rocksdb_readoptions_set_table_index_factory_from_string(ro, "trie", 4, &err);
  said("an index for reads", &err);

  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, path(argv[1], "backups"), &err);
  must(err);
  rocksdb_create_backup_options_t* backup = rocksdb_create_backup_options_create();
  rocksdb_create_backup_options_set_exclude_files_callback(backup, NULL, excludes);
  uint32_t id;
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, backup, &id, &err);
  said("a backup that leaves files out", &err);
  rocksdb_create_backup_options_destroy(backup);
  rocksdb_backup_engine_close(engine);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_env_destroy(env);

  /* What RocksDB removed changes nothing, also for an open. */
  options = fresh();
  rocksdb_options_set_access_hint_on_compaction_start(options, 2);
  rocksdb_options_set_max_write_buffer_number_to_maintain(options, 3);
  rocksdb_options_set_skip_checking_sst_file_sizes_on_db_open(options, 1);
  rocksdb_options_set_soft_rate_limit(options, 0.5);
  rocksdb_options_set_hard_rate_limit(options, 1.5);
  rocksdb_options_set_max_grandparent_overlap_factor(options, 7);
  rocksdb_options_set_purge_redundant_kvs_while_flush(options, 1);
  rocksdb_options_set_disable_data_sync(options, 1);
  rocksdb_options_set_memtable_prefix_bloom_bits(options, 1000);
  rocksdb_options_set_table_cache_remove_scan_count_limit(options, 3);
  rocksdb_options_set_compaction_filter_factory_v2(options, NULL);
  table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_filter_policy(
      table, rocksdb_filterpolicy_create("policy", destructor, NULL, NULL, NULL, name_of));
  rocksdb_block_based_options_set_block_cache_compressed(table, NULL);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  printf("kept: %d %d %d\n", rocksdb_options_get_access_hint_on_compaction_start(options),
         rocksdb_options_get_max_write_buffer_number_to_maintain(options),
         rocksdb_options_get_skip_checking_sst_file_sizes_on_db_open(options));
  db = rocksdb_open(options, path(argv[1], "older"), &err);
  must(err);
  put(db, "a", "1");
  rocksdb_delete_file(db, "000001.sst");
  rocksdb_abort_all_compactions(db);
  rocksdb_resume_all_compactions(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  char* value = rocksdb_get(db, ro, "a", 1, &len, &err);
  show_and_free("a", value, len);
  must(err);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_bloom_format(10, 0));
  rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_ribbon_format(10, 1));
  kinds(argv[1]);
  return end();
}
