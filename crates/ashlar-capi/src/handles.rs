//! The objects of C, each with its options by name.

/// Lets the generated setters reach the options of an object.
macro_rules! has_texts {
    ($($type:ty => $($field:tt).+),* $(,)?) => { $(
        impl $crate::door::HasTexts for $type {
            fn texts(&self) -> &ashlar_compat::options::Texts {
                &self.$($field).+
            }
            fn change(&mut self, set: impl FnOnce(&mut ashlar_compat::options::Texts)) {
                set(&mut self.$($field).+);
            }
        }
    )* };
}
