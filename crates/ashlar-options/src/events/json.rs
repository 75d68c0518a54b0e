//! One flat JSON object, written from left to right.

use std::fmt::{Display, Write};

/// An object under construction.
pub(super) struct Object(String);

impl Object {
    /// Begins an object with its first field, the time.
    pub(super) fn new(time_micros: u64) -> Object {
        Object(format!("{{\"time_micros\": {time_micros}"))
    }

    /// Adds a number.
    pub(super) fn number(mut self, name: &str, value: impl Display) -> Object {
        // Writing to a String cannot fail, here and below.
        let _ = write!(self.0, ", \"{name}\": {value}");
        self
    }

    /// Adds a string.
    pub(super) fn text(mut self, name: &str, value: &str) -> Object {
        let _ = write!(self.0, ", \"{name}\": \"");
        for c in value.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                '\n' => self.0.push_str("\\n"),
                c if u32::from(c) < 0x20 => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(c));
                }
                c => self.0.push(c),
            }
        }
        self.0.push('"');
        self
    }

    /// Adds a list of numbers.
    pub(super) fn list(mut self, name: &str, values: impl Iterator<Item = u64>) -> Object {
        let values: Vec<String> = values.map(|v| v.to_string()).collect();
        let _ = write!(self.0, ", \"{name}\": [{}]", values.join(", "));
        self
    }

    /// The finished object.
    pub(super) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let all = Object::new(7).text("a", "x\"y\\z\n\u{1}é").number("b", 1.5).list("c", [1, 2].into_iter());
        assert_eq!(
            all.end(),
            "{\"time_micros\": 7, \"a\": \"x\\\"y\\\\z\\n\\u0001é\", \"b\": 1.5, \"c\": [1, 2]}"
        );
    }
}
