//! The state of derived data.

use std::fmt;

/// Whether derived data is maintained and can be queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Neither maintained nor queryable: not built yet, or disabled by a program.
    Disabled,
    /// Maintained for the records that the build has visited, not queryable.
    Building,
    /// Complete: maintained and queryable.
    Readable,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disabled => "disabled",
            Self::Building => "being built",
            Self::Readable => "readable",
        })
    }
}
