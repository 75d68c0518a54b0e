//! The exported natives in Rust: each converts its parameters, calls its body, and converts the result.
//!
//! 1. The JVM looks for a native's short name, then for its long one, which has the types of the parameters.
//! 2. A native is exported under its short name if no jar overloads the method, as RocksDB's library does.
//! 3. A native whose short name means another method in another jar has its long name only. So each jar finds its own.

use crate::describe::{Api, Body, Native, Param, descriptors};
use std::collections::BTreeMap;
use std::fmt::Write;

/// All natives.
pub fn exports(api: &Api) -> Result<String, String> {
    let mut out = String::from("// Generated from the description in `api/`.\n");
    let overloads = Overloads::of(&api.natives);
    for native in &api.natives {
        export(&mut out, api, native, &overloads.symbol(native))?;
    }
    Ok(out)
}

/// The methods of each class by name.
pub struct Overloads<'a>(BTreeMap<(&'a str, &'a str), Vec<&'a Native>>);

impl<'a> Overloads<'a> {
    pub fn of(natives: &'a [Native]) -> Overloads<'a> {
        let mut all = BTreeMap::<_, Vec<_>>::new();
        for native in natives {
            all.entry((&*native.class, &*native.method)).or_default().push(native);
        }
        Overloads(all)
    }

    /// The exported name.
    pub fn symbol(&self, native: &Native) -> String {
        let short = format!("Java_org_rocksdb_{}_{}", mangled(&native.class), mangled(&native.method));
        let same = self.0.get(&(&*native.class, &*native.method)).map_or(0, Vec::len);
        if same == 1 {
            return short;
        }
        let params = native.descriptor.trim_start_matches('(').split(')').next().unwrap_or_default();
        format!("{short}__{}", mangled(params))
    }
}

/// A part of a name as JNI escapes it.
fn mangled(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '/' | '.' => out.push('_'),
            '_' => out.push_str("_1"),
            ';' => out.push_str("_2"),
            '[' => out.push_str("_3"),
            c if c.is_ascii_alphanumeric() => out.push(c),
            c => {
                // Writing to a String cannot fail.
                let _ = write!(out, "_0{:04x}", u32::from(c));
            }
        }
    }
    out
}

/// The types of a descriptor's parameters, and that of its result.
fn types(descriptor: &str) -> (Vec<String>, String) {
    let (params, result) = descriptor.trim_start_matches('(').split_once(')').unwrap_or_default();
    let (mut all, mut one, mut in_class) = (Vec::new(), String::new(), false);
    for c in params.chars() {
        one.push(c);
        in_class = c == 'L' || (in_class && c != ';');
        if !in_class && c != '[' {
            all.push(std::mem::take(&mut one));
        }
    }
    (all, result.to_owned())
}

/// The type of Rust for one of a descriptor.
fn rust(descriptor: &str) -> &'static str {
    match descriptor {
        "V" => "()",
        "Z" => "bool",
        "B" => "i8",
        "C" => "u16",
        "I" => "i32",
        "J" => "i64",
        "D" => "f64",
        _ => "jobject",
    }
}

fn export(out: &mut String, api: &Api, native: &Native, symbol: &str) -> Result<(), String> {
    let (params, result) = types(&native.descriptor);
    let name = format!("{}.{}", native.class, native.method);
    let listed: String = params.iter().enumerate().map(|(at, of)| format!(", p{at}: {}", rust(of))).collect();
    let returned = if result == "V" { String::new() } else { format!(" -> {}", rust(&result)) };
    let body = api.body_of(native);
    let mut code = String::new();
    match body {
        None => {
            let _ = writeln!(code, "        door::missing(\"org.rocksdb.{name}\")");
        }
        Some(Body::Close) => code += "        crate::handles::close(p0);\n        Ok(())\n",
        Some(Body::Set { handle, option, names }) => {
            let kind = kind(api, handle)?;
            let set = match names {
                None => format!("settings::set(&*object, \"{option}\", p1)"),
                Some(names) => {
                    format!("settings::set_named(&*object, \"{option}\", settings::{names}, p1.into())")
                }
            };
            let _ = writeln!(code, "        let object = door::object::<{kind}>(p0)?;\n        {set}");
        }
        Some(Body::Get { handle, option, names }) => {
            let kind = kind(api, handle)?;
            let get = match names {
                None => format!("settings::get(&*object, \"{option}\")"),
                Some(names) => format!("settings::get_named(&*object, \"{option}\", settings::{names})"),
            };
            let _ = writeln!(code, "        let object = door::object::<{kind}>(p0)?;\n        {get}");
        }
        Some(Body::Call { path, arguments, params }) => {
            call(&mut code, api, params, path, arguments, &result)?
        }
    }
    let (answer, raw) = if rust(&result) == "jobject" { ("::<door::Answered>", ".0") } else { ("", "") };
    let _ = write!(
        out,
        "\n/// `org.rocksdb.{name}{}`.\n///\n/// # Safety\n/// The JVM calls it.\n#[unsafe(no_mangle)]\n\
         pub unsafe extern \"system\" fn {symbol}(p_env: *mut JNIEnv, p_this: jobject{listed}){returned} {{\n    \
         // SAFETY: the JVM's own environment, for this call.\n    let env = unsafe {{ Env::new(p_env) }};\n    \
         door::call{answer}(env, {throws}, |env| {{\n{code}    }}){raw}\n}}\n",
        native.descriptor,
        throws = native.throws,
    );
    Ok(())
}

fn kind<'a>(api: &'a Api, handle: &str) -> Result<&'a str, String> {
    api.handles.get(handle).map(String::as_str).ok_or_else(|| format!("no handle {handle}"))
}

/// The conversions of the parameters, the call, and the conversion of the result.
fn call(
    code: &mut String,
    api: &Api,
    params: &[Param],
    path: &str,
    arguments: &str,
    result: &str,
) -> Result<(), String> {
    let mut at = 0;
    let mut given: BTreeMap<&str, String> = BTreeMap::new();
    for param in params {
        let count = descriptors(&param.of).map_or(0, |known| known.len());
        let used: Vec<usize> = (at..at + count).collect();
        at += count;
        given.insert(&param.name, convert(code, api, param, &used)?);
    }
    let arguments = substituted(arguments, &given);
    let call = format!("crate::{path}({arguments})");
    let _ = match rust(result) {
        "jobject" => writeln!(code, "        door::answered(env, {call}?)"),
        _ => writeln!(code, "        {call}"),
    };
    Ok(())
}

/// The arguments with the expressions of the parameters in place of their names.
fn substituted(arguments: &str, given: &BTreeMap<&str, String>) -> String {
    let (mut out, mut word) = (String::new(), String::new());
    for c in arguments.chars().chain(std::iter::once(' ')) {
        if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        match given.get(&*word) {
            Some(expression) => out += expression,
            None if word == "none" => out += "None",
            None => out += &word,
        }
        word.clear();
        out.push(c);
    }
    out.trim_end().to_owned()
}

/// Writes the conversion of a parameter; answers the expression for the call.
fn convert(code: &mut String, api: &Api, param: &Param, used: &[usize]) -> Result<String, String> {
    let (name, of) = (&param.name, &*param.of);
    let raw = |at: usize| used.get(at).map_or(String::new(), |at| format!("p{at}"));
    let object = |code: &mut String, at: usize| {
        let raw = raw(at);
        let _ = writeln!(
            code,
            "        // SAFETY: a reference of the JVM for this call.\n        let l_{raw} = unsafe {{ env.local({raw}) }};"
        );
        format!("l_{raw}")
    };
    let by = match of {
        "env" => return Ok("env".into()),
        "this" => {
            let _ = writeln!(
                code,
                "        // SAFETY: a reference of the JVM for this call.\n        let this = unsafe {{ env.local(p_this) }};"
            );
            return Ok("this".into());
        }
        "slice" | "bytes" | "whole" | "direct" | "text" | "texts" | "arrays" | "longs" | "ints" | "room" => {
            of
        }
        "?bytes" => "bytes_if",
        "?whole" => "whole_if",
        "?text" => "text_if",
        "?longs" => "longs_if",
        "?arrays" => "arrays_if",
        "direct_room" => "room_direct",
        "parts" => "parts_of_arrays",
        _ if of.starts_with("object ") => return Ok(object(code, 0)),
        _ if of.ends_with("[]") => {
            let kind = kind(api, of.trim_start_matches('&').trim_end_matches("[]"))?;
            let array = object(code, 0);
            let _ =
                writeln!(code, "        let v_{name} = door::objects::<{kind}>(env, {array}, \"{name}\")?;");
            return Ok(format!("&v_{name}"));
        }
        _ => match of.split_at_checked(1) {
            Some(("&", handle)) => {
                let kind = kind(api, handle)?;
                let _ = writeln!(code, "        let v_{name} = door::object::<{kind}>({})?;", raw(0));
                return Ok(format!("&*v_{name}"));
            }
            Some(("?", handle)) => {
                let kind = kind(api, handle)?;
                let _ = writeln!(code, "        let v_{name} = door::object_if::<{kind}>({})?;", raw(0));
                return Ok(format!("v_{name}.as_deref()"));
            }
            _ => return Ok(raw(0)),
        },
    };
    let is_object = |at: usize| at == 0 || of == "parts";
    let mut given = Vec::new();
    for at in 0..used.len() {
        given.push(if is_object(at) { object(code, at) } else { raw(at) });
    }
    let _ = writeln!(code, "        let v_{name} = door::{by}(env, {}, \"{name}\")?;", given.join(", "));
    Ok(match of {
        "?text" | "?bytes" | "?whole" | "?longs" => format!("v_{name}.as_deref()"),
        _ => format!("&v_{name}"),
    })
}
