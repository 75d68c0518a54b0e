//! Classes and methods of Java that natives and callbacks use.
//!
//! 1. The class loader is the one that loaded RocksDB's classes, whatever it is. The library keeps it from the load on, so that a
//!    thread of the engine finds the classes too.
//! 2. A class is found at its first use and kept: loading it at once would run its initialiser, which waits for the load of this
//!    library to end.

use crate::door::{Fail, Result, array_of};
use crate::env::{Env, Global, Local, MethodId, object};
use jni_sys::jvalue;
use std::ffi::CString;
use std::sync::OnceLock;

/// The loader of RocksDB's classes; `None` inside: the JVM's own.
static LOADER: OnceLock<Option<Global>> = OnceLock::new();
static LOAD_CLASS: OnceLock<MethodId> = OnceLock::new();

/// Notes the class loader of the class that loads the library.
///
/// # Errors
/// `Thrown`: RocksDB's classes are not there.
pub(crate) fn loaded(env: Env<'_>) -> Result<()> {
    let own = env.find_class(c"org/rocksdb/NativeLibraryLoader")?;
    let get = env.method(env.class_of(own), "getClassLoader", "()Ljava/lang/ClassLoader;", false)?;
    let loader = env.call_object(own, get, &[])?;
    if !loader.is_null() {
        let class = env.find_class(c"java/lang/ClassLoader")?;
        let load = env.method(class, "loadClass", "(Ljava/lang/String;)Ljava/lang/Class;", false)?;
        // The library is loaded once.
        let _ = LOAD_CLASS.set(load);
    }
    let loader = if loader.is_null() { None } else { Some(env.global(loader)?) };
    let _ = LOADER.set(loader);
    Ok(())
}

/// A class, by its name with slashes.
#[derive(Debug)]
pub struct Class {
    name: &'static str,
    kept: OnceLock<Global>,
}

impl Class {
    /// The class of that name.
    pub const fn new(name: &'static str) -> Class {
        Class { name, kept: OnceLock::new() }
    }

    /// The class.
    ///
    /// # Errors
    /// `Thrown`: there is no such class.
    pub fn get<'a>(&'static self, env: Env<'a>) -> Result<Local<'a>> {
        if let Some(kept) = self.kept.get() {
            return Ok(kept.local(env));
        }
        let found = match (LOADER.get(), LOAD_CLASS.get()) {
            // Loaders know no arrays; every thread finds classes of the JVM itself.
            (Some(Some(loader)), Some(load)) if self.name.starts_with("org/") => {
                let name = env.new_text(&self.name.replace('/', "."))?;
                env.call_object(loader.local(env), *load, &[object(name)])?
            }
            _ => env.find_class(&CString::new(self.name).map_err(|_| Fail::Thrown)?)?,
        };
        let kept = env.global(found)?;
        Ok(self.kept.get_or_init(|| kept).local(env))
    }

    /// A new object.
    ///
    /// # Errors
    /// `Thrown`: there is no such class, or the constructor threw.
    pub fn make<'a>(
        &'static self,
        env: Env<'a>,
        constructor: &Method,
        arguments: &[jvalue],
    ) -> Result<Local<'a>> {
        let id = constructor.of(env, self)?;
        env.new_object(self.get(env)?, id, arguments)
    }
}

/// A method of one class, found at its first use.
#[derive(Debug)]
pub struct Method {
    name: &'static str,
    descriptor: &'static str,
    fixed: bool,
    id: OnceLock<MethodId>,
}

impl Method {
    /// A method by its name and descriptor.
    pub const fn new(name: &'static str, descriptor: &'static str) -> Method {
        Method { name, descriptor, fixed: false, id: OnceLock::new() }
    }

    /// A constructor by its descriptor.
    pub const fn constructor(descriptor: &'static str) -> Method {
        Method::new("<init>", descriptor)
    }

    /// A static method by its name and descriptor.
    pub const fn fixed(name: &'static str, descriptor: &'static str) -> Method {
        Method { name, descriptor, fixed: true, id: OnceLock::new() }
    }

    /// Its id in its class.
    ///
    /// # Errors
    /// `Thrown`: the class has no such method.
    pub fn of(&self, env: Env<'_>, class: &'static Class) -> Result<MethodId> {
        if let Some(id) = self.id.get() {
            return Ok(*id);
        }
        let id = env.method(class.get(env)?, self.name, self.descriptor, self.fixed)?;
        Ok(*self.id.get_or_init(|| id))
    }
}

macro_rules! classes {
    ($($name:ident = $path:literal;)*) => { $(
        #[doc = concat!("`", $path, "`.")]
        pub static $name: Class = Class::new($path);
    )* };
}
classes! {
    STRING = "java/lang/String";
    BYTES = "[B";
    HASH_MAP = "java/util/HashMap";
    ARRAY_LIST = "java/util/ArrayList";
    LONG = "java/lang/Long";
    ILLEGAL_STATE = "java/lang/IllegalStateException";
    ILLEGAL_ARGUMENT = "java/lang/IllegalArgumentException";
    UNSUPPORTED = "java/lang/UnsupportedOperationException";
    EXCEPTION = "org/rocksdb/RocksDBException";
    STATUS = "org/rocksdb/Status";
}

/// A new `HashMap` from objects to objects.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn hash_map<'a>(
    env: Env<'a>,
    entries: impl IntoIterator<Item = Result<(Local<'a>, Local<'a>)>>,
) -> Result<Local<'a>> {
    static NEW: Method = Method::constructor("()V");
    static PUT: Method = Method::new("put", "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;");
    let map = HASH_MAP.make(env, &NEW, &[])?;
    let put = PUT.of(env, &HASH_MAP)?;
    let mut entries = entries.into_iter();
    // Also the references that the making of an entry needs end with its frame.
    while in_frame_of_one(env, &mut entries, |(key, value)| {
        env.call_object(map, put, &[object(key), object(value)]).map(drop)
    })? {}
    Ok(map)
}

/// A new `ArrayList`.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn array_list<'a>(env: Env<'a>, items: impl IntoIterator<Item = Result<Local<'a>>>) -> Result<Local<'a>> {
    static NEW: Method = Method::constructor("()V");
    let list = ARRAY_LIST.make(env, &NEW, &[])?;
    let mut items = items.into_iter();
    while in_frame_of_one(env, &mut items, |item| add(env, list, item))? {}
    Ok(list)
}

/// Makes the next item and uses it, in a frame of local references. False: there is no next item.
fn in_frame_of_one<T>(
    env: Env<'_>,
    items: &mut impl Iterator<Item = Result<T>>,
    used: impl FnOnce(T) -> Result<()>,
) -> Result<bool> {
    let mut is_there = false;
    env.in_frame(|| {
        if let Some(item) = items.next() {
            is_there = true;
            used(item?)?;
        }
        Ok(Local::NULL)
    })?;
    Ok(is_there)
}

fn add<'a>(env: Env<'a>, list: Local<'a>, item: Local<'a>) -> Result<()> {
    static LIST: Class = Class::new("java/util/List");
    static ADD: Method = Method::new("add", "(Ljava/lang/Object;)Z");
    env.call_bool(list, ADD.of(env, &LIST)?, &[object(item)]).map(drop)
}

/// Appends what `make` makes to a `List`.
///
/// # Errors
/// Those of `make`. `Thrown`: the list takes no more, or the JVM has no memory.
pub fn add_to_list<'a>(
    env: Env<'a>,
    list: Local<'a>,
    make: impl FnOnce() -> Result<Local<'a>>,
) -> Result<()> {
    in_frame_of_one(env, &mut std::iter::once_with(make), |item| add(env, list, item)).map(drop)
}

/// A new `String[]`.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn array_of_texts<'a>(env: Env<'a>, texts: &[String]) -> Result<Local<'a>> {
    array_of(env, STRING.get(env)?, texts, |text| env.new_text(text))
}

/// A new `java.lang.Long`.
///
/// # Errors
/// `Thrown`: the JVM has no memory.
pub fn boxed_long(env: Env<'_>, value: i64) -> Result<Local<'_>> {
    static VALUE_OF: Method = Method::fixed("valueOf", "(J)Ljava/lang/Long;");
    env.call_static_object(LONG.get(env)?, VALUE_OF.of(env, &LONG)?, &[crate::env::long(value)])
}
