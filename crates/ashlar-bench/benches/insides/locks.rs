//! Which instructions of a program lock a cache line: read from its code, so that a profile by address tells how often.
//!
//! On x86-64 these are instructions with the prefix `lock`, an exchange with memory (locked without the prefix, and what a
//! sequentially consistent store is compiled to), and the full fence `mfence`. Source: Intel SDM, volume 2, chapter 2; the ELF-64
//! object file format.

/// A program in ELF form: where its code lies.
pub struct Program {
    bytes: Vec<u8>,
    /// Address, length and place in the file of what is loaded.
    segments: Vec<[u64; 3]>,
}

impl Program {
    /// `None`: the bytes are no 64-bit little-endian ELF file.
    pub fn parse(bytes: Vec<u8>) -> Option<Program> {
        const LOAD: u64 = 1;
        bytes.starts_with(b"\x7fELF\x02\x01").then_some(())?;
        let (headers, each, count) =
            (number(&bytes, 0x20, 8)?, number(&bytes, 0x36, 2)?, number(&bytes, 0x38, 2)?);
        let mut segments = Vec::new();
        for index in 0..count {
            let at = usize::try_from(headers + index * each).ok()?;
            if number(&bytes, at, 4)? == LOAD {
                let field = |offset| number(&bytes, at + offset, 8);
                segments.push([field(16)?, field(32)?, field(8)?]);
            }
        }
        Some(Program { bytes, segments })
    }

    /// True when the instruction at `address` locks a cache line. An address that is not loaded does not.
    pub fn locks(&self, address: u64) -> bool {
        let inside = |[from, len, _]: &&[u64; 3]| (*from..from + len).contains(&address);
        let place = self.segments.iter().find(inside).map(|[from, _, place]| address - from + place);
        let code = place.and_then(|place| self.bytes.get(usize::try_from(place).ok()?..));
        code.is_some_and(is_locked)
    }
}

/// `len` bytes at `at`, little-endian.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let part = bytes.get(at..at + len)?;
    Some(part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// Whether the instruction that `code` begins with locks.
fn is_locked(code: &[u8]) -> bool {
    const LOCK: u8 = 0xf0;
    let is_prefix =
        |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf2 | 0xf3) || *byte == LOCK;
    let prefixes = code.iter().take_while(|byte| is_prefix(byte)).count();
    if code[..prefixes].contains(&LOCK) {
        return true;
    }
    let rest = &code[prefixes..];
    let rest = if rest.first().is_some_and(|byte| byte >> 4 == 4) { &rest[1..] } else { rest };
    match rest {
        // An exchange, unless both sides are registers.
        [0x86 | 0x87, operands, ..] => operands >> 6 != 3,
        [0x0f, 0xae, 0xf0..=0xf7, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
#[allow(dead_code, unused_imports, reason = "tests/it runs them; the benchmark has no harness")]
mod tests {
    use super::*;

    #[test]
    fn locked_instructions_are_told_from_others() {
        for (code, locked) in [
            (&[0xf0, 0x48, 0x01, 0x0d][..], true),   // lock add
            (&[0xf0, 0x0f, 0xb1, 0x0b], true),       // lock cmpxchg
            (&[0x66, 0xf0, 0x0f, 0xc1, 0x07], true), // lock xadd of 16 bits
            (&[0x48, 0x87, 0x15, 0x7e], true),       // xchg with memory
            (&[0x86, 0x07], true),                   // the same, a byte
            (&[0x48, 0x87, 0xd1], false),            // xchg of registers
            (&[0x0f, 0xae, 0xf0], true),             // mfence
            (&[0x0f, 0xae, 0xe8], false),            // lfence
            (&[0x48, 0x89, 0xf0], false),            // mov, f0 is an operand
            (&[0x66, 0x0f, 0x1f, 0x84], false),      // nop
            (&[], false),
        ] {
            assert_eq!(is_locked(code), locked, "{code:02x?}");
        }
    }

    /// This test's own program: it has code, and is read to its end.
    #[test]
    fn a_program_is_found_by_its_addresses() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let program = Program::parse(program).unwrap();
        let code = program.segments.iter().max_by_key(|[_, len, _]| *len).unwrap();
        let locked = (code[0]..code[0] + code[1]).filter(|address| program.locks(*address)).count();
        assert!(locked > 10, "{locked}");
        assert!(!program.locks(u64::MAX) && Program::parse(b"\x7fELF\x01".to_vec()).is_none());
    }
}
