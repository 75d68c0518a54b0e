/* LMDB, its sources compiled in: a transaction per write, a renewed read transaction per get.
 *
 * Its cache is the page cache; no flag limits it. Without sync it runs with MDB_NOSYNC.
 */
#include "shim.h"
#include <lmdb.h>
#include <unistd.h>

typedef struct {
    MDB_env *env;
    MDB_dbi dbi;
} Db;

typedef struct {
    Db *of;
    MDB_txn *txn;
} Reader;

typedef struct {
    Reader read;
    MDB_cursor *at;
    int resting; /* without a snapshot */
} Cursor;

static int failed(const char *what, int code) {
    return shim_fail("%s: %s", what, mdb_strerror(code));
}

static int set_up(Db *d, const char *dir, const shim_settings *s) {
    const uint64_t gib = 1ULL << 30;
    uint64_t map = (s->data * 6 / gib + 2) * gib;
    /* A client has a read transaction and one for its scans. */
    unsigned readers = 2 * s->clients + 16 > 126 ? 2 * s->clients + 16 : 126;
    MDB_txn *txn = NULL;
    int code = mdb_env_create(&d->env);
    if (!code) code = mdb_env_set_mapsize(d->env, map);
    if (!code) code = mdb_env_set_maxreaders(d->env, readers);
    if (!code) code = mdb_env_open(d->env, dir, MDB_NOTLS | (s->sync ? 0 : MDB_NOSYNC), 0644);
    if (!code) code = mdb_txn_begin(d->env, NULL, 0, &txn);
    if (!code) code = mdb_dbi_open(txn, NULL, MDB_CREATE, &d->dbi);
    if (!code) code = mdb_txn_commit(txn);
    return code;
}

void *shim_open(const char *dir, const shim_settings *s) {
    if (s->no_log) return shim_refuse("not offered: LMDB has no log to go without");
    Db *d = calloc(1, sizeof *d);
    shim_say("%d.%d.%d (C API); no codec, no cache but the page cache, %s", MDB_VERSION_MAJOR,
             MDB_VERSION_MINOR, MDB_VERSION_PATCH, s->sync ? "synced" : "NOSYNC");
    int code = set_up(d, dir, s);
    if (code) {
        failed("open", code);
        shim_close(d);
        return NULL;
    }
    return d;
}

int shim_close(void *db) {
    Db *d = db;
    if (d->env) mdb_env_close(d->env);
    free(d);
    return 0;
}

/* Ends a transaction: commits it when all went well. */
static int ended(MDB_txn *txn, int code) {
    if (code) {
        mdb_txn_abort(txn);
        return failed("put", code);
    }
    code = mdb_txn_commit(txn);
    return code ? failed("commit", code) : 0;
}

static int put_at(MDB_txn *txn, MDB_dbi dbi, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    MDB_val k = {key_len, (void *)key}, v = {value_len, (void *)value};
    return mdb_put(txn, dbi, &k, &v, 0);
}

int shim_put_all(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    Db *d = db;
    MDB_txn *txn;
    int code = mdb_txn_begin(d->env, NULL, 0, &txn);
    if (code) return failed("begin", code);
    for (size_t i = 0; i < count && !code; i++) {
        const uint8_t *at = entries + i * (key_len + value_len);
        code = put_at(txn, d->dbi, at, key_len, at + key_len, value_len);
    }
    return ended(txn, code);
}

int shim_put(void *db, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    Db *d = db;
    MDB_txn *txn;
    int code = mdb_txn_begin(d->env, NULL, 0, &txn);
    return code ? failed("begin", code) : ended(txn, put_at(txn, d->dbi, key, key_len, value, value_len));
}

static int begin(Reader *r, Db *d) {
    r->of = d;
    int code = mdb_txn_begin(d->env, NULL, MDB_RDONLY, &r->txn);
    return code ? failed("begin", code) : 0;
}

void *shim_reader(void *db) {
    Reader *r = calloc(1, sizeof *r);
    if (begin(r, db)) {
        free(r);
        return NULL;
    }
    return r;
}

void shim_reader_close(void *reader) {
    Reader *r = reader;
    mdb_txn_abort(r->txn);
    free(r);
}

/* Renewed for each get, so that it sees what was written before, as other engines' gets do. */
int shim_get(void *reader, const uint8_t *key, size_t key_len, const uint8_t **value, size_t *value_len) {
    Reader *r = reader;
    MDB_val k = {key_len, (void *)key}, v;
    mdb_txn_reset(r->txn);
    int code = mdb_txn_renew(r->txn);
    if (!code) code = mdb_get(r->txn, r->of->dbi, &k, &v);
    if (code == MDB_NOTFOUND) return 0;
    if (code) return failed("get", code);
    *value = v.mv_data;
    *value_len = v.mv_size;
    return 1;
}

void *shim_cursor(void *db) {
    Cursor *c = calloc(1, sizeof *c);
    if (begin(&c->read, db)) {
        free(c);
        return NULL;
    }
    int code = mdb_cursor_open(c->read.txn, c->read.of->dbi, &c->at);
    if (code) {
        failed("cursor", code);
        mdb_txn_abort(c->read.txn);
        free(c);
        return NULL;
    }
    return c;
}

void shim_cursor_close(void *cursor) {
    Cursor *c = cursor;
    mdb_cursor_close(c->at);
    mdb_txn_abort(c->read.txn);
    free(c);
}

static int move(Cursor *c, MDB_val key, MDB_cursor_op how, shim_entry *e) {
    MDB_val value;
    int code = mdb_cursor_get(c->at, &key, &value, how);
    if (code == MDB_NOTFOUND) return 0;
    if (code) return failed("cursor", code);
    return shim_at(e, key.mv_data, key.mv_size, value.mv_data, value.mv_size);
}

int shim_first(void *cursor, shim_entry *entry) {
    MDB_val none = {0, NULL};
    return move(cursor, none, MDB_FIRST, entry);
}

int shim_next(void *cursor, shim_entry *entry) {
    MDB_val none = {0, NULL};
    return move(cursor, none, MDB_NEXT, entry);
}

int shim_apply(void *reader, const shim_change *changes, size_t count) {
    Reader *r = reader;
    MDB_txn *txn;
    /* A read transaction that stays open keeps old pages from being used again. */
    mdb_txn_reset(r->txn);
    int code = mdb_txn_begin(r->of->env, NULL, 0, &txn);
    if (code) return failed("begin", code);
    for (const shim_change *c = changes; c < changes + count && !code; c++) {
        if (c->deletes) {
            MDB_val k = {c->key_len, (void *)c->key};
            code = mdb_del(txn, r->of->dbi, &k, NULL);
            if (code == MDB_NOTFOUND) code = 0;
        } else {
            code = put_at(txn, r->of->dbi, c->key, c->key_len, c->value, c->value_len);
        }
    }
    return ended(txn, code);
}

SHIM_SHARES_ITS_CACHE
SHIM_CURSOR_OF_DATABASE

/* Takes a snapshot again after shim_rest. */
static int awake(Cursor *c) {
    if (!c->resting) return 0;
    c->resting = 0;
    int code = mdb_txn_renew(c->read.txn);
    if (!code) code = mdb_cursor_renew(c->read.txn, c->at);
    return code ? failed("renew", code) : 0;
}

int shim_seek(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    MDB_val at = {key_len, (void *)key};
    return awake(cursor) ? -1 : move(cursor, at, MDB_SET_RANGE, entry);
}

int shim_seek_before(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    int found = shim_seek(cursor, key, key_len, entry);
    MDB_val none = {0, NULL};
    return found < 0 ? found : move(cursor, none, found ? MDB_PREV : MDB_LAST, entry);
}

int shim_prev(void *cursor, shim_entry *entry) {
    MDB_val none = {0, NULL};
    return move(cursor, none, MDB_PREV, entry);
}

void *shim_rest(void *cursor) {
    Cursor *c = cursor;
    mdb_txn_reset(c->read.txn);
    c->resting = 1;
    return cursor;
}

int shim_settle(void *db) {
    (void)db;
    return 0;
}

SHIM_WITHOUT_LEVELS
