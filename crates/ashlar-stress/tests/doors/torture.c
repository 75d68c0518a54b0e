/* Writes a case of `rel torture --through` through the C interface until it is killed. src/torture/door.rs has the words of the
 * command line and the bytes of the operations. An error ends the program. */

#include <pthread.h>
#include <rocksdb/c.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FAMILIES = 3, MAX_WRITERS = 16 };
enum { PUT = 0, DELETE = 1, MERGE = 2, DELETE_RANGE = 3 };

static const char* const names[FAMILIES] = {"default", "one", "two"};
static rocksdb_t* db;
static rocksdb_column_family_handle_t* families[FAMILIES];
static const char* scripts;
static int progress;

static void die(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void must(const char* what, char* err) {
  if (err != NULL) die(what, err);
}

/* A script, and the place of the next byte. */
struct reader {
  const unsigned char* bytes;
  size_t len;
  size_t at;
};

static const unsigned char* take(struct reader* from, size_t len) {
  if (from->len - from->at < len) die("script", "an operation is cut off");
  from->at += len;
  return from->bytes + from->at - len;
}

static const char* field(struct reader* from, size_t* len) {
  const unsigned char* b = take(from, 4);
  *len = b[0] | (size_t)b[1] << 8 | (size_t)b[2] << 16 | (size_t)b[3] << 24;
  return (const char*)take(from, *len);
}

static void add(rocksdb_writebatch_t* batch, struct reader* from) {
  int kind = *take(from, 1);
  int number = *take(from, 1);
  if (number >= FAMILIES) die("script", "no such family");
  rocksdb_column_family_handle_t* family = families[number];
  size_t key_len, value_len;
  const char* key = field(from, &key_len);
  const char* value = field(from, &value_len);
  switch (kind) {
    case PUT:
      rocksdb_writebatch_put_cf(batch, family, key, key_len, value, value_len);
      break;
    case DELETE:
      rocksdb_writebatch_delete_cf(batch, family, key, key_len);
      break;
    case MERGE:
      rocksdb_writebatch_merge_cf(batch, family, key, key_len, value, value_len);
      break;
    case DELETE_RANGE:
      rocksdb_writebatch_delete_range_cf(batch, family, key, key_len, value, value_len);
      break;
    default:
      die("script", "no such kind of change");
  }
}

static struct reader script_of(int writer) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d", scripts, writer);
  FILE* file = fopen(path, "rb");
  if (file == NULL) die(path, "cannot be opened");
  fseek(file, 0, SEEK_END);
  long len = ftell(file);
  rewind(file);
  unsigned char* bytes = malloc((size_t)len);
  if (fread(bytes, 1, (size_t)len, file) != (size_t)len) die(path, "cannot be read");
  fclose(file);
  return (struct reader){bytes, (size_t)len, 0};
}

static void acknowledge(int writer, uint64_t count) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(count >> (8 * i));
  if (pwrite(progress, bytes, 8, 8 * (off_t)writer) != 8) die("progress", "cannot be written");
}

static void* write_all(void* number) {
  int writer = (int)(intptr_t)number;
  struct reader script = script_of(writer);
  rocksdb_writeoptions_t* plain = rocksdb_writeoptions_create();
  rocksdb_writeoptions_t* synced = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_sync(synced, 1);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  for (uint64_t done = 1; script.at < script.len; done++) {
    char* err = NULL;
    int sync = *take(&script, 1);
    int changes = *take(&script, 1);
    rocksdb_writebatch_clear(batch);
    for (int i = 0; i < changes; i++) add(batch, &script);
    rocksdb_write(db, sync ? synced : plain, batch, &err);
    must("write", err);
    acknowledge(writer, done);
  }
  return NULL;
}

static void open_database(const char* dir, const char* text) {
  char* err = NULL;
  rocksdb_options_t* base = rocksdb_options_create();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_get_options_from_string(base, text, options, &err);
  must("options", err);
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  const rocksdb_options_t* each[FAMILIES] = {options, options, options};
  db = rocksdb_open_column_families(options, dir, FAMILIES, names, each, families, &err);
  must("open", err);
}

int main(int argc, char** argv) {
  if (argc != 6) die("usage", "torture DIRECTORY OPTIONS SCRIPTS PROGRESS WRITERS");
  scripts = argv[3];
  progress = open(argv[4], O_WRONLY);
  int writers = atoi(argv[5]);
  if (progress < 0 || writers < 1 || writers > MAX_WRITERS) die(argv[4], "no file of progress, or too many writers");
  open_database(argv[1], argv[2]);
  pthread_t threads[MAX_WRITERS];
  for (int i = 0; i < writers; i++) pthread_create(&threads[i], NULL, write_all, (void*)(intptr_t)i);
  for (int i = 0; i < writers; i++) pthread_join(threads[i], NULL);
  /* A rig that died does not kill. */
  sleep(120);
  return 1;
}
