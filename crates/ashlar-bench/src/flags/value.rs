//! The value after the `=` of a flag.

use crate::keys::KeyShape;

/// The tree that benchmarks that read find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeState {
    /// As the writes before left it.
    Loaded,
    /// Compacted whole.
    Settled,
}

/// A type of flag.
pub(super) trait Value: Sized {
    /// A switch needs no value: `--name` is on, `--noname` off.
    const IS_SWITCH: bool = false;

    /// Parses text. The error says what was expected.
    fn parse(text: &str) -> Result<Self, String>;

    /// Prints the value, for the help.
    fn show(&self) -> String;
}

macro_rules! numbers {
    ($($kind:ty => $what:literal)+) => {$(
        impl Value for $kind {
            fn parse(text: &str) -> Result<Self, String> {
                text.trim().parse().map_err(|_| format!("expected {}, found {text:?}", $what))
            }

            fn show(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

numbers! {
    u64 => "a whole number from 0"
    i64 => "a whole number"
    u32 => "a whole number from 0"
    i32 => "a whole number"
}

impl Value for f64 {
    fn parse(text: &str) -> Result<Self, String> {
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("expected a number, found {text:?}")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const IS_SWITCH: bool = true;

    fn parse(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "y" | "yes" => Ok(true),
            "0" | "f" | "false" | "n" | "no" => Ok(false),
            _ => Err(format!("expected true or false, found {text:?}")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        format!("{self:?}")
    }
}

impl Value for KeyShape {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for TreeState {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "loaded" => Ok(TreeState::Loaded),
            "settled" => Ok(TreeState::Settled),
            _ => Err(format!("expected loaded or settled, found {text:?}")),
        }
    }

    fn show(&self) -> String {
        match self {
            TreeState::Loaded => "loaded",
            TreeState::Settled => "settled",
        }
        .to_owned()
    }
}

impl<T: Value> Value for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| "unset".to_owned(), T::show)
    }
}
