//! Texts of an OPTIONS file that the next one repeats, so that RocksDB finds its own settings again.
//!
//! 1. A name that the engine does not act on is written unchanged, whatever its value.
//! 2. A name that the engine acts on is written unchanged while the setting still has the value that was read from the
//!    text. So a text that the engine had to change for its use (`format_version=7` at a level that has 6) returns
//!    unchanged.
//! 3. A name that the caller gave as text, and that the engine does not act on, replaces the stored one.
//! 4. At a format level below the default, names, values and struct members that the level's release does not know are
//!    left out. The other members of the struct stay.
//! 5. Families with the same texts share them: ten thousand equal families cost one list.

use super::FormatLevel;
use super::newer::{lacks_member, lacks_name, lacks_value};
use ashlar_format::options_file::{escape, split_object, unescape};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names and values of one section, in its order. Written back by the next OPTIONS file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptTexts(Arc<Vec<KeptText>>);

/// A name and its stored text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeptText {
    pub name: String,
    /// The value, escaped as in the file.
    pub(crate) text: String,
    /// The text of the engine's setting of that name for the adopted value; `None`: there is no such setting.
    pub(crate) means: Option<String>,
    /// The notice about the text, as long as it is kept.
    pub(crate) note: Option<String>,
    /// Whether the text is from the caller and not from a file.
    pub(crate) given: bool,
}

impl KeptTexts {
    pub(crate) fn new(texts: Vec<KeptText>) -> KeptTexts {
        KeptTexts(Arc::new(texts))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &KeptText> {
        self.0.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether both share one list.
    pub(crate) fn is_shared_with(&self, other: &KeptTexts) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Shares the list with one of `known` that has the same texts, or adds it to the few that are known.
    pub(crate) fn share(&mut self, known: &mut Vec<KeptTexts>) {
        const KNOWN: usize = 16;
        match known.iter().find(|other| *other == self) {
            Some(same) => *self = same.clone(),
            None if known.len() < KNOWN => known.push(self.clone()),
            None => {}
        }
    }

    /// The value of a name, unescaped.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.iter().find(|kept| kept.name == name).map(|kept| unescape(&kept.text))
    }

    /// Whether a file gave the value of a name, not the caller.
    pub(crate) fn holds_stored(&self, name: &str) -> bool {
        self.0.iter().any(|kept| kept.name == name && !kept.given)
    }

    /// Records a value from the caller for a name without effect.
    pub(crate) fn give(&mut self, name: &str, value: &str) {
        let text = stored_form(value);
        self.put(KeptText { name: name.to_owned(), text, means: None, note: None, given: true });
    }

    fn put(&mut self, text: KeptText) {
        let texts = Arc::make_mut(&mut self.0);
        match texts.iter_mut().find(|kept| kept.name == text.name) {
            Some(kept) => *kept = text,
            None => texts.push(text),
        }
    }

    /// Marks the stored text of a name as given by the caller.
    pub(crate) fn give_stored(&mut self, name: &str) {
        if let Some(kept) = Arc::make_mut(&mut self.0).iter_mut().find(|kept| kept.name == name) {
            kept.given = true;
        }
    }

    /// The texts that the caller gave, without those of a file.
    pub(crate) fn given_only(&self) -> KeptTexts {
        match self.0.iter().any(|kept| !kept.given) {
            true => KeptTexts::new(self.0.iter().filter(|kept| kept.given).cloned().collect()),
            false => self.clone(),
        }
    }

    /// The texts that the caller gave, and for other names those of `stored`.
    pub fn over(&self, stored: &KeptTexts) -> KeptTexts {
        let given = self.given_only();
        if given.is_empty() {
            return stored.clone();
        }
        let mut all = stored.clone();
        given.iter().cloned().for_each(|kept| all.put(kept));
        all
    }
}

/// A value in the form of an OPTIONS file. A colon is not escaped, because it separates the parts of a list.
pub(crate) fn stored_form(value: &str) -> String {
    escape(value).replace("\\:", ":")
}

/// A stored object with its members replaced by those of `ours`, then the members that it lacks. If the stored text is
/// not an object: `ours`.
pub(crate) fn merged(stored: &str, ours: &str) -> String {
    let (Some(stored), Some(ours)) = (object(stored), object(ours)) else { return ours.to_owned() };
    let has = |list: &[(String, String)], name: &str| list.iter().any(|(n, _)| n == name);
    let value = |name: &String, old: &String| {
        ours.iter().find(|(n, _)| n == name).map_or_else(|| old.clone(), |(_, new)| new.clone())
    };
    let kept = stored.iter().map(|(name, old)| (name.clone(), value(name, old)));
    let added = ours.iter().filter(|(name, _)| !has(&stored, name)).cloned();
    print_object(&kept.chain(added).collect::<Vec<_>>())
}

/// The limits on what the next file may repeat of an older one.
#[derive(Clone, Debug)]
pub(crate) struct Carry {
    /// The release of RocksDB in the head of the file.
    pub(crate) release: String,
    /// Whether the next file may repeat the whole older file.
    pub(crate) whole: bool,
    level: FormatLevel,
}

/// The form of a kept text in the next file.
#[derive(Debug, PartialEq)]
pub(crate) struct Fitted {
    /// `None`: the whole row is left out.
    pub(crate) text: Option<String>,
    /// Names and values that are left out. A member of a struct is named `struct.member`.
    pub(crate) left_out: Vec<(String, String)>,
}

impl Carry {
    /// The limits for a file of `release` (empty: there is no file) that is rewritten at `level`. If the level is below the
    /// default, the new file has only texts that RocksDB of that level knows.
    pub(crate) fn new(level: FormatLevel, release: &str) -> Carry {
        let newer = version(release) > version(level.release());
        match (newer, level >= FormatLevel::default()) {
            (true, true) => Carry { release: release.to_owned(), whole: true, level },
            (newer, _) => Carry { release: level.release().to_owned(), whole: !newer, level },
        }
    }

    /// Whether RocksDB of the release in the head knows the name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        !lacks_name(self.level, name)
    }

    /// The part of a text that the level's release knows. `default`: the default of RocksDB 11.8 for the name, if it
    /// has the name.
    pub(crate) fn fit(&self, kept: &KeptText, default: Option<&str>) -> Fitted {
        // A text from the caller may be newer than the file and the level.
        let bounded = !self.whole || kept.given && self.level < FormatLevel::default();
        let (name, text) = (&kept.name, &kept.text);
        if !bounded {
            return Fitted { text: Some(text.clone()), left_out: Vec::new() };
        }
        let Some(default) = default.filter(|_| !lacks_name(self.level, name)) else {
            return Fitted { text: None, left_out: vec![(name.clone(), text.clone())] };
        };
        if lacks_value(self.level, name, text) {
            return Fitted { text: None, left_out: vec![(name.clone(), text.clone())] };
        }
        let struct_members = is_struct(name).then(|| Some((object(text)?, object(default)?))).flatten();
        let Some((members, known)) = struct_members else {
            return Fitted { text: Some(text.clone()), left_out: Vec::new() };
        };
        let knows = |(member, _): &(String, String)| {
            !lacks_member(self.level, member) && known.iter().any(|(known, _)| known == member)
        };
        let (members, left_out): (Vec<_>, Vec<_>) = members.into_iter().partition(knows);
        let left_out = left_out.into_iter().map(|(member, value)| (format!("{name}.{member}"), value));
        Fitted { text: Some(print_object(&members)), left_out: left_out.collect() }
    }
}

/// Whether the value of a name is a struct: members that RocksDB reads one by one.
pub(crate) fn is_struct(name: &str) -> bool {
    const STRUCTS: [&str; 6] = [
        "compression_opts",
        "bottommost_compression_opts",
        "blob_compression_opts",
        "compaction_options_universal",
        "compaction_options_fifo",
        "metadata_cache_options",
    ];
    STRUCTS.contains(&name)
}

fn object(text: &str) -> Option<Vec<(String, String)>> {
    text.starts_with('{').then(|| split_object(text).ok()).flatten()
}

fn print_object(members: &[(String, String)]) -> String {
    let members: String = members.iter().map(|(name, value)| format!("{name}={value};")).collect();
    format!("{{{members}}}")
}

fn version(release: &str) -> Vec<u32> {
    release.split('.').map_while(|part| part.parse().ok()).collect()
}

/// Lines `family "a", "b" and 7 more: NOTE`, a line for each note; families that share their texts share the line.
pub fn note_lines(notes: &[(Vec<&str>, Vec<String>)]) -> Vec<String> {
    const NAMED: usize = 3;
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    for (families, notes) in notes {
        let named: Vec<_> = families.iter().take(NAMED).map(|name| format!("{name:?}")).collect();
        let scope = match families.len() {
            0 => "database".to_owned(),
            n if n > NAMED => format!("families {} and {} more", named.join(", "), n - NAMED),
            1 => format!("family {}", named.join("")),
            _ => format!("families {}", named.join(", ")),
        };
        let new =
            notes.iter().map(|note| format!("{scope}: {note}")).filter(|line| seen.insert(line.clone()));
        lines.extend(new);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_changes_leaves_the_others_of_its_object() {
        assert_eq!(
            merged("{strategy=3;level=32767;}", "{level=5;max_dict_bytes=1;}"),
            "{strategy=3;level=5;max_dict_bytes=1;}"
        );
        assert_eq!((merged("7", "8").as_str(), merged("{a", "{a=1;}").as_str()), ("8", "{a=1;}"));
    }

    /// Regression: families with texts from the caller had a list each.
    #[test]
    fn equal_families_share_one_list() {
        let stored = KeptTexts::new(vec![kept("a", "1"), kept("b", "2")]);
        let family = |given: &str| {
            let mut own = KeptTexts::default();
            own.give("a", given);
            own.over(&stored)
        };
        let (mut known, mut families) = (Vec::new(), ["7", "7", "8", "7"].map(family));
        families.iter_mut().for_each(|texts| texts.share(&mut known));
        let [first, second, other, last] = &families;
        assert!(first.is_shared_with(second) && first.is_shared_with(last) && !first.is_shared_with(other));
    }

    fn kept(name: &str, text: &str) -> KeptText {
        KeptText { name: name.to_owned(), text: text.to_owned(), means: None, note: None, given: false }
    }

    #[test]
    fn a_low_level_drops_what_its_release_does_not_know() {
        let takes =
            |carry: &Carry, name: &str, text: &str| carry.fit(&kept(name, text), Some("1")).text.is_some();
        let low = Carry::new(FormatLevel::V7_8, "11.8.1");
        assert!(low.release == "7.8.3" && takes(&low, "use_fsync", "true"));
        assert!(
            !takes(&low, "write_identity_file", "true") && !takes(&low, "last_level_temperature", "kIce")
        );
        assert_eq!(
            low.fit(&kept("new", "1"), None),
            Fitted { text: None, left_out: vec![("new".into(), "1".into())] }
        );
        let default = Carry::new(FormatLevel::default(), "11.8.1");
        assert!(default.release == "11.8.1" && default.fit(&kept("new", "{x=1;}"), None).left_out.is_empty());
        assert_eq!(Carry::new(FormatLevel::V7_8, "7.8.3").release, "7.8.3");
        assert!(Carry::new(FormatLevel::V11, "7.8.3").whole && Carry::new(FormatLevel::V11, "").whole);
        let oldest = Carry::new(FormatLevel::V6_29, "7.8.3");
        assert!(takes(&oldest, "ttl", "1") && !takes(&oldest, "prepopulate_blob_cache", "kDisable"));
    }

    #[test]
    fn a_low_level_leaves_out_members_and_keeps_their_struct() {
        let default = "{use_kv_ratio_compaction=false;max_data_files_size=0;max_table_files_size=1;}";
        let text = "{use_kv_ratio_compaction=true;of_release_12=1;max_table_files_size=50;}";
        let left = |names: &[(&str, &str)]| -> Vec<(String, String)> {
            names.iter().map(|(n, v)| (format!("compaction_options_fifo.{n}"), (*v).to_owned())).collect()
        };
        let low = Carry::new(FormatLevel::V7_8, "11.8.1");
        assert_eq!(
            low.fit(&kept("compaction_options_fifo", text), Some(default)),
            Fitted {
                text: Some("{max_table_files_size=50;}".into()),
                left_out: left(&[("use_kv_ratio_compaction", "true"), ("of_release_12", "1")]),
            }
        );
        // A low level also limits texts from the caller, even if no file is newer.
        let fresh = Carry::new(FormatLevel::V7_8, "");
        let given = KeptText { given: true, ..kept("compaction_options_fifo", "{max_data_files_size=7;}") };
        assert_eq!(fresh.fit(&given, Some(default)).text.as_deref(), Some("{}"));
    }
}
