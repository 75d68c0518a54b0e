//! The trade between writes, space and reads, moved by the reader. Style, ratio of level sizes, compression and memtable are buttons. A
//! triangle shows what theory says of the choice, over what the records say of AshlarDB and the reference.
//!
//! The page has no script. Every combination has its own panel, and a rule of the style sheet shows the panel of the checked buttons.

use super::axes::{VIEW, labels, shape};
use super::name;
use super::triangle::row_like;
use crate::record::Record;
use crate::summary::{Cell, OURS, REFERENCE, Row, Summary};
use crate::theory::{Choice, Style, Trade};
use crate::words::{bytes, escape, factor, known};
use std::fmt::Write;

const STYLES: [(Style, &str); 2] = [(Style::Leveled, "leveled"), (Style::Tiered, "tiered (universal)")];
const RATIOS: [u32; 4] = [4, 6, 10, 16];
/// Stored bytes per byte of the user's.
const STORED: [(f64, &str); 3] = [(1.0, "none"), (0.5, "to a half"), (0.3, "to 30 %")];
const MEMTABLES: [u64; 4] = [1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// The buttons that are checked at first: those of RocksDB's defaults.
const CHECKED: [usize; 4] = [0, 2, 1, 3];

/// The buttons, the panels and the table of the records, for the first experiment whose rows have write and space amplification and a
/// known amount of data. Empty without one.
pub fn section(summary: &Summary<'_>) -> String {
    let measured = |run: &Record| run.amp.sa_du.and(run.written()).and(data(run)).is_some();
    let Some(row) = summary.groups.iter().find_map(|group| row_like(group, measured)) else {
        return String::new();
    };
    let largest = row.cells.iter().filter_map(|cell| cell.median(data)).fold(0.0, f64::max);
    let recorded: Vec<(&str, Trade)> =
        row.cells.iter().filter_map(|cell| Some((cell.engine, recorded(cell)?))).collect();
    let choices = choices(largest);
    let every = choices.iter().map(|(_, trade)| trade).chain(recorded.iter().map(|(_, trade)| trade));
    let most = every.fold([0.0_f64; 3], |most, trade| {
        std::array::from_fn(|axis| most[axis].max(corners(trade)[axis].unwrap_or(0.0)))
    });
    let mut out = format!(
        "<section class=\"trade\">\n<h2>Move the trade</h2>\n<p class=\"note\">What theory says of a log-structured merge tree with \
         {} of random puts, for each choice: bytes written per user byte (with the log), bytes stored per live byte, and sorted runs \
         that a seek looks at. Filled: what the records of {} say. All triangles have the same axes, logarithmic; nearer to the middle \
         is less.</p>\n",
        bytes(largest),
        escape(row.title)
    );
    let memtables = MEMTABLES.map(|size| bytes(size as f64));
    out.push_str(&buttons("style", 0, &STYLES.map(|(_, what)| what.to_owned())));
    out.push_str(&buttons("each level times the one above", 1, &RATIOS.map(|ratio| ratio.to_string())));
    out.push_str(&buttons("compression", 2, &STORED.map(|(_, what)| what.to_owned())));
    out.push_str(&buttons("memtable", 3, &memtables));
    let background: String = recorded
        .iter()
        .filter(|(engine, _)| [OURS, REFERENCE].contains(engine))
        .map(|(engine, trade)| shape(corners(trade), most, if *engine == OURS { "tri ours" } else { "tri" }))
        .collect();
    for (which, trade) in &choices {
        out.push_str(&panel(which, trade, most, &background));
    }
    out.push_str(&table(row, &recorded));
    out + "</section>\n"
}

/// Bytes of the user's entries that are live.
fn data(run: &Record) -> Option<f64> {
    run.space.logical_live.filter(|&live| live > 0).map(|live| live as f64)
}

/// What the records say of an engine. Sorted runs: tables of level 0, and levels below it that have tables.
fn recorded(cell: &Cell<'_>) -> Option<Trade> {
    let runs = |run: &Record| {
        let (first, below) = run.engine_counters.levels.split_first()?;
        Some((*first + below.iter().filter(|&&tables| tables > 0).count() as u64) as f64)
    };
    Some(Trade {
        write: cell.median(Record::written)?,
        space: cell.median(|run| run.amp.sa_du)?,
        runs: cell.median(runs),
    })
}

/// Every combination of buttons with what theory says of it.
fn choices(data: f64) -> Vec<([usize; 4], Trade)> {
    let mut all = Vec::new();
    for (s, (style, _)) in STYLES.iter().enumerate() {
        for (r, &ratio) in RATIOS.iter().enumerate() {
            for (c, &(stored, _)) in STORED.iter().enumerate() {
                for (m, &memtable) in MEMTABLES.iter().enumerate() {
                    let choice =
                        Choice { style: *style, ratio: f64::from(ratio), stored, memtable: memtable as f64 };
                    all.push(([s, r, c, m], choice.trade(data)));
                }
            }
        }
    }
    all
}

/// The class of the panel of a combination.
fn class([s, r, c, m]: &[usize; 4]) -> String {
    format!("p{s}{r}{c}{m}")
}

/// The style rules, for the head of the page: no panel is shown but that of the checked buttons. A browser without `:has` shows the
/// panel of the defaults.
pub fn rules() -> String {
    let mut out = ".choice{display:none}\n.choice.first{display:block}\n\
        @supports selector(:has(a)){.choice.first{display:none}}\n"
        .to_owned();
    for (which @ [s, r, c, m], _) in choices(1.0) {
        let _ = writeln!(
            out,
            ".trade:has(#t0{s}:checked):has(#t1{r}:checked):has(#t2{c}:checked):has(#t3{m}:checked) .choice.{}{{display:block}}",
            class(&which)
        );
    }
    out
}

fn buttons(legend: &str, group: usize, names: &[String]) -> String {
    let mut out = format!("<fieldset><legend>{legend}</legend>");
    for (index, what) in names.iter().enumerate() {
        let checked = if index == CHECKED[group] { " checked" } else { "" };
        let _ = write!(
            out,
            "<label><input type=\"radio\" name=\"t{group}\" id=\"t{group}{index}\"{checked}> {}</label>",
            escape(what)
        );
    }
    out + "</fieldset>\n"
}

fn corners(trade: &Trade) -> [Option<f64>; 3] {
    [Some(trade.write), Some(trade.space), trade.runs]
}

fn panel(which: &[usize; 4], trade: &Trade, most: [f64; 3], background: &str) -> String {
    let first = if *which == CHECKED { " first" } else { "" };
    format!(
        "<figure class=\"choice {}{first}\"><svg viewBox=\"{VIEW}\" role=\"img\" \
         aria-label=\"write {}, space {}, runs {}\">{}{background}{}{}</svg></figure>\n",
        class(which),
        factor(trade.write),
        factor(trade.space),
        known(trade.runs, factor),
        shape(most.map(Some), most, "frame"),
        shape(corners(trade), most, "chosen"),
        labels(["write", "space", "runs"], corners(trade)),
    )
}

/// What the records say, an engine per line.
fn table(row: &Row<'_>, recorded: &[(&str, Trade)]) -> String {
    let lines: String = recorded
        .iter()
        .map(|(engine, trade)| {
            let cells: String =
                corners(trade).map(|value| format!("<td>{}</td>", known(value, factor))).concat();
            format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name(engine)))
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table class=\"figures\"><thead><tr><th>recorded: {}</th><th>written per user byte</th>\
         <th>stored per live byte</th><th>sorted runs</th></tr></thead><tbody>\n{lines}</tbody></table></div>\n",
        escape(row.title)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Run;
    use crate::sample;

    fn measured() -> Run {
        let mut run = sample::comparison();
        run.records.iter_mut().for_each(|record| record.space.logical_live = Some(1 << 30));
        run
    }

    #[test]
    fn each_choice_of_buttons_has_one_panel_and_one_rule() {
        let run = measured();
        let text = section(&Summary::of(&run));
        let buttons: usize = [STYLES.len(), RATIOS.len(), STORED.len(), MEMTABLES.len()].iter().sum();
        let panels = STYLES.len() * RATIOS.len() * STORED.len() * MEMTABLES.len();
        let count = |what: &str| text.matches(what).count();
        assert_eq!((count("type=\"radio\""), count(" checked>")), (buttons, 4));
        assert_eq!(
            (count("<figure class=\"choice "), rules().matches(".trade:has(").count()),
            (panels, panels)
        );
        assert_eq!(count(" first\">"), 1);
        assert!(text.contains("<figure class=\"choice p0213 first\">"), "the checked buttons' panel: {text}");
        // Level 0 has one table in the sample, and two levels below have tables.
        assert!(
            text.contains("<th scope=\"row\">AshlarDB</th><td>4.50</td><td>0.90</td><td>3.00</td>"),
            "{text}"
        );
    }

    #[test]
    fn records_without_amplification_have_no_trade() {
        let run = sample::comparison();
        assert_eq!(section(&Summary::of(&run)), "", "the amount of data is not known");
        assert_eq!(section(&Summary::of(&Run::default())), "");
    }
}
