//! Engines, the addresses of their stores, and the library's own reads.

use std::collections::BTreeMap;

use keyloom::{AnyStore, KeyRange, Order, Reader, Result, Store, Writer};
use keyloom_fjall::Fjall;
use keyloom_redb::Redb;
#[cfg(any(feature = "postgres", feature = "etcd"))]
use keyloom_testing::servers::{Server, shared, stores::fresh_name};

use crate::support::Directory;

/// The engine of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Lmdb,
    Redb,
    Fjall,
    #[cfg(feature = "postgres")]
    Postgres,
    #[cfg(feature = "etcd")]
    Etcd,
}

impl Engine {
    /// Whether another process may write to a store that a command has open.
    pub fn is_shared(self) -> bool {
        !matches!(self, Self::Redb | Self::Fjall)
    }

    /// Whether the command opens a store that does not exist, as an empty one. A store in etcd is a
    /// prefix of keys.
    pub fn opens_missing(self) -> bool {
        match self {
            #[cfg(feature = "etcd")]
            Self::Etcd => true,
            _ => false,
        }
    }

    /// The address of a store that does not exist. `None` if the engine has a server, and the
    /// environment names none.
    pub fn address(self, directory: &Directory, name: &str) -> Option<String> {
        Some(match self {
            Self::Lmdb => directory.address("lmdb", name),
            Self::Redb => directory.address("redb", name),
            Self::Fjall => directory.address("fjall", name),
            #[cfg(feature = "postgres")]
            Self::Postgres => format!("{}?table={}", shared(Server::Postgres)?, fresh_name()),
            #[cfg(feature = "etcd")]
            Self::Etcd => {
                let address = shared(Server::Etcd)?;
                let members = address.rsplit_once('/').map_or(&*address, |(members, _)| members);
                format!("{members}/{}", fresh_name())
            }
        })
    }
}

fn redb(address: &str) -> Result<AnyStore> {
    Ok(AnyStore::other(address, Redb::open(address.trim_start_matches("redb:"))?))
}

fn fjall(address: &str) -> Result<AnyStore> {
    Ok(AnyStore::other(address, Fjall::open(address.trim_start_matches("fjall:"))?))
}

#[cfg(feature = "postgres")]
fn postgres(address: &str) -> Result<AnyStore> {
    Ok(AnyStore::other("postgres", keyloom_postgres::Postgres::open(address)?))
}

/// Opens a store through the library, and creates it if it is missing.
pub fn open(address: &str) -> AnyStore {
    AnyStore::open_with(
        address,
        &[
            ("redb", redb),
            ("fjall", fjall),
            #[cfg(feature = "postgres")]
            ("postgres", postgres),
            #[cfg(feature = "etcd")]
            ("etcd", keyloom_etcd::Etcd::open_address),
        ],
    )
    .unwrap()
}

pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// All entries, read by the library.
pub fn entries(address: &str) -> Entries {
    let store = open(address);
    let snapshot = store.snapshot().unwrap();
    let all = snapshot.range(KeyRange::all(), Order::Ascending).unwrap();
    all.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// Writes the entries, in transactions that etcd accepts.
pub fn write(address: &str, entries: &Entries) {
    let store = open(address);
    let entries: Vec<_> = entries.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    for batch in entries.chunks(100) {
        store.transact(|txn| txn.put_sorted(batch)).unwrap();
    }
}

/// Changes one entry through the library; `None` removes it.
pub fn set(address: &str, key: &[u8], value: Option<&[u8]>) {
    let change = open(address).transact(|txn| match value {
        Some(value) => txn.put(key, value),
        None => txn.delete(key),
    });
    change.unwrap();
}

/// Removes all entries.
pub fn empty(address: &str) {
    open(address).transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}
