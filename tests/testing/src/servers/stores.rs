//! Separate stores on the servers that a test run shares, started by `with.sh`.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use keyloom::{AnyStore, KeyRange, Store, Writer};

/// A store that is emptied when it is dropped.
pub struct Temporary<S: Store>(S);

impl<S: Store + Clone> Temporary<S> {
    /// A handle of the store for tests that run on every store.
    pub fn any(&self) -> AnyStore {
        AnyStore::other("a server", self.0.clone())
    }
}

impl<S: Store> Deref for Temporary<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: Store> Drop for Temporary<S> {
    fn drop(&mut self) {
        let _ = self.0.transact(|txn| txn.delete_range(KeyRange::all()));
    }
}

/// A unique name for tables and stores.
pub fn fresh_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("keyloom_test_{}_{next}", std::process::id())
}

/// A store on the shared PostgreSQL, or another server with its protocol.
#[cfg(feature = "postgres")]
pub mod postgres {
    pub use keyloom_postgres::{Postgres, PostgresOptions};

    use super::{Temporary, fresh_name};
    use crate::servers::{Server, shared};

    pub fn address() -> Option<String> {
        shared(Server::Postgres)
    }

    pub fn open() -> Option<Temporary<Postgres>> {
        open_with(Postgres::options())
    }

    pub fn open_with(options: PostgresOptions) -> Option<Temporary<Postgres>> {
        let address = address()?;
        Some(Temporary(options.table(fresh_name()).open(&address).unwrap()))
    }
}

/// A store in the shared etcd cluster.
#[cfg(feature = "etcd")]
pub mod etcd {
    pub use keyloom_etcd::Etcd;

    use super::{Temporary, fresh_name};
    use crate::servers::{Server, shared};

    pub fn address() -> Option<String> {
        shared(Server::Etcd)
    }

    pub fn open() -> Option<Temporary<Etcd>> {
        let address = address()?;
        let members = address.rsplit_once('/').map_or(&*address, |(members, _)| members);
        Some(Temporary(Etcd::open(&format!("{members}/{}", fresh_name())).unwrap()))
    }
}

/// A store in the shared FoundationDB cluster.
#[cfg(feature = "foundationdb")]
pub mod foundationdb {
    pub use keyloom_foundationdb::{FoundationDb, FoundationDbOptions};

    use super::{Temporary, fresh_name};
    use crate::servers::{Server, shared};

    pub fn address() -> Option<String> {
        Some(format!("fdb:{}", shared(Server::FoundationDb)?))
    }

    pub fn open() -> Option<Temporary<FoundationDb>> {
        open_with(FoundationDb::options())
    }

    pub fn open_with(options: FoundationDbOptions) -> Option<Temporary<FoundationDb>> {
        let address = address()?;
        Some(Temporary(options.name(fresh_name()).open(&address).unwrap()))
    }
}
