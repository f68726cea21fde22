//! Shared by the tests of several crates: stores, servers, and laws that every pattern must
//! satisfy.
//!
//! Stores with a server are tested if this crate has their feature: `cargo test --features
//! keyloom-testing/postgres`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::new_without_default
)]

pub mod errors;
pub mod ids;
pub mod laws;
pub mod servers;

use std::ops::Deref;

pub use keyloom::AnyStore;
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Memory, Reader, Store, Writer};
use keyloom_redb::Redb;

/// An LMDB store in a directory that is removed with it.
pub struct TemporaryLmdb {
    store: AnyStore,
    _directory: tempfile::TempDir,
}

impl TemporaryLmdb {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // No crash of the machine is tested here, so no commit needs a sync.
        let options = Lmdb::options().durability(Durability::MayLoseStore);
        let store = AnyStore::Lmdb(options.open(directory.path()).unwrap());
        Self { store, _directory: directory }
    }
}

impl Deref for TemporaryLmdb {
    type Target = AnyStore;

    fn deref(&self) -> &AnyStore {
        &self.store
    }
}

/// A redb store in a directory that is removed with it.
pub struct TemporaryRedb {
    store: AnyStore,
    _directory: tempfile::TempDir,
}

impl TemporaryRedb {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Redb::options().durability(keyloom_redb::Durability::MayLoseCommits);
        let store = options.cache_bytes(64 << 20).open(directory.path().join("store")).unwrap();
        Self { store: AnyStore::other("redb:", store), _directory: directory }
    }
}

impl Deref for TemporaryRedb {
    type Target = AnyStore;

    fn deref(&self) -> &AnyStore {
        &self.store
    }
}

/// A store in memory.
pub fn memory() -> AnyStore {
    Memory::new().into()
}

/// A store whose transactions run concurrently and may conflict.
pub fn optimistic_memory() -> Memory {
    Memory::builder().optimistic(true).build()
}

/// Whether the store validates a counter before it adds. A store with a native add does not.
pub fn looks_before_it_adds(store: &impl Store) -> bool {
    let key = b"is this a counter?";
    let mut txn = store.begin().unwrap();
    txn.put(key, b"no").unwrap();
    txn.add(key, 1).is_err()
}

/// Round trips of a transaction for its read version, before the first read.
pub fn waits_for_the_version(store: &impl Store) -> u64 {
    let waits = || store.round_trips().unwrap_or_default();
    let before = waits();
    drop(store.begin().unwrap().get(b"key").unwrap());
    (waits() - before).saturating_sub(1)
}

/// Runs each generic test function on every store: `on_every_store! { a_law, module::another_law
/// }`. Either all functions have a module path, or none.
///
/// Every store is passed as an [`AnyStore`], so that a law is compiled once instead of once per
/// store.
#[macro_export]
macro_rules! on_every_store {
    ($($module:ident::$law:ident),+ $(,)?) => { $crate::on_every_store! { $([$module::$law] $law),+ } };
    ($($law:ident),+ $(,)?) => { $crate::on_every_store! { $([$law] $law),+ } };
    ($([$($path:tt)+] $law:ident),+) => {
        mod on_memory { $(#[test] fn $law() { super::$($path)+(&$crate::memory()) })+ }
        mod on_optimistic_memory {
            $(#[test] fn $law() { super::$($path)+(&$crate::AnyStore::from($crate::optimistic_memory())) })+
        }
        mod on_lmdb {
            $(#[test] fn $law() { super::$($path)+(&*$crate::TemporaryLmdb::new()) })+
        }
        mod on_redb {
            $(
                #[test]
                #[ignore = "the suite of redb runs; all patterns on it with --include-ignored"]
                fn $law() { super::$($path)+(&*$crate::TemporaryRedb::new()) }
            )+
        }
    };
}

/// Runs each generic test function on every available store with a server.
#[macro_export]
macro_rules! on_every_server {
    ($($module:ident::$law:ident),+ $(,)?) => {
        $crate::on_every_server! { $([$module::$law] $law),+ }
    };
    ($($law:ident),+ $(,)?) => { $crate::on_every_server! { $([$law] $law),+ } };
    ($([$($path:tt)+] $law:ident),+) => {
        $crate::on_server! { postgres, on_postgres, $([$($path)+] $law),+ }
        $crate::on_server! { etcd, on_etcd, $([$($path)+] $law),+ }
        $crate::on_foundationdb! { $([$($path)+] $law),+ }
    };
}

/// Runs each generic test function on FoundationDB, if there is a cluster.
#[macro_export]
macro_rules! on_foundationdb {
    ($($module:ident::$law:ident),+ $(,)?) => {
        $crate::on_foundationdb! { $([$module::$law] $law),+ }
    };
    ($($law:ident),+ $(,)?) => { $crate::on_foundationdb! { $([$law] $law),+ } };
    ($([$($path:tt)+] $law:ident),+) => {
        $crate::on_server! { foundationdb, on_foundationdb, $([$($path)+] $law),+ }
    };
}

/// Runs each test function on one kind of server, if it is available.
#[macro_export]
macro_rules! on_server {
    ($server:ident, $on:ident, $([$($path:tt)+] $law:ident),+) => {
        $crate::$server! {
            mod $on {
                $(#[test] fn $law() {
                    if let Some(store) = $crate::servers::stores::$server::open() {
                        super::$($path)+(&store.any())
                    }
                })+
            }
        }
    };
}

/// The items, if this crate has the feature of the store; otherwise those after `else`.
macro_rules! with_feature {
    ($feature:literal, $name:ident, $dollar:tt) => {
        #[cfg(feature = $feature)]
        #[macro_export]
        macro_rules! $name {
            (@else { $dollar($dollar with:item)* } { $dollar($dollar without:item)* }) => { $dollar($dollar with)* };
            ($dollar($dollar with:item)*) => { $dollar($dollar with)* };
        }
        #[cfg(not(feature = $feature))]
        #[macro_export]
        macro_rules! $name {
            (@else { $dollar($dollar with:item)* } { $dollar($dollar without:item)* }) => { $dollar($dollar without)* };
            ($dollar($dollar with:item)*) => {};
        }
    };
}

with_feature!("postgres", postgres, $);
with_feature!("etcd", etcd, $);
with_feature!("foundationdb", foundationdb, $);

/// Runs each generic test function on every store, embedded or with a server.
#[macro_export]
macro_rules! on_every_store_and_server {
    ($($laws:tt)+) => {
        $crate::on_every_store! { $($laws)+ }
        $crate::on_every_server! { $($laws)+ }
    };
}

/// Runs each generic test function on every store, and on FoundationDB.
#[macro_export]
macro_rules! on_every_store_and_foundationdb {
    ($($laws:tt)+) => {
        $crate::on_every_store! { $($laws)+ }
        $crate::on_foundationdb! { $($laws)+ }
    };
}
