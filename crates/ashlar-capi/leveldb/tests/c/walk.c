/* Calls every function of LevelDB's interface, and prints what it answers. An error is printed up to its first colon. */

#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void said(const char* what, char** err) {
  if (*err == NULL) {
    printf("%s: ok\n", what);
    return;
  }
  char* colon = strchr(*err, ':');
  printf("%s: %.*s\n", what, colon == NULL ? (int)strlen(*err) : (int)(colon - *err), *err);
  leveldb_free(*err);
  *err = NULL;
}

static const char* path(const char* dir, const char* name) {
  static char joined[4][4096];
  static int next = 0;
  next = (next + 1) % 4;
  snprintf(joined[next], sizeof joined[next], "%s/%s", dir, name);
  return joined[next];
}

static void show(leveldb_t* db, const leveldb_readoptions_t* options, const char* key) {
  char* err = NULL;
  size_t len = 77;
  char* value = leveldb_get(db, options, key, strlen(key), &len, &err);
  printf("%s: %.*s, %zu bytes, %s\n", key, value == NULL ? 4 : (int)len, value == NULL ? "none" : value, len, err == NULL ? "ok" : err);
  leveldb_free(value);
}

static void walk_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  printf("%s put %.*s = %.*s\n", (const char*)state, (int)klen, k, (int)vlen, v);
}
static void walk_deleted(void* state, const char* k, size_t klen) {
  printf("%s deleted %.*s\n", (const char*)state, (int)klen, k);
}

static void entries(leveldb_t* db, const leveldb_readoptions_t* options) {
  char* err = NULL;
  leveldb_iterator_t* iter = leveldb_create_iterator(db, options);
  printf("valid before a seek: %d\n", leveldb_iter_valid(iter));
  for (leveldb_iter_seek_to_first(iter); leveldb_iter_valid(iter); leveldb_iter_next(iter)) {
    size_t klen, vlen;
    const char* key = leveldb_iter_key(iter, &klen);
    const char* value = leveldb_iter_value(iter, &vlen);
    printf("  %.*s = %.*s\n", (int)klen, key, (int)vlen, value);
  }
  for (leveldb_iter_seek_to_last(iter); leveldb_iter_valid(iter); leveldb_iter_prev(iter)) {
    size_t klen;
    const char* key = leveldb_iter_key(iter, &klen);
    printf("  back %.*s\n", (int)klen, key);
  }
  leveldb_iter_seek(iter, "b", 1);
  printf("seek b: %d\n", leveldb_iter_valid(iter));
  leveldb_iter_seek(iter, "zz", 2);
  printf("seek zz: %d\n", leveldb_iter_valid(iter));
  leveldb_iter_get_error(iter, &err);
  said("iterator", &err);
  leveldb_iter_destroy(iter);
}

static int compared, asked;
static int reverse(void* state, const char* a, size_t alen, const char* b, size_t blen) {
  (void)state;
  compared = 1;
  int order = memcmp(b, a, alen < blen ? alen : blen);
  if (order != 0) return order;
  return alen < blen ? 1 : alen > blen ? -1 : 0;
}
static void destructor(void* state) { printf("%s is destroyed\n", (const char*)state); }
static const char* name_of(void* state) { return state; }
static char* no_filter(void* state, const char* const* keys, const size_t* lens, int count, size_t* len) {
  (void)state, (void)keys, (void)lens, (void)count;
  asked = 1;
  *len = 1;
  return calloc(1, 1);
}
static uint8_t may_match(void* state, const char* key, size_t len, const char* filter, size_t filter_len) {
  (void)state, (void)key, (void)len, (void)filter, (void)filter_len;
  return 1;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  char* err = NULL;
  const char* dir = path(argv[1], "db");
  printf("version %d.%d\n", leveldb_major_version(), leveldb_minor_version());
  leveldb_env_t* env = leveldb_create_default_env();
  char* tests = leveldb_env_get_test_directory(env);
  printf("a directory for tests: %d\n", tests != NULL);
  leveldb_free(tests);
  leveldb_cache_t* cache = leveldb_cache_create_lru(1 << 20);
  leveldb_filterpolicy_t* bloom = leveldb_filterpolicy_create_bloom(10);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_env(options, env);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_filter_policy(options, bloom);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_write_buffer_size(options, 1 << 20);
  leveldb_options_set_max_open_files(options, 100);
  leveldb_options_set_block_size(options, 1024);
  leveldb_options_set_block_restart_interval(options, 8);
  leveldb_options_set_max_file_size(options, 1 << 20);
  leveldb_options_set_compression(options, leveldb_snappy_compression);

  leveldb_open(options, dir, &err);
  said("open of nothing", &err);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, dir, &err);
  said("open", &err);
  leveldb_open(options, dir, &err);
  said("a second open", &err);

  leveldb_readoptions_t* ro = leveldb_readoptions_create();
  leveldb_readoptions_set_verify_checksums(ro, 1);
  leveldb_readoptions_set_fill_cache(ro, 0);
  leveldb_writeoptions_t* wo = leveldb_writeoptions_create();
  leveldb_writeoptions_set_sync(wo, 1);
  show(db, ro, "a");
  leveldb_put(db, wo, "a", 1, "one", 3, &err);
  said("put", &err);
  leveldb_put(db, wo, "empty", 5, "", 0, &err);
  said("put of nothing", &err);
  show(db, ro, "a");
  show(db, ro, "empty");
  const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(db);
  leveldb_delete(db, wo, "a", 1, &err);
  said("delete", &err);
  leveldb_delete(db, wo, "never", 5, &err);
  said("delete of nothing", &err);
  show(db, ro, "a");
  leveldb_readoptions_set_snapshot(ro, snapshot);
  show(db, ro, "a");
  leveldb_readoptions_set_snapshot(ro, NULL);
  leveldb_release_snapshot(db, snapshot);

  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "gone", 4, "x", 1);
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, "b", 1, "two", 3);
  leveldb_writebatch_put(batch, "c", 1, "three", 5);
  leveldb_writebatch_delete(batch, "b", 1);
  leveldb_writebatch_t* more = leveldb_writebatch_create();
  leveldb_writebatch_put(more, "d", 1, "four", 4);
  leveldb_writebatch_append(batch, more);
  leveldb_writebatch_iterate(batch, "  batch", walk_put, walk_deleted);
  leveldb_write(db, wo, batch, &err);
  said("write", &err);
  leveldb_writebatch_destroy(more);
  leveldb_writebatch_destroy(batch);
  entries(db, ro);

  for (int n = 0; n < 2000; n++) {
    char key[16], value[200];
    snprintf(key, sizeof key, "k%06d", n);
    memset(value, 'a' + n % 26, sizeof value);
    leveldb_put(db, wo, key, 7, value, sizeof value, &err);
    if (n % 500 == 0) leveldb_writeoptions_set_sync(wo, 0);
  }
  said("many puts", &err);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  const char* starts[2] = {"k", "x"};
  const char* limits[2] = {"l", "y"};
  size_t one[2] = {1, 1};
  uint64_t sizes[2] = {7, 7};
  leveldb_approximate_sizes(db, 2, starts, one, limits, one, sizes);
  printf("sizes: %llu %llu\n", (unsigned long long)sizes[0], (unsigned long long)sizes[1]);
  printf("some bytes: %d, none: %d\n", sizes[0] > 1000, sizes[1] == 0);
  const char* names[] = {"leveldb.stats", "leveldb.sstables", "leveldb.num-files-at-level0", "leveldb.approximate-memory-usage", "leveldb.none", "stats"};
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
    char* value = leveldb_property_value(db, names[at]);
    printf("%s: %d\n", names[at], value != NULL);
    leveldb_free(value);
  }
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  leveldb_open(options, dir, &err);
  said("open of a database that exists", &err);
  leveldb_options_set_error_if_exists(options, 0);
  leveldb_repair_db(options, dir, &err);
  said("repair", &err);
  db = leveldb_open(options, dir, &err);
  said("open after the repair", &err);
  show(db, ro, "c");
  leveldb_close(db);
  leveldb_destroy_db(options, dir, &err);
  said("destroy", &err);
  leveldb_options_set_create_if_missing(options, 0);
  leveldb_open(options, dir, &err);
  said("open of a destroyed database", &err);

  leveldb_comparator_t* order = leveldb_comparator_create("comparator", destructor, reverse, name_of);
  leveldb_filterpolicy_t* own = leveldb_filterpolicy_create("policy", destructor, no_filter, may_match, name_of);
  leveldb_options_set_comparator(options, order);
  leveldb_options_set_filter_policy(options, own);
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_compression(options, leveldb_no_compression);
  db = leveldb_open(options, path(argv[1], "reversed"), &err);
  said("open with an order", &err);
  leveldb_put(db, wo, "a", 1, "1", 1, &err);
  leveldb_put(db, wo, "b", 1, "2", 1, &err);
  entries(db, ro);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  printf("compared: %d\n", compared);
  printf("policy asked: %d\n", asked);
  leveldb_close(db);
  leveldb_options_set_comparator(options, NULL);
  leveldb_readoptions_destroy(ro);
  leveldb_writeoptions_destroy(wo);
  leveldb_options_destroy(options);
  leveldb_comparator_destroy(order);
  leveldb_filterpolicy_destroy(own);
  leveldb_filterpolicy_destroy(bloom);
  leveldb_cache_destroy(cache);
  leveldb_env_destroy(env);
  printf("end\n");
  return 0;
}
