/* A database of many families: what it costs to make them, to write to each, to let them idle, and to open them again. Lines
 * that begin with "took" are figures. The number of families is in FAMILIES. */

#define _POSIX_C_SOURCE 200809L
#include "prints.h"

#include <time.h>

#define MORE 10

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Memory that the process has allocated and touched, in KiB. */
static long resident(void) {
  FILE* status = fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0;
  while (status != NULL && fgets(line, sizeof line, status) != NULL) {
    if (sscanf(line, "RssAnon: %ld", &kib) == 1) break;
  }
  if (status != NULL) fclose(status);
  return kib;
}

static void took(const char* what, double begun, long before, int count) {
  double seconds = now() - begun;
  printf("took %.3f s to %s, %.1f KiB of memory for each family\n", seconds, what,
         (double)(resident() - before) / count);
}

static int count;
static char** names;
static const char* data;
static rocksdb_t* db;
static rocksdb_column_family_handle_t** handles;

static void open_all(rocksdb_options_t* options) {
  char* err = NULL;
  const rocksdb_options_t** each = malloc((size_t)count * sizeof *each);
  for (int i = 0; i < count; i++) each[i] = options;
  db = rocksdb_open_column_families(options, path(data, "db"), count, (const char* const*)names, each, handles, &err);
  must(err);
  free(each);
}

static void close_all(void) {
  for (int i = 0; i < count; i++) rocksdb_column_family_handle_destroy(handles[i]);
  rocksdb_close(db);
}

static void write_to_each(char version) {
  char value[100];
  memset(value, version, sizeof value);
  for (int i = 0; i < count; i++) {
    char* err = NULL;
    rocksdb_put_cf(db, wo, handles[i], names[i], strlen(names[i]), value, sizeof value, &err);
    must(err);
  }
}

static void check_each(char version) {
  int right = 0;
  for (int i = 0; i < count; i++) {
    char* err = NULL;
    size_t len = 0;
    char* value = rocksdb_get_cf(db, ro, handles[i], names[i], strlen(names[i]), &len, &err);
    must(err);
    right += value != NULL && len == 100 && value[0] == version && value[99] == version;
    rocksdb_free(value);
  }
  printf("values: %d of %d\n", right, count);
}

/* Makes families one at a time beside the others. */
static void add_more(rocksdb_options_t* options) {
  double begun = now();
  for (int i = 0; i < MORE; i++) {
    char* err = NULL;
    char name[32];
    snprintf(name, sizeof name, "more%d", i);
    rocksdb_column_family_handle_t* made = rocksdb_create_column_family(db, options, name, &err);
    must(err);
    rocksdb_drop_column_family(db, made, &err);
    must(err);
    rocksdb_column_family_handle_destroy(made);
  }
  printf("took %.1f ms to make and drop one family beside the others\n", (now() - begun) * 1000 / MORE);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  begin();
  data = argv[1];
  const char* wanted = getenv("FAMILIES");
  count = wanted == NULL ? 100 : atoi(wanted);
  names = calloc((size_t)count, sizeof *names);
  handles = calloc((size_t)count, sizeof *handles);
  for (int i = 0; i < count; i++) {
    names[i] = malloc(32);
    snprintf(names[i], 32, i == 0 ? "default" : "family%d", i);
  }
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);

  long before = resident();
  double begun = now();
  open_all(options);
  took("make the families in one open", begun, before, count);
  add_more(options);

  begun = now();
  write_to_each('1');
  took("write to each for the first time", begun, before, count);
  begun = now();
  write_to_each('2');
  took("write to each again", begun, before, count);
  check_each('2');
  begun = now();
  close_all();
  printf("took %.3f s to close\n", now() - begun);

  before = resident();
  begun = now();
  open_all(options);
  took("open them again", begun, before, count);
  check_each('2');
  close_all();

  for (int i = 0; i < count; i++) free(names[i]);
  free(names);
  free(handles);
  rocksdb_options_destroy(options);
  return end();
}
