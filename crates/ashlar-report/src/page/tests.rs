//! The page's parts can be counted, and nothing in it comes from elsewhere.

use super::*;
use crate::record::{Record, Status};
use crate::sample;

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn a_bar_per_engine_and_row() {
    let text = page(&sample::comparison());
    // Four engines of five have figures in five rows; the fifth is missing in each.
    assert_eq!(count(&text, "<rect class=\"b\""), 20);
    assert_eq!(count(&text, "<tr class=\"off\">"), 5);
    assert_eq!(
        count(&text, "not here: no library libkyotocabinet"),
        1 + 10 + 15,
        "first, on cards, every run"
    );
    // LevelDB's and Kyoto's published figures of five rows.
    assert_eq!(count(&text, "<rect class=\"h\""), 10);
    assert_eq!(count(&text, "class=\"steps\""), 20);
    assert_eq!(count(&text, "<polyline class=\"c"), 20);
    // Bytes written were sampled in the two rows that write.
    assert_eq!(count(&text, "<polyline class=\"w\""), 12);
    assert_eq!(count(&text, "<figure class=\"triangle\">"), 4);
    assert_eq!(count(&text, "<polygon class=\"said\""), 4);
    assert_eq!(count(&text, "<tr class=\"ours\">"), 10, "rates and courses");
}

#[test]
fn tags_are_closed() {
    let text = page(&sample::comparison());
    for tag in
        ["section", "figure", "table", "tr", "svg", "details", "dl", "div", "p", "ul", "header", "main"]
    {
        let open = count(&text, &format!("<{tag}>")) + count(&text, &format!("<{tag} "));
        assert_eq!(open, count(&text, &format!("</{tag}>")), "{tag}");
    }
}

#[test]
fn nothing_is_fetched_or_run() {
    let text = page(&sample::comparison());
    for outside in ["http", "src=", "<script", "@import", "url("] {
        assert!(!text.contains(outside), "{outside}");
    }
}

#[test]
fn ratios_and_baselines() {
    let text = page(&sample::comparison());
    let card = text.split("<figure class=\"card\">").find(|card| card.contains("2D-rand")).unwrap();
    let ours = card.split("<tr class=\"ours\">").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(ours.contains("<td>459,000</td><td>1.25</td><td>1.00</td><td>0.90</td>"), "{ours}");
    let lmdb = card.split("LMDB").nth(1).unwrap().split("</tr>").next().unwrap();
    assert!(lmdb.contains("<td>1.12</td><td>0.90</td>"), "{lmdb}");
}

#[test]
fn one_engine_alone() {
    let mut run = sample::comparison();
    run.records.retain(|record| record.engine.name == "ashlardb");
    for record in &mut run.records {
        record.experiment = "free".into();
    }
    let text = page(&run);
    assert!(text.contains("<title>AshlarDB, measured</title>"));
    assert_eq!(count(&text, "<rect class=\"b\""), 5);
    assert_eq!(count(&text, "<figure class=\"card wide\">"), 1);
}

#[test]
fn hostile_texts_stay_texts() {
    let status = Status::NotHere { why: "</td><script>alert(1)</script>".into() };
    let mut record = Record::without_figures("<b>x", status);
    (record.row, record.title) = ("<i>".into(), "\"&".into());
    let text = page(&Run { headers: Vec::new(), records: vec![record, Record::default()] });
    assert!(!text.contains("<script>") && !text.contains("<b>x") && !text.contains("<i>"), "{text}");
    assert!(page(&Run::default()).contains("<title>No records</title>"));
}
