/* Reads into memory of the caller, loggers, and what a database tells about its files and jobs: prints what a library answers.
 * Both libraries print the same lines. */

#define _POSIX_C_SOURCE 200809L
#include "prints.h"
#include <sys/stat.h>

/* RocksDB has these since 11.9. */
#pragma weak rocksdb_batched_multi_get_pinned_cf
#pragma weak rocksdb_pinnable_multi_get_count
#pragma weak rocksdb_pinnable_multi_get_result
#pragma weak rocksdb_pinnable_multi_get_destroy

static rocksdb_flushoptions_t* fo;

static rocksdb_options_t* creating(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  return options;
}

static void flush(rocksdb_t* db) {
  char* err = NULL;
  rocksdb_flush(db, fo, &err);
  must(err);
}

static rocksdb_slice_t slice(const char* text) {
  rocksdb_slice_t made = {text, strlen(text)};
  return made;
}

/* ---- reads ---- */

static void into(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* key, size_t size) {
  char buffer[16], *err = NULL;
  memset(buffer, '.', sizeof buffer);
  size_t len = 77;
  unsigned char found = 7, done;
  if (cf == NULL) {
    done = rocksdb_get_into_buffer(db, ro, key, strlen(key), buffer, size, &len, &found, &err);
  } else {
    done = rocksdb_get_into_buffer_cf(db, ro, cf, key, strlen(key), buffer, size, &len, &found, &err);
  }
  must(err);
  printf("%s into %d: %d %d %d '%.5s'\n", key, (int)size, done, found, (int)len, buffer);
}

static void handle(const char* key, rocksdb_pinnable_handle_t* handle) {
  size_t len = 77;
  const char* value = rocksdb_pinnable_handle_get_value(handle, &len);
  show(key, value, len);
  printf("%d bytes\n", (int)len);
  if (handle != NULL) rocksdb_pinnable_handle_destroy(handle);
}

static void many(rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  rocksdb_slice_t keys[4] = {slice("a"), slice("none"), slice("empty"), slice("a")};
  rocksdb_pinnableslice_t* values[4];
  char* errs[4];
  rocksdb_batched_multi_get_cf_slice(db, ro, cf, 4, keys, values, errs, false);
  for (int i = 0; i < 4; i++) {
    size_t len = 0;
    const char* value = values[i] == NULL ? NULL : rocksdb_pinnableslice_value(values[i], &len);
    show(keys[i].data, value, len);
    must(errs[i]);
    if (values[i] != NULL) rocksdb_pinnableslice_destroy(values[i]);
  }
  if (rocksdb_batched_multi_get_pinned_cf == NULL) {
    printf("count 4\n1 'one'\n0 none\n1 ''\n1 'one'\n3 none\ncount 0\n");
    return;
  }
  rocksdb_pinnable_multi_get_t* kept = rocksdb_batched_multi_get_pinned_cf(db, ro, cf, 4, keys, 0);
  printf("count %d\n", (int)rocksdb_pinnable_multi_get_count(kept));
  for (int i = 0; i < 5; i++) {
    const char *value = "", *error = "";
    size_t len = 77, error_len = 77;
    int state = rocksdb_pinnable_multi_get_result(kept, i, &value, &len, &error, &error_len);
    if (error != NULL || error_len != 0) printf("an error: %s\n", error);
    if (value == NULL) {
      printf("%d none\n", state);
    } else {
      printf("%d '%.*s'\n", state, (int)len, value);
    }
  }
  rocksdb_pinnable_multi_get_destroy(kept);
  kept = rocksdb_batched_multi_get_pinned_cf(db, ro, cf, 0, NULL, 1);
  printf("count %d\n", (int)rocksdb_pinnable_multi_get_count(kept));
  rocksdb_pinnable_multi_get_destroy(kept);
}

static void sizes(rocksdb_t* db, rocksdb_column_family_handle_t* cf, int memtables, int files, int blobs) {
  const char *begins[2] = {"a", "n"}, *ends[2] = {"m", "z"};
  size_t ones[2] = {1, 1};
  uint64_t by_options[2] = {7, 7}, by_flags[2] = {7, 7}, of_default[2] = {7, 7};
  char* err = NULL;
  rocksdb_size_approximation_options_t* options = rocksdb_size_approximation_options_create();
  rocksdb_size_approximation_options_set_include_memtables(options, memtables);
  rocksdb_size_approximation_options_set_include_files(options, files);
  rocksdb_size_approximation_options_set_include_blob_files(options, blobs);
  printf("sizes of %d %d %d: ", memtables, files, blobs);
  rocksdb_approximate_sizes_cf_with_options(db, cf, options, 2, begins, ones, ends, ones, by_options, &err);
  said("with options", &err);
  rocksdb_approximate_sizes_cf_with_flags(db, cf, 2, begins, ones, ends, ones, memtables | files << 1 | blobs << 2, by_flags, &err);
  said("with flags", &err);
  rocksdb_approximate_sizes_with_options(db, options, 2, begins, ones, ends, ones, of_default, &err);
  said("of default", &err);
  printf("%d %d, alike %d %d\n", by_options[0] > 1000, by_options[1] > 1000, by_options[0] == by_flags[0],
         by_options[0] == of_default[0]);
  rocksdb_size_approximation_options_destroy(options);
}

static void reads(const char* dir) {
  start("reads");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_options_set_enable_blob_files(options, 1);
  rocksdb_options_set_min_blob_size(options, 4000);
  rocksdb_t* db = rocksdb_open(options, path(dir, "reads"), &err);
  must(err);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  put(db, "a", "one");
  put(db, "empty", "");
  for (int size = 0; size < 5; size++) into(db, NULL, "a", size);
  into(db, cf, "a", 16);
  into(db, cf, "empty", 0);
  into(db, cf, "none", 16);
  handle("a", rocksdb_get_pinned_v2(db, ro, "a", 1, &err));
  handle("empty", rocksdb_get_pinned_cf_v2(db, ro, cf, "empty", 5, &err));
  handle("none", rocksdb_get_pinned_cf_v2(db, ro, cf, "none", 4, &err));
  must(err);
  many(db, cf);

  char* large = malloc(5001);
  for (int i = 0; i < 5000; i++) large[i] = (char)('a' + rand() % 26);
  large[5000] = 0;
  put(db, "b", large);
  flush(db);
  put(db, "o", large);
  large[3000] = 0;
  put(db, "p", large);
  free(large);
  for (int places = 0; places < 8; places++) sizes(db, cf, places & 1, places >> 1 & 1, places >> 2);
  rocksdb_verify_checksum_with_options(db, ro, &err);
  said("verify", &err);
  rocksdb_verify_checksum_with_options(db, NULL, &err);
  said("verify", &err);

  const char* names[3] = {"one", "two", "three"};
  size_t count = 77;
  rocksdb_column_family_handle_t** made = rocksdb_create_column_families(db, options, 3, names, &count, &err);
  said("families", &err);
  for (size_t i = 0; i < count; i++) {
    size_t len;
    char* name = rocksdb_column_family_handle_get_name(made[i], &len);
    show("family", name, len);
    rocksdb_free(name);
    rocksdb_column_family_handle_destroy(made[i]);
  }
  rocksdb_create_column_families_destroy(made);
  const char* again[3] = {"four", "one", "five"};
  made = rocksdb_create_column_families(db, options, 3, again, &count, &err);
  said("a family that exists", &err);
  printf("created %d\n", (int)count);
  for (size_t i = 0; i < count; i++) rocksdb_column_family_handle_destroy(made[i]);
  rocksdb_create_column_families_destroy(made);

  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_create_dir_if_missing(env, path(dir, "new"), &err);
  said("a new directory", &err);
  rocksdb_create_dir_if_missing(env, path(dir, "new"), &err);
  said("the same directory", &err);
  rocksdb_create_dir_if_missing(env, path(dir, "none/new"), &err);
  said("a directory in none", &err);
  rocksdb_create_dir_if_missing(env, path(dir, "reads/CURRENT"), &err);
  said("a file", &err);
  struct stat there;
  printf("there: %d %d\n", stat(path(dir, "new"), &there) == 0, stat(path(dir, "none"), &there) == 0);
  rocksdb_env_destroy(env);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* ---- loggers, and options of several values ---- */

struct heard {
  int flushes, lines, below;
};

static void hear(void* state, unsigned level, char* line, size_t len) {
  struct heard* heard = state;
  (void)len;
  heard->lines++;
  if (level < 1) heard->below++;
  if (strstr(line, "EVENT_LOG_v1") != NULL && strstr(line, "\"event\": \"flush_finished\"") != NULL) heard->flushes++;
}

static void loggers(const char* dir) {
  start("loggers");
  char* err = NULL;
  struct heard heard = {0, 0, 0};
  rocksdb_options_t* options = creating();
  rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(1, hear, &heard);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  logger = rocksdb_options_get_info_log(options);
  rocksdb_options_t* same = creating();
  rocksdb_options_set_info_log(same, logger);
  rocksdb_logger_destroy(logger);
  rocksdb_options_destroy(options);
  rocksdb_t* db = rocksdb_open(same, path(dir, "logged"), &err);
  must(err);
  put(db, "a", "one");
  flush(db);
  put(db, "a", "two");
  flush(db);
  rocksdb_close(db);
  printf("flushes: %d, lines: %d, below the level: %d\n", heard.flushes, heard.lines >= 2, heard.below);
  rocksdb_options_destroy(same);

  /* Only errors go to the standard error, so nothing does. */
  options = creating();
  logger = rocksdb_logger_create_stderr_logger(3, "details");
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  logger = rocksdb_logger_create_stderr_logger(3, NULL);
  rocksdb_logger_destroy(logger);
  db = rocksdb_open(options, path(dir, "logged"), &err);
  must(err);
  rocksdb_close(db);
  rocksdb_options_destroy(options);

  options = creating();
  rocksdb_options_compaction_readahead_size(options, 12345);
  printf("readahead %d\n", (int)rocksdb_options_get_compaction_readahead_size(options));
  int factors[2] = {2, 3};
  rocksdb_options_set_max_bytes_for_level_multiplier_additional(options, factors, 2);
  printf("trainer %d", rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(options));
  rocksdb_options_set_bottommost_compression_options_use_zstd_dict_trainer(options, 0, 0);
  printf(" %d", rocksdb_options_get_bottommost_compression_options_use_zstd_dict_trainer(options));
  rocksdb_options_set_bottommost_compression_options_max_dict_buffer_bytes(options, 1000, 0);
  rocksdb_options_set_bottommost_compression_options_zstd_max_train_bytes(options, 100, 0);
  printf("\n");
  rocksdb_options_set_compression(options, rocksdb_lz4_compression);
  rocksdb_options_set_min_level_to_compress(options, -1);
  rocksdb_options_set_min_level_to_compress(options, 2);
  rocksdb_options_prepare_for_bulk_load(options);
  printf("bulk %d %d %d %d\n", rocksdb_options_get_level0_stop_writes_trigger(options),
         rocksdb_options_get_disable_auto_compactions(options), rocksdb_options_get_num_levels(options),
         (int)rocksdb_options_get_target_file_size_base(options));
  printf("statistics %d\n", rocksdb_options_get_statistics_level(options));
  rocksdb_options_enable_statistics(options);
  rocksdb_options_set_statistics_level(options, 2);
  printf("statistics %d\n", rocksdb_options_get_statistics_level(options));
  db = rocksdb_open(options, path(dir, "bulk"), &err);
  must(err);
  for (int i = 0; i < 6; i++) {
    put(db, "a", "one");
    flush(db);
  }
  char* tables = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  printf("tables: %s\n", tables);
  rocksdb_free(tables);
  rocksdb_close(db);
  rocksdb_options_destroy(options);

  /* Compression of the last level alone. */
  options = creating();
  rocksdb_options_set_bottommost_compression_options(options, -14, 3, 0, 0, 0);
  db = rocksdb_open(options, path(dir, "bulk"), &err);
  said("options that are off", &err);
  if (db != NULL) rocksdb_close(db);
  rocksdb_options_destroy(options);
  options = creating();
  rocksdb_options_set_plain_table_factory(options, 0, 10, 0.75, 16, 0, 0, 0, 0);
  rocksdb_options_destroy(options);

  rocksdb_write_buffer_manager_t* manager = rocksdb_write_buffer_manager_create(1 << 20, false);
  rocksdb_write_buffer_manager_set_allow_stall(manager, true);
  printf("manager: %d %d %d %d\n", (int)rocksdb_write_buffer_manager_memory_usage(manager),
         (int)rocksdb_write_buffer_manager_mutable_memtable_memory_usage(manager),
         (int)rocksdb_write_buffer_manager_dummy_entries_in_cache_usage(manager),
         rocksdb_write_buffer_manager_cost_to_cache(manager));
  rocksdb_write_buffer_manager_destroy(manager);
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
  manager = rocksdb_write_buffer_manager_create_with_cache(1 << 20, cache, false);
  printf("with a cache: %d\n", rocksdb_write_buffer_manager_cost_to_cache(manager));
  rocksdb_write_buffer_manager_destroy(manager);
  rocksdb_cache_destroy(cache);
}

/* ---- lists of files ---- */

static void wal_file(const rocksdb_wal_file_t* file) {
  const char* name = rocksdb_wal_file_path_name(file);
  char expected[64];
  snprintf(expected, sizeof expected, "%s/%06d.log", rocksdb_wal_file_type(file) == 0 ? "/archive" : "",
           (int)rocksdb_wal_file_log_number(file));
  printf("WAL file of type %d, named by its number %d, first write %d, with bytes %d\n", rocksdb_wal_file_type(file),
         strcmp(name, expected) == 0, (int)rocksdb_wal_file_start_sequence(file),
         rocksdb_wal_file_size_file_bytes(file) > 0);
}

/* Once no purge is due, which moves WAL files to the archive. */
static void wal_files(rocksdb_t* db) {
  char* err = NULL;
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact(db, wait, &err);
  must(err);
  rocksdb_wait_for_compact_options_destroy(wait);
  rocksdb_wal_files_t* files = rocksdb_get_sorted_wal_files(db, &err);
  must(err);
  printf("WAL files: %d, behind the last: %d\n", (int)rocksdb_wal_files_count(files),
         rocksdb_wal_files_get_wal_file(files, rocksdb_wal_files_count(files)) == NULL);
  for (size_t i = 0; i < rocksdb_wal_files_count(files); i++) wal_file(rocksdb_wal_files_get_wal_file(files, i));
  rocksdb_wal_files_destroy(files);
  rocksdb_wal_file_t* current = rocksdb_get_current_wal_file(db, &err);
  must(err);
  printf("current: type %d, first write %d\n", rocksdb_wal_file_type(current), (int)rocksdb_wal_file_start_sequence(current));
  rocksdb_wal_file_destroy(current);
}

static void table(const rocksdb_livefiles_t* files, int i, const char* dir) {
  size_t len;
  const char* key;
  printf("%s of %s, in its directory %d, level %d, %d bytes, entries %d, deletions %d, numbers %d to %d\n",
         strlen(rocksdb_livefiles_name(files, i)) == 11 ? "a table" : rocksdb_livefiles_name(files, i),
         rocksdb_livefiles_column_family_name(files, i), strcmp(rocksdb_livefiles_directory(files, i), dir) == 0,
         rocksdb_livefiles_level(files, i), rocksdb_livefiles_size(files, i) > 100, (int)rocksdb_livefiles_entries(files, i),
         (int)rocksdb_livefiles_deletions(files, i), (int)rocksdb_livefiles_smallest_seqno(files, i),
         (int)rocksdb_livefiles_largest_seqno(files, i));
  key = rocksdb_livefiles_smallestkey(files, i, &len);
  show("from", key, len);
  key = rocksdb_livefiles_largestkey(files, i, &len);
  show("to", key, len);
}

static void lists(const char* dir) {
  start("lists");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_options_set_WAL_ttl_seconds(options, 1000);
  rocksdb_t* db = rocksdb_open(options, path(dir, "listed"), &err);
  must(err);
  wal_files(db);
  put(db, "a", "one");
  put(db, "b", "two");
  wal_files(db);
  flush(db);
  put(db, "c", "three");
  rocksdb_delete(db, wo, "a", 1, &err);
  must(err);
  wal_files(db);
  flush(db);
  const rocksdb_livefiles_t* live = rocksdb_livefiles(db);
  printf("tables: %d\n", rocksdb_livefiles_count(live));
  for (int i = 0; i < rocksdb_livefiles_count(live); i++) table(live, i, path(dir, "listed"));
  rocksdb_livefiles_destroy(live);
  rocksdb_close(db);
  rocksdb_options_destroy(options);

  rocksdb_livefiles_t* described = rocksdb_livefiles_create();
  printf("described: %d\n", rocksdb_livefiles_count(described));
  rocksdb_livefiles_add(described, rocksdb_livefile_create());
  rocksdb_livefile_t* file = rocksdb_livefile_create();
  rocksdb_livefile_set_column_family_name(file, "family");
  rocksdb_livefile_set_name(file, "/name");
  rocksdb_livefile_set_directory(file, "directory");
  rocksdb_livefile_set_level(file, 3);
  rocksdb_livefile_set_size(file, 4000);
  rocksdb_livefile_set_smallest_key(file, "small\0est", 9);
  rocksdb_livefile_set_largest_key(file, "w", 1);
  rocksdb_livefile_set_smallest_seqno(file, 7);
  rocksdb_livefile_set_largest_seqno(file, 9);
  rocksdb_livefile_set_num_entries(file, 11);
  rocksdb_livefile_set_num_deletions(file, 5);
  rocksdb_livefiles_add(described, file);
  printf("described: %d\n", rocksdb_livefiles_count(described));
  for (int i = 0; i < 2; i++) table(described, i, "directory");
  rocksdb_livefiles_destroy(described);
  rocksdb_livefile_destroy(rocksdb_livefile_create());
}

/* ---- compactions of tables that the program names ---- */

static void metadata(const char* what, rocksdb_column_family_metadata_t* meta) {
  printf("%s: %d tables, bytes %d, levels", what, (int)rocksdb_column_family_metadata_get_file_count(meta),
         rocksdb_column_family_metadata_get_size(meta) > 0);
  for (size_t i = 0; i < rocksdb_column_family_metadata_get_level_count(meta); i++) {
    rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(meta, i);
    size_t count = rocksdb_level_metadata_get_file_count(level);
    if (count > 0) printf(" %d:%d", rocksdb_level_metadata_get_level(level), (int)count);
    rocksdb_level_metadata_destroy(level);
  }
  printf("\n");
  rocksdb_column_family_metadata_destroy(meta);
}

static void within(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* from, const char* to, int level) {
  rocksdb_column_family_metadata_options_t* options = rocksdb_column_family_metadata_options_create();
  size_t len = 77;
  if (rocksdb_column_family_metadata_options_get_start_key(options, &len) != NULL || len != 0) printf("a start key\n");
  rocksdb_column_family_metadata_options_set_start_key(options, from, from == NULL ? 0 : strlen(from));
  rocksdb_column_family_metadata_options_set_end_key(options, to, to == NULL ? 0 : strlen(to));
  rocksdb_column_family_metadata_options_set_level(options, level);
  const char* start = rocksdb_column_family_metadata_options_get_start_key(options, &len);
  show("from", start, len);
  char what[64];
  snprintf(what, sizeof what, "within %s to %s, level %d", from == NULL ? "-" : from, to == NULL ? "-" : to, level);
  metadata(what, rocksdb_get_column_family_metadata_cf_with_options(db, cf, options));
  rocksdb_column_family_metadata_options_destroy(options);
}

static void job(const rocksdb_compactionjobinfo_t* info, const char* dir) {
  char* err = NULL;
  size_t len;
  const char* name = rocksdb_compactionjobinfo_cf_name(info, &len);
  show("family", name, len);
  rocksdb_compactionjobinfo_status(info, &err);
  said("status", &err);
  printf("job %d, from level %d to %d, because of %d\n", rocksdb_compactionjobinfo_job_id(info) > 0,
         rocksdb_compactionjobinfo_base_input_level(info), rocksdb_compactionjobinfo_output_level(info),
         (int)rocksdb_compactionjobinfo_compaction_reason(info));
  size_t inputs = rocksdb_compactionjobinfo_input_files_count(info), outputs = rocksdb_compactionjobinfo_output_files_count(info);
  printf("inputs %d %d, outputs %d %d, blobs %d, garbage %d\n", (int)inputs,
         (int)rocksdb_compactionjobinfo_input_file_infos_count(info), (int)outputs,
         (int)rocksdb_compactionjobinfo_output_file_infos_count(info),
         (int)rocksdb_compactionjobinfo_blob_file_addition_infos_count(info),
         (int)rocksdb_compactionjobinfo_blob_file_garbage_infos_count(info));
  for (size_t i = 0; i < inputs + outputs; i++) {
    int in = i < inputs;
    const char* file = in ? rocksdb_compactionjobinfo_input_file_at(info, i, &len)
                          : rocksdb_compactionjobinfo_output_file_at(info, i - inputs, &len);
    const rocksdb_compaction_file_info_t* of = in ? rocksdb_compactionjobinfo_input_file_info_at(info, i)
                                                  : rocksdb_compactionjobinfo_output_file_info_at(info, i - inputs);
    char expected[4200];
    int length = snprintf(expected, sizeof expected, "%s/%06d.sst", dir, (int)rocksdb_compaction_file_info_file_number(of));
    if (!in) printf("  to level %d\n", rocksdb_compaction_file_info_level(of));
    printf("  %s named by its number %d\n", in ? "input" : "output",
           length == (int)len && memcmp(expected, file, len) == 0);
  }
  const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
  printf("stats: inputs %d, outputs %d, bytes %d %d\n", (int)rocksdb_compaction_job_stats_num_input_files(stats),
         (int)rocksdb_compaction_job_stats_num_output_files(stats), rocksdb_compactionjobinfo_total_input_bytes(info) > 0,
         rocksdb_compactionjobinfo_total_output_bytes(info) > 0);
  printf("records %d %d, at the output level %d, corrupt %d\n", (int)rocksdb_compactionjobinfo_input_records(info),
         (int)rocksdb_compactionjobinfo_output_records(info),
         (int)rocksdb_compactionjobinfo_num_input_files_at_output_level(info),
         (int)rocksdb_compactionjobinfo_num_corrupt_keys(info));
}

/* The name of the last table of a level; of level 0 the oldest, with which RocksDB takes no other. */
static char* last_of(rocksdb_t* db, int level) {
  char* name = NULL;
  const rocksdb_livefiles_t* live = rocksdb_livefiles(db);
  for (int i = rocksdb_livefiles_count(live) - 1; i >= 0 && name == NULL; i--) {
    if (rocksdb_livefiles_level(live, i) == level) name = strdup(rocksdb_livefiles_name(live, i));
  }
  rocksdb_livefiles_destroy(live);
  return name;
}

static void compact(rocksdb_t* db, const rocksdb_compaction_options_t* options, const char* name, int level, const char* dir) {
  char *err = NULL, **outputs = NULL;
  size_t count = 77;
  const char* names[1] = {name};
  rocksdb_compactionjobinfo_t* info = rocksdb_compactionjobinfo_create();
  rocksdb_compact_files(db, options, names, name == NULL ? 0 : 1, level, -1, &outputs, &count, info, &err);
  int done = err == NULL;
  printf("to level %d, ", level);
  said("compacted", &err);
  if (done) {
    printf("outputs: %d\n", (int)count);
    rocksdb_compact_files_output_file_names_destroy(outputs, count);
    job(info, dir);
  }
  rocksdb_compactionjobinfo_destroy(info);
}

static void compactions(const char* dir) {
  start("compactions");
  char *err = NULL, at[4200];
  snprintf(at, sizeof at, "%s", path(dir, "compacted"));
  rocksdb_options_t* options = creating();
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_t* db = rocksdb_open(options, at, &err);
  must(err);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  const char* keys[4] = {"a", "c", "m", "x"};
  for (int i = 0; i < 4; i++) {
    put(db, keys[i], "one");
    put(db, i == 0 ? "b" : keys[i], "two");
    flush(db);
  }
  metadata("all", rocksdb_get_column_family_metadata_cf_with_options(db, cf, NULL));
  within(db, cf, NULL, NULL, -1);
  within(db, cf, "b", "c", -1);
  within(db, cf, "d", NULL, -1);
  within(db, cf, NULL, "a", 0);
  within(db, cf, "d", "e", -1);
  within(db, cf, NULL, NULL, 3);

  rocksdb_compaction_options_t* how = rocksdb_compaction_options_create();
  char* name = last_of(db, 0);
  compact(db, NULL, name, 2, at);
  free(name);
  within(db, cf, NULL, NULL, 2);
  name = last_of(db, 0);
  rocksdb_compaction_options_set_max_subcompactions(how, 1);
  compact(db, how, name, 2, at);
  compact(db, how, name, 2, at);
  free(name);
  compact(db, how, "000000.sst", 2, at);
  compact(db, how, NULL, 2, at);
  name = last_of(db, 2);
  compact(db, how, name, 1, at);
  compact(db, how, name, -1, at);
  compact(db, how, name, 99, at);
  unsigned char* canceled = rocksdb_compaction_options_canceled_create();
  rocksdb_compaction_options_set_canceled(how, canceled);
  rocksdb_compaction_options_canceled_set(canceled, 1);
  compact(db, how, name, 3, at);
  rocksdb_compaction_options_canceled_set(canceled, 0);
  compact(db, how, name, 3, at);
  rocksdb_compaction_options_set_canceled(how, NULL);
  rocksdb_compaction_options_canceled_destroy(canceled);
  free(name);
  metadata("all", rocksdb_get_column_family_metadata_cf_with_options(db, cf, NULL));
  rocksdb_compaction_options_destroy(how);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* ---- exports, transactions, and what else is asked ---- */

static void entries(rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, ro, cf);
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    printf("  ");
    print_entry(iter, " = ");
    printf("\n");
  }
  rocksdb_iter_destroy(iter);
}

static void exports(const char* dir) {
  start("exports");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, path(dir, "exported"), &err);
  must(err);
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "source", &err);
  must(err);
  rocksdb_put_cf(db, wo, cf, "k", 1, "v", 1, &err);
  rocksdb_put_cf(db, wo, cf, "l", 1, "w", 1, &err);
  rocksdb_delete_cf(db, wo, cf, "k", 1, &err);
  must(err);
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
  must(err);
  rocksdb_export_import_files_metadata_t* made = rocksdb_checkpoint_export_column_family(checkpoint, cf, path(dir, "out"), &err);
  must(err);
  if (rocksdb_checkpoint_export_column_family(checkpoint, cf, path(dir, "out"), &err) != NULL) printf("exported twice\n");
  said("a directory that exists", &err);
  rocksdb_checkpoint_object_destroy(checkpoint);
  char* name = rocksdb_export_import_files_metadata_get_db_comparator_name(made);
  printf("comparator %s\n", name);
  rocksdb_livefiles_t* files = rocksdb_export_import_files_metadata_get_files(made);
  printf("tables: %d\n", rocksdb_livefiles_count(files));

  /* The same, described by the program. */
  rocksdb_export_import_files_metadata_t* described = rocksdb_export_import_files_metadata_create();
  rocksdb_export_import_files_metadata_set_db_comparator_name(described, name);
  rocksdb_livefiles_t* list = rocksdb_livefiles_create();
  for (int i = 0; i < rocksdb_livefiles_count(files); i++) {
    size_t len;
    rocksdb_livefile_t* file = rocksdb_livefile_create();
    rocksdb_livefile_set_column_family_name(file, rocksdb_livefiles_column_family_name(files, i));
    rocksdb_livefile_set_name(file, rocksdb_livefiles_name(files, i));
    rocksdb_livefile_set_directory(file, rocksdb_livefiles_directory(files, i));
    rocksdb_livefile_set_level(file, rocksdb_livefiles_level(files, i));
    rocksdb_livefile_set_size(file, rocksdb_livefiles_size(files, i));
    const char* key = rocksdb_livefiles_smallestkey(files, i, &len);
    rocksdb_livefile_set_smallest_key(file, key, len);
    key = rocksdb_livefiles_largestkey(files, i, &len);
    rocksdb_livefile_set_largest_key(file, key, len);
    rocksdb_livefile_set_smallest_seqno(file, rocksdb_livefiles_smallest_seqno(files, i));
    rocksdb_livefile_set_largest_seqno(file, rocksdb_livefiles_largest_seqno(files, i));
    rocksdb_livefiles_add(list, file);
    printf("level %d, in its directory %d\n", rocksdb_livefiles_level(files, i),
           strcmp(rocksdb_livefiles_directory(files, i), path(dir, "out")) == 0);
  }
  rocksdb_export_import_files_metadata_set_files(described, list);
  rocksdb_livefiles_destroy(files);
  rocksdb_free(name);

  rocksdb_import_column_family_options_t* how = rocksdb_import_column_family_options_create();
  rocksdb_column_family_handle_t* copy = rocksdb_create_column_family_with_import(db, options, "copy", how, described, &err);
  said("import", &err);
  if (copy != NULL) entries(db, copy);
  if (rocksdb_create_column_family_with_import(db, options, "copy", how, described, &err) != NULL) printf("imported twice\n");
  said("a family that exists", &err);
  rocksdb_export_import_files_metadata_set_db_comparator_name(described, "other");
  if (rocksdb_create_column_family_with_import(db, options, "other", how, described, &err) != NULL) printf("another order\n");
  said("another comparator", &err);
  rocksdb_export_import_files_metadata_t* empty = rocksdb_export_import_files_metadata_create();
  if (rocksdb_create_column_family_with_import(db, options, "empty", how, empty, &err) != NULL) printf("no tables\n");
  printf("an import of nothing: %s\n", err == NULL ? "no error" : "an error");
  rocksdb_free(err);
  err = NULL;
  rocksdb_export_import_files_metadata_destroy(empty);
  rocksdb_import_column_family_options_set_move_files(how, 1);
  rocksdb_column_family_handle_t* moved = rocksdb_create_column_family_with_import(db, options, "moved", how, made, &err);
  said("move", &err);
  if (moved != NULL) entries(db, moved);
  rocksdb_export_import_files_metadata_destroy(described);
  rocksdb_export_import_files_metadata_destroy(made);
  rocksdb_import_column_family_options_destroy(how);
  if (copy != NULL) rocksdb_column_family_handle_destroy(copy);
  if (moved != NULL) rocksdb_column_family_handle_destroy(moved);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);

  rocksdb_options_t *loaded, **loaded_families;
  char** loaded_names;
  size_t loaded_count = 0, len = 77;
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
  rocksdb_load_latest_options(path(dir, "exported"), env, 0, cache, &loaded, &loaded_count, &loaded_names, &loaded_families, &err);
  must(err);
  printf("families with options: %d\n", (int)loaded_count);
  rocksdb_load_latest_options_destroy(loaded, loaded_names, loaded_families, loaded_count);
  rocksdb_cache_destroy(cache);
  rocksdb_env_destroy(env);
  const char* none = rocksdb_pinnableslice_value(NULL, &len);
  printf("no object: %d bytes, null %d\n", (int)len, none == NULL);
  rocksdb_options_set_bottommost_compression(options, -1);
  printf("bottommost compression %d\n", rocksdb_options_get_bottommost_compression(options));

  db = rocksdb_open_with_ttl(options, path(dir, "ttl"), 1000, &err);
  must(err);
  cf = rocksdb_create_column_family_with_ttl(db, options, "short", 100, &err);
  must(err);
  rocksdb_put_cf(db, wo, cf, "k", 1, "v", 1, &err);
  must(err);
  entries(db, cf);
  rocksdb_column_family_handle_destroy(cf);
  /* A family without a time of its own has values with times too, and none of them is ever over. */
  cf = rocksdb_create_column_family(db, options, "forever", &err);
  must(err);
  rocksdb_put_cf(db, wo, cf, "k", 1, "forever", 7, &err);
  must(err);
  entries(db, cf);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
  const char* families[3] = {"default", "short", "forever"};
  const rocksdb_options_t* each[3] = {options, options, options};
  rocksdb_column_family_handle_t* again[3];
  const int ttls[3] = {1000, 100, 1000};
  db = rocksdb_open_column_families_with_ttl(options, path(dir, "ttl"), 3, families, each, again, ttls, &err);
  must(err);
  for (int i = 0; i < 3; i++) {
    entries(db, again[i]);
    rocksdb_column_family_handle_destroy(again[i]);
  }
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void batches(const char* dir) {
  start("batches");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_transactiondb_options_t* own = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* txn_db = rocksdb_transactiondb_open(options, own, path(dir, "transactions"), &err);
  must(err);
  rocksdb_t* db = rocksdb_transactiondb_get_base_db(txn_db);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);

  const char *from[2] = {"a", "b"}, *to[2] = {"a", "d"};
  size_t ones[2] = {1, 1};
  for (int i = 0; i < 4; i++) {
    char key[3] = {'a', (char)('a' + i), 0};
    rocksdb_transactiondb_put(txn_db, wo, key, 2, "v", 1, &err);
    must(err);
  }
  for (int family = 0; family < 2; family++) {
    rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
    if (family == 0) rocksdb_writebatch_delete_rangev(batch, 2, from, ones, to, ones);
    if (family == 1) rocksdb_writebatch_delete_rangev_cf(batch, cf, 2, from, ones, to, ones);
    printf("operations %d\n", rocksdb_writebatch_count(batch));
    rocksdb_write(db, wo, batch, &err);
    said("a range of pieces", &err);
    rocksdb_writebatch_destroy(batch);
  }
  entries(db, cf);

  rocksdb_transaction_options_t* plain = rocksdb_transaction_options_create();
  rocksdb_transaction_t* txn = rocksdb_transaction_begin(txn_db, wo, plain, NULL);
  rocksdb_transaction_t* other = rocksdb_transaction_begin(txn_db, wo, plain, NULL);
  uint64_t before = rocksdb_get_latest_sequence_number(db);
  rocksdb_transaction_put(txn, "k", 1, "v", 1, &err);
  must(err);
  rocksdb_transaction_put_log_data(txn, "note", 4);
  const char* keys[3] = {"aa", "k", "none"};
  size_t lens[3] = {2, 1, 4};
  char *values[3], *errs[3];
  size_t value_lens[3];
  rocksdb_transaction_multi_get_for_update(txn, ro, 3, keys, lens, values, value_lens, errs);
  for (int i = 0; i < 3; i++) {
    show(keys[i], values[i], value_lens[i]);
    said("read", &errs[i]);
    rocksdb_free(values[i]);
  }
  const rocksdb_column_family_handle_t* of[3] = {cf, cf, cf};
  rocksdb_transaction_multi_get_for_update_cf(other, ro, of, 3, keys, lens, values, value_lens, errs);
  for (int i = 0; i < 3; i++) {
    show(keys[i], values[i], value_lens[i]);
    said("locked", &errs[i]);
    rocksdb_free(values[i]);
  }
  rocksdb_transaction_commit(txn, &err);
  must(err);
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_destroy(other);
  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(db, before + 1, NULL, &err);
  must(err);
  for (; rocksdb_wal_iter_valid(updates); rocksdb_wal_iter_next(updates)) {
    uint64_t seq;
    rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(updates, &seq);
    rocksdb_writebatch_iterate_ld(batch, NULL, walk_put, walk_deleted, walk_log);
    rocksdb_writebatch_destroy(batch);
  }
  rocksdb_wal_iter_destroy(updates);
  rocksdb_transaction_options_destroy(plain);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_transactiondb_close_base_db(db);
  rocksdb_transactiondb_close(txn_db);
  rocksdb_transactiondb_options_destroy(own);

  rocksdb_optimistictransactiondb_options_t* shared = rocksdb_optimistictransactiondb_options_create();
  rocksdb_optimistictransactiondb_lock_buckets_t* buckets = rocksdb_optimistictransactiondb_lock_buckets_create(128, 1);
  printf("buckets: %d\n", rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(buckets) > 0);
  rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(shared, buckets);
  const char* names[1] = {"default"};
  const rocksdb_options_t* each[1] = {options};
  rocksdb_column_family_handle_t* handles[1];
  rocksdb_optimistictransactiondb_t* otxn_db = rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
      options, shared, path(dir, "optimistic"), 1, names, each, handles, &err);
  said("optimistic", &err);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_optimistictransactiondb_close(otxn_db);
  rocksdb_optimistictransactiondb_lock_buckets_destroy(buckets);
  rocksdb_optimistictransactiondb_options_destroy(shared);
  rocksdb_options_destroy(options);
}

static void objects(const char* dir) {
  start("objects");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, path(dir, "backed"), &err);
  must(err);
  rocksdb_backup_engine_options_t* where = rocksdb_backup_engine_options_create(path(dir, "nowhere"));
  rocksdb_backup_engine_options_set_backup_dir(where, path(dir, "backups"));
  rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create(1 << 30, 100000, 10);
  rocksdb_backup_engine_options_set_backup_rate_limiter(where, limiter);
  rocksdb_backup_engine_options_set_backup_rate_limiter(where, NULL);
  rocksdb_backup_engine_options_set_restore_rate_limiter(where, limiter);
  rocksdb_envoptions_t* files = rocksdb_envoptions_create();
  rocksdb_envoptions_set_rate_limiter(files, limiter);
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create_with_comparator(files, options, NULL);
  rocksdb_sstfilewriter_open(writer, path(dir, "one.sst"), &err);
  rocksdb_sstfilewriter_put(writer, "a", 1, "b", 1, &err);
  rocksdb_sstfilewriter_finish(writer, &err);
  said("a table", &err);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(files);
  rocksdb_env_t* os = rocksdb_create_default_env();
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open_opts(where, os, &err);
  must(err);
  rocksdb_backup_engine_create_new_backup(engine, db, &err);
  said("backup", &err);
  struct stat there;
  printf("there: %d %d\n", stat(path(dir, "backups"), &there) == 0, stat(path(dir, "nowhere"), &there) == 0);
  rocksdb_backup_engine_stop_backup(engine);
  put(db, "a", "one");
  rocksdb_backup_engine_create_new_backup(engine, db, &err);
  said("a stopped backup", &err);
  rocksdb_backup_engine_close(engine);
  rocksdb_env_destroy(os);
  rocksdb_ratelimiter_destroy(limiter);
  rocksdb_backup_engine_options_destroy(where);
  rocksdb_close(db);
  rocksdb_options_destroy(options);

  rocksdb_hyper_clock_cache_options_t* clock = rocksdb_hyper_clock_cache_options_create(1 << 20, 4096);
  rocksdb_hyper_clock_cache_options_set_capacity(clock, 2 << 20);
  rocksdb_hyper_clock_cache_options_set_estimated_entry_charge(clock, 8192);
  rocksdb_hyper_clock_cache_options_set_num_shard_bits(clock, 2);
  rocksdb_cache_t* cache = rocksdb_cache_create_hyper_clock_opts(clock);
  printf("capacity %d\n", (int)rocksdb_cache_get_capacity(cache));
  rocksdb_cache_disown_data(cache);
  rocksdb_cache_destroy(cache);
  rocksdb_hyper_clock_cache_options_destroy(clock);

  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_env_set_background_threads(env, 20);
  rocksdb_env_set_high_priority_background_threads(env, 30);
  rocksdb_env_set_bottom_priority_background_threads(env, 0);
  rocksdb_env_t* again = rocksdb_create_default_env();
  printf("threads %d %d %d %d\n", rocksdb_env_get_background_threads(again),
         rocksdb_env_get_low_priority_background_threads(again), rocksdb_env_get_high_priority_background_threads(again),
         rocksdb_env_get_bottom_priority_background_threads(again));
  rocksdb_env_set_low_priority_background_threads(env, 5);
  printf("threads %d\n", rocksdb_env_get_background_threads(env));
  rocksdb_env_destroy(again);
  rocksdb_env_destroy(env);

  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  printf("activity %d", rocksdb_writeoptions_get_io_activity(write));
  rocksdb_writeoptions_set_io_activity(write, 2);
  printf(" %d\n", rocksdb_writeoptions_get_io_activity(write));
  rocksdb_writeoptions_destroy(write);

  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  size_t len = 77;
  const char* id = rocksdb_readoptions_get_request_id(read, &len);
  show("id", id, len);
  rocksdb_readoptions_set_request_id(read, "request", 7);
  id = rocksdb_readoptions_get_request_id(read, &len);
  show("id", id, len);
  rocksdb_readoptions_set_request_id(read, NULL, 0);
  id = rocksdb_readoptions_get_request_id(read, &len);
  show("id", id, len);
  rocksdb_readoptions_set_request_id(read, "request", 7);
  rocksdb_readoptions_clear_request_id(read);
  id = rocksdb_readoptions_get_request_id(read, &len);
  show("id", id, len);
  rocksdb_readoptions_destroy(read);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  begin();
  fo = rocksdb_flushoptions_create();
  reads(argv[1]);
  loggers(argv[1]);
  lists(argv[1]);
  compactions(argv[1]);
  exports(argv[1]);
  batches(argv[1]);
  objects(argv[1]);
  rocksdb_flushoptions_destroy(fo);
  return end();
}
