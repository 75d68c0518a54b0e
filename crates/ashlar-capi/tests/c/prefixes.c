/* Writes or reads a database whose prefixes end behind the first colon of a key: `prefixes DIR write`, `prefixes DIR read NAME`. The
 * tests write with one library and read with the other. NAME is the name of the reader's extractor. */

#include "prints.h"

static char* behind_colon(void* state, const char* key, size_t length, size_t* taken) {
  (void)state;
  const char* colon = memchr(key, ':', length);
  *taken = colon == NULL ? 0 : (size_t)(colon - key) + 1;
  return (char*)key;
}

static unsigned char has_colon(void* state, const char* key, size_t length) {
  (void)state;
  return memchr(key, ':', length) != NULL;
}

static void gone(void* state) { (void)state; }

static rocksdb_options_t* options_of(const char* name, int whole_keys) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_options_enable_statistics(options);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_block_based_options_set_whole_key_filtering(table, whole_keys);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_slicetransform_t* own =
      rocksdb_slicetransform_create((void*)name, gone, behind_colon, has_colon, name_of);
  rocksdb_options_set_prefix_extractor(options, own);
  return options;
}

static rocksdb_t* open_with(rocksdb_options_t* options, const char* dir) {
  char* err = NULL;
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  must(err);
  return db;
}

static void write_all(const char* dir) {
  for (int table = 0; table < 8; table++) {
    rocksdb_options_t* options = options_of("test.Colon", table % 2);
    rocksdb_t* db = open_with(options, dir);
    rocksdb_writeoptions_t* wo = rocksdb_writeoptions_create();
    rocksdb_flushoptions_t* fo = rocksdb_flushoptions_create();
    char* err = NULL;
    char key[32];
    for (int n = 0; n < 20; n++) {
      snprintf(key, sizeof key, n % 5 == 4 ? "p%d" : n % 5 == 3 ? "p%d:%02d" : "p%d:x%02d", table, n);
      rocksdb_put(db, wo, key, strlen(key), key, strlen(key), &err);
      must(err);
    }
    rocksdb_put(db, wo, "a", 1, "first", 5, &err);
    must(err);
    rocksdb_put(db, wo, "z:", 2, "last", 4, &err);
    must(err);
    rocksdb_flush(db, fo, &err);
    must(err);
    rocksdb_flushoptions_destroy(fo);
    rocksdb_writeoptions_destroy(wo);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
  }
}

static void entries(const char* from, rocksdb_iterator_t* iter) {
  char* err = NULL;
  printf("from %s:", from);
  for (; rocksdb_iter_valid(iter); rocksdb_iter_next(iter)) {
    size_t length;
    const char* key = rocksdb_iter_key(iter, &length);
    printf(" %.*s", (int)length, key);
  }
  rocksdb_iter_get_error(iter, &err);
  must(err);
  printf("\n");
}

static void read_all(const char* dir, const char* name) {
  rocksdb_options_t* options = options_of(name, 1);
  rocksdb_t* db = open_with(options, dir);
  rocksdb_readoptions_t* same = rocksdb_readoptions_create();
  rocksdb_readoptions_set_prefix_same_as_start(same, 1);
  rocksdb_readoptions_t* total = rocksdb_readoptions_create();
  rocksdb_readoptions_set_total_order_seek(total, 1);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, same);
  char from[32];
  for (int n = 0; n < 12; n++) {
    snprintf(from, sizeof from, n % 2 ? "p%d:" : "p%d:x05", n);
    rocksdb_iter_seek(iter, from, strlen(from));
    entries(from, iter);
  }
  rocksdb_iter_destroy(iter);
  iter = rocksdb_create_iterator(db, total);
  rocksdb_iter_seek_to_first(iter);
  entries("the first", iter);
  rocksdb_iter_seek(iter, "p3", 2);
  entries("p3", iter);
  rocksdb_iter_destroy(iter);
  const char* asked[] = {"p0:x00", "p3:03", "p7", "p8", "p8:x00", "a", "z:", "p0:x99"};
  for (int n = 0; n < 8; n++) {
    char* err = NULL;
    size_t length;
    char* value = rocksdb_get(db, total, asked[n], strlen(asked[n]), &length, &err);
    must(err);
    printf("%s: %.*s\n", asked[n], value == NULL ? 4 : (int)length, value == NULL ? "none" : value);
    rocksdb_free(value);
  }
  char* counts = rocksdb_options_statistics_get_string(options);
  char* useful = strstr(counts, "rocksdb.bloom.filter.prefix.useful COUNT : ");
  if (useful != NULL) fprintf(stderr, "%.*s\n", (int)strcspn(useful, "\n"), useful);
  rocksdb_free(counts);
  rocksdb_readoptions_destroy(same);
  rocksdb_readoptions_destroy(total);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
  if (argc == 3) write_all(argv[1]);
  if (argc == 4) read_all(argv[1], argv[3]);
  return 0;
}
