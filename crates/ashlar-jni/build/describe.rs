//! The description of the Java interface: the table of natives, and the bodies of those that AshlarDB has.
//!
//! `api/natives.tsv` has every native method of RocksDB's classes. The files `api/*.api` say what the natives do:
//!
//! ```text
//! # a comment
//! module db                              the natives that follow have their bodies in crate::db
//! class RocksDB TransactionDB            they are natives of these classes, of each that declares them
//! handle db crate::db::DbObject          the kinds of objects behind handles
//! close disposeInternal                  closes the handle
//! flush(db: &db, options: &flush)        a native by its parameters; its body is crate::db::flush
//! put(db: &db, key: slice) = put(db, none, key)                the body and its arguments, in Rust but for `none`
//! option maxOpenFiles max_open_files int                       a getter of that name, and its setter
//! option blobCompressionType blob_compression byte:COMPRESSION  whose values are an enumeration
//! option isOpen open bool gets                                 a getter only; `sets`: a setter only
//! metrics                                each getter of the class is the sum of the perf context of that name
//! ```
//! A name stands also for the native of that name with `Jni` behind it, which newer jars have. `env` and `this` among the
//! parameters are the JVM's functions and the object or class of the call; they are no parameters of Java.
//!
//! | type | Java | Rust |
//! |---|---|---|
//! | `&h` | `long`, a handle | `&H` |
//! | `?h` | `long`, a handle or 0 | `Option<&H>` |
//! | `&h[]` | `long[]`, handles | `&[Arc<H>]` |
//! | `bool` `byte` `char` `int` `long` `double` | numbers | `bool`, `i8`, `u16`, `i32`, `i64`, `f64` |
//! | `slice` | `byte[]`, offset, length | `&[u8]` |
//! | `bytes`, `?bytes` | `byte[]`, length; may be null | `&[u8]`, `Option<&[u8]>` |
//! | `whole`, `?whole` | `byte[]`; may be null | `&[u8]`, `Option<&[u8]>` |
//! | `direct` | `ByteBuffer`, offset, length | `&[u8]` |
//! | `room`, `direct_room` | `byte[]` or `ByteBuffer`, offset, length | `&Room` |
//! | `text`, `?text` | `String`; may be null | `&str`, `Option<&str>` |
//! | `texts` | `String[]` | `&[String]` |
//! | `arrays`, `?arrays` | `byte[][]`; elements may be null | `&[Vec<u8>]`, `&[Option<Vec<u8>>]` |
//! | `parts` | `byte[][]`, `int[]` offsets, `int[]` lengths | `&[Vec<u8>]` |
//! | `longs`, `?longs`, `ints` | `long[]`, `int[]` | `&[i64]`, `&[i32]` |
//! | `object DESCRIPTOR` | an object of that class | `Local` |

use std::collections::BTreeMap;
use std::path::Path;

/// A native method of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Native {
    pub class: String,
    pub method: String,
    pub descriptor: String,
    /// Whether it declares `RocksDBException`.
    pub throws: bool,
    /// The jars that declare it; `all`: every one.
    pub jars: Vec<String>,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    pub name: String,
    pub of: String,
}

/// What a native does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Closes the handle.
    Close,
    /// Calls a function with these arguments.
    Call {
        path: String,
        arguments: String,
        params: Vec<Param>,
    },
    /// Sets or gets the option of that name of the object, whose values may have names.
    Set {
        handle: String,
        option: String,
        names: Option<String>,
    },
    Get {
        handle: String,
        option: String,
        names: Option<String>,
    },
}

/// The whole description.
#[derive(Debug, Default)]
pub struct Api {
    pub natives: Vec<Native>,
    pub handles: BTreeMap<String, String>,
    /// By class, method without `Jni`, and the parameters of the descriptor.
    bodies: BTreeMap<(String, String, String), Body>,
}

/// The names of numbers, their descriptors and types.
pub const NUMBERS: [(&str, &str, &str); 6] = [
    ("bool", "Z", "bool"),
    ("byte", "B", "i8"),
    ("char", "C", "u16"),
    ("int", "I", "i32"),
    ("long", "J", "i64"),
    ("double", "D", "f64"),
];

/// The descriptors of a parameter; `None`: there is no such type.
pub fn descriptors(of: &str) -> Option<Vec<&str>> {
    const BUFFER: &str = "Ljava/nio/ByteBuffer;";
    Some(match of {
        "env" | "this" => vec![],
        "slice" | "room" => vec!["[B", "I", "I"],
        "bytes" | "?bytes" => vec!["[B", "I"],
        "whole" | "?whole" => vec!["[B"],
        "direct" | "direct_room" => vec![BUFFER, "I", "I"],
        "text" | "?text" => vec!["Ljava/lang/String;"],
        "texts" => vec!["[Ljava/lang/String;"],
        "arrays" | "?arrays" => vec!["[[B"],
        "parts" => vec!["[[B", "[I", "[I"],
        "longs" | "?longs" => vec!["[J"],
        "ints" => vec!["[I"],
        _ => match of.split_once(' ') {
            Some(("object", descriptor)) => vec![descriptor],
            _ if of.starts_with('&') && of.ends_with("[]") => vec!["[J"],
            _ if of.starts_with(['&', '?']) => vec!["J"],
            _ => vec![NUMBERS.iter().find(|(name, ..)| *name == of)?.1],
        },
    })
}

/// A name of Java as one of Rust.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The descriptor's parameters, with their parentheses.
fn parameters(descriptor: &str) -> &str {
    descriptor.split_inclusive(')').next().unwrap_or_default()
}

/// Where the description is: what the next line belongs to.
#[derive(Default)]
struct Section {
    module: String,
    classes: Vec<String>,
    /// The handle whose options follow.
    options: String,
}

impl Api {
    /// The table and all files of a directory.
    pub fn read(dir: &Path) -> Result<Api, String> {
        let text =
            |path: &Path| std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()));
        let mut api = Api { natives: natives(&text(&dir.join("natives.tsv"))?)?, ..Api::default() };
        let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "api"));
        paths.sort();
        for path in paths {
            api.add(&text(&path)?).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        Ok(api)
    }

    /// Adds the lines of one file.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let mut section = Section::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            if !line.is_empty() && !line.starts_with('#') {
                self.line(&mut section, line).map_err(|why| format!("line {}: {why}: {line}", number + 1))?;
            }
        }
        Ok(())
    }

    fn line(&mut self, section: &mut Section, line: &str) -> Result<(), String> {
        let words = || line.split_whitespace().skip(1).map(str::to_owned);
        match line.split_once(' ').map_or(line, |(word, _)| word) {
            "module" => section.module = words().collect(),
            "class" => section.classes = words().collect(),
            "options" => section.options = words().collect(),
            "handle" => {
                let words: Vec<String> = words().collect();
                let [name, of] = words.as_slice() else { return Err("handle NAME TYPE".into()) };
                self.handles.insert(name.clone(), of.clone());
            }
            "close" => {
                for method in words() {
                    self.body(section, &method, "(J)", &Body::Close)?;
                }
            }
            "metrics" => self.metrics(section)?,
            "option" => self.option(section, &words().collect::<Vec<_>>())?,
            _ => self.function(section, line)?,
        }
        Ok(())
    }

    /// Notes a body for each class of the section that declares the native.
    fn body(&mut self, section: &Section, method: &str, params: &str, body: &Body) -> Result<(), String> {
        let declares = |native: &&Native, class: &String| {
            native.class == *class && plain(native) == method && parameters(&native.descriptor) == params
        };
        let mut found = false;
        for class in &section.classes {
            if self.natives.iter().any(|native| declares(&native, class)) {
                let key = (class.clone(), method.to_owned(), params.to_owned());
                if self.bodies.insert(key, body.clone()).is_some() {
                    return Err(format!("{class}.{method}{params} is described twice"));
                }
                found = true;
            }
        }
        if found { Ok(()) } else { Err(format!("no class of the section declares {method}{params}")) }
    }

    /// Each getter of a class without another body is a sum of that name.
    fn metrics(&mut self, section: &Section) -> Result<(), String> {
        let is_getter = |native: &&Native| {
            section.classes.contains(&native.class)
                && native.descriptor == "(J)J"
                && native.method.starts_with("get")
        };
        let getters: Vec<String> =
            self.natives.iter().filter(is_getter).map(|found| found.method.clone()).collect();
        for method in getters {
            let full = snake(&method);
            let short = full.trim_start_matches("get_");
            let (path, arguments) =
                (format!("{}::metric", section.module), format!("\"{full}\", \"{short}\""));
            let params = vec![Param { name: "context".into(), of: "long".into() }];
            self.body(section, &method, "(J)", &Body::Call { path, arguments, params })?;
        }
        Ok(())
    }

    /// `option JAVA NAME TYPE[:NAMES] [SETTER]`: a getter, and a setter of the usual name or of this one. The word `gets` in place of
    /// the setter: only a getter; `sets`: only a setter of the usual name.
    fn option(&mut self, section: &Section, words: &[String]) -> Result<(), String> {
        let (java, option, of, setter) = match words {
            [java, option, of] => (java, option, of, None),
            [java, option, of, setter] => (java, option, of, Some(setter)),
            _ => return Err("option JAVA NAME TYPE[:NAMES] [SETTER]".into()),
        };
        let (of, names) =
            of.split_once(':').map_or((&**of, None), |(of, names)| (of, Some(names.to_owned())));
        let of = NUMBERS.iter().find(|(name, ..)| *name == of).ok_or("no such type")?.1;
        let (handle, option) = (section.options.clone(), option.clone());
        let get = Body::Get { handle: handle.clone(), option: option.clone(), names: names.clone() };
        let set = Body::Set { handle, option, names };
        let mut letters = java.chars();
        let first = letters.next().map(|c| c.to_ascii_uppercase());
        let usual = format!("set{}{}", first.map_or(String::new(), String::from), letters.as_str());
        let word = setter.map(String::as_str);
        if word != Some("sets") {
            self.body(section, java, "(J)", &get)?;
        }
        if word != Some("gets") {
            let setter = word.filter(|word| *word != "sets").unwrap_or(&usual);
            self.body(section, setter, &format!("(J{of})"), &set)?;
        }
        Ok(())
    }

    /// `name(params) [= body[(arguments)]]`
    fn function(&mut self, section: &Section, line: &str) -> Result<(), String> {
        let (head, body) = line.split_once(" = ").map_or((line, None), |(head, body)| (head, Some(body)));
        let (name, params) =
            head.strip_suffix(')').and_then(|head| head.split_once('(')).ok_or("name(parameters)")?;
        let params: Vec<Param> =
            params.split(", ").filter(|text| !text.is_empty()).map(param).collect::<Result<_, _>>()?;
        let mut descriptor = String::from("(");
        for param in &params {
            let known = descriptors(&param.of).ok_or_else(|| format!("no type {}", param.of))?;
            descriptor += &known.concat();
        }
        descriptor.push(')');
        let body = body.map_or_else(|| snake(name), str::to_owned);
        let (path, arguments) = match body.strip_suffix(')').and_then(|body| body.split_once('(')) {
            Some((path, arguments)) => (path, arguments.to_owned()),
            None => {
                let names: Vec<&str> = params.iter().map(|param| &*param.name).collect();
                (&*body, names.join(", "))
            }
        };
        let path = format!("{}::{path}", section.module);
        self.body(section, name, &descriptor, &Body::Call { path, arguments, params })
    }

    /// What a native does; `None`: AshlarDB does not have it.
    pub fn body_of(&self, native: &Native) -> Option<&Body> {
        let params = parameters(&native.descriptor).to_owned();
        self.bodies.get(&(native.class.clone(), plain(native).to_owned(), params))
    }
}

/// The method without the `Jni` that newer jars have behind it.
fn plain(native: &Native) -> &str {
    native.method.strip_suffix("Jni").unwrap_or(&native.method)
}

fn param(text: &str) -> Result<Param, String> {
    if ["env", "this"].contains(&text) {
        return Ok(Param { name: text.into(), of: text.into() });
    }
    let (name, of) = text.split_once(": ").ok_or("parameter: type")?;
    Ok(Param { name: name.into(), of: of.into() })
}

fn natives(table: &str) -> Result<Vec<Native>, String> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [class, method, descriptor, throws, jars] = cells.as_slice() else {
            return Err(format!("five cells: {line}"));
        };
        Ok(Native {
            class: (*class).into(),
            method: (*method).into(),
            descriptor: (*descriptor).into(),
            throws: *throws == "throws",
            jars: jars.split(' ').map(str::to_owned).collect(),
        })
    };
    table.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}
