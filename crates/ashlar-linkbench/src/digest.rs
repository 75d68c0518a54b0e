//! Digests of what was read and written: 64 bits, for comparing runs. They are no protection against an adversary.

/// Adds numbers to a running digest.
pub fn fold(digest: u64, numbers: &[u64]) -> u64 {
    numbers.iter().fold(digest, |digest, number| {
        // A step of the splitmix generator mixes every bit of the number into every bit of the digest.
        let mixed = (digest ^ number).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
    })
}

/// Adds a word to the digest of bytes. The rotation makes the place of the word count, and no word is lost: the step is a bijection of
/// the word.
fn step(digest: u64, word: u64) -> u64 {
    (digest.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The digest of bytes. It reads all of them, so that an engine that maps or pins pages also pays for every page of a value.
pub fn of_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let digest =
        words.iter().fold(bytes.len() as u64, |digest, word| step(digest, u64::from_le_bytes(*word)));
    fold(0, &[rest.iter().fold(digest, |digest, byte| step(digest, u64::from(*byte)))])
}

/// The digest of an entry. Keys are a letter and whole numbers of eight bytes, whose order counts.
pub fn of_entry(key: &[u8], value: &[u8]) -> u64 {
    let (letter, rest) = key.split_first().map_or((0, key), |(letter, rest)| (*letter, rest));
    let ids = rest.as_chunks::<8>();
    let digest = ids.0.iter().fold(letter.into(), |digest, id| fold(digest, &[u64::from_be_bytes(*id)]));
    fold(digest, &[of_bytes(ids.1), of_bytes(value)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_value_counts() {
        let bytes = vec![7_u8; 100];
        for place in 0..bytes.len() {
            let mut other = bytes.clone();
            other[place] = 8;
            assert_ne!(of_bytes(&bytes), of_bytes(&other), "{place}");
            assert_ne!(of_entry(b"n12345678", &bytes), of_entry(b"n12345678", &other), "{place}");
        }
        assert_ne!(of_bytes(&bytes), of_bytes(&bytes[1..]));
        assert_ne!(of_bytes(&[0; 3]), of_bytes(&[0; 4]));
    }

    #[test]
    fn the_order_of_the_words_of_a_value_counts() {
        let bytes: Vec<u8> = (0..35).collect();
        let words = bytes.len() / 8;
        for (one, other) in (0..words).flat_map(|one| (one + 1..words).map(move |other| (one, other))) {
            let mut swapped = bytes.clone();
            swapped[one * 8..][..8].copy_from_slice(&bytes[other * 8..][..8]);
            swapped[other * 8..][..8].copy_from_slice(&bytes[one * 8..][..8]);
            assert_ne!(of_bytes(&bytes), of_bytes(&swapped), "{one} {other}");
        }
        let mut swapped = bytes.clone();
        swapped.swap(32, 34);
        assert_ne!(of_bytes(&bytes), of_bytes(&swapped), "behind the last word");
    }

    #[test]
    fn the_order_of_the_ids_in_a_key_counts() {
        let key = |a: u64, b: u64| [&b"c"[..], &a.to_be_bytes(), &b.to_be_bytes()].concat();
        assert_ne!(of_entry(&key(1, 2), b"v"), of_entry(&key(2, 1), b"v"));
        assert_ne!(of_entry(b"c", b"v"), of_entry(b"n", b"v"));
    }
}
