//! Lines of any length from an input that is not trusted to have line breaks.
//!
//! 1. The reader allocates memory for a line as the line arrives. A failed allocation is an error and does not end the
//!    process.
//! 2. The reader skips a line that cannot be an entry and does not keep it: the line is longer than every entry, or has
//!    no separator within the length of the longest key.

use std::io::{BufRead, ErrorKind};

/// Upper bound on the bytes of a key: its 8 MiB as hexadecimal digits, twice over.
const UNMARKED_MAX: u64 = 32 << 20;
/// Upper bound on the bytes of a line: longest key and longest value as hexadecimal digits, separator and prefixes.
const LINE_MAX: u64 = 2 * ((2 << 30) + (8 << 20)) + 1024;

/// The limits of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The separator must begin within this many bytes.
    unmarked: u64,
    /// The length of the longest line.
    line: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { unmarked: UNMARKED_MAX, line: LINE_MAX }
    }
}

/// The result of one read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next<'a> {
    /// A line without its line break.
    Line(&'a [u8]),
    /// A line that cannot be an entry.
    Skipped,
    /// The end of the input.
    End,
}

/// Reads lines.
pub(super) struct LineReader<'a> {
    input: &'a mut dyn BufRead,
    limits: Limits,
    line: Vec<u8>,
}

impl<'a> LineReader<'a> {
    pub(super) fn new(input: &'a mut dyn BufRead, limits: Limits) -> Self {
        LineReader { input, limits, line: Vec::new() }
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// A sentence: the input cannot be read, or there is no memory for the line.
    pub(super) fn next(&mut self) -> Result<Next<'_>, String> {
        self.line.clear();
        let (mut is_marked, mut is_kept, mut is_end) = (false, true, true);
        loop {
            let part = match self.input.fill_buf() {
                Ok(part) => part,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(format!("the input cannot be read: {e}")),
            };
            let line_break = part.iter().position(|byte| *byte == b'\n');
            let taken = line_break.and_then(|at| part.get(..at)).unwrap_or(part);
            let used = taken.len() + usize::from(line_break.is_some());
            is_end &= used == 0;
            if is_kept {
                keep(&mut self.line, taken)?;
                // The last byte of the preceding part may begin an arrow.
                let seen = self.line.len().saturating_sub(taken.len() + 1);
                is_marked |= has_mark(&self.line, seen, self.limits.unmarked);
                let length = self.line.len() as u64;
                is_kept = length <= self.limits.line && (is_marked || length <= self.limits.unmarked);
                if !is_kept {
                    self.line = Vec::new();
                }
            }
            self.input.consume(used);
            if line_break.is_some() || used == 0 {
                break;
            }
        }
        // The parser copies the line with an allocation whose failure would end the process, so memory is tested here.
        let length = self.line.len();
        Vec::<u8>::new().try_reserve_exact(length).map_err(|_| no_memory(length))?;
        Ok(match (is_end, is_kept) {
            (true, _) => Next::End,
            (false, true) => Next::Line(&self.line),
            (false, false) => Next::Skipped,
        })
    }
}

/// Appends `part` to the line.
fn keep(line: &mut Vec<u8>, part: &[u8]) -> Result<(), String> {
    line.try_reserve(part.len()).map_err(|_| no_memory(line.len()))?;
    line.extend_from_slice(part);
    Ok(())
}

fn no_memory(read: usize) -> String {
    format!("there is no memory for this line, of which {read} bytes are read")
}

/// Whether a byte that every separator contains is after the first `seen` bytes and within `unmarked`.
fn has_mark(line: &[u8], seen: usize, unmarked: u64) -> bool {
    let end = usize::try_from(unmarked).unwrap_or(usize::MAX).min(line.len());
    let part = line.get(seen..end).unwrap_or_default();
    part.contains(&b'\t') || part.windows(2).any(|two| two == b"=>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, BufReader, Read};

    const SMALL: Limits = Limits { unmarked: 8, line: 16 };

    /// All lines of `text`, which comes in parts of `step` bytes; a line that was skipped is `None`.
    fn lines(text: &[u8], step: usize) -> Vec<Option<String>> {
        let mut input = BufReader::with_capacity(step, text);
        let mut reader = LineReader::new(&mut input, SMALL);
        let mut all = Vec::new();
        loop {
            match reader.next().unwrap() {
                Next::Line(line) => all.push(Some(String::from_utf8(line.to_vec()).unwrap())),
                Next::Skipped => all.push(None),
                Next::End => return all,
            }
            assert!(reader.line.capacity() <= 64);
        }
    }

    #[test]
    fn lines_come_whole_and_what_can_be_no_entry_is_skipped() {
        let cases: [(&str, &[Option<&str>]); 14] = [
            ("", &[]),
            ("\n", &[Some("")]),
            ("\n\na", &[Some(""), Some(""), Some("a")]),
            ("12345678\n", &[Some("12345678")]),
            ("123456789\n", &[None]),
            ("123456789", &[None]),
            ("1234567\t9\n", &[Some("1234567\t9")]),
            ("12345678\t\nk\tv\n", &[None, Some("k\tv")]),
            ("123456=>9\n", &[Some("123456=>9")]),
            ("1234567=>\nk", &[None, Some("k")]),
            ("k ==> 7890123456\n", &[Some("k ==> 7890123456")]),
            ("k ==> 78901234567\n", &[None]),
            (
                "k\tv\nk ==> 7890123456789012345678901234567890\n\nl\tw",
                &[Some("k\tv"), None, Some(""), Some("l\tw")],
            ),
            ("=\n>23456789\n", &[Some("="), None]),
        ];
        for (text, want) in cases {
            let want: Vec<_> = want.iter().map(|line| line.map(str::to_owned)).collect();
            for step in [1, 2, 3, 7, 64] {
                assert_eq!(lines(text.as_bytes(), step), want, "{text:?} in parts of {step}");
            }
        }
    }

    /// Every other read is interrupted; behind the text, reads fail.
    struct Fragile<'a> {
        rest: &'a [u8],
        is_next: bool,
    }

    impl Read for Fragile<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.is_next = !self.is_next;
            match (self.is_next, self.rest.is_empty()) {
                (true, _) => Err(ErrorKind::Interrupted.into()),
                (false, true) => Err(io::Error::other("no device")),
                (false, false) => self.rest.read(into),
            }
        }
    }

    #[test]
    fn an_interrupted_read_is_made_again_and_a_failed_one_is_an_error() {
        let mut input = BufReader::with_capacity(2, Fragile { rest: b"k\tv\nw", is_next: false });
        let mut reader = LineReader::new(&mut input, SMALL);
        assert_eq!(reader.next(), Ok(Next::Line(b"k\tv")));
        assert_eq!(reader.next(), Err("the input cannot be read: no device".to_owned()));
    }
}
