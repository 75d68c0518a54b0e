"""Opens a database of the library `argv[1]` in the directory `argv[2]` with ctypes, and prints what its calls answer."""

import ctypes
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_ubyte, c_void_p

library = ctypes.CDLL(sys.argv[1])
library.rocksdb_free.argtypes = [c_void_p]


def function(name, result, *arguments):
    """A function of the library with its types."""
    found = getattr(library, "rocksdb_" + name)
    found.restype, found.argtypes = result, arguments
    return found


def checked(call, *arguments):
    """Calls a function that can fail. The last parameter is the place for the error."""
    error = c_char_p()
    answer = call(*arguments, byref(error))
    if error.value is not None:
        raise RuntimeError(error.value.decode())
    return answer


TEXT, LENGTH, ERROR = c_char_p, c_size_t, POINTER(c_char_p)
options_create = function("options_create", c_void_p)
create_if_missing = function("options_set_create_if_missing", None, c_void_p, c_ubyte)
set_compression = function("options_set_compression", None, c_void_p, c_int)
options_destroy = function("options_destroy", None, c_void_p)
open_database = function("open", c_void_p, c_void_p, TEXT, ERROR)
close = function("close", None, c_void_p)
reads, writes = function("readoptions_create", c_void_p)(), function("writeoptions_create", c_void_p)()
put = function("put", None, c_void_p, c_void_p, TEXT, LENGTH, TEXT, LENGTH, ERROR)
delete = function("delete", None, c_void_p, c_void_p, TEXT, LENGTH, ERROR)
get = function("get", c_void_p, c_void_p, c_void_p, TEXT, LENGTH, POINTER(c_size_t), ERROR)
batch_create = function("writebatch_create", c_void_p)
batch_put = function("writebatch_put", None, c_void_p, TEXT, LENGTH, TEXT, LENGTH)
batch_count = function("writebatch_count", c_int, c_void_p)
batch_destroy = function("writebatch_destroy", None, c_void_p)
write = function("write", None, c_void_p, c_void_p, c_void_p, ERROR)
create_iterator = function("create_iterator", c_void_p, c_void_p, c_void_p)
seek_to_first = function("iter_seek_to_first", None, c_void_p)
valid = function("iter_valid", c_ubyte, c_void_p)
following = function("iter_next", None, c_void_p)
key = function("iter_key", c_void_p, c_void_p, POINTER(c_size_t))
value = function("iter_value", c_void_p, c_void_p, POINTER(c_size_t))
iter_destroy = function("iter_destroy", None, c_void_p)


def value_of(database, wanted):
    """The value of a key, or None."""
    length = c_size_t()
    found = checked(get, database, reads, wanted, len(wanted), byref(length))
    if found is None:
        return None
    copied = ctypes.string_at(found, length.value)
    library.rocksdb_free(found)
    return copied


def entry(iterator, part):
    """The key or the value of a valid iterator."""
    length = c_size_t()
    return ctypes.string_at(part(iterator, byref(length)), length.value)


options = options_create()
create_if_missing(options, 1)
database = checked(open_database, options, sys.argv[2].encode())
checked(put, database, writes, b"one", 3, b"1", 1)
checked(put, database, writes, b"zero\0inside", 11, b"\0\xff", 2)
batch = batch_create()
for number in range(3):
    name = b"batch%d" % number
    batch_put(batch, name, len(name), b"b", 1)
print("batch", batch_count(batch))
checked(write, database, writes, batch)
batch_destroy(batch)
checked(delete, database, writes, b"one", 3)
print("one", value_of(database, b"one"))
print("zero inside", value_of(database, b"zero\0inside"))
iterator = create_iterator(database, reads)
seek_to_first(iterator)
while valid(iterator):
    print(entry(iterator, key), entry(iterator, value))
    following(iterator)
iter_destroy(iterator)
try:
    checked(open_database, options, sys.argv[2].encode())
except RuntimeError as error:
    print("a second open:", str(error).split(":", 1)[0])
close(database)
options_destroy(options)
print("end")
