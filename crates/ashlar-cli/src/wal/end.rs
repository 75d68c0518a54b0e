//! Describes the end of a WAL file: the answer to "what will recovery do with this file?".

use super::Mode;
use crate::bytes_text::counted;
use ashlar_log::{LogEnd, Skipped};

/// The sentence, and whether the mode counts this end as damage.
pub(super) fn words(end: LogEnd, skipped: Skipped, mode: Mode) -> (String, bool) {
    let (text, damaged) = of_end(end, mode);
    match skipped.first {
        None => (text, damaged),
        Some((offset, reason)) => {
            let damages = counted(skipped.count, "damage");
            let bytes = counted(skipped.bytes, "byte");
            (format!("passed over {damages} with {bytes}, the first at {offset}: {reason}\n{text}"), true)
        }
    }
}

fn of_end(end: LogEnd, mode: Mode) -> (String, bool) {
    match end {
        LogEnd::Clean => ("ends clean: behind a whole record".to_owned(), false),
        LogEnd::Torn { offset, reason, dropped_bytes } => {
            let bytes = counted(dropped_bytes, "byte");
            let text = format!(
                "ends torn at {offset}: {reason}; {bytes} are dropped, as a crash in the middle of a write leaves them"
            );
            (text, false)
        }
        LogEnd::Cut { offset, reason, dropped_bytes } => {
            let bytes = counted(dropped_bytes, "byte");
            let then = match mode {
                Mode::PointInTime => "what stands before is kept, nothing behind it",
                Mode::TolerateTail | Mode::Absolute => "in this mode a database does not open with it",
                Mode::SkipAny => "nothing more can be read",
            };
            (format!("is cut at {offset}: {reason}; {bytes} known to be lost; {then}"), true)
        }
        LogEnd::OldRecord { offset } => {
            let text = format!(
                "ends at {offset}, where records of the file's former life begin; replay goes on in the next log only \
                 if that continues with the next sequence"
            );
            (text, false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ashlar_log::CutReason;

    #[test]
    fn the_mode_decides() {
        let cut = LogEnd::Cut { offset: 40, reason: CutReason::ChecksumMismatch, dropped_bytes: 9 };
        let none = Skipped::default();
        let (kept, damaged) = words(cut, none, Mode::PointInTime);
        assert!(
            damaged && kept.contains("at 40: checksum mismatch") && kept.contains("before is kept"),
            "{kept}"
        );
        assert!(words(cut, none, Mode::Absolute).0.contains("does not open"));
        let torn = LogEnd::Torn { offset: 40, reason: CutReason::TruncatedHeader, dropped_bytes: 3 };
        assert!(!words(torn, none, Mode::TolerateTail).1);
        let skipped = Skipped { count: 2, bytes: 30, first: Some((7, CutReason::BadLength)) };
        let (text, damaged) = words(LogEnd::Clean, skipped, Mode::SkipAny);
        assert!(
            damaged
                && text
                    .starts_with("passed over 2 damages with 30 bytes, the first at 7: bad record length\n")
        );
    }
}
