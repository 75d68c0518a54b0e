/* Reads into memory of the caller, loggers, and what a database tells about its files and jobs: prints what a library answers.
 * Both libraries print the same lines. An error is printed up to its first colon. */

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* RocksDB has these since 11.9. */
#pragma weak rocksdb_batched_multi_get_pinned_cf
#pragma weak rocksdb_pinnable_multi_get_count
#pragma weak rocksdb_pinnable_multi_get_result
#pragma weak rocksdb_pinnable_multi_get_destroy

static rocksdb_readoptions_t* ro;
static rocksdb_writeoptions_t* wo;
static rocksdb_flushoptions_t* fo;

static void start(const char* name) {
  printf("== %s\n", name);
}

/* Prints and frees an error. */
static void said(const char* what, char** err) {
  if (*err == NULL) {
    printf("%s: ok\n", what);
    return;
  }
  char* colon = strchr(*err, ':');
  printf("%s: %.*s\n", what, colon == NULL ? (int)strlen(*err) : (int)(colon - *err), *err);
  free(*err);
  *err = NULL;
}

static void must(char* err) {
  if (err != NULL) {
    printf("%s\n", err);
    exit(1);
  }
}

static void show(const char* what, const char* bytes, size_t len) {
  if (bytes == NULL) {
    printf("%s: none\n", what);
  } else {
    printf("%s: '%.*s'\n", what, (int)len, bytes);
  }
}

static const char* path(const char* dir, const char* name) {
  static char joined[4][4096];
  static int next = 0;
  next = (next + 1) % 4;
  snprintf(joined[next], sizeof joined[next], "%s/%s", dir, name);
  return joined[next];
}

static rocksdb_options_t* creating(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  return options;
}

static void put(rocksdb_t* db, const char* key, const char* value) {
  char* err = NULL;
  rocksdb_put(db, wo, key, strlen(key), value, strlen(value), &err);
  must(err);
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

static void wal_files(rocksdb_t* db) {
  char* err = NULL;
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

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  ro = rocksdb_readoptions_create();
  wo = rocksdb_writeoptions_create();
  fo = rocksdb_flushoptions_create();
  reads(argv[1]);
  loggers(argv[1]);
  lists(argv[1]);
  rocksdb_flushoptions_destroy(fo);
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  printf("end\n");
  return 0;
}
