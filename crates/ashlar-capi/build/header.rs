//! The header `rocksdb/c.h`.

use crate::describe::{Api, Function, Param, Type};
use std::fmt::Write;

const HEAD: &str = "\
/* The C interface of RocksDB, served by AshlarDB.
 *
 * Generated from crates/ashlar-capi/api: REWRITE=1 cargo test -p ashlar-capi --test it header
 *
 * An object is a pointer that this library returned. Memory that a call returns is freed with rocksdb_free or free. A call with
 * `errptr` puts a string there if it fails; its words before the first colon are those of RocksDB. */

#ifndef ASHLARDB_ROCKSDB_C_H
#define ASHLARDB_ROCKSDB_C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern \"C\" {
#endif

/* Borrowed bytes. */
typedef struct rocksdb_slice_t {
  const char* data;
  size_t size;
} rocksdb_slice_t;

";

const END: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// The whole header.
pub fn header(api: &Api) -> String {
    let mut out = String::from(HEAD);
    for handle in &api.handles {
        let pointer = c_type(&handle.name);
        let name = pointer.trim_end_matches('*');
        // Writing to a String cannot fail.
        let _ = writeln!(out, "typedef struct {name} {name};");
    }
    for typedef in &api.typedefs {
        let _ = writeln!(out, "{typedef};");
    }
    for values in &api.enums {
        let values: Vec<String> =
            values.iter().map(|(name, number)| format!("  {name} = {number}")).collect();
        let _ = write!(out, "\nenum {{\n{}\n}};\n", values.join(",\n"));
    }
    for function in &api.functions {
        let _ = writeln!(out, "\n{};", declaration(function));
    }
    out + END
}

fn c_type(handle: &str) -> String {
    if handle == "t" { "rocksdb_t*".into() } else { format!("rocksdb_{handle}_t*") }
}

fn pointer(handle: &str, constant: bool) -> String {
    format!("{}{}", if constant { "const " } else { "" }, c_type(handle))
}

/// The declaration of a function.
pub fn declaration(function: &Function) -> String {
    if let Some(raw) = &function.raw {
        return raw.clone();
    }
    let mut params: Vec<String> = function.params.iter().flat_map(parameters).collect();
    let (result, len) = match &function.result {
        None => ("void".to_owned(), None),
        Some((of, len)) => (result_type(of), len.as_ref()),
    };
    params.extend(len.map(|len| format!("size_t* {len}")));
    params.extend(function.fails.then(|| "char** errptr".to_owned()));
    let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
    format!("{result} rocksdb_{}({params})", function.name)
}

fn parameters(param: &Param) -> Vec<String> {
    let name = |at: usize| param.names.get(at).map_or("", String::as_str);
    match &param.of {
        Type::Ref { handle, constant, .. } => vec![format!("{} {}", pointer(handle, *constant), name(0))],
        Type::Taken { handle, constant } => vec![format!("{} {}", pointer(handle, *constant), name(0))],
        Type::Scalar(scalar) => vec![format!("{} {}", scalar.c, name(0))],
        Type::Out(scalar) | Type::Places(scalar) => vec![format!("{}* {}", scalar.c, name(0))],
        Type::Str => vec![format!("const char* {}", name(0))],
        Type::Length => vec![format!("size_t* {}", name(0))],
        Type::Bytes | Type::BytesIf => {
            vec![format!("const char* {}", name(0)), format!("size_t {}", name(1))]
        }
        Type::List(count) => vec![
            format!("{} {}", count.c, name(0)),
            format!("const char* const* {}", name(1)),
            format!("const size_t* {}", name(2)),
        ],
        Type::Ranges(count) => vec![
            format!("{} {}", count.c, name(0)),
            format!("const char* const* {}", name(1)),
            format!("const size_t* {}", name(2)),
            format!("const char* const* {}", name(3)),
            format!("const size_t* {}", name(4)),
        ],
        Type::Families => vec![
            format!("int {}", name(0)),
            format!("const char* const* {}", name(1)),
            format!("const rocksdb_options_t* const* {}", name(2)),
            format!("rocksdb_column_family_handle_t** {}", name(3)),
        ],
        other => vec![format!("{other:?} is no parameter")],
    }
}

fn result_type(of: &Type) -> String {
    match of {
        Type::New { handle, constant, .. } => pointer(handle, *constant),
        Type::Lent { handle } => pointer(handle, true),
        Type::Scalar(scalar) => scalar.c.into(),
        Type::Buffer | Type::Text => "char*".into(),
        Type::View | Type::BorrowedText => "const char*".into(),
        other => format!("{other:?} is no result"),
    }
}
