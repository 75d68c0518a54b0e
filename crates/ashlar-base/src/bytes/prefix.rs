//! The common prefix of two keys.

/// The number of bytes that two slices start with in common. Cost: one comparison per eight bytes.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut at = 0;
    while let (Some(x), Some(y)) = (word(a, at), word(b, at)) {
        let differing = x ^ y;
        if differing != 0 {
            return at + (differing.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let (a, b) = (a.get(at..).unwrap_or_default(), b.get(at..).unwrap_or_default());
    at + a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_plain_form() {
        let text: Vec<u8> = (0..40).collect();
        for a_len in 0..=text.len() {
            for b_len in 0..=text.len() {
                for differs in 0..=b_len {
                    let (a, mut b) = (&text[..a_len], text[..b_len].to_vec());
                    if let Some(byte) = b.get_mut(differs) {
                        *byte ^= 0x80;
                    }
                    let plain = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
                    assert_eq!(common_prefix(a, &b), plain, "{a_len} {b_len} {differs}");
                }
            }
        }
    }
}
