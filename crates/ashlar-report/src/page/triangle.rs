//! Amplification: a triangle per engine with write, space and read at its corners, all on the same axes, theory dashed
//! within; and the figures, theory beside practice.
//!
//! Small is good: a corner near the middle means little amplification. An unknown corner lies in the middle.

use super::axes::{VIEW, labels, shape};
use super::name;
use crate::record::Record;
use crate::summary::{Cell, Group, OURS, Row};
use crate::theory::{Predicted, predicted};
use crate::words::{escape, factor, known};
use std::fmt::Write;

/// The drawing of an engine.
struct Corners {
    write: Option<f64>,
    space: Option<f64>,
    read: Option<f64>,
}

/// A figure of reads that engines have in common, best first.
type Reading = (&'static str, fn(&Record) -> Option<f64>);

const READINGS: [Reading; 3] = [
    ("blocks per read", |r| r.amp.ra_blk),
    ("read calls per read", Record::read_calls),
    ("KiB per read", Record::read_kib),
];

/// The triangles and the table. Empty if nothing was measured.
pub fn section(group: &Group<'_>, engines: &[&str]) -> String {
    let writes = row_like(group, |r| r.written().or(r.amp.wa_eng).is_some());
    let reads =
        READINGS.iter().find_map(|reading| Some((reading, row_like(group, |r| reading.1(r).is_some())?)));
    let Some(writes) = writes else { return String::new() };
    let all: Vec<(&str, Corners, Option<Predicted>)> = engines
        .iter()
        .filter_map(|&engine| {
            let cell = writes.of(engine).filter(|cell| !cell.runs.is_empty())?;
            let read = reads.and_then(|((_, figure), row)| row.of(engine)?.median(figure));
            let corners = Corners {
                write: cell.median(|r| r.written().or(r.amp.wa_eng)),
                space: cell.median(|r| r.amp.sa_du),
                read,
            };
            Some((engine, corners, cell.typical().and_then(predicted)))
        })
        .collect();
    // A single corner makes no shape.
    let corners =
        |(_, c, _): &(&str, Corners, Option<Predicted>)| [c.write, c.space, c.read].iter().flatten().count();
    if all.iter().map(corners).max().unwrap_or(0) < 2 {
        return table(group);
    }
    let most = |of: fn(&Corners) -> Option<f64>| all.iter().filter_map(|(_, c, _)| of(c)).fold(0.0, f64::max);
    let scale = [most(|c| c.write), most(|c| c.space), most(|c| c.read)];
    let mut out = format!(
        "<h3>Amplification</h3>\n<p class=\"note\">Bytes written per user byte and bytes stored per live byte after \
         {}{}. All triangles have the same axes, logarithmic; nearer to the middle is \
         less. Dashed: what theory says.</p>\n\
         <div class=\"triangles\">\n",
        escape(writes.title),
        reads.map_or(String::new(), |((what, _), row)| format!("; {what} in {}", escape(row.title)))
    );
    for (engine, corners, theory) in &all {
        out.push_str(&triangle(engine, corners, theory.as_ref(), scale));
    }
    out.push_str("</div>\n");
    out.push_str(&table(group));
    out
}

/// The row that shows most: random writes over old data, else random ones, else any that has the figure.
pub(super) fn row_like<'a, 'b>(group: &'b Group<'a>, has: impl Fn(&Record) -> bool) -> Option<&'b Row<'a>> {
    let known = |row: &&Row<'_>| row.cells.iter().flat_map(|cell| &cell.runs).any(|run| has(run));
    let named = |word: &str| {
        let of = |run: &&Record| run.workload.contains(word);
        group.rows.iter().filter(known).find(|row| row.cells.iter().flat_map(|c| &c.runs).any(of))
    };
    named("overwrite").or_else(|| named("rand")).or_else(|| group.rows.iter().find(known))
}

fn triangle(engine: &str, corners: &Corners, theory: Option<&Predicted>, scale: [f64; 3]) -> String {
    let values = [corners.write, corners.space, corners.read];
    let frame = shape(scale.map(Some), scale, "frame");
    let drawn = shape(values, scale, if engine == OURS { "tri ours" } else { "tri" });
    let said = theory.map_or(String::new(), |t| shape([t.wa, Some(t.sa), None], scale, "said"));
    format!(
        "<figure class=\"triangle\"><svg viewBox=\"{VIEW}\" aria-hidden=\"true\">{frame}{drawn}{said}{}</svg>\
         <figcaption>{}</figcaption></figure>\n",
        labels(["write", "space", "read"], values),
        escape(name(engine))
    )
}

/// All measured amplification of writes and reads.
fn table(group: &Group<'_>) -> String {
    let mut rows = String::new();
    for row in &group.rows {
        let lines = row.cells.iter().filter(|cell| !cell.runs.is_empty()).filter_map(|cell| line(row, cell));
        for (index, line) in lines.enumerate() {
            let class = if index == 0 { "new" } else { "same" };
            let _ = writeln!(rows, "<tr class=\"{class}\">{line}</tr>");
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "<details open><summary>Amplification in figures</summary>\n<div class=\"scroll\"><table class=\"figures\"><thead>\
         <tr><th rowspan=\"2\">row</th><th rowspan=\"2\" class=\"t\">engine</th><th colspan=\"4\">written per user byte</th>\
         <th colspan=\"4\">stored per live byte</th><th colspan=\"3\">per read</th></tr>\
         <tr><th>process</th><th>engine</th><th>tree</th><th class=\"said\">theory</th><th>allocated</th><th>length</th>\
         <th>peak</th><th class=\"said\">theory</th><th>blocks</th><th>calls</th><th>KiB</th></tr></thead><tbody>\n\
         {rows}</tbody></table></div></details>\n"
    )
}

fn line(row: &Row<'_>, cell: &Cell<'_>) -> Option<String> {
    type Figure = fn(&Record) -> Option<f64>;
    let figures: [Figure; 9] = [
        Record::written,
        |r| r.amp.wa_eng,
        |r| r.amp.wa_tree,
        |r| r.amp.sa_du,
        |r| r.amp.sa_app,
        |r| r.amp.sa_peak,
        |r| r.amp.ra_blk,
        Record::read_calls,
        Record::read_kib,
    ];
    let values = figures.map(|figure| cell.median(figure));
    values.iter().any(Option::is_some).then_some(())?;
    let theory = cell.typical().and_then(predicted);
    let wa = theory.and_then(|theory| theory.wa);
    // Only rows that write have space amplification.
    let sa = theory.filter(|_| wa.is_some()).map(|theory| theory.sa);
    let td = |value: Option<f64>| format!("<td>{}</td>", known(value, factor));
    let said = |value: Option<f64>| format!("<td class=\"said\">{}</td>", known(value, factor));
    let cells: String = [
        values[..3].iter().copied().map(td).collect(),
        said(wa),
        values[3..6].iter().copied().map(td).collect(),
        said(sa),
        values[6..].iter().copied().map(td).collect::<String>(),
    ]
    .concat();
    Some(format!(
        "<th scope=\"row\">{}</th><td class=\"t\">{}</td>{cells}",
        escape(row.id),
        escape(name(cell.engine))
    ))
}
