/* A wrong use of a handle: with the check of handles the program ends with a message. */

#include <leveldb/c.h>
#include <stddef.h>

static void put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)state;
  (void)k;
  (void)klen;
  (void)v;
  (void)vlen;
}
static void deleted(void* state, const char* k, size_t klen) {
  (void)state;
  (void)k;
  (void)klen;
}

int main(void) {
  leveldb_readoptions_t* options = leveldb_readoptions_create();
  leveldb_writebatch_iterate((const leveldb_writebatch_t*)options, NULL, put, deleted);
  return 0;
}
