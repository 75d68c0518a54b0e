//! Prints entries as lines in ldb's format, and parses them.
//!
//! ```text
//! plain   key ==> value            with --hex   0x6B6579 ==> 0x76616C7565            with --tsv   key <tab> value
//! ```
//! 1. Hexadecimal is `0x` and an even number of digits, printed in capitals. Keys and values have separate flags.
//! 2. A line is cut at the first separator: a value may contain it, a key may not. Neither may contain a line break.
//! 3. An entry that a plain line would not represent is printed as `0x6B6579 =hex=> 0x76616C7565`. No other line looks
//!    like that, because such a line has neither separator. `load` reads it in every form; RocksDB's `ldb load` counts it
//!    as a bad line.
//! 4. A row of columns is printed with its columns, and without the care of 3. `load` takes such a line for a plain value.
//!
//! Source: RocksDB `tools/ldb_cmd.cc`.

use crate::bytes_text::{parse_bytes, write_bytes};
use crate::cli::Common;
use ashlardb::Columns;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

const ARROW: &[u8] = b" ==> ";
/// The separator of an entry that a plain line cannot represent.
const HEX_ARROW: &[u8] = b" =hex=> ";

/// The separator of key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// ` ==> `
    Arrow,
    /// A tab.
    Tab,
}

impl Separator {
    fn bytes(self) -> &'static [u8] {
        match self {
            Separator::Arrow => ARROW,
            Separator::Tab => b"\t",
        }
    }

    /// The separator in `line`; the arrow if the line has both.
    pub(crate) fn of(line: &[u8]) -> Option<Separator> {
        [Separator::Arrow, Separator::Tab].into_iter().find(|s| find(line, s.bytes()).is_some())
    }
}

/// The text form of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    key_hex: bool,
    value_hex: bool,
    separator: Separator,
}

impl Form {
    /// The form that the flags select.
    pub(crate) fn new(common: &Common, separator: Separator) -> Self {
        Form { key_hex: common.hex || common.key_hex, value_hex: common.hex || common.value_hex, separator }
    }

    /// Parses a key of the command line.
    pub(crate) fn key(&self, word: &OsStr) -> Result<Vec<u8>, String> {
        parse_bytes(word.as_bytes(), self.key_hex)
    }

    /// Parses a value of the command line.
    pub(crate) fn value(&self, word: &OsStr) -> Result<Vec<u8>, String> {
        parse_bytes(word.as_bytes(), self.value_hex)
    }

    /// Parses a line without its line break. `None`: there is no separator, or the hexadecimal digits are invalid.
    pub(crate) fn entry(&self, line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        cut(line, self.separator.bytes(), self.key_hex, self.value_hex)
    }

    /// Prints an entry as a line that reads back as the same entry.
    pub(crate) fn print(&self, out: &mut dyn Write, key: &[u8], value: &[u8]) -> io::Result<()> {
        let mut line = Vec::with_capacity(key.len() + value.len() + HEX_ARROW.len());
        write(self.key_hex, &mut line, key)?;
        let at = line.len();
        line.extend_from_slice(self.separator.bytes());
        write(self.value_hex, &mut line, value)?;
        if !self.is_clear(&line, at) {
            line.clear();
            write(true, &mut line, key)?;
            line.extend_from_slice(HEX_ARROW);
            write(true, &mut line, value)?;
        }
        line.push(b'\n');
        out.write_all(&line)
    }

    /// Whether a parser finds the separator of `line` at `at`.
    fn is_clear(&self, line: &[u8], at: usize) -> bool {
        // In a line with both separators, the arrow counts.
        let arrow_behind_tab = self.separator == Separator::Tab && find(line, ARROW).is_some();
        !line.contains(&b'\n') && !arrow_behind_tab && find(line, self.separator.bytes()) == Some(at)
    }

    /// Prints a key as a line.
    pub(crate) fn print_key(&self, out: &mut dyn Write, key: &[u8]) -> io::Result<()> {
        write(self.key_hex, out, key)?;
        out.write_all(b"\n")
    }

    /// Prints an entry whose value is a row of columns, as a line.
    pub(crate) fn print_entity(&self, out: &mut dyn Write, key: &[u8], columns: &Columns) -> io::Result<()> {
        write(self.key_hex, out, key)?;
        out.write_all(self.separator.bytes())?;
        self.print_row(out, columns)
    }

    /// Prints a row of columns as a line: `NAME:VALUE` of each, in order. The name of the default column is empty.
    pub(crate) fn print_row(&self, out: &mut dyn Write, columns: &Columns) -> io::Result<()> {
        for (at, (name, value)) in columns.iter().enumerate() {
            out.write_all(if at == 0 { b"" } else { b" " })?;
            write(self.value_hex && !name.is_empty(), out, name)?;
            out.write_all(b":")?;
            write(self.value_hex, out, value)?;
        }
        out.write_all(b"\n")
    }

    /// Prints the number and the bytes of the entries whose keys begin with `group`.
    pub(crate) fn print_counts(
        &self,
        out: &mut dyn Write,
        group: &[u8],
        count: u64,
        bytes: usize,
    ) -> io::Result<()> {
        write(self.key_hex, out, group)?;
        writeln!(out, " => count:{count}\tsize:{bytes}")
    }

    /// Prints a value as a line.
    pub(crate) fn print_value(&self, out: &mut dyn Write, value: &[u8]) -> io::Result<()> {
        write(self.value_hex, out, value)?;
        out.write_all(b"\n")
    }
}

/// Parses a line with ` =hex=> `. `None`: the line has another form.
pub(crate) fn marked_entry(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    if Separator::of(line).is_some() { None } else { cut(line, HEX_ARROW, true, true) }
}

fn cut(line: &[u8], separator: &[u8], key_hex: bool, value_hex: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = find(line, separator)?;
    let key = parse_bytes(line.get(..at)?, key_hex).ok()?;
    let value = parse_bytes(line.get(at + separator.len()..)?, value_hex).ok()?;
    Some((key, value))
}

fn find(line: &[u8], separator: &[u8]) -> Option<usize> {
    line.windows(separator.len()).position(|part| part == separator)
}

/// Prints digits after `0x`.
fn write(hex: bool, out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    if hex {
        out.write_all(b"0x")?;
    }
    write_bytes(out, bytes, hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(key_hex: bool, value_hex: bool, separator: Separator) -> Form {
        Form { key_hex, value_hex, separator }
    }

    fn line(form: Form, key: &[u8], value: &[u8]) -> String {
        let mut out = Vec::new();
        form.print(&mut out, key, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_are_ldbs() {
        use Separator::{Arrow, Tab};
        assert_eq!(line(form(false, false, Arrow), b"key", b"a value"), "key ==> a value\n");
        assert_eq!(line(form(true, true, Arrow), b"key", b"\xff\0"), "0x6B6579 ==> 0xFF00\n");
        assert_eq!(line(form(true, false, Arrow), b"k", b"v"), "0x6B ==> v\n");
        assert_eq!(line(form(false, false, Tab), b"./a b", b"17"), "./a b\t17\n");
        assert_eq!(line(form(true, true, Arrow), b"", b""), "0x ==> 0x\n");
    }

    #[test]
    fn what_is_printed_reads_back() {
        let all: Vec<u8> = (0..=255).collect();
        for f in [form(true, true, Separator::Arrow), form(true, true, Separator::Tab)] {
            let text = line(f, &all, b"");
            assert_eq!(f.entry(text.trim_end().as_bytes()), Some((all.clone(), Vec::new())));
        }
        let plain = form(false, false, Separator::Arrow);
        assert_eq!(plain.entry(b"k ==> v ==> w"), Some((b"k".to_vec(), b"v ==> w".to_vec())));
        assert_eq!(plain.entry(b"k ==> "), Some((b"k".to_vec(), Vec::new())));
        assert_eq!(
            form(false, false, Separator::Tab).entry(b"a\tb\tc"),
            Some((b"a".to_vec(), b"b\tc".to_vec()))
        );
    }

    #[test]
    fn what_a_plain_line_cannot_tell_is_printed_in_digits() {
        use Separator::{Arrow, Tab};
        assert_eq!(line(form(false, false, Arrow), b"a ==> b", b"c"), "0x61203D3D3E2062 =hex=> 0x63\n");
        let odd: [(&[u8], &[u8]); 10] = [
            (b"a ==> b", b"c ==> d"),
            (b"a ==>", b"==> b"),
            (b"a\nb", b"v"),
            (b"k", b"v1\nv2"),
            (b"a\tb", b"c"),
            (b"k", b"a ==> b"),
            (b"0x61 =hex=> 0x62", b"c"),
            (b"0x61 =hex=> 0x62", b""),
            (b"", b""),
            (b"Keys in range: 1\n", b"\r"),
        ];
        for (key, value) in odd {
            for separator in [Arrow, Tab] {
                for (key_hex, value_hex) in [(false, false), (true, false), (false, true), (true, true)] {
                    let form = form(key_hex, value_hex, separator);
                    let text = line(form, key, value);
                    let text = text.strip_suffix('\n').unwrap().as_bytes();
                    let marked = marked_entry(text);
                    assert!(!text.contains(&b'\n') && marked.is_none() || Separator::of(text).is_none());
                    let read = marked.or_else(|| form.entry(text));
                    assert_eq!(read, Some((key.to_vec(), value.to_vec())), "{}", text.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn what_is_no_entry_is_none() {
        let (plain, hex) = (form(false, false, Separator::Arrow), form(true, true, Separator::Arrow));
        for text in ["", "Keys in range: 3", "k==>v", "k =>  v"] {
            assert_eq!(plain.entry(text.as_bytes()), None, "{text}");
        }
        for text in ["61 ==> 0x61", "0x6 ==> 0x61", "0xZZ ==> 0x61", "0x61 ==> 61", "0x+1 ==> 0x61"] {
            assert_eq!(hex.entry(text.as_bytes()), None, "{text}");
        }
        let said = hex.key(OsStr::new("62")).unwrap_err();
        assert_eq!(said, "Invalid hex input 62: it must start with 0x");
        assert_eq!(hex.key(OsStr::new("0xaB")), Ok(vec![0xab]));
    }

    #[test]
    fn the_first_line_tells_the_separator() {
        assert_eq!(Separator::of(b"a\tb"), Some(Separator::Tab));
        assert_eq!(Separator::of(b"a ==> \tb"), Some(Separator::Arrow));
        assert_eq!(Separator::of(b"nothing"), None);
    }
}
