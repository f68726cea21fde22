//! Keys, addresses and names in the messages of errors.

use crate::Error;

/// A key in a message: shown as a tuple if the key is a packed tuple, otherwise as bytes. Longer
/// text is cut after 96 characters.
///
/// ```
/// use keyloom::backend::shown_key;
/// assert_eq!(&*shown_key(&keyloom::pack(&("cities", 7))), r#"("cities", 7)"#);
/// ```
pub fn shown_key(key: &[u8]) -> Box<str> {
    // Enough to identify most keys. An error about a key of 511 bytes stays readable.
    const MOST_CHARS: usize = 96;
    let mut text = crate::key::display_named(key).to_string();
    if let Some((cut, _)) = text.char_indices().nth(MOST_CHARS) {
        text.truncate(cut);
        text.push('…');
    }
    text.into()
}

/// The error for an address that is not valid. Any part of the address may be a password, so the
/// error shows only a known scheme, or a scheme that a path follows.
///
/// ```
/// let error = keyloom::backend::refused_address("postgres://ada:secret@", "it has no host");
/// assert_eq!(error.to_string(), r#"the address "postgres:…" is not usable: it has no host"#);
/// ```
pub fn refused_address(address: &str, why: &'static str) -> Error {
    const SCHEMES: [&str; 8] =
        ["memory", "lmdb", "redb", "fjall", "postgres", "postgresql", "etcd", "fdb"];
    let is_scheme = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    };
    let value = match address.split_once(':') {
        Some((scheme, _)) if SCHEMES.contains(&scheme) => format!("{scheme}:…"),
        Some((scheme, rest)) if is_scheme(scheme) && rest.starts_with('/') => {
            format!("{scheme}:…")
        }
        _ => "…".into(),
    };
    Error::InvalidArgument { what: "the address", value, why }
}

/// The error for a name in the options that is not valid. The error shows the name, unless it
/// resembles an address, which may contain a password.
///
/// ```
/// let error = keyloom::backend::refused_name("the table's name", "a b", "it has a space");
/// assert_eq!(error.to_string(), r#"the table's name "a b" is not usable: it has a space"#);
/// ```
pub fn refused_name(what: &'static str, name: &str, why: &'static str) -> Error {
    Error::InvalidArgument { what, value: shown_name(name).into(), why }
}

/// The name in a message, or dots if it resembles an address, which may contain a password.
///
/// ```
/// use keyloom::backend::shown_name;
/// assert_eq!(shown_name("cities"), "cities");
/// assert_eq!(shown_name("etcd://root:secret@a/cities"), "…");
/// ```
pub fn shown_name(name: &str) -> &str {
    let may_hold_password = name.contains([':', '@', '=', '%']);
    if may_hold_password { "…" } else { name }
}
