/* WiredTiger: variant 0 is a B-tree, variant 1 an LSM tree. A session and a cursor for each reader.
 *
 * An LSM tree refuses a cache below three chunks and some more, and a B-tree rolls writes back in a very small one: there the
 * cache is a floor, and the text of shim_about says so. What is rolled back, a write or a whole batch, is tried again, as users
 * must.
 */
#include "shim.h"
#include <time.h>
#include <wiredtiger.h>

#define TABLE "table:peer"
#define TRIES 100

typedef struct Db Db;

typedef struct {
    Db *of;
    WT_SESSION *session;
    WT_CURSOR *cursor;
} At;

struct Db {
    WT_CONNECTION *conn;
    At at; /* of the writer */
    int lsm;
    uint32_t clients; /* of this phase */
};

static int failed(const char *what, int code) {
    return shim_fail("%s: %s", what, wiredtiger_strerror(code));
}

static int open_at(Db *d, At *at) {
    at->of = d;
    int code = d->conn->open_session(d->conn, NULL, NULL, &at->session);
    if (!code) code = at->session->open_cursor(at->session, TABLE, NULL, "overwrite=true", &at->cursor);
    return code ? failed("session", code) : 0;
}

static int set_up(Db *d, const char *dir, const shim_settings *s) {
    char config[400], table[300];
    uint64_t chunk = s->write_buffer < 512 << 10 ? 512 << 10 : s->write_buffer;
    uint64_t cache = s->cache + s->write_buffer;
    int lsm = d->lsm = s->variant == 1;
    d->clients = s->clients;
    uint64_t least = lsm ? 3 * chunk + (2 << 20) : 4 << 20;
    char floor[60] = "";
    if (!s->own && cache < least) {
        cache = least;
        snprintf(floor, sizeof floor, ", cache at its floor of %llu MiB", (unsigned long long)(least >> 20));
    }
    int at = snprintf(config, sizeof config, "create,log=(enabled=%s),transaction_sync=(enabled=%s,method=fsync)",
                      s->no_log ? "false" : "true", s->sync ? "true" : "false");
    if (!s->own)
        snprintf(config + at, sizeof config - (size_t)at, ",cache_size=%llu,checkpoint=(wait=60)",
                 (unsigned long long)cache);
    at = snprintf(table, sizeof table, "key_format=u,value_format=u%s", lsm ? ",type=lsm" : "");
    if (!s->own) {
        at += snprintf(table + at, sizeof table - (size_t)at, ",block_compressor=%s,leaf_page_max=%llu",
                       s->codec ? "snappy" : "none", (unsigned long long)s->block);
        if (lsm)
            snprintf(table + at, sizeof table - (size_t)at, ",lsm=(chunk_size=%llu,bloom=%s,bloom_bit_count=%u)",
                     (unsigned long long)chunk,
                     s->filter_bits ? "true" : "false", s->filter_bits ? s->filter_bits : 2);
    }
    shim_say("%s (C API), %s; codec %s%s%s", WIREDTIGER_VERSION_STRING, lsm ? "LSM" : "B-tree",
             !s->own && s->codec ? "snappy" : "none", floor,
             lsm && s->clients > 1 ? ", with several clients a new cursor for each get" : "");
    int code = wiredtiger_open(dir, NULL, config, &d->conn);
    if (code) return failed(config, code);
    WT_SESSION *session;
    code = d->conn->open_session(d->conn, NULL, NULL, &session);
    if (!code) code = session->create(session, TABLE, table);
    if (code) return failed(table, code);
    code = session->close(session, NULL);
    return code ? failed("session", code) : open_at(d, &d->at);
}

void *shim_open(const char *dir, const shim_settings *s) {
    Db *d = calloc(1, sizeof *d);
    if (set_up(d, dir, s)) {
        if (d->conn) d->conn->close(d->conn, NULL);
        free(d);
        return NULL;
    }
    return d;
}

int shim_close(void *db) {
    Db *d = db;
    int code = d->conn->close(d->conn, NULL);
    free(d);
    return code ? failed("close", code) : 0;
}

static int insert(WT_CURSOR *c, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    WT_ITEM k = {.data = key, .size = key_len}, v = {.data = value, .size = value_len};
    c->set_key(c, &k);
    c->set_value(c, &v);
    return c->insert(c);
}

/* True when a write was rolled back and is to be tried again: at once, later after pauses in which eviction catches up. */
static int again(int code, int tries) {
    if (code != WT_ROLLBACK || tries >= TRIES) return 0;
    const struct timespec pause = {0, 1000000};
    if (tries > 2) nanosleep(&pause, NULL);
    return 1;
}

int shim_put(void *db, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    WT_CURSOR *c = ((Db *)db)->at.cursor;
    int tries = 0, code;
    do code = insert(c, key, key_len, value, value_len);
    while (again(code, ++tries));
    return code ? failed("insert", code) : 0;
}

/* One try of a batch. A transaction that was told to roll back does so as a whole, its commit included. */
static int transact(At *w, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    int code = w->session->begin_transaction(w->session, NULL);
    if (code) return code;
    for (size_t i = 0; i < count && !code; i++) {
        const uint8_t *at = entries + i * (key_len + value_len);
        code = insert(w->cursor, at, key_len, at + key_len, value_len);
    }
    if (code) {
        w->session->rollback_transaction(w->session, NULL);
        return code;
    }
    return w->session->commit_transaction(w->session, NULL);
}

int shim_put_all(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    int tries = 0, code;
    do code = transact(&((Db *)db)->at, entries, key_len, value_len, count);
    while (again(code, ++tries));
    if (code == WT_ROLLBACK)
        return shim_fail("not offered: a transaction of %zu entries, in a cache that cannot hold what it changes", count);
    return code ? failed("batch", code) : 0;
}

int shim_clients(void *db, uint32_t clients) {
    ((Db *)db)->clients = clients;
    return 0;
}

void *shim_reader(void *db) {
    At *at = calloc(1, sizeof *at);
    if (open_at(db, at)) {
        free(at);
        return NULL;
    }
    return at;
}

void shim_reader_close(void *reader) {
    At *at = reader;
    at->session->close(at->session, NULL);
    free(at);
}

static int entry_of(WT_CURSOR *c, shim_entry *e) {
    WT_ITEM key, value;
    int code = c->get_key(c, &key);
    if (!code) code = c->get_value(c, &value);
    if (code) return failed("entry", code);
    return shim_at(e, key.data, key.size, value.data, value.size);
}

/* A cursor of an LSM tree that was used before may miss what another session wrote since; a new one does not. */
static int fresh(At *at) {
    WT_CURSOR *old = at->cursor;
    at->cursor = NULL;
    int code = old ? old->close(old) : 0;
    if (!code) code = at->session->open_cursor(at->session, TABLE, NULL, "overwrite=true", &at->cursor);
    if (code) at->cursor = NULL;
    return code ? failed("cursor", code) : 0;
}

int shim_get(void *reader, const uint8_t *key, size_t key_len, const uint8_t **value, size_t *value_len) {
    At *at = reader;
    /* A single client writes through this session, or before its reader was opened. */
    if ((!at->cursor || (at->of->lsm && at->of->clients > 1)) && fresh(at)) return -1;
    WT_CURSOR *c = at->cursor;
    WT_ITEM k = {.data = key, .size = key_len}, v;
    /* A cursor on an entry keeps its snapshot; the next get is to see what was written since. */
    int code = c->reset(c);
    if (code) return failed("reset", code);
    c->set_key(c, &k);
    code = c->search(c);
    if (code == WT_NOTFOUND) return 0;
    if (!code) code = c->get_value(c, &v);
    if (code) return failed("search", code);
    *value = v.data;
    *value_len = v.size;
    return 1;
}

void *shim_cursor(void *db) {
    return shim_reader(db);
}

void shim_cursor_close(void *cursor) {
    shim_reader_close(cursor);
}

static int moved(WT_CURSOR *c, int code, shim_entry *e) {
    if (code == WT_NOTFOUND) return 0;
    return code ? failed("cursor", code) : entry_of(c, e);
}

int shim_first(void *cursor, shim_entry *entry) {
    WT_CURSOR *c = ((At *)cursor)->cursor;
    int code = c->reset(c);
    return moved(c, code ? code : c->next(c), entry);
}

int shim_next(void *cursor, shim_entry *entry) {
    WT_CURSOR *c = ((At *)cursor)->cursor;
    return moved(c, c->next(c), entry);
}

int shim_seek(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    WT_CURSOR *c = ((At *)cursor)->cursor;
    WT_ITEM k = {.data = key, .size = key_len};
    int before = 0;
    c->set_key(c, &k);
    int code = c->search_near(c, &before);
    if (!code && before < 0) code = c->next(c);
    return moved(c, code, entry);
}

/* One try. A transaction that was told to roll back does so as a whole. */
static int try_apply(At *w, const shim_change *changes, size_t count) {
    int code = w->cursor->reset(w->cursor);
    if (!code) code = w->session->begin_transaction(w->session, NULL);
    if (code) return code;
    for (const shim_change *c = changes; c < changes + count && !code; c++) {
        if (c->deletes) {
            WT_ITEM k = {.data = c->key, .size = c->key_len};
            w->cursor->set_key(w->cursor, &k);
            code = w->cursor->remove(w->cursor);
            if (code == WT_NOTFOUND) code = 0;
        } else {
            code = insert(w->cursor, c->key, c->key_len, c->value, c->value_len);
        }
    }
    if (code) {
        w->session->rollback_transaction(w->session, NULL);
        return code;
    }
    return w->session->commit_transaction(w->session, NULL);
}

int shim_apply(void *reader, const shim_change *changes, size_t count) {
    At *at = reader;
    if (!at->cursor && fresh(at)) return -1;
    int tries = 0, code;
    do code = try_apply(reader, changes, count);
    while (again(code, ++tries));
    return code ? failed("apply", code) : 0;
}

SHIM_CURSOR_OF_DATABASE

int shim_prev(void *cursor, shim_entry *entry) {
    WT_CURSOR *c = ((At *)cursor)->cursor;
    return moved(c, c->prev(c), entry);
}

int shim_seek_before(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    WT_CURSOR *c = ((At *)cursor)->cursor;
    WT_ITEM k = {.data = key, .size = key_len};
    int side = 0;
    c->set_key(c, &k);
    int code = c->search_near(c, &side);
    if (!code && side >= 0) code = c->prev(c);
    return moved(c, code, entry);
}

/* A cursor of an LSM tree that was reset may miss what another session wrote since; a new one does not. */
void *shim_rest(void *cursor) {
    At *at = cursor;
    if (at->of->lsm || at->cursor->reset(at->cursor)) {
        shim_cursor_close(cursor);
        return NULL;
    }
    return cursor;
}

int shim_settle(void *db) {
    WT_SESSION *session = ((Db *)db)->at.session;
    int code = session->checkpoint(session, NULL);
    return code ? failed("checkpoint", code) : 0;
}

SHIM_WITHOUT_LEVELS
