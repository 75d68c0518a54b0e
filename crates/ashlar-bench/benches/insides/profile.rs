//! What callgrind wrote down of a round.
//!
//! ```text
//! ob=PROGRAM                        the lines that follow are of this object
//! fn=NAME                           and of this function, with what was inlined into it
//! 0x13f50 999                       address of an instruction, how often it ran
//! calls=1 0x13f40 / 0x13f31 7005    a call, and behind it what the called function took, which is counted there
//! ```
//! Source: the manual of valgrind, "Callgrind Format Specification".

use std::collections::BTreeMap;

/// What an operation takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counts {
    pub instructions: f64,
    /// Of them, those that lock a cache line.
    pub locked: f64,
}

/// What a round took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    pub instructions: u64,
    /// Instructions that lock a cache line, by the function that has them.
    pub locked: BTreeMap<String, u64>,
}

impl Profile {
    /// Reads a profile. Instructions that lock are known of `program` only, by their addresses.
    pub fn parse(text: &str, program: &str, locks: impl Fn(u64) -> bool) -> Profile {
        let mut profile = Profile::default();
        let (mut of_program, mut function) = (false, "");
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(object) = line.strip_prefix("ob=") {
                of_program = object == program;
            } else if let Some(name) = line.strip_prefix("fn=") {
                function = name;
            } else if line.starts_with("calls=") {
                lines.next();
            } else if let Some((address, count)) =
                line.strip_prefix("0x").and_then(|rest| rest.split_once(' '))
            {
                let count: u64 = count.trim().parse().unwrap_or(0);
                profile.instructions += count;
                let address = u64::from_str_radix(address, 16).ok().filter(|_| of_program && count > 0);
                if address.is_some_and(&locks) {
                    *profile.locked.entry(function.to_owned()).or_default() += count;
                }
            }
        }
        profile
    }

    /// Per operation of `ops`.
    pub fn counts(&self, ops: u64) -> Counts {
        let each = |count: u64| count as f64 / ops.max(1) as f64;
        Counts { instructions: each(self.instructions), locked: each(self.locked.values().sum()) }
    }
}

#[cfg(test)]
#[allow(dead_code, unused_imports, reason = "tests/it runs them; the benchmark has no harness")]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_where_they_go() {
        let profile = "positions: instr\nevents: Ir\nsummary: 13\n\nob=/lib/c.so\nfl=???\nfn=memcpy\n0x10 3\n\n\
                       ob=/a/program\nfl=???\nfn=round\n0x10 2\n0x14 4\ncob=/lib/c.so\ncfn=memcpy\ncalls=1 0x10 \n\
                       0x18 3\n0x1a 4\nfn=other\n0x10 1\n\ntotals: 14\n";
        let of = |program| Profile::parse(profile, program, |address| address == 0x10);
        let found = of("/a/program");
        assert_eq!(found.instructions, 14);
        assert_eq!(found.locked, BTreeMap::from([("other".to_owned(), 1), ("round".to_owned(), 2)]));
        assert_eq!(found.counts(2), Counts { instructions: 7.0, locked: 1.5 });
        assert_eq!(of("/b").locked.len(), 0);
        assert_eq!(Profile::parse("", "/b", |_| true), Profile::default());
    }
}
