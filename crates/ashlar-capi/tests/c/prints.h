/* What the programs share: they print what a library answers, and the tests compare the output of two libraries. An error is
 * printed up to its first colon, because the words behind it differ. With SHOW_ERRORS the whole error goes to stderr. */

#ifndef PRINTS_H
#define PRINTS_H

#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static rocksdb_readoptions_t* ro;
static rocksdb_writeoptions_t* wo;

/* Makes the options that all calls share. */
static void begin(void) {
  ro = rocksdb_readoptions_create();
  wo = rocksdb_writeoptions_create();
}

/* Frees them, and prints the last line. Returns the exit status. */
static int end(void) {
  rocksdb_readoptions_destroy(ro);
  rocksdb_writeoptions_destroy(wo);
  printf("end\n");
  return 0;
}

static const char* phase = "";

static void start(const char* name) {
  phase = name;
  printf("== %s\n", name);
}

/* Prints, frees and clears an error. */
static void said(const char* what, char** err) {
  if (*err == NULL) {
    printf("%s: ok\n", what);
    return;
  }
  char* colon = strchr(*err, ':');
  printf("%s: %.*s\n", what, colon == NULL ? (int)strlen(*err) : (int)(colon - *err), *err);
  if (getenv("SHOW_ERRORS") != NULL) fprintf(stderr, "%s: %s: %s\n", phase, what, *err);
  free(*err);
  *err = NULL;
}

/* Ends the program at an error. */
static void must(char* err) {
  if (err != NULL) {
    printf("%s: %s\n", phase, err);
    exit(1);
  }
}

static void show(const char* what, const char* bytes, size_t len) {
  if (bytes == NULL) {
    printf("%s: none\n", what);
  } else {
    printf("%s: '%.*s'\n", what, (int)len, bytes);
  }
}

/* Prints and frees a value that a call returned. */
static void show_and_free(const char* what, char* bytes, size_t len) {
  show(what, bytes, len);
  rocksdb_free(bytes);
}

/* A path in a directory, valid until the fourth call from now. */
static const char* path(const char* dir, const char* name) {
  static char joined[4][4096];
  static int next = 0;
  next = (next + 1) % 4;
  snprintf(joined[next], sizeof joined[next], "%s/%s", dir, name);
  return joined[next];
}

static void put(rocksdb_t* db, const char* key, const char* value) {
  char* err = NULL;
  rocksdb_put(db, wo, key, strlen(key), value, strlen(value), &err);
  must(err);
}

/* Prints the entry of a valid iterator, with a text between key and value. */
static void print_entry(const rocksdb_iterator_t* iter, const char* between) {
  size_t klen, vlen;
  const char* key = rocksdb_iter_key(iter, &klen);
  const char* value = rocksdb_iter_value(iter, &vlen);
  printf("%.*s%s%.*s", (int)klen, key, between, (int)vlen, value);
}

/* The functions of a walk over a batch. */
static void walk_put(void* state, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)state;
  printf("  put %.*s = %.*s\n", (int)klen, k, (int)vlen, v);
}
static void walk_deleted(void* state, const char* k, size_t klen) {
  (void)state;
  printf("  deleted %.*s\n", (int)klen, k);
}
static void walk_log(void* state, const char* blob, size_t len) {
  (void)state;
  printf("  log data %.*s\n", (int)len, blob);
}

static void walk_put_cf(void* state, uint32_t cf, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)state;
  printf("  put %u %.*s = %.*s\n", cf, (int)klen, k, (int)vlen, v);
}
static void walk_deleted_cf(void* state, uint32_t cf, const char* k, size_t klen) {
  (void)state;
  printf("  deleted %u %.*s\n", cf, (int)klen, k);
}
static void walk_merge_cf(void* state, uint32_t cf, const char* k, size_t klen, const char* v, size_t vlen) {
  (void)state;
  printf("  merge %u %.*s + %.*s\n", cf, (int)klen, k, (int)vlen, v);
}

/* The order of a comparator that reverses the bytewise order. */
static int reverse(void* state, const char* a, size_t alen, const char* b, size_t blen) {
  (void)state;
  int order = memcmp(b, a, alen < blen ? alen : blen);
  if (order != 0) return order;
  return alen < blen ? 1 : alen > blen ? -1 : 0;
}

/* The result of a merge operator that joins a value and operands with '+'. */
static char* joined(const char* existing, size_t existing_len, const char* const* list, const size_t* lens, int count, size_t* len) {
  size_t total = existing == NULL ? 0 : existing_len;
  for (int i = 0; i < count; i++) total += lens[i] + 1;
  char* out = malloc(total + 1);
  size_t at = 0;
  if (existing != NULL) {
    memcpy(out, existing, existing_len);
    at = existing_len;
  }
  for (int i = 0; i < count; i++) {
    if (existing != NULL || i > 0) out[at++] = '+';
    memcpy(out + at, list[i], lens[i]);
    at += lens[i];
  }
  *len = at;
  return out;
}

/* A partial merge that refuses all operands, so that each reaches the full merge. */
static char* partial_merge(void* state, const char* key, size_t key_length, const char* const* list, const size_t* lens,
                           int count, unsigned char* success, size_t* len) {
  (void)state;
  (void)key;
  (void)key_length;
  (void)list;
  (void)lens;
  (void)count;
  *success = 0;
  *len = 0;
  return NULL;
}

/* A full merge that joins all. */
static char* full_merge(void* state, const char* key, size_t key_length, const char* existing, size_t existing_len,
                        const char* const* list, const size_t* lens, int count, unsigned char* success, size_t* len) {
  (void)state, (void)key, (void)key_length;
  *success = 1;
  return joined(existing, existing_len, list, lens, count, len);
}

/* The destructor of a state that needs none. */
static void nothing(void* state) { (void)state; }

/* The name of a state that is a string. */
static const char* name_of(void* state) { return state; }

/* Opens a database, which must succeed. */
static rocksdb_t* open_at(const rocksdb_options_t* options, const char* dir) {
  char* err = NULL;
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  must(err);
  return db;
}

static int exists(const char* file) {
  struct stat info;
  return stat(file, &info) == 0;
}

#endif
