//! The refusal of an answer.

use std::fmt::{self, Display};

/// An error of a visitor.
#[derive(Debug)]
pub(super) enum Refused {
    Message,
    /// A field is missing, occurs twice, or is unknown.
    Missing(&'static str),
    Duplicate(&'static str),
    Unknown,
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the type refuses this value")
    }
}

impl std::error::Error for Refused {}

impl serde::de::Error for Refused {
    fn custom<T: Display>(_: T) -> Self {
        Self::Message
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::Duplicate(field)
    }

    fn unknown_field(_: &str, _: &'static [&'static str]) -> Self {
        Self::Unknown
    }
}
