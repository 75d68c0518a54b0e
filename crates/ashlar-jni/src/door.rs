//! Parameters of natives to values of Rust and back, errors, panics.
//!
//! The generated natives call the functions here. A native whose body fails answers zero or null, and Java throws.

use crate::env::{Env, Local};
use crate::exception;
use crate::handles::{self, Object};
use ashlardb::{Error, ErrorKind, View};
use jni_sys::jobject;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Why a native ends early.
#[derive(Debug)]
pub enum Fail {
    /// An error, which becomes a Java exception.
    Error(Error),
    /// An object is used that is closed, or not in the state for the call.
    Misuse(Error),
    /// A Java exception is pending already.
    Thrown,
}

impl From<Error> for Fail {
    fn from(e: Error) -> Fail {
        Fail::Error(e)
    }
}

impl From<Fail> for Error {
    /// For callers in the engine, where no Java exception can be pending.
    fn from(fail: Fail) -> Error {
        match fail {
            Fail::Error(e) | Fail::Misuse(e) => e,
            Fail::Thrown => Error::new(ErrorKind::Aborted, "the JVM refused a call"),
        }
    }
}

/// The result of a body.
pub type Result<T> = std::result::Result<T, Fail>;

/// Runs the body of a native, and throws what it fails with. `throws`: the native declares `RocksDBException`.
pub fn call<'a, R: Default>(env: Env<'a>, throws: bool, body: impl FnOnce(Env<'a>) -> Result<R>) -> R {
    let done = catch_unwind(AssertUnwindSafe(|| body(env)));
    let done = done.unwrap_or_else(|panic| Err(Fail::Error(panicked(panic.as_ref()))));
    done.unwrap_or_else(|fail| {
        match fail {
            Fail::Error(e) => exception::throw(env, throws, false, &e),
            Fail::Misuse(e) => exception::throw(env, throws, true, &e),
            Fail::Thrown => {}
        }
        R::default()
    })
}

/// The error of a panic.
pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    Error::new(ErrorKind::Aborted, format!("a panic: {said}"))
}

/// The answer of a native that AshlarDB does not have.
///
/// # Errors
/// `NotSupported`, always.
pub fn missing<R>(native: &str) -> Result<R> {
    Err(Fail::Error(Error::not_supported(format!("{native} of RocksDB's Java interface"))))
}

/// Null where Java must not pass null.
#[cold]
fn null(name: &str) -> Fail {
    Fail::Error(Error::invalid(format!("{name} is null")))
}

/// An object by its handle.
///
/// # Errors
/// Those of [`handles::get`].
pub fn object<T: Object>(handle: i64) -> Result<Arc<T>> {
    handles::get(handle).map_err(Fail::Misuse)
}

/// An object by its handle; 0 stands for none.
///
/// # Errors
/// Those of [`handles::get_if`].
pub fn object_if<T: Object>(handle: i64) -> Result<Option<Arc<T>>> {
    handles::get_if(handle).map_err(Fail::Misuse)
}

/// Objects by their handles.
///
/// # Errors
/// Those of [`handles::get`]. `InvalidArgument`: null.
pub fn objects<T: Object>(env: Env<'_>, array: Local<'_>, name: &str) -> Result<Vec<Arc<T>>> {
    longs(env, array, name)?.into_iter().map(object).collect()
}

/// Bytes below this number stay on the stack.
const SMALL: usize = 128;

/// A copy of bytes of Java.
#[derive(Debug)]
pub struct Bytes {
    small: [u8; SMALL],
    len: usize,
    large: Vec<u8>,
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.small.get(..self.len).unwrap_or(&self.large)
    }
}

impl Bytes {
    fn filled(len: usize, fill: impl FnOnce(&mut [u8])) -> Bytes {
        let mut bytes = Bytes { small: [0; SMALL], len, large: Vec::new() };
        match bytes.small.get_mut(..len) {
            Some(small) => fill(small),
            None => {
                bytes.large = vec![0; len];
                fill(&mut bytes.large);
            }
        }
        bytes
    }
}

/// `len` bytes from `start` on, of `capacity`.
fn checked(start: i32, len: i32, capacity: usize, name: &str) -> Result<(usize, usize)> {
    let range = usize::try_from(start).ok().zip(usize::try_from(len).ok());
    range.filter(|(start, len)| start + len <= capacity).ok_or_else(|| {
        let what = format!("{name}: {len} bytes from {start} on, of {capacity}");
        Fail::Error(Error::invalid(what).hint("Keep offset and length within the array or buffer"))
    })
}

/// Bytes of an array, from an offset on.
///
/// # Errors
/// `InvalidArgument`: null, or not within the array.
#[inline]
pub fn slice(env: Env<'_>, array: Local<'_>, start: i32, len: i32, name: &str) -> Result<Bytes> {
    if array.is_null() {
        return Err(null(name));
    }
    let (start, len) = checked(start, len, env.array_len(array), name)?;
    Ok(Bytes::filled(len, |into| env.read_bytes(array, start, into)))
}

/// The first bytes of an array.
///
/// # Errors
/// As [`fn@slice`].
#[inline]
pub fn bytes(env: Env<'_>, array: Local<'_>, len: i32, name: &str) -> Result<Bytes> {
    slice(env, array, 0, len, name)
}

/// All bytes of an array.
///
/// # Errors
/// As [`fn@slice`].
pub fn whole(env: Env<'_>, array: Local<'_>, name: &str) -> Result<Bytes> {
    whole_if(env, array, name)?.ok_or_else(|| null(name))
}

/// All bytes of an array; null stands for none.
///
/// # Errors
/// None.
pub fn whole_if(env: Env<'_>, array: Local<'_>, _: &str) -> Result<Option<Bytes>> {
    if array.is_null() {
        return Ok(None);
    }
    let len = env.array_len(array);
    Ok(Some(Bytes::filled(len, |into| env.read_bytes(array, 0, into))))
}

/// The first bytes of an array; null stands for none.
///
/// # Errors
/// As [`fn@slice`].
pub fn bytes_if(env: Env<'_>, array: Local<'_>, len: i32, name: &str) -> Result<Option<Bytes>> {
    if array.is_null() { Ok(None) } else { slice(env, array, 0, len, name).map(Some) }
}

/// Bytes of a direct buffer, from an offset on.
///
/// # Errors
/// `InvalidArgument`: null, no direct buffer, or not within it.
#[inline]
pub fn direct(env: Env<'_>, buffer: Local<'_>, start: i32, len: i32, name: &str) -> Result<Bytes> {
    let room = room_direct(env, buffer, start, len, name)?;
    Ok(Bytes::filled(room.len, |into| {
        // SAFETY: the buffer has so many bytes; the copy is of bytes, which no other object of ours refers to.
        unsafe { room.address.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
    }))
}

/// Room for bytes in an array or a direct buffer of Java.
#[derive(Debug)]
pub struct Room<'a> {
    array: Local<'a>,
    start: usize,
    address: *mut u8,
    /// Its bytes.
    pub len: usize,
}

/// Room in an array, from an offset on.
///
/// # Errors
/// As [`fn@slice`].
pub fn room<'a>(env: Env<'a>, array: Local<'a>, start: i32, len: i32, name: &str) -> Result<Room<'a>> {
    if array.is_null() {
        return Err(null(name));
    }
    let (start, len) = checked(start, len, env.array_len(array), name)?;
    Ok(Room { array, start, address: std::ptr::null_mut(), len })
}

/// Room in a direct buffer, from an offset on.
///
/// # Errors
/// As [`direct`].
pub fn room_direct<'a>(
    env: Env<'a>,
    buffer: Local<'a>,
    start: i32,
    len: i32,
    name: &str,
) -> Result<Room<'a>> {
    if buffer.is_null() {
        return Err(null(name));
    }
    let (address, capacity) = env.direct(buffer).ok_or_else(|| {
        Fail::Error(Error::invalid(format!(
            "Invalid {name} argument (argument is not a valid direct ByteBuffer)"
        )))
    })?;
    let (start, len) = checked(start, len, capacity, name)?;
    // Within the buffer, so the sum does not wrap.
    Ok(Room { array: Local::NULL, start: 0, address: address.wrapping_add(start), len })
}

impl Room<'_> {
    /// Copies as much of a value as there is room for. Answers the length of the whole value, as RocksDB does.
    pub fn fill(&self, env: Env<'_>, value: &[u8]) -> i32 {
        let part = value.get(..self.len).unwrap_or(value);
        if !self.array.is_null() {
            env.write_bytes(self.array, self.start, part);
        } else if !part.is_empty() {
            // SAFETY: the buffer has room for so many bytes, and is not the memory of the value, which the engine has.
            unsafe { self.address.copy_from_nonoverlapping(part.as_ptr(), part.len()) };
        }
        i32::try_from(value.len()).unwrap_or(i32::MAX)
    }
}

/// A string.
///
/// # Errors
/// `InvalidArgument`: null.
pub fn text(env: Env<'_>, string: Local<'_>, name: &str) -> Result<String> {
    text_if(env, string, name)?.ok_or_else(|| null(name))
}

/// A string; null stands for none.
///
/// # Errors
/// None.
pub fn text_if(env: Env<'_>, string: Local<'_>, _: &str) -> Result<Option<String>> {
    Ok((!string.is_null()).then(|| env.text(string)))
}

/// Numbers of a `long[]`.
///
/// # Errors
/// `InvalidArgument`: null.
pub fn longs(env: Env<'_>, array: Local<'_>, name: &str) -> Result<Vec<i64>> {
    if array.is_null() { Err(null(name)) } else { Ok(env.longs(array)) }
}

/// Numbers of a `long[]`; null stands for none.
///
/// # Errors
/// None.
pub fn longs_if(env: Env<'_>, array: Local<'_>, _: &str) -> Result<Option<Vec<i64>>> {
    Ok((!array.is_null()).then(|| env.longs(array)))
}

/// Numbers of an `int[]`.
///
/// # Errors
/// `InvalidArgument`: null.
pub fn ints(env: Env<'_>, array: Local<'_>, name: &str) -> Result<Vec<i32>> {
    if array.is_null() { Err(null(name)) } else { Ok(env.ints(array)) }
}

/// Each element of an array of objects, by a function that takes the element; null stands for none.
fn elements_if<'a, T>(
    env: Env<'a>,
    array: Local<'a>,
    name: &str,
    each: impl Fn(Local<'a>) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    if array.is_null() {
        return Err(null(name));
    }
    let one = |at| {
        let element = env.element(array, at)?;
        if element.is_null() {
            return Ok(None);
        }
        let taken = each(element);
        env.forget(element);
        taken.map(Some)
    };
    (0..env.array_len(array)).map(one).collect()
}

/// Each element of an array of objects, none of which may be null.
fn elements<'a, T>(
    env: Env<'a>,
    array: Local<'a>,
    name: &str,
    each: impl Fn(Local<'a>) -> Result<T>,
) -> Result<Vec<T>> {
    let taken = elements_if(env, array, name, each)?.into_iter().enumerate();
    taken.map(|(at, element)| element.ok_or_else(|| null(&format!("{name}[{at}]")))).collect()
}

/// The bytes of a `byte[]`.
fn array(env: Env<'_>, array: Local<'_>) -> Vec<u8> {
    let mut bytes = vec![0; env.array_len(array)];
    env.read_bytes(array, 0, &mut bytes);
    bytes
}

/// The byte arrays of a `byte[][]`.
///
/// # Errors
/// `InvalidArgument`: null, or an element that is null.
pub fn arrays(env: Env<'_>, array: Local<'_>, name: &str) -> Result<Vec<Vec<u8>>> {
    elements(env, array, name, |element| Ok(self::array(env, element)))
}

/// The byte arrays of a `byte[][]`; null stands for none.
///
/// # Errors
/// `InvalidArgument`: the array of arrays is null.
pub fn arrays_if(env: Env<'_>, array: Local<'_>, name: &str) -> Result<Vec<Option<Vec<u8>>>> {
    elements_if(env, array, name, |element| Ok(self::array(env, element)))
}

/// The byte arrays of a `byte[][]`, each from its offset on with its length.
///
/// # Errors
/// `InvalidArgument`: null, an element that is null, or a range that is not within its array.
pub fn parts_of_arrays(
    env: Env<'_>,
    array: Local<'_>,
    offsets: Local<'_>,
    lens: Local<'_>,
    name: &str,
) -> Result<Vec<Vec<u8>>> {
    let (whole, starts, lens) =
        (arrays(env, array, name)?, ints(env, offsets, "offsets")?, ints(env, lens, "lengths")?);
    if starts.len() < whole.len() || lens.len() < whole.len() {
        return Err(Fail::Error(Error::invalid(format!("{name}: fewer offsets or lengths than arrays"))));
    }
    let part = |((bytes, start), len): ((Vec<u8>, i32), i32)| {
        let (start, len) = checked(start, len, bytes.len(), name)?;
        Ok(if len == bytes.len() {
            bytes
        } else {
            bytes.get(start..start + len).unwrap_or_default().to_vec()
        })
    };
    whole.into_iter().zip(starts).zip(lens).map(part).collect()
}

/// The texts of a `String[]`.
///
/// # Errors
/// `InvalidArgument`: null, or an element that is null.
pub fn texts(env: Env<'_>, array: Local<'_>, name: &str) -> Result<Vec<String>> {
    elements(env, array, name, |element| Ok(env.text(element)))
}

/// What a body answers, as the JVM takes it.
pub trait Answer {
    /// For the JVM.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    fn object(self, env: Env<'_>) -> Result<jobject>;
}

impl Answer for Local<'_> {
    fn object(self, _: Env<'_>) -> Result<jobject> {
        Ok(self.raw())
    }
}

impl Answer for String {
    fn object(self, env: Env<'_>) -> Result<jobject> {
        Ok(env.new_text(&self)?.raw())
    }
}

impl Answer for Vec<u8> {
    fn object(self, env: Env<'_>) -> Result<jobject> {
        Ok(env.new_bytes(&self)?.raw())
    }
}

impl Answer for View {
    fn object(self, env: Env<'_>) -> Result<jobject> {
        Ok(env.new_bytes(&self)?.raw())
    }
}

impl Answer for Vec<i64> {
    fn object(self, env: Env<'_>) -> Result<jobject> {
        Ok(env.new_longs(&self)?.raw())
    }
}

impl Answer for Vec<i32> {
    fn object(self, env: Env<'_>) -> Result<jobject> {
        Ok(env.new_ints(&self)?.raw())
    }
}

impl<T: Answer> Answer for Option<T> {
    fn object(self, env: Env<'_>) -> Result<jobject> {
        self.map_or(Ok(std::ptr::null_mut()), |answer| answer.object(env))
    }
}

/// An object for the JVM, or null.
#[derive(Debug)]
pub struct Answered(pub jobject);

impl Default for Answered {
    fn default() -> Self {
        Answered(std::ptr::null_mut())
    }
}

/// What a body answers, as an object of the JVM.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn answered(env: Env<'_>, answer: impl Answer) -> Result<Answered> {
    answer.object(env).map(Answered)
}

/// A new array of objects, each made by `each` of an item.
///
/// # Errors
/// `Thrown`: the JVM has no memory. Those of `each`.
pub fn array_of<'a, T>(
    env: Env<'a>,
    class: Local<'_>,
    items: &[T],
    each: impl Fn(&T) -> Result<Local<'a>>,
) -> Result<Local<'a>> {
    let array = env.new_objects(class, items.len())?;
    for (at, item) in items.iter().enumerate() {
        let object = env.in_frame(|| each(item))?;
        env.set_element(array, at, object)?;
        if !object.is_null() {
            env.forget(object);
        }
    }
    Ok(array)
}
