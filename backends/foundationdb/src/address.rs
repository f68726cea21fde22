//! Addresses: `fdb:CLUSTER_FILE?name=NAME`.

use std::path::PathBuf;
use std::{env, fs, io};

use keyloom::backend::{refused_address, shown_name};
use keyloom::{Error, Result, StorageError};
use keyloom_remote::{NAME_RULE, is_name};

const SCHEME: &str = "fdb:";

/// The parts of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    /// `None` for the cluster file that every client uses by default.
    pub(super) cluster_file: Option<PathBuf>,
    pub(super) name: Option<String>,
}

impl Address {
    pub(super) fn parse(address: &str) -> Result<Self> {
        let Some(rest) = address.strip_prefix(SCHEME) else {
            let why =
                "an address begins with fdb:, as in fdb:/etc/foundationdb/fdb.cluster?name=cities";
            return Err(refused_address(address, why));
        };
        let (path, name) = match rest.split_once('?') {
            None => (rest, None),
            Some((path, query)) => match query.strip_prefix("name=") {
                Some(name) if is_name(name) => (path, Some(name.to_owned())),
                Some(_) => return Err(refused_address(address, NAME_RULE)),
                None => {
                    let why = "only name= is allowed after the ?";
                    return Err(refused_address(address, why));
                }
            },
        };
        let cluster_file = (!path.is_empty()).then(|| PathBuf::from(path));
        Ok(Self { cluster_file, name })
    }

    /// The cluster file of the address, or the default cluster file of every client.
    pub(super) fn cluster_file(&self) -> ClusterFile {
        const VARIABLE: &str = "FDB_CLUSTER_FILE";
        if let Some(path) = &self.cluster_file {
            return ClusterFile { path: path.clone(), named_by: "the address" };
        }
        if let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) {
            return ClusterFile { path: path.into(), named_by: VARIABLE };
        }
        let [here, system] = ["fdb.cluster", "/etc/foundationdb/fdb.cluster"].map(PathBuf::from);
        let path = if here.exists() { here } else { system };
        ClusterFile { path, named_by: "no address and no FDB_CLUSTER_FILE" }
    }
}

/// A cluster file, and the source of its path: the address or the environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClusterFile {
    path: PathBuf,
    named_by: &'static str,
}

impl ClusterFile {
    /// Checks that the file is readable, and returns its path in the form that the client requires.
    ///
    /// Without this check, an unreadable file would not be reported: the client reads the file
    /// later, in its own thread, and then waits for a cluster without an address.
    pub(super) fn checked(&self) -> Result<&str> {
        let why = match fs::read(&self.path) {
            Ok(_) => match self.path.to_str() {
                Some(path) => return Ok(path),
                None => "its path is not UTF-8, which the client needs",
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                "there is no such file; copy it from a server of the cluster"
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                "this process may not read it; let it read and write the file, which the client \
                 writes when the coordinators change"
            }
            Err(error) => {
                return Err(Error::Storage(StorageError::Io {
                    path: self.shown_path().into(),
                    source: error.into(),
                }));
            }
        };
        Err(self.refused(why))
    }

    /// The path for messages. A path that resembles the contents of a cluster file is hidden, since
    /// these contents are a secret of the cluster.
    fn shown_path(&self) -> String {
        shown_name(&self.path.to_string_lossy()).to_owned()
    }

    /// An error about this file.
    pub(super) fn refused(&self, why: &'static str) -> Error {
        let value = format!("{} (named by {})", self.shown_path(), self.named_by);
        Error::InvalidArgument { what: "the cluster file", value, why }
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
            assert!(matches!(error, Error::InvalidArgument { .. }), "{address}: {error}");
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
            let refused = opened.and_then(|address| address.cluster_file().checked().map(drop));
            let said = refused.map_err(|error| format!("{error} {error:?}")).unwrap_err();
            assert!(!said.contains("secret"), "{address}: {said}");
        }
    }

    #[test]
    fn a_missing_cluster_file_is_named_with_what_names_it() {
        let address = Address::parse("fdb:/nowhere/fdb.cluster").unwrap();
        let error = address.cluster_file().checked().unwrap_err().to_string();
        assert!(error.contains("/nowhere/fdb.cluster (named by the address)"), "{error}");
        assert!(error.contains("no such file"), "{error}");
    }

    #[test]
    fn a_directory_in_place_of_a_cluster_file_is_an_io_error() {
        let address = Address::parse("fdb:/").unwrap();
        let error = address.cluster_file().checked().unwrap_err();
        assert!(matches!(error, Error::Storage(StorageError::Io { .. })), "{error:?}");
    }
}
