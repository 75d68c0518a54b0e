//! The form of a line, as JSON Schema (`record.schema.json`), and a check of lines against it.
//!
//! The check knows only the keywords of JSON Schema that the file uses: `type`, `const`, `enum`, `properties`, `required`,
//! `additionalProperties`, `items`, `minimum`, `oneOf`, `$ref` into `$defs`.

use serde_json::Value;

/// The schema of one line.
pub const TEXT: &str = include_str!("record.schema.json");

/// The violations of the schema in a line.
///
/// # Errors
/// The line is not JSON.
pub fn check(line: &str) -> Result<Vec<String>, String> {
    let schema: Value = serde_json::from_str(TEXT).map_err(|e| format!("the schema: {e}"))?;
    let value: Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
    let mut wrong = Vec::new();
    visit(&schema, &schema, &value, "", &mut wrong);
    Ok(wrong)
}

fn visit(root: &Value, schema: &Value, value: &Value, at: &str, wrong: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|place| place.strip_prefix("#/$defs/")) {
        return visit(root, &root["$defs"][name], value, at, wrong);
    }
    if let Some(forms) = schema["oneOf"].as_array() {
        return one_of(root, forms, value, at, wrong);
    }
    let mut say = |what: String| wrong.push(format!("{}: {what}", if at.is_empty() { "line" } else { at }));
    if !types(&schema["type"]).any(|kind| is(value, kind)) && !schema["type"].is_null() {
        return say(format!("{value} is not {}", schema["type"]));
    }
    if !schema["const"].is_null() && schema["const"] != *value {
        say(format!("{value} is not {}", schema["const"]));
    }
    if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
        say(format!("{value} is not one of {}", schema["enum"]));
    }
    if schema["minimum"].as_f64().zip(value.as_f64()).is_some_and(|(least, value)| value < least) {
        say(format!("{value} is below {}", schema["minimum"]));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            say(format!("{name} is missing"));
        }
    }
    if let Some(items) = value.as_array() {
        for (index, item) in items.iter().enumerate() {
            visit(root, &schema["items"], item, &format!("{at}[{index}]"), wrong);
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let place = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match (schema["properties"].get(name), &schema["additionalProperties"]) {
            (Some(known), _) => visit(root, known, field, &place, wrong),
            (None, Value::Bool(false)) => wrong.push(format!("{place}: unknown")),
            (None, other) => visit(root, other, field, &place, wrong),
        }
    }
}

/// Chooses the alternative with the fewest violations; the one for null only for null.
fn one_of(root: &Value, forms: &[Value], value: &Value, at: &str, wrong: &mut Vec<String>) {
    let meant = |form: &&Value| value.is_null() || form["type"] != "null";
    let faults = forms.iter().filter(meant).map(|form| {
        let mut faults = Vec::new();
        visit(root, form, value, at, &mut faults);
        faults
    });
    wrong.extend(faults.min_by_key(Vec::len).into_iter().flatten());
}

fn types(kinds: &Value) -> impl Iterator<Item = &str> {
    let several = kinds.as_array().into_iter().flatten().filter_map(Value::as_str);
    kinds.as_str().into_iter().chain(several)
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Header, Latency, Line, Ops, Phase, Published, Record, SCHEMA, Series, Status};

    fn full() -> Record {
        let mut record = Record { schema: SCHEMA, rep: 1, order: 1, ..Record::default() };
        record.ops = Some(Ops::default());
        record.phase = Some(Phase::default());
        record.latency_us.insert("read".into(), Latency::default());
        record.series = Some(Series { ops: vec![1, 2], ..Series::default() });
        record.published = Some(Published::default());
        record.params.options.insert("page".into(), "4096".into());
        record
    }

    /// Also the check that the schema has every field of the types, and the types every field of the schema.
    #[test]
    fn records_are_as_the_schema_says() {
        let line = Line::Run(Box::new(full())).text();
        assert_eq!(check(&line).unwrap(), [""; 0]);
        let (why, last_output) = (String::from("x"), String::new());
        for status in [
            Status::NotHere { why: why.clone() },
            Status::Failed { why: why.clone(), last_output: last_output.clone() },
            Status::Timeout { why: why.clone(), last_output },
            Status::Void { why },
        ] {
            let record = Record { rep: 1, order: 1, ..Record::without_figures("x", status) };
            assert_eq!(check(&Line::Run(Box::new(record)).text()).unwrap(), [""; 0]);
        }
        let mut header = Header { schema: SCHEMA, ..Header::default() };
        header.machine.disk = Some(crate::machine::Disk::default());
        assert_eq!(check(&Line::Machine(Box::new(header)).text()).unwrap(), [""; 0]);
    }

    #[test]
    fn every_kind_of_fault_is_named() {
        let line = Line::Run(Box::new(full())).text();
        for (from, to, fault) in [
            ("\"schema\":1", "\"schema\":2", "schema: 2 is not 1"),
            ("\"class\":\"matched\"", "\"class\":\"x\"", "class: \"x\" is not one of"),
            ("\"rep\":1", "\"rep\":0", "rep: 0 is below 1"),
            ("\"workload\":\"\"", "\"workload\":1", "workload: 1 is not \"string\""),
            ("\"workload\":\"\",", "", "line: workload is missing"),
            ("\"workload\":\"\",", "\"workload\":\"\",\"more\":1,", "more: unknown"),
            ("\"found\":null", "\"found\":\"x\"", "ops.found: \"x\" is not"),
            ("\"ops\":[1,2]", "\"ops\":[1,-2]", "series.ops[1]: -2 is below 0"),
        ] {
            let broken = line.replace(from, to);
            assert_ne!(broken, line, "{from}");
            let wrong = check(&broken).unwrap();
            assert!(wrong.len() == 1 && wrong[0].starts_with(fault), "{fault}: {wrong:?}");
        }
        assert!(check("{").is_err());
    }
}
