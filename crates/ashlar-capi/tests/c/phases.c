/* Walks through the C interface, and prints what it meets. The tests run it over RocksDB's library and over ours, and compare
 * the two outputs. */

#define _POSIX_C_SOURCE 199309L
#include "prints.h"
#include <sys/stat.h>
#include <time.h>

static void get(rocksdb_t* db, const char* key) {
  char* err = NULL;
  size_t len = 77;
  char* value = rocksdb_get(db, ro, key, strlen(key), &len, &err);
  must(err);
  show_and_free(key, value, len);
}

static void get_cf(rocksdb_t* db, rocksdb_column_family_handle_t* cf, const char* key) {
  char* err = NULL;
  size_t len = 77;
  char* value = rocksdb_get_cf(db, ro, cf, key, strlen(key), &len, &err);
  must(err);
  show_and_free(key, value, len);
}

static void entry(rocksdb_iterator_t* iter) {
  if (!rocksdb_iter_valid(iter)) {
    printf("  off the end\n");
    return;
  }
  printf("  ");
  print_entry(iter, " = ");
  printf("\n");
}

static void all(rocksdb_iterator_t* iter) {
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) entry(iter);
  char* err = NULL;
  rocksdb_iter_get_error(iter, &err);
  said("status", &err);
}

static void dump(rocksdb_t* db) {
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
  all(iter);
  rocksdb_iter_destroy(iter);
}

/* ---- callbacks ---- */

static volatile int destroyed = 0;
static void destroy(void* state) {
  (void)state;
  destroyed++;
}
/* The destructors run when nothing uses the objects any more; a thread of a closed database may for a moment. */
static void was_destroyed(int count) {
  struct timespec moment = {0, 1000000};
  for (int i = 0; i < 5000 && destroyed < count; i++) nanosleep(&moment, NULL);
  printf("destroyed: %d\n", destroyed);
}
static const char* reverse_name(void* state) {
  (void)state;
  return "phases.reverse";
}
static char* own_merge(void* state, const char* key, size_t key_length, const char* existing, size_t existing_len,
                        const char* const* list, const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)state;
  if (key_length == 3 && memcmp(key, "bad", 3) == 0) {
    *success = 0;
    *len = 0;
    return NULL;
  }
  *success = 1;
  return joined(existing, existing_len, list, lens, count, len);
}
static const char* merge_name(void* state) {
  (void)state;
  return "phases.join";
}
static unsigned char filter(void* state, int level, const char* key, size_t key_length, const char* value, size_t value_length,
                            char** new_value, size_t* new_value_length, unsigned char* changed) {
  (void)state;
  (void)level;
  (void)value;
  (void)value_length;
  if (key_length > 0 && key[0] == 'x') return 1;
  if (key_length > 0 && key[0] == 'y') {
    *new_value = "changed";
    *new_value_length = 7;
    *changed = 1;
  }
  return 0;
}
static const char* filter_name(void* state) {
  (void)state;
  return "phases.filter";
}
static rocksdb_compactionfilter_t* make_filter(void* state, rocksdb_compactionfiltercontext_t* context) {
  (void)state;
  (void)context;
  return rocksdb_compactionfilter_create(NULL, destroy, filter, filter_name);
}
/* ---- phases ---- */

static void opening(const char* dir) {
  start("opening");
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = rocksdb_open(options, path(dir, "open"), &err);
  printf("%s\n", db == NULL ? "refused" : "opened");
  said("without create_if_missing", &err);
  rocksdb_options_set_create_if_missing(options, 1);
  db = rocksdb_open(options, path(dir, "open"), &err);
  must(err);
  rocksdb_t* other = rocksdb_open(options, path(dir, "open"), &err);
  printf("%s\n", other == NULL ? "refused" : "opened");
  said("twice", &err);
  rocksdb_close(db);
  rocksdb_options_set_error_if_exists(options, 1);
  db = rocksdb_open(options, path(dir, "open"), &err);
  said("error_if_exists", &err);
  rocksdb_options_set_error_if_exists(options, 0);
  db = rocksdb_open(options, path(dir, "open"), &err);
  said("again", &err);
  rocksdb_close(db);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  db = rocksdb_open(options, path(dir, "open"), &err);
  said("with default table options", &err);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* Settings that an open brings into their range, and sizes of a string with their units. */
static void settings(const char* dir) {
  start("settings");
  char* err = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, 0);
  rocksdb_options_set_max_write_buffer_number(options, 1);
  rocksdb_options_set_num_levels(options, 1);
  rocksdb_options_set_level0_file_num_compaction_trigger(options, 0);
  rocksdb_options_set_level0_slowdown_writes_trigger(options, 1);
  rocksdb_options_set_level0_stop_writes_trigger(options, 1);
  rocksdb_options_set_wal_compression(options, rocksdb_snappy_compression);
  rocksdb_t* db = rocksdb_open(options, path(dir, "settings"), &err);
  said("out of range", &err);
  put(db, "k", "v");
  rocksdb_close(db);
  rocksdb_options_t* parsed = rocksdb_options_create();
  rocksdb_get_options_from_string(options, "write_buffer_size=1M;target_file_size_base=3m;max_bytes_for_level_base=2G", parsed, &err);
  said("units", &err);
  printf("%d %d %.0f\n", (int)rocksdb_options_get_write_buffer_size(parsed), (int)rocksdb_options_get_target_file_size_base(parsed),
         (double)rocksdb_options_get_max_bytes_for_level_base(parsed));
  rocksdb_options_destroy(parsed);
  rocksdb_options_destroy(options);
}

static rocksdb_options_t* creating(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, 1 << 20);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  return options;
}

static void keys(const char* dir) {
  start("keys");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(4 << 20);
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom(10));
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_t* db = rocksdb_open(options, path(dir, "keys"), &err);
  must(err);
  put(db, "foo", "hello");
  put(db, "bar", "");
  get(db, "foo");
  get(db, "bar");
  get(db, "baz");
  rocksdb_delete(db, wo, "foo", 3, &err);
  must(err);
  get(db, "foo");
  rocksdb_singledelete(db, wo, "bar", 3, &err);
  must(err);
  get(db, "bar");
  rocksdb_merge(db, wo, "foo", 3, "x", 1, &err);
  said("merge without an operator", &err);
  put(db, "a", "1");
  put(db, "b", "2");
  put(db, "c", "3");
  put(db, "d", "4");
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_delete_range_cf(db, wo, cf, "b", 1, "d", 1, &err);
  must(err);
  dump(db);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  dump(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  dump(db);
  rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, ro, "a", 1, &err);
  must(err);
  size_t len = 0;
  const char* value = rocksdb_pinnableslice_value(pinned, &len);
  show("pinned", value, len);
  rocksdb_pinnableslice_destroy(pinned);
  pinned = rocksdb_get_pinned(db, ro, "zz", 2, &err);
  must(err);
  printf("pinned: %s\n", pinned == NULL ? "none" : "some");
  const char* names[3] = {"a", "zz", "d"};
  size_t lens[3] = {1, 2, 1};
  char* values[3];
  size_t value_lens[3];
  char* errs[3];
  rocksdb_multi_get(db, ro, 3, names, lens, values, value_lens, errs);
  for (int i = 0; i < 3; i++) {
    must(errs[i]);
    show(names[i], values[i], value_lens[i]);
    rocksdb_free(values[i]);
  }
  rocksdb_pinnableslice_t* many[3];
  rocksdb_batched_multi_get_cf(db, ro, cf, 3, names, lens, many, errs, false);
  for (int i = 0; i < 3; i++) {
    must(errs[i]);
    value = many[i] == NULL ? NULL : rocksdb_pinnableslice_value(many[i], &len);
    show(names[i], value, len);
    rocksdb_pinnableslice_destroy(many[i]);
  }
  printf("may exist: %d\n", rocksdb_key_may_exist(db, ro, "a", 1, NULL, NULL, NULL, 0, NULL));
  uint64_t number = 99;
  printf("property: %d", rocksdb_property_int(db, "rocksdb.num-running-flushes", &number));
  printf(" %llu\n", (unsigned long long)number);
  printf("property: %d\n", rocksdb_property_int(db, "rocksdb.no-such-property", &number));
  char* text = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  printf("property: %s\n", text == NULL ? "none" : text);
  rocksdb_free(text);
  text = rocksdb_property_value(db, "no.such");
  printf("property: %s\n", text == NULL ? "none" : text);
  const char* begins[1] = {"x"};
  const char* ends[1] = {"y"};
  size_t ones[1] = {1};
  uint64_t sizes[1] = {7};
  rocksdb_approximate_sizes(db, 1, begins, ones, ends, ones, sizes, &err);
  must(err);
  printf("size of nothing: %llu\n", (unsigned long long)sizes[0]);
  const char* option[1] = {"write_buffer_size"};
  const char* good[1] = {"2097152"};
  const char* bad[1] = {"no number"};
  rocksdb_set_options(db, 1, option, good, &err);
  said("set_options", &err);
  rocksdb_set_options(db, 0, option, good, &err);
  said("set no option", &err);
  rocksdb_set_options(db, 1, option, bad, &err);
  said("set_options, no number", &err);
  rocksdb_flush_wal(db, 1, &err);
  said("flush_wal", &err);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
  rocksdb_cache_destroy(cache);
  rocksdb_block_based_options_destroy(table);
  rocksdb_options_destroy(options);
}

static void batches(const char* dir) {
  start("batches");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, path(dir, "batches"), &err);
  must(err);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "foo", 3, "a", 1);
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put(batch, "bar", 3, "b", 1);
  rocksdb_writebatch_put(batch, "box", 3, "c", 1);
  rocksdb_writebatch_put_log_data(batch, "note", 4);
  rocksdb_writebatch_delete(batch, "bar", 3);
  const char* pieces[2] = {"se", "veral"};
  size_t piece_lens[2] = {2, 5};
  rocksdb_writebatch_putv(batch, 2, pieces, piece_lens, 2, pieces, piece_lens);
  printf("count: %d\n", rocksdb_writebatch_count(batch));
  rocksdb_writebatch_iterate(batch, NULL, walk_put, walk_deleted);
  rocksdb_writebatch_iterate_ld(batch, NULL, walk_put, walk_deleted, walk_log);
  rocksdb_write(db, wo, batch, &err);
  must(err);
  printf("count after the write: %d\n", rocksdb_writebatch_count(batch));
  dump(db);
  size_t len = 0;
  const char* data = rocksdb_writebatch_data(batch, &len);
  printf("bytes: %d\n", (int)len);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  printf("count of the copy: %d\n", rocksdb_writebatch_count(copy));
  rocksdb_writebatch_iterate_cf(copy, NULL, walk_put_cf, walk_deleted_cf, walk_merge_cf);
  rocksdb_writebatch_destroy(copy);
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put(batch, "one", 3, "1", 1);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put(batch, "two", 3, "2", 1);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_put(batch, "three", 5, "3", 1);
  rocksdb_writebatch_rollback_to_save_point(batch, &err);
  said("rollback", &err);
  rocksdb_writebatch_pop_save_point(batch, &err);
  said("pop", &err);
  rocksdb_writebatch_pop_save_point(batch, &err);
  said("pop without a savepoint", &err);
  rocksdb_writebatch_iterate(batch, NULL, walk_put, walk_deleted);
  rocksdb_writebatch_delete_range(batch, "box", 3, "c", 1);
  rocksdb_write(db, wo, batch, &err);
  must(err);
  dump(db);
  rocksdb_writebatch_destroy(batch);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void iterators(const char* dir) {
  start("iterators");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_options_set_prefix_extractor(options, rocksdb_slicetransform_create_fixed_prefix(1));
  rocksdb_t* db = rocksdb_open(options, path(dir, "iterators"), &err);
  must(err);
  const char* names[] = {"a1", "a2", "a3", "b1", "b2", "c1"};
  for (int i = 0; i < 6; i++) put(db, names[i], names[i]);
  rocksdb_readoptions_t* total = rocksdb_readoptions_create();
  rocksdb_readoptions_set_total_order_seek(total, 1);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, total);
  entry(iter);
  rocksdb_iter_seek(iter, "b", 1);
  entry(iter);
  rocksdb_iter_prev(iter);
  entry(iter);
  rocksdb_iter_seek_to_last(iter);
  entry(iter);
  rocksdb_iter_next(iter);
  entry(iter);
  rocksdb_iter_seek_for_prev(iter, "b9", 2);
  entry(iter);
  rocksdb_iter_seek(iter, "z", 1);
  entry(iter);
  put(db, "d1", "late");
  rocksdb_iter_seek_to_last(iter);
  entry(iter);
  rocksdb_iter_refresh(iter, &err);
  said("refresh", &err);
  rocksdb_iter_seek_to_last(iter);
  entry(iter);
  rocksdb_iter_destroy(iter);

  rocksdb_readoptions_set_iterate_lower_bound(total, "a2", 2);
  rocksdb_readoptions_set_iterate_upper_bound(total, "b2", 2);
  iter = rocksdb_create_iterator(db, total);
  all(iter);
  rocksdb_iter_seek_to_last(iter);
  entry(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_iterate_lower_bound(total, "c", 1);
  iter = rocksdb_create_iterator(db, total);
  all(iter);
  rocksdb_iter_seek_to_last(iter);
  entry(iter);
  rocksdb_iter_get_error(iter, &err);
  said("a lower bound behind the upper one", &err);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(total);

  rocksdb_readoptions_t* prefix = rocksdb_readoptions_create();
  rocksdb_readoptions_set_prefix_same_as_start(prefix, 1);
  iter = rocksdb_create_iterator(db, prefix);
  for (rocksdb_iter_seek(iter, "a2", 2); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) entry(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(prefix);

  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  put(db, "a1", "new");
  rocksdb_readoptions_t* old = rocksdb_readoptions_create();
  rocksdb_readoptions_set_snapshot(old, snapshot);
  size_t len;
  char* value = rocksdb_get(db, old, "a1", 2, &len, &err);
  must(err);
  show("at the snapshot", value, len);
  rocksdb_free(value);
  get(db, "a1");
  iter = rocksdb_create_iterator(db, old);
  rocksdb_iter_seek_to_first(iter);
  entry(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_snapshot(old, NULL);
  rocksdb_readoptions_destroy(old);
  rocksdb_release_snapshot(db, snapshot);

  rocksdb_readoptions_t* tailing = rocksdb_readoptions_create();
  rocksdb_readoptions_set_tailing(tailing, 1);
  rocksdb_readoptions_set_total_order_seek(tailing, 1);
  // A tailing iterator ignores the snapshot.
  const rocksdb_snapshot_t* ignored = rocksdb_create_snapshot(db);
  rocksdb_readoptions_set_snapshot(tailing, ignored);
  iter = rocksdb_create_iterator(db, tailing);
  rocksdb_iter_seek(iter, "d", 1);
  entry(iter);
  put(db, "d0", "between");
  rocksdb_iter_seek(iter, "d", 1);
  entry(iter);
  put(db, "e1", "behind");
  rocksdb_iter_next(iter);
  entry(iter);
  rocksdb_iter_next(iter);
  entry(iter);
  rocksdb_iter_next(iter);
  entry(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_snapshot(tailing, NULL);
  rocksdb_release_snapshot(db, ignored);
  rocksdb_readoptions_destroy(tailing);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

/* What a walk does with operations that its functions do not know. */
static void walk_over_families(rocksdb_column_family_handle_t* cf) {
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "first", 5, "1", 1);
  rocksdb_writebatch_singledelete(batch, "single", 6);
  rocksdb_writebatch_merge(batch, "merged", 6, "2", 1);
  rocksdb_writebatch_delete(batch, "deleted", 7);
  rocksdb_writebatch_put_cf(batch, cf, "in one", 6, "3", 1);
  rocksdb_writebatch_put(batch, "last", 4, "4", 1);
  printf("walk without families\n");
  rocksdb_writebatch_iterate(batch, NULL, walk_put, walk_deleted);
  printf("walk with families\n");
  rocksdb_writebatch_iterate_cf(batch, NULL, walk_put_cf, walk_deleted_cf, walk_merge_cf);
  rocksdb_writebatch_singledelete_cf(batch, cf, "single in one", 13);
  rocksdb_writebatch_put(batch, "behind", 6, "5", 1);
  printf("walk to a single deletion of a family\n");
  rocksdb_writebatch_iterate_cf(batch, NULL, walk_put_cf, walk_deleted_cf, walk_merge_cf);
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put(batch, "first", 5, "1", 1);
  rocksdb_writebatch_delete_range(batch, "a", 1, "b", 1);
  rocksdb_writebatch_put(batch, "last", 4, "4", 1);
  printf("walk to a range deletion\n");
  rocksdb_writebatch_iterate(batch, NULL, walk_put, walk_deleted);
  rocksdb_writebatch_destroy(batch);
}

static void families(const char* dir) {
  start("families");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, path(dir, "families"), &err);
  must(err);
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "one", &err);
  must(err);
  printf("id: %u\n", rocksdb_column_family_handle_get_id(cf));
  size_t len;
  char* name = rocksdb_column_family_handle_get_name(cf, &len);
  show("name", name, len);
  rocksdb_free(name);
  rocksdb_create_column_family(db, options, "one", &err);
  said("a second one", &err);
  rocksdb_put_cf(db, wo, cf, "k", 1, "in one", 6, &err);
  must(err);
  put(db, "k", "in default");
  walk_over_families(cf);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_column_family_handle_t* of_default = rocksdb_get_default_column_family_handle(db);
  rocksdb_close(db);
  /* A handle that outlives its database does not keep it open. */
  rocksdb_column_family_handle_t* reopened[2];
  const char* again[2] = {"default", "one"};
  const rocksdb_options_t* of_again[2] = {options, options};
  db = rocksdb_open_column_families(options, path(dir, "families"), 2, again, of_again, reopened, &err);
  said("an open beside a handle of a closed database", &err);
  rocksdb_column_family_handle_destroy(of_default);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(reopened[i]);
  rocksdb_close(db);

  char** list = rocksdb_list_column_families(options, path(dir, "families"), &len, &err);
  must(err);
  for (size_t i = 0; i < len; i++) printf("  %s\n", list[i]);
  rocksdb_list_column_families_destroy(list, len);
  rocksdb_list_column_families(options, path(dir, "no such directory"), &len, &err);
  said("families of nothing", &err);
  db = rocksdb_open(options, path(dir, "families"), &err);
  said("one family left out", &err);
  const char* missing[3] = {"default", "one", "two"};
  const rocksdb_options_t* each[3] = {options, options, options};
  rocksdb_column_family_handle_t* handles[3];
  db = rocksdb_open_column_families(options, path(dir, "families"), 3, missing, each, handles, &err);
  said("one family missing", &err);
  rocksdb_options_set_create_missing_column_families(options, 1);
  db = rocksdb_open_column_families(options, path(dir, "families"), 3, missing, each, handles, &err);
  must(err);
  get_cf(db, handles[0], "k");
  get_cf(db, handles[1], "k");
  get_cf(db, handles[2], "k");
  const char* names[3] = {"k", "k", "k"};
  size_t lens[3] = {1, 1, 1};
  char* values[3];
  size_t value_lens[3];
  char* errs[3];
  const rocksdb_column_family_handle_t* of[3] = {handles[0], handles[1], handles[2]};
  rocksdb_multi_get_cf(db, ro, of, 3, names, lens, values, value_lens, errs);
  for (int i = 0; i < 3; i++) {
    must(errs[i]);
    show(names[i], values[i], value_lens[i]);
    rocksdb_free(values[i]);
  }
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, handles[1], "b", 1, "batch", 5);
  rocksdb_writebatch_delete_cf(batch, handles[1], "k", 1);
  rocksdb_write(db, wo, batch, &err);
  must(err);
  rocksdb_iterator_t* iters[2];
  rocksdb_create_iterators(db, ro, handles, iters, 2, &err);
  must(err);
  for (int i = 0; i < 2; i++) {
    all(iters[i]);
    rocksdb_iter_destroy(iters[i]);
  }
  rocksdb_drop_column_family(db, handles[1], &err);
  said("drop", &err);
  rocksdb_put_cf(db, wo, handles[1], "k", 1, "v", 1, &err);
  printf("write to a dropped family: %s\n", err == NULL ? "ok" : "refused");
  free(err);
  err = NULL;
  for (int i = 0; i < 3; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_writebatch_destroy(batch);
  rocksdb_close(db);
  const char* both[2] = {"default", "two"};
  db = rocksdb_open_for_read_only_column_families(options, path(dir, "families"), 2, both, each, handles, 0, &err);
  must(err);
  get_cf(db, handles[0], "k");
  rocksdb_put(db, wo, "k", 1, "v", 1, &err);
  said("write to a reader", &err);
  for (int i = 0; i < 2; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void callbacks(const char* dir) {
  start("callbacks");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_comparator_t* comparator = rocksdb_comparator_create(NULL, destroy, reverse, reverse_name);
  rocksdb_options_set_comparator(options, comparator);
  rocksdb_options_set_merge_operator(options,
                                     rocksdb_mergeoperator_create(NULL, destroy, own_merge, partial_merge, NULL, merge_name));
  rocksdb_t* db = rocksdb_open(options, path(dir, "callbacks"), &err);
  must(err);
  put(db, "a", "1");
  put(db, "c", "3");
  put(db, "b", "2");
  rocksdb_merge(db, wo, "b", 1, "x", 1, &err);
  must(err);
  rocksdb_merge(db, wo, "b", 1, "y", 1, &err);
  must(err);
  rocksdb_merge(db, wo, "new", 3, "z", 1, &err);
  must(err);
  dump(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  get(db, "b");
  get(db, "new");
  rocksdb_merge(db, wo, "bad", 3, "z", 1, &err);
  must(err);
  size_t len;
  char* value = rocksdb_get(db, ro, "bad", 3, &len, &err);
  show("bad", value, len);
  said("an operator that fails", &err);
  rocksdb_close(db);
  rocksdb_options_set_comparator(options, NULL);
  rocksdb_options_t* plain = creating();
  db = rocksdb_open(plain, path(dir, "callbacks"), &err);
  printf("%s\n", db == NULL ? "refused" : "opened");
  said("another comparator", &err);
  rocksdb_options_destroy(plain);
  rocksdb_options_destroy(options);
  rocksdb_comparator_destroy(comparator);
  was_destroyed(2);

  options = creating();
  rocksdb_compactionfilter_t* kept = rocksdb_compactionfilter_create(NULL, destroy, filter, filter_name);
  rocksdb_options_set_compaction_filter(options, kept);
  db = rocksdb_open(options, path(dir, "filter"), &err);
  must(err);
  put(db, "xa", "goes");
  put(db, "ya", "changes");
  put(db, "za", "stays");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  dump(db);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_compactionfilter_destroy(kept);
  was_destroyed(3);

  options = creating();
  rocksdb_options_set_compaction_filter_factory(options,
                                                rocksdb_compactionfilterfactory_create(NULL, destroy, make_filter, filter_name));
  db = rocksdb_open(options, path(dir, "factory"), &err);
  must(err);
  put(db, "xa", "goes");
  put(db, "ya", "changes");
  put(db, "za", "stays");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  dump(db);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void copies(const char* dir) {
  start("copies");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_t* db = rocksdb_open(options, path(dir, "copied"), &err);
  must(err);
  put(db, "a", "1");
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
  must(err);
  rocksdb_checkpoint_create(checkpoint, path(dir, "checkpoint"), 0, &err);
  must(err);
  rocksdb_checkpoint_create(checkpoint, path(dir, "checkpoint"), 0, &err);
  said("a second time", &err);
  rocksdb_checkpoint_object_destroy(checkpoint);
  put(db, "a", "2");
  rocksdb_t* secondary = rocksdb_open_as_secondary(options, path(dir, "copied"), path(dir, "secondary"), &err);
  must(err);
  get(secondary, "a");
  put(db, "a", "3");
  rocksdb_try_catch_up_with_primary(secondary, &err);
  must(err);
  get(secondary, "a");
  rocksdb_readoptions_t* tailing = rocksdb_readoptions_create();
  rocksdb_readoptions_set_tailing(tailing, 1);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(secondary, tailing);
  rocksdb_iter_seek_to_first(iter);
  entry(iter);
  rocksdb_iter_get_error(iter, &err);
  said("tailing a secondary", &err);
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(tailing);
  rocksdb_close(secondary);
  rocksdb_close(db);
  db = rocksdb_open(options, path(dir, "checkpoint"), &err);
  must(err);
  get(db, "a");
  rocksdb_close(db);
  db = rocksdb_open_with_ttl(options, path(dir, "ttl"), 1000, &err);
  must(err);
  put(db, "a", "alive");
  get(db, "a");
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void backups(const char* dir) {
  start("backups");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, path(dir, "backed"), &err);
  must(err);
  put(db, "a", "1");
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, path(dir, "backups"), &err);
  must(err);
  rocksdb_backup_engine_create_new_backup(engine, db, &err);
  must(err);
  put(db, "a", "2");
  rocksdb_backup_engine_create_new_backup_flush(engine, db, 1, &err);
  must(err);
  put(db, "a", "3");
  const rocksdb_backup_engine_info_t* info = rocksdb_backup_engine_get_backup_info(engine);
  int count = rocksdb_backup_engine_info_count(info);
  printf("backups: %d\n", count);
  for (int i = 0; i < count; i++) {
    printf("  %u %d %d\n", rocksdb_backup_engine_info_backup_id(info, i), rocksdb_backup_engine_info_number_files(info, i) > 0,
           rocksdb_backup_engine_info_timestamp(info, i) > 1000000);
  }
  rocksdb_backup_engine_info_destroy(info);
  rocksdb_backup_engine_verify_backup(engine, 1, &err);
  said("verify 1", &err);
  rocksdb_backup_engine_verify_backup(engine, 7, &err);
  said("verify 7", &err);
  rocksdb_close(db);
  rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
  rocksdb_restore_options_set_keep_log_files(restore, 0);
  rocksdb_backup_engine_restore_db_from_backup(engine, path(dir, "restored1"), path(dir, "restored1"), restore, 1, &err);
  must(err);
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, path(dir, "restored2"), path(dir, "restored2"), restore, &err);
  must(err);
  const char* names[2] = {"restored1", "restored2"};
  for (int i = 0; i < 2; i++) {
    db = rocksdb_open(options, path(dir, names[i]), &err);
    must(err);
    get(db, "a");
    rocksdb_close(db);
  }
  rocksdb_backup_engine_purge_old_backups(engine, 1, &err);
  must(err);
  info = rocksdb_backup_engine_get_backup_info(engine);
  printf("backups: %d\n", rocksdb_backup_engine_info_count(info));
  rocksdb_backup_engine_info_destroy(info);
  rocksdb_restore_options_destroy(restore);
  rocksdb_backup_engine_close(engine);
  rocksdb_options_destroy(options);
}

static void files(const char* dir) {
  start("files");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, path(dir, "files"), &err);
  must(err);
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  char file[4096];
  snprintf(file, sizeof file, "%s/first.sst", dir);
  rocksdb_sstfilewriter_open(writer, file, &err);
  must(err);
  rocksdb_sstfilewriter_put(writer, "sst1", 4, "v1", 2, &err);
  must(err);
  rocksdb_sstfilewriter_put(writer, "sst2", 4, "v2", 2, &err);
  must(err);
  rocksdb_sstfilewriter_put(writer, "sst1", 4, "v3", 2, &err);
  said("out of order", &err);
  rocksdb_sstfilewriter_delete(writer, "sst3", 4, &err);
  must(err);
  rocksdb_sstfilewriter_finish(writer, &err);
  must(err);
  uint64_t size = 0;
  rocksdb_sstfilewriter_file_size(writer, &size);
  printf("a size: %d\n", size > 0);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
  put(db, "sst3", "goes");
  put(db, "sst4", "stays");
  rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
  const char* list[1] = {file};
  rocksdb_ingest_external_file(db, list, 1, ingest, &err);
  must(err);
  dump(db);
  const char* nothing[1] = {"/no/such/file"};
  rocksdb_ingest_external_file(db, nothing, 1, ingest, &err);
  said("a file that is not there", &err);
  rocksdb_ingestexternalfileoptions_destroy(ingest);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  const rocksdb_livefiles_t* live = rocksdb_livefiles(db);
  printf("live files: %d\n", rocksdb_livefiles_count(live) > 0);
  size_t len;
  const char* key = rocksdb_livefiles_smallestkey(live, 0, &len);
  show("smallest", key, len);
  key = rocksdb_livefiles_largestkey(live, 0, &len);
  printf("largest: %d bytes\n", (int)len);
  printf("family: %s, name begins with '%c'\n", rocksdb_livefiles_column_family_name(live, 0), rocksdb_livefiles_name(live, 0)[0]);
  rocksdb_livefiles_destroy(live);

  uint64_t since = rocksdb_get_latest_sequence_number(db);
  put(db, "u1", "1");
  rocksdb_delete(db, wo, "u2", 2, &err);
  must(err);
  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(db, since + 1, NULL, &err);
  must(err);
  for (int part = 0; part < 2; part++) {
    for (; rocksdb_wal_iter_valid(updates); rocksdb_wal_iter_next(updates)) {
      uint64_t seq = 0;
      rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(updates, &seq);
      printf("update %d of %d\n", (int)(seq - since), rocksdb_writebatch_count(batch));
      rocksdb_writebatch_iterate(batch, NULL, walk_put, walk_deleted);
      rocksdb_writebatch_destroy(batch);
    }
    /* Off the end, the next step finds what was written since. */
    put(db, "u3", "behind the end");
    rocksdb_wal_iter_next(updates);
    printf("valid %d\n", rocksdb_wal_iter_valid(updates));
  }
  rocksdb_wal_iter_status(updates, &err);
  said("updates", &err);
  rocksdb_wal_iter_destroy(updates);
  const uint64_t ahead[2] = {1, 8};
  for (int i = 0; i < 2; i++) {
    rocksdb_get_updates_since(db, rocksdb_get_latest_sequence_number(db) + ahead[i], NULL, &err);
    said("updates that are not written yet", &err);
  }
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact(db, wait, &err);
  said("wait", &err);
  rocksdb_wait_for_compact_options_destroy(wait);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void txn_get(rocksdb_transaction_t* txn, const char* key) {
  char* err = NULL;
  size_t len = 77;
  char* value = rocksdb_transaction_get(txn, ro, key, strlen(key), &len, &err);
  must(err);
  show_and_free(key, value, len);
}

static void behind(const char* dir) {
  start("behind");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_options_set_allow_ingest_behind(options, 1);
  rocksdb_t* db = rocksdb_open(options, path(dir, "behind"), &err);
  must(err);
  put(db, "a", "there");
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, path(dir, "behind.sst"), &err);
  must(err);
  rocksdb_sstfilewriter_put(writer, "a", 1, "behind", 6, &err);
  rocksdb_sstfilewriter_put(writer, "b", 1, "behind", 6, &err);
  rocksdb_sstfilewriter_finish(writer, &err);
  must(err);
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingestexternalfileoptions_set_ingest_behind(how, 1);
  const char* file = path(dir, "behind.sst");
  rocksdb_ingest_external_file(db, &file, 1, how, &err);
  said("ingestion behind all data", &err);
  dump(db);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

static void transactions(const char* dir) {
  start("transactions");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_transactiondb_options_t* db_options = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_default_lock_timeout(db_options, 20);
  rocksdb_transactiondb_options_set_transaction_lock_timeout(db_options, 20);
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, db_options, path(dir, "txn"), &err);
  must(err);
  rocksdb_transactiondb_put(db, wo, "a", 1, "1", 1, &err);
  must(err);
  rocksdb_transaction_options_t* txn_options = rocksdb_transaction_options_create();
  rocksdb_transaction_t* txn = rocksdb_transaction_begin(db, wo, txn_options, NULL);
  rocksdb_transaction_put(txn, "a", 1, "2", 1, &err);
  must(err);
  rocksdb_transaction_put(txn, "b", 1, "new", 3, &err);
  must(err);
  txn_get(txn, "a");
  size_t len;
  char* value = rocksdb_transactiondb_get(db, ro, "a", 1, &len, &err);
  must(err);
  show("outside", value, len);
  rocksdb_free(value);
  rocksdb_transactiondb_put(db, wo, "a", 1, "x", 1, &err);
  said("a plain write to a locked key", &err);
  rocksdb_transaction_t* other = rocksdb_transaction_begin(db, wo, txn_options, NULL);
  value = rocksdb_transaction_get_for_update(other, ro, "a", 1, &len, 1, &err);
  said("a locked key", &err);
  rocksdb_transaction_set_savepoint(txn);
  rocksdb_transaction_delete(txn, "b", 1, &err);
  must(err);
  txn_get(txn, "b");
  rocksdb_transaction_rollback_to_savepoint(txn, &err);
  said("rollback to the savepoint", &err);
  rocksdb_transaction_rollback_to_savepoint(txn, &err);
  said("rollback without a savepoint", &err);
  txn_get(txn, "b");
  rocksdb_iterator_t* iter = rocksdb_transaction_create_iterator(txn, ro);
  all(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_transaction_commit(txn, &err);
  must(err);
  value = rocksdb_transaction_get_for_update(other, ro, "a", 1, &len, 1, &err);
  must(err);
  show("for update", value, len);
  rocksdb_free(value);
  rocksdb_transaction_put(other, "a", 1, "gone", 4, &err);
  must(err);
  rocksdb_transaction_rollback(other, &err);
  must(err);
  value = rocksdb_transactiondb_get(db, ro, "a", 1, &len, &err);
  must(err);
  show("after the rollback", value, len);
  rocksdb_free(value);
  txn = rocksdb_transaction_begin(db, wo, txn_options, txn);
  txn_get(txn, "b");
  rocksdb_transaction_options_t* at_snapshot = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_set_snapshot(at_snapshot, 1);
  other = rocksdb_transaction_begin(db, wo, at_snapshot, other);
  rocksdb_transactiondb_put(db, wo, "s", 1, "later", 5, &err);
  must(err);
  txn_get(other, "s");
  const rocksdb_snapshot_t* own = rocksdb_transaction_get_snapshot(other);
  rocksdb_readoptions_t* read_own = rocksdb_readoptions_create();
  rocksdb_readoptions_set_snapshot(read_own, own);
  value = rocksdb_transaction_get(other, read_own, "s", 1, &len, &err);
  must(err);
  show("at the transaction's snapshot", value, len);
  rocksdb_free(value);
  iter = rocksdb_transaction_create_iterator(other, read_own);
  all(iter);
  rocksdb_iter_destroy(iter);
  rocksdb_transaction_get_for_update(other, ro, "s", 1, &len, 1, &err);
  said("a key that was written after the snapshot", &err);
  rocksdb_readoptions_set_snapshot(read_own, NULL);
  rocksdb_readoptions_destroy(read_own);
  rocksdb_free((void*)own);
  rocksdb_transaction_options_destroy(at_snapshot);
  rocksdb_transaction_set_name(txn, "name", 4, &err);
  must(err);
  char* name = rocksdb_transaction_get_name(txn, &len);
  show("name", name, len);
  rocksdb_free(name);
  rocksdb_transaction_put(txn, "p", 1, "prepared", 8, &err);
  must(err);
  rocksdb_transaction_prepare(txn, &err);
  said("prepare", &err);
  rocksdb_transaction_commit(txn, &err);
  said("commit", &err);
  value = rocksdb_transactiondb_get(db, ro, "p", 1, &len, &err);
  must(err);
  show("prepared", value, len);
  rocksdb_free(value);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "w", 1, "batch", 5);
  rocksdb_transactiondb_write(db, wo, batch, &err);
  must(err);
  rocksdb_writebatch_destroy(batch);
  rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
  get(base, "w");
  rocksdb_transactiondb_close_base_db(base);
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_destroy(other);
  rocksdb_transaction_options_destroy(txn_options);
  rocksdb_transactiondb_options_destroy(db_options);
  rocksdb_transactiondb_close(db);

  rocksdb_optimistictransactiondb_t* odb = rocksdb_optimistictransactiondb_open(options, path(dir, "optimistic"), &err);
  must(err);
  rocksdb_optimistictransaction_options_t* o_options = rocksdb_optimistictransaction_options_create();
  txn = rocksdb_optimistictransaction_begin(odb, wo, o_options, NULL);
  rocksdb_transaction_put(txn, "a", 1, "mine", 4, &err);
  must(err);
  base = rocksdb_optimistictransactiondb_get_base_db(odb);
  put(base, "a", "theirs");
  rocksdb_transaction_commit(txn, &err);
  said("a conflict", &err);
  get(base, "a");
  rocksdb_optimistictransactiondb_close_base_db(base);
  rocksdb_transaction_destroy(txn);
  rocksdb_optimistictransaction_options_destroy(o_options);
  rocksdb_optimistictransactiondb_close(odb);
  rocksdb_options_destroy(options);
}

static void information(const char* dir) {
  start("information");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_options_enable_statistics(options);
  rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create(100 << 20, 100000, 10);
  rocksdb_options_set_ratelimiter(options, limiter);
  rocksdb_ratelimiter_destroy(limiter);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_env_set_background_threads(env, 2);
  rocksdb_options_set_env(options, env);
  rocksdb_t* db = rocksdb_open(options, path(dir, "info"), &err);
  must(err);
  put(db, "a", "1");
  put(db, "z", "2");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_column_family_metadata_t* metadata = rocksdb_get_column_family_metadata(db);
  printf("files: %d, levels: %d\n", (int)rocksdb_column_family_metadata_get_file_count(metadata),
         (int)rocksdb_column_family_metadata_get_level_count(metadata));
  char* name = rocksdb_column_family_metadata_get_name(metadata);
  printf("family: %s, bytes: %d\n", name, rocksdb_column_family_metadata_get_size(metadata) > 0);
  rocksdb_free(name);
  rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(metadata, 0);
  printf("level %d: %d files\n", rocksdb_level_metadata_get_level(level), (int)rocksdb_level_metadata_get_file_count(level));
  rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(level, 0);
  size_t len;
  char* key = rocksdb_sst_file_metadata_get_smallestkey(file, &len);
  show("smallest", key, len);
  rocksdb_free(key);
  key = rocksdb_sst_file_metadata_get_largestkey(file, &len);
  show("largest", key, len);
  rocksdb_free(key);
  rocksdb_sst_file_metadata_destroy(file);
  rocksdb_level_metadata_destroy(level);
  rocksdb_column_family_metadata_destroy(metadata);
  put(db, "b", "3");
  rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
  rocksdb_memory_consumers_add_db(consumers, db);
  rocksdb_memory_usage_t* usage = rocksdb_approximate_memory_usage_create(consumers, &err);
  must(err);
  printf("memtables: %d\n", rocksdb_approximate_memory_usage_get_mem_table_total(usage) > 0);
  rocksdb_approximate_memory_usage_destroy(usage);
  rocksdb_memory_consumers_destroy(consumers);
  char* text = rocksdb_options_statistics_get_string(options);
  printf("statistics: %d\n", strstr(text, "rocksdb.number.keys.written") != NULL);
  rocksdb_free(text);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, ro);
  rocksdb_iter_seek_to_first(iter);
  rocksdb_slice_t slice = rocksdb_iter_key_slice(iter);
  show("slice", slice.data, slice.size);
  slice = rocksdb_iter_value_slice(iter);
  show("slice", slice.data, slice.size);
  rocksdb_iter_destroy(iter);
  rocksdb_close(db);
  rocksdb_destroy_db(options, path(dir, "info"), &err);
  said("destroy", &err);
  rocksdb_options_set_create_if_missing(options, 0);
  db = rocksdb_open(options, path(dir, "info"), &err);
  said("open what was destroyed", &err);
  rocksdb_destroy_db(options, path(dir, "never"), &err);
  said("destroy nothing", &err);
  mkdir(path(dir, "plain"), 0755);
  FILE* notes = fopen(path(dir, "plain/notes"), "w");
  if (notes == NULL || fclose(notes) != 0) exit(1);
  rocksdb_destroy_db(options, path(dir, "plain"), &err);
  said("destroy what is no database", &err);
  notes = fopen(path(dir, "plain/notes"), "r");
  printf("notes: %s\n", notes == NULL ? "gone" : "kept");
  if (notes != NULL) fclose(notes);
  rocksdb_env_destroy(env);
  rocksdb_options_destroy(options);
}

/* The tables of a database: their number, and their smallest keys. */
static void tables_of(rocksdb_t* db) {
  const rocksdb_livefiles_t* live = rocksdb_livefiles(db);
  printf("tables: %d\n", rocksdb_livefiles_count(live));
  for (int i = 0; i < rocksdb_livefiles_count(live); i++) {
    size_t len;
    const char* key = rocksdb_livefiles_smallestkey(live, i, &len);
    show("smallest", key, len);
  }
  rocksdb_livefiles_destroy(live);
}

/* Writes two versions of twelve keys under three prefixes, and compacts them. */
static void in_prefixes(rocksdb_t* db) {
  char key[16], *err = NULL;
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  for (int round = 0; round < 2; round++) {
    for (int n = 0; n < 12; n++) {
      snprintf(key, sizeof key, "p%d/%02d", n / 4, n);
      put(db, key, "v");
    }
    rocksdb_flush(db, flush, &err);
    must(err);
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_flushoptions_destroy(flush);
}

static void tables(const char* dir) {
  start("tables");
  char* err = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_sst_partitioner_factory_t* partitioner = rocksdb_sst_partitioner_fixed_prefix_factory_create(2);
  rocksdb_options_set_sst_partitioner_factory(options, partitioner);
  rocksdb_sst_partitioner_factory_destroy(partitioner);
  rocksdb_options_t* copy = rocksdb_options_create_copy(options);
  rocksdb_options_destroy(options);
  rocksdb_t* db = rocksdb_open(copy, path(dir, "partitions"), &err);
  must(err);
  in_prefixes(db);
  tables_of(db);
  rocksdb_close(db);
  rocksdb_options_destroy(copy);

  /* By name, in an option string. */
  options = creating();
  rocksdb_options_t* named = rocksdb_options_create();
  rocksdb_get_options_from_string(options, "sst_partitioner_factory={id=SstPartitionerFixedPrefixFactory;length=1;}", named, &err);
  must(err);
  db = rocksdb_open(named, path(dir, "one"), &err);
  must(err);
  in_prefixes(db);
  tables_of(db);
  rocksdb_close(db);
  rocksdb_options_destroy(named);
  rocksdb_options_destroy(options);

  /* Deletions: too few, then enough of them for each of the three functions. */
  for (int kind = 0; kind < 4; kind++) {
    options = creating();
    if (kind == 0) rocksdb_options_add_compact_on_deletion_collector_factory(options, 128, 9);
    if (kind == 1) rocksdb_options_add_compact_on_deletion_collector_factory(options, 128, 8);
    if (kind == 2) rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(options, 0, 0, 0.5);
    if (kind == 3) rocksdb_options_add_compact_on_deletion_collector_factory_min_file_size(options, 128, 8, 0, 1 << 20);
    char name[16];
    snprintf(name, sizeof name, "deletions%d", kind);
    db = rocksdb_open(options, path(dir, name), &err);
    must(err);
    in_prefixes(db);
    char key[16];
    for (int n = 0; n < 8; n++) {
      snprintf(key, sizeof key, "p%d/%02d", n / 4, n);
      rocksdb_delete(db, wo, key, strlen(key), &err);
      must(err);
    }
    for (int n = 0; n < 8; n++) {
      snprintf(key, sizeof key, "p0/%02d more", n);
      put(db, key, "v");
    }
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &err);
    must(err);
    rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
    rocksdb_wait_for_compact(db, wait, &err);
    must(err);
    printf("kind %d: ", kind);
    tables_of(db);
    rocksdb_wait_for_compact_options_destroy(wait);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  begin();
  opening(argv[1]);
  settings(argv[1]);
  keys(argv[1]);
  batches(argv[1]);
  iterators(argv[1]);
  families(argv[1]);
  callbacks(argv[1]);
  copies(argv[1]);
  backups(argv[1]);
  files(argv[1]);
  behind(argv[1]);
  transactions(argv[1]);
  information(argv[1]);
  tables(argv[1]);
  return end();
}
