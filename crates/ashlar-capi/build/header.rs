//! A header for C.

use crate::describe::{Api, Function, Param, Type};
use std::fmt::Write;

/// The beginning of a header: what it says first, its guard, and what stands before the types.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub comment: &'static str,
    pub guard: &'static str,
    pub types: &'static str,
}

const END: &str = "
#ifdef __cplusplus
}
#endif

#endif
";

/// The whole header of a description.
pub fn header(api: &Api, head: Head) -> String {
    let Head { comment, guard, types } = head;
    let mut out = format!(
        "{comment}\n#ifndef {guard}\n#define {guard}\n\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n{types}"
    );
    for handle in &api.handles {
        let name = api.c_name(&handle.name);
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
        let _ = writeln!(out, "\n{};", declaration(api, function));
    }
    out + END
}

fn pointer(api: &Api, handle: &str, constant: bool) -> String {
    format!("{}{}*", if constant { "const " } else { "" }, api.c_name(handle))
}

/// The declaration of a function.
pub fn declaration(api: &Api, function: &Function) -> String {
    if let Some(raw) = &function.raw {
        return raw.clone();
    }
    let mut params: Vec<String> = function.params.iter().flat_map(|param| parameters(api, param)).collect();
    let (result, len) = match &function.result {
        None => ("void".to_owned(), None),
        Some((of, len)) => (result_type(api, of), len.as_ref()),
    };
    params.extend(len.map(|len| format!("size_t* {len}")));
    params.extend(function.fails.then(|| "char** errptr".to_owned()));
    let params = if params.is_empty() { "void".to_owned() } else { params.join(", ") };
    format!("{result} {}{}({params})", api.prefix, function.name)
}

fn parameters(api: &Api, param: &Param) -> Vec<String> {
    let name = |at: usize| param.names.get(at).map_or("", String::as_str);
    match &param.of {
        Type::Ref { handle, constant, .. } => {
            vec![format!("{} {}", pointer(api, handle, *constant), name(0))]
        }
        Type::Taken { handle, constant } => vec![format!("{} {}", pointer(api, handle, *constant), name(0))],
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

fn result_type(api: &Api, of: &Type) -> String {
    match of {
        Type::New { handle, constant, .. } => pointer(api, handle, *constant),
        Type::Lent { handle } => pointer(api, handle, true),
        Type::Scalar(scalar) => scalar.c.into(),
        Type::Buffer | Type::Text => "char*".into(),
        Type::View | Type::BorrowedText => "const char*".into(),
        other => format!("{other:?} is no result"),
    }
}
