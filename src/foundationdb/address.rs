//! Addresses: `fdb:CLUSTER_FILE?name=NAME`.

use std::path::{Path, PathBuf};

use crate::remote::{NAME_RULE, is_name};
use crate::{Error, Result};

const SCHEME: &str = "fdb:";

/// What an address says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// `None`: the one that every client takes, `FDB_CLUSTER_FILE` or `/etc/foundationdb/fdb.cluster`.
    pub(super) cluster_file: Option<PathBuf>,
    pub(super) name: Option<String>,
}

impl Address {
    pub(super) fn parse(address: &str) -> Result<Self> {
        let Some(rest) = address.strip_prefix(SCHEME) else {
            let why =
                "an address begins with fdb:, as in fdb:/etc/foundationdb/fdb.cluster?name=cities";
            return Err(Error::refused_address(address, why));
        };
        let (path, name) = match rest.split_once('?') {
            None => (rest, None),
            Some((path, query)) => match query.strip_prefix("name=") {
                Some(name) if is_name(name) => (path, Some(name.to_owned())),
                Some(_) => return Err(Error::refused_address(address, NAME_RULE)),
                None => {
                    let why = "behind the ? stands name=, and nothing else";
                    return Err(Error::refused_address(address, why));
                }
            },
        };
        let cluster_file = (!path.is_empty()).then(|| PathBuf::from(path));
        Ok(Self { cluster_file, name })
    }

    /// The file, if it is there.
    pub(super) fn existing_file(&self) -> Result<Option<&Path>> {
        match &self.cluster_file {
            Some(path) if !path.is_file() => Err(Error::refused_name(
                "the cluster file",
                &path.display().to_string(),
                "there is no such file; it is made with the cluster, and copied to its clients",
            )),
            path => Ok(path.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn addresses_say_where_and_which() {
        let parsed = |path: &str, name: Option<&str>| Address {
            cluster_file: (!path.is_empty()).then(|| path.into()),
            name: name.map(Into::into),
        };
        for (address, expected) in [
            ("fdb:", parsed("", None)),
            ("fdb:/etc/fdb.cluster", parsed("/etc/fdb.cluster", None)),
            ("fdb:here/fdb.cluster?name=a.b_c-1", parsed("here/fdb.cluster", Some("a.b_c-1"))),
            ("fdb:?name=cities", parsed("", Some("cities"))),
        ] {
            assert_eq!(Address::parse(address).unwrap(), expected, "{address}");
        }
        for address in
            ["", "fdb", "/etc/fdb.cluster", "fdb:a?", "fdb:a?name=", "fdb:a?name=b/c", "fdb:a?x=1"]
        {
            let error = Address::parse(address).unwrap_err();
            assert!(matches!(error, Error::BadOption { .. }), "{address}: {error}");
        }
    }

    #[test]
    fn passwords_do_not_show() {
        for address in [
            "fdb:?name=b:secret",
            "fdb:?name=secret!",
            "fdb:?password=secret",
            "fdb:a?name=b&password=secret",
            "fdb://ada:secret@h:4500/geo",
            "fdb:geo:secret@127.0.0.1:4500",
            "FDB:geo:secret@127.0.0.1:4500",
            "geo:secret@127.0.0.1:4500",
        ] {
            let opened = Address::parse(address);
            let refused = opened.and_then(|address| address.existing_file().map(drop));
            let said = refused.map_err(|error| format!("{error} {error:?}")).unwrap_err();
            assert!(!said.contains("secret"), "{address}: {said}");
        }
    }

    #[test]
    fn a_cluster_file_that_is_not_there_is_told() {
        let address = Address::parse("fdb:/nowhere/fdb.cluster").unwrap();
        let told = address.existing_file().unwrap_err().to_string();
        assert!(told.contains("/nowhere/fdb.cluster") && told.contains("no such file"), "{told}");
    }
}
