//! The text of an object: `{name=value;…}`, often with its kind as `id`.

use ashlar_format::options_file::split_object;

/// A member of an object. `None`: the text is not an object, or has no such member.
pub(super) fn member(text: &str, name: &str) -> Option<String> {
    let found = split_object(text).ok()?.into_iter().find(|(n, _)| n == name);
    found.map(|(_, value)| value)
}

/// The id of an object: from `{id=…;}`, or the bare name.
pub fn id_of(text: &str) -> String {
    match behind_id(text) {
        Some((id, _)) => id.to_owned(),
        None => member(text, "id").unwrap_or_else(|| text.trim().to_owned()),
    }
}

/// The id of an object that begins with its id, and the text of the other members.
pub(super) fn behind_id(text: &str) -> Option<(&str, &str)> {
    let body = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (id, rest) = body.trim_start().strip_prefix("id=")?.split_once(';')?;
    Some((id.trim(), rest.trim_start()))
}
