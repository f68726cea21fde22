//! A store in an etcd cluster.

mod address;
mod commit;
mod error;
mod keyspace;
mod members;
mod options;
mod room;
mod session;
mod validation;

use std::fmt;
use std::sync::Arc;

pub use options::EtcdOptions;
pub use session::{EtcdSnapshot, EtcdTransaction};

use keyspace::Keyspace;
use members::Members;
use options::Plan;
use room::Room;

use crate::remote::{Link, RemoteSnapshot, RemoteTransaction};
use crate::{Limits, Result, RetryPolicy, Store};

/// A store in an etcd cluster. A handle: cheap to clone, and safe to use from many threads.
///
/// ```no_run
/// use keyloom::{Etcd, Reader, Store, Writer};
/// let store = Etcd::open("etcd://a:2379,b:2379,c:2379/keyloom")?;
/// store.transact(|txn| txn.put(b"greeting", b"hello"))?;
/// assert_eq!(store.snapshot()?.get(b"greeting")?.as_deref(), Some(&b"hello"[..]));
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone)]
pub struct Etcd {
    shared: Arc<Shared>,
}

/// What all handles and readers of a store share.
#[derive(Debug)]
struct Shared {
    // Dropped first: the connections are driven by the link.
    members: Members,
    link: Link,
    keys: Keyspace,
    room: Room,
    retry_policy: RetryPolicy,
}

impl Etcd {
    /// Opens the store at `address` with the default [`options`](Etcd::options):
    /// `etcd://host:port,host:port/name`.
    ///
    /// # Errors
    /// As [`EtcdOptions::open`].
    pub fn open(address: &str) -> Result<Self> {
        Self::options().open(address)
    }

    /// The options to open a store with.
    pub fn options() -> EtcdOptions {
        EtcdOptions::default()
    }

    fn from_plan(plan: Plan) -> Result<Self> {
        let keys = Keyspace::new(&plan.name);
        let room = Room::new(plan.max_operations, plan.max_request_bytes, keys.prefix_bytes());
        let shared = Shared {
            members: Members::new(plan.urls, plan.connect),
            link: Link::new(&plan.place, plan.timeout)?,
            keys,
            room,
            retry_policy: plan.retry_policy,
        };
        shared.first_revision()?;
        Ok(Self { shared: Arc::new(shared) })
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Etcd").field(&self.shared.link.place()).finish()
    }
}

impl Store for Etcd {
    type Snapshot<'s> = RemoteSnapshot<EtcdSnapshot>;
    type Transaction<'s> = RemoteTransaction<EtcdTransaction>;

    fn snapshot(&self) -> Result<Self::Snapshot<'_>> {
        let revision = self.shared.revision()?;
        Ok(RemoteSnapshot::new(EtcdSnapshot::new(Arc::clone(&self.shared), revision)))
    }

    fn begin(&self) -> Result<Self::Transaction<'_>> {
        let session = EtcdTransaction::new(Arc::clone(&self.shared));
        Ok(RemoteTransaction::new(session, self.limits()))
    }

    fn limits(&self) -> Limits {
        self.shared.room.limits()
    }

    fn retry_policy(&self) -> RetryPolicy {
        self.shared.retry_policy
    }

    fn round_trips(&self) -> Option<u64> {
        Some(self.shared.link.round_trips())
    }
}
