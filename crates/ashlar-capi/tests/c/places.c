/* Tables in further directories: every path that a library names is that of a file. */

#include "hears.h"

static int flushes, compactions, ingestions;

/* Keeps the part of a path behind the directory of the test without the number of the file, and whether the file is there. */
static const char* home;
static void place(const char* what, const char* file) {
  size_t len = strlen(home);
  const char* rest = strncmp(file, home, len) == 0 ? file + len : file;
  const char* slash = strrchr(rest, '/');
  char line[8192];
  snprintf(line, sizeof line, "%s: %.*s, %s\n", what, slash == NULL ? 0 : (int)(slash - rest), rest, exists(file) ? "a file" : "no file");
  hear(line);
}

static void joined_place(const char* what, const char* dir, const char* name) {
  char whole[8192];
  snprintf(whole, sizeof whole, "%s/%s", dir, name[0] == '/' ? name + 1 : name);
  place(what, whole);
}

static void bytes_place(const char* what, const char* bytes, size_t len) {
  char whole[8192];
  snprintf(whole, sizeof whole, "%.*s", (int)len, bytes);
  place(what, whole);
}

static void flushed(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)state;
  (void)db;
  size_t len;
  const char* file = rocksdb_flushjobinfo_file_path(info, &len);
  bytes_place("flushed", file, len);
  count(&flushes);
}
static void compacted(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state;
  (void)db;
  size_t len;
  for (size_t at = 0; at < rocksdb_compactionjobinfo_output_files_count(info); at++) {
    const char* file = rocksdb_compactionjobinfo_output_file_at(info, at, &len);
    bytes_place("compacted to", file, len);
  }
  if (rocksdb_compactionjobinfo_input_files_count(info) > 0) {
    const char* file = rocksdb_compactionjobinfo_input_file_at(info, 0, &len);
    char whole[8192];
    snprintf(whole, sizeof whole, "%.*s", (int)len, file);
    hear(strstr(whole, "/first/") != NULL ? "compacted from the first\n" : "compacted from another place\n");
  }
  count(&compactions);
}
static void ingested(void* state, rocksdb_t* db, const rocksdb_externalfileingestioninfo_t* info) {
  (void)state;
  (void)db;
  size_t len;
  const char* file = rocksdb_externalfileingestioninfo_internal_file_path(info, &len);
  /* RocksDB ingests into the first directory, AshlarDB into that of the level. */
  char whole[8192];
  snprintf(whole, sizeof whole, "%.*s", (int)len, file);
  hear(exists(whole) ? "ingested: a file\n" : "ingested: no file\n");
  count(&ingestions);
}

/* RocksDB calls every function of a listener. */
static void no_flush(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)state;
  (void)db;
  (void)info;
}
static void no_compaction(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state;
  (void)db;
  (void)info;
}
static void no_part(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  (void)state;
  (void)info;
}
static void no_error(void* state, uint32_t reason, rocksdb_status_ptr_t* status) {
  (void)state;
  (void)reason;
  (void)status;
}
static void no_stall(void* state, const rocksdb_writestallinfo_t* info) {
  (void)state;
  (void)info;
}
static void no_seal(void* state, const rocksdb_memtableinfo_t* info) {
  (void)state;
  (void)info;
}

static void live(rocksdb_t* db) {
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  for (int at = 0; at < rocksdb_livefiles_count(files); at++) {
    joined_place("live", rocksdb_livefiles_directory(files, at), rocksdb_livefiles_name(files, at));
  }
  rocksdb_livefiles_destroy(files);
  wait_for(&flushes, 0);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  char* err = NULL;
  home = argv[1];
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_level0_file_num_compaction_trigger(options, 2);
  /* Level 0 goes to the first place; deeper levels do not fit there. */
  rocksdb_dbpath_t* first = rocksdb_dbpath_create(path(home, "first"), 300 << 20);
  rocksdb_dbpath_t* second = rocksdb_dbpath_create(path(home, "second"), (uint64_t)1 << 40);
  const rocksdb_dbpath_t* places[2] = {first, second};
  rocksdb_options_set_db_paths(options, places, 2);
  rocksdb_options_add_eventlistener(options, rocksdb_eventlistener_create(NULL, nothing, no_flush, flushed, no_compaction, compacted, no_part,
                                                                           no_part, ingested, no_error, no_stall, no_seal));
  rocksdb_t* db = rocksdb_open(options, path(home, "db"), &err);
  must(err);
  put(db, "a", "1");
  flush(db);
  wait_for(&flushes, 1);
  live(db);
  put(db, "a", "2");
  put(db, "b", "3");
  flush(db);
  wait_for(&compactions, 1);
  live(db);

  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  const char* outside = path(home, "outside.sst");
  rocksdb_sstfilewriter_open(writer, outside, &err);
  must(err);
  rocksdb_sstfilewriter_put(writer, "x", 1, "y", 1, &err);
  must(err);
  rocksdb_sstfilewriter_finish(writer, &err);
  must(err);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingest_external_file(db, &outside, 1, how, &err);
  must(err);
  wait_for(&ingestions, 1);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);

  rocksdb_close(db);
  rocksdb_dbpath_destroy(first);
  rocksdb_dbpath_destroy(second);
  rocksdb_options_destroy(options);
  return end();
}
