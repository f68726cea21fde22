//! Acquires and releases a free lock. keyloom in etcd is compared with etcd's own lock recipe,
//! through the same client on the same member. keyloom on PostgreSQL is compared with an advisory
//! lock.
//!
//! The row with a lease is the usual hand-written lock: one row per lock, with its owner and the
//! end of its lease. An update acquires and releases the lock, in its own serializable transaction.
//!
//! etcd's recipe writes one key with a lease and reads its range; it has one mode and no levels. A
//! PostgreSQL advisory lock ends with its connection, and its holder gets no fencing token.
//!
//! ```text
//! tests/servers/with.sh cargo bench -p keyloom-compare --features servers --bench locks
//! ```

#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::RefCell;

use etcd_client::{Client as EtcdClient, LockOptions};
use keyloom::{Metered, Store};
use keyloom_compare::compare;
use keyloom_etcd::Etcd;
use keyloom_patterns::Schema;
use keyloom_patterns::locking::{Lock, LockPath, Locks, Session};
use keyloom_postgres::Postgres;
use postgres::{Client as PgClient, IsolationLevel, NoTls, Statement};

const ROUNDS: usize = 100;

const LEASES: &str = "
    DROP TABLE IF EXISTS leases;
    CREATE TABLE leases (name text PRIMARY KEY, owner bigint, until timestamptz NOT NULL)";
const TAKE: &str = "
    INSERT INTO leases VALUES ($1, $2, now() + interval '10 s')
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until
    WHERE leases.owner IS NULL OR leases.until < now()";

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
    raw.batch_execute(LEASES).unwrap();
    let take = raw.prepare(TAKE).unwrap();
    let give =
        raw.prepare("UPDATE leases SET owner = NULL WHERE name = $1 AND owner = $2").unwrap();
    let raw = RefCell::new(raw);
    let update = |statement: &Statement, name: &str| {
        let mut raw = raw.borrow_mut();
        let level = IsolationLevel::Serializable;
        let mut txn = raw.build_transaction().isolation_level(level).start().unwrap();
        assert_eq!(txn.execute(statement, &[&name, &7_i64]).unwrap(), 1);
        txn.commit().unwrap();
    };
    let (mut n, mut m, mut k) = (0, 0_i64, 0);
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
                let mut raw = raw.borrow_mut();
                raw.execute(&lock, &[&(m % 100)]).unwrap();
                raw.execute(&unlock, &[&(m % 100)]).unwrap();
            }),
            ("a row with a lease", &mut || {
                k += 1;
                let name = format!("document/{}", k % 100);
                update(&take, &name);
                update(&give, &name);
            }),
        ],
    );
}
