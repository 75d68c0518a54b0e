/* Listeners: what they hear about flushes, compactions and ingestions, and what tables say about themselves. The functions
 * run on threads of the library. So they write their lines into a buffer, and the program waits for the last line of a step. */

#define _POSIX_C_SOURCE 200809L
#include "hears.h"

static int flushes, compactions, parts, ingestions;
/* Compactions that began, and those that ended. In the last step nothing is printed about each. */
static int begun, ended, quiet, ended_in_vain;

static const char* base(const char* path, size_t len) {
  const char* last = path;
  for (size_t at = 0; at < len; at++) {
    if (path[at] == '/') last = path + at + 1;
  }
  return last;
}

static int is_table(const char* path, size_t len) { return len > 4 && memcmp(path + len - 4, ".sst", 4) == 0; }

static int begins(const char* name, size_t len, const char* with) {
  return len >= strlen(with) && memcmp(name, with, strlen(with)) == 0;
}

/* The properties that do not depend on the library. */
static void properties(const rocksdb_table_properties_t* props) {
  char line[1024];
  size_t family, comparator, merge, len;
  /* RocksDB lists two counts of a file there too, if it read the file, and a setting that AshlarDB does not have. */
  size_t collected = rocksdb_table_properties_user_collected_properties_count(props);
  for (size_t at = rocksdb_table_properties_user_collected_properties_count(props); at > 0; at--) {
    const char* name = rocksdb_table_properties_user_collected_properties_key_at(props, at - 1, &len);
    if (begins(name, len, "rocksdb.deleted") || begins(name, len, "rocksdb.merge.o")) collected--;
    if (begins(name, len, "rocksdb.block.based.table.decoupled")) collected--;
  }
  const char* family_name = rocksdb_table_properties_column_family_name(props, &family);
  const char* comparator_name = rocksdb_table_properties_comparator_name(props, &comparator);
  const char* merge_name = rocksdb_table_properties_merge_operator_name(props, &merge);
  snprintf(line, sizeof line, "  properties: %llu entries, %llu deletions, %llu range deletions, %llu operands, keys %llu, values %llu\n",
           (unsigned long long)rocksdb_table_properties_num_entries(props),
           (unsigned long long)rocksdb_table_properties_num_deletions(props),
           (unsigned long long)rocksdb_table_properties_num_range_deletions(props),
           (unsigned long long)rocksdb_table_properties_num_merge_operands(props),
           (unsigned long long)rocksdb_table_properties_raw_key_size(props),
           (unsigned long long)rocksdb_table_properties_raw_value_size(props));
  hear(line);
  snprintf(line, sizeof line, "  properties: family %llu '%.*s', comparator '%.*s', merge operator '%.*s', collected %zu, data %d\n",
           (unsigned long long)rocksdb_table_properties_column_family_id(props), (int)family, family_name, (int)comparator,
           comparator_name, (int)merge, merge_name, collected,
           rocksdb_table_properties_data_size(props) > 0);
  hear(line);
}

static void flush_line(const char* what, const rocksdb_flushjobinfo_t* info) {
  char line[512];
  size_t len;
  const char* name = rocksdb_flushjobinfo_cf_name(info, &len);
  snprintf(line, sizeof line, "%s: family %u '%.*s', job %d, thread %d\n", what, rocksdb_flushjobinfo_cf_id(info), (int)len, name,
           rocksdb_flushjobinfo_job_id(info) > 0, rocksdb_flushjobinfo_thread_id(info) != 0);
  hear(line);
}

static void on_flush_begin(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)state;
  (void)db;
  flush_line("flush begins", info);
}

static void on_flush_completed(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  flush_line("flush ends", info);
  char line[512];
  size_t len;
  const char* path = rocksdb_flushjobinfo_file_path(info, &len);
  snprintf(line, sizeof line, "  table %d %d, sequences %llu to %llu, blob files %zu, slowdown %d, stop %d, state '%s'\n",
           is_table(path, len), rocksdb_flushjobinfo_file_number(info) == strtoull(base(path, len), NULL, 10),
           (unsigned long long)rocksdb_flushjobinfo_smallest_seqno(info), (unsigned long long)rocksdb_flushjobinfo_largest_seqno(info),
           rocksdb_flushjobinfo_blob_file_addition_infos_count(info), rocksdb_flushjobinfo_triggered_writes_slowdown(info),
           rocksdb_flushjobinfo_triggered_writes_stop(info), (const char*)state);
  hear(line);
  properties(rocksdb_flushjobinfo_table_properties(info));
  /* The database can be read inside a call. */
  char* err = NULL;
  rocksdb_readoptions_t* options = rocksdb_readoptions_create();
  char* value = rocksdb_get(db, options, "a", 1, &len, &err);
  snprintf(line, sizeof line, "  a = '%.*s'\n", (int)len, value == NULL ? "" : value);
  hear(line);
  rocksdb_free(value);
  rocksdb_readoptions_destroy(options);
  count(&flushes);
}

static void compaction_line(const char* what, const rocksdb_compactionjobinfo_t* info) {
  char line[512];
  size_t len;
  const char* name = rocksdb_compactionjobinfo_cf_name(info, &len);
  snprintf(line, sizeof line, "%s: family %u '%.*s', job %d, levels %d to %d, reason %u, tables read %zu, aborted %d\n", what,
           rocksdb_compactionjobinfo_cf_id(info), (int)len, name, rocksdb_compactionjobinfo_job_id(info) > 0,
           rocksdb_compactionjobinfo_base_input_level(info), rocksdb_compactionjobinfo_output_level(info),
           rocksdb_compactionjobinfo_compaction_reason(info), rocksdb_compactionjobinfo_input_files_count(info),
           rocksdb_compactionjobinfo_aborted(info));
  hear(line);
}

static void on_compaction_begin(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state;
  (void)db;
  count(&begun);
  if (quiet) return;
  compaction_line("compaction begins", info);
}

static void on_compaction_completed(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state;
  (void)db;
  char* err = NULL;
  rocksdb_compactionjobinfo_status(info, &err);
  if (err != NULL) count(&ended_in_vain);
  free(err);
  count(&ended);
  if (quiet) return;
  compaction_line("compaction ends", info);
  char line[512];
  const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
  snprintf(line, sizeof line, "  tables written %zu, entries %llu to %llu, manual %d, compression %u\n",
           rocksdb_compactionjobinfo_output_files_count(info),
           (unsigned long long)rocksdb_compaction_job_stats_num_input_records(stats),
           (unsigned long long)rocksdb_compaction_job_stats_num_output_records(stats),
           rocksdb_compaction_job_stats_is_manual_compaction(stats), rocksdb_compactionjobinfo_compression(info));
  hear(line);
  size_t len;
  const char* path = rocksdb_compactionjobinfo_output_file_at(info, 0, &len);
  const rocksdb_table_properties_t* props = rocksdb_compactionjobinfo_table_properties_for_file(info, path, len);
  snprintf(line, sizeof line, "  properties known %d %d\n", props != NULL, rocksdb_compactionjobinfo_table_properties_count(info) > 0);
  hear(line);
  if (props != NULL) properties(props);
  count(&compactions);
}

static void on_part_begin(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  (void)state;
  if (quiet) return;
  char line[512];
  size_t len;
  const char* name = rocksdb_subcompactionjobinfo_cf_name(info, &len);
  snprintf(line, sizeof line, "part begins: '%.*s' %d, levels %d to %d\n", (int)len, name,
           rocksdb_subcompactionjobinfo_subcompaction_job_id(info), rocksdb_subcompactionjobinfo_base_input_level(info),
           rocksdb_subcompactionjobinfo_output_level(info));
  hear(line);
}

static void on_part_completed(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  (void)state;
  if (quiet) return;
  char* err = NULL;
  rocksdb_subcompactionjobinfo_status(info, &err);
  hear(err == NULL ? "part ends: ok\n" : "part ends: an error\n");
  free(err);
  count(&parts);
}

static void on_ingested(void* state, rocksdb_t* db, const rocksdb_externalfileingestioninfo_t* info) {
  (void)state;
  (void)db;
  char line[512];
  size_t name_len, outside_len, inside_len;
  const char* name = rocksdb_externalfileingestioninfo_cf_name(info, &name_len);
  const char* outside = rocksdb_externalfileingestioninfo_external_file_path(info, &outside_len);
  const char* inside = rocksdb_externalfileingestioninfo_internal_file_path(info, &inside_len);
  snprintf(line, sizeof line, "ingested: '%.*s', '%.*s', table %d\n", (int)name_len, name,
           (int)(outside_len - (size_t)(base(outside, outside_len) - outside)), base(outside, outside_len), is_table(inside, inside_len));
  hear(line);
  properties(rocksdb_externalfileingestioninfo_table_properties(info));
  count(&ingestions);
}

static void on_sealed(void* state, const rocksdb_memtableinfo_t* info) {
  (void)state;
  char line[256];
  size_t len;
  const char* name = rocksdb_memtableinfo_cf_name(info, &len);
  snprintf(line, sizeof line, "memtable sealed: '%.*s', %llu entries, %llu deletions\n", (int)len, name,
           (unsigned long long)rocksdb_memtableinfo_num_entries(info), (unsigned long long)rocksdb_memtableinfo_num_deletes(info));
  hear(line);
}

static void on_error(void* state, uint32_t reason, rocksdb_status_ptr_t* status) {
  (void)state;
  (void)reason;
  char* err = NULL;
  rocksdb_status_ptr_get_error(status, &err);
  hear(err == NULL ? "background error: none\n" : "background error\n");
  free(err);
}

static void on_stall(void* state, const rocksdb_writestallinfo_t* info) {
  (void)state;
  char line[128];
  snprintf(line, sizeof line, "stall: %d to %d\n", *(const int*)rocksdb_writestallinfo_prev(info),
           *(const int*)rocksdb_writestallinfo_cur(info));
  hear(line);
}

static int destroyed;
static void destructor(void* state) {
  (void)state;
  destroyed++;
}

/* Disables and enables requests for compactions in turn. */
static void* toggle(void* db) {
  for (int round = 0; round < 40; round++) {
    rocksdb_disable_manual_compaction(db);
    nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
    rocksdb_enable_manual_compaction(db);
    nanosleep(&(struct timespec){.tv_nsec = 7000000}, NULL);
  }
  return NULL;
}

/* Whether as many compactions ended as began. */
static int same(void) {
  pthread_mutex_lock(&lock);
  int is_same = begun == ended;
  pthread_mutex_unlock(&lock);
  return is_same;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_eventlistener_t* listener = rocksdb_eventlistener_create(
      "mine", destructor, on_flush_begin, on_flush_completed, on_compaction_begin, on_compaction_completed, on_part_begin,
      on_part_completed, on_ingested, on_error, on_stall, on_sealed);
  rocksdb_options_add_eventlistener(options, listener);
  rocksdb_t* db = rocksdb_open(options, path(argv[1], "db"), &err);
  must(err);

  start("flush");
  put(db, "a", "1");
  put(db, "b", "2");
  rocksdb_delete(db, wo, "c", 1, &err);
  must(err);
  flush(db);
  wait_for(&flushes, 1);

  start("compaction");
  put(db, "a", "3");
  put(db, "d", "4");
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_delete_range_cf(db, wo, family, "x", 1, "z", 1, &err);
  must(err);
  rocksdb_column_family_handle_destroy(family);
  flush(db);
  wait_for(&flushes, 2);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  wait_for(&compactions, 1);

  start("ingestion");
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, path(argv[1], "outside.sst"), &err);
  must(err);
  rocksdb_sstfilewriter_put(writer, "m", 1, "5", 1, &err);
  must(err);
  rocksdb_sstfilewriter_finish(writer, &err);
  must(err);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  const char* files[1] = {path(argv[1], "outside.sst")};
  rocksdb_ingest_external_file(db, files, 1, how, &err);
  must(err);
  wait_for(&ingestions, 1);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);

  start("compactions that a call ends");
  quiet = 1;
  pthread_t toggles;
  pthread_create(&toggles, NULL, toggle, db);
  rocksdb_compactoptions_t* force = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_bottommost_level_compaction(force, 2);
  char key[16], value[1000];
  memset(value, 'v', sizeof value);
  for (int n = 0; n < 3000; n++) {
    snprintf(key, sizeof key, "n%06d", n);
    rocksdb_put(db, wo, key, 7, value, sizeof value, &err);
  }
  must(err);
  for (int round = 0; round < 40; round++) rocksdb_compact_range_opt(db, force, NULL, 0, NULL, 0);
  pthread_join(toggles, NULL);
  rocksdb_compactoptions_destroy(force);
  for (int tries = 0; tries < 5000 && !same(); tries++) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  printf("each has an end: %d, with an error at most as many: %d\n", same(), ended_in_vain <= ended);
  quiet = 0;
  heard[0] = 0;

  start("end");
  rocksdb_close(db);
  printf("destroyed before the options: %d\n", destroyed);
  rocksdb_options_destroy(options);
  printf("destroyed: %d\n", destroyed);

  start("a listener that is not used");
  rocksdb_eventlistener_t* unused = rocksdb_eventlistener_create("unused", destructor, on_flush_begin, on_flush_completed,
                                                                 on_compaction_begin, on_compaction_completed, on_part_begin,
                                                                 on_part_completed, on_ingested, on_error, on_stall, on_sealed);
  rocksdb_eventlistener_destroy(unused);
  printf("destroyed: %d\n", destroyed);
  return end();
}
