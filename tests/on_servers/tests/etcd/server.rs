//! Separate stores on the servers from the environment.

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use etcd_client::{Client, DeleteOptions};
use keyloom::Error;
use keyloom_etcd::Etcd;
use keyloom_etcd::EtcdOptions;

pub use keyloom_on_servers::contract::{key, plant, waits};
use keyloom_testing::servers;

/// The servers, or `None` if there are none and the tests may be skipped.
#[derive(Clone)]
pub struct Server {
    members: String,
    _company: Rc<Company>,
}

/// Whether other tests use the servers concurrently: a compaction affects all of them.
enum Company {
    Others { _guard: RwLockReadGuard<'static, ()> },
    Nobody { _guard: RwLockWriteGuard<'static, ()> },
}

static USERS: RwLock<()> = RwLock::new(());

/// Removes the data of a test.
pub struct Cleanup {
    server: Server,
    name: String,
}

impl Server {
    pub fn from_environment() -> Option<Self> {
        Self::shared_with(|| Company::Others {
            _guard: USERS.read().unwrap_or_else(PoisonError::into_inner),
        })
    }

    /// The servers. No other test of this program uses them until the result is dropped.
    pub fn alone() -> Option<Self> {
        Self::shared_with(|| Company::Nobody {
            _guard: USERS.write().unwrap_or_else(PoisonError::into_inner),
        })
    }

    fn shared_with(company: impl FnOnce() -> Company) -> Option<Self> {
        let address = servers::shared(servers::Server::Etcd)?;
        let rest = address.strip_prefix("etcd://").expect("KEYLOOM_ETCD begins with etcd://");
        let members = rest.split('/').next().unwrap().to_owned();
        Some(Self { members, _company: Rc::new(company()) })
    }

    /// The address of a store that no other process uses.
    pub fn fresh_address(&self) -> (String, Cleanup) {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        let server = self.clone();
        (format!("etcd://{}/{name}", self.members), Cleanup { server, name })
    }

    /// A store that no other process uses.
    pub fn fresh(&self, options: EtcdOptions) -> (Etcd, Cleanup) {
        let (address, cleanup) = self.fresh_address();
        (options.open(&address).unwrap(), cleanup)
    }

    pub fn members(&self) -> &str {
        &self.members
    }

    /// Sends requests to the cluster without keyloom.
    pub fn directly<T>(
        &self,
        work: impl AsyncFnOnce(Client) -> Result<T, etcd_client::Error>,
    ) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let members: Vec<&str> = self.members.split(',').collect();
        runtime.block_on(async { work(Client::connect(members, None).await?).await }).unwrap()
    }
}

impl Cleanup {
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        let keys = format!("{}/", self.name);
        let mark = format!("{}.deleted", self.name);
        self.server.directly(async |mut client| {
            client.delete(keys, Some(DeleteOptions::new().with_prefix())).await?;
            client.delete(mark, None).await
        });
    }
}

/// A fresh store; returns from the test if there are no servers. Use it once per test: see
/// [`Server::fresh`] for more stores.
macro_rules! fresh {
    () => {
        fresh!(keyloom_etcd::Etcd::options())
    };
    ($options:expr) => {
        match crate::server::Server::from_environment() {
            Some(server) => server.fresh($options),
            None => return,
        }
    };
}
pub(crate) use fresh;

pub fn is_conflict(result: &keyloom::Result<()>) -> bool {
    matches!(result, Err(Error::Conflict { .. }))
}
