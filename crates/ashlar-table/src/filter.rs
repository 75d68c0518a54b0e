//! The filter of an open table.

use ashlar_format::filter::{FilterForm, xxph3_64};

/// A whole filter in memory, or none.
#[derive(Debug)]
pub(crate) struct TableFilter {
    form: FilterForm,
    bytes: Box<[u8]>,
}

impl TableFilter {
    /// No filter: every key may be there.
    pub(crate) fn none() -> Self {
        TableFilter { form: FilterForm::Everything("no filter"), bytes: Box::default() }
    }

    /// A filter block. One that is not recognised is no filter, and its bytes are not kept.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        match FilterForm::decode(&bytes) {
            FilterForm::Everything(what) => {
                TableFilter { form: FilterForm::Everything(what), bytes: Box::default() }
            }
            form => TableFilter { form, bytes: bytes.into_boxed_slice() },
        }
    }

    /// False when the table certainly has no entry of that user key.
    #[inline]
    pub(crate) fn may_contain(&self, user_key: &[u8]) -> bool {
        match self.form {
            FilterForm::Everything(_) => true,
            form => form.may_match(&self.bytes, xxph3_64(user_key)),
        }
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len()
    }
}
