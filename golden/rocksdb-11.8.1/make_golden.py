#!/usr/bin/env python3
"""Builds directories whose settings AshlarDB does not serve, with the C library of RocksDB 11.8.1 (loaded with ctypes).

usage: python3 make_golden.py LIBRARY OUTDIR
Every database is written by the real library; this script only calls its C API.
"""
import ctypes as C, os, shutil, sys

R = C.CDLL(sys.argv[1])
P, S, Z, I, B = C.c_void_p, C.c_char_p, C.c_size_t, C.c_int, C.c_ubyte
ERR = C.POINTER(C.c_char_p)
def f(name, res, *args):
    fn = getattr(R, name); fn.restype = res; fn.argtypes = list(args); return fn
def call(fn, *a):
    e = C.c_char_p(); r = fn(*a, C.byref(e)); assert not e.value, e.value; return r

create = f("rocksdb_options_create", P)
parse = f("rocksdb_get_options_from_string", None, P, S, P, ERR)
open_ = f("rocksdb_open", P, P, S, ERR)
open_ttl = f("rocksdb_open_with_ttl", P, P, S, I, ERR)
add_cf = f("rocksdb_create_column_family", P, P, P, S, ERR)
put = f("rocksdb_put", None, P, P, S, Z, S, Z, ERR)
put_ts = f("rocksdb_put_cf_with_ts", None, P, P, P, S, Z, S, Z, S, Z, ERR)
flush = f("rocksdb_flush", None, P, P, ERR)
flush_cf = f("rocksdb_flush_cf", None, P, P, P, ERR)
cf_gone = f("rocksdb_column_family_handle_destroy", None, P)
close = f("rocksdb_close", None, P)
W = f("rocksdb_writeoptions_create", P)(); F = f("rocksdb_flushoptions_create", P)()

COMMON = "create_if_missing=true;db_host_id=golden;compression=kNoCompression;"
def options(text):
    o = create(); call(parse, create(), (COMMON + text).encode(), o); return o
def fill(db, n, m):
    for i in range(n, m):
        key = b"key%06d" % i; call(put, db, W, key, len(key), b"value%d" % i, len(b"value%d" % i))

# 20 keys in a table, 5 in the log.
def plain(path, text, opened=lambda path, o: call(open_, o, path)):
    db = opened(path, options(text)); fill(db, 0, 20); call(flush, db, F); fill(db, 20, 25); close(db)

# A family of stripped timestamps beside a default family without any.
def stripped(path):
    db = call(open_, options("avoid_flush_during_shutdown=true;allow_concurrent_memtable_write=false"), path); fill(db, 0, 5); call(flush, db, F)
    ts = "allow_concurrent_memtable_write=false;comparator=leveldb.BytewiseComparator.u64ts;persist_user_defined_timestamps=false"
    cf = call(add_cf, db, options(ts), b"ts")
    for i in range(20):
        key = b"key%06d" % i
        call(put_ts, db, W, cf, key, len(key), (i + 1).to_bytes(8, "little"), 8, b"value", 5)
    call(flush_cf, db, F, cf); fill(db, 5, 8); cf_gone(cf); close(db)

os.makedirs(sys.argv[2], exist_ok=True); os.chdir(sys.argv[2])
ALL = {
    "plain_table": lambda p: plain(p, "avoid_flush_during_shutdown=true;allow_mmap_reads=true;"
                                      "prefix_extractor=fixed:3;table_factory={id=PlainTable;user_key_len=9}"),
    "cuckoo_table": lambda p: plain(p, "avoid_flush_during_shutdown=true;allow_mmap_reads=true;"
                                       "table_factory={id=CuckooTable}"),
    "trie_primary": lambda p: plain(p, "avoid_flush_during_shutdown=true;table_factory={id=BlockBasedTable;"
                                       "user_defined_index_factory=trie_index;use_udi_as_primary_index=true}"),
    "ttl": lambda p: plain(p, "avoid_flush_during_shutdown=true", lambda path, o: call(open_ttl, o, path, 1 << 30)),
    "udt_stripped": stripped,
}
for name, build in ALL.items():
    shutil.rmtree(name, ignore_errors=True); build(name.encode())
    os.remove(os.path.join(name, "LOG"))
    options_files = sorted(n for n in os.listdir(name) if n.startswith("OPTIONS-"))
    for old in options_files[:-1]:
        os.remove(os.path.join(name, old))
    rows = [] if name == "ttl" else [(b"key%06d" % i, b"value%d" % i) for i in range(8 if name == "udt_stripped" else 25)]
    with open(os.path.join(name, "expected.txt"), "w") as listing:
        listing.write("Made with RocksDB 11.8.1 by make_golden.py, one directory up, where the calls stand.\n\n")
        listing.write("Column family default: ldb scan --hex\n")
        listing.writelines("  0x%s : 0x%s\n" % (k.hex().upper(), v.hex().upper()) for k, v in rows)
