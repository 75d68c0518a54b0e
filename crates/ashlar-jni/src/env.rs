//! What the library calls of the JVM, with safe types.
//!
//! 1. An [`Env`] belongs to one thread and one call of it. A [`Local`] is valid as long as its call.
//! 2. A function that may leave a Java exception pending answers [`Fail::Thrown`]; the native returns then, and Java throws.
//! 3. No function here holds a critical section of the JVM, so that garbage collection goes on while the engine waits for a disk.
//! 4. Bytes and strings are copied, once in each direction.

use crate::door::{Fail, Result};
use jni_sys::{
    JNI_OK, JNI_VERSION_1_6, JNIEnv, JNIInvokeInterface_, JNINativeInterface__1_6, JavaVM, JavaVMAttachArgs,
    jclass, jint, jlong, jmethodID, jobject, jsize, jvalue,
};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::sync::OnceLock;

/// The JVM's functions for one thread, during one call.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    raw: *mut JNIEnv,
    functions: &'a JNINativeInterface__1_6,
}

impl std::fmt::Debug for Env<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}

/// A Java object, during one call; may be null.
#[derive(Clone, Copy, Debug)]
pub struct Local<'a>(jobject, PhantomData<&'a ()>);

impl Local<'_> {
    /// No object.
    pub const NULL: Local<'static> = Local(std::ptr::null_mut(), PhantomData);

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The reference, for the JVM.
    pub fn raw(self) -> jobject {
        self.0
    }
}

/// A Java object that the library keeps.
#[derive(Debug)]
pub struct Global(jobject);

// SAFETY: a global reference is valid on every thread.
unsafe impl Send for Global {}
// SAFETY: as above; the JVM synchronises its own state.
unsafe impl Sync for Global {}

impl Global {
    /// The object, for a call.
    pub fn local<'a>(&'a self, _: Env<'a>) -> Local<'a> {
        Local(self.0, PhantomData)
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        let raw = self.0;
        // Without a JVM there is nothing to give back.
        let _ = with_env(|env| {
            // SAFETY: the reference is a global one, which is not used again.
            unsafe { (env.functions.DeleteGlobalRef)(env.raw, raw) };
            Ok(())
        });
    }
}

/// A method of a class, valid as long as the class is loaded.
#[derive(Clone, Copy, Debug)]
pub struct MethodId(jmethodID);

// SAFETY: a method id is a constant of the JVM.
unsafe impl Send for MethodId {}
// SAFETY: as above.
unsafe impl Sync for MethodId {}

impl<'a> Env<'a> {
    /// The functions of a call.
    ///
    /// # Safety
    /// `raw` is what the JVM passed to a native of this thread, or [`with_env`] got for it. The result is not used after the call.
    pub unsafe fn new(raw: *mut JNIEnv) -> Env<'a> {
        // SAFETY: as for this function.
        let table = unsafe { *raw };
        // SAFETY: the JVM's table of functions lives as long as the JVM.
        let table = unsafe { &*table };
        // SAFETY: the JVM is 1.6 or newer: `JNI_OnLoad` asked for that.
        let functions = unsafe { &table.v1_6 };
        Env { raw, functions }
    }

    /// A parameter of a native.
    ///
    /// # Safety
    /// `raw` is null or a reference that is valid during the call.
    pub unsafe fn local(self, raw: jobject) -> Local<'a> {
        Local(raw, PhantomData)
    }

    fn found(self, raw: jobject) -> Result<Local<'a>> {
        if raw.is_null() { Err(Fail::Thrown) } else { Ok(Local(raw, PhantomData)) }
    }

    /// # Errors
    /// `Thrown`: an exception is pending.
    pub fn check(self) -> Result<()> {
        // SAFETY: the JVM's function takes its own environment.
        if unsafe { (self.functions.ExceptionCheck)(self.raw) } { Err(Fail::Thrown) } else { Ok(()) }
    }

    /// Takes the pending exception; `None` without one.
    pub fn take_exception(self) -> Option<Local<'a>> {
        // SAFETY: as in `check`.
        let raw = unsafe { (self.functions.ExceptionOccurred)(self.raw) };
        if raw.is_null() {
            return None;
        }
        // SAFETY: as in `check`.
        unsafe { (self.functions.ExceptionClear)(self.raw) };
        Some(Local(raw, PhantomData))
    }

    /// Makes an exception pending.
    pub fn throw(self, exception: Local<'_>) {
        // SAFETY: the object is a throwable of this call.
        unsafe { (self.functions.Throw)(self.raw, exception.0) };
    }

    /// Makes an exception of a class pending, with a message.
    pub fn throw_new(self, class: Local<'_>, message: &str) {
        let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
        // SAFETY: the class is one of throwables; the message ends with a zero.
        unsafe { (self.functions.ThrowNew)(self.raw, class.0, message.as_ptr()) };
    }

    /// A class that the caller of the native sees.
    ///
    /// # Errors
    /// `Thrown`: there is no such class.
    pub fn find_class(self, name: &CStr) -> Result<Local<'a>> {
        // SAFETY: the name ends with a zero.
        let raw = unsafe { (self.functions.FindClass)(self.raw, name.as_ptr()) };
        self.found(raw)
    }

    /// The class of an object.
    pub fn class_of(self, object: Local<'_>) -> Local<'a> {
        // SAFETY: the object is one of this call, and not null.
        Local(unsafe { (self.functions.GetObjectClass)(self.raw, object.0) }, PhantomData)
    }

    /// A method by its name and descriptor.
    ///
    /// # Errors
    /// `Thrown`: the class has no such method.
    pub fn method(self, class: Local<'_>, name: &str, descriptor: &str, fixed: bool) -> Result<MethodId> {
        let (name, descriptor) =
            (CString::new(name).unwrap_or_default(), CString::new(descriptor).unwrap_or_default());
        let find = if fixed { self.functions.GetStaticMethodID } else { self.functions.GetMethodID };
        // SAFETY: the class is one of this call; both texts end with a zero.
        let id = unsafe { find(self.raw, class.0, name.as_ptr(), descriptor.as_ptr()) };
        if id.is_null() { Err(Fail::Thrown) } else { Ok(MethodId(id)) }
    }

    /// A new object by a constructor of its class.
    ///
    /// # Errors
    /// `Thrown`: the constructor threw.
    pub fn new_object(
        self,
        class: Local<'_>,
        constructor: MethodId,
        arguments: &[jvalue],
    ) -> Result<Local<'a>> {
        let make = self.functions.NewObjectA;
        // SAFETY: the constructor is one of the class, and the arguments are those of its descriptor.
        self.found(unsafe { make(self.raw, class.0, constructor.0, arguments.as_ptr()) })
    }

    /// Calls a method that answers an object, perhaps null.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_object(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<Local<'a>> {
        let call = self.functions.CallObjectMethodA;
        // SAFETY: the method is one of the object's class, and the arguments are those of its descriptor.
        let raw = unsafe { call(self.raw, object.0, method.0, arguments.as_ptr()) };
        self.check().map(|()| Local(raw, PhantomData))
    }

    /// Calls a static method that answers an object, perhaps null.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_static_object(
        self,
        class: Local<'_>,
        method: MethodId,
        arguments: &[jvalue],
    ) -> Result<Local<'a>> {
        let call = self.functions.CallStaticObjectMethodA;
        // SAFETY: as in `call_object`.
        let raw = unsafe { call(self.raw, class.0, method.0, arguments.as_ptr()) };
        self.check().map(|()| Local(raw, PhantomData))
    }

    /// Calls a static method that answers an `int`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_static_int(self, class: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<i32> {
        let call = self.functions.CallStaticIntMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, class.0, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Calls a method that answers nothing.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_void(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<()> {
        let call = self.functions.CallVoidMethodA;
        // SAFETY: as in `call_object`.
        unsafe { call(self.raw, object.0, method.0, arguments.as_ptr()) };
        self.check()
    }

    /// Calls a method that answers an `int`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_int(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<i32> {
        let call = self.functions.CallIntMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, object.0, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Calls a method that answers a `long`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_long(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<i64> {
        let call = self.functions.CallLongMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, object.0, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Calls a method that answers a `boolean`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_bool(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<bool> {
        let call = self.functions.CallBooleanMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, object.0, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Keeps an object beyond the call.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn global(self, object: Local<'_>) -> Result<Global> {
        // SAFETY: the object is one of this call.
        let raw = unsafe { (self.functions.NewGlobalRef)(self.raw, object.0) };
        if raw.is_null() { Err(Fail::Thrown) } else { Ok(Global(raw)) }
    }

    /// Another local reference to an object.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn again(self, object: Local<'_>) -> Result<Local<'a>> {
        // SAFETY: the object is one of this call, or one that the library keeps.
        self.found(unsafe { (self.functions.NewLocalRef)(self.raw, object.0) })
    }

    /// Gives a local reference back before the end of the call: for loops.
    pub fn forget(self, object: Local<'_>) {
        // SAFETY: the reference is a local one of this call. The caller does not use it again.
        unsafe { (self.functions.DeleteLocalRef)(self.raw, object.0) };
    }
}

/// Arrays, strings and buffers.
impl<'a> Env<'a> {
    /// The number of elements of an array.
    pub fn array_len(self, array: Local<'_>) -> usize {
        // SAFETY: the object is an array of this call, and not null.
        let len = unsafe { (self.functions.GetArrayLength)(self.raw, array.0) };
        usize::try_from(len).unwrap_or_default()
    }

    /// Copies bytes of an array, from `start` on. The caller has checked that the array has them.
    pub fn read_bytes(self, array: Local<'_>, start: usize, into: &mut [u8]) {
        let get = self.functions.GetByteArrayRegion;
        let place = into.as_mut_ptr().cast();
        // SAFETY: the array is one of bytes; the place has so many bytes, and the JVM checks the range.
        unsafe { get(self.raw, array.0, size(start), size(into.len()), place) };
    }

    /// Copies bytes into an array, from `start` on. The caller has checked that the array has room.
    pub fn write_bytes(self, array: Local<'_>, start: usize, from: &[u8]) {
        let set = self.functions.SetByteArrayRegion;
        // SAFETY: the array is one of bytes; the source has so many bytes, and the JVM checks the range.
        unsafe { set(self.raw, array.0, size(start), size(from.len()), from.as_ptr().cast()) };
    }

    /// A new `byte[]`.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn new_bytes(self, bytes: &[u8]) -> Result<Local<'a>> {
        // SAFETY: the JVM's function takes its own environment.
        let raw = unsafe { (self.functions.NewByteArray)(self.raw, size(bytes.len())) };
        let array = self.found(raw)?;
        self.write_bytes(array, 0, bytes);
        Ok(array)
    }

    /// The elements of a `long[]`.
    pub fn longs(self, array: Local<'_>) -> Vec<jlong> {
        let mut all = vec![0; self.array_len(array)];
        let get = self.functions.GetLongArrayRegion;
        // SAFETY: the array is one of longs, and the place has as many.
        unsafe { get(self.raw, array.0, 0, size(all.len()), all.as_mut_ptr()) };
        all
    }

    /// The elements of an `int[]`.
    pub fn ints(self, array: Local<'_>) -> Vec<jint> {
        let mut all = vec![0; self.array_len(array)];
        let get = self.functions.GetIntArrayRegion;
        // SAFETY: the array is one of ints, and the place has as many.
        unsafe { get(self.raw, array.0, 0, size(all.len()), all.as_mut_ptr()) };
        all
    }

    /// Sets the first elements of an `int[]`; the caller has checked that it has as many.
    pub fn set_ints(self, array: Local<'_>, from: &[jint]) {
        let set = self.functions.SetIntArrayRegion;
        // SAFETY: the array is one of ints; the JVM checks the range.
        unsafe { set(self.raw, array.0, 0, size(from.len()), from.as_ptr()) };
    }

    /// Sets the first elements of a `long[]`; the caller has checked that it has as many.
    pub fn set_longs(self, array: Local<'_>, from: &[jlong]) {
        let set = self.functions.SetLongArrayRegion;
        // SAFETY: the array is one of longs; the JVM checks the range.
        unsafe { set(self.raw, array.0, 0, size(from.len()), from.as_ptr()) };
    }

    /// A new `long[]`.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn new_longs(self, from: &[jlong]) -> Result<Local<'a>> {
        // SAFETY: the JVM's function takes its own environment.
        let raw = unsafe { (self.functions.NewLongArray)(self.raw, size(from.len())) };
        let array = self.found(raw)?;
        self.set_longs(array, from);
        Ok(array)
    }

    /// A new `int[]`.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn new_ints(self, from: &[jint]) -> Result<Local<'a>> {
        // SAFETY: the JVM's function takes its own environment.
        let raw = unsafe { (self.functions.NewIntArray)(self.raw, size(from.len())) };
        let array = self.found(raw)?;
        self.set_ints(array, from);
        Ok(array)
    }

    /// A new array of objects, all null.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn new_objects(self, class: Local<'_>, len: usize) -> Result<Local<'a>> {
        let make = self.functions.NewObjectArray;
        // SAFETY: the class is one of this call; null is an element of every class.
        self.found(unsafe { make(self.raw, size(len), class.0, std::ptr::null_mut()) })
    }

    /// An element of an array of objects, perhaps null.
    ///
    /// # Errors
    /// `Thrown`: the array has no such element.
    pub fn element(self, array: Local<'_>, at: usize) -> Result<Local<'a>> {
        // SAFETY: the object is an array of objects; the JVM checks the index.
        let raw = unsafe { (self.functions.GetObjectArrayElement)(self.raw, array.0, size(at)) };
        self.check().map(|()| Local(raw, PhantomData))
    }

    /// Sets an element of an array of objects.
    ///
    /// # Errors
    /// `Thrown`: the array has no such element, or does not take the object.
    pub fn set_element(self, array: Local<'_>, at: usize, object: Local<'_>) -> Result<()> {
        // SAFETY: the object is an array of objects; the JVM checks index and class.
        unsafe { (self.functions.SetObjectArrayElement)(self.raw, array.0, size(at), object.0) };
        self.check()
    }

    /// The text of a `String`. What is no Unicode is replaced.
    pub fn text(self, string: Local<'_>) -> String {
        // SAFETY: the object is a string of this call, and not null.
        let len = unsafe { (self.functions.GetStringLength)(self.raw, string.0) };
        let mut units = vec![0u16; usize::try_from(len).unwrap_or_default()];
        // SAFETY: the place has as many units as the string.
        unsafe { (self.functions.GetStringRegion)(self.raw, string.0, 0, len, units.as_mut_ptr()) };
        String::from_utf16_lossy(&units)
    }

    /// A new `String`.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn new_text(self, text: &str) -> Result<Local<'a>> {
        let units: Vec<u16> = text.encode_utf16().collect();
        // SAFETY: the source has so many units.
        let raw = unsafe { (self.functions.NewString)(self.raw, units.as_ptr(), size(units.len())) };
        self.found(raw)
    }

    /// The address and the capacity of a direct buffer; `None`: the buffer is not direct.
    pub fn direct(self, buffer: Local<'_>) -> Option<(*mut u8, usize)> {
        // SAFETY: the object is a buffer of this call, and not null.
        let address = unsafe { (self.functions.GetDirectBufferAddress)(self.raw, buffer.0) };
        // SAFETY: as above.
        let capacity = unsafe { (self.functions.GetDirectBufferCapacity)(self.raw, buffer.0) };
        let capacity = usize::try_from(capacity).ok()?;
        (!address.is_null()).then_some((address.cast(), capacity))
    }

    /// A direct buffer over memory of the library.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    /// # Safety
    /// Nothing uses the buffer once the memory is gone, or while the library changes it.
    pub unsafe fn new_direct(self, address: *mut u8, len: usize) -> Result<Local<'a>> {
        let make = self.functions.NewDirectByteBuffer;
        let len = jlong::try_from(len).unwrap_or(jlong::MAX);
        // SAFETY: as for this function.
        self.found(unsafe { make(self.raw, address.cast(), len) })
    }
}

/// A length for the JVM, whose arrays are shorter than 2^31.
fn size(len: usize) -> jsize {
    jsize::try_from(len).unwrap_or(jsize::MAX)
}

/// The JVM of the process.
struct Machine(*mut JavaVM);

// SAFETY: the JVM may be asked from every thread.
unsafe impl Send for Machine {}
// SAFETY: as above.
unsafe impl Sync for Machine {}

static MACHINE: OnceLock<Machine> = OnceLock::new();

/// Notes the JVM that has loaded the library.
pub(crate) fn loaded_by(machine: *mut JavaVM) {
    // A process has one JVM.
    let _ = MACHINE.set(Machine(machine));
}

fn invoke(machine: &Machine) -> &JNIInvokeInterface_ {
    // SAFETY: the JVM lives as long as the process.
    let table = unsafe { *machine.0 };
    // SAFETY: as above.
    unsafe { &*table }
}

/// Detaches a thread of the engine when it ends.
struct Attached(*mut JavaVM);

impl Drop for Attached {
    fn drop(&mut self) {
        let machine = Machine(self.0);
        // SAFETY: every JVM has the functions of 1.4.
        let functions = unsafe { &invoke(&machine).v1_4 };
        // SAFETY: this thread is attached, and runs no Java code.
        unsafe { (functions.DetachCurrentThread)(self.0) };
    }
}

thread_local! {
    static ATTACHED: RefCell<Option<Attached>> = const { RefCell::new(None) };
}

/// Calls `work` with the functions of this thread. A thread of the engine is attached as a daemon, so that it does not keep the
/// JVM from ending, and is detached when it ends.
///
/// # Errors
/// `Thrown`: there is no JVM, or it refuses the thread. Those of `work`.
pub fn with_env<R>(work: impl FnOnce(Env<'_>) -> Result<R>) -> Result<R> {
    let machine = MACHINE.get().ok_or(Fail::Thrown)?;
    // SAFETY: every JVM has the functions of 1.4.
    let functions = unsafe { &invoke(machine).v1_4 };
    let mut env: *mut c_void = std::ptr::null_mut();
    // SAFETY: the JVM of the process, and a place for its answer.
    let mut answer = unsafe { (functions.GetEnv)(machine.0, &raw mut env, JNI_VERSION_1_6) };
    if answer != JNI_OK {
        let mut arguments = JavaVMAttachArgs {
            version: JNI_VERSION_1_6,
            name: c"ashlardb".as_ptr().cast_mut(),
            group: std::ptr::null_mut(),
        };
        let given = (&raw mut arguments).cast();
        // SAFETY: as above; the JVM copies the arguments.
        answer = unsafe { (functions.AttachCurrentThreadAsDaemon)(machine.0, &raw mut env, given) };
        if answer == JNI_OK {
            ATTACHED.with(|attached| attached.replace(Some(Attached(machine.0))));
        }
    }
    if answer != JNI_OK || env.is_null() {
        return Err(Fail::Thrown);
    }
    // SAFETY: the JVM answered it for this thread.
    let env = unsafe { Env::new(env.cast()) };
    work(env)
}

/// A `long` argument.
pub fn long(value: i64) -> jvalue {
    jvalue { j: value }
}

/// An `int` argument.
pub fn int(value: i32) -> jvalue {
    jvalue { i: value }
}

/// A `byte` argument.
pub fn byte(value: i8) -> jvalue {
    jvalue { b: value }
}

/// A `boolean` argument.
pub fn boolean(value: bool) -> jvalue {
    jvalue { z: value }
}

/// A `double` argument.
pub fn double(value: f64) -> jvalue {
    jvalue { d: value }
}

/// An object argument.
pub fn object(value: Local<'_>) -> jvalue {
    jvalue { l: value.raw() }
}

/// A class as an object: what the JVM passes to a static native.
pub type Class = jclass;
