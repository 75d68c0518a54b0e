/* One cache of blocks for several databases and families: the cached blocks never exceed its capacity. */

#include "prints.h"

#define DATABASES 3
#define KEYS 400
#define VALUE 4000

static rocksdb_t* dbs[DATABASES];
static rocksdb_column_family_handle_t* more[DATABASES];

static void fill(int at, const char* dir, rocksdb_options_t* options) {
  char* err = NULL;
  char name[16], key[16];
  static char value[VALUE];
  memset(value, 'v', sizeof value);
  snprintf(name, sizeof name, "db%d", at);
  dbs[at] = rocksdb_open(options, path(dir, name), &err);
  must(err);
  more[at] = rocksdb_create_column_family(dbs[at], options, "more", &err);
  must(err);
  for (int n = 0; n < KEYS; n++) {
    snprintf(key, sizeof key, "k%05d", n);
    rocksdb_put(dbs[at], wo, key, 6, value, sizeof value, &err);
    must(err);
    rocksdb_put_cf(dbs[at], wo, more[at], key, 6, value, sizeof value, &err);
    must(err);
  }
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(dbs[at], flush, &err);
  must(err);
  rocksdb_flush_cf(dbs[at], flush, more[at], &err);
  must(err);
  rocksdb_flushoptions_destroy(flush);
}

/* Reads every key of each database, and returns the number of keys that were found. */
static int read_all(void) {
  int found = 0;
  for (int round = 0; round < 2; round++) {
    for (int at = 0; at < DATABASES; at++) {
      rocksdb_iterator_t* of[2] = {rocksdb_create_iterator(dbs[at], ro), rocksdb_create_iterator_cf(dbs[at], ro, more[at])};
      for (int which = 0; which < 2; which++) {
        for (rocksdb_iter_seek_to_first(of[which]); rocksdb_iter_valid(of[which]); rocksdb_iter_next(of[which])) found++;
        rocksdb_iter_destroy(of[which]);
      }
    }
  }
  return found;
}

static void tell(const char* what, rocksdb_cache_t* cache, size_t least) {
  size_t used = rocksdb_cache_get_usage(cache), capacity = rocksdb_cache_get_capacity(cache);
  /* RocksDB has some bytes in a cache that is smaller than any block. */
  printf("%s: capacity %d, within it: %d, used: %d\n", what, (int)capacity, used <= capacity || used < 1000, used >= least);
  if (getenv("SHOW_ERRORS") != NULL) fprintf(stderr, "%s: %d of %d\n", what, (int)used, (int)capacity);
}

/* The number that a database tells for all databases of the cache. */
static void property(const char* name, rocksdb_cache_t* cache) {
  char* value = rocksdb_property_value(dbs[0], name);
  printf("%s is that of the cache: %d\n", name, value != NULL && strtoull(value, NULL, 10) == rocksdb_cache_get_usage(cache));
  rocksdb_free(value);
}

static void of_capacity(const char* what, const char* dir, size_t capacity) {
  char* err = NULL;
  start(what);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(capacity);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  for (int at = 0; at < DATABASES; at++) fill(at, path(dir, what), options);
  printf("found %d\n", read_all());
  tell("read", cache, capacity / 2);
  property("rocksdb.block-cache-usage", cache);
  if (capacity > 1 << 20) {
    rocksdb_cache_set_capacity(cache, capacity / 2);
    tell("lowered", cache, capacity / 4);
    printf("found %d\n", read_all());
    tell("read again", cache, capacity / 4);
    rocksdb_cache_set_capacity(cache, capacity);
    printf("found %d\n", read_all());
    tell("raised", cache, capacity / 2);
    rocksdb_iterator_t* iter = rocksdb_create_iterator(dbs[1], ro);
    rocksdb_iter_seek_to_first(iter);
    printf("pinned by an iterator: %d\n", rocksdb_cache_get_pinned_usage(cache) > 0);
    rocksdb_iter_destroy(iter);
    rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
    for (int at = 0; at < DATABASES; at++) rocksdb_memory_consumers_add_db(consumers, dbs[at]);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    rocksdb_memory_consumers_add_cache(consumers, cache);
    rocksdb_memory_usage_t* usage = rocksdb_approximate_memory_usage_create(consumers, &err);
    must(err);
    printf("the memory of caches is that of the cache: %d\n",
           rocksdb_approximate_memory_usage_get_cache_total(usage) == rocksdb_cache_get_usage(cache));
    rocksdb_approximate_memory_usage_destroy(usage);
    rocksdb_memory_consumers_destroy(consumers);
  }
  for (int at = 0; at < DATABASES; at++) {
    rocksdb_column_family_handle_destroy(more[at]);
    rocksdb_close(dbs[at]);
  }
  rocksdb_cache_destroy(cache);
  rocksdb_options_destroy(options);
}

/* A database whose options are loaded gets the cache of the call. */
static void loaded(const char* dir) {
  char* err = NULL;
  start("loaded options");
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_options_t* options;
  rocksdb_options_t** each;
  char** names;
  size_t count;
  rocksdb_load_latest_options(dir, env, 0, cache, &options, &count, &names, &each, &err);
  must(err);
  printf("families: %d\n", (int)count);
  rocksdb_column_family_handle_t* handles[8];
  dbs[0] = rocksdb_open_column_families(options, dir, (int)count, (const char* const*)names, (const rocksdb_options_t* const*)each,
                                        handles, &err);
  must(err);
  int found = 0;
  rocksdb_iterator_t* iter = rocksdb_create_iterator_cf(dbs[0], ro, handles[1]);
  for (rocksdb_iter_seek_to_first(iter); rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) found++;
  rocksdb_iter_destroy(iter);
  printf("found %d\n", found);
  tell("read", cache, 1 << 19);
  for (size_t at = 0; at < count; at++) rocksdb_column_family_handle_destroy(handles[at]);
  rocksdb_close(dbs[0]);
  rocksdb_load_latest_options_destroy(options, names, each, count);
  rocksdb_env_destroy(env);
  rocksdb_cache_destroy(cache);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  mkdir(path(argv[1], "8 MiB"), 0755);
  mkdir(path(argv[1], "1 MiB"), 0755);
  mkdir(path(argv[1], "one byte"), 0755);
  mkdir(path(argv[1], "nothing"), 0755);
  of_capacity("8 MiB", argv[1], 8 << 20);
  of_capacity("1 MiB", argv[1], 1 << 20);
  of_capacity("one byte", argv[1], 1);
  of_capacity("nothing", argv[1], 0);
  loaded(path(argv[1], "8 MiB/db0"));
  return end();
}
