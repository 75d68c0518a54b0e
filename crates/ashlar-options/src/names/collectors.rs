//! `table_properties_collectors`: a list of objects.
//!
//! RocksDB writes `{{id=CompactOnDeletionCollector;…}:{…}}`. In an OPTIONS file it reads the list also without the outer braces,
//! and a bare id. The list of a family also has factories of the program's own, by their names: RocksDB passes over ids that it
//! does not know.

use super::object::id_of;
use super::value::Value;
use crate::{FormatLevel, Options};
use ashlar_base::ext::compact_on_deletion::CompactOnDeletion;
use ashlar_base::ext::table_properties_collector::{TablePropertiesCollectorFactory, built_in};
use ashlar_format::options_file::split_object;
use std::sync::Arc;

type Factory = Arc<dyn TablePropertiesCollectorFactory>;

/// Sets the list: built-in collectors only, all or none.
pub(super) fn set_collectors(options: &mut Options, text: &str) -> Result<(), String> {
    options.family.table.collectors = elements(text).into_iter().map(factory_of).collect::<Result<_, _>>()?;
    Ok(())
}

/// The built-in collectors of a stored list; the names of others are passed over.
pub(crate) fn stored_collectors(text: &str) -> Vec<Factory> {
    elements(text).into_iter().filter_map(|element| factory_of(element).ok()).collect()
}

/// The objects of a stored list that are built in, as a list.
pub fn built_in_collectors(text: &str) -> String {
    let known: Vec<_> = elements(text).into_iter().filter(|element| factory_of(element).is_ok()).collect();
    if known.is_empty() { String::new() } else { format!("{{{}}}", known.join(":")) }
}

/// The list as RocksDB writes it; empty without a collector.
pub(super) fn show_collectors(options: &Options) -> String {
    let show = |factory: &Factory| match built_in(&**factory) {
        Some(own) => show_one(own, options.db.format_level),
        None => factory.name().to_owned(),
    };
    let all: Vec<_> = options.family.table.collectors.iter().map(show).collect();
    match &all[..] {
        [one] if one.starts_with('{') => format!("{{{one}}}"),
        // 7.8 does not read a list of several objects and names within braces, and both releases read one without.
        several => several.join(":"),
    }
}

/// RocksDB before 10 refuses a file with `min_file_size`.
fn show_one(own: &CompactOnDeletion, level: FormatLevel) -> String {
    let named = level >= FormatLevel::V11 || level >= FormatLevel::V9_11 && own.min_file_bytes > 0;
    let min = if named { format!("min_file_size={};", own.min_file_bytes) } else { String::new() };
    let CompactOnDeletion { window, trigger, ratio, .. } = own;
    let name = CompactOnDeletion::NAME;
    format!(
        "{{id={name};{min}deletion_ratio={};deletion_trigger={trigger};window_size={window};}}",
        ratio.show()
    )
}

fn factory_of(element: &str) -> Result<Factory, String> {
    let id = id_of(element);
    if id != CompactOnDeletion::NAME {
        return Err(format!(
            "{id:?} is not built in, and tables get no properties of it; give it when you open the family"
        ));
    }
    let mut made = CompactOnDeletion::default();
    let members =
        if element.contains('=') { split_object(element).map_err(|e| e.to_string())? } else { Vec::new() };
    for (name, value) in members {
        match name.as_str() {
            "id" => {}
            "window_size" => made.window = usize::parse(&value)?,
            "deletion_trigger" => made.trigger = usize::parse(&value)?,
            "deletion_ratio" => made.ratio = f64::parse(&value)?,
            "min_file_size" => made.min_file_bytes = u64::parse(&value)?,
            _ => return Err(format!("{id} has no option {name:?}")),
        }
    }
    Ok(Arc::new(made))
}

/// The objects and ids of a list.
fn elements(text: &str) -> Vec<&str> {
    let text = text.trim();
    let (parts, is_object) = split_top(text);
    match (&parts[..], text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'))) {
        ([""] | ["nullptr"], _) => Vec::new(),
        // Braces around everything: those of an object, or of a list.
        ([_], Some(inner)) if !split_top(inner).1 => elements(inner),
        ([_], _) => vec![text],
        _ if is_object => vec![text],
        _ => parts.into_iter().flat_map(elements).collect(),
    }
}

/// The parts between colons outside of all braces, and whether there is an equals sign outside of them.
fn split_top(text: &str) -> (Vec<&str>, bool) {
    let (mut parts, mut begin, mut depth, mut is_object) = (Vec::new(), 0, 0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '=' if depth == 0 => is_object = true,
            ':' if depth == 0 => {
                parts.push(text.get(begin..at).unwrap_or_default().trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(begin..).unwrap_or_default().trim());
    (parts, is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_every_form() {
        for (text, expected) in [
            ("", &[][..]),
            ("{}", &[]),
            ("nullptr", &[]),
            ("Mine", &["Mine"]),
            (" {Mine} ", &["Mine"]),
            ("A:B", &["A", "B"]),
            ("{A:{id=B;x=1;}}", &["A", "{id=B;x=1;}"]),
            ("id=B;x=1", &["id=B;x=1"]),
            ("{id=B;x={y=1:2};}", &["{id=B;x={y=1:2};}"]),
            ("{{id=B;x=1;}}", &["{id=B;x=1;}"]),
            ("{{id=B;x=1;}:{id=C;}}", &["{id=B;x=1;}", "{id=C;}"]),
            ("{id=B;x=1;}:C:{id=D;}", &["{id=B;x=1;}", "C", "{id=D;}"]),
            ("}}{{", &["}}{{"]),
            ("{{{{", &["{{{{"]),
        ] {
            assert_eq!(elements(text), expected, "{text}");
        }
    }

    #[test]
    fn a_list_comes_back_at_each_level() {
        let mut options = Options::default();
        let set = |options: &mut Options, text: &str| set_collectors(options, text);
        let given = "{id=CompactOnDeletionCollector;window_size=1K;deletion_trigger=50;deletion_ratio=0.25;min_file_size=4096;}";
        set(&mut options, given).unwrap();
        let newest = "{{id=CompactOnDeletionCollector;min_file_size=4096;deletion_ratio=0.250000;deletion_trigger=50;window_size=1024;}}";
        let oldest = newest.replace("min_file_size=4096;", "");
        for (level, expected) in [
            (FormatLevel::V6_29, &*oldest),
            (FormatLevel::V7_8, &oldest),
            (FormatLevel::V9_11, newest),
            (FormatLevel::V11, newest),
        ] {
            options.db.format_level = level;
            assert_eq!(show_collectors(&options), expected, "{level}");
            let mut again = Options::default();
            set(&mut again, expected).unwrap();
            again.db.format_level = level;
            assert_eq!(show_collectors(&again), expected);
        }
        for (wrong, why) in [
            ("Mine", "not built in"),
            ("{{id=CompactOnDeletionCollector;}:Mine}", "\"Mine\" is not built in"),
            ("{id=CompactOnDeletionCollector;window=7;}", "no option \"window\""),
            ("{id=CompactOnDeletionCollector;window_size=-1;}", "-1"),
            ("{id=CompactOnDeletionCollector;deletion_ratio=x;}", "x"),
        ] {
            let e = set(&mut options, wrong).unwrap_err();
            assert!(e.contains(why), "{wrong}: {e}");
            assert_eq!(show_collectors(&options), newest, "{wrong} changed nothing");
        }
        set(&mut options, "CompactOnDeletionCollector:CompactOnDeletionCollector").unwrap();
        assert_eq!(options.family.table.collectors.len(), 2);
        assert_eq!(stored_collectors("{Mine:{id=CompactOnDeletionCollector;window_size=7;}}").len(), 1);
        set(&mut options, "").unwrap();
        assert_eq!(show_collectors(&options), "");
    }
}
