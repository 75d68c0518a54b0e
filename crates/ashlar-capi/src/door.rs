//! Pointers of C to values of Rust and back, errors, panics.
//!
//! The generated functions call nothing else that is unsafe. Each conversion names what the caller must keep to.

use crate::checked::{self, Shown};
pub use crate::families::families;
use crate::memory::{new_bytes, new_text};
use ashlar_compat::options::Texts;
use ashlar_compat::status;
pub use ashlar_compat::value::COMPRESSION;
use ashlar_compat::value::{Names, Scalar};
use ashlardb::{Error, Result};
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An object of C with options that have names.
pub trait HasTexts {
    /// The options.
    fn texts(&self) -> &Texts;
    /// Changes the options.
    fn change(&mut self, set: impl FnOnce(&mut Texts));
}

/// Sets an option.
pub fn set<T: Scalar>(object: &mut impl HasTexts, name: &'static str, value: T) {
    object.change(|texts| texts.set(name, value));
}

/// Sets an option to a value of an enumeration.
pub fn set_named(object: &mut impl HasTexts, name: &'static str, names: Names, number: i32) {
    object.change(|texts| texts.set_named(name, names, number));
}

/// What an option is set to.
pub fn get<T: Scalar>(object: &impl HasTexts, name: &'static str) -> T {
    object.texts().get(name)
}

/// What an option of an enumeration is set to.
pub fn get_named(object: &impl HasTexts, name: &'static str, names: Names) -> i32 {
    object.texts().get_named(name, names)
}

/// A result of C: zero stands for an error.
pub trait Answer {
    /// What a call answers that failed.
    fn zero() -> Self;
}

macro_rules! zero {
    ($($type:ty),*) => { $(impl Answer for $type {
        fn zero() -> Self {
            <$type>::default()
        }
    })* };
}
zero!((), bool, u8, i32, u32, u64, i64, usize, f64);

impl<T> Answer for *mut T {
    fn zero() -> Self {
        std::ptr::null_mut()
    }
}

impl<T> Answer for *const T {
    fn zero() -> Self {
        std::ptr::null()
    }
}

/// Runs the body of a call. An error or a panic goes to `errptr`, if the call has one; the call then answers zero.
///
/// `errptr` is null, or points to null or to a string of `malloc`, as the contract of the function that calls this says.
#[allow(clippy::not_unsafe_ptr_arg_deref, reason = "the generated functions, which call this, are unsafe")]
pub fn call<R: Answer>(errptr: *mut *mut c_char, body: impl FnOnce() -> Result<R>) -> R {
    caught(body).unwrap_or_else(|e| {
        if !errptr.is_null() {
            // SAFETY: `errptr` is not null, so it is the caller's pointer to a string or to null.
            unsafe { put_error(errptr, &e) };
        }
        R::zero()
    })
}

/// Runs the body of a call. A panic becomes an error.
pub(crate) fn caught<R>(body: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
        let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        Err(Error::new(ashlardb::ErrorKind::Aborted, format!("a panic: {said}")))
    })
}

/// Replaces the error of the caller.
///
/// # Safety
/// `errptr` points to null or to a string of `malloc`.
pub unsafe fn put_error(errptr: *mut *mut c_char, e: &Error) {
    let said = error_text(e);
    // SAFETY: as for this function.
    let before = unsafe { errptr.replace(said) };
    // SAFETY: a string of `malloc`, or null.
    unsafe { libc::free(before.cast()) };
}

/// An error as a new string.
pub fn error_text(e: &Error) -> *mut c_char {
    new_text(&status::text(e).replace('\0', "\\0"))
}

/// Checks a pointer that is not null, if handles are checked.
#[inline]
fn check<T: 'static>(pointer: *const T, name: &str) {
    if checked::is_on() && !pointer.is_null() {
        checked::used(pointer, name);
    }
}

fn null(name: &str) -> Error {
    Error::invalid(format!("{name} is null"))
}

/// An object.
///
/// # Errors
/// `InvalidArgument`: the pointer is null.
/// # Safety
/// The pointer is null or that of an object that no other call changes or gives up meanwhile.
#[inline]
pub unsafe fn borrowed<'a, T: 'static>(pointer: *const T, name: &str) -> Result<&'a T> {
    check(pointer, name);
    // SAFETY: as for this function.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// An object that may be left out.
///
/// # Errors
/// None.
/// # Safety
/// As [`borrowed`].
#[inline]
pub unsafe fn borrowed_if<'a, T: 'static>(pointer: *const T, name: &str) -> Result<Option<&'a T>> {
    check(pointer, name);
    // SAFETY: as for this function.
    Ok(unsafe { pointer.as_ref() })
}

/// An object that the call changes.
///
/// # Errors
/// `InvalidArgument`: the pointer is null.
/// # Safety
/// The pointer is null or that of an object that no other call uses meanwhile.
#[inline]
pub unsafe fn changed<'a, T: 'static>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    check(pointer, name);
    // SAFETY: as for this function.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

/// [`changed`], of an object that may be left out.
///
/// # Safety
/// As [`changed`].
#[inline]
pub unsafe fn changed_if<'a, T: 'static>(pointer: *mut T, name: &str) -> Option<&'a mut T> {
    check(pointer, name);
    // SAFETY: as for this function.
    unsafe { pointer.as_mut() }
}

/// [`changed`], where the header has a pointer to const.
///
/// # Errors
/// `InvalidArgument`: the pointer is null.
/// # Safety
/// As [`changed`].
pub unsafe fn changed_const<'a, T: 'static>(pointer: *const T, name: &str) -> Result<&'a mut T> {
    // SAFETY: as for this function; the object is a box that is not const itself.
    unsafe { changed(pointer.cast_mut(), name) }
}

/// An object that the caller gives up; `None`: null.
///
/// # Errors
/// None.
/// # Safety
/// The pointer is null or that of an object that no other call uses from now on.
pub unsafe fn taken<T: 'static>(pointer: *mut T, name: &str) -> Result<Option<Box<T>>> {
    if pointer.is_null() {
        return Ok(None);
    }
    if checked::is_on() {
        // SAFETY: as for this function.
        return Ok(Some(unsafe { checked::taken(pointer, name) }));
    }
    // SAFETY: each object of the library is a box.
    Ok(Some(unsafe { Box::from_raw(pointer) }))
}

/// [`taken`], where the header has a pointer to const.
///
/// # Errors
/// None.
/// # Safety
/// As [`taken`].
pub unsafe fn taken_const<T: 'static>(pointer: *const T, name: &str) -> Result<Option<Box<T>>> {
    // SAFETY: as for this function; the object is a box that is not const itself.
    unsafe { taken(pointer.cast_mut(), name) }
}

/// Bytes.
///
/// # Errors
/// `InvalidArgument`: the pointer is null and the length is not zero.
/// # Safety
/// The pointer is null or that of so many bytes, which nothing changes meanwhile.
pub unsafe fn bytes<'a>(pointer: *const c_char, len: usize, name: &str) -> Result<&'a [u8]> {
    match pointer.is_null() {
        true if len > 0 => Err(null(name)),
        true => Ok(&[]),
        // SAFETY: as for this function.
        false => Ok(unsafe { std::slice::from_raw_parts(pointer.cast(), len) }),
    }
}

/// Bytes that may be left out.
///
/// # Errors
/// None.
/// # Safety
/// As [`bytes`].
pub unsafe fn bytes_if<'a>(pointer: *const c_char, len: usize, name: &str) -> Result<Option<&'a [u8]>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as for this function.
    unsafe { bytes(pointer, len, name) }.map(Some)
}

/// A string.
///
/// # Errors
/// `InvalidArgument`: the pointer is null.
/// # Safety
/// The pointer is null or that of a string with a zero at its end.
pub unsafe fn string<'a>(pointer: *const c_char, name: &str) -> Result<&'a CStr> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: as for this function.
    Ok(unsafe { CStr::from_ptr(pointer) })
}

/// A place for a number.
///
/// # Errors
/// `InvalidArgument`: the pointer is null.
/// # Safety
/// The pointer is null or that of a number that nothing else uses meanwhile.
pub unsafe fn out<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T> {
    // SAFETY: as for this function.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(name))
}

/// Many byte strings of the caller.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    pointers: &'a [*const c_char],
    lengths: &'a [usize],
}

impl<'a> List<'a> {
    /// How many.
    pub fn len(&self) -> usize {
        self.pointers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pointers.is_empty()
    }

    /// The byte strings, in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<&'a [u8]>> + use<'a> {
        self.pointers.iter().zip(self.lengths).map(|(pointer, len)| {
            // SAFETY: as for `list`, which made this.
            unsafe { bytes(*pointer, *len, "an element") }
        })
    }

    /// The byte strings.
    ///
    /// # Errors
    /// `InvalidArgument`: one is null.
    pub fn all(&self) -> Result<Vec<&'a [u8]>> {
        self.iter().collect()
    }
}

/// Many byte strings: a count, pointers and lengths.
///
/// # Errors
/// `InvalidArgument`: a count below zero, or null.
/// # Safety
/// Both pointers are null or those of so many elements, and each element is bytes as [`bytes`] has them.
pub unsafe fn list<'a>(
    count: impl TryInto<usize>,
    pointers: *const *const c_char,
    lengths: *const usize,
    name: &str,
) -> Result<List<'a>> {
    let count = count.try_into().map_err(|_| Error::invalid(format!("{name}: a count below zero")))?;
    // SAFETY: as for this function.
    let pointers = unsafe { slice(pointers, count, name) }?;
    // SAFETY: as for this function.
    let lengths = unsafe { slice(lengths, count, name) }?;
    Ok(List { pointers, lengths })
}

/// Ranges of keys of the caller: for each its two ends.
#[derive(Clone, Copy, Debug)]
pub struct Ranges<'a> {
    /// The first key of each range.
    pub begins: List<'a>,
    /// The key behind each range.
    pub ends: List<'a>,
}

/// Ranges of keys: a count, and pointers and lengths of both ends.
///
/// # Errors
/// Those of [`list`].
/// # Safety
/// Both ends are as [`list`] has them.
pub unsafe fn ranges<'a>(
    count: c_int,
    begins: *const *const c_char,
    begin_lengths: *const usize,
    ends: *const *const c_char,
    end_lengths: *const usize,
    _: &str,
) -> Result<Ranges<'a>> {
    // SAFETY: as for this function.
    let begins = unsafe { list(count, begins, begin_lengths, "range_start_key") }?;
    // SAFETY: as for this function.
    let ends = unsafe { list(count, ends, end_lengths, "range_limit_key") }?;
    Ok(Ranges { begins, ends })
}

/// Elements of an array of the caller.
///
/// # Errors
/// `InvalidArgument`: the pointer is null and the count is not zero.
/// # Safety
/// The pointer is null or that of so many elements, which nothing changes meanwhile.
pub unsafe fn slice<'a, T>(pointer: *const T, count: usize, name: &str) -> Result<&'a [T]> {
    match pointer.is_null() {
        true if count > 0 => Err(null(name)),
        true => Ok(&[]),
        // SAFETY: as for this function.
        false => Ok(unsafe { std::slice::from_raw_parts(pointer, count) }),
    }
}

/// A count of elements.
///
/// # Errors
/// `InvalidArgument`: the count is below zero.
pub fn count(count: c_int) -> Result<usize> {
    usize::try_from(count).map_err(|_| Error::invalid("a count below zero"))
}

/// Strings of an array of the caller; `each` names one of them in its error.
///
/// # Errors
/// `InvalidArgument`: the pointer is null and the count is not zero. Of an element: it is null.
/// # Safety
/// The pointer is null or that of so many elements, and each is a string as [`string`] has them.
pub unsafe fn strings<'a>(
    pointer: *const *const c_char,
    count: usize,
    name: &str,
    each: &'static str,
) -> Result<impl Iterator<Item = Result<&'a CStr>> + use<'a>> {
    // SAFETY: as for this function.
    let elements = unsafe { slice(pointer, count, name) }?;
    // SAFETY: as for this function.
    Ok(elements.iter().map(move |element| unsafe { string(*element, each) }))
}

/// Objects of an array of the caller; `each` names one of them in its error.
///
/// # Errors
/// `InvalidArgument`: the pointer is null and the count is not zero. Of an element: it is null.
/// # Safety
/// The pointer is null or that of so many elements, and each is an object as [`borrowed`] has them.
pub unsafe fn objects<'a, T: 'static>(
    pointer: *const *const T,
    count: usize,
    name: &str,
    each: &'static str,
) -> Result<impl Iterator<Item = Result<&'a T>> + use<'a, T>> {
    // SAFETY: as for this function.
    let elements = unsafe { slice(pointer, count, name) }?;
    // SAFETY: as for this function.
    Ok(elements.iter().map(move |element| unsafe { borrowed(*element, each) }))
}

/// Elements of an array of the caller that the call sets.
///
/// # Errors
/// `InvalidArgument`: the pointer is null and the count is not zero.
/// # Safety
/// The pointer is null or that of so many elements, which nothing else uses meanwhile.
pub unsafe fn slice_mut<'a, T>(pointer: *mut T, count: usize, name: &str) -> Result<&'a mut [T]> {
    match pointer.is_null() {
        true if count > 0 => Err(null(name)),
        true => Ok(&mut []),
        // SAFETY: as for this function.
        false => Ok(unsafe { std::slice::from_raw_parts_mut(pointer, count) }),
    }
}

/// An array of the caller that the call sets. The call knows the number of elements.
#[derive(Debug)]
pub struct Places<T> {
    pointer: *mut T,
    name: &'static str,
}

/// An array of the caller that the call sets.
///
/// # Errors
/// None.
/// # Safety
/// The pointer is as [`slice_mut`] has it, for the number of elements that the header says.
pub unsafe fn places<T>(pointer: *mut T, name: &'static str) -> Result<Places<T>> {
    Ok(Places { pointer, name })
}

impl<T> Places<T> {
    /// The elements: so many as the header says.
    ///
    /// # Errors
    /// `InvalidArgument`: the pointer is null and the count is not zero.
    pub(crate) fn elements(&mut self, count: usize) -> Result<&mut [T]> {
        // SAFETY: as for `places`, which made this.
        unsafe { slice_mut(self.pointer, count, self.name) }
    }
}

/// The place for a length; null if the caller wants none.
#[derive(Clone, Copy, Debug)]
pub struct Length(*mut usize);

/// The place for a length.
pub fn length(pointer: *mut usize) -> Length {
    Length(pointer)
}

impl Length {
    fn set(self, len: usize) {
        if !self.0.is_null() {
            // SAFETY: the caller's place for a length.
            unsafe { self.0.write(len) };
        }
    }
}

/// A new object.
pub fn made<T: 'static>(object: T) -> *mut T {
    let object = Box::into_raw(Box::new(object));
    if checked::is_on() {
        checked::made(object);
    }
    object
}

/// Lends an object to a callback; the pointer is valid until the callback returns.
pub fn shown<T: 'static>(object: &T) -> Shown<'_, T> {
    Shown::new(std::ptr::from_ref(object).cast_mut())
}

/// [`shown`], of an object that the callback may change.
pub fn shown_mut<T: 'static>(object: &mut T) -> Shown<'_, T> {
    Shown::new(object)
}

/// A new object, or null.
pub fn made_if<T: 'static>(object: Option<T>) -> *mut T {
    object.map_or(std::ptr::null_mut(), made)
}

/// A new object that calls do not change.
pub fn made_const<T: 'static>(object: T) -> *const T {
    made(object)
}

/// A new object that calls do not change, or null.
pub fn made_const_if<T: 'static>(object: Option<T>) -> *const T {
    object.map_or(std::ptr::null(), made_const)
}

/// An object that `owner` keeps, or null. The pointer is valid until the owner is freed.
pub fn lent<T: 'static, O>(object: Option<&T>, owner: *const O) -> *const T {
    let Some(object) = object else { return std::ptr::null() };
    if checked::is_on() {
        checked::lent(object, owner);
    }
    object
}

/// New bytes of the caller, or null.
pub fn buffer(bytes: Option<impl AsRef<[u8]>>, length: Length) -> *mut c_char {
    let Some(bytes) = bytes else {
        length.set(0);
        return std::ptr::null_mut();
    };
    length.set(bytes.as_ref().len());
    new_bytes(bytes.as_ref())
}

/// Bytes of an object, valid until it changes, or null.
pub fn view(bytes: Option<&[u8]>, length: Length) -> *const c_char {
    length.set(bytes.map_or(0, <[u8]>::len));
    bytes.map_or(std::ptr::null(), |bytes| bytes.as_ptr().cast())
}

/// A new string of the caller, or null.
pub fn text(text: Option<String>) -> *mut c_char {
    text.map_or(std::ptr::null_mut(), |text| new_text(&text))
}

/// A string of an object, or null.
pub fn borrowed_text(text: Option<&CStr>) -> *const c_char {
    text.map_or(std::ptr::null(), CStr::as_ptr)
}
