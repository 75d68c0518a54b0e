//! Memory of `malloc`, which a call returns and the caller frees.

use std::ffi::{c_char, c_void};

/// Frees what a call returned.
///
/// # Safety
/// The memory is null or that of a call of this library, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocksdb_free(ptr: *mut c_void) {
    // SAFETY: as for this function.
    unsafe { free(ptr) };
}

/// Frees what a call returned, for a function of C.
///
/// # Safety
/// As [`rocksdb_free`].
pub unsafe fn free(ptr: *mut c_void) {
    crate::checked::forget(ptr);
    // SAFETY: as for this function.
    unsafe { libc::free(ptr) };
}

/// Copies the bytes of `elements` into new memory. Returns null if there is no memory.
fn copied<T>(elements: &[T]) -> *mut T {
    // At least one byte, so that null stands for no memory.
    // SAFETY: `malloc` takes any size.
    let new = unsafe { libc::malloc(size_of_val(elements).max(1)) }.cast::<T>();
    if !new.is_null() {
        // SAFETY: the new memory holds so many elements, has the alignment of `malloc`, and is not that of `elements`.
        unsafe { new.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
    }
    new
}

/// An array; null if there is no memory.
pub(crate) fn new_array<T: Copy>(elements: &[T]) -> *mut T {
    copied(elements)
}

/// Bytes; null if there is no memory.
pub(crate) fn new_bytes(bytes: &[u8]) -> *mut c_char {
    copied(bytes).cast()
}

/// A string, with a zero at its end; null if there is no memory.
pub(crate) fn new_text(text: &str) -> *mut c_char {
    new_bytes(&[text.as_bytes(), b"\0"].concat())
}

/// An array of strings. The caller frees each string and the array.
pub(crate) fn new_texts<'a>(texts: impl Iterator<Item = &'a str>) -> *mut *mut c_char {
    new_array(&texts.map(new_text).collect::<Vec<_>>())
}

/// Frees an array of strings, and each string.
///
/// # Safety
/// The array is null or one of [`new_texts`] with `len` strings, and is not used again.
pub(crate) unsafe fn free_texts(texts: *mut *mut c_char, len: usize) {
    crate::door::call(std::ptr::null_mut(), || {
        // SAFETY: as for this function.
        for text in unsafe { crate::door::slice(texts.cast_const(), len, "list") }? {
            // SAFETY: each string is of `malloc`.
            unsafe { libc::free((*text).cast()) };
        }
        // SAFETY: as for this function.
        unsafe { libc::free(texts.cast()) };
        Ok(())
    });
}

/// A copy of the bytes of an object that `owner` keeps; null if there is no memory. Calls read the copy by reference and never
/// change it. `rocksdb_free` frees the bytes without dropping the object. The object must live longer than the copy.
pub(crate) fn lent_copy<T: 'static, O>(object: &T, owner: *const O) -> *mut T {
    let copy = copied(std::slice::from_ref(object));
    if crate::checked::is_on() && !copy.is_null() {
        crate::checked::lent(copy, owner);
    }
    copy
}
