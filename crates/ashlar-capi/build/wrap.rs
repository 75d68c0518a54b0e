//! The exported functions in Rust: each converts its parameters, calls its body, and converts the result.

use crate::describe::{Api, Body, Function, Handle, Param, Type};
use std::fmt::Write;

/// All functions that are not written by hand.
pub fn exports(api: &Api) -> String {
    let mut out = String::from("// Generated from the description in `api/`.\n");
    for function in &api.functions {
        if let Some(body) = &function.body {
            export(&mut out, api, function, body);
        }
    }
    out
}

/// The function that knows the names of kinds of objects in C.
pub fn kinds(api: &Api) -> String {
    let mut out = String::from(
        "\n/// The name in C of a kind of objects, by its type in Rust.\n\
         pub fn kind_in_c(of: std::any::TypeId) -> Option<&'static str> {\n",
    );
    for handle in &api.handles {
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "    if of == std::any::TypeId::of::<{}>() {{\n        return Some(\"{}\");\n    }}",
            handle.rust,
            api.c_name(&handle.name)
        );
    }
    out.push_str("    None\n}\n");
    out
}

/// The kind of objects of that name.
fn kind<'a>(api: &'a Api, name: &str) -> Option<&'a Handle> {
    api.handles.iter().find(|handle| handle.name == name)
}

fn pointer(api: &Api, handle: &str, constant: bool) -> String {
    let rust = kind(api, handle).map_or_else(|| format!("no_handle_{handle}"), |h| h.rust.clone());
    format!("*{} {rust}", if constant { "const" } else { "mut" })
}

/// The parameters of C for one of the description.
fn ffi(api: &Api, param: &Param) -> Vec<(String, String)> {
    let name = |at: usize| format!("p_{}", param.names.get(at).map_or("missing", String::as_str));
    let text = || "*const c_char".to_owned();
    match &param.of {
        Type::Ref { handle, constant, .. } => vec![(name(0), pointer(api, handle, *constant))],
        Type::Taken { handle, constant } => vec![(name(0), pointer(api, handle, *constant))],
        Type::Scalar(scalar) => vec![(name(0), scalar.ffi.into())],
        Type::Out(scalar) | Type::Places(scalar) => vec![(name(0), format!("*mut {}", scalar.ffi))],
        Type::Str => vec![(name(0), text())],
        Type::Length => vec![(name(0), "*mut usize".into())],
        Type::Bytes | Type::BytesIf => vec![(name(0), text()), (name(1), "usize".into())],
        Type::List(count) => vec![
            (name(0), count.ffi.into()),
            (name(1), "*const *const c_char".into()),
            (name(2), "*const usize".into()),
        ],
        Type::Ranges(count) => vec![
            (name(0), count.ffi.into()),
            (name(1), "*const *const c_char".into()),
            (name(2), "*const usize".into()),
            (name(3), "*const *const c_char".into()),
            (name(4), "*const usize".into()),
        ],
        Type::Families => vec![
            (name(0), "i32".into()),
            (name(1), "*const *const c_char".into()),
            (name(2), format!("*const {}", pointer(api, "options", true))),
            (name(3), format!("*mut {}", pointer(api, "column_family_handle", false))),
        ],
        other => vec![(name(0), format!("{other:?} is no parameter"))],
    }
}

/// The type of the result, the pointer to its length, and the conversion.
fn result(api: &Api, function: &Function) -> (String, &'static str) {
    match function.result.as_ref().map(|(of, _)| of) {
        None => ("()".into(), "no_result"),
        Some(Type::Scalar(scalar)) if scalar.word == "uchar" => ("u8".into(), "u8::from"),
        Some(Type::Scalar(scalar)) => (scalar.ffi.into(), "std::convert::identity"),
        Some(Type::New { handle, constant, nullable }) => {
            let make = match (constant, nullable) {
                (false, false) => "door::made",
                (false, true) => "door::made_if",
                (true, false) => "door::made_const",
                (true, true) => "door::made_const_if",
            };
            (pointer(api, handle, *constant), make)
        }
        Some(Type::Lent { handle }) => (pointer(api, handle, true), "door::lent"),
        Some(Type::Buffer) => ("*mut c_char".into(), "door::buffer"),
        Some(Type::View) => ("*const c_char".into(), "door::view"),
        Some(Type::Text) => ("*mut c_char".into(), "door::text"),
        Some(Type::BorrowedText) => ("*const c_char".into(), "door::borrowed_text"),
        Some(other) => (format!("{other:?} is no result"), "no_result"),
    }
}

fn export(out: &mut String, api: &Api, function: &Function, body: &Body) {
    let (prefix, name) = (&api.prefix, &function.name);
    let mut params: Vec<(String, String)> = function.params.iter().flat_map(|p| ffi(api, p)).collect();
    let (returned, convert) = result(api, function);
    let returned = if function.result.is_some() { format!(" -> {returned}") } else { String::new() };
    let among = function.params.iter().find(|param| param.of == Type::Length);
    let behind = function.result.as_ref().and_then(|(_, len)| len.clone());
    if let Some(len) = &behind {
        params.push((format!("p_{len}"), "*mut usize".into()));
    }
    let len = behind.or_else(|| among?.names.first().cloned());
    if function.fails {
        params.push(("p_errptr".into(), "*mut *mut c_char".into()));
    }
    let listed = params.iter().map(|(name, of)| format!("{name}: {of}")).collect::<Vec<_>>().join(", ");
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "\n/// See the header.\n///\n/// # Safety\n/// As `lib.rs` says: pointers are those of objects of their kind, and lengths those of what they point to.\n\
         #[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {prefix}{name}({listed}){returned} {{\n"
    );
    let errptr = if function.fails { "p_errptr" } else { "std::ptr::null_mut()" };
    let _ = writeln!(
        out,
        "    let _in = checked::enter_of(\"{prefix}{name}\", kind_in_c);\n    door::call({errptr}, || {{"
    );
    function.params.iter().for_each(|param| convert_param(out, api, param, body));
    let call = called(function, body);
    let call = if function.fails { format!("{call}?") } else { call };
    let lends = matches!(function.result, Some((Type::Lent { .. }, _)));
    let owner = params.first().filter(|_| lends);
    let more = len.map(|len| format!(", door::length(p_{len})"));
    let more = more.or_else(|| owner.map(|(owner, _)| format!(", {owner}"))).unwrap_or_default();
    let _ = match function.result {
        None => write!(out, "        {call};\n        Ok(())\n    }})\n}}\n"),
        Some(_) => write!(out, "        Ok({convert}({call}{more}))\n    }})\n}}\n"),
    };
}

fn convert_param(out: &mut String, api: &Api, param: &Param, body: &Body) {
    let first = param.names.first().map_or("missing", String::as_str);
    let raw = ffi(api, param).into_iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
    let by = match &param.of {
        Type::Scalar(scalar) if scalar.word == "uchar" => {
            let _ = writeln!(out, "        let {first} = p_{first} != 0;");
            return;
        }
        Type::Scalar(_) => {
            let _ = writeln!(out, "        let {first} = p_{first};");
            return;
        }
        Type::Length => return,
        Type::Ref { nullable: true, .. } => "borrowed_if",
        Type::Ref { changes: true, .. } => "changed_const",
        Type::Ref { handle, constant, .. } => {
            let changes = kind(api, handle).is_some_and(|handle| handle.changes);
            let sets = matches!(body, Body::Set { .. });
            if !constant && (changes || sets) { "changed" } else { "borrowed" }
        }
        Type::Taken { constant: true, .. } => "taken_const",
        Type::Taken { .. } => "taken",
        Type::Bytes => "bytes",
        Type::BytesIf => "bytes_if",
        Type::Str => "string",
        Type::List(_) => "list",
        Type::Ranges(_) => "ranges",
        Type::Families => "families",
        Type::Places(_) => "places",
        Type::Out(_) => "out",
        _ => "no_parameter",
    };
    let _ = writeln!(
        out,
        "        // SAFETY: the caller keeps the contract of the header.\n        let {first} = unsafe {{ door::{by}({raw}, \"{first}\") }}?;"
    );
}

fn called(function: &Function, body: &Body) -> String {
    let first = |param: &Param| param.names.first().cloned().unwrap_or_default();
    let given = function
        .params
        .iter()
        .filter(|param| param.of != Type::Length)
        .map(first)
        .collect::<Vec<_>>()
        .join(", ");
    match body {
        Body::Drop => format!("drop({given})"),
        Body::Path(path) => format!("crate::{path}({given})"),
        Body::Set { option, names: None } => format!("door::set(object, \"{option}\", value)"),
        Body::Set { option, names: Some(names) } => {
            format!("door::set_named(object, \"{option}\", ashlar_compat::value::{names}, value)")
        }
        Body::Get { option, names: None } => {
            let of = match &function.result {
                Some((Type::Scalar(scalar), _)) => scalar.rust,
                _ => "no_number",
            };
            format!("door::get::<{of}>(object, \"{option}\")")
        }
        Body::Get { option, names: Some(names) } => {
            format!("door::get_named(object, \"{option}\", ashlar_compat::value::{names})")
        }
    }
}
