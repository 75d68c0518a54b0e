/* Kyoto Cabinet's TreeDB through its C interface, with the parameters of the 2011 page: small and linear, LZO. */
#include "shim.h"
#include <kclangc.h>

typedef struct {
    KCDB *db;
    int hard; /* batches are physically synchronised */
} Db;

typedef struct {
    Db *of;
    char *value;
} Reader;

typedef struct {
    Db *of;
    KCCUR *at;
    char *key;
} Cursor;

static int failed(Db *d, const char *what) {
    return shim_fail("%s: %s: %s", what, kcecodename(kcdbecode(d->db)), kcdbemsg(d->db));
}

void *shim_open(const char *dir, const shim_settings *s) {
    if (s->no_log) return shim_refuse("not offered: TreeDB has no class below its mapped writes");
    Db *d = calloc(1, sizeof *d);
    d->db = kcdbnew();
    d->hard = s->sync != 0;
    char path[4096];
    const char *codec = !s->own && s->codec ? "lzo" : "none";
    if (s->own)
        snprintf(path, sizeof path, "%s/peer.kct", dir);
    else
        snprintf(path, sizeof path, "%s/peer.kct#opts=sl%s#pccap=%llu#psiz=%llu#msiz=268435456%s", dir,
                 s->codec ? "c" : "", (unsigned long long)(s->cache + s->write_buffer),
                 (unsigned long long)s->block, s->codec ? "#zcomp=lzo" : "");
    shim_say("%s (C API); codec %s, %s", KCVERSION, codec,
             s->sync ? "OAUTOSYNC" : "mapped writes, no log");
    uint32_t mode = KCOWRITER | KCOCREATE | (s->sync ? KCOAUTOSYNC : 0);
    if (!kcdbopen(d->db, path, mode)) {
        failed(d, "open");
        kcdbdel(d->db);
        free(d);
        return NULL;
    }
    return d;
}

int shim_close(void *db) {
    Db *d = db;
    int closed = kcdbclose(d->db) ? 0 : failed(d, "close");
    kcdbdel(d->db);
    free(d);
    return closed;
}

int shim_put(void *db, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    Db *d = db;
    /* Kyoto Cabinet takes the addresses 0 and 1 for orders; an empty slice may lie at either. */
    const char *bytes = value_len ? (const char *)value : "";
    return kcdbset(d->db, (const char *)key, key_len, bytes, value_len) ? 0 : failed(d, "set");
}

/* A transaction: TreeDB has no batch of its own. */
int shim_put_all(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    Db *d = db;
    if (!kcdbbegintran(d->db, d->hard)) return failed(d, "begin");
    int put = shim_put_each(db, entries, key_len, value_len, count);
    if (!kcdbendtran(d->db, put == 0)) return failed(d, "commit");
    return put;
}

void *shim_reader(void *db) {
    return shim_of(db, sizeof(Reader));
}

void shim_reader_close(void *reader) {
    Reader *r = reader;
    if (r->value) kcfree(r->value);
    free(r);
}

int shim_get(void *reader, const uint8_t *key, size_t key_len, const uint8_t **value, size_t *value_len) {
    Reader *r = reader;
    if (r->value) kcfree(r->value);
    r->value = kcdbget(r->of->db, (const char *)key, key_len, value_len);
    *value = (const uint8_t *)r->value;
    if (r->value) return 1;
    return kcdbecode(r->of->db) == KCENOREC ? 0 : failed(r->of, "get");
}

void *shim_cursor(void *db) {
    Cursor *c = shim_of(db, sizeof *c);
    c->at = kcdbcursor(c->of->db);
    return c;
}

void shim_cursor_close(void *cursor) {
    Cursor *c = cursor;
    if (c->key) kcfree(c->key);
    kccurdel(c->at);
    free(c);
}

/* Reads the entry and steps past it, in one call: two would lock and look up twice. */
static int take(Cursor *c, shim_entry *e) {
    size_t key_len, value_len;
    const char *value = NULL;
    if (c->key) kcfree(c->key);
    c->key = kccurget(c->at, &key_len, &value, &value_len, 1);
    if (c->key == NULL) return kcdbecode(c->of->db) == KCENOREC ? 0 : failed(c->of, "cursor");
    return shim_at(e, c->key, key_len, value, value_len);
}

static int jumped(Cursor *c, int found, shim_entry *e) {
    if (found) return take(c, e);
    return kcdbecode(c->of->db) == KCENOREC ? 0 : failed(c->of, "jump");
}

int shim_first(void *cursor, shim_entry *entry) {
    Cursor *c = cursor;
    return jumped(c, kccurjump(c->at), entry);
}

int shim_seek(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    Cursor *c = cursor;
    return jumped(c, kccurjumpkey(c->at, (const char *)key, key_len), entry);
}

int shim_next(void *cursor, shim_entry *entry) {
    return take(cursor, entry);
}

/* A transaction, as for shim_put_all. Another thread may read it before its end: TreeDB has one transaction for all threads. */
int shim_apply(void *reader, const shim_change *changes, size_t count) {
    Db *d = ((Reader *)reader)->of;
    if (!kcdbbegintran(d->db, d->hard)) return failed(d, "begin");
    int done = 0;
    for (const shim_change *c = changes; c < changes + count && !done; c++) {
        if (!c->deletes)
            done = shim_put(d, c->key, c->key_len, c->value, c->value_len);
        else if (!kcdbremove(d->db, (const char *)c->key, c->key_len) && kcdbecode(d->db) != KCENOREC)
            done = failed(d, "remove");
    }
    if (!kcdbendtran(d->db, done == 0)) return failed(d, "commit");
    return done;
}

SHIM_SHARES_ITS_CACHE
SHIM_CURSOR_OF_DATABASE

/* The entry where the cursor is; the cursor stays. */
static int here(Cursor *c, shim_entry *e) {
    size_t key_len, value_len;
    const char *value = NULL;
    if (c->key) kcfree(c->key);
    c->key = kccurget(c->at, &key_len, &value, &value_len, 0);
    if (c->key == NULL) return kcdbecode(c->of->db) == KCENOREC ? 0 : failed(c->of, "cursor");
    return shim_at(e, c->key, key_len, value, value_len);
}

int shim_prev(void *cursor, shim_entry *entry) {
    Cursor *c = cursor;
    if (kccurstepback(c->at)) return here(c, entry);
    return kcdbecode(c->of->db) == KCENOREC ? 0 : failed(c->of, "step back");
}

/* TreeDB jumps to the last entry at or before a key. */
int shim_seek_before(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    Cursor *c = cursor;
    if (!kccurjumpbackkey(c->at, (const char *)key, key_len))
        return kcdbecode(c->of->db) == KCENOREC ? 0 : failed(c->of, "jump");
    int found = here(c, entry);
    int same = found == 1 && entry->key_len == key_len && memcmp(entry->key, key, key_len) == 0;
    return same ? shim_prev(cursor, entry) : found;
}

/* A cursor has no snapshot. */
void *shim_rest(void *cursor) {
    return cursor;
}

int shim_settle(void *db) {
    Db *d = db;
    return kcdbsync(d->db, 0, NULL, NULL) ? 0 : failed(d, "synchronize");
}

SHIM_WITHOUT_LEVELS
