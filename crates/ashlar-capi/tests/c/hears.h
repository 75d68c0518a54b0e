/* What programs with listeners share. Functions of listeners run on threads of the library, so they keep what they hear, and the
 * program prints it when it has waited for them. */

#ifndef HEARS_H
#define HEARS_H

#define _POSIX_C_SOURCE 200809L
#include "prints.h"
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char heard[65536];

static void hear(const char* line) {
  pthread_mutex_lock(&lock);
  strncat(heard, line, sizeof heard - strlen(heard) - 1);
  pthread_mutex_unlock(&lock);
}

/* Counts the end of a flush, a compaction or another event. */
static void count(int* counter) {
  pthread_mutex_lock(&lock);
  (*counter)++;
  pthread_mutex_unlock(&lock);
}

/* Waits until a counter has this value, and prints what was heard. */
static void wait_for(int* counter, int value) {
  for (int tries = 0; tries < 20000; tries++) {
    pthread_mutex_lock(&lock);
    int done = *counter >= value;
    pthread_mutex_unlock(&lock);
    if (done) break;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  pthread_mutex_lock(&lock);
  printf("%s", heard);
  heard[0] = 0;
  pthread_mutex_unlock(&lock);
}

static void flush(rocksdb_t* db) {
  char* err = NULL;
  rocksdb_flushoptions_t* options = rocksdb_flushoptions_create();
  rocksdb_flush(db, options, &err);
  must(err);
  rocksdb_flushoptions_destroy(options);
}

#endif
