//! The page of a real run, in a real browser.
//!
//! Debian's chromium, headless. Without it the test says so and passes; `cargo xtask setup` installs it.

use crate::{SMALL, compare};
use ashlar_report::record::{Run, parse};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// No profile is kept, nothing is fetched, nothing outside is asked.
const QUIET: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
];

fn chromium() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join("chromium")).find(|path| path.is_file())
}

/// Opens `page` with `args`; a console message of the page is a failure.
fn open(browser: &Path, dir: &Path, page: &Path, args: &[&str]) -> Output {
    let out = Command::new(browser)
        .args(QUIET)
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .args(args)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert!(!said.contains("CONSOLE"), "{said}");
    out
}

fn dom(browser: &Path, dir: &Path, page: &Path) -> String {
    String::from_utf8_lossy(&open(browser, dir, page, &["--dump-dom"]).stdout).into_owned()
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

/// As many bars as rows have engines with figures.
fn bars(run: &Run) -> usize {
    let counted = run.records.iter().filter(|record| record.counts());
    counted.map(|r| (&r.row, &r.engine.name)).collect::<BTreeSet<_>>().len()
}

#[test]
fn the_page_in_a_browser() {
    let Some(browser) = chromium() else {
        ashlar_testkit::report::skipped("the_page_in_a_browser", "chromium is not here: cargo xtask setup");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let (records, page) = (place("records"), place("page.html"));
    let (records_text, page_text) = (records.to_string_lossy(), page.to_string_lossy());
    let args = [
        "--workloads",
        "fillrandom,readrandom,openloop",
        "--rate",
        "20000",
        "--json",
        &records_text,
        "--report",
        &page_text,
    ];
    let out = compare(&[&SMALL[..], &args].concat(), dir.path());
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let run = parse(&std::fs::read_to_string(&records).unwrap()).unwrap();
    let text = dom(&browser, dir.path(), &page);
    assert_eq!(count(&text, "<rect class=\"b\""), bars(&run));
    assert!(bars(&run) >= 3);
    let curves = run.records.iter().filter(|r| r.rep == 1).flat_map(|r| r.latency_us.keys()).count();
    assert_eq!(count(&text, "<polyline class=\"c"), curves);
    assert!(text.contains("AshlarDB beside other engines"), "{text}");
    wide(&browser, dir.path(), &std::fs::read_to_string(&page).unwrap());
    let shot = place("shot.png");
    let to = format!("--screenshot={}", shot.display());
    open(&browser, dir.path(), &page, &["--window-size=1200,1600", &to]);
    let png = std::fs::read(&shot).unwrap();
    // A blank page of this size is a tenth of that.
    assert!(png.starts_with(b"\x89PNG") && png.len() > 40_000, "{} bytes", png.len());
}

/// Nothing stands out at the right, on a telephone and on a desk. The page has no scripts: it is looked at from a frame.
fn wide(browser: &Path, dir: &Path, page: &str) {
    let inside = page.replace('&', "&amp;").replace('"', "&quot;");
    for width in [360, 1200] {
        let frame = format!(
            "<body><iframe width={width} height=4000 srcdoc=\"{inside}\" onload=\"document.body.dataset.wide = \
             this.contentDocument.documentElement.scrollWidth\"></iframe>"
        );
        let path = dir.join("frame.html");
        std::fs::write(&path, frame).expect("the frame is written");
        let text = dom(browser, dir, &path);
        let wide =
            text.split("data-wide=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<u32>().ok());
        assert!(wide.is_some_and(|wide| wide <= width), "{wide:?} in {width}");
    }
}
