//! Properties as values: numbers within their bounds, and names of a list. Every error names the place of the property.

use super::properties::{Given, Properties};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads properties of one set.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a Properties);

impl<'a> Fields<'a> {
    /// The text of `key`.
    pub fn text(self, key: &str) -> Option<&'a Given> {
        self.0.get(key).filter(|given| !given.value.is_empty())
    }

    /// The number of `key`, or `default`.
    ///
    /// # Errors
    /// The text is no number, or lies outside `bounds`.
    pub fn number<N>(self, key: &str, default: N, bounds: RangeInclusive<N>) -> Result<N, String>
    where
        N: FromStr + PartialOrd + Display + Copy,
    {
        let Some(given) = self.text(key) else { return Ok(default) };
        let number: N = given.value.parse().map_err(|_| {
            format!(
                "{}: {key} = {}: not a number from {} to {}",
                given.place,
                given.value,
                bounds.start(),
                bounds.end()
            )
        })?;
        if bounds.contains(&number) {
            return Ok(number);
        }
        Err(format!("{}: {key} = {number}: must be from {} to {}", given.place, bounds.start(), bounds.end()))
    }

    /// As [`Fields::number`], of a property that has no default.
    ///
    /// # Errors
    /// Those, or the property is missing.
    pub fn required<N>(self, key: &str, bounds: RangeInclusive<N>) -> Result<N, String>
    where
        N: FromStr + PartialOrd + Display + Copy,
    {
        if self.text(key).is_none() {
            return Err(format!("{key} is missing: give it in the workload file or with -D {key}=NUMBER"));
        }
        self.number(key, *bounds.start(), bounds)
    }

    /// `true` or `false`, or `default`.
    ///
    /// # Errors
    /// Another text.
    pub fn yes(self, key: &str, default: bool) -> Result<bool, String> {
        match self.text(key).map(|given| (given.value.to_lowercase(), given)) {
            None => Ok(default),
            Some((value, _)) if value == "true" => Ok(true),
            Some((value, _)) if value == "false" => Ok(false),
            Some((_, given)) => {
                Err(format!("{}: {key} = {}: must be true or false", given.place, given.value))
            }
        }
    }

    /// An error about `key`, at its place.
    pub fn wrong(self, key: &str, why: &str) -> String {
        match self.0.get(key) {
            Some(given) => format!("{}: {key} = {}: {why}", given.place, given.value),
            None => format!("{key}: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds_and_errors_their_place() {
        let all = Properties::parse("a = 7\nb = x\nc = 200\nd = false\ne = maybe\n", "f").unwrap();
        let fields = Fields(&all);
        assert_eq!(fields.number("a", 1_u64, 0..=9), Ok(7));
        assert_eq!(fields.number("none", 1_u64, 0..=9), Ok(1));
        assert_eq!(fields.number("b", 1_u64, 0..=9).unwrap_err(), "f:2: b = x: not a number from 0 to 9");
        assert_eq!(fields.number("c", 1.0, 0.0..=100.0).unwrap_err(), "f:3: c = 200: must be from 0 to 100");
        assert!(fields.required("none", 0_u64..=9).unwrap_err().starts_with("none is missing: "));
        assert_eq!((fields.yes("d", true), fields.yes("none", true)), (Ok(false), Ok(true)));
        assert_eq!(fields.yes("e", true).unwrap_err(), "f:5: e = maybe: must be true or false");
    }
}
