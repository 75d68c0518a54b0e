//! `sst_partitioner_factory`: an object.

use super::object::id_of;
use super::value::Value;
use crate::Options;
use ashlar_base::ext::sst_partitioner::{FixedPrefixPartitioner, built_in};
use ashlar_format::options_file::split_object;
use std::sync::Arc;

/// Sets the built-in partitioner, or none.
pub(super) fn set_partitioner(options: &mut Options, text: &str) -> Result<(), String> {
    let text = text.trim();
    let id = id_of(text);
    options.family.sst_partitioner = match id.as_str() {
        "nullptr" | "" => None,
        FixedPrefixPartitioner::NAME => Some(Arc::new(FixedPrefixPartitioner::new(length_of(text)?))),
        _ => {
            return Err(format!(
                "{id:?} is not built in, and compactions cut their tables without it; give it when you open the family"
            ));
        }
    };
    Ok(())
}

fn length_of(text: &str) -> Result<usize, String> {
    let mut length = 0;
    let members =
        if text.contains('=') { split_object(text).map_err(|e| e.to_string())? } else { Vec::new() };
    for (name, value) in members {
        match name.as_str() {
            "id" => {}
            "length" => length = usize::parse(&value)?,
            _ => return Err(format!("{} has no option {name:?}", FixedPrefixPartitioner::NAME)),
        }
    }
    Ok(length)
}

/// The partitioner as RocksDB writes it; `None` without one.
pub(super) fn show_partitioner(options: &Options) -> Option<String> {
    let factory = options.family.sst_partitioner.as_deref()?;
    Some(match built_in(factory) {
        Some(FixedPrefixPartitioner { length }) => {
            format!("{{id={};length={length};}}", FixedPrefixPartitioner::NAME)
        }
        None => factory.name().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_partitioner_in_every_form() {
        let mut options = Options::default();
        assert_eq!(show_partitioner(&options), None);
        for (text, length) in [
            ("{id=SstPartitionerFixedPrefixFactory;length=4;}", 4),
            ("{ id=SstPartitionerFixedPrefixFactory; length=1K }", 1024),
            ("id=SstPartitionerFixedPrefixFactory;length=3", 3),
            ("SstPartitionerFixedPrefixFactory", 0),
        ] {
            set_partitioner(&mut options, text).unwrap();
            let shown = format!("{{id=SstPartitionerFixedPrefixFactory;length={length};}}");
            assert_eq!(show_partitioner(&options), Some(shown), "{text}");
        }
        for (wrong, why) in [
            ("mine", "\"mine\" is not built in"),
            ("{id=mine;length=1;}", "not built in"),
            ("{id=SstPartitionerFixedPrefixFactory;len=1;}", "no option \"len\""),
            ("{id=SstPartitionerFixedPrefixFactory;length=-1;}", "-1"),
        ] {
            let e = set_partitioner(&mut options, wrong).unwrap_err();
            assert!(e.contains(why), "{wrong}: {e}");
        }
        assert!(options.family.sst_partitioner.is_some(), "a wrong value changes nothing");
        set_partitioner(&mut options, "nullptr").unwrap();
        assert_eq!(show_partitioner(&options), None);
    }
}
