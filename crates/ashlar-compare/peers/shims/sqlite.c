/* SQLite, its amalgamation compiled in: one table WITHOUT ROWID, prepared statements. One connection, exclusive.
 *
 * For several clients each has a connection of its own. The connections of a phase divide the cache, and the first one, which
 * then only settles, keeps a few pages. Writers queue on a mutex: SQLite's own way is to sleep and ask again, up to 100 ms at a
 * time. With a rollback journal a write that waits for readers still does so.
 *
 * Variant 0 keeps a write-ahead log, variant 1 a rollback journal. Without sync, `synchronous` is OFF; with it, FULL.
 */
#include "shim.h"
#include <pthread.h>
#include <sqlite3.h>

enum { BEGIN, COMMIT, ROLLBACK, PUT, GET, DELETE, STATEMENTS };
#define PATIENCE_MS 60000
#define IDLE_KIB 256 /* cache of the first connection beside clients */

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;

typedef struct {
    sqlite3 *db;
    sqlite3_stmt *of[STATEMENTS];
    int wal;
    int has_reader;
    int of_reader; /* the connection of one reader */
    uint32_t clients; /* of this phase */
    shim_settings settings;
    char path[4096];
    uint8_t *value; /* a reader's copy of the last value: a statement on a row holds a snapshot, and locks out writers */
    size_t room;
} Db;

typedef struct {
    Db *of;
    sqlite3_stmt *from;   /* all entries at or after a key */
    sqlite3_stmt *before; /* all entries before a key, backwards; prepared for the first scan that needs it */
} Cursor;

static int failed(Db *d, const char *what) {
    return shim_fail("%s: %s", what, sqlite3_errmsg(d->db));
}

static int run(Db *d, const char *format, ...) {
    char text[200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return sqlite3_exec(d->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(d, text);
}

/* KiB of cache of a connection. */
static unsigned long long cache_of(const Db *d, const shim_settings *s) {
    uint64_t all = (s->cache + s->write_buffer) / 1024;
    if (s->clients <= 1) return all;
    return d->of_reader ? all / (d->clients ? d->clients : 1) : IDLE_KIB;
}

static int set_up(Db *d, const shim_settings *s) {
    uint64_t page = s->block < 512 ? 512 : s->block > 65536 ? 65536 : s->block;
    const char *journal = s->no_log ? "OFF" : d->wal ? "WAL" : "DELETE";
    int bad = 0;
    if (!s->own) {
        bad |= run(d, "PRAGMA page_size=%llu", (unsigned long long)page);
        bad |= run(d, "PRAGMA cache_size=-%llu", cache_of(d, s));
    }
    if (s->clients > 1)
        sqlite3_busy_timeout(d->db, PATIENCE_MS);
    else
        bad |= run(d, "PRAGMA locking_mode=EXCLUSIVE");
    bad |= run(d, "PRAGMA journal_mode=%s", journal);
    bad |= run(d, "PRAGMA synchronous=%s", s->sync ? "FULL" : "OFF");
    bad |= run(d, "CREATE TABLE IF NOT EXISTS e (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID");
    const char *shared = s->clients > 1 ? ", a connection per client: they divide the cache, and writers queue on a mutex" : "";
    shim_say("%s (C API, amalgamation); no codec, journal %s, synchronous %s%s",
             sqlite3_libversion(), journal, s->sync ? "FULL" : "OFF", shared);
    const char *texts[STATEMENTS] = {"BEGIN IMMEDIATE", "COMMIT", "ROLLBACK", "REPLACE INTO e (k, v) VALUES (?1, ?2)",
                                     "SELECT v FROM e WHERE k = ?1", "DELETE FROM e WHERE k = ?1"};
    for (int i = 0; i < STATEMENTS && !bad; i++)
        if (sqlite3_prepare_v3(d->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT, &d->of[i], NULL) != SQLITE_OK)
            bad = failed(d, texts[i]);
    return bad;
}

/* The connection of one of `clients` readers, or with 0 the first one. */
static Db *connect(const char *path, const shim_settings *s, uint32_t clients) {
    Db *d = calloc(1, sizeof *d);
    d->wal = s->variant == 0;
    d->settings = *s;
    d->of_reader = clients > 0;
    d->clients = clients;
    snprintf(d->path, sizeof d->path, "%s", path);
    if (sqlite3_open(path, &d->db) != SQLITE_OK || set_up(d, s) != 0) {
        if (!shim_text[0]) failed(d, "open");
        shim_close(d);
        return NULL;
    }
    return d;
}

void *shim_open(const char *dir, const shim_settings *s) {
    char path[4000];
    snprintf(path, sizeof path, "%s/peer.sqlite", dir);
    return connect(path, s, 0);
}

int shim_clients(void *db, uint32_t clients) {
    ((Db *)db)->clients = clients;
    return 0;
}

int shim_close(void *db) {
    Db *d = db;
    for (int i = 0; i < STATEMENTS; i++) sqlite3_finalize(d->of[i]);
    int closed = sqlite3_close(d->db) == SQLITE_OK ? 0 : failed(d, "close");
    free(d->value);
    free(d);
    return closed;
}

static int step(Db *d, int statement, const char *what) {
    int done = sqlite3_step(d->of[statement]);
    sqlite3_reset(d->of[statement]);
    return done == SQLITE_DONE ? 0 : failed(d, what);
}

/* Binds a blob, which must live until the statement has run. An empty one may have no address: a null pointer would bind NULL. */
static int bind(Db *d, int statement, int place, const void *bytes, size_t len) {
    int code = sqlite3_bind_blob64(d->of[statement], place, bytes ? bytes : "", len, SQLITE_STATIC);
    return code == SQLITE_OK ? 0 : failed(d, "bind");
}

int shim_put(void *db, const uint8_t *key, size_t key_len, const uint8_t *value, size_t value_len) {
    Db *d = db;
    if (bind(d, PUT, 1, key, key_len) || bind(d, PUT, 2, value, value_len)) return -1;
    return step(d, PUT, "put");
}

int shim_put_all(void *db, const uint8_t *entries, size_t key_len, size_t value_len, size_t count) {
    Db *d = db;
    if (step(d, BEGIN, "begin")) return -1;
    if (shim_put_each(db, entries, key_len, value_len, count) == 0) return step(d, COMMIT, "commit");
    step(d, ROLLBACK, "rollback");
    return -1;
}

/* One exclusive connection has one reader; otherwise each reader has its own. */
void *shim_reader(void *db) {
    Db *d = db;
    if (d->settings.clients > 1) return connect(d->path, &d->settings, d->clients ? d->clients : d->settings.clients);
    if (d->has_reader) {
        shim_fail("not offered: one connection, one thread");
        return NULL;
    }
    d->has_reader = 1;
    return d;
}

void shim_reader_close(void *reader) {
    Db *d = reader;
    sqlite3_reset(d->of[GET]);
    if (d->of_reader)
        shim_close(d);
    else
        d->has_reader = 0;
}

/* Copies a value, so that its statement can end; 1. */
static int keep(Db *d, const uint8_t **value, size_t value_len) {
    if (value_len > d->room) {
        uint8_t *more = realloc(d->value, value_len);
        if (!more) return shim_fail("no memory for a value of %zu bytes", value_len);
        d->value = more;
        d->room = value_len;
    }
    if (value_len) memcpy(d->value, *value, value_len);
    *value = d->value;
    sqlite3_reset(d->of[GET]);
    return 1;
}

int shim_get(void *reader, const uint8_t *key, size_t key_len, const uint8_t **value, size_t *value_len) {
    Db *d = reader;
    sqlite3_reset(d->of[GET]);
    if (bind(d, GET, 1, key, key_len)) return -1;
    int got = sqlite3_step(d->of[GET]);
    if (got != SQLITE_ROW) {
        sqlite3_reset(d->of[GET]);
        return got == SQLITE_DONE ? 0 : failed(d, "get");
    }
    *value = sqlite3_column_blob(d->of[GET], 0);
    *value_len = (size_t)sqlite3_column_bytes(d->of[GET], 0);
    return d->of_reader ? keep(d, value, *value_len) : 1;
}

void *shim_cursor(void *db) {
    Cursor *c = shim_of(db, sizeof *c);
    if (sqlite3_prepare_v2(c->of->db, "SELECT k, v FROM e WHERE k >= ?1 ORDER BY k", -1, &c->from, NULL) != SQLITE_OK) {
        failed(c->of, "cursor");
        free(c);
        return NULL;
    }
    return c;
}

void shim_cursor_close(void *cursor) {
    Cursor *c = cursor;
    sqlite3_finalize(c->from);
    sqlite3_finalize(c->before);
    free(c);
}

static int row(Cursor *c, sqlite3_stmt *of, shim_entry *entry) {
    int got = sqlite3_step(of);
    if (got != SQLITE_ROW) return got == SQLITE_DONE ? 0 : failed(c->of, "cursor");
    const void *key = sqlite3_column_blob(of, 0), *value = sqlite3_column_blob(of, 1);
    size_t key_len = (size_t)sqlite3_column_bytes(of, 0), value_len = (size_t)sqlite3_column_bytes(of, 1);
    return shim_at(entry, key, key_len, value, value_len);
}

int shim_next(void *cursor, shim_entry *entry) {
    Cursor *c = cursor;
    return row(c, c->from, entry);
}

int shim_seek(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    Cursor *c = cursor;
    sqlite3_reset(c->from);
    if (sqlite3_bind_blob(c->from, 1, key, (int)key_len, SQLITE_TRANSIENT) != SQLITE_OK) return failed(c->of, "bind");
    return shim_next(cursor, entry);
}

int shim_first(void *cursor, shim_entry *entry) {
    return shim_seek(cursor, (const uint8_t *)"", 0, entry);
}

/* Binds the key and value of a change to its statement, and runs it. */
static int change(Db *d, const shim_change *c) {
    int which = c->deletes ? DELETE : PUT;
    if (bind(d, which, 1, c->key, c->key_len)) return -1;
    if (!c->deletes && bind(d, which, 2, c->value, c->value_len)) return -1;
    return step(d, which, c->deletes ? "delete" : "put");
}

static int transact(Db *d, const shim_change *changes, size_t count) {
    sqlite3_reset(d->of[GET]);
    if (step(d, BEGIN, "begin")) return -1;
    int done = 0;
    for (const shim_change *c = changes; c < changes + count && !done; c++) done = change(d, c);
    if (!done && step(d, COMMIT, "commit") == 0) return 0;
    /* A commit that failed leaves its transaction open. Its text is kept: that of the rollback says less. */
    sqlite3_step(d->of[ROLLBACK]);
    sqlite3_reset(d->of[ROLLBACK]);
    return -1;
}

int shim_apply(void *reader, const shim_change *changes, size_t count) {
    pthread_mutex_lock(&writers);
    int done = transact(reader, changes, count);
    pthread_mutex_unlock(&writers);
    return done;
}

void *shim_reader_cursor(void *reader) {
    return shim_cursor(reader);
}

int shim_prev(void *cursor, shim_entry *entry) {
    Cursor *c = cursor;
    return row(c, c->before, entry);
}

int shim_seek_before(void *cursor, const uint8_t *key, size_t key_len, shim_entry *entry) {
    Cursor *c = cursor;
    const char *text = "SELECT k, v FROM e WHERE k < ?1 ORDER BY k DESC";
    if (!c->before && sqlite3_prepare_v2(c->of->db, text, -1, &c->before, NULL) != SQLITE_OK) return failed(c->of, text);
    sqlite3_reset(c->before);
    if (sqlite3_bind_blob(c->before, 1, key, (int)key_len, SQLITE_TRANSIENT) != SQLITE_OK) return failed(c->of, "bind");
    return shim_prev(cursor, entry);
}

void *shim_rest(void *cursor) {
    Cursor *c = cursor;
    sqlite3_reset(c->from);
    sqlite3_reset(c->before);
    return cursor;
}

/* The log goes into the database: a cost that belongs to the writes. */
int shim_settle(void *db) {
    Db *d = db;
    return d->wal ? run(d, "PRAGMA wal_checkpoint(TRUNCATE)") : 0;
}

SHIM_WITHOUT_LEVELS
