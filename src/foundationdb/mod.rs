//! The store on FoundationDB.

mod address;
mod again;
mod error;
mod keyspace;
mod network;
mod options;
mod session;

use std::fmt;
use std::sync::Arc;

use foundationdb::{Database, Transaction};

pub use options::FoundationDbOptions;

use crate::remote::{Link, Outcome, RemoteEntries, RemoteSnapshot, RemoteTransaction};
use crate::{Limits, Result, RetryPolicy, Store};
use again::Again;
use keyspace::Keyspace;
use session::{FoundationDbSession, Kind};

/// A view of a [`FoundationDb`] store that never changes: a version, for five seconds.
pub type FoundationDbSnapshot = RemoteSnapshot<FoundationDbSession>;

/// A transaction of a [`FoundationDb`] store.
pub type FoundationDbTransaction = RemoteTransaction<FoundationDbSession>;

/// The entries of a range of a [`FoundationDb`] store.
pub type FoundationDbEntries<'r> = RemoteEntries<'r, FoundationDbSession>;

/// A store on FoundationDB. A handle: cheap to clone, and safe to use from many threads; see the
/// [module](self).
#[derive(Clone)]
pub struct FoundationDb {
    shared: Arc<Shared>,
}

/// What all handles and readers of a store share.
struct Shared {
    // Dropped first: they belong to the database.
    again: Again,
    database: Database,
    link: Link,
    keys: Keyspace,
    retry_policy: RetryPolicy,
}

impl FoundationDb {
    /// Opens the store at `address` with the default [`options`](FoundationDb::options):
    /// `fdb:CLUSTER_FILE?name=NAME`.
    ///
    /// # Errors
    /// As [`FoundationDbOptions::open`].
    pub fn open(address: &str) -> Result<Self> {
        Self::options().open(address)
    }

    /// The options to open a store with.
    pub fn options() -> FoundationDbOptions {
        FoundationDbOptions::default()
    }

    /// Where the store is: the cluster file, and what all keys begin with.
    pub fn place(&self) -> &str {
        self.shared.link.place()
    }

    fn session(&self, txn: Transaction, kind: Kind) -> Result<FoundationDbSession> {
        FoundationDbSession::new(Arc::clone(&self.shared), txn, kind)
    }

    fn look(&self) -> Result<FoundationDbSession> {
        let txn = self.shared.database.create_trx().map_err(error::of_setup)?;
        let session = self.session(txn, Kind::Snapshot)?;
        session.look()?;
        Ok(session)
    }

    /// The transaction that failed before on this thread, when it has waited as long as it should; or a new one.
    fn transaction(&self) -> Result<Transaction> {
        let Shared { link, again, database, .. } = &*self.shared;
        if let Some(failed) = again.take()
            && let Outcome::Answered(Ok(txn)) = link.wait_uncounted(link.timeout(), failed.again())
        {
            return Ok(txn);
        }
        database.create_trx().map_err(error::of_setup)
    }
}

impl fmt::Debug for FoundationDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FoundationDb").field(&self.place()).finish()
    }
}

impl Store for FoundationDb {
    type Snapshot<'s> = FoundationDbSnapshot;
    type Transaction<'s> = FoundationDbTransaction;

    fn snapshot(&self) -> Result<FoundationDbSnapshot> {
        Ok(RemoteSnapshot::new(self.look()?))
    }

    fn begin(&self) -> Result<FoundationDbTransaction> {
        let session = self.session(self.transaction()?, Kind::Transaction)?;
        Ok(RemoteTransaction::new(session, self.limits()))
    }

    fn limits(&self) -> Limits {
        Limits::foundationdb()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.retry_policy
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.shared.link.round_trips())
    }
}
