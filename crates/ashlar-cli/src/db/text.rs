//! Entries as lines, ldb's way, and back.
//!
//! ```text
//! plain   key ==> value            with --hex   0x6B6579 ==> 0x76616C7565            with --tsv   key <tab> value
//! ```
//! 1. Hexadecimal is `0x` and an even number of digits, printed in capitals; keys and values are told apart.
//! 2. A line is cut at the first separator: a value may contain it, a key that does is told wrongly in plain form.
//!    Neither may contain a line break in plain form; hexadecimal carries everything.
//!
//! Source: RocksDB `tools/ldb_cmd.cc`.

use crate::bytes_text::{parse_bytes, write_bytes};
use crate::cli::Common;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;

const ARROW: &[u8] = b" ==> ";

/// What stands between key and value.
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

    /// The one that `line` has; the arrow if both.
    pub(crate) fn of(line: &[u8]) -> Option<Separator> {
        [Separator::Arrow, Separator::Tab].into_iter().find(|s| find(line, s.bytes()).is_some())
    }
}

/// How keys and values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    key_hex: bool,
    value_hex: bool,
    separator: Separator,
}

impl Form {
    /// What the flags ask for.
    pub(crate) fn new(common: &Common, separator: Separator) -> Self {
        Form { key_hex: common.hex || common.key_hex, value_hex: common.hex || common.value_hex, separator }
    }

    /// A key of the command line.
    pub(crate) fn key(&self, word: &OsStr) -> Result<Vec<u8>, String> {
        parse_bytes(word.as_bytes(), self.key_hex)
    }

    /// A value of the command line.
    pub(crate) fn value(&self, word: &OsStr) -> Result<Vec<u8>, String> {
        parse_bytes(word.as_bytes(), self.value_hex)
    }

    /// An entry from a line without its line break; `None` when there is no separator, or hexadecimal that is none.
    pub(crate) fn entry(&self, line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let separator = self.separator.bytes();
        let at = find(line, separator)?;
        let key = parse_bytes(line.get(..at)?, self.key_hex).ok()?;
        let value = parse_bytes(line.get(at + separator.len()..)?, self.value_hex).ok()?;
        Some((key, value))
    }

    /// Prints an entry as a line.
    pub(crate) fn print(&self, out: &mut dyn Write, key: &[u8], value: &[u8]) -> io::Result<()> {
        write(self.key_hex, out, key)?;
        out.write_all(self.separator.bytes())?;
        write(self.value_hex, out, value)?;
        out.write_all(b"\n")
    }

    /// Prints a key as a line.
    pub(crate) fn print_key(&self, out: &mut dyn Write, key: &[u8]) -> io::Result<()> {
        write(self.key_hex, out, key)?;
        out.write_all(b"\n")
    }

    /// Prints a value as a line.
    pub(crate) fn print_value(&self, out: &mut dyn Write, value: &[u8]) -> io::Result<()> {
        write(self.value_hex, out, value)?;
        out.write_all(b"\n")
    }
}

fn find(line: &[u8], separator: &[u8]) -> Option<usize> {
    line.windows(separator.len()).position(|part| part == separator)
}

/// With digits: behind `0x`.
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
