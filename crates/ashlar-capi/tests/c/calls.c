/* Databases and families: what batches do to several families, how tables are flushed, compacted, checked and deleted, what
 * ways to open a directory there are, and what backups and the WAL keep. */

#define _POSIX_C_SOURCE 200809L
#include "prints.h"
#include <sys/stat.h>
#include <unistd.h>

static rocksdb_flushoptions_t* fo;

static const char* name(void* state) {
  (void)state;
  return "calls";
}
static rocksdb_options_t* new_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_file_checksum_gen_factory_t* checksums = rocksdb_file_checksum_gen_crc32c_factory_create();
  rocksdb_options_set_file_checksum_gen_factory(options, checksums);
  rocksdb_file_checksum_gen_factory_destroy(checksums);
  rocksdb_options_set_merge_operator(options, rocksdb_mergeoperator_create(NULL, nothing, full_merge, partial_merge, NULL, name));
  return options;
}

static void put_cf(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* key, const char* value) {
  char* err = NULL;
  rocksdb_put_cf(db, wo, cf, key, strlen(key), value, strlen(value), &err);
  must(err);
}

static void flush(rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  char* err = NULL;
  rocksdb_flush_cf(db, fo, cf, &err);
  must(err);
}

/* Prints all entries of a family. */
static void dump(const char* what, rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  char* err = NULL;
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, ro, cf);
  printf("%s:", what);
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    printf(" ");
    print_entry(iter, "=");
  }
  printf("\n");
  rocksdb_iter_get_error(iter, &err);
  must(err);
  rocksdb_iter_destroy(iter);
}

/* Keys and values that are given in parts. */
static void batches(rocksdb_t* db, rocksdb_column_family_handle_t* cf, rocksdb_column_family_handle_t* of_default) {
  start("batches");
  char* err = NULL;
  const char* keys[3] = {"ke", "y", "1"};
  const size_t key_lens[3] = {2, 1, 1};
  const char* values[2] = {"val", "ue"};
  const size_t value_lens[2] = {3, 2};
  /* Operations beyond the limit are left out. */
  for (size_t limit = 0; limit < 80; limit += 13) {
    rocksdb_writebatch_t* limited = rocksdb_writebatch_create_with_params(0, limit, limit % 2 == 0 ? 0 : 8, 0);
    rocksdb_writebatch_put(limited, "limited", 7, "12345678", 8);
    rocksdb_writebatch_put_log_data(limited, "log", 3);
    rocksdb_writebatch_put_cf(limited, cf, "limited", 7, "12345", 5);
    rocksdb_writebatch_delete(limited, "gone", 4);
    rocksdb_writebatch_merge(limited, "m", 1, "2", 1);
    size_t bytes;
    rocksdb_writebatch_data(limited, &bytes);
    printf("limit %d: %d operations, %d bytes\n", (int)limit, rocksdb_writebatch_count(limited), (int)bytes);
    rocksdb_write(db, wo, limited, &err);
    said("write", &err);
    rocksdb_writebatch_destroy(limited);
  }
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create_with_params(100, 0, 8, 0);
  rocksdb_writebatch_putv_cf(batch, cf, 3, keys, key_lens, 2, values, value_lens);
  rocksdb_writebatch_mergev(batch, 3, keys, key_lens, 2, values, value_lens);
  rocksdb_writebatch_mergev_cf(batch, cf, 3, keys, key_lens, 1, values, value_lens);
  rocksdb_writebatch_merge_cf(batch, cf, "other", 5, "merged", 6);
  rocksdb_writebatch_put_cf(batch, cf, "gone", 4, "1", 1);
  rocksdb_writebatch_put(batch, "gone", 4, "1", 1);
  const char* gone[2] = {"go", "ne"};
  const size_t gone_lens[2] = {2, 2};
  rocksdb_writebatch_deletev(batch, 2, gone, gone_lens);
  rocksdb_writebatch_deletev_cf(batch, cf, 2, gone, gone_lens);
  printf("operations %d\n", rocksdb_writebatch_count(batch));
  rocksdb_writebatch_iterate_cf(batch, NULL, walk_put_cf, walk_deleted_cf, walk_merge_cf);
  rocksdb_writebatch_verify_checksum(batch, &err);
  said("verify_checksum", &err);
  rocksdb_write(db, wo, batch, &err);
  said("write", &err);
  dump("default", db, of_default);
  dump("other", db, cf);
  rocksdb_writebatch_destroy(batch);

  batch = rocksdb_writebatch_create();
  rocksdb_writebatch_verify_checksum(batch, &err);
  said("verify_checksum without checksums", &err);
  for (const char* key = "pqrs"; *key != 0; key++) {
    rocksdb_writebatch_put(batch, key, 1, key, 1);
    rocksdb_writebatch_put_cf(batch, cf, key, 1, key, 1);
  }
  rocksdb_writebatch_delete_range_cf(batch, cf, "q", 1, "s", 1);
  rocksdb_write(db, wo, batch, &err);
  said("write", &err);
  rocksdb_singledelete_cf(db, wo, cf, "p", 1, &err);
  said("singledelete_cf", &err);
  dump("default", db, of_default);
  dump("other", db, cf);
  rocksdb_writebatch_destroy(batch);
}

static void may_exist(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* key) {
  char* value = NULL;
  size_t len = 77;
  unsigned char found = 7;
  int may = rocksdb_key_may_exist_cf(db, ro, cf, key, strlen(key), &value, &len, NULL, 0, &found);
  printf("%s may exist %d, found %d\n", key, may, found);
  if (found == 1) show_and_free(key, value, len);
  printf("without a value: %d\n", rocksdb_key_may_exist_cf(db, ro, cf, key, strlen(key), NULL, NULL, NULL, 0, NULL));
}

static void reads(rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  start("reads");
  char* err = NULL;
  size_t len = 77;
  may_exist(db, cf, "s");
  may_exist(db, cf, "zzz");
  rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned_cf(db, ro, cf, "key1", 4, &err);
  const char* value = rocksdb_pinnableslice_value(pinned, &len);
  show("get_pinned_cf", value, len);
  rocksdb_pinnableslice_destroy(pinned);
  printf("of an absent key: %d\n", rocksdb_get_pinned_cf(db, ro, cf, "zzz", 3, &err) != NULL);
  must(err);
  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  printf("snapshot at the latest number: %d\n",
         rocksdb_snapshot_get_sequence_number(snapshot) == rocksdb_get_latest_sequence_number(db));
  rocksdb_release_snapshot(db, snapshot);

  const char *begins[2] = {"a", "p"}, *ends[2] = {"o", "z"};
  const size_t ones[2] = {1, 1};
  uint64_t sizes[2] = {77, 77};
  rocksdb_approximate_sizes_cf(db, cf, 2, begins, ones, ends, ones, sizes, &err);
  said("approximate_sizes_cf", &err);
  printf("sizes of memtables: %llu %llu\n", (unsigned long long)sizes[0], (unsigned long long)sizes[1]);
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(db, ro, cf);
  rocksdb_iter_seek_to_first(iter);
  rocksdb_iter_timestamp(iter, &len);
  printf("bytes of a timestamp: %zu\n", len);
  rocksdb_iter_destroy(iter);
}

static void figures_of(const char* what, rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  uint64_t entries = 77, immutable = 77;
  int known = rocksdb_property_int_cf(db, cf, "rocksdb.num-entries-active-mem-table", &entries);
  rocksdb_property_int_cf(db, cf, "rocksdb.num-immutable-mem-table", &immutable);
  char* tables = rocksdb_property_value_cf(db, cf, "rocksdb.num-files-at-level0");
  char* last = rocksdb_property_value_cf(db, cf, "rocksdb.num-files-at-level6");
  printf("%s: known %d, entries %llu, immutable %llu, tables %s, in the last level %d\n", what, known == 0,
         (unsigned long long)entries, (unsigned long long)immutable, tables, strcmp(last, "0") != 0);
  rocksdb_free(tables);
  rocksdb_free(last);
}

static void options_of(rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  char* err = NULL;
  /* RocksDB would soon compact the table of level 3 below. */
  const char* names[2] = {"write_buffer_size", "disable_auto_compactions"};
  const char* values[2] = {"1000000", "true"};
  rocksdb_set_options_cf(db, cf, 2, names, values, &err);
  said("set_options_cf", &err);
  const char* unknown[1] = {"no_such_option"};
  rocksdb_set_options_cf(db, cf, 1, unknown, values, &err);
  said("an unknown option", &err);
  const char* word[1] = {"many"};
  rocksdb_set_options_cf(db, cf, 1, names, word, &err);
  said("no number", &err);
  printf("an unknown property: %d\n", rocksdb_property_value_cf(db, cf, "rocksdb.none") != NULL);
}

static void upkeep(rocksdb_t* db, rocksdb_column_family_handle_t* cf, rocksdb_column_family_handle_t* of_default) {
  start("upkeep");
  char* err = NULL;
  options_of(db, cf);
  figures_of("before", db, cf);
  rocksdb_flushwaloptions_t* wal = rocksdb_flushwaloptions_create();
  rocksdb_flush_wal_with_options(db, wal, &err);
  said("flush_wal_with_options", &err);
  rocksdb_flushwaloptions_destroy(wal);
  rocksdb_column_family_handle_t* both[2] = {cf, of_default};
  rocksdb_flush_cfs(db, fo, both, 2, &err);
  said("flush_cfs", &err);
  figures_of("other after the flush", db, cf);
  figures_of("default after the flush", db, of_default);
  put_cf(db, cf, "t", "t");
  rocksdb_pause_background_work(db, &err);
  said("pause_background_work", &err);
  rocksdb_continue_background_work(db, &err);
  said("continue_background_work", &err);
  flush(db, cf);
  put_cf(db, cf, "u", "u");
  flush(db, cf);
  figures_of("after the pause", db, cf);
  rocksdb_compact_range_cf(db, cf, NULL, 0, NULL, 0);
  figures_of("compacted", db, cf);
  rocksdb_compactoptions_t* how = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_bottommost_level_compaction(how, 2);
  rocksdb_compact_range_cf_opt(db, cf, how, "a", 1, "z", 1);
  figures_of("compacted again", db, cf);
  rocksdb_compactoptions_destroy(how);
  rocksdb_suggest_compact_range(db, "a", 1, "z", 1, &err);
  said("suggest_compact_range", &err);
  rocksdb_suggest_compact_range_cf(db, cf, "a", 1, NULL, 0, &err);
  said("suggest_compact_range_cf", &err);
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact(db, wait, &err);
  said("wait", &err);
  rocksdb_wait_for_compact_options_destroy(wait);
  rocksdb_verify_checksum(db, &err);
  said("verify_checksum", &err);
  rocksdb_verify_file_checksums_with_options(db, ro, &err);
  said("verify_file_checksums_with_options", &err);
  dump("other", db, cf);
}

/* The tables of a family that are wholly in a range are removed. */
static void deletes_files(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* what) {
  start(what);
  char* err = NULL;
  rocksdb_compact_range_cf(db, cf, NULL, 0, NULL, 0);
  const char* keys[3] = {"za", "zk", "zr"};
  for (int i = 0; i < 3; i++) {
    char key[4];
    snprintf(key, sizeof key, "%s1", keys[i]);
    put_cf(db, cf, key, "first");
    key[2] = '9';
    put_cf(db, cf, key, "last");
    flush(db, cf);
    rocksdb_compact_range_cf(db, cf, keys[i], 2, key, 3);
  }
  figures_of("tables", db, cf);
  dump("all", db, cf);
  if (cf == NULL) {
    rocksdb_delete_file_in_range(db, "zk", 2, "zl", 2, &err);
  } else {
    rocksdb_delete_file_in_range_cf(db, cf, "zk", 2, "zl", 2, &err);
  }
  said("delete the tables of zk to zl", &err);
  dump("left", db, cf);
  rocksdb_delete_file_in_range_cf(db, cf, "za5", 3, "zr5", 3, &err);
  said("delete those of za5 to zr5", &err);
  dump("left", db, cf);
  rocksdb_delete_file_in_range_cf(db, cf, "zr", 2, NULL, 0, &err);
  said("delete those from zr", &err);
  dump("left", db, cf);
}

static void named_files(rocksdb_t* db, rocksdb_column_family_handle_t* cf) {
  start("compactions of named tables");
  char* err = NULL;
  put_cf(db, cf, "named", "1");
  flush(db, cf);
  rocksdb_column_family_metadata_t* meta = rocksdb_get_column_family_metadata_cf(db, cf);
  show_and_free("family", rocksdb_column_family_metadata_get_name(meta), strlen("other"));
  rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(meta, 0);
  rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(level, 0);
  printf("tables of level 0: %zu, its size is theirs: %d\n", rocksdb_level_metadata_get_file_count(level),
         rocksdb_level_metadata_get_size(level) == rocksdb_sst_file_metadata_get_size(file));
  char* input = rocksdb_sst_file_metadata_get_relative_filename(file);
  const char* inputs[1] = {input};
  char** outputs = NULL;
  size_t count = 77;
  rocksdb_compaction_options_t* how = rocksdb_compaction_options_create();
  rocksdb_compact_files_cf(db, cf, how, inputs, 1, 3, -1, &outputs, &count, NULL, &err);
  said("compact_files_cf", &err);
  printf("outputs %zu\n", count);
  rocksdb_compact_files_output_file_names_destroy(outputs, count);
  rocksdb_sst_file_metadata_destroy(file);
  rocksdb_level_metadata_destroy(level);
  rocksdb_column_family_metadata_destroy(meta);
  meta = rocksdb_get_column_family_metadata_cf(db, cf);
  for (size_t at = 0; at < 4; at++) {
    level = rocksdb_column_family_metadata_get_level_metadata(meta, at);
    printf("level %zu: %zu tables, a size %d\n", at, rocksdb_level_metadata_get_file_count(level),
           rocksdb_level_metadata_get_size(level) > 0);
    rocksdb_level_metadata_destroy(level);
  }
  rocksdb_column_family_metadata_destroy(meta);
  rocksdb_compact_files_cf(db, cf, how, inputs, 1, 4, -1, &outputs, &count, NULL, &err);
  said("a table that is gone", &err);
  rocksdb_free(input);
  rocksdb_compaction_options_destroy(how);
}

/* A table of all kinds of entries that is built beside the database. */
static void ingests(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const rocksdb_options_t* options, const char* dir) {
  start("tables of a writer");
  char *err = NULL, file[4096];
  snprintf(file, sizeof file, "%s/written.sst", dir);
  put_cf(db, cf, "w2", "old");
  put_cf(db, cf, "w5", "old");
  put_cf(db, cf, "w9", "old");
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, file, &err);
  must(err);
  rocksdb_sstfilewriter_add(writer, "w1", 2, "added", 5, &err);
  said("add", &err);
  rocksdb_sstfilewriter_merge(writer, "w2", 2, "merged", 6, &err);
  said("merge", &err);
  rocksdb_sstfilewriter_delete_range(writer, "w5", 2, "w6", 2, &err);
  said("delete_range", &err);
  rocksdb_sstfilewriter_add(writer, "w0", 2, "late", 4, &err);
  said("out of order", &err);
  rocksdb_sstfilewriter_finish(writer, &err);
  said("finish", &err);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  const char* files[1] = {file};
  rocksdb_ingest_external_file_cf(db, cf, files, 1, how, &err);
  said("ingest_external_file_cf", &err);
  rocksdb_ingestexternalfileoptions_destroy(how);
  dump("other", db, cf);
}

static void families(const char* dir) {
  char *err = NULL, home[4096];
  snprintf(home, sizeof home, "%s/families", dir);
  rocksdb_options_t* options = new_options();
  rocksdb_t* db = open_at(options, home);
  rocksdb_column_family_handle_t* of_default = rocksdb_get_default_column_family_handle(db);
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "other", &err);
  must(err);
  batches(db, cf, of_default);
  reads(db, cf);
  upkeep(db, cf, of_default);
  deletes_files(db, cf, "tables of a range");
  deletes_files(db, of_default, "tables of a range of default");
  named_files(db, cf);
  ingests(db, cf, options, dir);

  /* A secondary sees what its primary has written at the open and at each catch up. */
  start("a secondary");
  const char* names[2] = {"default", "other"};
  const rocksdb_options_t* of[2] = {options, options};
  rocksdb_column_family_handle_t* cfs[2];
  rocksdb_options_t* all_open = new_options();
  rocksdb_options_set_max_open_files(all_open, -1);
  rocksdb_t* secondary =
      rocksdb_open_as_secondary_column_families(all_open, home, path(dir, "secondary"), 2, names, of, cfs, &err);
  said("open_as_secondary_column_families", &err);
  dump("other", secondary, cfs[1]);
  put_cf(db, cf, "x", "later");
  rocksdb_try_catch_up_with_primary(secondary, &err);
  said("catch up", &err);
  dump("other", secondary, cfs[1]);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(cfs[i]);
  rocksdb_close(secondary);
  rocksdb_options_destroy(all_open);
  rocksdb_cancel_all_background_work(db, 1);
  dump("after all work was cancelled", db, cf);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_column_family_handle_destroy(of_default);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* What a factory of filters hears about each compaction. */
static unsigned char keeps(void* state, int level, const char* key, size_t key_length, const char* value, size_t value_length,
                           char** new_value, size_t* new_value_length, unsigned char* changed) {
  (void)state, (void)level, (void)value, (void)value_length, (void)new_value, (void)new_value_length, (void)changed;
  return key_length == 6 && memcmp(key, "remove", 6) == 0;
}
static rocksdb_compactionfilter_t* make_filter(void* state, rocksdb_compactionfiltercontext_t* context) {
  (void)state;
  printf("a filter: full %d, manual %d\n", rocksdb_compactionfiltercontext_is_full_compaction(context),
         rocksdb_compactionfiltercontext_is_manual_compaction(context));
  return rocksdb_compactionfilter_create(NULL, nothing, keeps, name);
}

static void filters(const char* dir) {
  start("filters");
  rocksdb_options_t* options = new_options();
  rocksdb_options_set_compaction_filter_factory(options, rocksdb_compactionfilterfactory_create(NULL, nothing, make_filter, name));
  rocksdb_options_set_level0_file_num_compaction_trigger(options, 3);
  rocksdb_t* db = open_at(options, path(dir, "filtered"));
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  put(db, "keep", "1");
  put(db, "remove", "2");
  flush(db, cf);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  dump("manually", db, cf);
  char* err = NULL;
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  for (int i = 0; i < 3; i++) {
    put(db, "remove", "2");
    put(db, "keep", "3");
    flush(db, cf);
  }
  rocksdb_wait_for_compact(db, wait, &err);
  must(err);
  rocksdb_wait_for_compact_options_destroy(wait);
  dump("by itself", db, cf);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Fills a database, compacts it and prints a value of it. */
static void use(const char* what, const rocksdb_options_t* options, const char* home) {
  char *err = NULL, key[16];
  rocksdb_t* db = rocksdb_open(options, home, &err);
  said(what, &err);
  if (db == NULL) return;
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 200; i++) {
      snprintf(key, sizeof key, "key%05d", i * 3 + round);
      put(db, key, "some value, which is repeated and so can be compressed");
    }
    rocksdb_flush(db, fo, &err);
    must(err);
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  size_t len = 77;
  char* value = rocksdb_get(db, ro, "key00300", 8, &len, &err);
  must(err);
  printf("%zu bytes\n", len);
  rocksdb_free(value);
  rocksdb_close(db);
}

static void settings(const char* dir) {
  start("settings");
  char home[4096], tables[4096];
  for (int run = 0; run < 6; run++) {
    rocksdb_options_t* options = new_options();
    rocksdb_universal_compaction_options_t* universal = rocksdb_universal_compaction_options_create();
    const int levels[3] = {rocksdb_no_compression, rocksdb_lz4_compression, rocksdb_zstd_compression};
    const char* what[6] = {"point lookups", "level style",      "universal style",
                           "compressions",  "hashed memtables", "universal options"};
    if (run == 0) rocksdb_options_optimize_for_point_lookup(options, 8);
    if (run == 1) rocksdb_options_optimize_level_style_compaction(options, 8 << 20);
    if (run == 2) rocksdb_options_optimize_universal_style_compaction(options, 8 << 20);
    if (run == 3) rocksdb_options_set_compression_per_level(options, levels, 3);
    if (run == 3) rocksdb_options_set_compression_options(options, -14, 3, 0, 1024);
    if (run == 4) rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_noop());
    if (run == 4) rocksdb_options_set_hash_skip_list_rep(options, 1000, 4, 4);
    if (run == 4) rocksdb_options_set_allow_concurrent_memtable_write(options, 0);
    if (run == 5) rocksdb_options_set_compaction_style(options, rocksdb_universal_compaction);
    rocksdb_universal_compaction_options_set_size_ratio(universal, 10);
    if (run == 5) rocksdb_options_set_universal_compaction_options(options, universal);
    rocksdb_universal_compaction_options_destroy(universal);
    rocksdb_options_increase_parallelism(options, 2);
    snprintf(home, sizeof home, "%s/settings%d", dir, run);
    use(what[run], options, home);
    rocksdb_options_destroy(options);
  }

  /* The tables of the family, and the LOG, are in other directories. */
  rocksdb_options_t* options = new_options();
  snprintf(home, sizeof home, "%s/home", dir);
  snprintf(tables, sizeof tables, "%s/tables", dir);
  rocksdb_dbpath_t* place = rocksdb_dbpath_create(tables, 1 << 30);
  const rocksdb_dbpath_t* places[1] = {place};
  rocksdb_options_set_cf_paths(options, places, 1);
  rocksdb_options_set_db_log_dir(options, path(dir, "logs"));
  use("other directories", options, home);
  printf("there: tables %d, logs %d, a LOG at home %d\n", exists(tables), exists(path(dir, "logs")), exists(path(home, "LOG")));
  rocksdb_dbpath_destroy(place);
  rocksdb_options_destroy(options);

  /* A database in memory leaves nothing. */
  options = new_options();
  rocksdb_env_t* memory = rocksdb_create_mem_env();
  rocksdb_options_set_env(options, memory);
  use("in memory", options, "/memory");
  printf("on the disk: %d\n", exists("/memory"));
  rocksdb_options_set_create_if_missing(options, 0);
  use("again", options, "/memory");
  rocksdb_options_destroy(options);
  rocksdb_env_destroy(memory);
}

/* The WAL has what was written with it, for updates and for a database that is open for reading. */
static void wal(const char* dir) {
  start("the WAL");
  char *err = NULL, home[4096];
  snprintf(home, sizeof home, "%s/wal", dir);
  rocksdb_options_t* options = new_options();
  rocksdb_options_set_avoid_flush_during_shutdown(options, 1);
  rocksdb_t* db = open_at(options, home);
  rocksdb_writeoptions_t* without = rocksdb_writeoptions_create();
  rocksdb_writeoptions_disable_WAL(without, 1);
  put(db, "kept", "1");
  rocksdb_put(db, without, "unlogged", 8, "2", 1, &err);
  said("a put without the WAL", &err);
  size_t len = 77;
  char* value = rocksdb_get(db, ro, "unlogged", 8, &len, &err);
  show_and_free("unlogged", value, len);
  rocksdb_wal_readoptions_t* how = rocksdb_wal_readoptions_create();
  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(db, 1, how, &err);
  said("updates", &err);
  for (; rocksdb_wal_iter_valid(updates); rocksdb_wal_iter_next(updates)) {
    uint64_t seq = 77;
    rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(updates, &seq);
    printf("update %llu\n", (unsigned long long)seq);
    rocksdb_writebatch_iterate(batch, NULL, walk_put, walk_deleted);
    rocksdb_writebatch_destroy(batch);
  }
  rocksdb_wal_iter_destroy(updates);
  rocksdb_wal_readoptions_destroy(how);
  rocksdb_writeoptions_destroy(without);
  rocksdb_close(db);

  db = rocksdb_open_for_read_only(options, home, 0, &err);
  said("open_for_read_only", &err);
  value = rocksdb_get(db, ro, "kept", 4, &len, &err);
  show_and_free("kept", value, len);
  rocksdb_put(db, wo, "k", 1, "v", 1, &err);
  said("put", &err);
  rocksdb_flush(db, fo, &err);
  said("flush", &err);
  rocksdb_close(db);

  /* A repair makes a directory without CURRENT usable again. */
  unlink(path(home, "CURRENT"));
  rocksdb_options_set_create_if_missing(options, 0);
  printf("without CURRENT: %d\n", rocksdb_open(options, home, &err) != NULL);
  rocksdb_free(err);
  err = NULL;
  rocksdb_repair_db(options, home, &err);
  said("repair", &err);
  db = open_at(options, home);
  value = rocksdb_get(db, ro, "kept", 4, &len, &err);
  show_and_free("kept", value, len);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void backups(const char* dir) {
  start("backups");
  char* err = NULL;
  rocksdb_options_t* options = new_options();
  rocksdb_t* db = open_at(options, path(dir, "saved"));
  put(db, "k", "v");
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, path(dir, "backups"), &err);
  must(err);
  rocksdb_create_backup_options_t* how = rocksdb_create_backup_options_create();
  for (int i = 0; i < 2; i++) {
    uint32_t id = 77;
    rocksdb_backup_engine_create_new_backup_with_metadata(engine, db, how, i == 0 ? "about it" : "", i == 0 ? 8 : 0, &id, &err);
    said("create_new_backup_with_metadata", &err);
    printf("id %u\n", id);
  }
  rocksdb_create_backup_options_destroy(how);
  const rocksdb_backup_engine_info_t* info = rocksdb_backup_engine_get_backup_info(engine);
  for (int i = 0; i < rocksdb_backup_engine_info_count(info); i++) {
    size_t len = 77;
    const char* about = rocksdb_backup_engine_info_app_metadata(info, i, &len);
    printf("backup %u: size %d, ", rocksdb_backup_engine_info_backup_id(info, i), rocksdb_backup_engine_info_size(info, i) > 0);
    show("metadata", about, len);
  }
  rocksdb_backup_engine_info_destroy(info);
  rocksdb_backup_engine_close(engine);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  begin();
  fo = rocksdb_flushoptions_create();
  families(argv[1]);
  filters(argv[1]);
  settings(argv[1]);
  wal(argv[1]);
  backups(argv[1]);
  rocksdb_flushoptions_destroy(fo);
  return end();
}
