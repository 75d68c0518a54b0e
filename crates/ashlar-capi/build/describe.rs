//! The description of the C interface: its grammar, and its parts.
//!
//! ```text
//! # a comment
//! module db                                   the functions that follow have their bodies in crate::db
//! handle options crate::options::Object       rocksdb_options_t is a pointer to this type; `mut`: calls change it
//! put(db: &t, key/keylen: bytes) -> int !     a function; ! stands for `char** errptr` at the end
//! get2(db: &t) -> int ! = db::get             a function whose body is another one's
//! option options max_open_files int           a setter and a getter of that name; `set`, `get`: one of them only
//! enum rocksdb_a=0 rocksdb_b=1               an enumeration
//! typedef void (*x_cb)(void*)                 a name for a type of C
//! raw int x(void* state)                      a function that is written by hand, as C declares it
//! ```
//! | type | C | Rust |
//! |---|---|---|
//! | `&h`, `&const h`, `&?h` | `rocksdb_h_t*`, const, may be null | `&H`, `Option<&H>` |
//! | `&mut const h` | `const rocksdb_h_t*`, changed all the same | `&mut H` |
//! | `-h`, `-const h` | `rocksdb_h_t*`, const, given up | `Option<Box<H>>`; without a body of its own the function drops it |
//! | `+h`, `+?h` | a new `rocksdb_h_t*`, perhaps null | `H`, `Option<H>` |
//! | result `?const h` | `const rocksdb_h_t*`, a part of the first parameter, perhaps null | `Option<&H>` |
//! | `uchar` | `unsigned char`, yes or no | `bool` |
//! | `byte` `int` `u32` `size` … | numbers | `u8`, `i32`, … |
//! | `k/klen: bytes` | `const char* k, size_t klen` | `&[u8]` |
//! | `k/klen: ?bytes` | the same, may be null | `Option<&[u8]>` |
//! | `s: str` | `const char*` | `&CStr` |
//! | `n/p/l: list(int)` | `int n, const char* const* p, const size_t* l` | `List` |
//! | `n/a/al/b/bl: ranges(int)` | `int n`, and two lists of that count | `Ranges` |
//! | `n/p/o/h: families` | `int n`, the names, options and handles of so many families | `Families` |
//! | `x: places u64` | `uint64_t*`, an array | `Places<u64>` |
//! | `x: out u64` | `uint64_t*` | `&mut u64` |
//! | `buffer/len`, `view/len` | new or borrowed bytes, and `size_t* len` | `Option` of bytes |
//! | `l: length` | `size_t* l`, the length of the result among the parameters | |
//! | `text`, `cview` | a new or borrowed string | `Option<String>`, `Option<&CStr>` |

use std::path::Path;

/// A type of a parameter or result.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// A borrowed object.
    Ref { handle: String, constant: bool, nullable: bool, changes: bool },
    /// An object that the call takes.
    Taken { handle: String, constant: bool },
    /// A new object.
    New { handle: String, constant: bool, nullable: bool },
    /// An object that another one keeps, or null.
    Lent { handle: String },
    /// A number.
    Scalar(Scalar),
    /// Bytes with their length.
    Bytes,
    /// Bytes with their length, or null.
    BytesIf,
    /// A string.
    Str,
    /// A count, pointers and lengths.
    List(Scalar),
    /// A count, and pointers and lengths of both ends of ranges.
    Ranges(Scalar),
    /// A count, and the names, options and places for handles of families.
    Families,
    /// An array that the call sets.
    Places(Scalar),
    /// A number that the call sets.
    Out(Scalar),
    /// The place for the length of the result, if it is not the last one.
    Length,
    /// New bytes, with a pointer to their length.
    Buffer,
    /// Borrowed bytes, with a pointer to their length.
    View,
    /// A new string.
    Text,
    /// A borrowed string.
    BorrowedText,
}

/// A number of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar {
    pub word: &'static str,
    pub c: &'static str,
    /// In the exported function.
    pub ffi: &'static str,
    /// In the body.
    pub rust: &'static str,
}

const SCALARS: [Scalar; 13] = [
    Scalar { word: "uchar", c: "unsigned char", ffi: "u8", rust: "bool" },
    Scalar { word: "byte", c: "unsigned char", ffi: "u8", rust: "u8" },
    Scalar { word: "u8", c: "uint8_t", ffi: "u8", rust: "u8" },
    Scalar { word: "i8", c: "char", ffi: "i8", rust: "i8" },
    Scalar { word: "int", c: "int", ffi: "i32", rust: "i32" },
    Scalar { word: "uint", c: "unsigned int", ffi: "u32", rust: "u32" },
    Scalar { word: "i32", c: "int32_t", ffi: "i32", rust: "i32" },
    Scalar { word: "u32", c: "uint32_t", ffi: "u32", rust: "u32" },
    Scalar { word: "i64", c: "int64_t", ffi: "i64", rust: "i64" },
    Scalar { word: "u64", c: "uint64_t", ffi: "u64", rust: "u64" },
    Scalar { word: "size", c: "size_t", ffi: "usize", rust: "usize" },
    Scalar { word: "double", c: "double", ffi: "f64", rust: "f64" },
    Scalar { word: "bool", c: "bool", ffi: "bool", rust: "bool" },
];

/// A parameter: its name in C, those of the pointers beside it, and its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub names: Vec<String>,
    pub of: Type,
}

/// A function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Without the prefix.
    pub name: String,
    /// The module of its body; `None`: written by hand.
    pub body: Option<Body>,
    pub params: Vec<Param>,
    /// The result, and the name of the pointer to its length.
    pub result: Option<(Type, Option<String>)>,
    pub fails: bool,
    /// The declaration, if written by hand.
    pub raw: Option<String>,
}

/// What a function does.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Calls a function of the crate.
    Path(String),
    /// Drops its object.
    Drop,
    /// Sets or gets the option of that name, whose values may have names.
    Set {
        option: String,
        names: Option<String>,
    },
    Get {
        option: String,
        names: Option<String>,
    },
}

/// A kind of object: its name in C, its type in Rust, and whether calls change it.
#[derive(Clone, Debug, PartialEq)]
pub struct Handle {
    pub name: String,
    pub rust: String,
    pub changes: bool,
}

/// The whole description.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Api {
    /// What all names begin with: `rocksdb_`.
    pub prefix: String,
    pub handles: Vec<Handle>,
    pub functions: Vec<Function>,
    /// The names and numbers of each enumeration.
    pub enums: Vec<Vec<(String, i64)>>,
    /// Names for types of C, as C declares them.
    pub typedefs: Vec<String>,
    /// Functions whose feature the engine does not have, each behind the feature.
    pub refused: Vec<(String, String)>,
}

impl Api {
    /// All files of a directory, by name.
    pub fn read(dir: &Path, prefix: &str) -> Result<Api, String> {
        let wrong = |e: std::io::Error| format!("{}: {e}", dir.display());
        let entries = std::fs::read_dir(dir).map_err(wrong)?;
        let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "api"));
        paths.sort();
        let mut api = Api { prefix: prefix.to_owned(), ..Api::default() };
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(wrong)?;
            api.add(&text).map_err(|why| format!("{}: {why}", path.display()))?;
        }
        Ok(api)
    }

    /// Adds the lines of one file.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let mut module = String::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or_default().trim();
            let done = match line.split_once(' ') {
                _ if line.is_empty() || line.starts_with('#') => Ok(()),
                Some(("module", name)) => {
                    module = name.to_owned();
                    Ok(())
                }
                Some(("handle", rest)) => self.handle(rest),
                Some(("option", rest)) => self.option(rest),
                Some(("enum", rest)) => self.enumeration(rest),
                Some(("typedef", _)) => {
                    self.typedefs.push(line.to_owned());
                    Ok(())
                }
                Some(("raw", declaration)) => self.raw(declaration),
                Some(("refused", rest)) => self.refused(rest),
                _ => function(line, &module).map(|function| self.functions.push(function)),
            };
            done.map_err(|why| format!("line {}: {why}: {line}", number + 1))?;
        }
        Ok(())
    }

    /// The name in C of a kind of objects. That of a database has no name of its own before `_t`.
    pub fn c_name(&self, handle: &str) -> String {
        if handle == "t" { format!("{}t", self.prefix) } else { format!("{}{handle}_t", self.prefix) }
    }

    fn handle(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (changes, name, rust) = match words.as_slice() {
            ["mut", name, rust] => (true, name, rust),
            [name, rust] => (false, name, rust),
            _ => return Err("handle [mut] NAME TYPE".into()),
        };
        self.handles.push(Handle { name: (*name).into(), rust: (*rust).into(), changes });
        Ok(())
    }

    /// `option HANDLE[/PREFIX] C_NAME[=OPTION] TYPE[:NAMES] [set|get]`
    fn option(&mut self, rest: &str) -> Result<(), String> {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (handle, name, of, only) = match words.as_slice() {
            [handle, name, of] => (*handle, *name, *of, None),
            [handle, name, of, only @ ("set" | "get")] => (*handle, *name, *of, Some(*only)),
            _ => return Err("option HANDLE[/PREFIX] NAME[=OPTION] TYPE[:NAMES] [set|get]".into()),
        };
        let (handle, prefix) = handle.split_once('/').unwrap_or((handle, handle));
        let (name, option) = name.split_once('=').unwrap_or((name, name));
        let (of, names) = of.split_once(':').map_or((of, None), |(of, names)| (of, Some(names.to_owned())));
        let (of, option) = (Type::Scalar(scalar(of)?), option.to_owned());
        let object = Param {
            names: vec!["object".into()],
            of: Type::Ref { handle: handle.into(), constant: false, nullable: false, changes: false },
        };
        let value = Param { names: vec!["value".into()], of: of.clone() };
        for (word, params, result) in
            [("set", vec![object.clone(), value], None), ("get", vec![object], Some((of, None)))]
        {
            if only.is_some_and(|only| only != word) {
                continue;
            }
            let (option, names) = (option.clone(), names.clone());
            let body =
                Some(if word == "set" { Body::Set { option, names } } else { Body::Get { option, names } });
            let name = format!("{prefix}_{word}_{name}");
            self.functions.push(Function { name, body, params, result, fails: false, raw: None });
        }
        Ok(())
    }

    /// `refused FEATURE NAME…`
    fn refused(&mut self, rest: &str) -> Result<(), String> {
        let (feature, names) = rest.split_once(' ').ok_or("refused FEATURE NAME…")?;
        let feature = feature.replace('-', " ");
        self.refused.extend(names.split_whitespace().map(|name| (feature.clone(), name.to_owned())));
        Ok(())
    }

    fn enumeration(&mut self, rest: &str) -> Result<(), String> {
        let value = |word: &str| {
            let (name, number) = word.split_once('=').ok_or("NAME=NUMBER")?;
            Ok((name.to_owned(), number.parse().map_err(|_| "no number")?))
        };
        self.enums.push(rest.split_whitespace().map(value).collect::<Result<_, &str>>()?);
        Ok(())
    }

    fn raw(&mut self, declaration: &str) -> Result<(), String> {
        let before = declaration.split('(').next().unwrap_or_default();
        let name = before.rsplit([' ', '*']).next().unwrap_or_default();
        let name = name.strip_prefix(&*self.prefix).ok_or("no name")?.to_owned();
        let raw = Some(declaration.to_owned());
        self.functions.push(Function {
            name,
            body: None,
            params: Vec::new(),
            result: None,
            fails: false,
            raw,
        });
        Ok(())
    }
}

fn scalar(word: &str) -> Result<Scalar, String> {
    SCALARS.into_iter().find(|scalar| scalar.word == word).ok_or_else(|| format!("no type {word}"))
}

/// `name(params) [-> result] [!]`
fn function(line: &str, module: &str) -> Result<Function, String> {
    let (line, other) = line.rsplit_once(" = ").map_or((line, None), |(line, other)| (line, Some(other)));
    let (line, fails) = line.strip_suffix('!').map_or((line, false), |line| (line.trim_end(), true));
    let (head, result) = match line.split_once(" -> ") {
        Some((head, result)) => (head, Some(result_type(result)?)),
        None => (line, None),
    };
    let (name, params) =
        head.strip_suffix(')').and_then(|head| head.split_once('(')).ok_or("name(parameters)")?;
    let params = params.split(", ").filter(|param| !param.is_empty()).map(param);
    let params = params.collect::<Result<Vec<_>, _>>()?;
    let drops = matches!(params.as_slice(), [Param { of: Type::Taken { .. }, .. }]);
    let body = Some(match other {
        Some(other) => Body::Path(other.to_owned()),
        None if drops => Body::Drop,
        None => Body::Path(format!("{module}::{name}")),
    });
    Ok(Function { name: name.to_owned(), body, params, result, fails, raw: None })
}

/// The text behind a word, and whether it begins with that word.
fn without<'a>(text: &'a str, word: &str) -> (&'a str, bool) {
    text.strip_prefix(word).map_or((text, false), |rest| (rest, true))
}

fn param(text: &str) -> Result<Param, String> {
    let (names, of) = text.split_once(": ").ok_or("parameter: type")?;
    let of = match of.split_once('(') {
        Some(("list", count)) => Type::List(scalar(count.trim_end_matches(')'))?),
        Some(("ranges", count)) => Type::Ranges(scalar(count.trim_end_matches(')'))?),
        _ if of.starts_with('&') => {
            let (rest, nullable) = without(&of[1..], "?");
            let (rest, changes) = without(rest, "mut ");
            let (handle, constant) = without(rest, "const ");
            Type::Ref { handle: handle.into(), constant, nullable, changes }
        }
        _ if of.starts_with('-') => {
            let (handle, constant) = without(&of[1..], "const ");
            Type::Taken { handle: handle.into(), constant }
        }
        _ if of == "families" => Type::Families,
        _ if of.starts_with("places ") => Type::Places(scalar(&of["places ".len()..])?),
        _ if of.starts_with("out ") => Type::Out(scalar(&of[4..])?),
        _ if of == "bytes" => Type::Bytes,
        _ if of == "?bytes" => Type::BytesIf,
        _ if of == "str" => Type::Str,
        _ if of == "length" => Type::Length,
        _ => Type::Scalar(scalar(of)?),
    };
    Ok(Param { names: names.split('/').map(str::to_owned).collect(), of })
}

fn result_type(text: &str) -> Result<(Type, Option<String>), String> {
    let (word, len) = text.split_once('/').map_or((text, None), |(word, len)| (word, Some(len.to_owned())));
    let of = match word {
        "buffer" => Type::Buffer,
        "view" => Type::View,
        "text" => Type::Text,
        "cview" => Type::BorrowedText,
        _ if word.starts_with("?const ") => Type::Lent { handle: word["?const ".len()..].to_owned() },
        _ => match word.strip_prefix('+') {
            Some(rest) => {
                let (rest, nullable) = without(rest, "?");
                let (handle, constant) = without(rest, "const ");
                Type::New { handle: handle.into(), constant, nullable }
            }
            None => Type::Scalar(scalar(word)?),
        },
    };
    Ok((of, len))
}
