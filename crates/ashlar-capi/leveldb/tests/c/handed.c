/* Opens the database `db` of its directory. Prints the entries if there are some, and writes a thousand. */

#include <leveldb/c.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  char* err = NULL;
  char dir[4096];
  snprintf(dir, sizeof dir, "%s/db", argv[1]);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, dir, &err);
  if (err != NULL) return printf("%s\n", err), 1;
  leveldb_readoptions_t* ro = leveldb_readoptions_create();
  leveldb_iterator_t* iter = leveldb_create_iterator(db, ro);
  char first[64] = "", last[64] = "";
  int count = 0;
  for (leveldb_iter_seek_to_first(iter); leveldb_iter_valid(iter); leveldb_iter_next(iter), count++) {
    size_t klen, vlen;
    const char* key = leveldb_iter_key(iter, &klen);
    const char* value = leveldb_iter_value(iter, &vlen);
    snprintf(last, sizeof last, "%.*s = %.*s", (int)klen, key, (int)vlen, value);
    if (count == 0) memcpy(first, last, sizeof first);
  }
  if (count > 0) printf("entries %d, first %s, last %s\n", count, first, last);
  leveldb_iter_destroy(iter);
  leveldb_writeoptions_t* wo = leveldb_writeoptions_create();
  for (int n = 0; n < 1000; n++) {
    char key[16], value[16];
    snprintf(key, sizeof key, "key%06d", n);
    snprintf(value, sizeof value, "value%d", n);
    leveldb_put(db, wo, key, strlen(key), value, strlen(value), &err);
  }
  if (err != NULL) return printf("%s\n", err), 1;
  leveldb_close(db);
  printf("wrote\n");
  return 0;
}
