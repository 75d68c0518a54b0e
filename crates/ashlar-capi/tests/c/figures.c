/* Figures: what statistics, caches, limiters and managers of memory count, and what tables, flushes and compactions say about
 * themselves. Functions of listeners run on threads of the library, so they keep what they hear, and the program prints it. */

#define _POSIX_C_SOURCE 200809L
#include "hears.h"

typedef unsigned long long number;

static int flushes, compactions;

static rocksdb_options_t* new_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  return options;
}

/* Writes keys with values of 100 bytes. */
static void fill(rocksdb_t* db, int first, int last) {
  char key[16], value[101];
  for (int i = first; i < last; i++) {
    memset(value, 'a' + i % 26, 100);
    value[100] = 0;
    snprintf(key, sizeof key, "key%05d", i);
    put(db, key, value);
  }
}

/* Reads keys, and returns how many there are. */
static int found(rocksdb_t* db, int first, int last) {
  char *err = NULL, key[16];
  int present = 0;
  for (int i = first; i < last; i++) {
    size_t len;
    snprintf(key, sizeof key, "key%05d", i);
    char* value = rocksdb_get(db, ro, key, 8, &len, &err);
    must(err);
    present += value != NULL;
    rocksdb_free(value);
  }
  return present;
}

/* ---- statistics ---- */

/* Prints the figures of a histogram of sizes. */
static void histogram(const char* what, rocksdb_options_t* options, uint32_t type) {
  rocksdb_statistics_histogram_data_t* data = rocksdb_statistics_histogram_data_create();
  rocksdb_options_statistics_get_histogram_data(options, type, data);
  printf("%s: %llu of %llu, from %.2f to %.2f, average %.2f, deviation %.2f, median %.2f, 95 %% %.2f, 99 %% %.2f\n", what,
         (number)rocksdb_statistics_histogram_data_get_count(data), (number)rocksdb_statistics_histogram_data_get_sum(data),
         rocksdb_statistics_histogram_data_get_min(data), rocksdb_statistics_histogram_data_get_max(data),
         rocksdb_statistics_histogram_data_get_average(data), rocksdb_statistics_histogram_data_get_std_dev(data),
         rocksdb_statistics_histogram_data_get_median(data), rocksdb_statistics_histogram_data_get_p95(data),
         rocksdb_statistics_histogram_data_get_p99(data));
  rocksdb_statistics_histogram_data_destroy(data);
}

static void statistics(const char* dir) {
  start("statistics");
  /* The numbers of tickers and histograms in RocksDB's header. */
  enum { keys_written = 58, keys_read = 59, bytes_written = 61, bytes_read = 62, seeks = 63, nexts = 64, prevs = 65 };
  enum { bytes_per_read = 31, bytes_per_write = 32 };
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  printf("not enabled: %llu\n", (number)rocksdb_options_statistics_get_ticker_count(options, keys_written));
  rocksdb_options_enable_statistics(options);
  rocksdb_options_set_statistics_level(options, rocksdb_statistics_level_all);
  rocksdb_t* db = open_at(options, path(dir, "counted"));
  fill(db, 0, 300);
  put(db, "short", "v");
  flush(db);
  printf("found %d\n", found(db, 100, 400));
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
  rocksdb_iter_seek(iter, "key00100", 8);
  for (int i = 0; i < 20; i++) rocksdb_iter_next(iter);
  for (int i = 0; i < 7; i++) rocksdb_iter_prev(iter);
  rocksdb_iter_destroy(iter);
  const uint32_t types[7] = {keys_written, keys_read, bytes_written, bytes_read, seeks, nexts, prevs};
  for (int i = 0; i < 7; i++) {
    printf("ticker %u: %llu\n", types[i], (number)rocksdb_options_statistics_get_ticker_count(options, types[i]));
  }
  histogram("bytes per read", options, bytes_per_read);
  histogram("bytes per write", options, bytes_per_write);
  rocksdb_close(db);

  /* What a thread counts for its own calls. */
  db = open_at(options, path(dir, "counted"));
  rocksdb_set_perf_level(rocksdb_enable_count);
  rocksdb_perfcontext_t* perf = rocksdb_perfcontext_create();
  rocksdb_perfcontext_reset(perf);
  printf("found %d\n", found(db, 0, 10));
  printf("bytes %llu\n", (number)rocksdb_perfcontext_metric(perf, rocksdb_get_read_bytes));
  char* report = rocksdb_perfcontext_report(perf, 1);
  printf("the report has them %d, and others %d\n", strstr(report, "get_read_bytes = 1000") != NULL,
         strstr(report, "multiget_read_bytes") != NULL);
  rocksdb_free(report);
  report = rocksdb_perfcontext_report(perf, 0);
  printf("the whole report has others %d\n", strstr(report, "multiget_read_bytes = 0") != NULL);
  rocksdb_free(report);
  rocksdb_set_perf_level(rocksdb_disable);
  rocksdb_perfcontext_reset(perf);
  found(db, 0, 10);
  printf("not counted: %llu\n", (number)rocksdb_perfcontext_metric(perf, rocksdb_get_read_bytes));
  rocksdb_perfcontext_destroy(perf);
  must(err);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* ---- memory ---- */

static void usage(const char* what, rocksdb_memory_consumers_t* consumers) {
  char* err = NULL;
  rocksdb_memory_usage_t* used = rocksdb_approximate_memory_usage_create(consumers, &err);
  must(err);
  printf("%s: memtables %d, unflushed %d, readers %d, caches %d\n", what,
         rocksdb_approximate_memory_usage_get_mem_table_total(used) > 50000,
         rocksdb_approximate_memory_usage_get_mem_table_unflushed(used) > 50000,
         rocksdb_approximate_memory_usage_get_mem_table_readers_total(used) > 0,
         rocksdb_approximate_memory_usage_get_cache_total(used) > 50000);
  rocksdb_approximate_memory_usage_destroy(used);
}

static rocksdb_cache_t* new_cache(int kind) {
  if (kind == 0) {
    rocksdb_lru_cache_options_t* options = rocksdb_lru_cache_options_create();
    rocksdb_lru_cache_options_set_capacity(options, 4 << 20);
    rocksdb_lru_cache_options_set_num_shard_bits(options, 2);
    rocksdb_cache_t* cache = rocksdb_cache_create_lru_opts(options);
    rocksdb_lru_cache_options_destroy(options);
    return cache;
  }
  return rocksdb_cache_create_hyper_clock(4 << 20, 4096);
}

static void caches(const char* dir) {
  for (int kind = 0; kind < 2; kind++) {
    start(kind == 0 ? "a cache of the kind LRU" : "a cache of the kind clock");
    rocksdb_cache_t* cache = new_cache(kind);
    rocksdb_options_t* options = new_options();
    rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_block_based_options_set_cache_index_and_filter_blocks(table, 1);
    rocksdb_block_based_options_set_top_level_index_pinning_tier(table, rocksdb_block_based_k_all_pinning_tier);
    rocksdb_block_based_options_set_partition_pinning_tier(table, rocksdb_block_based_k_all_pinning_tier);
    rocksdb_block_based_options_set_unpartitioned_pinning_tier(table, rocksdb_block_based_k_all_pinning_tier);
    rocksdb_options_set_block_based_table_factory(options, table);
    rocksdb_cache_t* rows = rocksdb_cache_create_lru_with_strict_capacity_limit(1 << 20);
    rocksdb_options_set_row_cache(options, rows);
    rocksdb_options_set_blob_cache(options, rows);
    rocksdb_t* db = open_at(options, path(dir, kind == 0 ? "lru" : "clock"));
    rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
    rocksdb_memory_consumers_add_db(consumers, db);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    printf("capacity %zu, pinned %d\n", rocksdb_cache_get_capacity(cache), rocksdb_cache_get_pinned_usage(cache) > 10000);
    fill(db, 0, 2000);
    if (kind == 0) usage("before the flush", consumers);
    flush(db);
    printf("found %d\n", found(db, 0, 2000));
    usage("after the reads", consumers);
    printf("used %d\n", rocksdb_cache_get_usage(cache) > 100000);
    rocksdb_cache_set_capacity(cache, 2 << 20);
    printf("capacity %zu\n", rocksdb_cache_get_capacity(cache));
    rocksdb_memory_consumers_destroy(consumers);
    rocksdb_close(db);
    rocksdb_cache_destroy(cache);
    rocksdb_cache_destroy(rows);
    rocksdb_block_based_options_destroy(table);
    rocksdb_options_destroy(options);
  }
}

/* Limits that a small database does not reach. */
static void limits(const char* dir) {
  start("limits");
  for (int run = 0; run < 3; run++) {
    rocksdb_options_t* options = new_options();
    rocksdb_ratelimiter_t* limiter = run == 0   ? rocksdb_ratelimiter_create_auto_tuned(100 << 20, 100000, 10)
                                     : run == 1 ? rocksdb_ratelimiter_create_with_mode(100 << 20, 100000, 10, 2, false)
                                                : rocksdb_ratelimiter_create_with_mode(100 << 20, 100000, 10, 0, true);
    rocksdb_options_set_ratelimiter(options, limiter);
    rocksdb_ratelimiter_destroy(limiter);
    rocksdb_cache_t* cache = rocksdb_cache_create_lru(8 << 20);
    rocksdb_write_buffer_manager_t* manager = run == 0   ? rocksdb_write_buffer_manager_create(4 << 20, false)
                                              : run == 1 ? rocksdb_write_buffer_manager_create(0, false)
                                                         : rocksdb_write_buffer_manager_create_with_cache(4 << 20, cache, false);
    printf("manager %d: enabled %d, of a cache %d, %zu bytes\n", run, rocksdb_write_buffer_manager_enabled(manager),
           rocksdb_write_buffer_manager_cost_to_cache(manager), rocksdb_write_buffer_manager_buffer_size(manager));
    rocksdb_options_set_write_buffer_manager(options, manager);
    char home[4096];
    snprintf(home, sizeof home, "%s/limited%d", dir, run);
    rocksdb_t* db = open_at(options, home);
    fill(db, 0, 3000);
    flush(db);
    rocksdb_compact_range(db, NULL, 0, NULL, 0);
    printf("found %d\n", found(db, 0, 3000));
    rocksdb_write_buffer_manager_set_buffer_size(manager, 6 << 20);
    printf("resized: enabled %d, %zu bytes\n", rocksdb_write_buffer_manager_enabled(manager),
           rocksdb_write_buffer_manager_buffer_size(manager));
    rocksdb_close(db);
    rocksdb_write_buffer_manager_destroy(manager);
    rocksdb_cache_destroy(cache);
    rocksdb_options_destroy(options);
  }
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_env_lower_thread_pool_io_priority(env);
  rocksdb_env_lower_thread_pool_cpu_priority(env);
  rocksdb_env_lower_high_priority_thread_pool_io_priority(env);
  rocksdb_env_lower_high_priority_thread_pool_cpu_priority(env);
  rocksdb_env_join_all_threads(env);
  rocksdb_env_destroy(env);
}

/* ---- tables ---- */

/* The numbers of a table. Each is printed, or whether it is above zero. */
static void table_numbers(const rocksdb_table_properties_t* props) {
  char line[2048];
#define EXACT(read) {#read, read(props), 0}
#define ABOVE(read) {#read, read(props), 1}
  const struct {
    const char* name;
    uint64_t value;
    int above;
  } numbers[] = {
      EXACT(rocksdb_table_properties_num_data_blocks),
      EXACT(rocksdb_table_properties_num_filter_entries),
      EXACT(rocksdb_table_properties_fixed_key_len),
      EXACT(rocksdb_table_properties_format_version),
      EXACT(rocksdb_table_properties_index_partitions),
      EXACT(rocksdb_table_properties_top_level_index_size),
      EXACT(rocksdb_table_properties_index_key_is_user_key),
      EXACT(rocksdb_table_properties_index_value_is_delta_encoded),
      EXACT(rocksdb_table_properties_data_block_restart_interval),
      EXACT(rocksdb_table_properties_index_block_restart_interval),
      EXACT(rocksdb_table_properties_key_largest_seqno),
      EXACT(rocksdb_table_properties_key_smallest_seqno),
      EXACT(rocksdb_table_properties_has_key_largest_seqno),
      EXACT(rocksdb_table_properties_has_key_smallest_seqno),
      EXACT(rocksdb_table_properties_num_data_blocks_compression_rejected),
      EXACT(rocksdb_table_properties_num_uniform_blocks),
      EXACT(rocksdb_table_properties_external_sst_file_global_seqno_offset),
      EXACT(rocksdb_table_properties_fast_compression_estimated_data_size),
      EXACT(rocksdb_table_properties_slow_compression_estimated_data_size),
      EXACT(rocksdb_table_properties_separate_key_value_in_data_block),
      EXACT(rocksdb_table_properties_udi_is_primary_index),
      EXACT(rocksdb_table_properties_user_defined_timestamps_persisted),
      ABOVE(rocksdb_table_properties_creation_time),
      ABOVE(rocksdb_table_properties_file_creation_time),
      ABOVE(rocksdb_table_properties_filter_size),
      ABOVE(rocksdb_table_properties_index_size),
      ABOVE(rocksdb_table_properties_newest_key_time),
      ABOVE(rocksdb_table_properties_oldest_key_time),
      ABOVE(rocksdb_table_properties_orig_file_number),
      ABOVE(rocksdb_table_properties_tail_start_offset),
  };
#undef EXACT
#undef ABOVE
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    snprintf(line, sizeof line, "  %s%s %llu\n", numbers[i].name, numbers[i].above ? " above zero" : "",
             numbers[i].above ? (number)(numbers[i].value > 0) : (number)numbers[i].value);
    hear(line);
  }
}

/* A text of a table: the text, or whether there is one. */
static void table_text(const rocksdb_table_properties_t* props, const char* what, int whole,
                       const char* (*read)(const rocksdb_table_properties_t*, size_t*)) {
  char line[2048];
  size_t len;
  const char* text = read(props, &len);
  if (whole) {
    snprintf(line, sizeof line, "  %s '%.*s'\n", what, (int)len, text);
  } else {
    snprintf(line, sizeof line, "  %s is there %d\n", what, len > 0);
  }
  hear(line);
}

static void table_texts(const rocksdb_table_properties_t* props) {
  char line[2048];
  size_t len;
  table_text(props, "compression", 1, rocksdb_table_properties_compression_name);
  table_text(props, "prefix extractor", 1, rocksdb_table_properties_prefix_extractor_name);
  table_text(props, "collectors", 1, rocksdb_table_properties_property_collectors_names);
  table_text(props, "times of numbers", 1, rocksdb_table_properties_seqno_to_time_mapping);
  table_text(props, "database", 0, rocksdb_table_properties_db_id);
  table_text(props, "session", 0, rocksdb_table_properties_db_session_id);
  size_t readable = rocksdb_table_properties_readable_properties_count(props);
  snprintf(line, sizeof line, "  readable %zu\n", readable);
  hear(line);
  for (size_t i = 0; i < readable; i++) {
    size_t value_len;
    const char* key = rocksdb_table_properties_readable_properties_key_at(props, i, &len);
    const char* value = rocksdb_table_properties_readable_properties_value_at(props, i, &value_len);
    snprintf(line, sizeof line, "  readable %.*s: %.*s\n", (int)len, key, (int)value_len, value);
    hear(line);
  }
  size_t collected = rocksdb_table_properties_user_collected_properties_count(props);
  for (size_t i = 0; i < collected; i++) {
    size_t value_len;
    const char* key = rocksdb_table_properties_user_collected_properties_key_at(props, i, &len);
    rocksdb_table_properties_user_collected_properties_value_at(props, i, &value_len);
    /* A setting that AshlarDB does not have. */
    if (memcmp(key, "rocksdb.block.based.table.decoupled", 35) == 0) continue;
    snprintf(line, sizeof line, "  collected %.*s: %zu bytes\n", (int)len, key, value_len);
    hear(line);
  }
}

/* ---- jobs ---- */

static int is_blob_file(const char* file, size_t len, uint64_t file_number) {
  char name[32];
  int name_len = snprintf(name, sizeof name, "/%06llu.blob", (number)file_number);
  return len > (size_t)name_len && memcmp(file + len - (size_t)name_len, name, (size_t)name_len) == 0;
}

static void blob_file(const rocksdb_blob_file_addition_info_t* info) {
  char line[256];
  size_t len;
  const char* file = rocksdb_blob_file_addition_info_blob_file_path(info, &len);
  snprintf(line, sizeof line, "  a blob file: named by its number %d, %llu blobs of %llu bytes\n",
           is_blob_file(file, len, rocksdb_blob_file_addition_info_blob_file_number(info)),
           (number)rocksdb_blob_file_addition_info_total_blob_count(info),
           (number)rocksdb_blob_file_addition_info_total_blob_bytes(info));
  hear(line);
}

static void garbage(const rocksdb_blob_file_garbage_info_t* info) {
  char line[256];
  size_t len;
  const char* file = rocksdb_blob_file_garbage_info_blob_file_path(info, &len);
  snprintf(line, sizeof line, "  garbage: named by its number %d, %llu blobs of %llu bytes\n",
           is_blob_file(file, len, rocksdb_blob_file_garbage_info_blob_file_number(info)),
           (number)rocksdb_blob_file_garbage_info_garbage_blob_count(info),
           (number)rocksdb_blob_file_garbage_info_garbage_blob_bytes(info));
  hear(line);
}

static void on_sealed(void* state, const rocksdb_memtableinfo_t* info) {
  (void)state;
  char line[256];
  size_t len = 77;
  rocksdb_memtableinfo_newest_udt(info, &len);
  snprintf(line, sizeof line, "a memtable: earliest before the first %d, timestamp %zu\n",
           rocksdb_memtableinfo_earliest_seqno(info) <= rocksdb_memtableinfo_first_seqno(info), len);
  hear(line);
}

static void on_flushed(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)state, (void)db;
  char line[256];
  snprintf(line, sizeof line, "a flush: oldest blob file %d, blob compression %u\n",
           rocksdb_flushjobinfo_oldest_blob_file_number(info) > 0, rocksdb_flushjobinfo_blob_compression_type(info));
  hear(line);
  for (size_t i = 0; i < rocksdb_flushjobinfo_blob_file_addition_infos_count(info); i++) {
    blob_file(rocksdb_flushjobinfo_blob_file_addition_info_at(info, i));
  }
  if (flushes == 0) {
    table_numbers(rocksdb_flushjobinfo_table_properties(info));
    table_texts(rocksdb_flushjobinfo_table_properties(info));
  }
  count(&flushes);
}

static void job_stats(const rocksdb_compaction_job_stats_t* stats) {
  char line[512];
#define EXACT(read) {#read, read(stats), 0}
#define ABOVE(read) {#read, read(stats), 1}
  const struct {
    const char* name;
    uint64_t value;
    int above;
  } numbers[] = {
      EXACT(rocksdb_compaction_job_stats_num_input_files_at_output_level),
      EXACT(rocksdb_compaction_job_stats_has_accurate_num_input_records),
      EXACT(rocksdb_compaction_job_stats_is_remote_compaction),
      EXACT(rocksdb_compaction_job_stats_num_corrupt_keys),
      EXACT(rocksdb_compaction_job_stats_num_expired_deletion_records),
      EXACT(rocksdb_compaction_job_stats_num_filtered_input_files),
      EXACT(rocksdb_compaction_job_stats_num_filtered_input_files_at_output_level),
      EXACT(rocksdb_compaction_job_stats_num_input_files_trivially_moved),
      EXACT(rocksdb_compaction_job_stats_num_output_files_blob),
      EXACT(rocksdb_compaction_job_stats_num_records_replaced),
      EXACT(rocksdb_compaction_job_stats_num_single_del_fallthru),
      EXACT(rocksdb_compaction_job_stats_num_single_del_mismatch),
      EXACT(rocksdb_compaction_job_stats_total_skipped_input_bytes),
      ABOVE(rocksdb_compaction_job_stats_total_input_bytes),
      ABOVE(rocksdb_compaction_job_stats_total_output_bytes),
      ABOVE(rocksdb_compaction_job_stats_elapsed_micros),
      ABOVE(rocksdb_compaction_job_stats_cpu_micros),
      ABOVE(rocksdb_compaction_job_stats_total_output_bytes_blob),
      EXACT(rocksdb_compaction_job_stats_file_fsync_nanos),
      EXACT(rocksdb_compaction_job_stats_file_prepare_write_nanos),
      EXACT(rocksdb_compaction_job_stats_file_range_sync_nanos),
      EXACT(rocksdb_compaction_job_stats_file_write_nanos),
  };
#undef EXACT
#undef ABOVE
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    snprintf(line, sizeof line, "  %s%s %llu\n", numbers[i].name, numbers[i].above ? " above zero" : "",
             numbers[i].above ? (number)(numbers[i].value > 0) : (number)numbers[i].value);
    hear(line);
  }
}

static void on_part(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  (void)state;
  char line[512];
  snprintf(line, sizeof line, "a part: family %u, job %d, thread %d, reason %u, compression %u, of blobs %u\n",
           rocksdb_subcompactionjobinfo_cf_id(info), rocksdb_subcompactionjobinfo_job_id(info) > 0,
           rocksdb_subcompactionjobinfo_thread_id(info) > 0, rocksdb_subcompactionjobinfo_compaction_reason(info),
           rocksdb_subcompactionjobinfo_compression(info), rocksdb_subcompactionjobinfo_blob_compression_type(info));
  hear(line);
  const rocksdb_compaction_job_stats_t* stats = rocksdb_subcompactionjobinfo_stats(info);
  snprintf(line, sizeof line, "  replaced %llu\n", (number)rocksdb_compaction_job_stats_num_records_replaced(stats));
  hear(line);
}

static void on_compacted(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state, (void)db;
  char line[512];
  snprintf(line, sizeof line, "a compaction: tables %zu, of level 0 %d, thread %d, blob compression %u, time %d\n",
           rocksdb_compactionjobinfo_num_input_files(info), rocksdb_compactionjobinfo_num_l0_files(info),
           rocksdb_compactionjobinfo_thread_id(info) > 0, rocksdb_compactionjobinfo_blob_compression_type(info),
           rocksdb_compactionjobinfo_elapsed_micros(info) > 0);
  hear(line);
  for (size_t i = 0; i < rocksdb_compactionjobinfo_blob_file_addition_infos_count(info); i++) {
    blob_file(rocksdb_compactionjobinfo_blob_file_addition_info_at(info, i));
  }
  for (size_t i = 0; i < rocksdb_compactionjobinfo_blob_file_garbage_infos_count(info); i++) {
    garbage(rocksdb_compactionjobinfo_blob_file_garbage_info_at(info, i));
  }
  number entries = 0;
  for (size_t i = 0; i < rocksdb_compactionjobinfo_table_properties_count(info); i++) {
    size_t len;
    const char* key = rocksdb_compactionjobinfo_table_properties_key_at(info, i, &len);
    const rocksdb_table_properties_t* props = rocksdb_compactionjobinfo_table_properties_value_at(info, i);
    entries += rocksdb_table_properties_num_entries(props);
    snprintf(line, sizeof line, "  a table: named %d\n", len > 4 && memcmp(key + len - 4, ".sst", 4) == 0);
    hear(line);
  }
  snprintf(line, sizeof line, "  entries of all %llu\n", entries);
  hear(line);
  job_stats(rocksdb_compactionjobinfo_stats(info));
  count(&compactions);
}

static void on_flush_begin(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) { (void)state, (void)db, (void)info; }
static void on_compaction_begin(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state, (void)db, (void)info;
}
static void on_part_begin(void* state, const rocksdb_subcompactionjobinfo_t* info) { (void)state, (void)info; }
static void on_ingested(void* state, rocksdb_t* db, const rocksdb_externalfileingestioninfo_t* info) {
  (void)state, (void)db;
  printf("ingested at number %llu\n", (number)rocksdb_externalfileingestioninfo_global_seqno(info));
}
static void on_error(void* state, uint32_t reason, rocksdb_status_ptr_t* status) {
  (void)state, (void)reason;
  rocksdb_reset_status(status);
}
static void on_stall(void* state, const rocksdb_writestallinfo_t* info) {
  (void)state;
  size_t len;
  const char* name = rocksdb_writestallinfo_cf_name(info, &len);
  printf("stall of '%.*s'\n", (int)len, name);
}

/* A table that replaces a key gets the next number. */
static void ingest(rocksdb_t* db, const rocksdb_options_t* options, const char* file) {
  char* err = NULL;
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, file, &err);
  must(err);
  rocksdb_sstfilewriter_put(writer, "key00001", 8, "outside", 7, &err);
  must(err);
  rocksdb_sstfilewriter_finish(writer, &err);
  must(err);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingest_external_file(db, &file, 1, how, &err);
  said("ingested", &err);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
}

/* Tables with blob files, overwritten and deleted, and what their jobs report. */
static void jobs(const char* dir) {
  start("jobs");
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  rocksdb_options_set_enable_blob_files(options, 1);
  rocksdb_options_set_min_blob_size(options, 50);
  rocksdb_options_set_blob_compression_type(options, rocksdb_no_compression);
  rocksdb_options_set_enable_blob_gc(options, 1);
  rocksdb_options_set_blob_gc_age_cutoff(options, 1.0);
  rocksdb_options_add_compact_on_deletion_collector_factory(options, 100, 50);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_block_based_options_set_format_version(table, 5);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_eventlistener_t* listener = rocksdb_eventlistener_create(NULL, nothing, on_flush_begin, on_flushed, on_compaction_begin,
                                                                    on_compacted, on_part_begin, on_part, on_ingested, on_error,
                                                                    on_stall, on_sealed);
  rocksdb_options_add_eventlistener(options, listener);
  rocksdb_t* db = open_at(options, path(dir, "heard"));
  fill(db, 0, 40);
  put(db, "small", "v");
  put(db, "single", "v");
  flush(db);
  wait_for(&flushes, 1);
  fill(db, 20, 30);
  rocksdb_delete(db, wo, "small", 5, &err);
  must(err);
  rocksdb_singledelete(db, wo, "single", 6, &err);
  must(err);
  flush(db);
  wait_for(&flushes, 2);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  wait_for(&compactions, 1);
  printf("found %d\n", found(db, 0, 50));
  ingest(db, options, path(dir, "outside.sst"));
  rocksdb_close(db);
  rocksdb_block_based_options_destroy(table);
  rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  begin();
  statistics(argv[1]);
  caches(argv[1]);
  limits(argv[1]);
  jobs(argv[1]);
  return end();
}
