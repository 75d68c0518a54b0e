//! Choosing inputs to keep: without coverage feedback, the reasons for which inputs are refused tell the ways they take.

use crate::corpus;
use crate::targets::Target;
use ashlar_testkit::mutate::Limits;
use std::collections::BTreeMap;
use std::time::Instant;

/// Larger inputs are not kept.
const LONGEST: usize = 2048;
/// Inputs kept per target, and bytes of them.
const MOST: usize = 14;
const MOST_BYTES: usize = 6 << 10;

/// Draws inputs and keeps the smallest of each reason. Returns how many there are now.
pub fn harvest(target: &Target, limits: Limits) -> Result<usize, String> {
    let start = Instant::now();
    let corpus = target.corpus();
    let mut smallest: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut seed = limits.seed;
    while start.elapsed() < limits.time && seed.wrapping_sub(limits.seed) < limits.rounds {
        let input = target.draw(&corpus, seed);
        seed = seed.wrapping_add(1);
        let reason = reason((target.decode)(&input).err().unwrap_or_default());
        if smallest.get(&reason).is_none_or(|kept| kept.len() > input.len()) {
            smallest.insert(reason, input);
        }
    }
    let mut chosen: Vec<Vec<u8>> = smallest.into_values().filter(|input| input.len() <= LONGEST).collect();
    chosen.sort_by_key(Vec::len);
    chosen.dedup();
    let folder = corpus::kept_folder(target.name);
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut bytes = 0;
    for input in chosen.iter().take(MOST) {
        bytes += input.len();
        if bytes > MOST_BYTES {
            break;
        }
        let name = format!("{:016x}", ashlar_base::checksum::xxh3_64(input));
        std::fs::write(folder.join(name), input).map_err(failed)?;
    }
    Ok(corpus::kept(target.name).len())
}

/// Numbers, names and the content of keys make no other reason.
fn reason(text: String) -> String {
    let mut words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphabetic()).collect();
    words.retain(|word| word.len() > 2);
    words.truncate(16);
    words.join(" ")
}
