//! Names of stores among those of a cluster.

use crate::{Error, Result};

const MOST_NAME_BYTES: usize = 64;

/// Refuses what is no name of a store.
pub(crate) fn checked_name(name: &str) -> Result<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if (1..=MOST_NAME_BYTES).contains(&name.len()) && name.chars().all(allowed) {
        return Ok(name.to_owned());
    }
    Err(Error::BadOption {
        what: "the name",
        value: name.to_owned(),
        why: "a name is 1 to 64 letters, digits, dots, underscores and hyphens of ASCII",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_have_no_slash() {
        let longest = "n".repeat(64);
        assert!(checked_name(&longest).is_ok());
        for name in ["", "/", "a/", "a/b", "a b", "\u{fc}", "a\0", &"n".repeat(65)] {
            assert!(checked_name(name).is_err(), "{name:?}");
        }
    }
}
