//! Filters of RocksDB 7.8.3 and 11.8.1 beside ours, over the same keys: same bytes, same rates.

use ashlar_format::filter::{BloomBuilder, FilterForm, FilterPolicy, RibbonBuilder, bloom_fp_rate};
use ashlar_format::table::{Footer, MetaIndex};
use ashlar_testkit::judge::{JudgeError, Opening};
use ashlar_testkit::{Change, Judge, JudgeVersion, Op, report};
use std::path::Path;

const KEYS: u32 = 20_000;
const ASKED: u32 = 400_000;
const BITS: f64 = 10.0;

fn key(i: u32) -> Vec<u8> {
    format!("key{i:08}").into_bytes()
}

/// RocksDB builds one table of the keys with a filter of that policy, and we take the filter block out of it.
fn theirs(version: JudgeVersion, policy: &str) -> Result<Vec<u8>, JudgeError> {
    let mut judge = Judge::spawn(version)?;
    let dir = tempfile::tempdir().unwrap();
    let options = format!(
        "compression=kNoCompression;write_buffer_size=67108864;\
         block_based_table_factory={{filter_policy={policy};format_version=5}}"
    );
    judge.open(dir.path(), Opening::Create, &options)?;
    let all: Vec<u32> = (0..KEYS).collect();
    for some in all.chunks(1000) {
        let put = |i: &u32| Change::Put { family: "default".into(), key: key(*i), value: b"v".to_vec() };
        judge.write(&some.iter().map(put).collect::<Vec<_>>(), false)?;
    }
    judge.apply(&[Op::Flush { family: "default".into() }])?;
    judge.close()?;
    Ok(filter_of_the_only_table(dir.path()))
}

fn filter_of_the_only_table(dir: &Path) -> Vec<u8> {
    let mut tables = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let table = tables.find(|path| path.extension().is_some_and(|ext| ext == "sst")).unwrap();
    let file = std::fs::read(table).unwrap();
    let (footer, _) = Footer::decode(&file[file.len() - Footer::LEN..], file.len() as u64).unwrap();
    let at = |offset: u64, size: u64| &file[offset as usize..(offset + size) as usize];
    let meta = MetaIndex::decode(at(footer.metaindex.offset, footer.metaindex.size)).unwrap();
    let place = meta.filter().expect("a filter").handle;
    at(place.offset, place.size).to_vec()
}

/// The share of keys that were not added and match anyhow. Every key that was added must match.
fn rate(filter: &[u8]) -> f64 {
    let form = FilterForm::decode(filter);
    assert!(!matches!(form, FilterForm::Everything(_) | FilterForm::Nothing), "{form:?}");
    assert!((0..KEYS).all(|i| form.may_contain(filter, &key(i))), "a key is missing");
    let wrong = (0..ASKED).filter(|i| form.may_contain(filter, format!("absent{i:09}").as_bytes())).count();
    wrong as f64 / f64::from(ASKED)
}

/// Our filter of the same keys in the shape RocksDB chose.
fn same_shape(theirs: &[u8]) -> Vec<u8> {
    match FilterForm::decode(theirs) {
        FilterForm::FastLocalBloom { lines, probes } => {
            let mut builder = BloomBuilder::new(BITS).unwrap();
            (0..KEYS).for_each(|i| builder.add(&key(i)));
            builder.finish_with(lines as usize, probes)
        }
        FilterForm::Ribbon(shape) => {
            let mut builder = RibbonBuilder::new(BITS).unwrap();
            (0..KEYS).for_each(|i| builder.add(&key(i)));
            builder.finish_with(shape.blocks, (theirs.len() - 5) / 16).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn compare(version: JudgeVersion) -> Result<(), JudgeError> {
    for name in ["bloomfilter:10:false", "ribbonfilter:10:-1"] {
        let theirs = theirs(version, name)?;
        let mut builder = FilterPolicy::parse(name).unwrap().builder(5).unwrap();
        (0..KEYS).for_each(|i| builder.add(&key(i)));
        let ours = builder.finish();
        let (our_rate, their_rate) = (rate(&ours), rate(&theirs));
        assert!(same_shape(&theirs) == theirs, "{name}: other bytes than {}'s", version.name());
        // The older one has no reason to choose another size.
        assert!(version == JudgeVersion::V11 || ours == theirs, "{name}: another size than 7.8.3's");
        let theory = bloom_fp_rate(BITS);
        for rate in [our_rate, their_rate] {
            assert!((rate / theory - 1.0).abs() < 0.15, "{name}: {rate} is not about {theory}");
        }
        report::figure(&format!(
            "filter {name} of {KEYS} keys: false positives ours {:.3} % in {} bytes, {} {:.3} % in {} bytes, theory {:.3} %; \
             rebuilt byte by byte",
            our_rate * 100.0,
            ours.len(),
            version.name(),
            their_rate * 100.0,
            theirs.len(),
            theory * 100.0,
        ));
    }
    Ok(())
}

fn judged(version: JudgeVersion, test: &str) {
    match compare(version) {
        Ok(()) => {}
        Err(JudgeError::Skip(skip)) => skip.announce(test),
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn filters_of_7_8_3_are_read_and_rebuilt() {
    judged(JudgeVersion::V7, "filters_of_7_8_3_are_read_and_rebuilt");
}

#[test]
fn filters_of_11_8_1_are_read_and_rebuilt() {
    judged(JudgeVersion::V11, "filters_of_11_8_1_are_read_and_rebuilt");
}
