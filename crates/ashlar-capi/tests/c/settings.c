/* Settings without a number, the files of one moment, managers of space, and the functions of backups: what both libraries answer
 * alike. */

#define _POSIX_C_SOURCE 200809L
#include "prints.h"
#include <dirent.h>
#include <time.h>

/* Prints a text whose length is in `len`. */
static void text(const char* what, const char* bytes, const size_t* len) { printf("%s: '%.*s'\n", what, (int)*len, bytes); }

static void destructor(void* state) { printf("%s is destroyed\n", (const char*)state); }

static unsigned char no_table(void* state, const rocksdb_table_properties_t* properties) {
  (void)state;
  (void)properties;
  return 1;
}

static void options_and_sets(void) {
  start("options");
  rocksdb_options_t* options = rocksdb_options_create();
  size_t len;
  text("wal dir", rocksdb_options_get_wal_dir(options, &len), &len);
  rocksdb_options_set_wal_dir(options, "/somewhere");
  text("wal dir", rocksdb_options_get_wal_dir(options, &len), &len);
  text("log dir", rocksdb_options_get_db_log_dir(options, &len), &len);
  text("host", rocksdb_options_get_db_host_id(options, &len), &len);
  rocksdb_options_set_db_host_id(options, "host");
  text("host", rocksdb_options_get_db_host_id(options, &len), &len);
  text("hours", rocksdb_options_get_daily_offpeak_time_utc(options, &len), &len);
  rocksdb_options_set_daily_offpeak_time_utc(options, "01:00-02:00");
  text("hours", rocksdb_options_get_daily_offpeak_time_utc(options, &len), &len);
  printf("block protection: %u\n", rocksdb_options_get_block_protection_bytes_per_key(options));
  rocksdb_options_set_block_protection_bytes_per_key(options, 4);
  printf("block protection: %u\n", rocksdb_options_get_block_protection_bytes_per_key(options));
  printf("lifetimes: %zu, %d %d\n", rocksdb_options_calculate_sst_write_lifetime_hint_set_count(options),
         rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(options, 0),
         rocksdb_options_calculate_sst_write_lifetime_hint_set_contains(options, 1));
  rocksdb_options_calculate_sst_write_lifetime_hint_set_add(options, 1);
  printf("lifetimes: %zu\n", rocksdb_options_calculate_sst_write_lifetime_hint_set_count(options));
  rocksdb_options_calculate_sst_write_lifetime_hint_set_remove(options, 1);
  rocksdb_options_calculate_sst_write_lifetime_hint_set_clear(options);
  printf("lifetimes: %zu\n", rocksdb_options_calculate_sst_write_lifetime_hint_set_count(options));
  rocksdb_options_checksum_handoff_file_types_add(options, 0);
  rocksdb_options_checksum_handoff_file_types_add(options, 2);
  printf("handoff: %zu, %d %d\n", rocksdb_options_checksum_handoff_file_types_count(options),
         rocksdb_options_checksum_handoff_file_types_contains(options, 2), rocksdb_options_checksum_handoff_file_types_contains(options, 3));
  rocksdb_options_checksum_handoff_file_types_remove(options, 2);
  printf("handoff: %zu\n", rocksdb_options_checksum_handoff_file_types_count(options));
  rocksdb_options_checksum_handoff_file_types_clear(options);
  printf("handoff: %zu\n", rocksdb_options_checksum_handoff_file_types_count(options));
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  printf("checksum: %d\n", rocksdb_block_based_options_get_checksum(table));
  rocksdb_block_based_options_set_checksum(table, 1);
  printf("checksum: %d\n", rocksdb_block_based_options_get_checksum(table));
  char* err = NULL;
  rocksdb_block_based_options_set_user_defined_index_factory_from_string(table, NULL, 0, &err);
  said("no index", &err);
  rocksdb_block_based_options_clear_user_defined_index_factory(table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_options_destroy(options);

  start("options of reads");
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  printf("activity: %d\n", rocksdb_readoptions_get_io_activity(reads));
  rocksdb_readoptions_set_io_activity(reads, 3);
  printf("activity: %d\n", rocksdb_readoptions_get_io_activity(reads));
  printf("operands: %d\n", rocksdb_readoptions_has_merge_operand_count_threshold(reads));
  rocksdb_readoptions_set_merge_operand_count_threshold(reads, 7);
  printf("operands: %d\n", rocksdb_readoptions_has_merge_operand_count_threshold(reads));
  rocksdb_readoptions_clear_merge_operand_count_threshold(reads);
  printf("operands: %d\n", rocksdb_readoptions_has_merge_operand_count_threshold(reads));
  printf("table filter: %d\n", rocksdb_readoptions_has_table_filter(reads));
  rocksdb_readoptions_set_table_filter(reads, "first filter", destructor, no_table);
  printf("table filter: %d\n", rocksdb_readoptions_has_table_filter(reads));
  rocksdb_readoptions_set_table_filter(reads, "second filter", destructor, no_table);
  rocksdb_readoptions_clear_table_filter(reads);
  printf("table filter: %d\n", rocksdb_readoptions_has_table_filter(reads));
  rocksdb_readoptions_clear_table_index_factory(reads);
  rocksdb_readoptions_destroy(reads);
}

static void unused_objects(void) {
  start("options of traces");
  rocksdb_trace_options_t* trace = rocksdb_trace_options_create();
  printf("%llu %llu %llu %d\n", (unsigned long long)rocksdb_trace_options_get_filter(trace),
         (unsigned long long)rocksdb_trace_options_get_max_trace_file_size(trace),
         (unsigned long long)rocksdb_trace_options_get_sampling_frequency(trace), rocksdb_trace_options_get_preserve_write_order(trace));
  rocksdb_trace_options_set_filter(trace, 3);
  rocksdb_trace_options_set_preserve_write_order(trace, 1);
  printf("%llu %d\n", (unsigned long long)rocksdb_trace_options_get_filter(trace), rocksdb_trace_options_get_preserve_write_order(trace));
  rocksdb_trace_options_destroy(trace);
  rocksdb_block_cache_trace_options_t* blocks = rocksdb_block_cache_trace_options_create();
  rocksdb_block_cache_trace_writer_options_t* writer = rocksdb_block_cache_trace_writer_options_create();
  rocksdb_replay_options_t* replay = rocksdb_replay_options_create();
  printf("%llu %llu %u %.2f\n", (unsigned long long)rocksdb_block_cache_trace_options_get_sampling_frequency(blocks),
         (unsigned long long)rocksdb_block_cache_trace_writer_options_get_max_trace_file_size(writer),
         rocksdb_replay_options_get_num_threads(replay), rocksdb_replay_options_get_fast_forward(replay));
  rocksdb_replay_options_destroy(replay);
  rocksdb_block_cache_trace_writer_options_destroy(writer);
  rocksdb_block_cache_trace_options_destroy(blocks);

  start("responses of a compaction service");
  char* err = NULL;
  size_t len;
  rocksdb_compactionservice_scheduleresponse_t* response = rocksdb_compactionservice_scheduleresponse_create("job", 2, &err);
  said("response", &err);
  printf("status: %d\n", rocksdb_compactionservice_scheduleresponse_getstatus(response));
  text("job", rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(response, &len), &len);
  rocksdb_compactionservice_scheduleresponse_t_destroy(response);
  response = rocksdb_compactionservice_scheduleresponse_create_with_status(7, &err);
  said("response", &err);
  printf("made: %d\n", response != NULL);
  rocksdb_open_and_compact_options_t* opened = rocksdb_open_and_compact_options_create();
  printf("resumption: %d\n", rocksdb_open_and_compact_options_get_allow_resumption(opened));
  rocksdb_open_and_compact_options_set_allow_resumption(opened, 1);
  printf("resumption: %d\n", rocksdb_open_and_compact_options_get_allow_resumption(opened));
  unsigned char* canceled = rocksdb_open_and_compact_canceled_create();
  rocksdb_open_and_compact_canceled_set(canceled, 1);
  rocksdb_open_and_compact_options_set_canceled(opened, canceled);
  rocksdb_open_and_compact_options_destroy(opened);
  rocksdb_open_and_compact_canceled_destroy(canceled);
}

/* The kinds and flags of files, in an order that does not depend on the library. Only here the settings are replaced. A checksum may
 * have a zero byte. */
static void files(rocksdb_t* db) {
  start("files of one moment");
  char* err = NULL;
  rocksdb_livefiles_storage_info_options_t* options = rocksdb_livefiles_storage_info_options_create();
  printf("%d %d %llu\n", rocksdb_livefiles_storage_info_options_get_atomic_flush(options),
         rocksdb_livefiles_storage_info_options_get_include_checksum_info(options),
         (unsigned long long)rocksdb_livefiles_storage_info_options_get_wal_size_for_flush(options));
  rocksdb_livefiles_storage_info_options_set_include_checksum_info(options, 1);
  rocksdb_livefiles_storage_info_t* info = rocksdb_get_livefiles_storage_info(db, options, &err);
  said("files", &err);
  const int kinds[] = {2, 3, 4, 9};
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    for (size_t at = 0; at < rocksdb_livefiles_storage_info_count(info); at++) {
      if (rocksdb_livefiles_storage_info_file_type(info, at) != kinds[kind]) continue;
      size_t len;
      rocksdb_livefiles_storage_info_replacement_contents(info, at, &len);
      const char* name = rocksdb_livefiles_storage_info_relative_filename(info, at);
      printf("kind %d: numbered %d, size %d, replaced %d, trimmed %d, temperature %d, directory %d, checksum %d '%s'\n", kinds[kind],
             rocksdb_livefiles_storage_info_file_number(info, at) > 0, rocksdb_livefiles_storage_info_size(info, at) > 0, kinds[kind] != 9 && len > 0,
             kinds[kind] == 9 ? 0 : rocksdb_livefiles_storage_info_trim_to_size(info, at), rocksdb_livefiles_storage_info_temperature(info, at),
             strlen(rocksdb_livefiles_storage_info_directory(info, at)) > 0, strlen(rocksdb_livefiles_storage_info_file_checksum(info, at)) <= 4,
             kinds[kind] == 2 ? rocksdb_livefiles_storage_info_file_checksum_func_name(info, at) : name == NULL ? "no name" : "");
    }
  }
  rocksdb_livefiles_storage_info_destroy(info);
  rocksdb_livefiles_storage_info_options_destroy(options);
}

/* The number of tables in a directory. */
static int tables(const char* dir) {
  int count = 0;
  DIR* all = opendir(dir);
  for (struct dirent* entry = readdir(all); entry != NULL; entry = readdir(all)) {
    size_t len = strlen(entry->d_name);
    count += len > 4 && strcmp(entry->d_name + len - 4, ".sst") == 0;
  }
  closedir(all);
  return count;
}

static void held_files(rocksdb_t* db, const char* dir) {
  start("files that are held");
  char* err = NULL;
  rocksdb_disable_file_deletions(db, &err);
  said("disabled", &err);
  rocksdb_disable_file_deletions(db, &err);
  said("disabled again", &err);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_compactoptions_t* force = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_bottommost_level_compaction(force, 2);
  int before = tables(dir);
  for (int round = 0; round < 3; round++) {
    put(db, "held", round == 0 ? "1" : "2");
    rocksdb_flush(db, flush, &err);
    must(err);
    rocksdb_compact_range_opt(db, force, NULL, 0, NULL, 0);
  }
  printf("tables are kept: %d\n", tables(dir) >= before + 5);
  rocksdb_enable_file_deletions(db, &err);
  said("enabled once", &err);
  printf("tables are kept: %d\n", tables(dir) >= before + 5);
  rocksdb_enable_file_deletions(db, &err);
  said("enabled", &err);
  for (int tries = 0; tries < 5000 && tables(dir) > 1; tries++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  printf("tables: %d\n", tables(dir));
  rocksdb_enable_file_deletions(db, &err);
  said("enabled once more", &err);
  rocksdb_compactoptions_destroy(force);
  rocksdb_flushoptions_destroy(flush);
}

/* A family whose options were not set has RocksDB's defaults, not the options of the family `default`. */
static void own_options(const char* dir) {
  start("options of a family");
  char* err = NULL;
  rocksdb_options_t* fifo = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(fifo, 1);
  rocksdb_options_set_create_missing_column_families(fifo, 1);
  rocksdb_options_set_compaction_style(fifo, 2);
  rocksdb_fifo_compaction_options_t* small = rocksdb_fifo_compaction_options_create();
  rocksdb_fifo_compaction_options_set_max_table_files_size(small, 100000);
  rocksdb_options_set_fifo_compaction_options(fifo, small);
  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_options_set_compression(plain, rocksdb_no_compression);
  const char* names[] = {"default", "listed"};
  const rocksdb_options_t* options[] = {fifo, plain};
  rocksdb_column_family_handle_t* handles[3];
  rocksdb_t* db = rocksdb_open_column_families(fifo, dir, 2, names, options, handles, &err);
  must(err);
  handles[2] = rocksdb_create_column_family(db, plain, "made", &err);
  must(err);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  char key[16], value[1000];
  memset(value, 'v', sizeof value);
  for (int n = 0; n < 400; n++) {
    snprintf(key, sizeof key, "key%06d", n);
    for (int family = 1; family < 3; family++) {
      rocksdb_put_cf(db, wo, handles[family], key, 9, value, sizeof value, &err);
      if (n % 100 == 99) rocksdb_flush_cf(db, flush, handles[family], &err);
    }
  }
  must(err);
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact(db, wait, &err);
  must(err);
  for (int family = 1; family < 3; family++) {
    int count = 0;
    rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, ro, handles[family]);
    for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) count++;
    rocksdb_iter_destroy(iter);
    printf("entries: %d\n", count);
  }
  for (int family = 0; family < 3; family++) rocksdb_column_family_handle_destroy(handles[family]);
  rocksdb_close(db);
  rocksdb_wait_for_compact_options_destroy(wait);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_fifo_compaction_options_destroy(small);
  rocksdb_options_destroy(plain);
  rocksdb_options_destroy(fifo);
}

static int copied;
static void progress(void* state) {
  (void)state;
  copied++;
}

static void backups(rocksdb_t* db, const char* dir) {
  start("backups");
  char* err = NULL;
  size_t len;
  rocksdb_backup_engine_options_t* options = rocksdb_backup_engine_options_create(dir);
  const char* named = rocksdb_backup_engine_options_get_backup_dir(options, &len);
  printf("directory: %d\n", len == strlen(dir) && memcmp(named, dir, len) == 0);
  rocksdb_backup_engine_options_set_callback_trigger_interval_size(options, 1);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open_opts(options, env, &err);
  said("open", &err);
  rocksdb_create_backup_options_t* how = rocksdb_create_backup_options_create();
  rocksdb_create_backup_options_set_progress_callback(how, NULL, progress);
  uint32_t id;
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, how, &id, &err);
  said("backup", &err);
  printf("the function was called: %d\n", copied > 0);
  copied = 0;
  rocksdb_create_backup_options_set_progress_callback(how, NULL, NULL);
  rocksdb_create_backup_options_set_exclude_files_callback(how, NULL, NULL);
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, how, &id, &err);
  said("backup", &err);
  printf("the function was called: %d\n", copied > 0);
  rocksdb_create_backup_options_destroy(how);
  rocksdb_backup_engine_close(engine);
  rocksdb_backup_engine_options_destroy(options);
  rocksdb_env_destroy(env);
}

static void put_of(void* state, uint32_t family, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)state;
  printf("  family %u: put %.*s = %.*s\n", family, (int)klen, k, (int)vlen, v);
}
static void deleted_of(void* state, uint32_t family, const char* k, size_t klen) {
  (void)state;
  printf("  family %u: deleted %.*s\n", family, (int)klen, k);
}
static size_t no_timestamps(void* state, uint32_t family) {
  (void)state;
  (void)family;
  return 0;
}
static size_t unknown_timestamps(void* state, uint32_t family) {
  (void)state;
  (void)family;
  return (size_t)-1;
}

static void batches(void) {
  start("batches");
  char* err = NULL;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_put_log_data(batch, "blob", 4);
  rocksdb_writebatch_merge(batch, "b", 1, "2", 1);
  rocksdb_writebatch_delete(batch, "c", 1);
  rocksdb_writebatch_iterate_cf_ld(batch, NULL, put_of, deleted_of, put_of, walk_log);
  rocksdb_writebatch_update_timestamps(batch, "12345678", 8, NULL, no_timestamps, &err);
  said("no timestamps", &err);
  rocksdb_writebatch_update_timestamps(batch, "12345678", 8, NULL, unknown_timestamps, &err);
  said("unknown timestamps", &err);
  rocksdb_writebatch_destroy(batch);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  char* err = NULL;
  options_and_sets();
  unused_objects();
  batches();
  own_options(path(argv[1], "families"));

  start("space");
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_sst_file_manager_t* manager = rocksdb_sst_file_manager_create(env);
  printf("%lld %.2f %llu\n", (long long)rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager),
         rocksdb_sst_file_manager_get_max_trash_db_ratio(manager), (unsigned long long)rocksdb_sst_file_manager_get_total_trash_size(manager));
  rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager, 1000000000);
  rocksdb_sst_file_manager_set_max_trash_db_ratio(manager, 0.5);
  rocksdb_sst_file_manager_set_compaction_buffer_size(manager, 1000);
  printf("%lld %.2f\n", (long long)rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager),
         rocksdb_sst_file_manager_get_max_trash_db_ratio(manager));
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_sst_file_manager(options, manager);
  rocksdb_file_checksum_gen_factory_t* factory = rocksdb_file_checksum_gen_crc32c_factory_create();
  rocksdb_options_set_file_checksum_gen_factory(options, factory);
  rocksdb_file_checksum_gen_factory_destroy(factory);
  rocksdb_t* db = rocksdb_open(options, path(argv[1], "db"), &err);
  must(err);
  put(db, "a", "1");
  printf("no table: %llu, reached %d\n", (unsigned long long)rocksdb_sst_file_manager_get_total_size(manager),
         rocksdb_sst_file_manager_is_max_allowed_space_reached(manager));
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
  uint64_t total = rocksdb_sst_file_manager_get_total_size(manager);
  printf("a table: %d\n", total > 0);
  rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, total + 1000000);
  printf("reached: %d %d\n", rocksdb_sst_file_manager_is_max_allowed_space_reached(manager),
         rocksdb_sst_file_manager_is_max_allowed_space_reached_including_compactions(manager));
  rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, 1);
  printf("reached: %d\n", rocksdb_sst_file_manager_is_max_allowed_space_reached(manager));
  rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, 0);

  start("options of an open database");
  const char* keys[] = {"max_background_jobs", "bytes_per_sync"};
  const char* values[] = {"3", "1048576"};
  rocksdb_set_db_options(db, 2, keys, values, &err);
  said("changed", &err);

  files(db);
  held_files(db, path(argv[1], "db"));
  backups(db, path(argv[1], "backups"));
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_sst_file_manager_destroy(manager);
  rocksdb_env_destroy(env);
  return end();
}
