/* What a shim is to the programs that compare engines: the same few functions around each C or C++ engine.
 *
 * A shim is compiled against the engine's own headers by `cargo xtask peers` into one shared object that exports only the
 * functions below; `src/peers/shim/` loads it at run time. So no build of the workspace needs the engines.
 *
 * 1. Moves and gets return 1 for an entry, 0 for none, -1 for a failure; other calls 0, or -1. The text of the last failure
 *    of this thread is shim_error().
 * 2. Bytes that a get or a move hands out stand until the next call on the same reader or cursor.
 * 3. Readers and cursors are closed before their database. A reader may be used by one thread at a time.
 * 4. What an engine has no equivalent for is refused with a text that begins with "not offered:", never approximated.
 * 5. A process opens one database at a time.
 *
 * Behind the declarations stands what the shims share.
 */
#ifndef ASHLAR_PEERS_SHIM_H
#define ASHLAR_PEERS_SHIM_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHIM_ABI 4
#define EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* How a database is opened; all sizes in bytes. */
typedef struct {
    uint64_t cache;        /* cache of blocks or pages */
    uint64_t write_buffer; /* a memtable; engines without one add it to their cache */
    uint64_t block;        /* a block or page */
    uint64_t data;         /* about what will be written, for engines that must know beforehand */
    uint32_t write_buffers;
    uint32_t filter_bits; /* bits per key; 0 for no filter */
    uint32_t codec;       /* 0 none, 1 light: Snappy, LZ4 or LZO, whichever the engine has */
    uint32_t sync;        /* a write returns when the device has it */
    uint32_t no_log;      /* nothing is promised */
    uint32_t own;         /* the engine's own defaults: all above but sync and no_log are ignored */
    uint32_t variant;     /* which of the engine's forms; 0 is the first */
    uint32_t clients;     /* threads that read and write at the same time, at most; 0 or 1 for one */
} shim_settings;

/* A put, or a delete when `deletes` is not 0; then there is no value. */
typedef struct {
    const uint8_t *key;
    size_t key_len;
    const uint8_t *value;
    size_t value_len;
    uint32_t deletes;
} shim_change;

typedef struct {
    const uint8_t *key;
    size_t key_len;
    const uint8_t *value;
    size_t value_len;
} shim_entry;

EXPORT uint32_t shim_abi(void);
EXPORT const char *shim_error(void);
/* Makes a database in the empty directory, or opens the one that is there. NULL: a failure. */
EXPORT void *shim_open(const char *dir, const shim_settings *settings);
EXPORT int shim_close(void *db);
/* Version of the engine whose database was opened last, and what was set. */
EXPORT const char *shim_about(void);
EXPORT int shim_put(void *db, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len);
/* One atomic batch: count times a key and a value of these lengths, one after the other. */
EXPORT int shim_put_all(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count);
/* How many readers the next phase has, before they are made: memory that an engine gives to each of them is divided by it. */
EXPORT int shim_clients(void *db, uint32_t clients);
/* NULL: a failure, or this engine lets no further thread read. */
EXPORT void *shim_reader(void *db);
EXPORT void shim_reader_close(void *reader);
EXPORT int shim_get(void *reader, const uint8_t *key, size_t key_len, const uint8_t **value, size_t *value_len);
EXPORT void *shim_cursor(void *db);
EXPORT void shim_cursor_close(void *cursor);
EXPORT int shim_first(void *cursor, shim_entry *entry);
EXPORT int shim_seek(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry);
EXPORT int shim_next(void *cursor, shim_entry *entry);
/* All changes or none, by the thread of this reader. */
EXPORT int shim_apply(void *reader, const shim_change *changes, size_t count);
/* A cursor for the thread of this reader, closed before it. */
EXPORT void *shim_reader_cursor(void *reader);
/* To the last entry before the key, and from an entry to the one before it. */
EXPORT int shim_seek_before(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry);
EXPORT int shim_prev(void *cursor, shim_entry *entry);
/* Forgets position and snapshot: the next seek sees everything written before it. Answers the cursor, or NULL if it is closed. */
EXPORT void *shim_rest(void *cursor);
/* Memory written out, background work done. */
EXPORT int shim_settle(void *db);
/* Tables per level, at most max of them; the answer is how many levels there are, 0 without levels. */
EXPORT int shim_levels(void *db, uint64_t *levels, int max);
/* Bytes written by flushes and by compactions; 0 when the engine does not say, else 1. */
EXPORT int shim_written(void *db, uint64_t *flush, uint64_t *compaction);

#ifdef __cplusplus
}
#endif

static __thread char shim_text[512];
static char shim_version[240];

/* Keeps the text of the failure; -1. */
static int shim_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(shim_text, sizeof shim_text, format, args);
    va_end(args);
    return -1;
}

/* The same, where a pointer is wanted; NULL. */
static inline void *shim_refuse(const char *why) {
    shim_fail("%s", why);
    return NULL;
}

/* What shim_about answers. */
static inline void shim_say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(shim_version, sizeof shim_version, format, args);
    va_end(args);
}

const char *shim_about(void) {
    return shim_version;
}

/* A zeroed reader or cursor; its first member points to its database. */
static inline void *shim_of(void *db, size_t size) {
    void **made = calloc(1, size);
    if (made) *made = db;
    return made;
}

/* Hands an entry out; 1. */
static inline int shim_at(shim_entry *e, const void *key, size_t key_len, const void *value, size_t value_len) {
    *e = (shim_entry){key, key_len, value, value_len};
    return 1;
}

/* The entries of a batch, one put each, until one fails. */
static inline int shim_put_each(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    int put = 0;
    for (size_t i = 0; i < count && put == 0; i++) {
        const uint8_t *at = entries + i * (key_len + value_len);
        put = shim_put(db, at, key_len, at + key_len, value_len);
    }
    return put;
}

/* For an engine whose readers begin with the pointer to their database. */
#define SHIM_CURSOR_OF_DATABASE                   \
    void *shim_reader_cursor(void *reader) {      \
        return shim_cursor(*(void **)reader);     \
    }

/* For an engine whose readers share one cache. */
#define SHIM_SHARES_ITS_CACHE                        \
    int shim_clients(void *db, uint32_t clients) {   \
        (void)db, (void)clients;                     \
        return 0;                                    \
    }

/* For an engine without levels, that does not count what it writes. */
#define SHIM_WITHOUT_LEVELS                                              \
    int shim_levels(void *db, uint64_t *levels, int max) {               \
        (void)db, (void)levels, (void)max;                               \
        return 0;                                                        \
    }                                                                    \
    int shim_written(void *db, uint64_t *flush, uint64_t *compaction) {  \
        (void)db, (void)flush, (void)compaction;                         \
        return 0;                                                        \
    }

uint32_t shim_abi(void) {
    return SHIM_ABI;
}

const char *shim_error(void) {
    return shim_text;
}

#endif
