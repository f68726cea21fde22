//! Opens stores by address. Creates a store only if the command allows it.

use std::path::Path;

use keyloom::{AnyStore, Lmdb};
use keyloom_fjall::Fjall;
use keyloom_redb::Redb;

use crate::failure::{Failure, Result};
use crate::shown::printable;

/// What a command does with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads the store.
    Read,
    /// Reads and writes the store.
    Write,
    /// Writes the store, and creates it if it is missing.
    Create,
}

/// Opens the store at `address`.
pub fn open(address: &str, access: Access) -> Result<AnyStore> {
    let create = access == Access::Create;
    match address.split_once(':') {
        Some(("memory", "")) => Ok(AnyStore::open(address)?),
        Some(("lmdb", path)) if !path.is_empty() => lmdb(path, access),
        Some(("redb", path)) if !path.is_empty() => {
            Ok(AnyStore::other(address, Redb::options().create(create).open(path)?))
        }
        Some(("fjall", path)) if !path.is_empty() => {
            Ok(AnyStore::other(address, Fjall::options().create(create).open(path)?))
        }
        Some(("postgres" | "postgresql", _)) => postgres(address, create),
        Some(("etcd", _)) => etcd(address),
        _ if Path::new(address).join("data.mdb").is_file() => lmdb(address, access),
        Some((scheme @ ("memory" | "lmdb" | "redb" | "fjall"), _)) => {
            Err(Failure::new(format!("the address has no path after {scheme}:")))
        }
        None if Path::new(address).is_file() => Err(Failure::new(format!(
            "a file is a store of redb: write redb:{}",
            printable(address)
        ))),
        _ => Err(Failure::new(
            "there is no store; an address is lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, postgres://…, etcd://… or a directory with data.mdb",
        )),
    }
}

fn lmdb(path: &str, access: Access) -> Result<AnyStore> {
    let options = Lmdb::options().read_only(access == Access::Read);
    Ok(options.create(access == Access::Create).open(path)?.into())
}

#[cfg(feature = "postgres")]
fn postgres(address: &str, create: bool) -> Result<AnyStore> {
    let store = keyloom_postgres::Postgres::options().create(create).open(address)?;
    Ok(AnyStore::other(store.place(), store.clone()))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str, _: bool) -> Result<AnyStore> {
    Err(without("postgres"))
}

// A store in etcd is a prefix of keys, so opening one creates nothing.
#[cfg(feature = "etcd")]
fn etcd(address: &str) -> Result<AnyStore> {
    Ok(keyloom_etcd::Etcd::open_address(address)?)
}

#[cfg(not(feature = "etcd"))]
fn etcd(_: &str) -> Result<AnyStore> {
    Err(without("etcd"))
}

#[cfg(not(all(feature = "etcd", feature = "postgres")))]
fn without(feature: &str) -> Failure {
    Failure::new(format!(
        "this keyloom was built without the feature {feature}; build it with `cargo build -p keyloom-cli --features {feature}`"
    ))
}

/// The address for messages: without a password, and without control characters.
pub fn shown(address: &str) -> String {
    let hidden = match address.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}", without_password(rest)),
        None => match address.split_once(':') {
            Some((scheme @ ("postgres" | "postgresql" | "etcd" | "fdb"), _)) => {
                format!("{scheme}:…")
            }
            _ => address.to_owned(),
        },
    };
    printable(&hidden)
}

// Hides a password in the query too, and a password that contains `/` or `@`.
fn without_password(rest: &str) -> String {
    let (user, place) = rest.rsplit_once('@').map_or(("", rest), |(user, place)| (user, place));
    let place = place.split('?').next().unwrap_or_default();
    match user.split(':').next().unwrap_or_default() {
        "" => place.to_owned(),
        user => format!("{user}@{place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn passwords_are_not_shown() {
        for (address, expected) in [
            ("postgres://ada:se@c/ret@host:1/db?password=x", "postgres://ada@host:1/db"),
            ("etcd://a:1,b:2/name", "etcd://a:1,b:2/name"),
            ("postgres:ada:secret@host", "postgres:…"),
            ("lmdb:a\u{1b}[2J", "lmdb:a\\u{1b}[2J"),
        ] {
            assert_eq!(shown(address), expected);
        }
    }
}
