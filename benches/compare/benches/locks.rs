//! A lock that is free, acquired and released: keyloom in etcd beside etcd's own lock recipe,
//! through the same client on the same member, and keyloom on PostgreSQL beside an advisory lock.
//!
//! etcd's recipe writes one key with a lease and reads its range; it has one mode, and no levels. A
//! lock of PostgreSQL ends with its connection, and its holder has no token.
//!
//! ```text
//! tests/servers/with.sh cargo bench -p keyloom-compare --features servers --bench locks
//! ```

#![allow(missing_docs, clippy::unwrap_used)]

use etcd_client::{Client as EtcdClient, LockOptions};
use keyloom::{Etcd, Metered, Postgres, Store};
use keyloom_compare::compare;
use keyloom_patterns::Schema;
use keyloom_patterns::locking::{Lock, LockPath, Locks, Session};
use postgres::{Client as PgClient, NoTls};

const ROUNDS: usize = 100;

fn main() {
    println!("ratios are keyloom / the server's own lock: below 1 keyloom is faster\n");
    match std::env::var("KEYLOOM_ETCD") {
        Ok(address) => etcd(&address),
        Err(_) => println!("no KEYLOOM_ETCD: run it under tests/servers/with.sh"),
    }
    match std::env::var("KEYLOOM_POSTGRES") {
        Ok(address) => on_postgres(&address),
        Err(_) => println!("no KEYLOOM_POSTGRES: run it under tests/servers/with.sh"),
    }
}

/// Locks `/"document"/n` and releases it.
fn acquire_and_release<S: Store + Clone>(session: &Session<S>, n: u32) {
    let path = LockPath::of(["document"]).child(n % 100);
    session.lock(&[Lock::exclusive(path)]).unwrap().release().unwrap();
}

fn session<S: Store + Clone>(store: &Metered<S>) -> Session<Metered<S>> {
    let locks = Locks::open(&Schema::open(store, "compare").unwrap(), "locks").unwrap();
    let session = Session::begin(store, &locks, "bench").unwrap();
    acquire_and_release(&session, 0);
    let ((), cost) = store.measure(|_| acquire_and_release(&session, 1));
    println!("keyloom: {cost}");
    session
}

fn etcd(address: &str) {
    let members = address.strip_prefix("etcd://").unwrap().split('/').next().unwrap();
    let member = members.split(',').next().unwrap();
    let store = Metered::new(Etcd::open(&format!("etcd://{member}/compared_locks")).unwrap());
    let session = session(&store);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut client = runtime.block_on(EtcdClient::connect([member], None)).unwrap();
    let lease = runtime.block_on(client.lease_grant(600, None)).unwrap().id();
    let mut n = 0;
    let mut next = || {
        n += 1;
        n
    };
    let mut m = 0;
    compare(
        "etcd: a lock acquired and released",
        1,
        ROUNDS,
        &mut [
            ("keyloom", &mut || acquire_and_release(&session, next())),
            ("etcd's recipe", &mut || {
                m += 1;
                let name = format!("locks/document/{}", m % 100);
                runtime.block_on(async {
                    let options = LockOptions::new().with_lease(lease);
                    let held = client.lock(name, Some(options)).await.unwrap();
                    client.unlock(held.key()).await.unwrap();
                });
            }),
        ],
    );
}

fn on_postgres(address: &str) {
    let store = Postgres::options().table("compared_locks").open(address).unwrap();
    let store = Metered::new(store);
    let session = session(&store);
    let mut raw = PgClient::connect(address, NoTls).unwrap();
    let lock = raw.prepare("SELECT pg_advisory_lock($1)").unwrap();
    let unlock = raw.prepare("SELECT pg_advisory_unlock($1)").unwrap();
    let (mut n, mut m) = (0, 0_i64);
    compare(
        "PostgreSQL: a lock acquired and released",
        1,
        ROUNDS,
        &mut [
            ("keyloom", &mut || {
                n += 1;
                acquire_and_release(&session, n);
            }),
            ("an advisory lock", &mut || {
                m += 1;
                raw.execute(&lock, &[&(m % 100)]).unwrap();
                raw.execute(&unlock, &[&(m % 100)]).unwrap();
            }),
        ],
    );
}
