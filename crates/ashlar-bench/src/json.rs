//! A line of JSON per benchmark (`--json`), for programs.

use crate::plan::Plan;
use crate::stats::Measured;
use std::fmt::Write as _;

/// The line, with its newline.
pub(crate) fn line(engine: &(String, String), plan: &Plan, measured: &Measured) -> String {
    let mut out = String::from("{");
    let mut field = |name: &str, value: String| {
        let comma = if out.len() > 1 { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(out, "{comma}{}:{value}", text(name));
    };
    field("engine", text(&engine.0));
    field("version", text(&engine.1));
    field("benchmark", text(&measured.name));
    field("threads", plan.threads.to_string());
    field("keys", plan.keys.to_string());
    field("operations", measured.operations.to_string());
    field("seconds", number(measured.seconds));
    field("micros_per_op", number(measured.micros_per_op));
    field("ops_per_sec", number(measured.ops_per_sec));
    field("mb_per_sec", measured.mb_per_sec.map_or_else(|| "null".into(), number));
    field("message", measured.message.as_deref().map_or_else(|| "null".into(), text));
    let histograms = measured.histograms.iter().map(|(kind, h)| {
        let p = |percent| number(h.percentile(percent));
        format!(
            "{}:{{\"count\":{},\"mean\":{},\"p50\":{},\"p75\":{},\"p99\":{},\"p999\":{},\"p9999\":{}}}",
            text(kind.name()),
            h.count(),
            number(h.average()),
            p(50.0),
            p(75.0),
            p(99.0),
            p(99.9),
            p(99.99)
        )
    });
    field("latency_us", format!("{{{}}}", histograms.collect::<Vec<_>>().join(",")));
    out.push_str("}\n");
    out
}

/// JSON has no infinities.
fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { "null".to_owned() }
}

fn text(value: &str) -> String {
    let mut out = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;
    use crate::stats::{OpKind, ThreadStats};

    #[test]
    fn a_line_has_every_field() {
        let plan = Plan::new("readrandom", &Flags { num: 10, ..Flags::default() }).unwrap();
        let mut stats =
            ThreadStats { done: 4, message: Some("(1 of \"2\")\n".into()), ..ThreadStats::default() };
        stats.histograms.entry(OpKind::Read).or_default().add(2);
        let got = line(&("A".into(), "1".into()), &plan, &Measured::new("readrandom", stats));
        assert_eq!(
            got,
            "{\"engine\":\"A\",\"version\":\"1\",\"benchmark\":\"readrandom\",\"threads\":1,\"keys\":10,\
             \"operations\":4,\"seconds\":0,\"micros_per_op\":0,\"ops_per_sec\":0,\"mb_per_sec\":null,\
             \"message\":\"(1 of \\\"2\\\")\\u000a\",\"latency_us\":{\"read\":{\"count\":1,\"mean\":2,\"p50\":2,\
             \"p75\":2,\"p99\":2,\"p999\":2,\"p9999\":2}}}\n"
        );
    }
}
