//! Hash vectors, the worked example, the false-positive rate, odd filters.

use super::form::FilterForm;
use super::{BloomBuilder, xxph3_64};

const ENTITIES: &[u8] = include_bytes!("../../../../golden/sst/v7_db_blobindex_entities.sst");

#[test]
fn hash_vectors() {
    for (input, want) in [
        (&b""[..], 0x5342_c301_0fe1_dd04),
        (b"a", 0x88d8_68bf_6076_81c7),
        (b"ab", 0x885d_dfe7_af63_10e5),
        (b"abc", 0xd39e_eb71_bb53_42e8),
        (b"abcd", 0x97a5_ba1d_02e8_378c),
        (b"key000", 0x3168_9d16_643f_1223),
        (b"12345678", 0x6190_4c54_acf2_731a),
        (b"123456789", 0xac4f_8ba1_4fb1_4987),
        (b"0123456789abcdef", 0x402c_83c1_955d_056d),
        (b"0123456789abcdefg", 0x1de5_bab5_896c_d852),
    ] {
        assert_eq!(xxph3_64(input), want, "{input:?}");
    }
    for (len, want) in [
        (1, 0x7198_d737_cfe7_f386),
        (2, 0x391e_e7c9_8390_0289),
        (3, 0xc036_0a11_b479_1b98),
        (4, 0xf28e_842d_edde_83ae),
        (6, 0x245d_c4e9_5ca9_51ea),
        (8, 0x223c_9d9c_7f17_db6e),
        (9, 0x9355_7756_b5da_e4dd),
        (16, 0x4bfe_2ff1_655e_8360),
        (17, 0x6dff_1ac9_6eef_2848),
        (33, 0x8363_64fa_ed76_2c18),
        (65, 0x761d_1aec_f631_ff50),
        (100, 0xb625_9f52_ac0f_6ddc),
        (128, 0x7aa5_db2c_8097_080b),
        (129, 0xa06d_8174_3056_cebc),
        (200, 0xd860_7562_8129_a666),
        (240, 0xd125_3a6d_ec8c_35fc),
        (241, 0xb78d_f601_6a18_c222),
        (1024, 0xa63b_91fd_35ca_4f09),
        (1025, 0x9593_6fd4_08f0_0c5e),
        (5000, 0x9033_f9a0_7f53_af5d),
    ] {
        let input: Vec<u8> = (0..=255).cycle().take(len).collect();
        assert_eq!(xxph3_64(&input), want, "length {len}");
    }
}

#[test]
fn the_worked_example_is_rebuilt_byte_by_byte() {
    let stored = &ENTITIES[191..191 + 69];
    let form = FilterForm::decode(stored);
    assert_eq!(form, FilterForm::FastLocalBloom { lines: 1, probes: 24 });
    let mut builder = BloomBuilder::new(10.0).unwrap();
    for key in [&b"b1"[..], b"b2", b"b3", b"e1", b"e2", b"gone", b"gone"] {
        builder.add(key);
    }
    assert_eq!(builder.keys(), 6);
    assert_eq!(builder.finish_with(1, 24), stored);
    for (key, want) in
        [("b1", true), ("b2", true), ("e1", true), ("gone", true), ("nope", false), ("zz", false)]
    {
        assert_eq!(form.may_match(stored, xxph3_64(key.as_bytes())), want, "{key}");
    }
}

#[test]
fn ten_bits_per_key_err_about_once_in_a_hundred() {
    let mut builder = BloomBuilder::new(10.0).unwrap();
    for i in 0..20_000u32 {
        builder.add(format!("key{i:08}").as_bytes());
    }
    let filter = builder.finish();
    assert_eq!(filter.len(), builder.size_estimate());
    assert_eq!(filter.len(), (20_000 * 10 / 8usize).next_multiple_of(64) + 5);
    let form = FilterForm::decode(&filter);
    assert!(matches!(form, FilterForm::FastLocalBloom { probes: 6, .. }));
    let matches = |prefix: &str| {
        let hits = (0..20_000u32)
            .filter(|i| form.may_match(&filter, xxph3_64(format!("{prefix}{i:08}").as_bytes())));
        hits.count()
    };
    assert_eq!(matches("key"), 20_000);
    let wrong = matches("other");
    assert!((100..300).contains(&wrong), "{wrong} of 20000");
}

#[test]
fn sizes_and_probes() {
    assert!(BloomBuilder::new(0.4).is_none());
    assert!(BloomBuilder::new(f64::NAN).is_none());
    assert!(BloomBuilder::new(10.0).unwrap().finish().is_empty());
    for (bits, probes) in
        [(0.6, 1), (2.0, 1), (5.0, 3), (8.3, 5), (14.0, 8), (25.5, 12), (26.0, 11), (50.0, 23), (200.0, 24)]
    {
        let mut builder = BloomBuilder::new(bits).unwrap();
        builder.add(b"k");
        let filter = builder.finish();
        assert_eq!(
            FilterForm::decode(&filter),
            FilterForm::FastLocalBloom { lines: u32::try_from(filter.len() / 64).unwrap(), probes },
            "{bits}"
        );
    }
}

#[test]
fn odd_filters_match_everything_and_empty_ones_nothing() {
    for len in 0..=5 {
        assert_eq!(FilterForm::decode(&vec![0xff; len]), FilterForm::Nothing);
    }
    let good = &ENTITIES[191..191 + 69];
    for cut in 6..good.len() {
        assert!(matches!(FilterForm::decode(&good[..cut]), FilterForm::Everything(_)), "{cut}");
    }
    for at in 64..69 {
        for bit in 0..8 {
            let mut flipped = good.to_vec();
            flipped[at] ^= 1 << bit;
            match FilterForm::decode(&flipped) {
                FilterForm::Everything(_) => assert!(FilterForm::decode(&flipped).may_match(&flipped, 1)),
                FilterForm::FastLocalBloom { .. } => assert_eq!(at, 66),
                // One bit from Bloom's marker to Ribbon's; the block's checksum stands before that.
                form => assert!((at, bit) == (64, 0) && matches!(form, FilterForm::Ribbon(_)), "{form:?}"),
            }
        }
    }
    let form = FilterForm::decode(good);
    assert!(form.may_match(&[], 0), "other bytes than decoded: no answer is trusted");
}
