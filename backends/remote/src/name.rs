//! Names of the stores in a cluster.

use keyloom::Result;
use keyloom::backend::refused_name;

// etcd and FoundationDB store the name with each key, so a longer name costs bytes everywhere.
const MOST_NAME_BYTES: usize = 64;

/// The rule for names.
pub const NAME_RULE: &str =
    "a name is 1 to 64 letters, digits, dots, underscores and hyphens of ASCII";

/// Whether `name` is a valid name of a store.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=MOST_NAME_BYTES).contains(&name.len()) && name.chars().all(allowed)
}

/// Checks the name of a store that was set as an option. For a name in an address, use
/// [`refused_address`](keyloom::backend::refused_address), whose error does not show the name.
///
/// # Errors
/// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for an invalid name.
pub fn checked_name(name: &str) -> Result<String> {
    match is_name(name) {
        true => Ok(name.to_owned()),
        false => Err(refused_name("the name", name, NAME_RULE)),
    }
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

    #[test]
    fn an_address_in_place_of_a_name_is_not_shown() {
        for name in ["etcd://root:secret/n", "root:secret", "a?password=secret", "a%3Asecret"] {
            let said = checked_name(name).map_err(|error| format!("{error} {error:?}"));
            assert!(said.is_err_and(|said| !said.contains("secret")), "{name}");
        }
    }
}
