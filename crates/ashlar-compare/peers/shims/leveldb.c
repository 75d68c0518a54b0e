/* LevelDB through its C interface: built from source without assertions, with Snappy. */
#include "shim.h"
#include <leveldb/c.h>

typedef struct {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_readoptions_t *read;
    leveldb_writeoptions_t *write;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
} Db;

typedef struct {
    Db *of;
    char *value;
} Reader;

static int failed(char *error) {
    if (error == NULL) return 0;
    shim_fail("%s", error);
    leveldb_free(error);
    return -1;
}

void *shim_open(const char *dir, const shim_settings *s) {
    if (s->no_log) return shim_refuse("not offered: LevelDB writes its log always");
    Db *d = calloc(1, sizeof *d);
    d->options = leveldb_options_create();
    d->read = leveldb_readoptions_create();
    d->write = leveldb_writeoptions_create();
    leveldb_options_set_create_if_missing(d->options, 1);
    leveldb_readoptions_set_verify_checksums(d->read, 1);
    leveldb_writeoptions_set_sync(d->write, s->sync);
    if (!s->own) {
        d->cache = leveldb_cache_create_lru(s->cache);
        leveldb_options_set_cache(d->options, d->cache);
        leveldb_options_set_write_buffer_size(d->options, s->write_buffer);
        leveldb_options_set_block_size(d->options, s->block);
        leveldb_options_set_compression(d->options, s->codec ? leveldb_snappy_compression : leveldb_no_compression);
        if (s->filter_bits) {
            d->filter = leveldb_filterpolicy_create_bloom((int)s->filter_bits);
            leveldb_options_set_filter_policy(d->options, d->filter);
        }
    }
    shim_say("%d.%d (C API, no assertions); codec %s, checksums verified",
             leveldb_major_version(), leveldb_minor_version(), s->own || s->codec ? "snappy" : "none");
    char *error = NULL;
    d->db = leveldb_open(d->options, dir, &error);
    if (failed(error)) {
        shim_close(d);
        return NULL;
    }
    return d;
}

int shim_close(void *db) {
    Db *d = db;
    if (d->db) leveldb_close(d->db);
    leveldb_writeoptions_destroy(d->write);
    leveldb_readoptions_destroy(d->read);
    leveldb_options_destroy(d->options);
    if (d->cache) leveldb_cache_destroy(d->cache);
    if (d->filter) leveldb_filterpolicy_destroy(d->filter);
    free(d);
    return 0;
}

int shim_put(void *db, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    Db *d = db;
    char *error = NULL;
    leveldb_put(d->db, d->write, (const char *)key, key_len, (const char *)value, value_len, &error);
    return failed(error);
}

int shim_put_all(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    Db *d = db;
    char *error = NULL;
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)entries + i * (key_len + value_len);
        leveldb_writebatch_put(batch, at, key_len, at + key_len, value_len);
    }
    leveldb_write(d->db, d->write, batch, &error);
    leveldb_writebatch_destroy(batch);
    return failed(error);
}

void *shim_reader(void *db) {
    return shim_of(db, sizeof(Reader));
}

void shim_reader_close(void *reader) {
    Reader *r = reader;
    leveldb_free(r->value);
    free(r);
}

int shim_get(void *reader, const uint8_t *key, size_t key_len, const uint8_t **value, size_t *value_len) {
    Reader *r = reader;
    char *error = NULL;
    leveldb_free(r->value);
    r->value = leveldb_get(r->of->db, r->of->read, (const char *)key, key_len, value_len, &error);
    *value = (const uint8_t *)r->value;
    return failed(error) ? -1 : r->value != NULL;
}

void *shim_cursor(void *db) {
    Db *d = db;
    return leveldb_create_iterator(d->db, d->read);
}

void shim_cursor_close(void *cursor) {
    leveldb_iter_destroy(cursor);
}

static int entry_at(leveldb_iterator_t *i, shim_entry *e) {
    if (!leveldb_iter_valid(i)) {
        char *error = NULL;
        leveldb_iter_get_error(i, &error);
        return failed(error);
    }
    e->key = (const uint8_t *)leveldb_iter_key(i, &e->key_len);
    e->value = (const uint8_t *)leveldb_iter_value(i, &e->value_len);
    return 1;
}

int shim_first(void *cursor, shim_entry *entry) {
    leveldb_iter_seek_to_first(cursor);
    return entry_at(cursor, entry);
}

int shim_seek(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    leveldb_iter_seek(cursor, (const char *)key, key_len);
    return entry_at(cursor, entry);
}

int shim_next(void *cursor, shim_entry *entry) {
    leveldb_iter_next(cursor);
    return entry_at(cursor, entry);
}

int shim_apply(void *reader, const shim_change *changes, size_t count) {
    Db *d = ((Reader *)reader)->of;
    char *error = NULL;
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    for (const shim_change *c = changes; c < changes + count; c++)
        if (c->deletes)
            leveldb_writebatch_delete(batch, (const char *)c->key, c->key_len);
        else
            leveldb_writebatch_put(batch, (const char *)c->key, c->key_len, (const char *)c->value, c->value_len);
    leveldb_write(d->db, d->write, batch, &error);
    leveldb_writebatch_destroy(batch);
    return failed(error);
}

SHIM_SHARES_ITS_CACHE
SHIM_CURSOR_OF_DATABASE

int shim_seek_before(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    leveldb_iter_seek(cursor, (const char *)key, key_len);
    if (leveldb_iter_valid(cursor))
        leveldb_iter_prev(cursor);
    else
        leveldb_iter_seek_to_last(cursor);
    return entry_at(cursor, entry);
}

int shim_prev(void *cursor, shim_entry *entry) {
    leveldb_iter_prev(cursor);
    return entry_at(cursor, entry);
}

/* An iterator shows the moment of its creation. */
void *shim_rest(void *cursor) {
    shim_cursor_close(cursor);
    return NULL;
}

/* LevelDB has no call that waits for its compactions only; compacting the whole range ends with none left. */
int shim_settle(void *db) {
    leveldb_compact_range(((Db *)db)->db, NULL, 0, NULL, 0);
    return 0;
}

int shim_levels(void *db, uint64_t *levels, int max) {
    int level = 0;
    for (; level < max; level++) {
        char name[40];
        snprintf(name, sizeof name, "leveldb.num-files-at-level%d", level);
        char *text = leveldb_property_value(((Db *)db)->db, name);
        if (text == NULL) break;
        levels[level] = strtoull(text, NULL, 10);
        leveldb_free(text);
    }
    return level;
}

/* The table of leveldb.stats: level, files, MB, seconds, MB read, MB written. What level 0 wrote are the flushes. */
int shim_written(void *db, uint64_t *flush, uint64_t *compaction) {
    char *text = leveldb_property_value(((Db *)db)->db, "leveldb.stats");
    if (text == NULL) return 0;
    *flush = *compaction = 0;
    for (char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
        int level, files;
        double size, seconds, read, written;
        if (sscanf(line + 1, "%d %d %lf %lf %lf %lf", &level, &files, &size, &seconds, &read, &written) == 6)
            *(level == 0 ? flush : compaction) += (uint64_t)(written * 1048576.0);
    }
    leveldb_free(text);
    return 1;
}
