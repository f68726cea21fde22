//! Names that errors show instead of the first elements of keys.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::{Arc, PoisonError, RwLock};

use super::{code, display};
use crate::KeyBuf;

/// The names of each prefix, each with the number of [`KeyName`]s that register it.
type Names = BTreeMap<KeyBuf, BTreeMap<Arc<str>, usize>>;

static NAMES: RwLock<Names> = RwLock::new(BTreeMap::new());

/// A name that the errors of this process show for keys with a certain prefix, until the `KeyName`
/// is dropped.
///
/// A `KeyName` is for layers that assign numbers to the data in a store. An error contains a key,
/// but the error is often created without a store from which the name of the number could be read.
/// So such a layer keeps a `KeyName` in each handle.
///
/// In a process, a prefix has at most one name. While handles with different names for a prefix
/// exist, its keys are shown with their numbers. Names are not tied to a store: if two stores use
/// the same number and only one has a name for it, errors of the other store show this name too.
///
/// ```
/// use keyloom::key::{KeyName, display, display_named, pack};
/// let key = pack(&(-7, "FR", "Paris"));
/// let name = KeyName::new(&pack(&-7), "cities.by_country");
/// assert_eq!(display_named(&key).to_string(), r#"cities.by_country ("FR", "Paris")"#);
/// assert_eq!(display(&key).to_string(), r#"(-7, "FR", "Paris")"#);
/// drop(name);
/// assert_eq!(display_named(&key).to_string(), r#"(-7, "FR", "Paris")"#);
/// ```
#[derive(Debug)]
pub struct KeyName {
    prefix: KeyBuf,
    name: Arc<str>,
}

impl KeyName {
    /// Names the keys that begin with `prefix`, which must consist of whole packed elements.
    pub fn new(prefix: &[u8], name: &str) -> Self {
        let (prefix, name) = (KeyBuf::from_slice(prefix), Arc::from(name));
        let mut all = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        *all.entry(prefix.clone()).or_default().entry(Arc::clone(&name)).or_default() += 1;
        Self { prefix, name }
    }
}

impl Drop for KeyName {
    fn drop(&mut self) {
        let mut all = NAMES.write().unwrap_or_else(PoisonError::into_inner);
        let Some(names) = all.get_mut(&self.prefix) else { return };
        if let Some(count) = names.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                names.remove(&self.name);
            }
        }
        if names.is_empty() {
            all.remove(&self.prefix);
        }
    }
}

/// Returns the name for `key`, and the length of the prefix that the name stands for.
fn name_of(key: &[u8]) -> Option<(usize, Arc<str>)> {
    let all = NAMES.read().unwrap_or_else(PoisonError::into_inner);
    // A linear search, because few names are registered and errors are rare.
    let begins_with = |prefix: &[u8]| {
        key.strip_prefix(prefix).is_some_and(|rest| rest.first() != Some(&code::ESCAPE))
    };
    let (prefix, names) = all.iter().rev().find(|(prefix, _)| begins_with(prefix))?;
    match names.len() {
        1 => names.keys().next().map(|name| (prefix.len(), Arc::clone(name))),
        _ => None,
    }
}

/// Shows a key as [`display`] does, with the [name](KeyName) of its beginning if it has one. Errors
/// show keys like this.
pub fn display_named(key: &[u8]) -> impl Display {
    ShownNamed(key)
}

struct ShownNamed<'k>(&'k [u8]);

impl Display for ShownNamed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match name_of(self.0) {
            Some((prefix, name)) if prefix == self.0.len() => f.write_str(&name),
            Some((prefix, name)) => {
                write!(f, "{name} {}", display(self.0.get(prefix..).unwrap_or_default()))
            }
            None => display(self.0).fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::pack;

    #[test]
    fn a_prefix_with_two_names_is_shown_with_its_number() {
        let (key, prefix) = (pack(&(-901, 5)), pack(&-901));
        let shown = || display_named(&key).to_string();
        let first = KeyName::new(&prefix, "a");
        let again = KeyName::new(&prefix, "a");
        assert_eq!(shown(), "a (5,)");
        let other = KeyName::new(&prefix, "b");
        assert_eq!(shown(), "(-901, 5)");
        drop(first);
        assert_eq!(shown(), "(-901, 5)");
        drop(again);
        assert_eq!(shown(), "b (5,)");
        assert_eq!(display_named(&prefix).to_string(), "b");
        drop(other);
        assert_eq!(shown(), "(-901, 5)");
    }

    #[test]
    fn a_longer_prefix_has_its_own_name() {
        let names = [(pack(&-902), "outer"), (pack(&(-902, "x")), "inner")];
        let _names = names.map(|(prefix, name)| KeyName::new(&prefix, name));
        assert_eq!(display_named(&pack(&(-902, "x", 1))).to_string(), "inner (1,)");
        assert_eq!(display_named(&pack(&(-902, "y", 1))).to_string(), r#"outer ("y", 1)"#);
        // Another number whose encoding begins with the same bytes.
        assert_eq!(display_named(&pack(&-902_000)).to_string(), "(-902000,)");
        // A string that continues after the bytes of the named prefix.
        let _name = KeyName::new(&pack(&"names: a"), "of a string");
        assert_eq!(display_named(&pack(&("names: a", 1))).to_string(), "of a string (1,)");
        assert_eq!(display_named(&pack(&("names: a\0b",))).to_string(), r#"("names: a\0b",)"#);
    }
}
