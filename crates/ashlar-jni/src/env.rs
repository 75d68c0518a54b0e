//! What the library calls of the JVM, with safe types.
//!
//! 1. An [`Env`] belongs to one thread and one call of it. A [`Local`] is valid until the native returns, or until the work of
//!    [`with_env`] ends: that function has a frame of local references of its own, because a thread of the engine returns to no Java
//!    method that would release them.
//! 2. A function that may leave a Java exception pending answers [`Fail::Thrown`]; the native returns then, and Java throws.
//! 3. No function here holds a critical section of the JVM, so that garbage collection goes on while the engine waits for a disk.
//! 4. Bytes and strings are copied, once in each direction.
//! 5. A [`Global`] that is dropped on a thread without the JVM is deleted by the next thread that has it. So no destructor of a
//!    thread attaches that thread again.

use crate::door::{Fail, Result};
use jni_sys::{
    JNI_OK, JNI_VERSION_1_6, JNIEnv, JNIInvokeInterface_, JNINativeInterface__1_6, JavaVM, JavaVMAttachArgs,
    jint, jlong, jmethodID, jobject, jsize, jvalue,
};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

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
pub struct Local<'a> {
    raw: jobject,
    /// A reference that the library keeps: [`Env::forget`] leaves it alone.
    is_kept: bool,
    of: PhantomData<&'a ()>,
}

impl Local<'_> {
    /// No object.
    pub const NULL: Local<'static> = Local { raw: std::ptr::null_mut(), is_kept: false, of: PhantomData };

    fn of<'a>(raw: jobject) -> Local<'a> {
        Local { raw, is_kept: false, of: PhantomData }
    }

    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.raw.is_null()
    }

    /// The reference, for the JVM.
    pub fn raw(self) -> jobject {
        self.raw
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
        Local { raw: self.0, is_kept: true, of: PhantomData }
    }
}

impl Drop for Global {
    fn drop(&mut self) {
        // Without a JVM there is nothing to release.
        let Some(machine) = MACHINE.get() else { return };
        match present(machine) {
            Some(env) => env.delete_global(self.0),
            None => {
                DROPPED.lock().unwrap_or_else(PoisonError::into_inner).push(Dropped(self.0));
                HAS_DROPPED.store(true, Ordering::Release);
            }
        }
    }
}

/// A global reference that was dropped on a thread without the JVM.
struct Dropped(jobject);

// SAFETY: as for `Global`.
unsafe impl Send for Dropped {}

/// The references that the next thread with the JVM deletes.
static DROPPED: Mutex<Vec<Dropped>> = Mutex::new(Vec::new());
/// Whether [`DROPPED`] has any, so that a callback takes its lock only then.
static HAS_DROPPED: AtomicBool = AtomicBool::new(false);

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
        Local::of(raw)
    }

    fn found(self, raw: jobject) -> Result<Local<'a>> {
        if raw.is_null() { Err(Fail::Thrown) } else { Ok(Local::of(raw)) }
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
        Some(Local::of(raw))
    }

    /// Makes an exception pending.
    pub fn throw(self, exception: Local<'_>) {
        // SAFETY: the object is a throwable of this call.
        unsafe { (self.functions.Throw)(self.raw, exception.raw) };
    }

    /// Makes an exception of a class pending, with a message.
    pub fn throw_new(self, class: Local<'_>, message: &str) {
        let message = CString::new(message.replace('\0', "\\0")).unwrap_or_default();
        // SAFETY: the class is one of throwables; the message ends with a zero.
        unsafe { (self.functions.ThrowNew)(self.raw, class.raw, message.as_ptr()) };
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
        Local::of(unsafe { (self.functions.GetObjectClass)(self.raw, object.raw) })
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
        let id = unsafe { find(self.raw, class.raw, name.as_ptr(), descriptor.as_ptr()) };
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
        self.found(unsafe { make(self.raw, class.raw, constructor.0, arguments.as_ptr()) })
    }

    /// Calls a method that answers an object, perhaps null.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_object(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<Local<'a>> {
        let call = self.functions.CallObjectMethodA;
        // SAFETY: the method is one of the object's class, and the arguments are those of its descriptor.
        let raw = unsafe { call(self.raw, object.raw, method.0, arguments.as_ptr()) };
        self.check().map(|()| Local::of(raw))
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
        let raw = unsafe { call(self.raw, class.raw, method.0, arguments.as_ptr()) };
        self.check().map(|()| Local::of(raw))
    }

    /// Calls a static method that answers an `int`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_static_int(self, class: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<i32> {
        let call = self.functions.CallStaticIntMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, class.raw, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Calls a method that answers nothing.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_void(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<()> {
        let call = self.functions.CallVoidMethodA;
        // SAFETY: as in `call_object`.
        unsafe { call(self.raw, object.raw, method.0, arguments.as_ptr()) };
        self.check()
    }

    /// Calls a method that answers an `int`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_int(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<i32> {
        let call = self.functions.CallIntMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, object.raw, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Calls a method that answers a `long`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_long(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<i64> {
        let call = self.functions.CallLongMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, object.raw, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Calls a method that answers a `boolean`.
    ///
    /// # Errors
    /// `Thrown`: the method threw.
    pub fn call_bool(self, object: Local<'_>, method: MethodId, arguments: &[jvalue]) -> Result<bool> {
        let call = self.functions.CallBooleanMethodA;
        // SAFETY: as in `call_object`.
        let answer = unsafe { call(self.raw, object.raw, method.0, arguments.as_ptr()) };
        self.check().map(|()| answer)
    }

    /// Keeps an object beyond the call.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn global(self, object: Local<'_>) -> Result<Global> {
        self.delete_dropped();
        // SAFETY: the object is one of this call.
        let raw = unsafe { (self.functions.NewGlobalRef)(self.raw, object.raw) };
        if raw.is_null() { Err(Fail::Thrown) } else { Ok(Global(raw)) }
    }

    fn delete_global(self, reference: jobject) {
        // SAFETY: the reference is a global one, whose owner has dropped it.
        unsafe { (self.functions.DeleteGlobalRef)(self.raw, reference) };
    }

    /// Deletes what was dropped on threads without the JVM.
    fn delete_dropped(self) {
        // A load before the swap, so that threads share the line of the flag while nothing was dropped.
        if HAS_DROPPED.load(Ordering::Acquire) && HAS_DROPPED.swap(false, Ordering::AcqRel) {
            let dropped = std::mem::take(&mut *DROPPED.lock().unwrap_or_else(PoisonError::into_inner));
            dropped.into_iter().for_each(|reference| self.delete_global(reference.0));
        }
    }

    /// Another local reference to an object.
    ///
    /// # Errors
    /// `Thrown`: the JVM has no memory.
    pub fn again(self, object: Local<'_>) -> Result<Local<'a>> {
        // SAFETY: the object is one of this call, or one that the library keeps.
        self.found(unsafe { (self.functions.NewLocalRef)(self.raw, object.raw) })
    }

    /// Deletes a local reference before the end of the call: for loops. One that the library keeps stays.
    pub fn forget(self, object: Local<'_>) {
        if object.is_kept {
            return;
        }
        // SAFETY: the reference is a local one of this call. The caller does not use it again.
        unsafe { (self.functions.DeleteLocalRef)(self.raw, object.raw) };
    }
}

/// Arrays, strings and buffers.
impl<'a> Env<'a> {
    /// The number of elements of an array; 0 for null.
    pub fn array_len(self, array: Local<'_>) -> usize {
        if array.is_null() {
            return 0;
        }
        // SAFETY: the object is an array of this call, and not null.
        let len = unsafe { (self.functions.GetArrayLength)(self.raw, array.raw) };
        usize::try_from(len).unwrap_or_default()
    }

    /// Copies bytes of an array, from `start` on. The caller has checked that the array has them.
    pub fn read_bytes(self, array: Local<'_>, start: usize, into: &mut [u8]) {
        let get = self.functions.GetByteArrayRegion;
        let place = into.as_mut_ptr().cast();
        // SAFETY: the array is one of bytes; the place has so many bytes, and the JVM checks the range.
        unsafe { get(self.raw, array.raw, size(start), size(into.len()), place) };
    }

    /// Copies bytes into an array, from `start` on. The caller has checked that the array has room.
    pub fn write_bytes(self, array: Local<'_>, start: usize, from: &[u8]) {
        let set = self.functions.SetByteArrayRegion;
        // SAFETY: the array is one of bytes; the source has so many bytes, and the JVM checks the range.
        unsafe { set(self.raw, array.raw, size(start), size(from.len()), from.as_ptr().cast()) };
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
        unsafe { get(self.raw, array.raw, 0, size(all.len()), all.as_mut_ptr()) };
        all
    }

    /// The elements of an `int[]`.
    pub fn ints(self, array: Local<'_>) -> Vec<jint> {
        let mut all = vec![0; self.array_len(array)];
        let get = self.functions.GetIntArrayRegion;
        // SAFETY: the array is one of ints, and the place has as many.
        unsafe { get(self.raw, array.raw, 0, size(all.len()), all.as_mut_ptr()) };
        all
    }

    /// Sets the first elements of an `int[]`; the caller has checked that it has as many.
    pub fn set_ints(self, array: Local<'_>, from: &[jint]) {
        let set = self.functions.SetIntArrayRegion;
        // SAFETY: the array is one of ints; the JVM checks the range.
        unsafe { set(self.raw, array.raw, 0, size(from.len()), from.as_ptr()) };
    }

    /// Sets the first elements of a `long[]`; the caller has checked that it has as many.
    pub fn set_longs(self, array: Local<'_>, from: &[jlong]) {
        let set = self.functions.SetLongArrayRegion;
        // SAFETY: the array is one of longs; the JVM checks the range.
        unsafe { set(self.raw, array.raw, 0, size(from.len()), from.as_ptr()) };
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
        self.found(unsafe { make(self.raw, size(len), class.raw, std::ptr::null_mut()) })
    }

    /// An element of an array of objects, perhaps null.
    ///
    /// # Errors
    /// `Thrown`: the array has no such element.
    pub fn element(self, array: Local<'_>, at: usize) -> Result<Local<'a>> {
        // SAFETY: the object is an array of objects; the JVM checks the index.
        let raw = unsafe { (self.functions.GetObjectArrayElement)(self.raw, array.raw, size(at)) };
        self.check().map(|()| Local::of(raw))
    }

    /// Sets an element of an array of objects.
    ///
    /// # Errors
    /// `Thrown`: the array has no such element, or does not take the object.
    pub fn set_element(self, array: Local<'_>, at: usize, object: Local<'_>) -> Result<()> {
        // SAFETY: the object is an array of objects; the JVM checks index and class.
        unsafe { (self.functions.SetObjectArrayElement)(self.raw, array.raw, size(at), object.raw) };
        self.check()
    }

    /// The text of a `String`; empty for null. What is no Unicode is replaced.
    pub fn text(self, string: Local<'_>) -> String {
        if string.is_null() {
            return String::new();
        }
        // SAFETY: the object is a string of this call, and not null.
        let len = unsafe { (self.functions.GetStringLength)(self.raw, string.raw) };
        let mut units = vec![0u16; usize::try_from(len).unwrap_or_default()];
        // SAFETY: the place has as many units as the string.
        unsafe { (self.functions.GetStringRegion)(self.raw, string.raw, 0, len, units.as_mut_ptr()) };
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

    /// The address and the capacity of a direct buffer; `None`: the buffer is null or not direct.
    pub fn direct(self, buffer: Local<'_>) -> Option<(*mut u8, usize)> {
        if buffer.is_null() {
            return None;
        }
        // SAFETY: the object is a buffer of this call, and not null.
        let address = unsafe { (self.functions.GetDirectBufferAddress)(self.raw, buffer.raw) };
        // SAFETY: as above.
        let capacity = unsafe { (self.functions.GetDirectBufferCapacity)(self.raw, buffer.raw) };
        let capacity = usize::try_from(capacity).ok()?;
        (!address.is_null()).then_some((address.cast(), capacity))
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

/// The functions of this thread; `None`: the JVM does not know the thread.
fn present<'a>(machine: &'a Machine) -> Option<Env<'a>> {
    // SAFETY: every JVM has the functions of 1.4.
    let functions = unsafe { &invoke(machine).v1_4 };
    let mut env: *mut c_void = std::ptr::null_mut();
    // SAFETY: the JVM of the process, and a place for its answer.
    let answer = unsafe { (functions.GetEnv)(machine.0, &raw mut env, JNI_VERSION_1_6) };
    if answer != JNI_OK || env.is_null() {
        return None;
    }
    // SAFETY: the JVM answered it for this thread.
    Some(unsafe { Env::new(env.cast()) })
}

/// Attaches this thread as a daemon, so that it does not keep the JVM from ending. The thread is detached when it ends, or when the
/// answered guard is dropped: a thread that is ending has no later moment.
///
/// # Errors
/// `Thrown`: the JVM refuses the thread.
fn attach(machine: &Machine) -> Result<(Env<'_>, Option<Attached>)> {
    let mut arguments = JavaVMAttachArgs {
        version: JNI_VERSION_1_6,
        name: c"ashlardb".as_ptr().cast_mut(),
        group: std::ptr::null_mut(),
    };
    // SAFETY: every JVM has the functions of 1.4.
    let functions = unsafe { &invoke(machine).v1_4 };
    let (mut env, given) = (std::ptr::null_mut(), (&raw mut arguments).cast());
    // SAFETY: the JVM of the process, and a place for its answer; the JVM copies the arguments.
    let answer = unsafe { (functions.AttachCurrentThreadAsDaemon)(machine.0, &raw mut env, given) };
    if answer != JNI_OK || env.is_null() {
        return Err(Fail::Thrown);
    }
    let mut attached = Some(Attached(machine.0));
    // While a thread ends, its storage may be gone. Then the guard is dropped behind the work.
    let _ = ATTACHED.try_with(|place| place.replace(attached.take()));
    // SAFETY: the JVM answered it for this thread.
    Ok((unsafe { Env::new(env.cast()) }, attached))
}

/// A frame of local references, which all end with it.
struct Frame<'a>(Env<'a>);

impl<'a> Frame<'a> {
    /// References for which the JVM makes room at once; a frame may have more.
    const ROOM: jint = 16;

    /// # Errors
    /// `Thrown`: the JVM has no memory. Its exception is pending.
    fn new(env: Env<'a>) -> Result<Frame<'a>> {
        // SAFETY: the JVM's function takes its own environment.
        let answer = unsafe { (env.functions.PushLocalFrame)(env.raw, Self::ROOM) };
        if answer == JNI_OK { Ok(Frame(env)) } else { Err(Fail::Thrown) }
    }
}

impl<'a> Frame<'a> {
    /// Ends the frame, and keeps one object of it.
    fn leave_with(self, object: Local<'_>) -> Local<'a> {
        let frame = std::mem::ManuallyDrop::new(self);
        let env = frame.0;
        // SAFETY: the frame is the newest one of this thread; the object is one of it, of the frames around it, or null.
        Local::of(unsafe { (env.functions.PopLocalFrame)(env.raw, object.raw) })
    }
}

impl<'a> Env<'a> {
    /// The object that `work` makes. All other local references that `work` makes end with it: for loops.
    ///
    /// # Errors
    /// Those of `work`. `Thrown`: the JVM has no memory. The exception stays pending, for the caller's Java code.
    pub fn in_frame(self, work: impl FnOnce() -> Result<Local<'a>>) -> Result<Local<'a>> {
        let frame = Frame::new(self)?;
        let made = work()?;
        Ok(frame.leave_with(made))
    }
}

impl Drop for Frame<'_> {
    fn drop(&mut self) {
        // SAFETY: the frame is the newest one of this thread, and no reference leaves it.
        unsafe { (self.0.functions.PopLocalFrame)(self.0.raw, std::ptr::null_mut()) };
    }
}

/// Calls `work` with the functions of this thread. All local references that `work` makes end with it, also if it panics. A thread
/// of the engine is attached first.
///
/// # Errors
/// `Thrown`: there is no JVM, or it refuses the thread. Those of `work`.
pub fn with_env<R>(work: impl FnOnce(Env<'_>) -> Result<R>) -> Result<R> {
    let machine = MACHINE.get().ok_or(Fail::Thrown)?;
    let (env, _attached) = match present(machine) {
        Some(env) => (env, None),
        None => attach(machine)?,
    };
    env.delete_dropped();
    // Declared last, so it ends before the thread is detached.
    let _frame = Frame::new(env).inspect_err(|_| {
        // No caller expects the exception: it is not one of `work`.
        let _ = env.take_exception();
    })?;
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
