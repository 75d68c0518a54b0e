//! Tables in documents: the text between two comments is made from records, so that no figure is typed by hand.
//!
//! ```text
//! <!-- rates docs/results/s3-standard.jsonl -->
//! … anything: it is replaced …
//! <!-- end of rates -->
//! ```
//! Several files, separated by blanks, are shown as one. Their names are relative to the document's directory. The word
//! `brief` before the names keeps only the rates and one sentence about the machine; the word `page` adds amplification.

use ashlar_report::record::{Run, parse};
use ashlar_report::{brief, markdown, rates};
use std::fmt::Write;
use std::path::Path;

const BEGIN: &str = "<!-- rates ";
const END: &str = "<!-- end of rates -->";

/// All files as one run.
///
/// # Errors
/// A file cannot be read, or is not a file of records. The text names the file and the cause.
pub fn read<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Result<Run, String> {
    let mut run = Run::default();
    for path in paths {
        let said = |e: String| format!("{}: {e}", path.as_ref().display());
        let text = std::fs::read_to_string(path.as_ref()).map_err(|e| said(e.to_string()))?;
        let part = parse(&text).map_err(said)?;
        run.headers.extend(part.headers);
        run.records.extend(part.records);
    }
    Ok(run)
}

/// `document` with every table rewritten. `folder` is the directory of the document.
///
/// # Errors
/// A file of records cannot be read, or a table has no end.
pub fn renewed(document: &str, folder: &Path) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = document;
    while let Some((before, from)) = rest.split_once(BEGIN) {
        let end = || format!("a table has no end: {BEGIN}{}", from.lines().next().unwrap_or_default());
        let (names, table) = from.split_once(" -->").ok_or_else(end)?;
        let (_, after) = table.split_once(END).ok_or_else(end)?;
        let (show, files): (fn(&Run) -> String, _) = match names.split_once(' ') {
            Some(("brief", files)) => (brief, files),
            Some(("page", files)) => (markdown, files),
            _ => (rates, names),
        };
        let run = read(files.split_whitespace().map(|name| folder.join(name)))?;
        // Writing to a String cannot fail.
        let _ = write!(out, "{before}{BEGIN}{names} -->\n\n{}\n{END}", show(&run));
        rest = after;
    }
    Ok(out + rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_report::record::{Line, Ops, Record, Status};

    #[test]
    fn what_stands_between_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut record = Record::without_figures("ashlardb", Status::Ok);
        (record.row, record.title, record.experiment) = ("1A".into(), "reads".into(), "s3".into());
        record.ops = Some(Ops { per_sec: 1234.0, ..Ops::default() });
        let line = Line::Run(Box::new(record)).text() + "\n";
        std::fs::write(dir.path().join("a.jsonl"), &line).unwrap();
        let document = "# Head\n<!-- rates a.jsonl -->\nold\n<!-- end of rates -->\ntail\n";
        let made = renewed(document, dir.path()).unwrap();
        assert!(made.starts_with("# Head\n<!-- rates a.jsonl -->\n\n### LevelDB’s page"), "{made}");
        assert!(made.contains("| 1A reads | **1,230** |") && !made.contains("old"), "{made}");
        assert!(made.ends_with("\n<!-- end of rates -->\ntail\n"), "{made}");
        assert_eq!(renewed(&made, dir.path()).unwrap(), made, "made twice");
        let brief = renewed(&document.replace("rates a", "rates brief a"), dir.path()).unwrap();
        assert!(brief.contains("| 1A reads | **1,230** |") && !brief.contains("###"), "{brief}");
        let page = renewed(&document.replace("rates a", "rates page a"), dir.path()).unwrap();
        assert!(page.contains("| 1A reads | **1,230** |") && page.contains("### LevelDB’s page"), "{page}");
        assert_eq!(renewed("no table\n", dir.path()).unwrap(), "no table\n");
    }

    #[test]
    fn mistakes_are_named() {
        let of = |document: &str| renewed(document, Path::new("/no/such")).unwrap_err();
        assert!(
            of("<!-- rates x.jsonl -->\n<!-- end of rates -->").starts_with("/no/such/x.jsonl: No such file")
        );
        assert_eq!(of("<!-- rates x.jsonl -->\n"), "a table has no end: <!-- rates x.jsonl -->");
    }
}
