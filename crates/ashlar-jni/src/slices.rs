//! `Slice` and `DirectSlice`: bytes of the program that options and calls take.
//!
//! A slice has a copy of its bytes. A direct buffer that a slice was made of may be freed or changed at any time.

use crate::classes::{Class, Method};
use crate::door::{Result, direct};
use crate::env::{Env, Local, int};
use crate::handles::{self, Object};
use crate::settings::Shared;
use ashlardb::Error;

/// `Slice`, `DirectSlice`.
#[derive(Debug)]
pub struct SliceObject(Shared<Vec<u8>>);

impl Object for SliceObject {
    const NAME: &'static str = "Slice";
}

impl SliceObject {
    /// These bytes.
    pub fn of(bytes: Vec<u8>) -> SliceObject {
        SliceObject(Shared::new(bytes))
    }

    /// A copy of the bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.read().clone()
    }
}

fn kept(bytes: Vec<u8>) -> Result<i64> {
    Ok(handles::keep(SliceObject::of(bytes))?)
}

fn at(index: i32, len: usize) -> Result<usize> {
    let index = usize::try_from(index).ok().filter(|index| *index <= len);
    index.ok_or_else(|| Error::invalid(format!("not within a slice of {len} bytes")).into())
}

// Each function below is the body of the natives that the description names.

/// All bytes of an array.
pub fn new_of(data: &[u8]) -> Result<i64> {
    kept(data.to_vec())
}

/// The bytes of an array from an offset on.
pub fn new_from(data: &[u8], offset: i32) -> Result<i64> {
    kept(data.get(at(offset, data.len())?..).unwrap_or_default().to_vec())
}

/// The bytes of a text.
pub fn new_of_text(text: &str) -> Result<i64> {
    kept(text.as_bytes().to_vec())
}

/// The first bytes of a direct buffer.
pub fn new_direct_part(env: Env<'_>, buffer: Local<'_>, length: i32) -> Result<i64> {
    kept(direct(env, buffer, 0, length, "data")?.to_vec())
}

/// The bytes of a direct buffer up to the first zero byte, as in RocksDB; without one, all.
pub fn new_direct(env: Env<'_>, buffer: Local<'_>) -> Result<i64> {
    let capacity = if buffer.is_null() { None } else { env.direct(buffer) };
    let length = capacity.and_then(|(_, capacity)| i32::try_from(capacity).ok()).unwrap_or(0);
    let bytes = direct(env, buffer, 0, length, "data")?;
    kept(bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec())
}

/// The bytes.
pub fn data(slice: &SliceObject) -> Result<Vec<u8>> {
    Ok(slice.bytes())
}

/// The bytes, in a new direct buffer.
pub fn direct_data<'a>(env: Env<'a>, slice: &SliceObject) -> Result<Local<'a>> {
    static BUFFER: Class = Class::new("java/nio/ByteBuffer");
    static ALLOCATE: Method = Method::fixed("allocateDirect", "(I)Ljava/nio/ByteBuffer;");
    let bytes = slice.bytes();
    let len = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    let buffer = env.call_static_object(BUFFER.get(env)?, ALLOCATE.of(env, &BUFFER)?, &[int(len)])?;
    crate::door::room_direct(env, buffer, 0, len, "data")?.fill(env, &bytes);
    Ok(buffer)
}

/// No bytes.
pub fn clear(slice: &SliceObject) -> Result<()> {
    slice.0.write().clear();
    Ok(())
}

/// Without the first bytes.
pub fn remove_prefix(slice: &SliceObject, length: i32) -> Result<()> {
    let mut bytes = slice.0.write();
    let end = at(length, bytes.len())?;
    bytes.drain(..end);
    Ok(())
}

/// The first bytes only.
pub fn set_length(slice: &SliceObject, length: i32) -> Result<()> {
    let mut bytes = slice.0.write();
    let len = at(length, bytes.len())?;
    bytes.truncate(len);
    Ok(())
}

/// One byte.
pub fn byte_at(slice: &SliceObject, index: i32) -> Result<i8> {
    let bytes = slice.0.read();
    let byte = bytes.get(at(index, bytes.len())?).copied();
    byte.map(u8::cast_signed).ok_or_else(|| Error::invalid("not within the slice").into())
}

/// The order of two slices.
pub fn compare(a: &SliceObject, b: &SliceObject) -> Result<i32> {
    Ok(a.bytes().cmp(&b.bytes()) as i32)
}

/// How many bytes.
pub fn size(slice: &SliceObject) -> Result<i32> {
    Ok(i32::try_from(slice.0.read().len()).unwrap_or(i32::MAX))
}

/// Whether there are none.
pub fn is_empty(slice: &SliceObject) -> Result<bool> {
    Ok(slice.0.read().is_empty())
}

/// Whether the bytes begin with those of another slice.
pub fn starts_with(slice: &SliceObject, prefix: &SliceObject) -> Result<bool> {
    Ok(slice.bytes().starts_with(&prefix.bytes()))
}

/// The bytes as text, or as hexadecimal digits.
pub fn text(slice: &SliceObject, hex: bool) -> Result<String> {
    let bytes = slice.0.read();
    Ok(if hex {
        bytes.iter().map(|byte| format!("{byte:02X}")).collect()
    } else {
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Gives a slice up.
pub fn close(handle: i64) -> Result<()> {
    handles::close(handle);
    Ok(())
}
