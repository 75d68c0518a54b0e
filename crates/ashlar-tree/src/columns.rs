//! The columns of a wide-column entity, as a reader gets them.

use std::fmt;

/// The columns of a row, ascending by name. A plain get returns the default column, which has the empty name.
#[derive(Clone, PartialEq, Eq)]
pub struct Columns(Vec<(Vec<u8>, Vec<u8>)>);

impl Columns {
    /// `columns` ascend by name.
    pub fn new(columns: Vec<(Vec<u8>, Vec<u8>)>) -> Columns {
        Columns(columns)
    }

    /// The row of a plain value: the default column alone.
    pub fn of_value(value: &[u8]) -> Columns {
        Columns(vec![(Vec::new(), value.to_vec())])
    }

    /// The value of the column `name`.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&[u8]> {
        let at = self.0.binary_search_by_key(&name.as_ref(), |(name, _)| name).ok()?;
        self.0.get(at).map(|(_, value)| &value[..])
    }

    /// The value of the column with the empty name.
    pub fn default_column(&self) -> Option<&[u8]> {
        self.get(b"")
    }

    /// The names and values, ascending by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (&name[..], &value[..]))
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the row has no column.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the default column.
    pub fn set_default(&mut self, value: &[u8]) {
        match self.0.first_mut().filter(|(name, _)| name.is_empty()) {
            Some((_, old)) => *old = value.to_vec(),
            None => self.0.insert(0, (Vec::new(), value.to_vec())),
        }
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
        f.debug_map().entries(self.iter().map(|(name, value)| (text(name), text(value)))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_column_comes_first() {
        let mut columns = Columns::new(vec![(b"a".to_vec(), b"1".to_vec()), (b"b".to_vec(), Vec::new())]);
        assert_eq!(
            (columns.default_column(), columns.get("a"), columns.get("c")),
            (None, Some(&b"1"[..]), None)
        );
        for value in [&b"x"[..], b"y"] {
            columns.set_default(value);
            assert_eq!((columns.len(), columns.iter().next()), (3, Some((&b""[..], value))));
        }
        assert_eq!(format!("{columns:?}"), r#"{"": "y", "a": "1", "b": ""}"#);
        assert_eq!(Columns::of_value(b"v").default_column(), Some(&b"v"[..]));
    }
}
