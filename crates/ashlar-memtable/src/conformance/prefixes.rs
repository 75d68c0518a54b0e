//! Keys that begin with the same bytes, few and very many.

use super::*;

/// Lengths around those of words, and such as keys rarely have.
const LENGTHS: [usize; 17] =
    [0, 1, 15, 17, 100, 237, 239, 240, 241, 255, 300, 500, 984, 1200, 4079, 4081, 69_614];

/// Entries whose keys begin with `length` bytes `p`, some with fewer, and then differ early or late.
fn fill_alike(order: &Order, mem: &dyn MemtableRep, random: &mut Random, length: usize, ops: u64) -> Model {
    let (mut model, mut writers) = (Model::new(), <[WriterSlot; 2]>::default());
    for at in 1..=ops {
        let key = alike(random, length);
        let value = at.to_le_bytes();
        put(mem, &mut writers[random.below(2) as usize], &key, &value, at);
        model.insert(Sorted(order.clone(), key, Trailer::new(seq(at), ValueType::Put)), value.to_vec());
    }
    model
}

fn alike(random: &mut Random, length: usize) -> Vec<u8> {
    let common = match random.below(12) {
        0 => random.below(length as u64 + 1) as usize,
        1 => length + 40,
        2 => length.saturating_sub(1),
        _ => length,
    };
    let mut key = vec![b'p'; common];
    match random.below(4) {
        0 => key.extend(random.key().iter().take(3)),
        1 => key.extend(random.below(40).to_be_bytes()),
        _ => key.extend(format!("{:04}", random.below(300)).bytes()),
    }
    key
}

#[test]
fn keys_that_begin_alike_are_told_apart() {
    for length in LENGTHS {
        let ops = match length {
            _ if cfg!(miri) => 12,
            0..2000 => 500,
            2000..5000 => 200,
            _ => 30,
        };
        if cfg!(miri) && length > 300 {
            continue;
        }
        each(|order, mem| {
            let mut random = Random(11 + length as u64);
            let model = fill_alike(&order, &*mem, &mut random, length, ops);
            let mut it = Arc::clone(&mem).iter();
            it.first().unwrap();
            for entry in &model {
                assert_at(&*it, Some(entry));
                it.next().unwrap();
            }
            for round in 0..ops {
                let known = model.keys().nth(random.below(model.len() as u64) as usize).unwrap();
                let key = if round % 2 == 0 { known.1.clone() } else { alike(&mut random, length) };
                let lookup = LookupKey::new(&key, seq(random.below(ops + 2)));
                let probe = Sorted(order.clone(), key.clone(), lookup.trailer());
                let after = model.range(probe.clone()..).next();
                assert_eq!(versions(&*mem, &lookup), model_versions(&model, &order, &lookup));
                it.seek(InternalKeyBuf::new(&key, lookup.trailer()).as_key()).unwrap();
                assert_at(&*it, after);
                it.seek_for_prev(InternalKeyBuf::new(&key, lookup.trailer()).as_key()).unwrap();
                assert_at(&*it, model.range(..=probe).next_back());
            }
        });
    }
}
