/* A program with functions of RocksDB's names, which the loader prefers to those of a library. Calls within the library are not
 * the program's business. */

#include "prints.h"

unsigned char* rocksdb_compaction_options_canceled_create(void) {
  printf("the program's create\n");
  return NULL;
}
void rocksdb_compaction_options_canceled_set(unsigned char* canceled, unsigned char value) {
  (void)canceled;
  (void)value;
  printf("the program's set\n");
}
void rocksdb_compaction_options_canceled_destroy(unsigned char* canceled) {
  (void)canceled;
  printf("the program's destroy\n");
}
void rocksdb_list_column_families_destroy(char** list, size_t len) {
  (void)list;
  (void)len;
  printf("the program's list\n");
}

int main(void) {
  begin();
  unsigned char* canceled = rocksdb_open_and_compact_canceled_create();
  printf("a flag: %d\n", canceled != NULL);
  rocksdb_open_and_compact_canceled_set(canceled, 1);
  printf("the flag is set: %d\n", *canceled);
  rocksdb_open_and_compact_canceled_destroy(canceled);
  rocksdb_compact_files_output_file_names_destroy(NULL, 0);
  printf("end\n");
  return 0;
}
