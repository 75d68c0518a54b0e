//! query: commands from standard input, one per line, on a database that stays open.
//!
//! ```text
//! put k v        put k => v succeeded
//! get k          k ==> v
//! get none       get none status: NotFound:
//! count          1
//! delete k       delete k succeeded
//! ```
//! 1. The words of a line are separated by one blank each. With --hex, keys and values are 0x and hexadecimal digits.
//! 2. A line that is no command gives a line of output, and the next line follows. A failed read or write ends the command.
//! 3. Every answer is written before the next line is read, so that a program can wait for it.
//!
//! Source: RocksDB `tools/ldb_cmd.cc` (`query`, by its output).

use super::Target;
use super::text::Form;
use crate::Done;
use crate::outcome::Outcome;
use ashlardb::{Family, Read as _, Write as _};
use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;

const HELP: &str = "get <key>\nput <key> <value>\ndelete <key>\ncount [--from=<key>] [--to=<key>]\nquit\n";

/// Runs the commands up to the end of the input, or up to `quit`.
pub(super) fn run(target: &Target, input: &mut dyn BufRead, out: &mut dyn Write) -> Done {
    let db = target.open_to_write()?;
    let shell = Shell { family: target.family(&db)?, form: target.form(false) };
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.read_until(b'\n', &mut line);
        if read.map_err(|e| Outcome::Failed(format!("the input cannot be read: {e}")))? == 0 {
            break;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        if line == b"quit" || line == b"exit" {
            break;
        }
        match shell.line(line, out) {
            Err(Outcome::Usage(text)) => writeln!(out, "{text}")?,
            done => done?,
        }
        out.flush()?;
    }
    drop(shell);
    Ok(db.close()?)
}

struct Shell {
    family: Family,
    form: Form,
}

impl Shell {
    /// Runs one line. `Usage`: the line is no command, and this is the answer.
    fn line(&self, line: &[u8], out: &mut dyn Write) -> Done {
        let words: Vec<&OsStr> = line.split(|byte| *byte == b' ').map(OsStr::from_bytes).collect();
        let wrong = |text: String| Err(Outcome::Usage(text));
        match words[..] {
            [word] if word.is_empty() => wrong("Bad command".to_owned()),
            [word] if word == "help" => Ok(out.write_all(HELP.as_bytes())?),
            [word, key] if word == "get" => self.get(key, out),
            [word, key, value] if word == "put" => self.put(key, value, out),
            [word, key] if word == "delete" => self.delete(key, out),
            [word, ref flags @ ..] if word == "count" => self.count(flags, out),
            [word, ..] if word == "put" || word == "delete" || word == "get" => {
                wrong(format!("{} gets invalid arguments", word.display()))
            }
            _ => wrong(format!("Unknown command {}", String::from_utf8_lossy(line))),
        }
    }

    fn key(&self, command: &str, word: &OsStr) -> Result<Vec<u8>, Outcome> {
        let wrong = |text| Outcome::Usage(format!("{command} gets invalid argument: {text}"));
        self.form.key(word).map_err(wrong)
    }

    fn get(&self, word: &OsStr, out: &mut dyn Write) -> Done {
        let key = self.key("get", word)?;
        match self.family.get(&key)? {
            Some(value) => Ok(self.form.print(out, &key, &value)?),
            None => Ok(writeln!(out, "get {} status: NotFound: ", word.display())?),
        }
    }

    fn put(&self, key: &OsStr, value: &OsStr, out: &mut dyn Write) -> Done {
        let wrong = |text| Outcome::Usage(format!("put gets invalid argument: {text}"));
        self.family.put(self.key("put", key)?, self.form.value(value).map_err(wrong)?)?;
        Ok(writeln!(out, "put {} => {} succeeded", key.display(), value.display())?)
    }

    fn delete(&self, word: &OsStr, out: &mut dyn Write) -> Done {
        self.family.delete(self.key("delete", word)?)?;
        Ok(writeln!(out, "delete {} succeeded", word.display())?)
    }

    /// Prints the number of keys from `--from` to `--to`, itself excluded.
    fn count(&self, flags: &[&OsStr], out: &mut dyn Write) -> Done {
        let (mut from, mut to) = (Bound::Unbounded, Bound::Unbounded);
        for flag in flags {
            let key = |text: &[u8]| self.key("count", OsStr::from_bytes(text));
            match (flag.as_bytes().strip_prefix(b"--from="), flag.as_bytes().strip_prefix(b"--to=")) {
                (Some(text), _) => from = Bound::Included(key(text)?),
                (_, Some(text)) => to = Bound::Excluded(key(text)?),
                _ => return Err(Outcome::Usage("count gets invalid arguments".to_owned())),
            }
        }
        let mut cursor = self.family.scan((from, to)).cursor()?;
        let mut count = 0_u64;
        while cursor.next()?.is_some() {
            count += 1;
        }
        Ok(writeln!(out, "{count}")?)
    }
}
