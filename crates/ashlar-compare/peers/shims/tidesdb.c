/* TidesDB: a transaction per write and per get, one column family. */
#include "shim.h"
#include <db.h>
#include <time.h>
#include <tidesdb_version.h>

typedef struct {
    tidesdb_t *db;
    tidesdb_column_family_t *cf;
} Db;

typedef struct {
    Db *of;
    tidesdb_txn_t *txn;
    uint8_t *value;
} Reader;

typedef struct {
    Db *of;
    tidesdb_txn_t *txn;
    tidesdb_iter_t *at;
} Cursor;

static int failed(const char *what, int code) {
    return shim_fail("%s: %s", what, tidesdb_strerror(code));
}

static int set_up(Db *d, const char *dir, const shim_settings *s) {
    tidesdb_config_t config = tidesdb_default_config();
    tidesdb_column_family_config_t family = tidesdb_default_column_family_config();
    config.db_path = (char *)dir;
    config.log_level = TDB_LOG_NONE;
    config.memtable_sync_mode = s->sync ? TDB_SYNC_FULL : TDB_SYNC_NONE;
    if (!s->own) {
        config.block_cache_size = s->cache;
        config.memtable_write_buffer_size = s->write_buffer;
        family.encoding_count = s->codec ? 1 : 0;
        family.encoding_pipeline[0] = TDB_COMPRESS_LZ4;
        family.enable_bloom_filter = s->filter_bits > 0;
        family.bloom_fpr = 0.01;
    }
    shim_say("%s (C API); codec %s, %s", TIDESDB_VERSION,
             family.encoding_count ? "lz4" : "none", s->sync ? "TDB_SYNC_FULL" : "TDB_SYNC_NONE");
    int code = tidesdb_open(&config, &d->db);
    if (code) return failed("open", code);
    if (tidesdb_get_column_family(d->db, "peer") == NULL) {
        code = tidesdb_create_column_family(d->db, "peer", &family);
        if (code) return failed("create", code);
    }
    d->cf = tidesdb_get_column_family(d->db, "peer");
    return d->cf ? 0 : shim_fail("the column family is not there");
}

void *shim_open(const char *dir, const shim_settings *s) {
    if (s->no_log) return shim_refuse("not offered: TidesDB writes its log always");
    Db *d = calloc(1, sizeof *d);
    if (set_up(d, dir, s)) {
        if (d->db) tidesdb_close(d->db);
        free(d);
        return NULL;
    }
    return d;
}

int shim_close(void *db) {
    Db *d = db;
    int code = tidesdb_close(d->db);
    free(d);
    return code ? failed("close", code) : 0;
}

int shim_put_all(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    Db *d = db;
    tidesdb_txn_t *txn = NULL;
    int code = tidesdb_txn_begin(d->db, &txn);
    if (code) return failed("begin", code);
    for (size_t i = 0; i < count && !code; i++) {
        const uint8_t *at = entries + i * (key_len + value_len);
        code = tidesdb_txn_put(txn, d->cf, at, key_len, at + key_len, value_len, 0);
    }
    if (!code) code = tidesdb_txn_commit(txn);
    tidesdb_txn_free(txn);
    return code ? failed("put", code) : 0;
}

int shim_put(void *db, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    Db *d = db;
    tidesdb_txn_t *txn = NULL;
    int code = tidesdb_txn_begin(d->db, &txn);
    if (!code) code = tidesdb_txn_put(txn, d->cf, key, key_len, value, value_len, 0);
    if (!code) code = tidesdb_txn_commit(txn);
    if (txn) tidesdb_txn_free(txn);
    return code ? failed("put", code) : 0;
}

void *shim_reader(void *db) {
    return shim_of(db, sizeof(Reader));
}

void shim_reader_close(void *reader) {
    Reader *r = reader;
    tidesdb_free(r->value);
    if (r->txn) tidesdb_txn_free(r->txn);
    free(r);
}

int shim_get(void *reader, const uint8_t *key, size_t key_len, const uint8_t **value, size_t *value_len) {
    Reader *r = reader;
    if (r->value) tidesdb_free(r->value);
    r->value = NULL;
    int code = r->txn ? tidesdb_txn_reset(r->txn, TDB_ISOLATION_READ_COMMITTED)
                      : tidesdb_txn_begin_with_isolation(r->of->db, TDB_ISOLATION_READ_COMMITTED, &r->txn);
    if (!code) code = tidesdb_txn_get(r->txn, r->of->cf, key, key_len, &r->value, value_len);
    *value = r->value;
    if (code == TDB_ERR_NOT_FOUND) return 0;
    return code ? failed("get", code) : 1;
}

void *shim_cursor(void *db) {
    Cursor *c = shim_of(db, sizeof *c);
    int code = tidesdb_txn_begin(c->of->db, &c->txn);
    if (!code) code = tidesdb_iter_new(c->txn, c->of->cf, &c->at);
    if (code) {
        failed("cursor", code);
        if (c->txn) tidesdb_txn_free(c->txn);
        free(c);
        return NULL;
    }
    return c;
}

void shim_cursor_close(void *cursor) {
    Cursor *c = cursor;
    tidesdb_iter_free(c->at);
    tidesdb_txn_free(c->txn);
    free(c);
}

static int moved(Cursor *c, int code, shim_entry *e) {
    if (code == TDB_ERR_NOT_FOUND || (!code && !tidesdb_iter_valid(c->at))) return 0;
    if (!code)
        code = tidesdb_iter_key_value(c->at, (uint8_t **)&e->key, &e->key_len, (uint8_t **)&e->value, &e->value_len);
    return code ? failed("cursor", code) : 1;
}

int shim_first(void *cursor, shim_entry *entry) {
    Cursor *c = cursor;
    return moved(c, tidesdb_iter_seek_to_first(c->at), entry);
}

int shim_seek(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    Cursor *c = cursor;
    return moved(c, tidesdb_iter_seek(c->at, key, key_len), entry);
}

int shim_next(void *cursor, shim_entry *entry) {
    Cursor *c = cursor;
    return moved(c, tidesdb_iter_next(c->at), entry);
}

int shim_apply(void *reader, const shim_change *changes, size_t count) {
    Db *d = ((Reader *)reader)->of;
    tidesdb_txn_t *txn = NULL;
    int code = tidesdb_txn_begin(d->db, &txn);
    if (code) return failed("begin", code);
    for (const shim_change *c = changes; c < changes + count && !code; c++)
        code = c->deletes ? tidesdb_txn_delete(txn, d->cf, c->key, c->key_len)
                          : tidesdb_txn_put(txn, d->cf, c->key, c->key_len, c->value, c->value_len, 0);
    if (!code) code = tidesdb_txn_commit(txn);
    tidesdb_txn_free(txn);
    return code ? failed("apply", code) : 0;
}

SHIM_SHARES_ITS_CACHE
SHIM_CURSOR_OF_DATABASE

int shim_prev(void *cursor, shim_entry *entry) {
    Cursor *c = cursor;
    return moved(c, tidesdb_iter_prev(c->at), entry);
}

/* TidesDB seeks the last entry at or before a key. */
int shim_seek_before(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    Cursor *c = cursor;
    int found = moved(c, tidesdb_iter_seek_for_prev(c->at, key, key_len), entry);
    int same = found == 1 && entry->key_len == key_len && memcmp(entry->key, key, key_len) == 0;
    return same ? shim_prev(cursor, entry) : found;
}

/* An iterator shows the moment of its transaction. */
void *shim_rest(void *cursor) {
    shim_cursor_close(cursor);
    return NULL;
}

int shim_settle(void *db) {
    Db *d = db;
    int code = tidesdb_flush_memtable(d->db);
    if (code) return failed("flush", code);
    const struct timespec pause = {0, 5000000};
    while (tidesdb_is_flushing(d->db) > 0 || tidesdb_is_compacting(d->cf) > 0) nanosleep(&pause, NULL);
    return 0;
}

int shim_levels(void *db, uint64_t *levels, int max) {
    tidesdb_cf_stats_t stats;
    if (tidesdb_get_cf_stats(((Db *)db)->cf, &stats)) return 0;
    int n = stats.num_levels < max ? stats.num_levels : max;
    for (int i = 0; i < n && i < TDB_MAX_LEVELS; i++) levels[i] = (uint64_t)stats.level_num_sstables[i];
    return n;
}

int shim_written(void *db, uint64_t *flush, uint64_t *compaction) {
    tidesdb_db_stats_t stats;
    if (tidesdb_get_db_stats(((Db *)db)->db, &stats)) return 0;
    *flush = stats.flush_bytes_written;
    *compaction = stats.compaction_bytes_written + stats.vlog_bytes_written;
    return 1;
}
